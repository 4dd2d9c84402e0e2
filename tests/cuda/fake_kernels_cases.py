"""Operations on arrays of the fake driver, with the kernels of fake_kernels.cpp: what they do when memory runs out, and
what two threads may do with one array.

Each test_* runs in an interpreter of its own, started by tests/python/nd/test_fake_kernels.py: `python FILE NAME`."""

import ctypes
import gc
import itertools
import sys
import threading
import time

import numpy as np
import pytest
from dlbridge import _core, asdlpack, nd
from dlbridge.nd import _native, cuda
from fake_cuda import Memory, calls, forget, lib, main, new_calls, stream_name

MIB = 1 << 20
COUNT = 3 * MIB // 4  # float32: every array wants a segment of its own from the driver
pool = cuda.get_default_memory_pool()


def device_array(values):
    return nd.asarray(np.asarray(values, "float32"), device="cuda:0")


def check(operation, want):
    np.testing.assert_array_equal(operation().get(), want)


def state():
    gc.collect()
    statistics = pool.statistics()
    return statistics["used_bytes"], statistics["total_bytes"], lib.fake_cuda_live_bytes(), _core.live_counts()


def failures(operation, want):
    """How many driver allocations `operation` makes: each in turn fails, then that one alone, and nothing is lost."""
    check(operation, want)
    pool.free_all_blocks()
    before, n = state(), 0
    while True:
        lib.fake_cuda_fail_allocs_from(n)
        failed = False
        try:
            operation()
        except MemoryError as error:
            failed = True
            assert "bytes" in str(error), error
        lib.fake_cuda_fail_alloc_after(-1)
        pool.free_all_blocks()
        assert state() == before, f"{n} allocations had succeeded"
        if not failed:
            return n
        check(operation, want)
        pool.free_all_blocks()
        lib.fake_cuda_fail_alloc_after(n)  # the cache goes back, and the second try succeeds
        check(operation, want)
        lib.fake_cuda_fail_alloc_after(-1)
        pool.free_all_blocks()
        n += 1


X, Y = (np.arange(COUNT) % 7).astype("float32")[::-1], np.ones(COUNT, "float32")  # sums are exact


P = np.arange(0, COUNT, 5)


def scattered(target, positions, values):
    target[positions] = values[: positions.size]
    return target


def test_every_allocation_may_fail_and_nothing_is_lost():
    a, b, c, p = device_array(X), device_array(Y), device_array(X), nd.asarray(P, device="cuda:0")
    made = {
        "empty": failures(lambda: nd.empty(COUNT, "float32", device="cuda:0")[:0], []),
        "array": failures(lambda: device_array(X), X),
        "a + b": failures(lambda: a + b, X + Y),
        "a += b": failures(lambda: nd.add(a, b, out=nd.empty_like(a)), X + Y),
        "sum": failures(lambda: nd.sum(a), X.sum()),
        "sum(axis)": failures(lambda: nd.sum(a.reshape(-1, 4), axis=1), X.reshape(-1, 4).sum(1)),
        "sort": failures(lambda: nd.sort(a), np.sort(X)),
        "c[p] = b": failures(lambda: scattered(c, p, b), scattered(X.copy(), P, Y)),
        "concat": failures(lambda: nd.concat([a, b]), np.concatenate([X, Y])),
    }
    # Results, scratch memory in pieces, and small ones from a segment that they share.
    # Results, scratch memory in pieces; small ones share a segment of 2 MiB.
    assert made == {
        **dict.fromkeys(("empty", "array", "a + b", "a += b", "concat"), 1),
        "sum": 2,
        "sum(axis)": 2,
        "sort": 3,
        "c[p] = b": 12,
    }, made


def test_a_device_without_room_for_a_context_is_named_as_that():
    for allocator in (pool.malloc, cuda.MemoryAsyncPool().malloc):
        cuda.set_allocator(allocator)
        lib.fake_cuda_fail_allocs_from(0)
        with pytest.raises(MemoryError, match="cuDevicePrimaryCtxRetain"):
            nd.empty(8, device="cuda:1")
        lib.fake_cuda_fail_alloc_after(-1)
    assert nd.empty(2, device="cuda:1").shape == (2,)


