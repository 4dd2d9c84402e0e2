"""dlbridge.nccl without a GPU: what nccl4py gets, and who waits for whom. `Communicator` stands for nccl4py's with one
rank: it asks for the memory as that does, without a stream, and queues a copy on the stream that it is given.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import contextlib
import ctypes

from dlbridge import asdlpack, nccl
from fake_cuda import *

lib.cuMemcpyDtoDAsync_v2.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


class Communicator:
    def allreduce(self, sendbuf, recvbuf, op, *, stream=None):
        memory = []
        for buffer in (sendbuf, recvbuf):
            assert buffer.__dlpack_device__() == (2, 0)
            capsule = buffer.__dlpack__(stream=-1, max_version=NEWEST)
            memory.append((peek(capsule)["data"], buffer.size * buffer.itemsize))
        (source, count), (target, room) = memory
        assert count == room
        context, popped = ctypes.c_void_p(), ctypes.c_void_p()  # NCCL makes the communicator's device current
        assert lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert lib.cuCtxPushCurrent_v2(context) == 0
        assert lib.cuMemcpyDtoDAsync_v2(target, source, count, stream or 0) == 0
        assert lib.cuCtxPopCurrent_v2(ctypes.byref(popped)) == 0


def reduce(x, y, stream, *, ordered=True):
    """x to y on `stream`; without `ordered` as nccl4py does it alone."""
    with contextlib.ExitStack() as stack:
        a, b = (x, y)
        if ordered:
            a, b = stack.enter_context(nccl.source(x, stream=stream)), stack.enter_context(nccl.buf(y, stream=stream))
        else:
            a, b = asdlpack(x), asdlpack(y)
        Communicator().allreduce(a, b, "sum", stream=stream)


def test_nccl_waits_for_the_data_and_its_result_is_waited_for():
    sender, receiver, stream = new_stream(), new_stream(), new_stream()
    x, y = slow_array(sender), CaiArray(Memory(), stream=receiver)
    y.memory.set(OLD)
    forget()
    reduce(x, y, stream)
    nothing_blocks()
    assert read_now(y.memory.address, 6) == [OLD] * 6  # all of it is queued, and nothing was done
    assert read_on(receiver, y.memory.address, 6) == [NEW] * 6


def test_nccl_negative_control_nccl4py_waits_for_nobody():
    sender, receiver, stream = new_stream(), new_stream(), new_stream()
    x, y = slow_array(sender), CaiArray(Memory(), stream=receiver)
    y.memory.set(OLD)
    reduce(x, y, stream, ordered=False)
    assert read_on(receiver, y.memory.address, 6) == [OLD] * 6
    assert read_on(stream, y.memory.address, 6) == [OLD] * 6


def test_nccl_the_sender_may_write_to_its_array_after_the_block():
    sender, stream = new_stream(), new_stream()
    x, y = slow_array(sender), CaiArray(Memory(), stream=stream)
    reduce(x, y, stream)
    x.memory.fill(OLD, sender)
    lib.cuStreamSynchronize(sender)
    assert read_on(stream, y.memory.address, 6) == [NEW] * 6


def test_nccl_works_on_the_legacy_stream_where_none_is_given():
    for none in (None, 0, 1):
        sender, receiver = new_stream(), new_stream()
        x, y = slow_array(sender), CaiArray(Memory(), stream=receiver)
        reduce(x, y, none)
        assert read_on(receiver, y.memory.address, 6) == [NEW] * 6


def test_nccl_gets_types_that_it_has():
    memory = Memory(24)
    for typestr, dtype, shape in (
        ("<i4", "int32", (2, 3)),
        ("<f2", "float16", (2, 3)),
        ("|b1", "uint8", (2, 3)),
        ("<c8", "float32", (2, 3, 2)),
        ("<c16", "float64", (2, 3, 2)),
    ):
        memory.set(0)
        with nccl.buf(CaiArray(memory, typestr=typestr)) as found:
            assert (found.dtype, found.shape, found.data_ptr) == (dtype, shape, memory.address)


def test_nccl_refuses_what_it_would_get_wrong():
    memory = Memory()
    readonly = CaiArray(memory, data=(memory.address, True))
    for error, text, call in (
        (BufferError, "buf(): the array is read-only", lambda: nccl.buf(readonly)),
        (BufferError, "source(): the array is on cpu", lambda: nccl.source(bytearray(8))),
        (BufferError, "not dense in C order", lambda: nccl.source(CaiArray(memory, strides=(4, 8)))),
        (TypeError, "dtype int16 is none that nccl4py reads", lambda: nccl.buf(CaiArray(memory, typestr="<i2"))),
    ):
        forget()
        refused(error, text, call().__enter__)
        assert not new_calls("stream_wait")
    with nccl.source(readonly) as found:
        assert found.readonly


def test_nccl_reads_a_capsule_once():
    exporter = DLPackArray(Memory())
    capsule = exporter.__dlpack__(stream=1, max_version=NEWEST)
    with nccl.source(capsule) as found:
        assert found.shape == (2, 3)
    del found, capsule  # main() looks for what is left


def test_nccl_names_the_wheel_of_what_is_nccl4pys():
    refused(AttributeError, "nccl.core.Communicator; pip install 'nccl4py[cu13]'", lambda: nccl.Communicator)


if __name__ == "__main__":
    main(globals())
