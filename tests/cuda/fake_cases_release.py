"""The CUDA side without a GPU: memory that a consumer's stream still works on is not given back under it.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes

import dlbridge
from dlbridge import ExchangeError, asdlpack, nd
from fake_cuda import *

lib.cuMemcpyDtoDAsync_v2.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


class Reader:
    """A consumer: reads on a stream of its own, which comes to it late."""

    def __init__(self):
        self.stream, self.seen = new_stream(), Memory()

    def queue(self, address):
        assert lib.cuMemcpyDtoDAsync_v2(self.seen.address, address, 24, self.stream) == 0

    def values(self):
        assert lib.cuStreamSynchronize(self.stream) == 0
        return read_now(self.seen.address, 6)


def run(stream):
    """Does what is queued there, and what that waits for. The legacy default stream is the current device's."""
    with nd.cuda.Device(0):
        assert lib.cuStreamSynchronize(stream) == 0


def overwrite(address, stream):
    """What the next owner of the memory does."""
    assert lib.fake_cuda_fill(address, OLD & 0xFF, 24, 0, stream) == 0
    run(stream)


def _array_of_nd():
    x = nd.ndarray((6,), "int32", memptr=nd.cuda.alloc(24))  # nd.empty() wants the kernels, which are not built here
    lib.fake_cuda_fill(x.data_ptr, NEW & 0xFF, 24, 0, 1)
    run(1)
    return x


def _reused(record, view):
    """What a reader sees of an array of nd that dies while it reads, and whose memory another array gets."""
    reader, x = Reader(), _array_of_nd()
    address = x.data_ptr
    reader.queue(address)
    shared = x[:3] if view else x
    if record:
        shared.record_stream(reader.stream)
    forget()
    del shared, x
    nothing_blocks()
    y = nd.ndarray((6,), "int32", memptr=nd.cuda.alloc(24))
    assert y.data_ptr == address
    overwrite(address, 1)
    return reader.values()


def test_the_pool_of_nd_waits_for_recorded_streams():
    assert _reused(record=True, view=False) == [NEW] * 6
    assert _reused(record=True, view=True) == [NEW] * 6
    assert _reused(record=False, view=False) == [OLD] * 6  # the control


def test_a_producer_that_names_its_stream_waits_for_recorded_streams():
    for record in (True, False):
        reader, memory = Reader(), Memory()
        memory.set(NEW)
        tensor = asdlpack(CaiArray(memory, stream=1))
        reader.queue(memory.address)
        if record:
            tensor.record_stream(reader.stream)
        forget()
        del tensor
        nothing_blocks()
        overwrite(memory.address, 1)
        assert reader.values() == [NEW if record else OLD] * 6


def test_a_producer_that_names_no_stream_is_taken_to_use_the_legacy_one():
    for make in (lambda memory: CaiArray(memory, stream=None), lambda m: CaiArray(m, stream=new_stream()), DLPackArray):
        reader, memory = Reader(), Memory()
        memory.set(NEW)
        tensor = asdlpack(make(memory))
        reader.queue(memory.address)
        tensor.record_stream(reader.stream)
        del tensor
        overwrite(memory.address, 1)
        assert reader.values() == [NEW] * 6


def test_work_that_is_queued_after_the_note_is_waited_for_until_the_tensor_dies():
    reader, memory = Reader(), Memory()
    memory.set(NEW)
    tensor = asdlpack(CaiArray(memory, stream=1))
    tensor.record_stream(reader.stream)
    tensor.record_stream(reader.stream)
    reader.queue(memory.address)
    capsule = tensor.__dlpack__(stream=reader.stream, max_version=NEWEST)
    del tensor
    forget()
    del capsule  # the last to hold the tensor
    assert len(new_calls("event_record", "stream_wait")) == 2  # once, though it was noted twice
    overwrite(memory.address, 1)
    assert reader.values() == [NEW] * 6


def test_a_copy_is_freed_behind_recorded_streams():
    reader, memory = Reader(), Memory()
    memory.set(NEW)
    copy = asdlpack(CaiArray(memory, stream=1), copy=True)
    copy.__dlpack__(stream=reader.stream, max_version=NEWEST)
    reader.queue(copy.data_ptr)
    copy.record_stream(reader.stream)
    del copy
    lib.fake_cuda_synchronize()
    assert reader.values() == [NEW] * 6


def test_what_is_no_stream_or_no_device_tensor_is_refused():
    tensor = asdlpack(CaiArray(Memory()))
    for bad in (None, -1):
        refused(ValueError, "name no stream", lambda bad=bad: tensor.record_stream(bad))
    refused(ValueError, "0 could mean either", lambda: tensor.record_stream(0))
    refused(ValueError, "not a CUDA stream", lambda: tensor.record_stream(12345))
    refused(TypeError, "stream is str", lambda: tensor.record_stream("1"))
    refused(ExchangeError, "no streams", lambda: asdlpack(bytearray(4)).record_stream(1))


# ---- use()


def test_use_orders_both_ways():
    producer, reader, memory = new_stream(), Reader(), Memory()
    memory.set(OLD)
    memory.fill(NEW, producer)
    array = CaiArray(memory, stream=producer)
    forget()
    with dlbridge.use(array, stream=reader.stream) as tensor:
        assert tensor.data_ptr == memory.address
        assert any(f"stream={stream_name(reader.stream)} " in wait for wait in new_calls("stream_wait"))
        reader.queue(memory.address)
        forget()
    assert [wait.split()[1] for wait in new_calls("stream_wait")] == [f"stream={stream_name(producer)}"]
    nothing_blocks()
    lib.fake_cuda_stream_forget(reader.stream)  # it need not live longer
    del tensor
    overwrite(memory.address, producer)
    assert read_now(reader.seen.address, 6) == [NEW] * 6


def test_use_ends_in_order_after_an_error_too():
    reader, memory = Reader(), Memory()
    memory.set(NEW)
    try:
        with dlbridge.use(CaiArray(memory, stream=1), stream=reader.stream):
            reader.queue(memory.address)
            raise KeyError
    except KeyError:
        pass
    overwrite(memory.address, 1)
    assert reader.values() == [NEW] * 6


def test_use_of_arrays_of_nd_of_capsules_and_of_producers_without_a_stream():
    for make in (
        lambda memory: nd.asarray(CaiArray(memory)),
        lambda memory: DLPackArray(memory).__dlpack__(max_version=NEWEST),
        DLPackArray,
        lambda memory: asdlpack(CaiArray(memory, stream=1)),
    ):
        reader, memory = Reader(), Memory()
        memory.set(NEW)
        source = make(memory)
        with dlbridge.use(source, stream=reader.stream):
            reader.queue(memory.address)
        overwrite(memory.address, 1)
        assert reader.values() == [NEW] * 6


def test_use_refuses_what_names_no_stream_and_the_host():
    for bad in (None, -1):
        refused(ValueError, "names no stream", lambda bad=bad: dlbridge.use(CaiArray(Memory()), stream=bad))

    def enter(obj, stream):
        with dlbridge.use(obj, stream=stream):
            raise AssertionError

    refused(ValueError, "0 could mean either", lambda: enter(CaiArray(Memory()), 0))
    refused(ExchangeError, "no streams", lambda: enter(bytearray(4), 1))


if __name__ == "__main__":
    main(globals())
