"""The CUDA side without a GPU: who waits for whom, graph capture, and the stream of the exchange API.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes
import sys
import types
from functools import partial

from dlbridge import CudaTensor, ExchangeError, HostTensor, _core, asdlpack, nd
from dlbridge.tests.conformance._abi import DLManagedTensorVersioned
from fake_cuda import *
from lifecycle_support import CPU, CUDA, CUDA_MANAGED, nothing_lost

# What the interpreter of a case is started with, beside the fake.
ENVIRONMENT = {
    "test_sync_switch_0_does_not_wait": {"DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC": "0"},
}


# ---- who waits for whom


def test_the_consumer_waits_by_an_event_and_the_host_does_not():
    producer, consumer = new_stream(), new_stream()
    array = slow_array(producer)
    forget()
    tensor = asdlpack(array)
    capsule = tensor.__dlpack__(stream=consumer, max_version=NEWEST)
    assert peek(capsule)["device"] == (CUDA, 0)
    record, wait = new_calls("event_record", "stream_wait")
    assert record.endswith(f"stream={stream_name(producer)}")
    assert f"stream={stream_name(consumer)} " in wait
    nothing_blocks()
    assert read_now(array.memory.address, 6) == [OLD] * 6
    assert read_on(consumer, array.memory.address, 6) == [NEW] * 6


def test_negative_control_no_wait_no_data():
    producer, consumer = new_stream(), new_stream()
    array = slow_array(producer)
    forget()
    asdlpack(array).__dlpack__(stream=-1, max_version=NEWEST)
    assert new_calls("stream_wait", "stream_synchronize") == []
    assert read_on(consumer, array.memory.address, 6) == [OLD] * 6


def test_none_is_the_legacy_default_stream():
    for arguments in ({}, {"stream": None}, {"stream": 1}):
        array = slow_array(new_stream())
        forget()
        asdlpack(array).__dlpack__(**arguments)
        (wait,) = new_calls("stream_wait")
        assert "stream=legacy0 " in wait
        nothing_blocks()


def test_two_is_the_per_thread_stream():
    array = slow_array(new_stream())
    forget()
    asdlpack(array).__dlpack__(stream=2)
    assert "stream=per_thread0 " in new_calls("stream_wait")[0]


def test_zero_and_nonsense_are_refused():
    tensor = asdlpack(slow_array(new_stream()))
    refused(ValueError, "0 could mean either", lambda: tensor.__dlpack__(stream=0))
    refused(ValueError, "stream -2", lambda: tensor.__dlpack__(stream=-2))
    refused(TypeError, "stream is bool", lambda: tensor.__dlpack__(stream=True))
    refused(TypeError, "stream is str", lambda: tensor.__dlpack__(stream="1"))
    refused(ValueError, "not a CUDA stream", lambda: tensor.__dlpack__(stream=12345))
    refused(ValueError, "0 could mean either", lambda: asdlpack(tensor, stream=0))


def test_a_stream_object_is_taken():
    consumer = new_stream()

    class Stream:
        def __cuda_stream__(self):
            return (0, consumer)

    array = slow_array(new_stream())
    forget()
    asdlpack(array, stream=Stream())
    assert f"stream={stream_name(consumer)} " in new_calls("stream_wait")[0]
    assert read_on(consumer, array.memory.address, 6) == [NEW] * 6


def test_the_same_stream_needs_no_event():
    tensor = asdlpack(slow_array(1))
    forget()
    tensor.__dlpack__(stream=1, max_version=NEWEST)
    asdlpack(tensor, stream=1)
    asdlpack(tensor)
    assert new_calls("event_record", "stream_wait") == []


def test_a_stream_that_is_destroyed_after_the_read_is_not_used_again():
    for orders, use in (
        (True, lambda tensor, consumer: tensor.__dlpack__(stream=consumer, max_version=NEWEST)),
        (True, lambda tensor, consumer: asdlpack(tensor, stream=consumer)),
        (False, lambda tensor, consumer: asdlpack(tensor, copy=True, stream=consumer)),
        (False, lambda tensor, consumer: asdlpack(tensor, device="cpu")),
        (False, lambda tensor, consumer: nd.asarray(tensor)),
    ):
        producer, consumer = new_stream(), new_stream()
        array = slow_array(producer)
        tensor = asdlpack(array)
        name = stream_name(producer)
        lib.fake_cuda_stream_forget(producer)  # its work goes on, as with cudaStreamDestroy
        forget()
        use(tensor, consumer)
        assert not [call for call in new_calls() if f"stream={name}" in call or "invalid" in call], new_calls()
        assert not orders or read_on(consumer, array.memory.address, 6) == [NEW] * 6


def test_the_interface_dict_names_a_stream_that_lives_and_waits():
    array = slow_array(producer := new_stream())
    tensor = asdlpack(array)
    lib.fake_cuda_stream_forget(producer)
    stream = tensor.__cuda_array_interface__["stream"]
    assert stream not in (None, producer)
    assert read_on(stream, array.memory.address, 6) == [NEW] * 6


def test_events_are_used_again():
    array = slow_array(new_stream())
    asdlpack(array)
    forget()
    for _ in range(3):
        asdlpack(array)
    assert len(new_calls("event_record")) == 3
    assert new_calls("event_create") == []
    held = [asdlpack(array) for _ in range(3)]
    assert len({record.split()[1] for record in new_calls("event_record")[-3:]}) == 3
    del held


def test_a_copy_is_ordered_before_what_the_producer_does_next_on_its_stream():
    producer = new_stream()
    array = slow_array(producer)
    copy = asdlpack(array, copy=True)
    array.memory.fill(OLD, producer)  # as its pool would, which hands the memory out again
    lib.cuStreamSynchronize(producer)
    assert memoryview(asdlpack(copy, device="cpu")).tolist() == [[NEW] * 3] * 2


# ---- producers that say nothing of a stream


def _late_on_the_legacy_stream(make):
    memory = Memory()
    memory.set(OLD)
    memory.fill(NEW, 1)
    source = make(memory)
    tensor = asdlpack(source)
    consumer = new_stream()
    capsule = tensor.__dlpack__(stream=consumer, max_version=NEWEST)
    assert read_on(consumer, memory.address, 6) == [NEW] * 6
    return capsule


class OnlyCapsules:
    """__dlpack__ alone, with any arguments."""

    def __init__(self, memory):
        self.inner = DLPackArray(memory)

    def __dlpack__(self, **arguments):
        assert arguments.get("stream") is None
        return self.inner.__dlpack__(**arguments)


def test_an_object_that_names_no_device_is_ready_on_the_legacy_stream():
    _late_on_the_legacy_stream(OnlyCapsules)


def test_a_raw_capsule_is_ready_on_the_legacy_stream():
    _late_on_the_legacy_stream(lambda memory: DLPackArray(memory).__dlpack__(max_version=NEWEST))
    _late_on_the_legacy_stream(lambda memory: DLPackArray(memory).__dlpack__())


def test_a_producer_that_takes_no_stream_is_ready_on_the_legacy_stream():
    class Old(DLPackArray):
        def __dlpack__(self):
            return super().__dlpack__()

    _late_on_the_legacy_stream(Old)


def test_numba_means_the_legacy_stream_where_it_says_none():
    module = types.ModuleType("numba.cuda.cudadrv.devicearray")
    module.DeviceNDArrayBase = type("DeviceNDArrayBase", (), {})

    class NotNumbas(CaiArray, module.DeviceNDArrayBase):
        pass

    class DeviceNDArray(CaiArray, module.DeviceNDArrayBase):
        pass

    for stream in (None, ...):
        tensor = asdlpack(NotNumbas(Memory(), stream=stream))
        assert tensor.__cuda_array_interface__["stream"] is None  # nobody has imported Numba
    sys.modules[module.__name__] = module
    try:
        for stream in (None, ...):
            _late_on_the_legacy_stream(lambda memory, stream=stream: DeviceNDArray(memory, stream=stream))
        stream = new_stream()
        forget()
        asdlpack(DeviceNDArray(Memory(), stream=stream))
        assert new_calls("event_record")[0].endswith(f"stream={stream_name(stream)}")
        assert asdlpack(CaiArray(Memory(), stream=None)).__cuda_array_interface__["stream"] is None
    finally:
        del sys.modules[module.__name__]


def test_tvm_ffi_tensors_are_ready_on_the_stream_that_it_works_on():
    """Its __dlpack__ takes a stream and orders nothing."""
    module = types.ModuleType("tvm_ffi")
    works_on = 0
    module.get_raw_stream = lambda device: works_on

    class Tensor(DLPackArray):
        device = "cuda:0"

        def __dlpack__(self, *, stream=None, max_version=None):
            return DLPackArray(self.cuda_memory).__dlpack__(max_version=max_version)

    module.Tensor = Tensor
    sys.modules["tvm_ffi"] = module
    try:
        _late_on_the_legacy_stream(Tensor)
        works_on = new_stream()
        memory = Memory()
        memory.set(OLD)
        memory.fill(NEW, works_on)
        consumer = new_stream()
        capsule = asdlpack(Tensor(memory)).__dlpack__(stream=consumer, max_version=NEWEST)
        assert read_on(consumer, memory.address, 6) == [NEW] * 6
        del capsule
    finally:
        del sys.modules["tvm_ffi"]


def test_none_or_no_stream_means_ready():
    for stream in (None, ...):
        tensor = asdlpack(CaiArray(Memory(), stream=stream))
        forget()
        tensor.__dlpack__(stream=new_stream())
        assert new_calls("event_record", "stream_wait") == []
        assert tensor.__cuda_array_interface__["stream"] is None


def test_the_producers_default_streams():
    for stream, name in ((1, "legacy0"), (2, "per_thread0")):
        forget()
        consumer = new_stream()
        array = slow_array(stream)
        asdlpack(array).__dlpack__(stream=consumer)
        assert any(line.endswith(f"stream={name}") for line in new_calls("event_record"))
        assert read_on(consumer, array.memory.address, 6) == [NEW] * 6


def test_sync_switch_0_does_not_wait():
    tensor = asdlpack(slow_array(new_stream()))
    forget()
    tensor.__dlpack__(stream=new_stream())
    assert new_calls("event_record", "stream_wait") == []
    assert tensor.__cuda_array_interface__["stream"] is None
    refused(ValueError, "'stream' is 0", lambda: asdlpack(CaiArray(Memory(), stream=0)))


def test_a_producers_stream_of_another_context_is_waited_for():
    producer, consumer = new_stream(own_context=True), new_stream()
    array = slow_array(producer)
    depth = lib.fake_cuda_context_depth()
    asdlpack(array).__dlpack__(stream=consumer)
    assert read_on(consumer, array.memory.address, 6) == [NEW] * 6
    assert lib.fake_cuda_context_depth() == depth


def test_pinned_memory_is_ready_before_the_host_may_read_it():
    stream = new_stream()
    memory = Memory(kind="host")
    tensor = asdlpack(slow_array(stream, memory))
    assert type(tensor) is HostTensor
    assert memoryview(tensor).tolist() == [[NEW] * 3] * 2


def test_a_host_reader_waits_on_the_host():
    array = slow_array(new_stream())
    host = asdlpack(array, device="cpu")
    assert memoryview(host).tolist() == [[NEW] * 3] * 2
    capsule = asdlpack(slow_array(new_stream())).__dlpack__(dl_device=(CPU, 0), max_version=NEWEST)
    assert memoryview(asdlpack(capsule)).tolist() == [[NEW] * 3] * 2


# ---- graph capture


def test_capture_without_synchronisation_succeeds():
    consumer = new_stream()
    tensor = asdlpack(CaiArray(Memory(), stream=new_stream()))
    lib.fake_cuda_set_capture(consumer, 7)
    forget()
    tensor.__dlpack__(stream=-1, max_version=NEWEST)
    assert new_calls("event_record", "stream_wait", "capture_invalidated") == []
    ready = asdlpack(CaiArray(Memory()))
    ready.__dlpack__(stream=consumer, max_version=NEWEST)
    assert new_calls("event_record", "stream_wait", "capture_invalidated") == []


def test_capture_that_would_have_to_wait_is_refused_and_goes_on():
    producer, consumer = new_stream(), new_stream()
    for capturing in (producer, consumer):
        lib.fake_cuda_set_capture(capturing, 7)
        tensor = asdlpack(CaiArray(Memory(), stream=producer))
        forget()
        error = refused(ExchangeError, "graph is being captured", partial(tensor.__dlpack__, stream=consumer))
        assert "stream=-1" in str(error)
        assert new_calls("event_record", "stream_wait", "capture_invalidated") == []
        lib.fake_cuda_set_capture(capturing, 0)
    tensor.__dlpack__(stream=consumer)


def test_both_sides_in_one_capture_are_ordered():
    producer, consumer = new_stream(), new_stream()
    for stream in (producer, consumer):
        lib.fake_cuda_set_capture(stream, 7)
    tensor = asdlpack(CaiArray(Memory(), stream=producer))
    assert tensor.__cuda_array_interface__["stream"] == producer
    forget()
    tensor.__dlpack__(stream=consumer)
    assert len(new_calls("event_record", "stream_wait")) == 2
    lib.fake_cuda_set_capture(producer, 8)
    refused(ExchangeError, "captured", lambda: tensor.__dlpack__(stream=consumer))


def test_copies_and_host_waits_during_a_capture_are_refused():
    producer = new_stream()
    lib.fake_cuda_set_capture(producer, 7)
    tensor = asdlpack(CaiArray(Memory(), stream=producer))
    forget()
    with nothing_lost():
        refused(ExchangeError, "captured", lambda: asdlpack(tensor, device="cpu"))
        refused(ExchangeError, "captured", lambda: asdlpack(tensor, copy=True))
        refused(ExchangeError, "captured", lambda: tensor.__dlpack__(copy=True, stream=producer))
    assert new_calls("capture_invalidated", "memcpy_dtoh", "memcpy_dtod") == []


# ---- the C exchange API


_POINTER = ctypes.POINTER(ctypes.c_void_p)


class ExchangeTable(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _POINTER)),
        ("to_object", ctypes.c_void_p),
        ("borrow", ctypes.c_void_p),
        (
            "work_stream",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, _POINTER),
        ),
    )


def exchange_table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return ExchangeTable.from_address(pointer(CudaTensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def test_exchange_api_works_on_the_legacy_stream():
    table = exchange_table()
    for device in ((CPU, 0), (CUDA, 0), (CUDA, 1), (CUDA_MANAGED, 0)):
        stream = ctypes.c_void_p(1234)
        assert table.work_stream(*device, ctypes.byref(stream)) == 0
        assert stream.value is None  # the default stream, as CUDA itself calls it
    assert log() == []


def test_exchange_api_orders_the_work_stream_behind_the_producer():
    tensor = asdlpack(slow_array(new_stream()))
    forget()
    managed = ctypes.c_void_p()
    assert exchange_table().from_object(tensor, ctypes.byref(managed)) == 0
    assert "stream=legacy0 " in new_calls("stream_wait")[0]
    nothing_blocks()
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(DLManagedTensorVersioned.from_address(managed.value).deleter)(managed)
    assert _core.live_counts()["exports"] == 0


if __name__ == "__main__":
    main(globals())
