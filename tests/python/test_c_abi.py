"""The table that extension modules call: those of its first version run with today's, and those that want a later one
than is installed are refused in words."""

import gc
import importlib.util
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from caster_support import cxx_compiler, include_folders
from child_process import run_python
from dlbridge import asdlpack
from lifecycle_support import nothing_lost
from test_c_extension import SUFFIX, compile_c

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

SOURCES = Path(__file__).parents[1] / "c_abi"


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    path = tmp_path_factory.mktemp("c_abi") / f"built_for_1_0{SUFFIX}"
    compile_c(SOURCES / "built_for_1_0.c", path, "-Wall", "-Wextra", "-Wconversion", "-Werror")
    spec = importlib.util.spec_from_file_location("built_for_1_0", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_extension_of_the_first_version_loads_with_todays(first):
    major, minor, size = first.version()
    assert (major, minor) >= (1, 3) and size >= 16 + 14 * 8


def test_each_function_of_the_first_version_does_what_it_did(first):
    a = np.arange(6, dtype="float32").reshape(2, 3)
    with nothing_lost():
        assert first.described(a) == (2, False, (2, 3), 15.0, "numpy.ndarray")
        assert first.described(a[::-1, ::2].T)[1:4] == (False, (2, 2), 10.0)
        frozen = a.copy()
        frozen.flags.writeable = False
        assert first.described(asdlpack(frozen))[1:] == (True, (2, 3), 15.0, "dlbridge.HostTensor")
        with pytest.raises(TypeError, match="a matrix of float32 is wanted"):
            first.described(np.zeros(3))
        with pytest.raises(TypeError, match="str has none of"):
            first.described("abc")

        adapted = np.asarray(first.as_float64(a))
        assert adapted.dtype == "float64" and adapted.flags.f_contiguous and adapted.tolist() == a.tolist()
        assert np.asarray(first.three("")).tolist() == [0, 1, 2]
        array = first.three("numpy")
        assert type(array) is np.ndarray and array.tolist() == [0, 1, 2]
        assert first.stream(None) == (0, 0, "") and first.stream(2) == (2, 0, "")
        with pytest.raises(TypeError, match="stream"):
            first.stream("abc")
        assert isinstance(first.current_stream(), int)
        del adapted, array
        gc.collect()


# What would be the header of a later version: its number, and one function more.
LATER = {
    "dlbridge.h": (
        r"#define DLBRIDGE_C_MINOR \d+",
        "#define DLBRIDGE_C_MINOR 99",
        "} dlbridge_table;",
        "  void (*later)(void);\n} dlbridge_table;",
    ),
    "dlbridge/c_api.h": (
        r"kMinor = \d+;",
        "kMinor = 99;",
        "\n};\n\n}  // namespace dlbridge::c_api",
        "\n  void (*later)();\n};\n\n}  // namespace dlbridge::c_api",
    ),
}
MODULES = {
    "C": ("c", "#include <dlbridge.h>\nPyMODINIT_FUNC PyInit_later(void) { dlbridge_api(); return NULL; }\n"),
    "C++": (
        "cpp",
        "#include <dlbridge/arg.h>\nPyMODINIT_FUNC PyInit_later() { dlbridge::detail::fetch_api(); return nullptr; }\n",
    ),
}


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("change", ["minor", "major"])
@pytest.mark.parametrize("language", MODULES)
def test_an_extension_of_another_version_is_refused_in_words(language, change, tmp_path):
    headers = tmp_path / "include"
    for folder in include_folders():
        shutil.copytree(folder, headers, dirs_exist_ok=True)
    for name, (version, number, end, more) in LATER.items():
        text = (headers / name).read_text("utf-8")
        if change == "major":
            version, number = (part.replace("inor", "ajor").replace("INOR", "AJOR") for part in (version, number))
        else:
            assert text.count(end) == 1
            text = text.replace(end, more)
        text, found = re.subn(version, number, text)
        assert found == 1
        (headers / name).write_text(text, "utf-8")
    ending, code = MODULES[language]
    source = tmp_path / f"later.{ending}"
    source.write_text(code, "utf-8")
    compiler = [shutil.which("cc") or pytest.skip("no C compiler"), "-std=c99"] if ending == "c" else [cxx_compiler()]
    command = [*compiler, *(["-std=c++20"] if ending == "cpp" else []), "-shared", "-fPIC", f"-I{headers}",
               "-isystem", sysconfig.get_paths()["include"], source, "-o", tmp_path / f"later{SUFFIX}"]  # fmt: skip
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    code = "import sys; sys.path.insert(0, sys.argv[1])\ntry: import later\nexcept ImportError as error: print(error)"
    wanted = r"1\.99" if change == "minor" else r"99\.\d+"
    assert re.fullmatch(
        rf"this extension module was compiled for version {wanted} of dlbridge's C ABI, and the installed dlbridge has "
        r"1\.\d+\. Build the module again, or install a matching dlbridge\n",
        run_python(code, tmp_path).stdout,
    )
