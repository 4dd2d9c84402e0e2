"""Heap allocations of one call: a freelist makes asdlpack() of a small array need none.

    python benchmarks/allocations.py

Needs glibc and a C compiler: a counter is preloaded under malloc, and Python's own small-object
allocator is switched off, so that nothing is served from a pool unseen. Exits 1 when a call
allocates more than it should.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from _peers import Environment  # noqa: E402
from _timing import Call  # noqa: E402

CALLS = 1000
WARM_UP_CALLS = 200
CHILD = "DLBRIDGE_ALLOCATIONS_COUNTER"


def _trips(e: Environment) -> Iterator[tuple[str, Call, int | None]]:
    """Label, call, and the most allocations it may make (None: shown, not judged)."""
    asdlpack = e.dlbridge.asdlpack
    data = bytearray(b"Hello, bytes!")
    yield "empty lambda", lambda: None, 0
    yield "negative control: object()", lambda: object(), None
    yield "asdlpack(bytearray)", lambda: asdlpack(data), 0
    yield "asdlpack(bytearray).__dlpack__()", lambda: asdlpack(data).__dlpack__(), 1  # the capsule
    if e.get("numpy") is not None:
        x = e.numpy.ones((3, 4), dtype="float32")
        yield "asdlpack(numpy)", lambda: asdlpack(x), 0
        yield "numpy.from_dlpack(numpy)", lambda: e.numpy.from_dlpack(x), None
    if e.get("numpy") is not None and e.get("torch") is not None:
        t = e.torch.ones(3, 4)
        yield "asdlpack(torch)", lambda: asdlpack(t), 0
        yield "torch.from_dlpack(torch)", lambda: e.torch.from_dlpack(t), None
        yield "convert(numpy, 'torch')", lambda: e.dlbridge.convert(x, "torch"), None
        yield "torch.from_dlpack(numpy)", lambda: e.torch.from_dlpack(x), None
    if e.get("tvm_ffi") is not None:
        yield "tvm_ffi.from_dlpack(numpy)", lambda: e.tvm_ffi.from_dlpack(x), None
    yield "memoryview(bytearray)", lambda: memoryview(data), None


def _count(counter: ctypes.CDLL, call: Call) -> float:
    for _ in range(WARM_UP_CALLS):
        call()

    def run(calls: int) -> int:  # the difference of two takes the harness itself out
        repeat = itertools.repeat(None, calls)
        before = counter.dlbridge_allocations()
        for _ in repeat:
            call()
        after: int = counter.dlbridge_allocations()
        return after - int(before)

    return float(run(CALLS) - run(0)) / CALLS


def child(library: str) -> int:
    """Runs under the preloaded counter."""
    counter = ctypes.CDLL(library)
    counter.dlbridge_allocations.restype = ctypes.c_long
    env = Environment()
    failed = 0
    print("| call | heap allocations | at most |\n| --- | ---: | ---: |")
    for label, call, most in _trips(env):
        allocations = _count(counter, call)
        # Half an allocation of slack: the interpreter may grow a table once in a thousand calls.
        verdict = "" if most is None else f"{most}" + ("" if allocations < most + 0.5 else " FAILED")
        failed += "FAILED" in verdict
        if label.startswith("negative control") and allocations < 0.5:
            raise SystemExit("the counter sees nothing: is this glibc?")
        print(f"| `{label}` | {allocations:.2f} | {verdict} |")
    return 1 if failed else 0


def main() -> int:
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SystemExit("needs a C compiler (CC, gcc)")
    with tempfile.TemporaryDirectory(prefix="dlbridge-malloc-") as folder:
        library = str(pathlib.Path(folder) / "count.so")
        source = str(HERE / "malloc_count" / "count.c")
        flags = ["-O2", "-shared", "-fPIC", "-fno-builtin", "-ftls-model=initial-exec"]
        subprocess.run([*compiler.split(), *flags, source, "-o", library], check=True)
        environment = {**os.environ, "PYTHONMALLOC": "malloc", "LD_PRELOAD": library, CHILD: library}
        done = subprocess.run([sys.executable, __file__], env=environment, check=False)
        return int(done.returncode)


if __name__ == "__main__":
    sys.exit(child(os.environ[CHILD]) if CHILD in os.environ else main())
