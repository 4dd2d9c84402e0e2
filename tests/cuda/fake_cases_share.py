"""dlbridge.share() of CUDA arrays without a GPU: the fake driver gives its memory and events to other processes.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
import weakref
from multiprocessing.reduction import ForkingPickler

import dlbridge.multiprocessing
from dlbridge import CudaError, DataError, convert, share
from dlbridge._sharing import allocations, loans
from dlbridge._sharing import handle as handles
from dlbridge._sharing.layouts import Place
from dlbridge.nd import cuda
from fake_cuda import *

os.environ["FAKE_CUDA_IPC"] = "1"  # the driver reads it when memory is asked for

READER = """
import os, pickle, sys
from dlbridge import asdlpack, share
from fake_cuda import *
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer

def get():
    return pickle.load(stdin)

def put(x):
    pickle.dump(x, stdout)
    stdout.flush()
"""


class Reader:
    """Another process, which runs `code` and talks in pickles."""

    def __init__(self, code, **environment):
        command = [sys.executable, "-X", "faulthandler", "-c", READER + code]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}
        )

    def put(self, x):
        pickle.dump(x, self.process.stdin)
        self.process.stdin.flush()

    def put_message(self, x):
        """As a queue of multiprocessing does."""
        self.process.stdin.write(ForkingPickler.dumps(x))
        self.process.stdin.flush()

    def get(self):
        return pickle.load(self.process.stdout)

    def ended(self, status=0):
        self.process.stdin.close()
        assert self.process.wait(60) == status
        self.process.stdout.close()

    def killed(self):
        self.process.kill()
        self.ended(-signal.SIGKILL)


class Pooled:
    """int32 memory in an allocation of the driver's, as caching allocators cut it: `offset` bytes from its begin."""

    def __init__(self, count=6, offset=512, device=0):
        self.count, self.device, self.bytes = count, device, 4 * count
        with cuda.Device(device):
            self.block = cuda.alloc(offset + self.bytes)
        self.address = self.block.ptr + offset
        ctypes.memmove(self.address, (ctypes.c_int32 * count)(*range(count)), self.bytes)

    set, fill = Memory.set, Memory.fill


