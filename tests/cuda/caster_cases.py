"""Device arrays as arguments of tests/pybind/caster_module.cpp, for test_caster_lifetimes.py: each case runs in an
interpreter of its own with fake_libcuda.c as libcuda.so.1. Usage: caster_cases.py CASE MODULE."""

import importlib.util
import sys

from dlbridge import Tensor, asdlpack, nd
from fake_cuda import (
    NEW,
    CaiArray,
    DLPackArray,
    Memory,
    calls,
    forget,
    main,
    new_calls,
    new_stream,
    nothing_blocks,
    read_now,
    read_on,
    refused,
    slow_array,
    stream_name,
)

spec = importlib.util.spec_from_file_location("caster_module", sys.argv[2])
ext = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ext)


def the_named_stream_waits():
    producer, consumer = new_stream(), new_stream()
    array = slow_array(producer)
    forget()
    assert ext.ints_on_gpu(array, stream=consumer) == (array.memory.address, consumer)
    nothing_blocks()
    assert len(new_calls("stream_wait")) == 1
    assert read_on(consumer, array.memory.address, 6) == [NEW] * 6
    array = slow_array(1)
    forget()
    assert ext.ints_on_gpu(array, stream=1)[1] == 1
    assert new_calls("event_record", "stream_wait") == []


def none_is_the_legacy_stream():
    array = slow_array(new_stream())
    assert ext.ints_on_gpu(array) == (array.memory.address, 1)
    assert ext.ints_anywhere(array) == array.memory.address
    nothing_blocks()
    assert any(stream_name(1) in line for line in calls("stream_wait")), calls("stream_wait")


def the_order_needs_no_gil():
    producer, consumer = new_stream(), new_stream()
    array = slow_array(producer)
    assert ext.ints_unlocked(array, consumer) == array.memory.address
    assert read_on(consumer, array.memory.address, 6) == [NEW] * 6
    tensor = asdlpack(slow_array(producer))
    assert ext.ints_unlocked(tensor, stream=consumer) == tensor.data_ptr
    assert read_on(consumer, tensor.data_ptr, 6) == [NEW] * 6


def a_host_function_refuses_a_device_array():
    refused(TypeError, "expected dtype float32", lambda: ext.matrix(CaiArray(Memory())))
    array = CaiArray(Memory(), typestr="<f4")
    error = refused(TypeError, "matrix(): argument 'a': expected device cpu", lambda: ext.matrix(array))
    assert "cuda:0, writable]. Hint: dlbridge.asdlpack(a, device='cpu')" in str(error)
    assert ext.any(array)[3:] == ("float32", "cuda:0", False)


def a_device_function_refuses_what_does_not_fit():
    refused(TypeError, "expected shape (*, *, 3), got (2, 3)", lambda: ext.on_gpu(CaiArray(Memory(), typestr="<f4")))
    read_only = CaiArray(Memory(), shape=(1, 2, 3), typestr="<f4")
    read_only.interface["data"] = (read_only.memory.address, True)
    refused(TypeError, "expected writable memory", lambda: ext.on_gpu(read_only))
    managed = DLPackArray(Memory(kind="managed"), managed=True)
    assert ext.ints_on_gpu(managed)[0] == managed.cuda_memory.address
    refused(TypeError, "expected device cpu", lambda: ext.total_unlocked(managed))


def conversion_moves_between_devices():
    array = CaiArray(Memory())
    assert ext.ints_to_host(array) == 15
    assert ext.ints_to_gpu(memoryview(bytearray(24)).cast("i", (2, 3))) == "cuda:0"
    assert read_now(array.memory.address, 6) == list(range(6))


def a_stream_that_is_none_is_refused():
    array = CaiArray(Memory())
    refused((ValueError, BufferError, RuntimeError), "stream", lambda: ext.ints_on_gpu(array, stream=0))
    refused((ValueError, BufferError, RuntimeError), "stream", lambda: ext.ints_on_gpu(array, stream=12345))


def results_on_a_device_carry_their_stream():
    stream, other, memory = new_stream(), new_stream(), Memory()
    memory.fill(NEW, stream)
    made = ext.made_on(memory.address, stream)
    assert (made.device, made.data_ptr) == ("cuda:0", memory.address)
    assert ext.ints_on_gpu(made, stream=other)[0] == memory.address
    assert read_on(other, memory.address, 6) == [NEW] * 6


def results_like_device_arrays_stay_on_the_device():
    array, stream, memory = CaiArray(Memory()), new_stream(), Memory()
    assert ext.same_device_array(array) is array
    memory.fill(NEW, stream)
    given = nd.asarray(CaiArray(Memory()))
    made = ext.like_made_on(given, memory.address, stream)
    assert (type(made), made.device) == (type(given), given.device)
    assert read_on(stream, made.data_ptr, 6) == [NEW] * 6
    assert type(ext.like_made_on(array, memory.address, stream)).__mro__[1] is Tensor


def the_named_stream_of_a_visit_waits():
    producer, consumer = new_stream(), new_stream()
    array = slow_array(producer)
    assert ext.visited_on_gpu(array, stream=consumer)[0] == array.memory.address
    nothing_blocks()
    assert read_on(consumer, array.memory.address, 6) == [NEW] * 6
    refused(TypeError, "expected device cpu", lambda: ext.visited(CaiArray(Memory())))


if __name__ == "__main__":
    main(globals())
