"""dlbridge.nd.cuda without a GPU: memory, pools and allocators.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes
import gc
import sys
import threading
import types
import weakref

from dlbridge import nd
from dlbridge.nd import cuda
from fake_cuda import *
from lifecycle_support import CUDA, CUDA_MANAGED, Consumed

MIB = 1 << 20
pool = cuda.get_default_memory_pool()


def new_array(count, dtype="uint8"):
    """An array in memory of the current allocator; the fake has no kernels, without which nd.empty() stays away."""
    itemsize = {"uint8": 1, "int32": 4}[dtype]
    return nd.ndarray((count,), dtype, memptr=cuda.alloc(count * itemsize))


def test_pointers_reach_into_memory_and_no_further():
    pointer = cuda.alloc(1000)
    assert pointer.mem.size == 1000
    assert pointer.ptr == pointer.mem.ptr == int(pointer)
    assert ((pointer + 10).ptr, (10 + pointer - 4).ptr) == (pointer.ptr + 10, pointer.ptr + 6)
    assert (pointer + 10).mem == pointer.mem
    assert repr(pointer.device) == "<CUDA Device 0>"
    text = ctypes.create_string_buffer(b"0123456789", 10)
    pointer.copy_from_host(ctypes.addressof(text), 10)
    back = ctypes.create_string_buffer(10)
    (pointer + 2).copy_to_host(ctypes.addressof(back), 8)
    assert back.raw == b"23456789\0\0"
    other = cuda.alloc(16)
    other.copy_from(pointer + 5, 5)
    other.copy_from_device(pointer, 1)
    other.memset(ord("x"), 1)
    (other + 1).copy_from_async(ctypes.c_void_p(ctypes.addressof(text)), 1)
    other.copy_to_host(ctypes.c_void_p(ctypes.addressof(back)), 5)
    assert back.raw[:5] == b"x0789"
    with cuda.Device(1):
        far = cuda.alloc(16)
        assert far.device_id == 1
        forget()
        far.copy_from_device(pointer, 10)
        assert len(new_calls("memcpy_peer")) == 1
        far.copy_to_host(ctypes.addressof(back), 10)
    assert back.raw == b"0123456789"
    for call in (
        lambda: pointer.memset(0, 1001),
        lambda: (pointer - 1).memset(0, 1),
        lambda: other.copy_from_device(pointer + 995, 10),
        lambda: (other + 10).copy_to_host(ctypes.addressof(back), 7),
    ):
        refused(ValueError, "leave the memory of", call)
    refused(TypeError, "Give an int", lambda: pointer.copy_from_host("text", 1))
    refused(TypeError, "mem is list", lambda: cuda.MemoryPointer([1], 0))


def test_memory_of_others_is_kept_and_arrays_are_made_of_it():
    class Owner:
        pass

    block, owner = Memory(64), Owner()
    alive = weakref.ref(owner)
    memory = cuda.UnownedMemory(block.address, 256, owner)
    assert (memory.ptr, memory.size, memory.device_id) == (block.address, 256, 0)
    array = nd.ndarray((4, 4), "int32", memptr=cuda.MemoryPointer(memory, 16))
    assert array.data.ptr == block.address + 16
    assert array.data.mem == memory
    assert array.data.mem.size == 256
    refused(ValueError, "bytes", lambda: nd.ndarray((64,), "int32", memptr=cuda.MemoryPointer(memory, 16)))
    refused(ValueError, "is not CUDA memory", lambda: cuda.UnownedMemory(id(block), 8, None))
    refused(ValueError, "cuda:9", lambda: cuda.UnownedMemory(block.address, 8, None, 9))
    assert cuda.UnownedMemory(block.address, 8, None, device_id=1).device_id == 1
    owner = memory = None
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None

    class Foreign:  # another library's pointer
        ptr, mem = block.address + 4, cuda.UnownedMemory(block.address, 256, None)

    assert nd.ndarray((2,), "int32", memptr=Foreign()).data.ptr == block.address + 4
    refused(TypeError, "Give a MemoryPointer", lambda: nd.ndarray((2,), "int32", memptr=7))


def test_the_pool_has_figures_a_limit_and_words_for_its_end():
    a = new_array(1000)
    assert (pool.used_bytes(), pool.total_bytes(), pool.n_free_blocks()) == (1024, 2 * MIB, 1)
    assert pool.free_bytes() == 2 * MIB - 1024
    del a
    assert pool.used_bytes() == 0
    assert pool.peak_bytes() == 1024
    pool.set_limit(8 * MIB)
    assert pool.get_limit() == 8 * MIB
    big = new_array(6 * MIB)
    error = refused(MemoryError, "limit 8388608", lambda: new_array(6 * MIB))
    for word in ("6291456 bytes", "6291456 bytes in use", "set_limit"):
        assert word in str(error)
    cycle = [big]
    cycle.append(cycle)
    del big, cycle  # garbage that only the collector frees
    gc.disable()
    again = new_array(6 * MIB)
    gc.enable()
    del again
    pool.set_limit(0)
    pool.set_limit(fraction=0.5)
    assert pool.get_limit() == 1 << 29
    refused(ValueError, "give either", lambda: pool.set_limit(1, fraction=1.0))
    pool.set_limit(0)
    lib.fake_cuda_fail_alloc_after(0)
    new_array(32 * MIB)  # the first try fails, the cache goes back, the second succeeds
    stream = cuda.Stream()
    with stream:
        new_array(100)
    pool.free_all_blocks(stream)
    pool.free_all_blocks()
    assert (pool.total_bytes(), pool.n_free_blocks()) == (0, 0)
    assert lib.fake_cuda_live_bytes() == 0
    assert pool.statistics()["peak_total_bytes"] == 34 * MIB
    with cuda.Device(1):
        assert pool.statistics()["peak_total_bytes"] == 0
    assert calls("stream_synchronize", "event_synchronize", "ctx_synchronize") == []


def test_every_kind_of_pool_serves_arrays():
    default = cuda.get_allocator()
    assert default == pool.malloc
    mine, managed, driver = cuda.MemoryPool(), cuda.MemoryPool(cuda.malloc_managed), cuda.MemoryAsyncPool()
    for allocator, device in (
        (mine.malloc, CUDA),
        (managed.malloc, CUDA_MANAGED),
        (cuda.malloc_managed, CUDA_MANAGED),
        (driver.malloc, CUDA),
        (None, CUDA),
    ):
        cuda.set_allocator(allocator)
        assert cuda.get_allocator() == allocator
        array = new_array(3 * MIB)
        assert array.__dlpack_device__() == (device, 0), allocator
        assert cuda.alloc(10).mem.size == 10
        del array
    assert mine.total_bytes() == managed.total_bytes() == 6 * MIB
    assert len(calls("pool_create")) == 1
    assert len(calls("alloc_async")) == 4
    with cuda.using_allocator(mine.malloc):
        assert cuda.get_allocator() == mine.malloc
        with cuda.using_allocator():
            assert cuda.get_allocator() is None
        assert cuda.get_allocator() == mine.malloc
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.get_allocator()))
        thread.start()
        thread.join()
        assert seen == [None]
        held = new_array(10)
    cuda.reset_allocator()
    assert cuda.get_allocator() == default
    assert mine.used_bytes() == 512
    del mine, managed
    gc.collect()
    live = lib.fake_cuda_live_bytes()
    del held  # its pool is gone, and gives the memory back
    assert lib.fake_cuda_live_bytes() == live - 2 * MIB
    assert cuda.Memory(100).size == 100
    assert cuda.ManagedMemory(100).size == 100
    assert cuda.malloc_async(5).mem.size == 5
    driver.free_all_blocks()
    assert driver.used_bytes() == driver.total_bytes()
    refused(ValueError, "allocator is 3", lambda: cuda.MemoryPool(3))
    refused(ValueError, "pool_handles", lambda: cuda.MemoryAsyncPool("mine"))


def test_functions_allocate_raise_and_leave_nothing():
    live, log, unraisable = {}, [], []

    def malloc(size, device):
        log.append((size, device))
        memory = Memory(size // 4 + 1, device)
        live[memory.address] = memory
        return memory.address

    def free(pointer, device):
        log.append((pointer, device))
        del live[pointer]

    cuda.set_allocator(cuda.PythonFunctionAllocator(malloc, free).malloc)
    gc.collect()  # the allocator lives on in what is set
    array = new_array(1000)
    address = array.data.ptr
    assert (log, list(live)) == ([(1000, 0)], [address])
    consumed = Consumed(array.__dlpack__(stream=1, max_version=NEWEST))
    del array
    thread = threading.Thread(target=consumed.delete)  # without the GIL
    thread.start()
    thread.join()
    for _ in range(1000):
        if not live:
            break
    assert live == {}

    small, far = Memory(1), Memory(3, 1)
    for function, error, text in (
        (lambda size, device: small.address, RuntimeError, "not 10 bytes on cuda:0"),
        (lambda size, device: far.address, RuntimeError, "not 10 bytes on cuda:0"),
        (lambda size, device: 4096, RuntimeError, "not 10 bytes on cuda:0"),
        (lambda size, device: 1 / 0, RuntimeError, "raised ZeroDivisionError: division by zero"),
        (lambda size, device: "text", RuntimeError, "TypeError"),
        (lambda size, device: 0, MemoryError, "null pointer"),
        (lambda size: 1, RuntimeError, "TypeError"),
        (lambda size, device: (_ for _ in ()).throw(MemoryError("mine")), MemoryError, "mine"),
    ):
        with cuda.using_allocator(cuda.PythonFunctionAllocator(function, lambda pointer, device: None)):
            refused(error, text, lambda: new_array(10))
    with cuda.using_allocator(lambda size: pool.malloc(size // 2)):  # of its pool's block there would be enough
        refused(RuntimeError, "not 10 bytes on cuda:0", lambda: new_array(10))
    sys.unraisablehook = unraisable.append
    with cuda.using_allocator(cuda.PythonFunctionAllocator(malloc, lambda pointer, device: 1 / 0)):
        new_array(10)
    assert [u.exc_type for u in unraisable] == [ZeroDivisionError]
    live.clear()
    references = sys.getrefcount(free)
    for _ in range(20):
        with cuda.using_allocator(cuda.PythonFunctionAllocator(malloc, free)):
            new_array(10)
    gc.collect()
    assert sys.getrefcount(free) == references
    refused(TypeError, "not callable", lambda: cuda.PythonFunctionAllocator(1, 2))
    cuda.reset_allocator()
    assert live == {}


def test_streams_and_pointers_are_those_of_the_allocators_owner():
    asked = []

    def malloc(size, device, stream):
        asked.append(stream)
        memories.append(Memory(size))
        return memories[-1].address

    memories = []
    stream, other = cuda.Stream(non_blocking=True), cuda.ExternalStream(new_stream())
    with cuda.using_allocator(cuda.PythonFunctionAllocator(malloc, lambda p, d: None, with_stream=True)):
        pointer = cuda.alloc(64)
        with stream:
            second = cuda.alloc(64)
        second.memset_async(1, 4, other)
        forget()
        del second
        assert [line.split()[0] for line in new_calls("event_record", "stream_wait")] == ["event_record", "stream_wait"]
        assert asked == [0, stream.ptr]
        del pointer

    class Pointer:
        def __init__(self, size):
            self.memory = Memory(size)
            self.ptr = self.memory.address

    pointers = []

    def allocate(size):
        pointers.append(weakref.ref(made := Pointer(size)))
        return made

    cuda.set_allocator(allocate)
    array = new_array(4, "int32")
    assert array.data.ptr == pointers[0]().ptr
    del array
    gc.collect()
    assert pointers[0]() is None
    cuda.set_allocator(lambda size: None)
    refused(RuntimeError, "AttributeError", lambda: new_array(4, "int32"))
    cuda.reset_allocator()


def test_rmm_and_torch_are_asked_in_their_own_words():
    asked, freed = [], []

    class DeviceBuffer:
        def __init__(self, size, stream):
            self.memory, self.size = Memory(size), size
            self.ptr = self.memory.address
            asked.append(stream)

    def stand_in(name, **members):
        module = sys.modules[name] = types.ModuleType(name)
        vars(module).update(members)
        return module

    default = object()
    streams = stand_in("rmm.pylibrmm.stream", DEFAULT_STREAM=default, Stream=lambda stream: stream.__cuda_stream__())
    stand_in("rmm.pylibrmm", stream=streams)
    stand_in("rmm", DeviceBuffer=DeviceBuffer)
    side = cuda.Stream()
    with cuda.using_allocator(cuda.rmm_allocator):
        one = cuda.alloc(10)
        with side:
            two = cuda.alloc(10)
        assert asked == [default, (0, side.ptr)]
        two.memset(1, 10)
        del one, two
    streams.Stream = lambda stream: 1 + ""
    with cuda.using_allocator(cuda.rmm_allocator), side:
        refused(RuntimeError, "Update rmm", lambda: cuda.alloc(10))

    memories = {}

    def caching_allocator_alloc(size, device, stream):
        memory = Memory(size)
        memories[memory.address] = memory
        asked.append((size, device, stream))
        return memory.address

    torch_cuda = stand_in("torch.cuda", is_available=lambda: False, init=lambda: None)
    torch_cuda.caching_allocator_alloc = caching_allocator_alloc
    torch_cuda.caching_allocator_delete = lambda pointer: freed.append(memories.pop(pointer))
    stand_in("torch", cuda=torch_cuda)
    refused(RuntimeError, "this PyTorch has no CUDA", cuda.use_torch_allocator)
    torch_cuda.is_available = lambda: True
    cuda.use_torch_allocator()
    cuda.use_torch_allocator()
    array = new_array(100)
    assert asked[-1] == (100, 0, 0)
    del array
    assert (len(freed), memories) == (1, {})
    cuda.reset_allocator()


def test_pinned_memory_is_a_numpy_array_and_comes_back():
    import numpy as np

    pinned = cuda.get_default_pinned_memory_pool()
    array = cuda.zeros_pinned((3, 4), "int16")
    assert (array.shape, array.dtype, array.sum(), array.flags.writeable) == ((3, 4), np.int16, 0, True)
    assert len(calls("host_alloc")) == 1
    assert pinned.used_bytes() == 512
    like = cuda.empty_like_pinned(np.asfortranarray(np.ones((2, 3), "f4")))
    assert (like.flags.f_contiguous, like.dtype, like.shape) == (True, np.float32, (2, 3))
    assert cuda.zeros_like_pinned(like, "f8").dtype == np.float64
    assert cuda.empty_pinned(()).shape == ()
    assert cuda.empty_pinned((0, 3)).size == 0
    assert len(memoryview(cuda.alloc_pinned_memory(100))) == 100
    refused(ValueError, "negative", lambda: cuda.empty_pinned((-1,)))
    address = array.ctypes.data
    del array, like
    gc.collect()
    assert cuda.empty_pinned(10).ctypes.data == address
    assert pinned.used_bytes() == 0
    pinned.free_all_blocks()
    assert pinned.total_bytes() == 0


if __name__ == "__main__":
    main(globals())
