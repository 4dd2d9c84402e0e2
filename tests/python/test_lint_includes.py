"""The lint of include direction finds each planted violation, and passes what is allowed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = ROOT / "tools" / "lint_includes.py"


def run_lint(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(LINT), str(root)], capture_output=True, text=True, check=False)


def plant(root: Path, path: str, line: str) -> Path:
    (root / "bridge").mkdir(exist_ok=True)
    source = root / path
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(f"// first line\n{line}\n", encoding="utf-8")
    return source


VIOLATIONS = [
    ("bridge/include/dlbridge/a.h", '#include "protocols/buffer/format.h"', "protocols"),
    ("bridge/include/dlbridge/a.h", '#include "ndarray/core/array.h"', "ndarray"),
    ("bridge/include/dlbridge/a.h", '#include "python/src/bridge.h"', "python"),
    ("bridge/include/dlbridge/a.h", "#include <Python.h>", "without Python"),
    ("bridge/include/dlbridge/a.h", "#include <pybind11/pybind11.h>", "without Python"),
    ("bridge/include/dlbridge/a.h", "#include <cuda_runtime.h>", "without CUDA"),
    ("bridge/include/dlbridge/a.h", "#  include <cuda.h>", "without CUDA"),
    ("bridge/include/dlbridge/pybind11.h", "#include <cuda.h>", "without CUDA"),
    ("bridge/include/dlbridge/a.h", '#include "tests/cpp/fixtures.h"', "outside the layers"),
    ("protocols/buffer/a.cpp", '#include "ndarray/core/array.h"', "ndarray"),
    ("protocols/buffer/a.cpp", '#include "python/src/bridge.h"', "python"),
    ("protocols/buffer/a.cpp", "#include <cuda.h>", "without CUDA"),
    ("protocols/buffer/a.cpp", '#include "protocols/dlpack/dlpack.h"', "siblings"),
    ("protocols/common/a.h", '#include "protocols/dlpack/dlpack.h"', "siblings"),
    ("protocols/buffer/a.cpp", '#include "frameworks/table.h"', "frameworks"),
    ("frameworks/a.cpp", '#include "python/src/bridge.h"', "python"),
    ("frameworks/a.cpp", '#include "ndarray/core/array.h"', "ndarray"),
    ("frameworks/a.cpp", "#include <cuda.h>", "without CUDA"),
    ("ndarray/core/a.cpp", '#include "frameworks/table.h"', "frameworks"),
    ("bridge/include/dlbridge/a.h", '#include "frameworks/table.h"', "frameworks"),
    ("ndarray/core/a.cu", '#include "protocols/buffer/format.h"', "protocols"),
    ("ndarray/core/a.cpp", '#include "python/src/bridge.h"', "python"),
    ("ndarray/core/a.cpp", "#include <Python.h>", "without Python"),
    ("ndarray/kernels/host/a.cpp", '#include "ndarray/core/array.h"', "kernels only"),
    ("ndarray/kernels/a.h", '#include "ndarray/runtime/storage.h"', "kernels only"),
    ("ndarray/runtime/a.cpp", '#include "ndarray/core/array.h"', "runtime only"),
    ("ndarray/runtime/a.cpp", '#include "ndarray/kernels/types.h"', "runtime only"),
]


VIOLATION_IDS = [f"{path}<-{line.split()[-1]}" for path, line, _ in VIOLATIONS]


@pytest.mark.parametrize(("path", "line", "says"), VIOLATIONS, ids=VIOLATION_IDS)
def test_a_planted_violation_is_found(tmp_path: Path, path: str, line: str, says: str) -> None:
    plant(tmp_path, path, line)
    result = run_lint(tmp_path)
    assert result.returncode == 1, result
    assert f"{path}:2: " in result.stdout
    assert says in result.stdout


def test_a_relative_path_does_not_hide_a_violation(tmp_path: Path) -> None:
    plant(tmp_path, "ndarray/core/array.h", "")
    plant(tmp_path, "protocols/buffer/a.cpp", '#include "../../ndarray/core/array.h"')
    result = run_lint(tmp_path)
    assert result.returncode == 1
    assert "(ndarray)" in result.stdout


ALLOWED = [
    ("bridge/include/dlbridge/a.h", '#include "dlbridge/dtype.h"'),
    ("bridge/include/dlbridge/a.h", "#include <dlpack/dlpack.h>"),
    ("bridge/include/dlbridge/pybind11.h", "#include <pybind11/pybind11.h>"),
    ("bridge/include/dlbridge/a.h", '#include "dlbridge/cuda_driver.h"'),
    ("bridge/include/dlbridge/a.h", '// #include "protocols/buffer/format.h"'),
    ("protocols/buffer/a.cpp", "#include <Python.h>"),
    ("protocols/buffer/a.cpp", '#include "protocols/common/python.h"'),
    ("protocols/buffer/a.cpp", '#include "protocols/buffer/buffer.h"'),
    ("frameworks/a.cpp", '#include "protocols/dlpack/dlpack.h"'),
    ("frameworks/a.cpp", '#include "frameworks/table.h"'),
    ("python/src/a.cpp", '#include "frameworks/table.h"'),
    ("protocols/buffer/a.cpp", '#include "dlbridge/tensor.h"'),
    ("ndarray/core/a.cu", "#include <cuda_runtime.h>"),
    ("ndarray/core/a.cu", '#include "dlbridge/tensor.h"'),
    ("ndarray/core/a.cpp", '#include "ndarray/kernels/api.h"'),
    ("ndarray/core/a.cpp", '#include "ndarray/runtime/storage.h"'),
    ("ndarray/kernels/cuda/a.cu", '#include "ndarray/kernels/api.h"'),
    ("python/src/a.cpp", '#include "protocols/buffer/buffer.h"'),
    ("python/src/a.cpp", '#include "ndarray/core/array.h"'),
]


@pytest.mark.parametrize(("path", "line"), ALLOWED, ids=[f"{path}<-{line.split()[-1]}" for path, line in ALLOWED])
def test_what_is_allowed_passes(tmp_path: Path, path: str, line: str) -> None:
    plant(tmp_path, path, line)
    result = run_lint(tmp_path)
    assert result.returncode == 0, result.stdout


def test_this_repository_passes() -> None:
    result = run_lint(ROOT)
    assert result.returncode == 0, result.stdout


def test_a_folder_that_is_no_repository_is_an_error_and_not_a_pass(tmp_path: Path) -> None:
    assert run_lint(tmp_path).returncode == 2
