"""What sharing CUDA arrays asks of the driver: opening a mapping, or making an event for other processes, takes longer
than all else of a message, so that neither is done again for the next one.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import gc

from dlbridge import share
from dlbridge._sharing import loans
from dlbridge.nd import cuda
from fake_cases_share import Pooled, Reader, soon
from fake_cuda import *


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
