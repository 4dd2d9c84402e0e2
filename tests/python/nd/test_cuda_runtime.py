"""dlbridge.nd.cuda on any machine: what works with no GPU, what is left at exit; and, marked gpu, the real driver.

The rest, on a driver of ours, is in tests/cuda/fake_cases_nd_*.py."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from pathlib import Path

import pytest
from child_process import fake_driver, run_python
from dlbridge import nd
from dlbridge.nd import cuda
from lifecycle_support import compile_shared

without_gpu = pytest.mark.skipif(cuda.is_available(), reason="a GPU is here")


@without_gpu
def test_without_a_driver_everything_says_why():
    assert cuda.device_count() == cuda.runtime.getDeviceCount() == 0
    assert cuda.runtime.unavailable_reason()
    assert (cuda.Stream.null.ptr, cuda.Stream.ptds.ptr) == (0, 2)
    for call in (
        cuda.Device,
        lambda: cuda.Device(0),
        cuda.Stream,
        cuda.Event,
        cuda.get_current_stream,
        cuda.Stream.null.synchronize,
        lambda: cuda.Stream.null.__enter__(),
        lambda: cuda.alloc(10),
        lambda: cuda.UnownedMemory(4096, 10, None),
        lambda: cuda.alloc_pinned_memory(10),
        cuda.get_default_memory_pool().used_bytes,
        lambda: cuda.get_default_memory_pool().set_limit(10),
        cuda.MemoryAsyncPool().used_bytes,
        lambda: cuda.enable_peer_access(0, 1),
        lambda: cuda.benchmark(len, ([],), n_repeat=1),
    ):
        with pytest.raises(RuntimeError, match="CUDA is not available"):
            call()


@without_gpu
def test_allocators_can_be_set_before_there_is_a_device():
    allocator = cuda.PythonFunctionAllocator(lambda size, device: 0, lambda pointer, device: None)
    with cuda.using_allocator(allocator):
        assert cuda.get_allocator() is allocator
        assert nd.zeros(3, device="cpu").tolist() == [0, 0, 0]
    assert cuda.get_allocator() == cuda.get_default_memory_pool().malloc


def test_modules_are_found_without_numpy_or_a_framework():
    code = (
        "import sys\nfrom dlbridge.nd import cuda\n"
        "assert not {'numpy', 'torch', 'cupy', 'rmm'} & set(sys.modules), sorted(sys.modules)\n"
        "assert sorted(set(cuda.__all__) - set(dir(cuda))) == []\n"
    )
    run_python(code)


LEFT_OVERS = """
import atexit
from dlbridge import nd
from dlbridge.nd import cuda
stream = cuda.Stream(non_blocking=True)
event, graph = stream.record(), None
held = [cuda.alloc(1000), cuda.MemoryPool(), cuda.alloc_pinned_memory(10)]
held.append(nd.ndarray(10, "uint8", memptr=cuda.alloc(10)))
cuda.set_allocator(cuda.PythonFunctionAllocator(lambda size, device: cuda.UnownedMemory, print))
stream.use()
held.append(held)
class Late:
    def __init__(self): self.held, self.stream = held, stream
    def __del__(self): self.held[0].memset_async
