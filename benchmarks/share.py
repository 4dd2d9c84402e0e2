"""Arrays from one process to another: through a queue by dlbridge, by torch.multiprocessing and by pickling.

    python benchmarks/share.py [--rounds 200] [--gib 1] [--out FOLDER]

See benchmarks/README.md for the method. Needs NumPy and PyTorch. The array goes to a process that reads one element of
it and answers with a number; the time is from put() to the answer.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pathlib
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


def round_trips(contender: Contender, nbytes: int, rounds: int, queue: Any, answers: Any) -> list[float]:
    """Seconds of each round; the first is not among them."""
    from dlbridge.multiprocessing import install, uninstall

    if contender.installed:
        install(*contender.installed)
    try:
        x = contender.make(nbytes)
        seconds = []
        for _ in range(rounds + 1):
            if contender.anew:
                x = contender.make(nbytes)
            begin = time.perf_counter()
            queue.put(x)
            answers.get()
            seconds.append(time.perf_counter() - begin)
        return seconds[1:]
    finally:
        uninstall()


def opening(rounds: int) -> list[float]:
    """Seconds of opening a handle whose memory the process has mapped."""
    from dlbridge import empty_shared, share

    handle = share(empty_shared(1 << 20, "uint8"))
    kept = handle.open("dlbridge")
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(100):
            handle.open("dlbridge")
        seconds.append((time.perf_counter() - begin) / 100)
    del kept
    return seconds


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
    rows = []
    for contender in contenders():
        cells = []
        for nbytes, rounds in sizes.values():
            seconds = round_trips(contender, nbytes, rounds, queue, answers)
            cells.append(f"{1e3 * min(seconds):.3f} / {1e3 * statistics.median(seconds):.3f}")
        rows.append(f"| {contender.name} | {' | '.join(cells)} |")
    queue.put(None)
    process.join()
    opened = opening(options.rounds)
    machine = _machine.describe()
    version = ".".join(str(machine["python"]).split(".")[:2])
    facts = ", ".join(f"{key} {value}" for key, value in machine.items() if value and key not in ("kind", "gpu"))
    text = "\n".join(
        [
            f"# Arrays between processes on {machine['kind']}, Python {machine['python']}\n",
            f"{facts}\n",
            f"Versions: {', '.join(f'{name} {v}' for name, v in env.versions().items())}\n",
            "ms from put() to the answer of a process that has read an element, best / median round.\n",
            f"| | {' | '.join(sizes)} |",
            "| --- " * (len(sizes) + 1) + "|",
            *rows,
            f"\nOpening a handle of memory that is mapped already: {1e6 * min(opened):.1f} us, as a Tensor.\n",
        ]
    )
    _machine.publish(text, options.out / f"share-{machine['kind']}-py{version}.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