def test_a_large_copy_may_fail_wherever_it_takes_memory():
    values = np.arange(2 * MIB, dtype="float32")  # 8 MiB: through page-locked buffers
    pool.free_all_blocks()
    before = pool.statistics()["used_bytes"]
    texts = []
    for n in itertools.count():
        lib.fake_cuda_fail_allocs_from(min(n, 2))
        try:
            target = device_array(values)
        except MemoryError as error:
            texts.append(str(error))
        else:
            break
        finally:
            lib.fake_cuda_fail_alloc_after(-1)
        gc.collect()
        pool.free_all_blocks()
        assert pool.statistics()["used_bytes"] == before
        np.testing.assert_array_equal(device_array(X[:10]).get(), X[:10])  # a small copy goes without buffers
    assert "device memory" in texts[0] and all("page-locked" in text for text in texts[1:]), texts
    buffers = len(calls("host_alloc")) - len(texts[1:])
    assert len(texts) == 1 + buffers > 8, "the array; then the buffers, of which each try makes one more"
    np.testing.assert_array_equal(target.get(), values)
    lib.fake_cuda_fail_allocs_from(0)
    np.testing.assert_array_equal(target.get(), values)  # the way back needs no memory of the device
    lib.fake_cuda_fail_alloc_after(-1)


class Elsewhere:
    """A thread that makes `use` of an array on a stream of its own when run() says so."""

    def __init__(self, use):
        self.stream = cuda.Stream(non_blocking=True)
        self.use = use
        self.asked, self.done = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        assert self.asked.wait(60)
        with self.stream:
            self.use()
        self.done.set()

    def run(self, _argument=None):
        self.asked.set()
        assert self.done.wait(60)
        self.thread.join()


def joins(stream, other):
    """Whether, since forget(), `stream` has been made to wait for the other after that was made to wait for it."""
    orders = []
    for record, wait in itertools.pairwise(new_calls("event_record", "stream_wait")):
        if record.startswith("event_record") and wait.startswith("stream_wait"):
            orders.append((record.rsplit("stream=", 1)[1], wait.split("stream=", 1)[1].split()[0]))
    mine, theirs = stream_name(stream.ptr or 1), stream_name(other.ptr)
    return (theirs, mine) in orders[orders.index((mine, theirs)) :]


def test_a_use_that_begins_during_a_copy_is_joined():
    """Whoever gets the memory next waits for one stream: it has to stand for both uses."""
    mine = cuda.Stream(non_blocking=True)
    host = cuda.empty_pinned(1000, "uint8")  # what copies wait for where they block
    memory = cuda.alloc(host.size)
    for copy in (memory.copy_from_host, memory.copy_to_host):
        other = Elsewhere(lambda: memory.memset_async(2, 10))
        with mine:
            memory.memset_async(1, 10)
            mine.launch_host_func(other.run, None)
            forget()
            copy(host.ctypes.data, host.size)
            assert joins(mine, other.stream), copy
    array = device_array(np.zeros(250))
    other = Elsewhere(lambda: array + array)
    cuda.Stream.null.launch_host_func(other.run, None)
    forget()
    array.set(host.view("float32"))
    assert joins(cuda.Stream.null, other.stream)


