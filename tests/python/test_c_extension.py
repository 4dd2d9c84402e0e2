"""dlbridge.h, its declarations for Cython and dlbridge.rs: the same module in C, Cython and Rust, from examples/."""

import functools
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import build_folders
import dlbridge
import pytest
from caster_support import _sanitizer_flags, include_folders
from child_process import run_python
from dlbridge import asdlpack, nd
from lifecycle_support import nothing_lost

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

EXAMPLES = Path(__file__).parents[2] / "examples"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def run(*command, **environment):
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | environment
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def tool(name):
    found = shutil.which(name) or pytest.skip(f"no {name} on PATH")
    if subprocess.run([found, "--version"], capture_output=True).returncode:
        pytest.skip(f"{found} does not run")  # rustup's, where it has been given no toolchain
    return found


def compile_c(source, path, *flags):
    run(tool("cc"), "-std=c99", "-O1", "-fPIC", "-shared", *flags, *(f"-I{folder}" for folder in include_folders()),
        "-isystem", sysconfig.get_paths()["include"], *_sanitizer_flags(), source, "-o", path)  # fmt: skip


def from_c(folder):
    compile_c(EXAMPLES / "c_extension" / "scale.c", folder / f"scale{SUFFIX}",
              "-Wall", "-Wextra", "-Wconversion", "-Werror")  # fmt: skip


def from_cython(folder):
    pytest.importorskip("Cython", "3.0", reason="Cython >= 3 is needed to build the example")
    # PYTHONPATH: Cython finds dlbridge's declarations where Python finds dlbridge.
    run(sys.executable, "-m", "cython", "-Werror", "-Wextra", EXAMPLES / "cython_extension" / "scale.pyx",
        "-o", folder / "scale.c", PYTHONPATH=str(Path(dlbridge.__file__).parents[1]))  # fmt: skip
    compile_c(folder / "scale.c", folder / f"scale{SUFFIX}")


def from_rust(folder):
    run(tool("rustc"), "--edition", "2021", "-O", "-D", "warnings", EXAMPLES / "rust_extension" / "scale.rs",
        "-o", folder / f"scale{SUFFIX}", DLBRIDGE_INCLUDE=include_folders()[0])  # fmt: skip


LANGUAGES = {"C": from_c, "Cython": from_cython, "Rust": from_rust}


@functools.cache
def build(language):
    """The folder of the module."""
    folder = build_folders.new(language)
    LANGUAGES[language](folder)
    return folder


@pytest.fixture(scope="module", params=list(LANGUAGES))
def folder(request):
    return build(request.param)


@pytest.fixture(scope="module")
def scale(folder):
    spec = importlib.util.spec_from_file_location("scale", folder / f"scale{SUFFIX}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _torch(a):
    return pytest.importorskip("torch", reason="PyTorch is not installed").from_numpy(a)


def _nd(a):
    return nd.asarray(a, device="cpu")


@pytest.mark.parametrize("make", [np.asarray, _torch, _nd, asdlpack], ids=["numpy", "torch", "nd", "Tensor"])
def test_an_array_of_any_framework_goes_in_and_comes_out(scale, make):
    a = np.arange(6, dtype="float32")
    given = make(a)
    before = sys.getrefcount(given)
    with nothing_lost():
        result = scale.scaled(given, 2)
        assert type(result) is type(given)
        assert np.asarray(result).tolist() == (2 * a).tolist()
        del result
        gc.collect()
    assert sys.getrefcount(given) == before
    assert np.asarray(scale.scaled(a[::-2], 3)).tolist() == [15, 9, 3]
    assert scale.scaled(a[:0], 3).shape == (0,)


def test_errors_name_the_function_and_the_argument(scale):
    with nothing_lost():
        for wrong, reason in (
            (np.zeros(3), "expected dtype float32, got (3,) [numpy.ndarray, float64"),
            (np.zeros((2, 2), "float32"), "expected rank 1, got (2, 2) [numpy.ndarray"),
        ):
            before = sys.getrefcount(wrong)
            with pytest.raises(TypeError) as error:
                scale.scaled(wrong, 1)
            assert str(error.value).startswith("scaled(): argument 'a': " + reason)
            assert "Hint: " in str(error.value)
            assert sys.getrefcount(wrong) == before
        with pytest.raises(dlbridge.ProtocolError, match=r"^scaled\(\): argument 'a': str has none of"):
            scale.scaled("abc", 1)
        with pytest.raises(BufferError, match=r"^scaled\(\): argument 'a': .*byte order"):
            scale.scaled(np.zeros(3, ">f4"), 1)
        gc.collect()


def test_errors_of_the_producers_own_code_are_left_alone(scale):
    class Broken:
        def __dlpack__(self, **_):
            raise ValueError("my own words")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(ValueError, match="^my own words$"):
        scale.scaled(Broken(), 1)


def test_the_module_says_at_import_that_dlbridge_is_missing(folder):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.modules['dlbridge'] = None\n"
        "try: import scale\nexcept ImportError as error: print('dlbridge' in str(error))"
    )
    assert run_python(code, folder).stdout == "True\n"
