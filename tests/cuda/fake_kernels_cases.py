"""Operations on arrays of the fake driver, with the kernels of fake_kernels.cpp: what they do when memory runs out.

Each test_* runs in an interpreter of its own, started by tests/python/nd/test_fake_kernels.py: `python FILE NAME`."""

import gc
import itertools

import numpy as np
from dlbridge import _core, nd
from dlbridge.nd import cuda
from fake_cuda import lib, main

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


def test_km1_every_allocation_may_fail_and_nothing_is_lost():
    a, b = device_array(X), device_array(Y)
    made = {
        "empty": failures(lambda: nd.empty(COUNT, "float32", device="cuda:0")[:0], []),
        "array": failures(lambda: device_array(X), X),
        "a + b": failures(lambda: a + b, X + Y),
        "a += b": failures(lambda: nd.add(a, b, out=nd.empty_like(a)), X + Y),
        "sum": failures(lambda: nd.sum(a), X.sum()),
        "sum(axis)": failures(lambda: nd.sum(a.reshape(-1, 4), axis=1), X.reshape(-1, 4).sum(1)),
        "sort": failures(lambda: nd.sort(a), np.sort(X)),
        "concat": failures(lambda: nd.concat([a, b]), np.concatenate([X, Y])),
    }
    # Results, scratch memory in pieces, and small ones from a segment that they share.
    # Results, scratch memory in pieces; small ones share a segment of 2 MiB.
    assert made == {
        **dict.fromkeys(("empty", "array", "a + b", "a += b", "concat"), 1),
        "sum": 2,
        "sum(axis)": 2,
        "sort": 3,
    }, made


def test_km2_a_large_copy_may_fail_wherever_it_takes_memory():
    values = np.arange(2 * MIB, dtype="float32")  # 8 MiB: through page-locked buffers
    target = nd.empty(values.size, "float32", device="cuda:0")
    pool.free_all_blocks()
    before = pool.statistics()["used_bytes"]
    texts = []
    for n in itertools.count():
        lib.fake_cuda_fail_allocs_from(min(n, 2))
        try:
            target.set(values)
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
    assert len(texts) == 1 + 8, "the array; then the buffers, of which each try makes one more"
    np.testing.assert_array_equal(target.get(), values)
    lib.fake_cuda_fail_allocs_from(0)
    np.testing.assert_array_equal(target.get(), values)  # the way back needs no memory of the device
    lib.fake_cuda_fail_alloc_after(-1)


if __name__ == "__main__":
    main(globals())
