"""The CUDA side without a GPU: Arrow's device arrays, both ways, and the events that order them.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes

from arrow_support import RELEASE, DeviceArray, DeviceChunks, Maker, OnDevice, Schema, capsule, struct_of
from dlbridge import CudaTensor, _core, asdlpack, columns
from fake_cuda import *
from lifecycle_support import CUDA, CUDA_HOST

lib.cuStreamWaitEvent.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]


class Given:
    """Gives the capsules of an export."""

    def __init__(self, capsules):
        self.capsules = capsules

    def __arrow_c_device_array__(self, requested_schema=None):
        return self.capsules


def test_an_export_has_an_event_that_happens_when_the_data_is_ready():
    array = slow_array(new_stream())
    tensor = asdlpack(array)
    forget()
    schema, device_array = tensor.__arrow_c_device_array__()
    placed = struct_of(device_array, DeviceArray)
    assert (placed.device_type, placed.device_id) == (CUDA, 0)
    assert struct_of(schema, Schema).format == b"+w:3"
    assert len(new_calls("event_record")) >= 1
    nothing_blocks()
    consumer = new_stream()
    event = ctypes.c_void_p.from_address(placed.sync_event).value
    assert lib.cuStreamWaitEvent(consumer, event, 0) == 0
    assert read_on(consumer, array.memory.address, 6) == [NEW] * 6
    forget()
    placed.array.release(ctypes.addressof(placed.array))
    assert len(new_calls("event_destroy")) == 1
    assert _core.live_counts()["exports"] == 0


def test_what_is_ready_needs_no_event():
    with_memory = CaiArray(Memory())
    _, device_array = asdlpack(with_memory).__arrow_c_device_array__()
    assert struct_of(device_array, DeviceArray).sync_event is None


def test_the_event_of_a_producer_is_waited_for_by_the_consumers_stream():
    array, consumer = slow_array(new_stream()), new_stream()
    capsules = asdlpack(array).__arrow_c_device_array__()
    forget()
    tensor = asdlpack(Given(capsules), protocol="arrow")
    assert type(tensor) is CudaTensor
    assert (tensor.shape, str(tensor.device), tensor.readonly) == ((2, 3), "cuda:0", True)
    assert tensor.data_ptr == array.memory.address
    tensor.__dlpack__(stream=consumer, max_version=NEWEST)
    nothing_blocks()
    assert read_on(consumer, array.memory.address, 6) == [NEW] * 6


def test_without_an_event_nothing_is_waited_for():
    maker, memory = Maker(), Memory()
    array = maker.array(3)
    array.buffers[1] = memory.address
    array.length = 3
    forget()
    tensor = asdlpack(OnDevice(maker, maker.schema(b"i"), array, CUDA, 1))
    assert (str(tensor.device), tensor.data_ptr) == ("cuda:1", memory.address)
    assert new_calls("stream_wait", "stream_synchronize", "event_synchronize") == []
    del tensor
    assert maker.released == ["Schema", "Array"]


class SlowEvent:
    """An event that happens when a slow kernel has written the memory; destroyed with this object."""

    def __init__(self, memory, stream):
        memory.set(OLD)
        memory.fill(NEW, stream)
        self.capsules = asdlpack(CaiArray(Memory(), stream=stream)).__arrow_c_device_array__()
        self.address = struct_of(self.capsules[1], DeviceArray).sync_event


def placed(maker, memory, event, device_type=CUDA):
    array = maker.array(memory.count)
    array.buffers[1] = memory.address
    return maker.on_device(array, device_type, 0, event.address)


def test_the_event_in_a_device_stream_is_waited_for_by_the_consumers_stream():
    maker, memory, consumer = Maker(), Memory(), new_stream()
    event = SlowEvent(memory, new_stream())
    arrays = [placed(maker, memory, event), maker.on_device(maker.array(0, (None, None)), CUDA, 0)]
    forget()
    tensor = asdlpack(DeviceChunks(maker.stream(maker.schema(b"i"), arrays, device_type=CUDA)))
    assert (type(tensor), tensor.shape, tensor.data_ptr) == (CudaTensor, (6,), memory.address)
    tensor.__dlpack__(stream=consumer, max_version=NEWEST)
    nothing_blocks()
    assert read_on(consumer, memory.address, 6) == [NEW] * 6
    del tensor
    assert maker.released.count("Array") == 2
    del event


def test_the_event_of_pinned_memory_is_waited_for_on_the_host():
    maker, memory = Maker(), Memory(kind="host")
    event = SlowEvent(memory, new_stream())
    arrays = [placed(maker, memory, event, CUDA_HOST)]
    tensor = asdlpack(DeviceChunks(maker.stream(maker.schema(b"i"), arrays, device_type=CUDA_HOST)))
    assert str(tensor.device) == "cuda_host"
    assert memoryview(tensor).tolist() == [NEW] * 6
    del event


def test_columns_outlive_the_event_of_their_batch():
    """The columns are moved out of the batch, whose release destroys the event, as it is the batch's."""
    maker, memory, consumer = Maker(), Memory(), new_stream()
    event = SlowEvent(memory, new_stream())
    column = maker.array(memory.count)
    column.buffers[1] = memory.address
    batch = maker.on_device(maker.array(6, (None,), children=[column]), CUDA, 0, event.address)
    release_batch = RELEASE(ctypes.cast(batch.array.release, ctypes.c_void_p).value)

    def release(address):
        event.capsules = None
        release_batch(address)

    batch.array.release = maker.keep(RELEASE(release))
    schema = maker.schema(b"+s", children=[maker.schema(b"i", b"x")])
    forget()
    tensor = columns(Given((capsule(schema), capsule(batch))))["x"]
    waited, destroyed = new_calls("stream_wait", "event_destroy")
    assert waited.startswith("stream_wait") and waited.split()[-1] == destroyed.split()[-1]
    nothing_blocks()
    tensor.__dlpack__(stream=consumer, max_version=NEWEST)
    assert destroyed.split()[-1] not in new_calls("stream_wait")[-1].split()
    assert read_on(consumer, memory.address, 6) == [NEW] * 6
    del tensor


def test_host_tensors_leave_the_driver_alone():
    asdlpack(b"abc").__arrow_c_device_array__()
    assert log() == []
    assert not RELEASE()


def test_copies_of_a_device_array_are_made_behind_its_event():
    array = slow_array(new_stream())
    tensor = asdlpack(Given(asdlpack(array).__arrow_c_device_array__()), protocol="arrow", device="cpu")
    assert memoryview(tensor).cast("B").tobytes() == bytes([NEW & 0xFF]) * 24
    del tensor


if __name__ == "__main__":
    main(globals())