def test_a_use_that_begins_while_scratch_memory_is_looked_for_is_joined():
    mine = cuda.Stream(non_blocking=True)
    memories, others = [], []

    def malloc(size, _device):
        memories.append(Memory(size // 4 + 1))
        if len(memories) == 2:  # the first is the result
            others[0].run()
        return memories[-1].address

    with mine:
        a = device_array(X)
        for operation in (nd.sum, nd.sort):
            memories.clear()
            others[:] = [Elsewhere(lambda: a + a)]
            with cuda.using_allocator(cuda.PythonFunctionAllocator(malloc, lambda pointer, device: None).malloc):
                forget()
                operation(a)
            assert len(memories) == 3
            assert joins(mine, others[0].stream), operation


def test_a_use_that_begins_while_the_bridge_copies_is_joined():
    mine = cuda.Stream(non_blocking=True)
    values = np.arange(5000 * 16, dtype="float32").reshape(5000, 4, 4)
    with mine:
        a = device_array(values)
        scattered = a[:, ::2, ::2]  # too many pieces to copy one by one: by way of the host, which waits
        other = Elsewhere(lambda: a + a)
        mine.launch_host_func(other.run, None)
        forget()
        copied = asdlpack(scattered, copy=True)
        waited = [line.split()[1] for line in new_calls("stream_wait")]
    # The other stream first waits for the one before; and then until the copy has read the array.
    assert waited.count(f"stream={stream_name(other.stream.ptr)}") == 2, waited
    np.testing.assert_array_equal(nd.asarray(copied).get(), values[:, ::2, ::2])


def test_what_waits_for_the_device_lets_go_of_the_gil():
    mask = np.ones(1000, bool)
    mask[3] = False
    (positions,) = nd.nonzero(nd.asarray(mask, device="cuda:0"))  # the fake refuses to wait with it
    np.testing.assert_array_equal(positions.get(), np.flatnonzero(mask))
    assert nd.unique(device_array([2, 1, 2, 1])).get().tolist() == [1, 2]


def test_inside_a_device_block_arrays_of_other_gpus_are_moved_there():
    here = device_array([1, 2, 3])
    foreign = asdlpack(here)
    with cuda.Device(1):
        for source in (here, foreign):
            there = nd.asarray(source)
            assert str(there.device) == "cuda:1" and there.get().tolist() == [1, 2, 3]
            assert str(nd.array(source).device) == "cuda:1"
            assert nd.asarray(there) is there
            assert str(nd.asarray(source, device="cuda:0").device) == "cuda:0"
            assert str(nd.from_dlpack(source).device) == "cuda:0"
        with cuda.Device(0):
            assert nd.asarray(here) is here
        try:
            nd.asarray(here, copy=False)
        except ValueError as error:
            assert "copy=False" in str(error)
        else:
            raise AssertionError("not refused")
        assert nd.asarray(nd.zeros(2, device="cpu")).device == "cpu"
    assert nd.asarray(there) is there and nd.asarray(here) is here


def test_an_allocator_may_be_replaced_while_a_thread_is_about_to_ask_it():
    mask = nd.asarray(np.ones(1000, bool), device="cuda:0")
    asked, found, entered = [], [], []
    stream = cuda.Stream(non_blocking=True)
    libc, gate = ctypes.PyDLL(None), ctypes.create_string_buffer(32)  # calls keep the GIL
    libc.sem_init(gate, 0, 0)

    def work():
        with stream:
            entered.append(True)
            found.append(nd.nonzero(mask)[0].get())

    thread = threading.Thread(target=work)
    lib.cuLaunchHostFunc.argtypes = [ctypes.c_void_p] * 3
    wait = ctypes.cast(libc.sem_wait, ctypes.c_void_p)
    assert lib.cuLaunchHostFunc(stream.ptr, wait, ctypes.addressof(gate)) == 0
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # from here on the GIL changes hands where one lets go of it
    thread.start()
    while not entered:
        time.sleep(0.001)
    cuda.set_allocator(lambda size: asked.append(size))  # nonzero() waits for the gate without the GIL,
    libc.sem_post(gate)
    until = time.monotonic() + 0.3
    while time.monotonic() < until:  # then asks this allocator for memory, and waits for the GIL,
        pass
    cuda.reset_allocator()  # which it gets when that is gone
    gc.collect()
    sys.setswitchinterval(interval)
    thread.join()
    assert asked == []
    np.testing.assert_array_equal(found[0], np.arange(1000))


def test_where_takes_a_condition_of_another_gpu():
    condition = nd.asarray(np.array([0, 2, 0, 1], "float32"), device="cuda:1")
    x, y, out = device_array([1, 2, 3, 4]), device_array([10, 20, 30, 40]), device_array([0, 0, 0, 0])
    _native.where(condition, x, y, out=out)
    assert out.get().tolist() == [10, 2, 30, 4]


def test_operands_of_two_devices_meet_where_one_reaches_the_other_and_are_refused_elsewhere():
    x, y = device_array([1, 2, 3]), nd.asarray(np.array([10, 20, 30], "float32"), device="cuda:1")
    forget()
    total = x + y
    assert str(total.device) == "cuda:0" and total.get().tolist() == [11, 22, 33]
    assert len(new_calls("memcpy_peer")) == 1
    ctypes.CDLL(None).setenv(b"FAKE_CUDA_NO_PEERS", b"1", 1)
    for call in (lambda: y + x, lambda: nd.concat([x, y]), lambda: x @ y):
        try:
            call()
        except ValueError as error:
            assert "cuda:0" in str(error) and "cuda:1" in str(error), error
        else:
            raise AssertionError("not refused")


if __name__ == "__main__":
    main(globals())
