"""The CUDA side without a GPU: who waits for whom, graph capture, and the stream of the exchange API.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes

from dlbridge import CudaTensor, ExchangeError, HostTensor, _core, asdlpack
from fake_cuda import (
    NEW,
    NEWEST,
    OLD,
    CaiArray,
    Memory,
    forget,
    lib,
    log,
    main,
    new_calls,
    new_stream,
    nothing_blocks,
    peek,
    read_now,
    read_on,
    refused,
    slow_array,
    stream_name,
)
from lifecycle_support import CPU, CUDA, CUDA_MANAGED, Versioned, nothing_lost

# What the interpreter of a case is started with, beside the fake.
ENVIRONMENT = {
    "test_sync_switch_0_does_not_wait": {"DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC": "0"},
}


# ---- who waits for whom


def test_e14_the_consumer_waits_by_an_event_and_the_host_does_not():
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


def test_f34_negative_control_no_wait_no_data():
    producer, consumer = new_stream(), new_stream()
    array = slow_array(producer)
    forget()
    asdlpack(array).__dlpack__(stream=-1, max_version=NEWEST)
    assert new_calls("event_record", "stream_wait", "stream_synchronize") == []
    assert read_on(consumer, array.memory.address, 6) == [OLD] * 6


def test_e14_none_is_the_legacy_default_stream():
    for arguments in ({}, {"stream": None}, {"stream": 1}):
        array = slow_array(new_stream())
        forget()
        asdlpack(array).__dlpack__(**arguments)
        (wait,) = new_calls("stream_wait")
        assert "stream=legacy0 " in wait
        nothing_blocks()


def test_e14_two_is_the_per_thread_stream():
    array = slow_array(new_stream())
    forget()
    asdlpack(array).__dlpack__(stream=2)
    assert "stream=per_thread0 " in new_calls("stream_wait")[0]


def test_e14_zero_and_nonsense_are_refused():
    tensor = asdlpack(slow_array(new_stream()))
    refused(ValueError, "0 could mean either", lambda: tensor.__dlpack__(stream=0))
    refused(ValueError, "stream -2", lambda: tensor.__dlpack__(stream=-2))
    refused(TypeError, "stream is bool", lambda: tensor.__dlpack__(stream=True))
    refused(TypeError, "stream is str", lambda: tensor.__dlpack__(stream="1"))
    refused(ValueError, "no CUDA stream", lambda: tensor.__dlpack__(stream=12345))
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
    stream = new_stream()
    tensor = asdlpack(slow_array(stream))
    forget()
    tensor.__dlpack__(stream=stream, max_version=NEWEST)
    asdlpack(tensor, stream=stream)
    assert new_calls("event_record", "stream_wait") == []


def test_e30_none_or_no_stream_means_ready():
    for stream in (None, ...):
        tensor = asdlpack(CaiArray(Memory(), stream=stream))
        forget()
        tensor.__dlpack__(stream=new_stream())
        assert new_calls("event_record", "stream_wait") == []
        assert tensor.__cuda_array_interface__["stream"] is None


def test_e30_the_producers_default_streams():
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


# ---- fault 33: graph capture


def test_f33_capture_without_synchronisation_succeeds():
    consumer = new_stream()
    tensor = asdlpack(CaiArray(Memory(), stream=new_stream()))
    lib.fake_cuda_set_capture(consumer, 7)
    forget()
    tensor.__dlpack__(stream=-1, max_version=NEWEST)
    assert new_calls("event_record", "stream_wait", "capture_invalidated") == []
    ready = asdlpack(CaiArray(Memory()))
    ready.__dlpack__(stream=consumer, max_version=NEWEST)
    assert new_calls("event_record", "stream_wait", "capture_invalidated") == []


def test_f33_capture_that_would_have_to_wait_is_refused_and_goes_on():
    producer, consumer = new_stream(), new_stream()
    tensor = asdlpack(CaiArray(Memory(), stream=producer))
    for capturing in (producer, consumer):
        lib.fake_cuda_set_capture(capturing, 7)
        forget()
        error = refused(ExchangeError, "graph is being captured", lambda: tensor.__dlpack__(stream=consumer))
        assert "stream=-1" in str(error)
        assert new_calls("event_record", "stream_wait", "capture_invalidated") == []
        lib.fake_cuda_set_capture(capturing, 0)
    tensor.__dlpack__(stream=consumer)


def test_f33_both_sides_in_one_capture_are_ordered():
    producer, consumer = new_stream(), new_stream()
    tensor = asdlpack(CaiArray(Memory(), stream=producer))
    for stream in (producer, consumer):
        lib.fake_cuda_set_capture(stream, 7)
    forget()
    tensor.__dlpack__(stream=consumer)
    assert len(new_calls("event_record", "stream_wait")) == 2
    lib.fake_cuda_set_capture(producer, 8)
    refused(ExchangeError, "captured", lambda: tensor.__dlpack__(stream=consumer))


def test_f33_copies_and_host_waits_during_a_capture_are_refused():
    producer = new_stream()
    tensor = asdlpack(CaiArray(Memory(), stream=producer))
    lib.fake_cuda_set_capture(producer, 7)
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
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(Versioned.from_address(managed.value).deleter)(managed)
    assert _core.live_counts()["exports"] == 0


if __name__ == "__main__":
    main(globals())
