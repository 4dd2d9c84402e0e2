"""Arrays from one process to another: through a queue by dlbridge, by torch.multiprocessing and by pickling.

    python benchmarks/share.py [--rounds 200] [--gib 1] [--out FOLDER]

See benchmarks/README.md for the method. Needs NumPy and PyTorch. The array goes to a process that reads one element of
it and answers with a number; the time is from put() to the answer. Where there is a GPU, so do arrays on it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pathlib
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
from _peers import Environment  # noqa: E402

KEPT_BYTES = 64 << 20  # larger arrays are made for each round, so that not all contenders' are there at once
SIZES = {"4 KiB": 4 << 10, "1 MiB": 1 << 20, "16 MiB": 16 << 20}


def answer(queue: Any, answers: Any) -> None:
    """The other process."""
    while (x := queue.get()) is not None:
        answers.put(float(x[0]))
        del x


@dataclass(frozen=True)
class Contender:
    """How an array is made (once, or before each round) and what its queue carries by which reducers."""

    name: str
    make: Callable[[int], Any]
    installed: tuple[str, ...] = ()
    anew: bool = False


def contenders() -> list[Contender]:
    """All of them; memory that is private is made anew for PyTorch, whose first put() moves it."""
    import numpy
    import torch
    from dlbridge import empty_shared

    def private(nbytes: int) -> Any:
        return numpy.ones(nbytes, "uint8")

    return [
        Contender("dlbridge, shared already", lambda n: empty_shared(n, "uint8", to="numpy"), ("numpy",)),
        Contender("torch.multiprocessing, shared already", lambda n: torch.ones(n, dtype=torch.uint8).share_memory_()),
        Contender("dlbridge, copied once", private, ("numpy",)),
        Contender("torch.multiprocessing, moved", lambda n: torch.ones(n, dtype=torch.uint8), anew=True),
        Contender("pickling of NumPy", private),
    ]


def cuda_contenders() -> list[Contender]:
    """The same of arrays on a GPU, which both leave where they are. None without one."""
    import torch

    if not torch.cuda.is_available():
        return []

    def ones(nbytes: int) -> Any:
        return torch.ones(nbytes, dtype=torch.uint8, device="cuda")

    return [
        Contender("dlbridge, a tensor on a GPU", ones, ("torch",)),
        Contender("torch.multiprocessing, a tensor on a GPU", ones),
    ]


def trip(contender: Contender, x: Any, queue: Any, answers: Any) -> float:
    """Seconds of one."""
    from dlbridge.multiprocessing import install, uninstall

    if contender.installed:
        install(*contender.installed)
    try:
        begin = time.perf_counter()
        queue.put(x)
        answers.get()
        return time.perf_counter() - begin
    finally:
        uninstall()


def round_trips(order: list[Contender], nbytes: int, rounds: int, queue: Any, answers: Any) -> dict[str, list[float]]:
    """Seconds of all contenders, in an order shuffled anew in each round; the first round is not among them."""
    seconds: dict[str, list[float]] = {contender.name: [] for contender in order}
    kept = {one.name: one.make(nbytes) for one in order if not one.anew and nbytes <= KEPT_BYTES}
    shuffle = random.Random(1).shuffle
    for number in range(rounds + 1):
        shuffle(order)
        for contender in order:
            x = kept[contender.name] if contender.name in kept else contender.make(nbytes)
            taken = trip(contender, x, queue, answers)
            del x
            if number:
                seconds[contender.name].append(taken)
    return seconds


def opening(handle: Any, rounds: int) -> float:
    """Seconds of opening a handle whose memory the process has mapped, in the best round."""
    kept = handle.open("dlbridge")
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(100):
            handle.open("dlbridge")
        best = min(best, (time.perf_counter() - begin) / 100)
    del kept
    return best


def open_there(queue: Any, answers: Any, rounds: int) -> None:
    """The process that opens what another has shared."""
    answers.put(opening(queue.get(), rounds))


def opening_elsewhere(x: Any, rounds: int, context: Any) -> float:
    """`opening()` in a process that has not made the array."""
    from dlbridge import share

    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=open_there, args=(queue, answers, rounds), daemon=True)
    process.start()
    queue.put(share(x))
    seconds = float(answers.get())
    process.join()
    return seconds


def copying(nbytes: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of what the copy of private memory is held against, in one process."""
    import numpy
    from dlbridge import share

    x, there = numpy.ones(nbytes, "uint8"), numpy.ones(nbytes, "uint8")
    ways = {
        "share()": lambda: share(x).close(),
        "to memory that is there": lambda: numpy.copyto(there, x),
        "to new memory": lambda: x.copy(),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    shuffle = random.Random(1).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            begin = time.perf_counter()
            ways[name]()
            seconds[name].append(time.perf_counter() - begin)
    return seconds


def cell(seconds: list[float]) -> str:
    return f"{1e3 * min(seconds):.3f} / {1e3 * statistics.median(seconds):.3f}"


def rows(order: list[Contender], columns: list[dict[str, list[float]]]) -> list[str]:
    return [f"| {one.name} | {' | '.join(cell(column[one.name]) for column in columns)} |" for one in order]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200, help="of the small sizes")
    parser.add_argument("--gib", type=float, default=1, help="the large size")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    options = parser.parse_args(arguments)
    env = Environment()
    missing = [name for name in ("dlbridge", "numpy", "torch") if env.get(name) is None]
    if missing:
        print(f"share.py: no {', '.join(missing)}", file=sys.stderr)
        return 1
    context = multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(queue, answers), daemon=True)
    process.start()
    sizes = {name: (nbytes, options.rounds) for name, nbytes in SIZES.items()}
    sizes[f"{options.gib:g} GiB"] = int(options.gib * (1 << 30)), 5
    table, opened = [], []
    for order in (contenders(), cuda_contenders()):
        columns = [round_trips(list(order), *size, queue, answers) for size in sizes.values() if order]
        table += rows(order, columns)
    queue.put(None)
    process.join()
    from dlbridge import empty_shared

    samples = [
        ("the host", empty_shared(1 << 20, "uint8")),
        *(("a GPU", one.make(1 << 20)) for one in cuda_contenders()[:1]),
    ]
    for place, x in samples:
        seconds = opening_elsewhere(x, options.rounds, context)
        opened.append(f"{1e6 * seconds:.1f} us on {place}")
    copied = copying(sizes[f"{options.gib:g} GiB"][0], 5)
    lines = [
        "ms from put() to the answer of a process that has read an element, best / median round. Rounds of all are",
        "interleaved; others worked on the machine: compare within a column.\n",
        f"| | {' | '.join(sizes)} |",
        "| --- " * (len(sizes) + 1) + "|",
        *table,
        f"\nOpening a handle of memory that is mapped already, as a Tensor: {', '.join(opened)}.\n",
        f"One process alone, a copy of {options.gib:g} GiB, ms, best / median: "
        + ", ".join(f"{name} {cell(seconds)}" for name, seconds in copied.items())
        + ".\n",
    ]
    _machine.publish_page(options.out, "share", "Arrays between processes", env.versions(), lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
