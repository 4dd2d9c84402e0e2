"""Deleters on any thread, with an exception pending, and after the interpreter; many threads on one capsule."""

import ctypes
import gc
import sys
import threading

import pytest
from child_process import run_python
from dlbridge import _core, asdlpack
from lifecycle_support import Consumed, Exporter, compile_shared, nothing_lost

BOTH = pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])


@pytest.fixture(autouse=True)
def _leak_check():
    with nothing_lost():
        yield


# ---- deleters on any thread, with an exception pending


@pytest.mark.parametrize("max_version", [(1, 0), None], ids=["versioned", "legacy"])
@pytest.mark.parametrize("copy", [None, True], ids=["shared", "copied"])
def test_deleter_on_a_foreign_thread_without_the_gil(max_version, copy):
    data = bytearray(64)
    for _ in range(50):
        Consumed(asdlpack(data).__dlpack__(max_version=max_version, copy=copy)).delete_on_foreign_thread()
    data.append(0)  # nothing holds it


def test_deleters_on_many_foreign_threads_while_python_runs():
    data = bytearray(64)
    threads = 8
    held = [[Consumed(asdlpack(data).__dlpack__(max_version=(1, 0))) for _ in range(200)] for _ in range(threads)]
    libc = ctypes.CDLL(None)
    workers = []
    for batch in held:
        worker = threading.Thread(target=lambda batch=batch: [one.delete() for one in batch])
        workers.append(worker)
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        asdlpack(asdlpack(data).__dlpack__(max_version=(1, 0)))
        libc.sched_yield()
    for worker in workers:
        worker.join()
    assert _core.live_counts()["exports"] == 0
    data.append(0)


@pytest.fixture(scope="module")
def pending_library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pending")
    source = folder / "pending.c"
    source.write_text(
        """
void PyErr_SetNone(void*);
void* raise_and_delete(void* error, void* managed, void (*deleter)(void*)) {
  PyErr_SetNone(error);
  deleter(managed);
  return 0;
}
"""
    )
    library = ctypes.PyDLL(compile_shared(source, folder, "libpending.so"))
    library.raise_and_delete.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p]
    library.raise_and_delete.restype = ctypes.c_void_p
    return library


@pytest.mark.parametrize("max_version", [(1, 0), None], ids=["versioned", "legacy"])
def test_a_pending_exception_survives_our_deleter(max_version, pending_library):
    class Source:  # its finaliser runs Python code inside the deleter
        def __init__(self):
            self.memory = bytearray(4)
            self.__array_interface__ = {"shape": (4,), "typestr": "|u1", "version": 3, "data": self.memory}

        def __del__(self):
            try:
                raise RuntimeError("inside the finaliser")
            except RuntimeError:
                finalised.append(sys.exc_info()[0])

    finalised = []
    held = Consumed(asdlpack(Source()).__dlpack__(max_version=max_version))
    with pytest.raises(KeyError):
        pending_library.raise_and_delete(KeyError, held.address, held.deleter)
    assert finalised == [RuntimeError]


def test_a_pending_exception_survives_a_foreign_deleter():
    seen = []

    def run_python():
        try:
            raise RuntimeError("inside the deleter")
        except RuntimeError:
            seen.append(True)

    exporter = Exporter(on_delete=run_python)
    tensor = asdlpack(exporter)

    def raise_with_the_last_reference_in_a_frame():
        local = [tensor_box.pop()]
        local.append(local)  # so that only the frame's teardown frees it
        raise KeyError("pending")

    tensor_box = [tensor]
    del tensor
    with pytest.raises(KeyError, match="pending"):
        raise_with_the_last_reference_in_a_frame()
    gc.collect()
    assert seen == [True]
    exporter.assert_all_deleted_once()


def test_an_error_of_the_import_survives_the_deleter():
    exporter = Exporter(on_delete=lambda: [].clear() or int("7"), code=99)
    with pytest.raises(BufferError, match="dtype"):
        asdlpack(exporter)
    exporter.assert_all_deleted_once()


# ---- after the interpreter; subinterpreters

AT_EXIT = """
#include <stdio.h>
typedef void (*deleter)(void*);
static void* held[4];
static deleter deleters[4];
static int count;
void hold(void* managed, void* run) { held[count] = managed; deleters[count++] = (deleter)run; }
__attribute__((destructor)) static void drop(void) {
  for (int i = 0; i < count; ++i) deleters[i](held[i]);
  if (count > 0) { printf("dropped %d\\n", count); fflush(stdout); }
}
"""

HOLD_UNTIL_EXIT = """
import ctypes, sys
from dlbridge import asdlpack
from lifecycle_support import Consumed
library = ctypes.CDLL(sys.argv[1])
for max_version in ((1, 0), None):
    for copy in (None, True):
        held = Consumed(asdlpack(bytearray(100)).__dlpack__(max_version=max_version, copy=copy))
        library.hold(ctypes.c_void_p(held.address), ctypes.c_void_p(held.deleter))
"""


