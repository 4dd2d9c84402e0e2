"""Threads that exchange and compute at once, with pools, collections and objects that die elsewhere:

    python tests/python/thread_stress.py --seconds 600

Every result is held against NumPy's or against what the thread put in, nothing may be left behind, and a process that
hangs says where. With a GPU, or the one that is none (CONTRIBUTING.md), half of the work is done there.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import gc
import queue
import random
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

import dlbridge
import numpy as np
from dlbridge import _core, asdlpack, convert, nd

if TYPE_CHECKING:
    from collections.abc import Callable


class OnlyDlpack:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def exchange(number: int) -> None:
    array = np.arange(12, dtype="int64").reshape(3, 4) + number
    wanted = array.tolist()
    for protocol in ("dlpack", "array_interface", "buffer"):
        assert np.asarray(asdlpack(array, protocol=protocol)).tolist() == wanted
    tensor = asdlpack(array)
    assert np.from_dlpack(tensor).tolist() == wanted
    assert np.asarray(asdlpack(tensor.__dlpack__())).tolist() == wanted
    assert memoryview(tensor).tolist() == wanted
    assert tensor.__array_interface__["shape"] == (3, 4)
    assert asdlpack(OnlyDlpack(array)).shape == (3, 4)
    assert convert({"x": [array], "y": (tensor, 1)}, "numpy")["x"][0].tolist() == wanted
    assert convert(array, "nd").tolist() == wanted
    assert str(tensor.dtype) == "int64"
    assert hash(tensor.dtype) == hash(np.dtype("int64"))
    assert str(tensor.device) == "cpu"


def compute(number: int, device: str = "cpu") -> None:
    a = nd.arange(64, dtype="float64", device=device).reshape(8, 8) + number
    wanted = np.arange(64, dtype="float64").reshape(8, 8) + number
    assert ((a * 2 - np.float64(1)).sum(axis=0)).tolist() == (wanted * 2 - 1).sum(axis=0).tolist()
    assert (a @ a.T).tolist() == (wanted @ wanted.T).tolist()
    a[2:4] = -1
    assert a[a < 0].size == 16 + (number == -1)
    assert a[2:].base is a


class Stress:
    """What the threads share, and the kinds of work that they choose from."""

    def __init__(self, threads: int, seconds: float, seed: int) -> None:
        self.threads, self.seed = threads, seed
        self.device = "cuda" if nd.cuda.is_available() else "cpu"
        self.end = time.monotonic() + seconds
        self.raised: list[str] = []
        self.done: list[collections.Counter[str]] = []  # of each thread
        self.handed_over: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.total = nd.zeros(16, dtype="int64", device=self.device)
        self.table = np.arange(1000)
        self.common = nd.asarray(self.table, device=self.device)  # only read
        self.dtypes = ("uint8", "int16", "float32", "float64", "complex64")

    def work(self) -> list[Callable[[random.Random], object]]:
        every = [self.exchanges, self.computes, self.hands_over, self.takes_over, self.adds, self.reads, self.frames]
        rare = [self.collects, self.shares, self.fails]
        return every * 20 + rare + ([self.pools, self.streams] * 10 if self.device == "cuda" else [])

    def exchanges(self, _: random.Random) -> None:
        exchange(threading.get_ident() % 100)

    def computes(self, chance: random.Random) -> None:
        compute(chance.randrange(100), chance.choice(("cpu", self.device)))

    def hands_over(self, chance: random.Random) -> None:
        value = chance.randrange(100)
        x = nd.full((chance.randrange(1, 500),), value, dtype=chance.choice(self.dtypes), device="cpu")
        self.handed_over.put((value, chance.choice([x, x[::2], asdlpack(x), np.from_dlpack(x), x.__dlpack__()])))

    def takes_over(self, _: random.Random) -> None:
        try:
            value, x = self.handed_over.get_nowait()
        except queue.Empty:
            return
        assert set(np.asarray(asdlpack(x)).ravel().tolist()) == {value}

    def adds(self, _: random.Random) -> None:
        self.total += 1

    def reads(self, chance: random.Random) -> None:
        chosen = np.array([chance.randrange(-1000, 1000) for _ in range(20)])
        x = self.common
        assert x[nd.asarray(chosen, device=self.device)].tolist() == self.table[chosen].tolist()
        assert nd.nonzero(x % 7 == 3)[0].tolist() == np.nonzero(self.table % 7 == 3)[0].tolist()
        assert nd.sort(x % 11).tolist() == np.sort(self.table % 11).tolist()

    def frames(self, chance: random.Random) -> None:
        tree = {"a": [np.full(3, chance.random()), nd.ones(2, device="cpu")], "b": ({"c": np.arange(4)},)}
        out = convert(tree, chance.choice(("nd", "numpy")))
        assert np.asarray(asdlpack(out["b"][0]["c"])).tolist() == [0, 1, 2, 3]

    def collects(self, _: random.Random) -> None:
        cycle: list[Any] = [nd.ones(10, device=self.device), asdlpack(np.ones(10))]
        cycle.append(cycle)
        del cycle
        gc.collect()

    def shares(self, chance: random.Random) -> None:
        value = chance.randrange(100)
        with dlbridge.share(np.full(5, value)) as handle:
            assert handle.open(to="numpy").tolist() == [value] * 5

    def fails(self, _: random.Random) -> None:
        for wrong in (lambda: asdlpack(object()), lambda: self.common[5000], lambda: nd.ones(3) + nd.ones(4)):
            try:
                wrong()
            except (TypeError, ValueError, IndexError, dlbridge.ProtocolError):
                continue
            raise AssertionError("bad input was taken")

    def pools(self, chance: random.Random) -> None:
        pool = nd.cuda.MemoryPool()
        with nd.cuda.using_allocator(pool.malloc):
            kept = [nd.full(chance.randrange(1, 5000), k, device="cuda") for k in range(8)]
            assert [int(x[-1]) for x in kept] == list(range(8))
        del kept
        pool.free_all_blocks()

    def streams(self, chance: random.Random) -> None:
        with nd.cuda.Stream(non_blocking=True):
            x = self.common * chance.randrange(1, 5)
            y = x + self.common
        assert (y - x).tolist() == self.table.tolist()

    def run(self, number: int) -> None:
        chance = random.Random(self.seed * 1000 + number)
        choices = self.work()
        done: collections.Counter[str] = collections.Counter()
        while time.monotonic() < self.end and not self.raised:
            chosen = chance.choice(choices)
            try:
                chosen(chance)
            except BaseException:  # told by the main thread
                self.raised.append(traceback.format_exc())
                return
            done[chosen.__name__] += 1
        self.done.append(done)


def stress(threads: int, seconds: float, seed: int = 0) -> collections.Counter[str]:
    """How often each kind of work was done; raises what the first thread raised."""
    gc.collect()
    before = _core.live_counts()
    state = Stress(threads, seconds, seed)
    workers = [threading.Thread(target=state.run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if state.raised:
        raise AssertionError(f"in one of {threads} threads:\n{state.raised[0]}")
    done: collections.Counter[str] = sum(state.done, collections.Counter())
    assert state.total.tolist() == [done["adds"]] * 16
    del state, workers, worker
    gc.collect()
    after = _core.live_counts()
    assert after == before, f"live objects before {before}, after {after}"
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.seconds + 300, exit=True)
    done = stress(options.threads, options.seconds, options.seed)
    gil = "on" if getattr(sys, "_is_gil_enabled", lambda: True)() else "off"
    device = "cuda" if nd.cuda.is_available() else "cpu"
    print(f"{options.threads} threads, {options.seconds:g} s, GIL {gil}, {device}: {done.total()} rounds")
    for name, count in done.most_common():
        print(f"  {name:12} {count}")


if __name__ == "__main__":
    main()
