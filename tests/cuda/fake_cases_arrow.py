"""The CUDA side without a GPU: Arrow's device arrays, both ways, and the events that order them.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes

from arrow_support import RELEASE, DeviceArray, Maker, OnDevice, Schema, struct_of
from dlbridge import CudaTensor, _core, asdlpack
from fake_cuda import *
from lifecycle_support import CUDA

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
