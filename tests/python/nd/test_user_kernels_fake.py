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


def test_nothing_is_left(results):
    """Every case passed: no traceback keeps anything, so no tensor, export or copy may live."""
    if all(results[case] == "passed" for case in CASES):
        assert ast.literal_eval(results["live"]) == {"tensors": 0, "exports": 0, "copies": 0}
