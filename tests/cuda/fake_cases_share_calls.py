"""What sharing CUDA arrays asks of the driver: opening a mapping, or making an event for other processes, takes longer
than all else of a message, so that neither is done again for the next one.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import gc
import signal
import types
import weakref

from dlbridge import share
from dlbridge._sharing import loans
from dlbridge.nd import cuda
from fake_cases_share import Pooled, Reader, os, soon
from fake_cuda import *

PATIENT = """
from dlbridge._sharing import returns
returns.LINGER_S = 3600
"""


def test_share_opens_an_allocation_once_while_an_array_of_it_is_there():
    whole = Pooled(60)
    reader = Reader("""
kept = []
for _ in range(4):
    kept.append(get().open("dlbridge"))
    put((values(kept[-1], 6), len(calls("ipc_open"))))
""")
    for number in range(4):
        handle = share(CaiArray(whole, (6,), data=(whole.address + 4 * number, False)))
        reader.put(handle)
        assert reader.get() == (list(range(number, number + 6)), 1)
    reader.ended()


def test_share_opens_no_mapping_anew_that_the_last_reader_has_just_left():
    whole = Pooled(60)
    reader = Reader(PATIENT + """
for _ in range(4):
    x = get().open("dlbridge")
    found = values(x, 6)
    del x
    put((found, calls("ipc_open", "ipc_close"), len(calls("ctx_push"))))
""")  # fmt: skip
    contexts = []
    for number in range(4):
        handle = share(CaiArray(whole, (6,), data=(whole.address + 4 * number, False)))
        reader.put(handle)
        found, (opened, *others), pushed = reader.get()
        assert found == list(range(number, number + 6)) and opened.startswith("ipc_open") and others == []
        contexts.append(pushed)
        handle.close()
    assert contexts[2] - contexts[1] == contexts[3] - contexts[2] <= 2, "no more than the test's own copy to the host"
    reader.ended()


def test_share_gives_back_together_what_lingers_when_the_time_is_over():
    memories = [Pooled() for _ in range(3)]
    alive = [weakref.ref(one) for one in memories]
    reader = Reader("""
from fake_cases_share import soon
for _ in range(3):
    x = get().open("dlbridge")
    del x
    put(None)
soon(lambda: len(calls("ipc_close")) == len(calls("ipc_open")))
put(None)
get()
""")
    while memories:
        handle = share(CaiArray(memories.pop()))
        reader.put(handle)
        reader.get()
        handle.close()
    del handle
    reader.get()
    soon(lambda: not any(one() for one in alive))
    assert loans._keeper.kept == {}
    reader.put(None)
    reader.ended()


def closed_after_each(limit, handles):
    """How many allocations a reader has unmapped after it has left the array of each handle, the first of them four
    times; at the end none is mapped."""
    reader = Reader(PATIENT + f"""
from fake_cases_share import soon
{limit}
for number in range({len(handles) + 3}):
    x = get().open("dlbridge")
    del x
    if number == {len(handles) + 2}:
        soon(lambda: len(calls("ipc_close")) == len(calls("ipc_open")))
    put(len(calls("ipc_close")))
get()
""")  # fmt: skip
    closed = []
    for handle in [handles[0]] * 3 + handles:
        reader.put(handle)
        closed.append(reader.get())
    reader.put(None)
    reader.ended()
    return closed


def test_share_lets_little_memory_linger():
    memories = [Pooled(6 << 20) for _ in range(3)]  # of 24 MiB
    handles = [share(CaiArray(one, (6,))) for one in memories]
    assert closed_after_each("", handles) == [0] * 5 + [3]


def test_share_lets_few_loans_linger():
    handles = [share(CaiArray(one)) for one in [Pooled() for _ in range(3)]]
    assert closed_after_each("returns.LINGERING_LOANS = 5", handles) == [0] * 5 + [1]


def test_share_does_not_linger_where_the_memory_is_large():
    large = Pooled(20 << 20)
    alive = weakref.ref(large)
    handle = share(CaiArray(large, (6,)))
    reader = Reader(PATIENT + "x = get().open('dlbridge'); del x; put(None); get()")
    reader.put(handle)
    reader.get()
    del large, handle
    soon(lambda: alive() is None)
    reader.put(None)
    reader.ended()


def test_share_waits_for_the_stream_of_torch_though_it_is_gone_when_that_begins():
    maker = Reader("""
from fake_cases_share import *
x = Pooled()
handle = share(CaiArray(x))
put(handle)
get()
""")
    stream, marker = new_stream(), Memory()
    marker.fill(NEW, stream)
    torch = types.SimpleNamespace(
        is_initialized=lambda: True,
        is_current_stream_capturing=lambda: False,
        current_stream=lambda ordinal: types.SimpleNamespace(cuda_stream=stream),
    )
    with maker.get() as handle:
        x = handle.open("dlbridge")
    sys.modules["torch"] = types.SimpleNamespace(cuda=torch)
    try:
        del x, handle
    finally:
        del sys.modules["torch"]
    lib.fake_cuda_stream_forget(stream)
    assert read_now(marker.address, 1) != [NEW]
    soon(lambda: calls("ipc_close"))
    assert read_now(marker.address, 1) == [NEW]
    maker.put(None)
    maker.ended()


def test_share_lets_no_fork_keep_what_lingers():
    memory = Pooled()
    alive = weakref.ref(memory)
    handle = share(CaiArray(memory))
    reader = Reader(PATIENT + """
