"""User kernels on machines with no GPU: tests/cuda/user_kernels/ in one interpreter, on the fake driver of
tests/cuda/fake_user_kernels.c and with a host compiler in NVRTC's place. The numbers are those of the kernels."""

import ast
import os
from pathlib import Path

import pytest
from child_process import cases_of, fake_driver, run_python
from lifecycle_support import KERNEL_LIBRARY, compile_shared, link_package

pytest.importorskip("numpy", reason="the oracle of the kernels")

CUDA_TESTS = Path(__file__).parents[2] / "cuda"
SCRIPT = CUDA_TESTS / "user_kernels" / "run.py"
CASES = cases_of(*sorted(SCRIPT.parent.glob("*_cases.py")))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the script printed for each case."""
    folder = tmp_path_factory.mktemp("user_kernels")
    compile_shared(CUDA_TESTS / "fake_user_kernels.c", folder, "libcuda.so.1")
    (link_package(folder) / KERNEL_LIBRARY).touch()
    search = [str(folder), str(CUDA_TESTS), str(Path(__file__).parents[1])]
    environment = {
        **fake_driver(folder),
        "PYTHONPATH": os.pathsep.join(search),
        "DLBRIDGE_CACHE_DIR": str(folder / "cache"),
        "TMPDIR": str(folder),
        "FAKE_NVRTC_CALLS": str(folder / "calls"),
    }
    done = run_python(SCRIPT, **environment)
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert done.stdout.endswith("done\n"), done.stdout[-2000:] + done.stderr[-4000:]
    return lines | {"calls": str(folder / "calls")}


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("case", CASES, ids=[name.removeprefix("test_") for name in CASES])
def test_user_kernels(case, results):
    outcome = results[case]
    assert outcome == "passed", ast.literal_eval(outcome.removeprefix("failed ")) if " " in outcome else outcome


@pytest.mark.no_sanitizer
def test_nvrtc_compiles_what_the_host_compiler_compiles(results):
    done = run_python(CUDA_TESTS / "real_nvrtc.py", results["calls"])
    outcome, what = done.stdout.split(maxsplit=1)
    if outcome == "none":
        pytest.skip(what)
    assert outcome == "agrees" and int(what) > 50


# Of the C interface, all that is looked for; what is called while it is opened says something.
SILENT = """CreateProgram DestroyProgram CompileProgram GetProgramLogSize GetProgramLog GetCUBINSize GetCUBIN GetPTXSize
GetPTX AddNameExpression GetLoweredName"""
FAKE_NVRTC = "".join(f"int nvrtc{name}(void) {{ return 0; }}\n" for name in SILENT.split()) + (
    "int nvrtcVersion(int *major, int *minor) { *major = 11; *minor = 99; return 0; }\n"
    "int nvrtcGetNumSupportedArchs(int *count) { *count = 1; return 0; }\n"
    "int nvrtcGetSupportedArchs(int *numbers) { *numbers = 90; return 0; }\n"
)
OPEN = """
import ctypes, sys
from dlbridge.nd import _native
path, builtins = sys.argv[1:]
try:
    ctypes.CDLL(builtins)
except OSError:
    assert _native.nvrtc_open([path])["version"] == (11, 99)
    ctypes.CDLL(builtins)
    print("found")
"""


def test_what_nvrtc_opens_by_its_name_is_found_beside_it(tmp_path):
    """As in a wheel, whose libraries have no path of their own."""
    builtins = "libnvrtc-builtins.so.11.99"
    for name, text in (("builtins.c", "int builtins;\n"), ("nvrtc.c", FAKE_NVRTC)):
        (tmp_path / name).write_text(text)
    compile_shared(tmp_path / "builtins.c", tmp_path, builtins, f"-Wl,-soname,{builtins}")
    path = compile_shared(tmp_path / "nvrtc.c", tmp_path, "libnvrtc.so.11.2")
    assert run_python(OPEN, path, builtins).stdout == "found\n"


def test_nothing_is_left(results):
    """Every case passed: no traceback keeps anything, so no tensor, export or copy may live."""
    if all(results[case] == "passed" for case in CASES):
        assert ast.literal_eval(results["live"]) == {"tensors": 0, "exports": 0, "copies": 0}
