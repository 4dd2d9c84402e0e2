"""shards() and assemble(): JAX's sharded arrays and PyTorch's DTensor, each in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from child_process import HANG_S

HERE = Path(__file__).parent


def run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0 and "passed" in done.stdout, f"{done.stdout}\n{done.stderr}"


def test_sharded_arrays_of_jax():
    pytest.importorskip("jax", reason="JAX makes the arrays")
    run(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "shards_of_jax.py")),
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
        JAX_PLATFORMS="cpu",
    )


def test_dtensors_of_pytorch():
    pytest.importorskip("torch.distributed.tensor", reason="PyTorch makes the arrays")
    run(str(HERE / "shards_of_torch.py"), OMP_NUM_THREADS="1")
