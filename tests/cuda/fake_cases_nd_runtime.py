"""dlbridge.nd.cuda without a GPU: devices, streams, events, graphs, and what remains of them.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes
import gc
import os
import pickle
import sys
import threading
from unittest.mock import MagicMock

import dlbridge
from dlbridge.nd import cuda
from fake_cuda import *


def test_devices_are_selected_described_and_checked():
    assert calls("ctx_retain") == [], "the import touched the driver"
    first, second = cuda.Device(0), cuda.Device(1)
    assert repr(second) == "<CUDA Device 1>"
    assert (cuda.Device() == first, first == second, hash(first) == hash(cuda.Device(0)), int(second)) == (
        True,
        False,
        True,
        1,
    )
    assert cuda.Device("cuda:1") == cuda.Device(second) == second == pickle.loads(pickle.dumps(second))
    with second as entered:
        assert entered is second
        assert cuda.Device() == second
        with first:
            assert cuda.Device().id == 0
            second.use()  # replaces what the inner block selected, no more
            assert cuda.runtime.getDevice() == 1
        assert cuda.Device() == second
    assert lib.fake_cuda_context_depth() == 0
    assert (second.name, second.total_memory, second.pci_bus_id) == ("Fake Device 1", 1 << 30, "0000:02:00.0")
    assert second.uuid == bytes([1]) * 16
    assert second.mem_info == (1 << 30, 1 << 30)
    assert second.compute_capability == "90"
    assert second.attributes["ComputeCapabilityMajor"] == 9
    assert second.stream_priority_range == (0, -5)
    second.synchronize()
    refused(ValueError, "cuda:7 does not exist", lambda: cuda.Device(7))
    refused(ValueError, "'cpu' is not a CUDA device", lambda: cuda.Device("cpu"))
    assert cuda.is_available()
    assert cuda.device_count() == cuda.runtime.getDeviceCount() == 2
    assert cuda.runtime.getDeviceProperties(1)["major"] == 9
    assert cuda.can_access_peer(first, 1)
    first.can_access_peer(second)
    cuda.enable_peer_access(0, 1)
    assert len(calls("enable_peer")) == 1
    os.environ["FAKE_CUDA_NO_PEERS"] = "1"
    ctypes.CDLL(None).setenv(b"FAKE_CUDA_NO_PEERS", b"1", 1)
    refused(ValueError, "no peer access", lambda: cuda.enable_peer_access(1, 0))


def test_each_thread_and_device_has_a_stream():
    null, ptds = cuda.Stream.null, cuda.Stream.ptds
    assert (null.ptr, null.device_id, ptds.ptr) == (0, -1, 2)
    assert cuda.get_current_stream() == null
    one, two = cuda.Stream(), cuda.Stream(non_blocking=True, priority=-2)
    assert (one.device_id, one.is_non_blocking, two.is_non_blocking, two.priority) == (0, False, True, -2)
    assert len({one, two, null, ptds}) == 4
    with one as entered:
        assert entered is one
        assert cuda.get_current_stream() is one
        with two:
            assert cuda.get_current_stream() is two
        assert cuda.get_current_stream() is one
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.get_current_stream()))
        thread.start()
        thread.join()
        assert seen == [null]
        assert cuda.get_current_stream(1) == null
    assert cuda.get_current_stream() == null
    assert two.use() is two
    del two
    gc.collect()
    assert cuda.get_current_stream().priority == -2  # being current keeps it
    null.use()
    with cuda.Device(1):
        refused(RuntimeError, "with Device(0)", one.use)
        refused(RuntimeError, "with Device(0)", one.__enter__)
        other = cuda.Stream()
        with other:
            assert cuda.get_current_stream() == other != one
    refused(ValueError, "not entered", lambda: one.__exit__(None, None, None))
    refused(ValueError, "two different default streams", lambda: cuda.Stream(null=True, ptds=True))


def test_streams_of_others_are_wrapped_and_their_device_is_checked():
    handle = new_stream(1)
    stream = cuda.ExternalStream(handle)
    assert (stream.ptr, stream.device_id, stream.__cuda_stream__()) == (handle, 1, (0, handle))
    assert cuda.ExternalStream(handle, 1) == stream
    refused(ValueError, "was made on cuda:1", lambda: cuda.ExternalStream(handle, 0))
    refused(ValueError, "is not a CUDA stream", lambda: cuda.ExternalStream(12345))
    refused(TypeError, "__cuda_stream__", lambda: cuda.ExternalStream("1"))
    refused(TypeError, "__cuda_stream__", lambda: cuda.ExternalStream(MagicMock()))  # has every attribute, at any depth
    assert cuda.ExternalStream(0) == cuda.Stream.null == cuda.ExternalStream(1)

    class Foreign:
        def __cuda_stream__(self):
            return 0, handle

    class Torchlike:
        cuda_stream = handle

    assert cuda.Stream.from_external(Foreign()) == cuda.ExternalStream(Torchlike()) == stream
    own = cuda.Stream(non_blocking=True)
    pointer = own.ptr
    del own
    gc.collect()
    assert cuda.Stream(non_blocking=True).ptr == pointer, "an own stream is given again, not destroyed"
    own = cuda.Stream()
    forget()
    own.wait_stream(stream)
    assert [line.split()[0] for line in new_calls("event_record", "stream_wait")] == ["event_record", "stream_wait"]


def test_events_order_and_time():
    stream = cuda.Stream()
    with stream:
        memory = cuda.alloc(64)
    start = stream.record()
    memory.memset_async(7, 64, stream)
    end = cuda.Event()
    end.record(stream)
    assert not end.done
    assert not stream.done
    refused(RuntimeError, "synchronize()", lambda: cuda.get_elapsed_time(start, end))
    other = cuda.Stream(non_blocking=True)
    other.wait_event(end)
    other.synchronize()  # the fake runs what `other` waits for
    assert end.done
    assert stream.done
    assert cuda.get_elapsed_time(start, end) == start.elapsed_time(end) == 1.0
    refused(RuntimeError, "Record both first", lambda: cuda.get_elapsed_time(cuda.Event(), end))
    with stream:
        assert cuda.get_current_stream().record(start) is start
    called = []
    timing = cuda.benchmark(lambda *a: called.append(a), (1, 2), n_repeat=5, n_warmup=2, name="nothing")
    assert (len(called), called[0], len(timing.cpu_times), len(timing.gpu_times[0])) == (7, (1, 2), 5, 5)
    assert str(timing).startswith("nothing ")
    refused(ValueError, "n_repeat is 0", lambda: cuda.benchmark(len, n_repeat=0))
    with cuda.nvtx.annotate("range"):
        cuda.nvtx.mark("point")
    del memory
    cuda.get_default_memory_pool().free_all_blocks()


def test_streams_call_python_functions():
    stream, seen, unraisable = cuda.Stream(), [], []
    stream.launch_host_func(seen.append, "one")
    stream.add_callback(lambda s, status, arg: seen.append((s is stream, status, arg)), "two")
    assert seen == []
    stream.synchronize()
    assert seen == ["one", (True, 0, "two")]
    sys.unraisablehook = unraisable.append
    stream.launch_host_func(lambda _: 1 / 0)
    stream.synchronize()
    assert [u.exc_type for u in unraisable] == [ZeroDivisionError]
    refused(TypeError, "not callable", lambda: stream.launch_host_func(3))
    unraisable.clear()
    references = sys.getrefcount(seen)
    for _ in range(10):
        stream.launch_host_func(seen.append, 0)
    stream.synchronize()
    assert sys.getrefcount(seen) == references


def test_a_graph_is_captured_once_and_launched_often():
    stream, seen = cuda.Stream(non_blocking=True), []
    outside = cuda.alloc(1024)
    refused(RuntimeError, "cannot be captured", cuda.Stream.null.begin_capture)
    refused(ValueError, "mode is 'fast'", lambda: stream.begin_capture("fast"))
    refused(RuntimeError, "end_capture", stream.end_capture)
    with stream:
        stream.begin_capture()
        assert stream.is_capturing()
        inside = cuda.alloc(1024)
        inside.memset_async(5, 16)
        outside.copy_from_device_async(inside, 16)
        stream.launch_host_func(seen.append, "launched")
        host = ctypes.create_string_buffer(16)
        refused(BufferError, "page-locked", lambda: outside.copy_from_host(ctypes.addressof(host), 16))
        graph = stream.end_capture()
    assert not stream.is_capturing()
    address = inside.ptr
    del inside
    gc.collect()
    graph.upload()
    graph.launch(stream)
    stream.synchronize()
    assert ctypes.string_at(outside.ptr, 16) == bytes([5] * 16)
    other = cuda.Stream(non_blocking=True)
    forget()
    graph.launch(other)
    assert len(new_calls("stream_wait")) == 2, "behind the stream of its arrays, and that one behind the launch"
    stream.synchronize()
    assert seen == ["launched", "launched"]
    with stream:
        assert cuda.alloc(1024).ptr != address
        del graph
        gc.collect()
        assert len(calls("graph_destroy")) == 1
        cuda.get_default_memory_pool().free_all_blocks()
        assert cuda.get_default_memory_pool().used_bytes() == 1024


def test_a_child_of_a_fork_is_told_so():
    held = cuda.alloc(1024), cuda.Stream()
    child = os.fork()
    if child == 0:
        try:
            for call in (lambda: cuda.alloc(10), cuda.Stream, cuda.Device):
                refused(dlbridge.CudaError, "fork", call)
            del held
            gc.collect()
            os._exit(0)
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    main(globals())
