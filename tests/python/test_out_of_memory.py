"""The N-th allocation fails, for all N: MemoryError or success, nothing lost, no crash."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from child_process import run_python
from dlbridge import _core, asdlpack
from lifecycle_support import compile_shared, nothing_lost

HERE = Path(__file__).parent
CHILD = HERE / "out_of_memory_child.py"


@pytest.mark.no_sanitizer  # the interpreter's own leaks under failing allocations
def test_every_python_allocation_may_fail():
    pytest.importorskip("_testcapi", reason="this Python has no _testcapi, which makes allocations fail")
    done = run_python(CHILD, "python")
    assert int(done.stdout) > 100, done.stderr


@pytest.mark.no_sanitizer  # both replace operator new
def test_every_cpp_allocation_may_fail(tmp_path):
    library = compile_shared(HERE / "fail_new.cpp", tmp_path, "libfail_new.so")
    asked = subprocess.run(["nm", "-D", "--undefined-only", _core.__file__], capture_output=True, text=True, check=True)
    if not re.search(r" U _Znwm\b", asked.stdout):
        pytest.skip("operator new lies in the module: it is linked with libstdc++.a")
    preload = os.pathsep.join(filter(None, [library, os.environ.get("LD_PRELOAD", "")]))
    done = run_python(CHILD, "new", LD_PRELOAD=preload)
    assert int(done.stdout) > 10, done.stderr


@pytest.mark.parametrize(
    ("shape", "error"),
    [((1 << 46, 4), MemoryError), ((1 << 31, 1 << 31), OverflowError)],
    ids=["more than there is", "more than 63 bits"],
)
def test_a_copy_larger_than_memory_is_an_error(shape, error):
    numpy = pytest.importorskip("numpy", reason="NumPy makes the broadcast array")
    huge = numpy.broadcast_to(numpy.float64(1), shape) if error is MemoryError else None
    with nothing_lost():
        if huge is None:
            interface = {"shape": shape, "typestr": "<f8", "version": 3, "data": (64, False), "strides": (0, 0)}
            huge = type("Huge", (), {"__array_interface__": interface})()
        with pytest.raises(error):
            asdlpack(huge, copy=True)
    assert _core.live_counts()["copies"] == 0
