"""The host's memory behind arrays: what is freed serves the next array of about its size."""

import threading

import numpy as np
import pytest
from dlbridge import nd

MIB = 1 << 20


def address(x):
    return x.__array_interface__["data"][0]


def empty(size):
    return nd.empty((size,), "uint8", device="cpu")


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("size", [1, 64, 65, 1000, 1024])
def test_a_small_freed_block_serves_the_next_array_of_its_64_bytes(size):
    x = empty(size)
    at = address(x)
    del x
    assert address(empty((size + 63) // 64 * 64)) == at


def test_small_arrays_of_a_thread_that_has_ended_are_whole():
    arrays, made = [], threading.Thread(target=lambda: arrays.extend(empty(k + 1) for k in range(1100)))
    made.start()
    made.join()
    for k, x in enumerate(arrays):
        x.fill(k % 251)
    again = [empty(k + 1) for k in range(1100)]
    for x in again:
        x.fill(255)
    assert all((np.asarray(x) == k % 251).all() for k, x in enumerate(arrays))
    dropped = threading.Thread(target=arrays.clear)
    dropped.start()
    dropped.join()
    assert all((np.asarray(x) == 255).all() for x in again)


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("size", [96 << 10, MIB, 40 * MIB])
def test_the_newest_freed_block_serves_the_next_array_of_about_its_size(size):
    others = [empty(size) for _ in range(33)]  # what earlier tests left may be larger than it is
    x = empty(size)
    at = address(x)
    del x
    for again in (size, size - size // 20, size):
        x = empty(again)
        assert address(x) == at
        del x
    x = empty(size // 2)  # it would waste the other half
    assert address(x) != at
    del others


def test_memory_of_every_size_is_aligned_and_whole():
    held = []
    for size in [1, 63, 64, 65, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1] * 2:
        x = empty(size)
        assert address(x) % 64 == 0
        x.fill(len(held) + 1)
        held.append(x)
        if len(held) % 3 == 0:
            held[len(held) - 3] = None
    for number, x in enumerate(held):
        assert x is None or (np.asarray(x) == number + 1).all()


@pytest.mark.parametrize(("least", "most"), [(1, 1030), (60 << 10, 300 << 10)], ids=["small", "large"])
def test_threads_that_make_and_drop_arrays_never_share_a_block(least, most):
    wrong = []

    def work(number):
        random = np.random.default_rng(number)
        held = {}
        for turn in range(300):
            slot = int(random.integers(6))
            if slot in held and not (np.asarray(held.pop(slot)) == slot + 8 * number).all():
                wrong.append((number, turn))
            held[slot] = empty(int(random.integers(least, most)))
            held[slot].fill(slot + 8 * number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_request_that_cannot_be_met_is_a_memory_error():
    x = empty(MIB)
    del x  # what waits is given back before
    with pytest.raises(MemoryError, match="the host has no .* bytes for an array"):
        nd.empty((1 << 62,), "uint8", device="cpu")
    assert empty(MIB).nbytes == MIB