late = Late()
late.cycle = late
atexit.register(lambda: held[0].ptr)
"""


def test_exit_with_live_memory_and_streams_is_silent(fake_driver_environment):
    done = run_python(LEFT_OVERS, **fake_driver_environment)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.fixture(scope="module")
def fake_driver_environment(tmp_path_factory):
    """The environment of a process whose driver is tests/cuda/fake_libcuda.c."""
    folder = tmp_path_factory.mktemp("fake_cuda")
    compile_shared(Path(__file__).resolve().parents[2] / "cuda" / "fake_libcuda.c", folder, "libcuda.so.1")
    return fake_driver(folder)


# ---- the real driver


@pytest.mark.gpu
def test_large_pageable_copies_arrive_both_ways():
    size = (9 << 20) + 12345
    source = bytes(range(256)) * (size // 256 + 1)
    pointer = cuda.alloc(size)
    for stream in (cuda.Stream.null, cuda.Stream(non_blocking=True)):
        pointer.memset_async(0, size, stream)
        pointer.copy_from_host_async(_address(source), size, stream)
        back = bytearray(size)
        pointer.copy_to_host_async(ctypes.addressof((ctypes.c_char * size).from_buffer(back)), size, stream)
        assert back == source[:size]


@pytest.mark.gpu
def test_memory_crosses_streams_behind_events():
    size = 64 << 20
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    host = bytearray(size)
    address = ctypes.addressof((ctypes.c_char * size).from_buffer(host))
    cuda.get_default_memory_pool().free_all_blocks()  # what tests before have left could serve, too
    reused = 0
    for turn in range(20):
        with first:
            one = cuda.alloc(size)
            for value in range(8):
                one.memset_async(value, size)
            where = one.ptr
            del one
        with second:
            two = cuda.alloc(size)
            reused += two.ptr == where
            two.memset_async(100 + turn, size)
            two.copy_to_host(address, size)
            assert host.count(bytes([100 + turn])) == size
            del two
    assert reused


@pytest.mark.gpu
def test_a_graph_replays_and_gives_its_memory_back():
    pool = cuda.MemoryPool()
    stream = cuda.Stream(non_blocking=True)
    host = bytearray(1024)
    with cuda.using_allocator(pool.malloc), stream:
        out = cuda.alloc(1024)
        stream.begin_capture()
        inner = cuda.alloc(1024)
        inner.memset_async(42, 1024)
        out.copy_from_device_async(inner, 1024)
        graph = stream.end_capture()
        del inner
        for _ in range(3):
            out.memset_async(0, 1024)
            graph.launch()
            out.copy_to_host(ctypes.addressof((ctypes.c_char * 1024).from_buffer(host)), 1024)
            assert host == bytes([42]) * 1024
        del graph, out
    gc.collect()
    pool.free_all_blocks()
    assert pool.total_bytes() == 0


@pytest.mark.gpu
@pytest.mark.parametrize("make", [cuda.ExternalStream, cuda.Stream.from_external])
def test_an_external_stream_keeps_the_object_that_has_it_alive(make):
    class Theirs:
        def __init__(self):
            self.stream = cuda.Stream()

        def __cuda_stream__(self):
            return 0, self.stream.ptr

    theirs = Theirs()
    alive = weakref.ref(theirs)
    stream = make(theirs)
    del theirs
    gc.collect()
    assert alive() is not None
    del stream
    gc.collect()
    assert alive() is None


@pytest.mark.gpu
def test_a_device_is_in_order_with_devices_alone():
    assert cuda.Device(0) <= cuda.Device(0)
    assert not cuda.Device(0) < cuda.Device(0)
    with pytest.raises(TypeError):
        cuda.Device(0) < 1  # noqa: B015


@pytest.mark.gpu
def test_vectorized_functions_may_compute_on_the_device():
    x = nd.arange(4.0, device="cuda:0")
    assert nd.vectorize(lambda a: (nd.add(a, 1), nd.sqrt(a)))(x)[0].tolist() == [1, 2, 3, 4]


@pytest.mark.gpu
def test_bytes_of_an_array_are_those_of_its_elements():
    x = nd.arange(6, dtype="int16", device="cuda:0").reshape(2, 3).T
    assert bytes(x) == bytes(nd.asnumpy(x).tobytes())
    assert bytes(nd.asarray(3, device="cuda:0")) == bytes(3)


@pytest.mark.gpu
def test_a_capture_whose_stream_is_gone_holds_nothing_up():
    stream = cuda.Stream()  # blocking: the legacy stream takes no work while it captures
    stream.begin_capture()
    del stream
    gc.collect()
    memory = cuda.alloc(16)
    with cuda.Stream.null:
        memory.memset_async(7, 16)
    host = bytearray(16)
    memory.copy_to_host(ctypes.addressof((ctypes.c_char * 16).from_buffer(host)), 16)
    assert host == bytes([7]) * 16


@pytest.mark.gpu
def test_out_of_memory_has_figures_and_everything_works_again():
    free, total = cuda.Device().mem_info
    with pytest.raises(MemoryError, match=rf"of {total} bytes free"):
        cuda.alloc(total * 2)
    assert cuda.alloc(min(free, 1 << 30) // 2).ptr
    cuda.get_default_memory_pool().free_all_blocks()


@pytest.mark.gpu
def test_torchs_allocator_serves_arrays():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    before = torch.cuda.memory_allocated()
    cuda.use_torch_allocator()
    try:
        pointer = cuda.alloc(4 << 20)
        assert torch.cuda.memory_allocated() - before == 4 << 20
        side = torch.cuda.Stream()
        with cuda.ExternalStream(side.cuda_stream):
            other = cuda.alloc(4 << 20)
            other.memset_async(3, 4 << 20)
        pointer.copy_from_device(other, 4 << 20)
        back = bytearray(16)
        pointer.copy_to_host(ctypes.addressof((ctypes.c_char * 16).from_buffer(back)), 16)
        assert back == bytes([3] * 16)
        del pointer, other
        gc.collect()
        assert torch.cuda.memory_allocated() == before
        with pytest.raises(MemoryError, match="OutOfMemoryError"):
            cuda.alloc(1 << 45)
    finally:
        cuda.reset_allocator()


@pytest.mark.gpu
def test_rmms_resource_serves_arrays():
    rmm = pytest.importorskip("rmm")
    previous = rmm.mr.get_current_device_resource()
    counted = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaMemoryResource())
    rmm.mr.set_current_device_resource(counted)
    try:
        with cuda.using_allocator(cuda.rmm_allocator):
            x = nd.arange(1 << 20, dtype="int32", device="cuda")
            with cuda.Stream(non_blocking=True):
                y = x * 2 + 1
            assert counted.allocation_counts.current_count >= 2
            assert int(y.sum()) == (1 << 20) ** 2
            del x, y
            gc.collect()
            assert counted.allocation_counts.current_bytes == 0
            with pytest.raises(MemoryError):
                cuda.alloc(1 << 45)
            assert nd.ones(3, device="cuda").tolist() == [1, 1, 1]
    finally:
        rmm.mr.set_current_device_resource(previous)


def _address(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


@pytest.mark.gpu
def test_arrays_in_memory_of_malloc_managed_say_so():
    with cuda.using_allocator(cuda.malloc_managed):
        x = nd.ones(3)
        assert x.__dlpack_device__()[0] == 13 and (x + x).tolist() == [2, 2, 2]
    assert nd.ones(3).__dlpack_device__()[0] == 2


@pytest.mark.gpu
@pytest.mark.parametrize("make", [cuda.MemoryPool, cuda.MemoryAsyncPool], ids=["MemoryPool", "MemoryAsyncPool"])
def test_pools_serve_arrays_on_a_thread_where_no_device_is_current(make):
    seen = []

    def work():
        with cuda.using_allocator(make()):
            x = nd.ones(3, device="cuda")
            seen.append((x + x).tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [[2, 2, 2]]
