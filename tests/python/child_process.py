"""A test in an interpreter of its own: what a crash, an import or the environment would spoil here."""

import ast
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HANG_S = 300  # what takes longer is a hang: frameworks import for minutes where dozens of processes share a GPU


def run_python(code, *arguments, status=0, timeout=HANG_S, cwd=None, **environment):
    """Runs `code` (or a script's path) in a new interpreter, which finds the helpers of the tests, too; the finished
    process, whose exit status must be `status`. An environment variable of None is left out."""
    head = [code] if str(code).endswith(".py") else ["-c", code]
    paths = [str(HERE), str(HERE.parent / "cuda"), os.environ.get("PYTHONPATH", "")]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *map(str, head), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env={name: value for name, value in variables.items() if value is not None},
        check=False,
    )
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@contextlib.contextmanager
def few_connections():
    """Processes that start within it take the driver's 8 connections to the GPU, not the 32 of conftest.py: with 32 an
    H100 of 80 GB gave 14 processes a context and told the next "out of memory", nine tenths empty; with 8, 62."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
        yield


def fake_driver(folder):
    """The environment of a process whose driver is the libcuda.so.1 in a folder, with all its GPUs."""
    paths = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)), "CUDA_VISIBLE_DEVICES": None}


def cases_of(*scripts):
    """The names of the tests in scripts that can be imported in a process of their own only."""
    bodies = [node for script in scripts for node in ast.parse(Path(script).read_text()).body]
    return [node.name for node in bodies if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
