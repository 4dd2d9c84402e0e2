"""Many threads over what all calls share: lists of dead objects, what is known of types, names and dtypes, storages.

Everything here holds with a GIL, too, where the threads take turns; without one they run at once, and longer.
"""

from __future__ import annotations

import gc
import queue
import sys
import sysconfig
import threading
import weakref
from typing import TYPE_CHECKING, Any

import dlbridge
import numpy as np
import pytest
from dlbridge import _core, asdlpack, convert, nd
from thread_stress import compute, exchange, stress

if TYPE_CHECKING:
    from collections.abc import Callable

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
THREADS = 16
ROUNDS = 400 if FREE_THREADED else 60


def at_once(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Runs work(number) in threads that begin together; raises what the first of them raised."""
    start = threading.Barrier(threads)
    raised: list[BaseException] = []

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:  # raised below, in the test's own thread
            raised.append(error)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if raised:
        raise raised[0]


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    gc.collect()
    before = _core.live_counts()
    yield
    gc.collect()
    after = _core.live_counts()
    assert all(after[kind] <= before[kind] for kind in before), f"{before} before, {after} after"


def test_exchanges_of_all_protocols_in_many_threads() -> None:
    at_once(lambda number: [exchange(number) for _ in range(ROUNDS)] and None)


def test_arithmetic_in_many_threads() -> None:
    at_once(lambda number: [compute(number) for _ in range(ROUNDS)] and None)


def test_exchange_and_arithmetic_while_others_collect() -> None:
    def work(number: int) -> None:
        for _ in range(ROUNDS // 8):
            if number % 8 == 0:
                gc.collect()
            elif number % 2:
                exchange(number)
            else:
                compute(number)

    at_once(work)


def test_objects_that_die_in_other_threads() -> None:
    made: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work(number: int) -> None:
        for step in range(ROUNDS):
            if number % 2:
                made.put((asdlpack(np.full(4, step)), nd.full(4, step), np.from_dlpack(asdlpack(bytearray(4)))))
            else:
                tensor, array, _ = made.get()
                assert np.asarray(tensor).tolist() == array.tolist()

    at_once(work)


def test_threads_come_and_go() -> None:
    for _ in range(20):
        at_once(lambda number: exchange(number) or compute(number), threads=8)


def test_a_capsule_is_consumed_by_one_thread_only() -> None:
    for _ in range(ROUNDS):
        source = asdlpack(np.arange(3))
        for capsule in (source.__dlpack__(), source.__dlpack__(max_version=(1, 0))):
            taken = []

            def take(_: int, capsule: Any = capsule, taken: list[Any] = taken) -> None:
                try:
                    taken.append(asdlpack(capsule))
                except dlbridge.DataError:
                    pass

            at_once(take, threads=4)
            assert len(taken) == 1


def test_a_type_that_changes_is_looked_at_again() -> None:
    class Changing:
        pass

    def speak(self: Any, **options: Any) -> Any:
        return np.arange(3).__dlpack__(**options)

    stop = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            for _ in range(ROUNDS):
                Changing.__dlpack__ = speak
                del Changing.__dlpack__
            Changing.__dlpack__ = speak
            stop.set()
            return
        while not stop.is_set():
            try:
                assert asdlpack(Changing()).shape == (3,)
            except (dlbridge.ProtocolError, AttributeError):
                pass

    at_once(work, threads=4)
    assert asdlpack(Changing()).shape == (3,)


def test_a_base_that_dies_while_its_views_are_asked() -> None:
    for _ in range(ROUNDS // 4):
        base = nd.arange(8)
        views = [base[1:] for _ in range(4)]
        holder = [base]
        del base

        def work(number: int, views: list[Any] = views, holder: list[Any] = holder) -> None:
            if number == 0:
                holder.clear()
                return
            for _ in range(20):
                found = views[number].base
                assert found.size == 8

        at_once(work, threads=4)


def test_one_array_changed_by_two_threads_stays_an_array() -> None:
    array = nd.zeros((64, 64), device="cpu")
    shared = np.from_dlpack(array)

    def work(number: int) -> None:
        for step in range(ROUNDS):
            if number % 2:
                array[number] = step
                array[:, number] += 1
            else:
                shared[number] = step
                assert (array + array).shape == (64, 64)
                assert array[array > 1].ndim == 1

    at_once(work, threads=8)
    assert array.shape == (64, 64)


def test_no_change_of_one_array_in_place_is_lost() -> None:
    def changes(array: Any) -> list[Callable[[], Any]]:
        return [
            lambda: array.__iadd__(1),
            lambda: nd.add(array, 1, out=array),
            lambda: nd.add.at(array, slice(None), 1),
            lambda: array.__isub__(-1),
        ]

    array = nd.zeros(33)

    def work(number: int) -> None:
        change = changes(array)[number % 4]
        for _ in range(ROUNDS):
            change()

    at_once(work)
    assert array.tolist() == [THREADS * ROUNDS] * 33


@pytest.mark.parametrize("n", [512, 20_000])  # the second lets go of a GIL
def test_elements_that_change_while_they_select_select_nothing_outside(n: int) -> None:
    frame = nd.zeros(3 * n, dtype="int64")
    inside = frame[n : 2 * n]
    index = nd.zeros(n, dtype="int64")
    mask = nd.zeros(n, dtype=bool)
    stop = threading.Event()

    def work(number: int) -> None:
        if number % 2:
            values = (2**40, -(2**40), 0, n - 1)
            for step in range(ROUNDS * 4):
                index[:] = values[step % 4]
                mask[step % n :] = step % 3 == 0
            stop.set()
            return
        while not stop.is_set():
            for select in (
                lambda: inside[index],
                lambda: inside.__setitem__(index, 7),
                lambda: nd.add.at(inside, index, 1),
                lambda: nd.take(inside, index),
            ):
                try:
                    select()
                except IndexError:
                    pass
            assert inside[mask].size <= n
            assert nd.nonzero(mask)[0].size <= n
            assert nd.sort(index).size == n
            assert int(nd.argsort(index).max()) < n

    at_once(work, threads=4)
    assert not frame[:n].any()
    assert not frame[2 * n :].any()


def test_a_dict_that_changes_while_it_is_converted() -> None:
    tree: dict[Any, Any] = {k: np.arange(k) for k in range(16)}

    def work(number: int) -> None:
        for step in range(ROUNDS):
            if number % 2:
                tree[number * 1000 + step % 7] = np.arange(2)
                tree.pop(number * 1000 + (step + 3) % 7, None)
            else:
                out = convert(tree, "nd")
                assert out[15].shape == (15,)

    at_once(work, threads=4)


def test_weak_references_of_tensors_that_die() -> None:
    def work(_: int) -> None:
        for _ in range(ROUNDS):
            array = nd.ones(3)
            seen = weakref.ref(array)
            assert seen() is array
            del array
            assert seen() is None

    at_once(work)


def test_shared_memory_in_many_threads() -> None:
    def work(number: int) -> None:
        for _ in range(max(ROUNDS // 40, 2)):
            with dlbridge.share(np.full(5, number)) as handle:
                assert handle.open(to="numpy").tolist() == [number] * 5

    at_once(work, threads=8)


def test_exchanges_where_threads_take_turns_often() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # with a GIL: threads take turns within the calls, too
    try:
        at_once(lambda number: [exchange(number) for _ in range(ROUNDS // 4)] and None)
    finally:
        sys.setswitchinterval(before)


def test_mixed_work_of_many_threads() -> None:
    done = stress(THREADS, seconds=3)
    assert {"exchanges", "computes", "takes_over", "adds", "reads", "frames"} <= set(done)
