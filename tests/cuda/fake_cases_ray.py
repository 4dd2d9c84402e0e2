"""dlbridge.ray's transport of CUDA arrays without a GPU: the fake driver gives its memory to other processes.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import pickle
import weakref

import ray_stand_in
from dlbridge import CudaError, asdlpack, convert, nd
from dlbridge.ray import _transport
from dlbridge.ray._transport import SharedMemoryTransport
from fake_cases_share import Pooled, Reader, gc, os, soon
from fake_cuda import *

READS = """
import ray_stand_in
from dlbridge.ray._transport import SharedMemoryTransport
transport = SharedMemoryTransport()
"""
REFUSED_READ = READS + """
try:
    transport.recv_multiple_tensors("1", get(), None)
except Exception as error:
    put((type(error).__name__, str(error)))
"""  # fmt: skip


def sent(transport, arrays, name="1"):
    """The metadata, as Ray pickles it."""
    return pickle.loads(pickle.dumps(transport.extract_tensor_transport_metadata(name, arrays)))


def nd_array(memory, **fields):
    return convert(CaiArray(memory, **fields), "nd")


def test_ray_passes_arrays_of_gpus_where_they_lie():
    transport = SharedMemoryTransport()
    memory = Pooled()
    meta = sent(transport, [nd_array(memory), nd.from_dlpack(asdlpack(b"host"))])
    assert meta.tensor_device == "cuda" and meta.tensor_meta == [((2, 3), "int32"), ((4,), "uint8")]
    reader = Reader(READS + """
x, host = transport.recv_multiple_tensors("1", get(), None)
put((type(x).__name__, values(x, 6), bytes(memoryview(host))))
get()
lib.fake_cuda_fill(x.data_ptr, 7, 24, 0, 1)
lib.fake_cuda_synchronize()
put(None)
""")  # fmt: skip
    reader.put(meta)
    lib.fake_cuda_synchronize()  # the queue that tells the others
    assert reader.get() == ("CudaArray", list(range(6)), b"host")
    reader.put(None)
    reader.get()
    assert read_now(memory.address, 6) == [0x07070707] * 6
    reader.ended()


def test_ray_makes_the_reader_s_stream_wait_and_no_host():
    transport, stream, memory = SharedMemoryTransport(), new_stream(), Pooled()
    forget()
    meta = sent(transport, [convert(slow_array(stream, memory), "nd")])
    nothing_blocks()
    reader = Reader(READS + """
(x,) = transport.recv_multiple_tensors("1", get(), None)
nothing_blocks()
put(read_now(x.data_ptr, 6))
put(values(x, 6))
""")  # fmt: skip
    reader.put(meta)
    assert reader.get() == [OLD] * 6
    lib.cuStreamSynchronize(stream)
    lib.fake_cuda_synchronize()
    assert reader.get() == [NEW] * 6
    reader.ended()


def test_ray_copies_memory_of_a_pool_once_for_all_readers():
    transport = SharedMemoryTransport()
    memory = Memory()
    meta = sent(transport, [nd_array(memory)])
    assert transport.handles["1"].copied
    reader = Reader(READS + "put([values(transport.recv_multiple_tensors('1', get(), None)[0], 6) for _ in range(2)])")
    reader.put(meta)
    reader.put(sent(transport, [nd_array(memory)]))  # the task was tried again
    lib.fake_cuda_synchronize()
    assert reader.get() == [list(range(6))] * 2
    reader.ended()


def test_ray_keeps_an_array_for_ray_and_then_for_its_readers():
    transport, memory = SharedMemoryTransport(), Pooled()
    alive = weakref.ref(memory)
    x = nd_array(memory)
    meta = sent(transport, [x])
    del memory, x
    gc.collect()
    assert alive() is not None  # nobody has read it
    reader = Reader(READS + "x = transport.recv_multiple_tensors('1', get(), None); put(None); get()")
    reader.put(meta)
    reader.get()
    transport.garbage_collect("1", meta, [])
    gc.collect()
    assert alive() is not None and transport.handles == {}
    reader.killed()
    soon(lambda: alive() is None)
    late = Reader(REFUSED_READ)
    late.put(meta)
    kind, text = late.get()
    assert kind == "FileNotFoundError" and "has the memory no more" in text
    late.ended()


def test_ray_s_readers_may_have_another_framework():
    class ToTensor(SharedMemoryTransport):
        to = "dlbridge"

    transport = ToTensor()
    meta = transport.extract_tensor_transport_metadata("1", [nd_array(Pooled())])
    (x,) = transport.recv_multiple_tensors("1", meta, None)
    assert type(x).__name__ == "CudaTensor" and values(x, 6) == list(range(6))


def test_ray_says_what_a_reader_of_another_node_or_gpu_can_do():
    transport = SharedMemoryTransport()
    meta = sent(transport, [nd_array(Pooled())])
    ray_stand_in.NODE[0] = "another"
    refused(
        ValueError,
        "on node this node, and the reader on another. The transport of dlbridge is for one node: use the object store",
        lambda: transport.recv_multiple_tensors("1", meta, None),
    )
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    blind = Reader(REFUSED_READ)
    blind.put(meta)
    kind, text = blind.get()
    assert kind == CudaError.__name__ and "the array is on GPU-00000000" in text and "num_gpus=" in text, text
    blind.ended()


def test_ray_s_serializer_of_host_arrays_is_that_of_cuda_arrays_too():
    reduce = _transport.CloudPickler.dispatch[nd.CudaArray]
    x = nd_array(Pooled())
    function, *_ = reduce(x)
    assert function is x.__reduce_ex__(5)[0]  # as long as Ray has none
    _transport.CloudPickler.dispatch[nd.HostArray] = lambda one: ("Ray's", one)
    assert reduce(x) == ("Ray's", x)


if __name__ == "__main__":
    main(globals())
