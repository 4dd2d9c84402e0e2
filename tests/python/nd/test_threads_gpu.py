"""Threads that use the same memory of a device at once, each on a stream of its own."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from dlbridge import nd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.gpu
THREADS = 8
READERS = 4  # of which two meet: more keep each other from it where there are few cores
TURNS = 1000
BYTES = 16


@pytest.fixture(autouse=True)
def turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # with a GIL, threads take turns as often as they can
    yield
    sys.setswitchinterval(before)


def on_streams(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """What work(number) gives in each of the threads, which begin together, each on a stream of its own."""
    start = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        with nd.cuda.Stream(non_blocking=True):
            start.wait()
            try:
                results[number] = work(number)
            except BaseException as error:  # raised below, in the test's own thread
                results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_a_write_comes_after_the_reads_of_all_threads() -> None:
    source = nd.cuda.alloc(BYTES)
    writer = nd.cuda.Stream(non_blocking=True)
    together = threading.Barrier(READERS)

    def work(number: int) -> list[Any]:
        copies = []
        for turn in range(TURNS):
            if number == 0:
                source.memset_async(turn % 256, BYTES, stream=writer)
                writer.synchronize()  # a read that is not in the chain of uses is not waited for
            copies.append(nd.cuda.alloc(BYTES))
            together.wait()
            copies[-1].copy_from_device_async(source, BYTES, stream=nd.cuda.get_current_stream())
            together.wait()
        nd.cuda.get_current_stream().synchronize()
        return copies

    host = np.empty(BYTES, "uint8")
    for copies in on_streams(work, READERS):
        for turn, copy in enumerate(copies):
            copy.copy_to_host(host.ctypes.data, BYTES)
            assert host.tolist() == [turn % 256] * BYTES


def test_copies_to_the_host_by_many_threads_come_before_the_next_write() -> None:
    x = nd.zeros(64, device="cuda")
    for turn in range(20):
        x[...] = turn
        copies = on_streams(lambda _: [(x.copy(), x.tolist()) for _ in range(4)])
        x[...] = -1
        for of_thread in copies:
            assert [(copy.tolist(), read) for copy, read in of_thread] == [([turn] * 64, [turn] * 64)] * 4


def test_kernels_with_scratch_memory_in_many_threads() -> None:
    x = nd.arange(1000, device="cuda") % 7
    wanted = sorted(x.tolist())

    def work(number: int) -> None:
        for _ in range(4):
            assert nd.sort(x).tolist() == wanted
            assert nd.nonzero(x == 3)[0].size == wanted.count(3)
            assert int(x.sum()) == sum(wanted)
            assert x[x > 3].size == sum(n > 3 for n in wanted)

    on_streams(work)


def test_no_change_of_one_array_in_place_is_lost() -> None:
    x = nd.zeros(64, device="cuda")

    def work(number: int) -> None:
        for _ in range(40):
            x.__iadd__(1)

    on_streams(work)
    assert x.tolist() == [40 * THREADS] * 64


def test_memory_that_an_allocator_in_python_gives_may_wait_for_another_thread() -> None:
    pool = nd.cuda.MemoryPool()
    x = nd.arange(1000, device="cuda") % 7
    wanted = sorted(x.tolist())

    def allocate(size: int) -> Any:
        helper = threading.Thread(target=lambda: (x + 1).tolist())
        helper.start()
        helper.join()
        return pool.malloc(size)

    with nd.cuda.using_allocator(allocate):
        assert nd.sort(x).tolist() == wanted