import signal
x = get().open("dlbridge")
del x
child = os.fork()
if child == 0:
    signal.pause()
put(child)
get()
""")  # fmt: skip
    reader.put(handle)
    child = reader.get()
    del memory, handle
    gc.collect()
    assert alive() is not None
    reader.killed()
    soon(lambda: alive() is None)
    os.kill(child, signal.SIGKILL)


def test_share_asks_the_driver_nothing_where_a_handle_is_opened_again():
    reader = Reader("""
handle = get()
x = handle.open("dlbridge")
forget()
more = [handle.open("dlbridge") for _ in range(3)]
put(new_calls())
""")
    handle = share(CaiArray(Pooled()))
    reader.put(handle)
    assert reader.get() == []
    reader.ended()


def test_share_asks_for_the_handle_of_an_allocation_once():
    whole = Pooled(60)
    for _ in range(3):
        with share(CaiArray(whole, (6,))):
            pass
    assert len(calls("ipc_get")) == 1


class Allocated(Memory):
    """Of the driver's itself, which no pool keeps."""

    def __init__(self):
        self.bytes, found = 24, ctypes.c_uint64()
        with cuda.Device(0):
            assert lib.cuMemAlloc_v2(ctypes.byref(found), ctypes.c_size_t(self.bytes)) == 0
        self.address = found.value


def test_share_knows_a_new_allocation_from_an_old_one_at_its_address():
    found = set()
    reader = Reader("while True: x = get().open('dlbridge'); put([one & 0xFF for one in values(x, 6)]); del x")
    for number in range(10):
        memory = Allocated()
        memory.set(number)
        handle = share(CaiArray(memory))
        reader.put(handle)
        assert reader.get() == [number] * 6
        found.add(memory.address)
        handle.close()
        del memory, handle
        soon(lambda: loans._keeper.kept == {})
    assert len(found) < 10, "no address came again: this proves nothing"
    assert len(calls("ipc_get")) == 10
    reader.killed()


def not_ready(stream):
    """A handle of an array that has OLD now, and the array's memory."""
    memory = Pooled()
    handle = share(slow_array(stream, memory))
    return handle, memory


def test_share_uses_the_event_of_a_loan_again_that_has_ended():
    stream = new_stream()
    for _ in range(5):
        handle, _ = not_ready(stream)
        handle.close()
        del handle
        lib.fake_cuda_synchronize()
    assert len(calls("event_create")) - len(calls("ipc_get_event")) <= 1  # one of a thread's, for order
    assert len(calls("ipc_get_event")) == 1


def test_share_uses_no_event_again_that_somebody_may_wait_for():
    stream = new_stream()
    handles = [not_ready(stream)[0] for _ in range(3)]
    assert len(calls("ipc_get_event")) == 3
    reader = Reader("x = get().open('dlbridge'); put(None); get()")
    reader.put(handles[0])
    reader.get()
    handles.clear()
    gc.collect()
    more = [not_ready(stream)[0] for _ in range(2)]
    assert len(calls("ipc_get_event")) == 3
    one_too_many = not_ready(stream)
    assert len(calls("ipc_get_event")) == 4
    reader.put(None)
    lib.fake_cuda_synchronize()
    reader.ended()
    assert len(more) == len(one_too_many) == 2


def test_share_makes_the_reader_wait_for_an_event_that_is_used_again():
    stream = new_stream()
    first, _ = not_ready(stream)
    first.close()
    del first
    lib.fake_cuda_synchronize()
    handle, memory = not_ready(stream)
    reader = Reader("""
x = get().open("dlbridge")
put((read_now(x.data_ptr, 6), x.__cuda_array_interface__["stream"] is not None))
put(values(x, 6))
""")
    reader.put(handle)
    assert reader.get() == ([OLD] * 6, True)
    lib.fake_cuda_synchronize()
    assert reader.get() == [NEW] * 6
    assert len(calls("ipc_get_event")) == 1 and read_now(memory.address, 1) == [NEW]
    reader.ended()


def test_share_says_when_the_data_is_ready_where_a_reader_passes_its_handle_on():
    handle, memory = not_ready(new_stream())
    first = Reader("handle = get(); x = handle.open('dlbridge'); put(handle); get()")
    first.put(handle)
    second = Reader("""
x = get().open("dlbridge")
put((read_now(x.data_ptr, 6), x.__cuda_array_interface__["stream"] is not None))
put(values(x, 6))
""")
    second.put(first.get())
    assert second.get() == ([OLD] * 6, True)
    lib.fake_cuda_synchronize()
    assert second.get() == [NEW] * 6
    first.put(None)
    for reader in (first, second):
        reader.ended()
    assert read_now(memory.address, 1) == [NEW]


if __name__ == "__main__":
    main(globals())