@pytest.fixture(scope="module")
def at_exit_library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("at_exit")
    source = folder / "at_exit.c"
    source.write_text(AT_EXIT)
    return compile_shared(source, folder, "libat_exit.so")


def test_deleter_after_the_interpreter_is_gone(at_exit_library):
    assert run_python(HOLD_UNTIL_EXIT, at_exit_library).stdout == "dropped 4\n"


def test_deleter_on_a_thread_that_outlives_the_interpreter(at_exit_library, tmp_path):
    source = tmp_path / "late.c"
    source.write_text(
        """
#include <pthread.h>
#include <unistd.h>
typedef void (*deleter)(void*);
static void* managed;
static deleter run;
static volatile int finalised;
static pthread_t thread;
static void* work(void* unused) {
  while (!finalised) usleep(1000);
  run(managed);
  return unused;
}
void start(void* m, void* d) { managed = m; run = (deleter)d; pthread_create(&thread, 0, work, 0); }
__attribute__((destructor)) static void stop(void) { finalised = 1; pthread_join(thread, 0); write(1, "joined", 6); }
"""
    )
    library = compile_shared(source, tmp_path, "liblate.so")
    code = """
import ctypes, sys
from dlbridge import asdlpack
from lifecycle_support import Consumed
held = Consumed(asdlpack(bytearray(100)).__dlpack__(max_version=(1, 0)))
ctypes.CDLL(sys.argv[1]).start(ctypes.c_void_p(held.address), ctypes.c_void_p(held.deleter))
"""
    assert run_python(code, library).stdout == "joined"


def test_tensors_that_live_until_finalisation_do_no_harm():
    code = """
import atexit, sys, threading
from dlbridge import asdlpack
from lifecycle_support import Exporter, Consumed
exporter = Exporter()
tensor = asdlpack(exporter)
capsule = asdlpack(bytearray(8)).__dlpack__(max_version=(1, 0))
cycle = [asdlpack(bytearray(8))]
cycle.append(cycle)
sys.dlbridge_view = memoryview(asdlpack(bytearray(8)))
class Late:
    def __init__(self): self.tensor = asdlpack(bytearray(8)); self.make = asdlpack
    def __del__(self): self.make(bytearray(3)).shape
late = Late()
late.self = late
threading.local().tensor = asdlpack(bytearray(8))
atexit.register(lambda t=asdlpack(bytearray(8)): memoryview(t).tolist())
print("end")
"""
    assert run_python(code).stdout == "end\n"


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
if sys.argv[1] == "after":
    import dlbridge
    tensor = dlbridge.asdlpack(bytearray(8))
code = '''
try:
    import dlbridge
except ImportError as error:
    assert "subinterpreter" in str(error), error
else:
    raise SystemError("the import was not refused")
'''
for _ in range(2):
    one = interpreters.create()
    result = interpreters.run_string(one, code)
    assert result is None, result
    interpreters.destroy(one)
import dlbridge
data = bytearray(8)
capsule = dlbridge.asdlpack(data).__dlpack__()
assert memoryview(dlbridge.asdlpack(capsule)).tolist() == [0] * 8
del capsule
data.append(1)
print("end")
"""


@pytest.mark.parametrize("order", ["before", "after"])
def test_import_in_a_subinterpreter_is_refused_and_the_main_one_goes_on(order):
    pytest.importorskip(
        "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters",
        reason="this Python has no subinterpreters from Python code",
    )
    assert run_python(SUBINTERPRETER, order).stdout == "end\n"


# ---- threads


@BOTH
def test_many_threads_one_capsule_one_winner(legacy):
    threads = 8
    for _ in range(8):
        exporter = Exporter(legacy=legacy)
        capsule = exporter.capsule()
        barrier = threading.Barrier(threads)
        won, lost = [], []

        def consume(capsule=capsule, barrier=barrier, won=won, lost=lost):
            barrier.wait()
            try:
                won.append(asdlpack(capsule))
            except ValueError as error:
                lost.append(str(error))

        workers = [threading.Thread(target=consume) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(won) == 1
        assert len(lost) == threads - 1
        assert all("already consumed" in text for text in lost)
        assert memoryview(won[0]).tolist() == [[0, 1, 2], [3, 4, 5]]
        del capsule, consume
        won.clear()
        exporter.assert_all_deleted_once()


def test_threads_export_and_import_one_tensor():
    tensor = asdlpack(bytearray(range(64)))
    failures = []

    def work():
        for i in range(300):
            version = (1, 0) if i % 2 else None
            if memoryview(asdlpack(tensor.__dlpack__(max_version=version, copy=i % 3 == 0 or None)))[63] != 63:
                failures.append(i)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(switch)
    assert failures == []
