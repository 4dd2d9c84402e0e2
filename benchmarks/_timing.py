"""Interleaved timing of many small calls in one process.

A round is a short burst of calls of one contender. Every sweep runs one round of each contender, in
an order shuffled anew, so that a slow phase of the machine falls on all of them alike. The best round
is the cost of the call when nothing disturbs it; the median says what disturbs it on this machine.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Call = Callable[[], object]

MIN_ROUNDS = 5
MAX_ROUNDS = 4000
WARM_UP_CALLS = 3


@dataclass(frozen=True)
class Timing:
    """ns per call: the best round and the median round, and how many rounds of how many calls."""

    best_ns: float
    median_ns: float
    rounds: int
    calls_per_round: int


def time_round(call: Call, calls: int) -> float:
    """ns per call of `calls` calls in a row; each result is dropped before the next call."""
    clock = time.perf_counter_ns
    repeat = itertools.repeat(None, calls)
    begin = clock()
    for _ in repeat:
        call()
    return (clock() - begin) / calls


def calls_for(call: Call, round_us: float) -> int:
    """How many calls fill a round of `round_us`; at least one."""
    # One call is ten rounds: no estimate would change the answer. Of two, as the first may import something, or wait.
    if min(time_round(call, 1) for _ in range(2)) > 10_000 * round_us:
        return 1
    for _ in range(WARM_UP_CALLS):
        call()
    estimate_ns = min(time_round(call, 4) for _ in range(3))
    return max(1, int(round_us * 1000 / max(estimate_ns, 1.0)))


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """The garbage collector is off: a collection would fall on whoever happens to run."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def interleave(
    calls: Mapping[str, Call], counts: Mapping[str, int], *, seconds: float, least: int = MIN_ROUNDS, seed: int = 1
) -> dict[str, Timing]:
    """Rounds of all calls in an order shuffled anew in each sweep, for about `seconds`, but `least` sweeps."""
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    shuffle = random.Random(seed).shuffle
    end = time.perf_counter() + seconds
    for sweep in range(MAX_ROUNDS):
        if sweep >= least and time.perf_counter() > end:
            break
        shuffle(order)
        for name in order:
            call = calls[name]
            for _ in range(min(WARM_UP_CALLS, counts[name])):
                call()
            rounds[name].append(time_round(call, counts[name]))
    return {name: Timing(min(ns), statistics.median(ns), len(ns), counts[name]) for name, ns in rounds.items()}


def measure(calls: Mapping[str, Call], *, seconds: float, round_us: float = 150.0, seed: int = 1) -> dict[str, Timing]:
    """Times all calls against each other for about `seconds` in all."""
    counts = {name: calls_for(call, round_us) for name, call in calls.items()}
    with no_collections():
        return interleave(calls, counts, seconds=seconds, seed=seed)