def soon(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it did not come to pass"
        gc.collect()
        time.sleep(0.001)


def now(x):
    return read_now(x.data_ptr, x.size)


def test_share_lends_memory_of_the_driver_without_a_copy():
    whole = Pooled(60)
    views = [CaiArray(whole, (2, 3)), CaiArray(whole, (3,), strides=(-8,), data=(whole.address + 40, True))]
    with share(views) as handle:
        assert not handle.copied
        reader = Reader("""
x, y = get().open("dlbridge")
put((values(x, 6), values(y, 3), x.readonly, y.readonly, str(x.device), calls("ipc_open")))
get()
lib.fake_cuda_fill(x.data_ptr, 7, 24, 0, 1)
lib.fake_cuda_synchronize()
put(None)
""")
        reader.put(handle)
        *found, opened = reader.get()
        assert found == [list(range(6)), [10, 8, 6], False, True, "cuda:0"]
        assert len(opened) == 1
        reader.put(None)
        reader.get()
        reader.ended()
    assert read_now(whole.address, 7) == [0x07070707] * 6 + [6]


def test_share_copies_other_memory_once_and_says_so():
    memory = Memory(60)  # of a pool of the driver's: it has no handle
    for array, expected in (
        (CaiArray(memory, (2, 3)), list(range(6))),
        (CaiArray(memory, (2, 3), strides=(40, 8)), [0, 2, 4, 10, 12, 14]),
    ):
        handle = share(array)
        assert handle.copied
        lib.fake_cuda_synchronize()
        memory_before = read_now(memory.address, 6)
        reader = Reader("x = get().open('dlbridge'); put(values(x, 6))")
        reader.put(handle)
        found = reader.get()
        assert found == expected, (found, log()[-30:])
        reader.ended()
        assert values(handle.open(), 6) == expected
        assert read_now(memory.address, 6) == memory_before


def test_share_makes_the_reader_wait_behind_the_writer_and_the_host_not():
    stream, memory = new_stream(), Pooled()
    forget()
    handle = share(slow_array(stream, memory))
    nothing_blocks()
    reader = Reader("""
x = get().open("dlbridge")
nothing_blocks()
put((read_now(x.data_ptr, 6), x.__cuda_array_interface__["stream"] is not None))
put(values(x, 6))
""")
    reader.put(handle)
    assert reader.get() == ([OLD] * 6, True)
    here = handle.open()
    assert now(here) == [OLD] * 6
    lib.cuStreamSynchronize(stream)
    lib.fake_cuda_synchronize()  # the queue that tells the others
    assert reader.get() == [NEW] * 6
    assert values(here, 6) == [NEW] * 6
    reader.ended()


def test_share_names_no_stream_where_the_data_is_ready():
    handle = share(CaiArray(Pooled()))
    assert calls("event_create") == []
    assert handle.open("dlbridge").__cuda_array_interface__["stream"] is None


def test_share_keeps_arrays_until_the_last_reader_is_gone_however_it_went():
    for end in (Reader.ended, Reader.killed):
        memory = Pooled()
        alive = weakref.ref(memory)
        handle = share(CaiArray(memory))
        readers = [Reader("x = get().open('dlbridge'); put(None); get()") for _ in range(2)]
        for reader in readers:
            reader.put(handle)
            reader.get()
        del memory, handle
        gc.collect()
        for reader in readers:
            assert alive() is not None
            if end is Reader.ended:
                reader.put(None)
            end(reader)
        soon(lambda alive=alive: alive() is None)
        assert loans._keeper.kept == {}


def test_share_keeps_nothing_that_nobody_has_opened():
    memory = Pooled()
    alive = weakref.ref(memory)
    handle = share(CaiArray(memory))
    reference = pickle.dumps(handle)
    del memory
    handle.close()
    gc.collect()
    assert alive() is None
    refused(FileNotFoundError, "has the memory no more", pickle.loads(reference).open)


def test_share_keeps_an_array_while_its_message_is_on_its_way():
    dlbridge.multiprocessing.install()
    memory = Pooled()
    alive = weakref.ref(memory)
    reader = Reader("x = get(); put((type(x).__name__, values(x, 6))); get()")
    reader.put_message(asdlpack(CaiArray(memory)))
    del memory
    assert reader.get() == ("CudaTensor", list(range(6)))
    gc.collect()
    assert alive() is not None
    reader.put(None)
    reader.ended()
    soon(lambda: alive() is None)


def test_share_survives_a_maker_that_was_killed():
    maker = Reader("""
from fake_cases_share import *
x, y = Pooled(), Pooled()
handles = [share(CaiArray(x)), share(CaiArray(y))]
put(handles)
get()
""")
    first, second = maker.get()
    x = first.open("dlbridge")
    maker.killed()
    assert values(x, 6) == list(range(6))
    refused(FileNotFoundError, "has the memory no more", second.open)


def test_share_gives_memory_back_when_the_reader_drops_it():
    maker = Reader("""
from fake_cases_share import *
x = Pooled()
alive = weakref.ref(x)
handle = share(CaiArray(x))
put(handle)
get()
del x, handle
gc.collect()
put(alive() is not None)
soon(lambda: alive() is None)
put(None)
""")
    handle = maker.get()
    x, y = handle.open("dlbridge"), handle.open("dlbridge")
    assert x.data_ptr == y.data_ptr and len(calls("ipc_open")) == 1
    maker.put(None)
    assert maker.get()
    slow = new_stream()
    marker = Memory()
    marker.fill(NEW, 1)  # work on the default stream may use x: it is waited for
    assert lib.fake_cuda_live_bytes() > 0
    handle.close()
    del x, y, handle
    maker.get()
    assert read_now(marker.address, 1) == [NEW]
    assert len(calls("ipc_close")) == 1
    assert slow
    maker.ended()


def test_share_finds_nothing_that_is_on_its_way_back():
    """The driver is called without the GIL: what another thread finds meanwhile, it would open."""
    maker = Reader("""
from fake_cases_share import *
x = Pooled()
handle = share(CaiArray(x))
put(handle)
get()
""")
    handle = maker.get()
    x = handle.open("dlbridge")
    assert len(allocations._memories) == len(loans._loans) == 1
    seen, call = [], allocations._try

    def spy(function, *arguments):
        if function == "cuIpcCloseMemHandle":
            seen.append([len(list(known.values())) for known in (allocations._memories, loans._loans)])
        return call(function, *arguments)

    allocations._try = spy
    del x, handle
    soon(lambda: seen)
    assert seen == [[0, 0]]
    maker.put(None)
    maker.ended()


def test_share_gives_memory_back_behind_a_graph_that_is_captured():
    maker = Reader("""
from fake_cases_share import *
x = Pooled()
handle = share(CaiArray(x))
put(handle)
get()
""")
    with maker.get() as handle:
        x = handle.open("dlbridge")
    capturing = lib.fake_cuda_stream_create(0, 1, 0)  # work on the default stream would break its capture
    lib.fake_cuda_set_capture(capturing, 7)
    del x, handle
    time.sleep(0.1)
    assert calls("ipc_close", "capture_invalidated") == []
    lib.fake_cuda_set_capture(capturing, 0)
    soon(lambda: len(calls("ipc_close")) == 1)
    maker.put(None)
    maker.ended()


def test_share_goes_on_from_reader_to_reader_and_home():
    memory = Pooled()
    alive = weakref.ref(memory)
    handle = share(CaiArray(memory))
    reader = Reader("""
x = get().open("dlbridge")
handle = share(x)
assert not handle.copied
put(handle)
get()
""")
    reader.put(handle)
    back = reader.get()
    address = memory.address
    del memory, handle
    gc.collect()
    x = back.open("dlbridge")
    assert x.data_ptr == address and calls("ipc_open") == []
    other = Reader("x = get().open('dlbridge'); put(values(x, 6)); get()")
    other.put(back)
    assert other.get() == list(range(6))
    other.put(None)
    other.ended()
    del x
    back.close()
    assert alive() is not None
    reader.put(None)
    reader.ended()
    soon(lambda: alive() is None)


def test_share_finds_the_gpu_by_its_uuid():
    handles = [share(CaiArray(Pooled(device=device))) for device in (0, 1)]
    reader = Reader("xs = [one.open('dlbridge') for one in get()]; put([(str(x.device), values(x, 6)) for x in xs])",
                    CUDA_VISIBLE_DEVICES="1,0")  # fmt: skip
    reader.put(handles)
    assert reader.get() == [("cuda:1", list(range(6))), ("cuda:0", list(range(6)))]
    reader.ended()
    for hidden in ({"CUDA_VISIBLE_DEVICES": "3,4"}, {"FAKE_CUDA_DEVICES": "0"}):
        blind = Reader("""
handle = get()
try:
    handle.open()
except Exception as error:
    put((type(error).__name__, str(error)))
""", **hidden)  # fmt: skip
        blind.put(handles[0])
        kind, text = blind.get()
        assert kind == "CudaError" and "GPU-00000000-0000" in text and "CUDA_VISIBLE_DEVICES" in text
        blind.ended()


def test_share_of_arrays_without_elements_keeps_their_device():
    tree = {"none": CaiArray(None, (0, 3)), "host": asdlpack(b""), "some": CaiArray(Pooled(device=1), device=1)}
    handle = share(tree)
    for opened in (handle.open("dlbridge"), pickle.loads(pickle.dumps(handle)).open("dlbridge")):
        assert [str(opened[name].device) for name in tree] == ["cuda:0", "cpu", "cuda:1"]
        assert opened["none"].shape == (0, 3)


def test_share_is_refused_in_a_fork():
    handle = share(CaiArray(Pooled()))
    made = convert(handle.open("dlbridge"), "nd")
    reference = pickle.dumps(handle)
    child = os.fork()
    if child == 0:
        try:
            for call in (handle.open, lambda: pickle.dumps(handle), pickle.loads(reference).open):
                refused(CudaError, "fork", call)
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert handle.open("dlbridge").data_ptr == made.data_ptr


def test_share_checks_what_a_handle_says_against_the_allocation():
    handle = share(CaiArray(Pooled()))
    _, (version, state, _) = handle.__reduce_ex__(4)
    reference, place, rest = loans.LoanReference(*state[0][0]), Place(*state[1][0]), state[2:]
    for changes in (
        {"offset": 1 << 21},
        {"offset": (1 << 21) - 8},
        {"strides": (-(1 << 21), 4)},
        {"shape": (1 << 20, 3)},
        {"cuda": False},
        {"cuda": 1},
        {"segment": 1},
    ):
        forged = ((reference,), (place._replace(**changes),), *rest)
        refused(DataError, "forged", lambda state=forged: handles._unpickle(version, state, None).open())
    for changes in ({"memory": b"x"}, {"gpu": b""}, {"event": None}, {"fd": -1}, {"pid": "../1"}):
        forged = ((reference._replace(**changes),), (place,), *rest)
        refused(DataError, "forged", lambda state=forged: handles._unpickle(version, state, None).open())
    other = share(b"host")
    host = other.__reduce_ex__(4)[1][1]
    forged = (host[0], (place,), *rest)
    refused(DataError, "forged", lambda: handles._unpickle(version, forged, None).open())
    reader = Reader("""
reference, call, version, state = get()
for changes in ({"memory": bytes(64)}, {"event": bytes(64)}):
    try:
        call(version, ((reference._replace(**changes),), *state), None).open()
    except Exception as error:
        put((type(error).__name__, str(error)))
""")
    reader.put((reference, handles._unpickle, version, state[1:]))
    for function in ("cuIpcOpenMemHandle", "cuIpcOpenEventHandle"):
        kind, text = reader.get()
        assert kind == "CudaError" and function in text and "ended" in text, text
    reader.ended()


if __name__ == "__main__":
    main(globals())
