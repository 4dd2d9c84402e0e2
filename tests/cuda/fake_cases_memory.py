"""The CUDA side without a GPU: copies, failing allocations, and what is left behind.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes
import gc
import os
import pickle
import threading
import warnings

from dlbridge import CopyError, CudaError, asdlpack
from dlbridge.tests.conformance._abi import IS_COPIED
from fake_cuda import *
from lifecycle_support import CPU, CUDA, Consumed, nothing_lost

# What the interpreter of a case is started with, beside the fake.
ENVIRONMENT = {
    "test_every_device_allocation_may_fail_without_pools": {"FAKE_CUDA_NO_POOLS": "1"},
}


# ---- copies

LAYOUTS = {
    "dense": ((2, 3), (3, 1), 0, [0, 1, 2, 3, 4, 5]),
    "transposed": ((3, 2), (1, 3), 0, [0, 3, 1, 4, 2, 5]),
    "every other": ((3,), (2,), 0, [0, 2, 4]),
    "negative": ((6,), (-1,), 5, [5, 4, 3, 2, 1, 0]),
    "both negative": ((2, 3), (-3, -1), 5, [5, 4, 3, 2, 1, 0]),
    "broadcast": ((2, 3), (0, 1), 0, [0, 1, 2, 0, 1, 2]),
    "broadcast scalar": ((4,), (0,), 5, [5, 5, 5, 5]),
    "overlapping": ((2, 3), (1, 1), 1, [1, 2, 3, 2, 3, 4]),
    "0-d": ((), (), 4, [4]),
}


def layouts():
    for name, (shape, strides, first, expected) in LAYOUTS.items():
        memory = Memory()
        offset = (memory.address + 4 * first, False)
        yield name, CaiArray(memory, shape, strides=tuple(4 * s for s in strides), data=offset), shape, expected


def test_dl_device_cpu_from_a_gpu_copies_right():
    for name, array, shape, expected in layouts():
        tensor = asdlpack(array)
        for max_version in (NEWEST, None):
            capsule = tensor.__dlpack__(dl_device=(CPU, 0), max_version=max_version)
            facts = peek(capsule)
            assert (facts["device"], facts["shape"]) == ((CPU, 0), shape), name
            if max_version is not None:
                assert facts["flags"] & IS_COPIED
            host = memoryview(asdlpack(capsule))
            assert (host.tobytes(), host.c_contiguous) == (bytes((ctypes.c_int32 * len(expected))(*expected)), True), (
                name
            )
        assert values(array, len(expected)) == expected, name


def test_dl_device_cpu_with_a_stream_is_refused():
    tensor = asdlpack(CaiArray(Memory(), stream=new_stream()))
    for stream in (1, 2, new_stream()):
        refused(BufferError, "stream must be None", lambda s=stream: tensor.__dlpack__(dl_device=(CPU, 0), stream=s))
    assert peek(tensor.__dlpack__(dl_device=(CPU, 0), stream=None))["device"] == (CPU, 0)


def test_copy_false_refuses_a_move():
    tensor = asdlpack(CaiArray(Memory()))
    for call in (
        lambda: tensor.__dlpack__(dl_device=(CPU, 0), copy=False),
        lambda: tensor.__dlpack__(dl_device=(CUDA, 1), copy=False),
        lambda: asdlpack(tensor, device="cpu", copy=False),
        lambda: asdlpack(tensor, device="cuda:1", copy=False),
    ):
        error = refused(CopyError, "copy", call)
        assert isinstance(error, BufferError)
        assert isinstance(error, ValueError)
    assert tensor.__dlpack__(dl_device=(CUDA, 0), copy=False) is not None
    assert asdlpack(tensor, device="cuda:0", copy=False) is tensor


def test_copy_true_on_the_device_is_ordered_and_its_own():
    for name, array, shape, expected in layouts():
        copy = asdlpack(array, copy=True)
        assert (str(copy.device), copy.shape, copy.readonly, copy.owner) == ("cuda:0", shape, False, None), name
        low, high = array.memory.address, array.memory.address + array.memory.bytes
        assert not low <= copy.data_ptr < high
        assert values(copy, len(expected)) == expected, name
    producer, consumer = new_stream(), new_stream()
    array = slow_array(producer)
    forget()
    copy = asdlpack(array, copy=True)
    held = Consumed(copy.__dlpack__(stream=consumer, max_version=NEWEST))
    nothing_blocks()
    assert held.struct.flags & IS_COPIED == 0  # shared with `copy`, not the consumer's alone
    assert read_on(consumer, copy.data_ptr, 6) == [NEW] * 6
    held.delete()


def test_a_pickle_goes_by_the_host_and_says_so():
    for name, array, shape, expected in layouts():
        for protocol in (2, 5):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                data = pickle.dumps(asdlpack(array), protocol)
            assert ["copied to the host" in str(one.message) for one in said] == [True], said
            tensor = pickle.loads(data)
            assert (tensor.device, tensor.shape, tensor.readonly) == ("cuda:0", shape, False), name
            assert values(asdlpack(tensor, device="cpu"), len(expected)) == expected, name
    memory = Memory()
    frozen = CaiArray(memory, data=(memory.address, True))
    warnings.simplefilter("ignore")
    assert pickle.loads(pickle.dumps(asdlpack(frozen))).readonly


def test_a_copied_export_says_so():
    consumer = new_stream()
    array = slow_array(new_stream())
    tensor = asdlpack(array)
    forget()
    held = Consumed(tensor.__dlpack__(copy=True, stream=consumer, max_version=NEWEST))
    nothing_blocks()
    assert held.struct.flags & IS_COPIED
    assert held.struct.dl_tensor.data != array.memory.address
    assert read_on(consumer, held.struct.dl_tensor.data, 6) == [NEW] * 6
    held.delete()


def test_device_moves_between_gpus():
    for name, array, shape, expected in layouts():
        moved = asdlpack(array, device="cuda:1")
        assert (str(moved.device), moved.shape) == ("cuda:1", shape), name
        assert values(moved, len(expected)) == expected, name
    del moved
    array = slow_array(new_stream(0))
    forget()
    moved = asdlpack(array, device="cuda:1")
    assert len(new_calls("memcpy_peer")) == 1
    nothing_blocks()
    consumer = new_stream(1)
    moved.__dlpack__(stream=consumer)
    assert read_on(consumer, moved.data_ptr, 6) == [NEW] * 6


def test_memory_that_another_gpu_writes_is_freed_when_it_has():
    """The driver looks at the device of the memory alone, and unmaps what the other one still writes."""
    array = slow_array(new_stream(0))
    moved = asdlpack(array, device="cuda:1")
    forget()
    del moved
    assert [line.split()[0] for line in new_calls("event_synchronize", "free")] == ["event_synchronize", "free"]
    copied = asdlpack(array, copy=True)
    forget()
    del copied
    assert new_calls("event_synchronize") == []  # its own device's work is the driver's to wait for


def test_device_moves_from_the_host():
    data = (ctypes.c_int32 * 6)(*range(6))
    for device in ("cuda", "cuda:0", "cuda:1"):
        tensor = asdlpack(data, device=device)
        assert str(tensor.device) == ("cuda:0" if device == "cuda" else device)
        assert values(tensor, 6) == list(range(6))
    back = memoryview(data).cast("B").cast("i")[::-1]
    assert values(asdlpack(back, device="cuda"), 6) == [5, 4, 3, 2, 1, 0]


def test_a_copy_to_the_device_does_not_read_pinned_memory_late():
    memory = Memory(kind="host")
    pinned = asdlpack((ctypes.c_int32 * 6).from_address(memory.address))
    tensor = asdlpack(pinned, device="cuda")
    memory.set(OLD)
    assert values(tensor, 6) == list(range(6))


COUNT = 1 << 20  # int32 of the least copy that is staged


def test_a_large_copy_to_the_device_goes_through_page_locked_buffers():
    data = (ctypes.c_int32 * COUNT)(*range(COUNT))
    forget()
    tensor = asdlpack(data, device="cuda")
    assert len([line for line in new_calls("memcpy_htod") if "bytes=1048576" in line]) == 4
    ctypes.memset(data, 0, 4 << 20)
    stream = new_stream()
    tensor.__dlpack__(stream=stream, max_version=NEWEST)
    assert read_on(stream, tensor.data_ptr, COUNT) == list(range(COUNT))
    forget()
    asdlpack((ctypes.c_int32 * (COUNT - 1))(), device="cuda")
    assert len(new_calls("memcpy_htod")) == 1
    memory = Memory(COUNT, kind="host")
    forget()
    tensor = asdlpack((ctypes.c_int32 * COUNT).from_address(memory.address), device="cuda")
    assert len(new_calls("memcpy_htod")) == 1  # page-locked itself
    memory.set(OLD)
    assert values(tensor, COUNT) == list(range(COUNT))


def test_a_large_copy_needs_no_page_locked_memory():
    data = (ctypes.c_int32 * COUNT)(*range(COUNT))
    asdlpack((ctypes.c_int32 * 4)(), device="cuda")  # the context, and all that it needs
    forget()
    lib.fake_cuda_fail_allocs_from(1)  # the first is the tensor's
    tensor = asdlpack(data, device="cuda")
    lib.fake_cuda_fail_alloc_after(-1)
    assert new_calls("host_alloc") != []
    assert values(tensor, COUNT) == list(range(COUNT))


def test_the_source_may_be_freed_in_stream_order_after_a_copy():
    memory = Memory()
    source = asdlpack(asdlpack(CaiArray(memory), copy=True))
    copy = asdlpack(source, copy=True)
    del source
    gc.collect()
    assert values(copy, 6) == list(range(6))


# ---- memory


def device_operations():
    memory = Memory()
    tensor = asdlpack(CaiArray(memory))
    strided = asdlpack(CaiArray(memory, (3,), strides=(8,)))
    host = (ctypes.c_int32 * 6)(*range(6))
    return {
        "copy": lambda: asdlpack(tensor, copy=True),
        "copy of a strided one": lambda: asdlpack(strided, copy=True),
        "to the other device": lambda: asdlpack(tensor, device="cuda:1"),
        "a strided one to the other device": lambda: asdlpack(strided, device="cuda:1"),
        "from the host": lambda: asdlpack(host, device="cuda"),
        "copied export": lambda: tensor.__dlpack__(copy=True, max_version=NEWEST),
        "copied legacy export": lambda: tensor.__dlpack__(copy=True),
        "export to the other device": lambda: tensor.__dlpack__(dl_device=(CUDA, 1)),
        "on a stream": lambda: tensor.__dlpack__(copy=True, stream=new_stream()),
    }


def provoke_allocations():
    operations = device_operations()
    for run in operations.values():  # contexts, streams, and the first use of everything
        run()
    lib.fake_cuda_synchronize()
    gc.collect()
    before, failures = lib.fake_cuda_live_bytes(), 0
    for name, run in operations.items():
        with nothing_lost():
            n = 0
            while True:
                lib.fake_cuda_fail_alloc_after(n)
                try:
                    run()
                except MemoryError as error:
                    assert "cuda" in str(error), error
                    failures += 1
                else:
                    break
                finally:
                    lib.fake_cuda_fail_alloc_after(-1)
                assert lib.fake_cuda_context_depth() == 0, name
                n += 1
                assert n < 50
            assert n > 0, name
        lib.fake_cuda_synchronize()
        assert lib.fake_cuda_live_bytes() == before, name
    assert failures >= len(operations)


def test_every_device_allocation_may_fail():
    provoke_allocations()


def test_every_device_allocation_may_fail_without_pools():
    provoke_allocations()


def test_a_copy_larger_than_the_device_is_a_memory_error():
    memory = Memory()
    huge = asdlpack(CaiArray(memory, (1 << 45, 1), strides=(0, 4)))
    with nothing_lost():
        refused(MemoryError, "", lambda: asdlpack(huge, copy=True))
        refused(MemoryError, "", lambda: asdlpack(huge, device="cpu"))


def test_sticky_errors_are_reported_as_such():
    array = slow_array(new_stream())
    tensor = asdlpack(array)
    copy = asdlpack(tensor, copy=True)
    with nothing_lost():
        lib.fake_cuda_set_sticky(700)
        for call in (
            lambda: tensor.__dlpack__(stream=new_stream()),
            lambda: asdlpack(tensor, device="cpu"),
            lambda: asdlpack(tensor, copy=True),
            lambda: asdlpack(array),
            lambda: asdlpack(DLPackArray(array.memory)),
        ):
            error = refused(CudaError, "sticky", call)
            assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error)
    del copy  # its memory cannot be freed any more, and that is no crash


def test_a_destroyed_stream_is_an_error():
    consumer, producer = new_stream(), new_stream()
    tensor = asdlpack(CaiArray(Memory(), stream=producer))
    assert lib.cuStreamDestroy_v2(consumer) == 0
    refused(CudaError, "CUDA_ERROR_INVALID_HANDLE", lambda: tensor.__dlpack__(stream=consumer))
    assert lib.cuStreamDestroy_v2(producer) == 0
    refused(CudaError, "CUDA_ERROR_INVALID_HANDLE", lambda: asdlpack(CaiArray(Memory(), stream=producer)))
    tensor.__dlpack__(stream=new_stream())  # read while the stream lived: it is not needed any more
    assert lib.fake_cuda_context_depth() == 0


def test_copies_leave_no_memory_behind():
    operations = device_operations()
    for run in operations.values():
        run()
    lib.fake_cuda_synchronize()
    before, events = lib.fake_cuda_live_bytes(), len([line for line in log() if line.startswith("event_create")])
    with nothing_lost():
        for _ in range(50):
            for run in list(operations.values())[:-1]:
                run()
    lib.fake_cuda_synchronize()
    assert lib.fake_cuda_live_bytes() == before
    assert len([line for line in log() if line.startswith("event_create")]) == events  # reused


def test_device_copies_are_freed_on_any_thread():
    tensor = asdlpack(CaiArray(Memory()))
    asdlpack(tensor, copy=True)
    lib.fake_cuda_synchronize()
    before = lib.fake_cuda_live_bytes()
    for dl_device in (None, (CUDA, 1)):
        held = Consumed(tensor.__dlpack__(copy=True, dl_device=dl_device, max_version=NEWEST))
        assert lib.fake_cuda_live_bytes() == before + 24
        held.delete_on_foreign_thread()
        lib.fake_cuda_synchronize()
        assert lib.fake_cuda_live_bytes() == before


def test_device_copies_after_a_fork_are_refused_not_crashed():
    tensor = asdlpack(CaiArray(Memory(), stream=new_stream()))
    copy = asdlpack(tensor, copy=True)
    child = os.fork()
    if child == 0:
        try:
            refused(CudaError, "fork", lambda: asdlpack(tensor, device="cpu"))
            del copy
            os._exit(0)
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert values(copy, 6) == list(range(6))


def test_threads_take_one_device_tensor():
    tensor = asdlpack(CaiArray(Memory(), stream=new_stream()))
    asdlpack(tensor, copy=True)
    streams = [new_stream() for _ in range(4)]
    failures = []

    def work(stream):
        try:
            for i in range(50):
                asdlpack(
                    tensor.__dlpack__(stream=stream, max_version=NEWEST if i % 2 else None, copy=i % 5 == 0 or None)
                )
                if i % 10 == 0:
                    assert values(tensor, 6) == list(range(6))
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(stream,)) for stream in streams]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


if __name__ == "__main__":
    main(globals())
