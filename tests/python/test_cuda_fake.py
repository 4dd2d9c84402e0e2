"""The CUDA side on machines with no GPU: the cases of tests/cuda/fake_cases_*.py, each in an interpreter of its own
that finds tests/cuda/fake_libcuda.c as its driver."""

import ast
from pathlib import Path

import pytest
from child_process import fake_driver, run_python
from lifecycle_support import compile_shared

CUDA_TESTS = Path(__file__).parent.parent / "cuda"


def _read_scripts():
    """The cases as (script, name), and their environments, without running the scripts: they need the fake."""
    cases, environment = [], {}
    for script in sorted(CUDA_TESTS.glob("fake_cases_*.py")):
        for node in ast.parse(script.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                cases.append((script, node.name))
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ENVIRONMENT":
                environment |= ast.literal_eval(node.value)
    return cases, environment


CASES, ENVIRONMENT = _read_scripts()


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """The folder that holds the fake libcuda.so.1."""
    folder = tmp_path_factory.mktemp("fake_cuda")
    compile_shared(CUDA_TESTS / "fake_libcuda.c", folder, "libcuda.so.1")
    return str(folder)


def test_every_environment_belongs_to_a_case():
    names = [name for _, name in CASES]
    assert set(ENVIRONMENT) <= set(names)
    assert len(set(names)) == len(names) > 50


@pytest.mark.parametrize(("script", "case"), CASES, ids=[name.removeprefix("test_") for _, name in CASES])
def test_cuda(script, case, driver):
    for name, module, reason in (("numpy", "numpy", "the case is about NumPy"), ("ray_itself", "ray", "Ray is tested")):
        if name in case:
            pytest.importorskip(module, reason=reason)
    done = run_python(script, case, **{**fake_driver(driver), **ENVIRONMENT.get(case, {})})
    assert done.stdout == "passed\n"
