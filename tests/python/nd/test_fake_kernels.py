"""The ndarray on machines with no GPU, with kernels: the cases of tests/cuda/fake_kernels_cases.py, each in an
interpreter of its own, on the driver of fake_libcuda.c and with the kernels of fake_kernels.cpp."""

import os
from pathlib import Path

import caster_support
import pytest
from child_process import cases_of, fake_driver, run_python
from lifecycle_support import KERNEL_LIBRARY, compile_shared, link_package

pytest.importorskip("numpy", reason="what results are compared with")

ROOT = Path(__file__).parents[3]
CUDA_TESTS = ROOT / "tests" / "cuda"
SCRIPT = CUDA_TESTS / "fake_kernels_cases.py"
CASES = cases_of(SCRIPT)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake_kernels")
    compile_shared(CUDA_TESTS / "fake_libcuda.c", folder, "libcuda.so.1")
    includes = [f"-I{path}" for path in (ROOT, *caster_support.include_folders())]
    compile_shared(CUDA_TESTS / "fake_kernels.cpp", link_package(folder), KERNEL_LIBRARY, "-std=c++20", *includes)
    search = [folder, ROOT / "tests" / "python", CUDA_TESTS]
    return {
        **fake_driver(folder),
        "PYTHONPATH": os.pathsep.join(map(str, search)),
    }


@pytest.mark.parametrize("case", CASES, ids=[name.removeprefix("test_") for name in CASES])
def test_fake_kernels(case, environment):
    assert run_python(SCRIPT, case, **environment).stdout == "passed\n"
