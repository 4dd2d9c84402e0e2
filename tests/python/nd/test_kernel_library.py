"""Which library of CUDA kernels is taken: that of the build, or that of the wheel dlbridge-cuda13, of this release."""

import ast
import os
import shutil

import dlbridge
import pytest
from child_process import run_python
from lifecycle_support import KERNEL_LIBRARY, compile_shared, link_package

WHEEL = "dlbridge_cuda13"
LIBRARY = 'extern "C" const int* dlbridge_nd_cuda_backend() { static const int release[32] = {%d}; return release; }'
RELEASE = int("{}{:>03}{:>03}".format(*dlbridge.__version__.split(".")))


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Folders with a library each: of this release, and of a younger one."""
    folders = {}
    for name, release in (("ours", RELEASE), ("younger", 2_003_004)):
        folders[name] = tmp_path_factory.mktemp(name)
        source = folders[name] / "library.cpp"
        source.write_text(LIBRARY % release)
        compile_shared(source, folders[name], KERNEL_LIBRARY)
    return folders


def found(site, *more, cwd=None):
    """(path, problem) of a dlbridge in `site`, with `more` on sys.path behind it."""
    code = "from dlbridge.nd import _native; print(_native.kernel_library())"
    return ast.literal_eval(run_python(code, cwd=cwd, PYTHONPATH=os.pathsep.join(map(str, (site, *more)))).stdout)


def put(library, folder):
    folder.mkdir(parents=True, exist_ok=True)
    return shutil.copy(library / KERNEL_LIBRARY, folder)


@pytest.mark.parametrize("beside", [True, False], ids=["beside the package", "on sys.path"])
def test_the_library_of_the_wheel_is_found(tmp_path, libraries, beside):
    package = link_package(tmp_path)
    elsewhere = tmp_path if beside else tmp_path / "other"
    path = put(libraries["ours"], elsewhere / WHEEL)
    assert found(package.parent, elsewhere) == (str(path), "")


def test_the_library_of_the_build_comes_first(tmp_path, libraries):
    package = link_package(tmp_path)
    put(libraries["younger"], tmp_path / WHEEL)
    path = put(libraries["ours"], package)
    assert found(package.parent) == (str(path), "")


def test_a_library_in_the_current_folder_is_not_taken(tmp_path, libraries):
    package = link_package(tmp_path)
    put(libraries["ours"], tmp_path / "here" / WHEEL)
    path, problem = found(package.parent, cwd=tmp_path / "here")
    assert path == str(package / KERNEL_LIBRARY)
    assert problem.startswith(f"dlbridge's CUDA kernels are not installed (no {path}). pip install 'dlbridge[cuda13]'")


def test_a_library_of_another_release_is_refused_in_words(tmp_path, libraries):
    package = link_package(tmp_path)
    path = put(libraries["younger"], tmp_path / WHEEL)
    ours = dlbridge.__version__
    wanted = f"is of dlbridge 2.3.4, and this is dlbridge {ours}. Install what belongs to it: pip install"
    assert found(package.parent) == (str(path), f"{path} {wanted} 'dlbridge[cuda13]=={ours}'")


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "cannot be loaded"), (b"hello", "cannot be loaded"), (None, "is no kernel library")]
)
def test_a_file_that_is_no_kernel_library_is_refused(tmp_path, content, said):
    package = link_package(tmp_path)
    path = tmp_path / WHEEL / KERNEL_LIBRARY
    path.parent.mkdir()
    if content is None:
        (tmp_path / "empty.cpp").write_text("int nothing;")
        compile_shared(tmp_path / "empty.cpp", path.parent, KERNEL_LIBRARY)
    else:
        path.write_bytes(content)
    assert said in found(package.parent)[1]
