"""What handles and processes take of one machine: descriptors, mappings, sockets, memory, as the kernel counts them.

    python benchmarks/scale.py [--handles 10000] [--processes 200] [--out FOLDER]

See benchmarks/README.md for the method. Needs Linux, and more descriptors than handles (`ulimit -n`). The other
processes are plain Python with dlbridge alone.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import pathlib
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402

KIB = 1024
ARRAY_BYTES = 4 * KIB
SAMPLE = 100  # the first and the last so many of the handles are timed by themselves
READERS = 2  # who share the handles between them: before Python 3.13, mmap takes a second descriptor of each mapping


class Counts(NamedTuple):
    """What a process has open, and memory that it has for itself."""

    descriptors: int
    mappings: int
    sockets: int
    private_kib: int

    def since(self, before: Counts) -> Counts:
        return Counts(*(now - then for now, then in zip(self, before, strict=True)))


def counts() -> Counts:
    """Of this process."""
    gc.collect()
    rollup = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()
    private = sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Clean", "Private_Dirty")))
    targets = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing
            targets.append(os.readlink(f"/proc/self/fd/{name}"))
    maps = pathlib.Path("/proc/self/maps").read_bytes().count(b"\n")
    return Counts(len(targets), maps, sum(one.startswith("socket:") for one in targets), private)


@dataclass
class Timed:
    """Seconds an item: of all, of the first and of the last."""

    all: float
    first: float
    last: float


def timed(work: Callable[[Any], Any], items: Sequence[Any]) -> tuple[Timed, list[Any]]:
    """What `work` makes of each item."""
    results, ends = [], []
    begin = time.perf_counter()
    for item in items:
        results.append(work(item))
        ends.append(time.perf_counter())
    some = min(SAMPLE, len(items))
    last = ends[-1] - (ends[-some - 1] if some < len(items) else begin)
    return Timed((ends[-1] - begin) / len(items), (ends[some - 1] - begin) / some, last / some), results


# ---- the other processes


def child() -> None:
    """Does what it is told to by pickles, and answers with what came of it and with what it has open then."""
    from dlbridge import empty_shared, share

    kept: list[Any] = []

    def opened(handles: list[Any]) -> Timed:
        seconds, arrays = timed(lambda handle: handle.open("dlbridge"), handles)
        kept.extend(arrays)
        return seconds

    def made(_: Any) -> Any:
        kept.append(share(empty_shared(ARRAY_BYTES, "uint8", to="dlbridge")))
        return kept[-1]

    works: dict[str, Callable[[Any], Any]] = {"open": opened, "make": made, "count": lambda _: None}
    while True:
        what, value = pickle.load(sys.stdin.buffer)
        if what == "end":
            return
        result = works[what](value)
        del value
        pickle.dump((result, counts()), sys.stdout.buffer)
        sys.stdout.buffer.flush()


class Child:
    """A process that runs `child()`."""

    def __init__(self) -> None:
        command = [sys.executable, __file__, "--child"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, what: str, value: Any = None) -> None:
        assert self.process.stdin is not None
        pickle.dump((what, value), self.process.stdin)
        self.process.stdin.flush()

    def hear(self) -> Any:
        assert self.process.stdout is not None
        return pickle.load(self.process.stdout)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.tell("end")
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@contextlib.contextmanager
def children(number: int) -> Iterator[tuple[list[Child], list[Counts]]]:
    """Processes, and what each has open before it does anything."""
    all_of_them = [Child() for _ in range(number)]
    try:
        for one in all_of_them:
            one.tell("count")
        yield all_of_them, [one.hear()[1] for one in all_of_them]
    finally:
        for one in all_of_them:
            one.end()


# ---- the tables


def line(name: str, took: Counts, seconds: Timed | None = None) -> str:
    times = ["", "", ""] if seconds is None else [f"{1e6 * s:.1f}" for s in (seconds.all, seconds.first, seconds.last)]
    return f"| {' | '.join([name, *(f'{number:,}' for number in took), *times])} |"


def many_handles(number: int) -> Iterator[str]:
    """A process makes arrays and shares them, others open them."""
    from dlbridge import asdlpack, empty_shared, share

    half = number // READERS
    yield "| | descriptors | mappings | sockets | private KiB | us each | the first | the last |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"

    def views() -> list[Any]:
        whole = memoryview(empty_shared((number, ARRAY_BYTES), "uint8", to="dlbridge"))
        return [whole[i : i + 1] for i in range(number)]

    def copies() -> list[Any]:
        return [asdlpack(bytearray(ARRAY_BYTES)) for _ in range(number)]

    ways: dict[str, Callable[[], list[Any]]] = {
        f"{number:,} arrays of their own memory": copies,
        f"{number:,} views of one memory": views,
        f"a list of {number:,} arrays": lambda: [copies()],
    }
    for name, make in ways.items():
        before, sources = counts(), make()
        seconds, handles = timed(share, sources)
        del sources
        if len(handles) == 1:
            seconds.all = seconds.first = seconds.last = seconds.all / number
        yield line(f"{name}: the maker", counts().since(before), seconds)
        nbytes = len(pickle.dumps(handles))
        with children(READERS) as (readers, idle):
            for i, reader in enumerate(readers):
                reader.tell("open", handles[i * half : (i + 1) * half] if len(handles) > 1 else handles)
            opened = [reader.hear() for reader in readers]
        seconds, after = opened[0]
        if len(handles) == 1:
            seconds.all = seconds.first = seconds.last = seconds.all / number
        share_of = f"{half:,} of them" if len(handles) > 1 else "the list"
        yield line(f"{name}: one of {READERS} readers, {share_of}", after.since(idle[0]), seconds)
        yield f"| {name}: pickled | | | | {nbytes / KIB:,.0f} in all | | | |"
        del handles


def many_processes(number: int) -> Iterator[str]:
    """Processes that have an array in common, and processes each of which has one of each."""
    from dlbridge import empty_shared, share

    yield "| | descriptors | mappings | sockets | private KiB | s, until all have it |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"

    def row(name: str, took: Counts, seconds: float | None = None) -> str:
        return line(name, took).removesuffix(" |  |  |  |") + f" | {'' if seconds is None else f'{seconds:.2f}'} |"

    begin = time.perf_counter()
    with children(number) as (processes, idle):
        started = time.perf_counter() - begin
        yield row(f"a process of {number} that has done nothing", idle[-1], started)
        handle = share(empty_shared(ARRAY_BYTES, "uint8", to="dlbridge"))
        before = counts()
        begin = time.perf_counter()
        for one in processes:
            one.tell("open", [handle])
        common = [one.hear()[1] for one in processes]
        seconds = time.perf_counter() - begin
        yield row(
            f"one array, open in {number} processes: what that adds to its maker", counts().since(before), seconds
        )
        yield row("each of them", common[-1].since(idle[-1]))
        for one in processes:
            one.tell("make")
        handles = [one.hear()[0] for one in processes]
        begin = time.perf_counter()
        for one in processes:
            one.tell("open", handles)
        all_to_all = [one.hear()[1] for one in processes]
        seconds = time.perf_counter() - begin
        took = [after.since(then) for after, then in zip(all_to_all, idle, strict=True)]
        yield row(f"an array of each of {number} processes, open in all: each of them", took[-1], seconds)
        yield row("all of them together", Counts(*(sum(column) for column in zip(*took, strict=True))))


def limits() -> Iterator[str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield "| limit | here |"
    yield "| --- | ---: |"
    yield f"| descriptors of a process, soft and hard (`ulimit -n`) | {soft:,} / {hard:,} |"
    for name, file in {
        "mappings of a process": "vm/max_map_count",
        "open files of the machine": "fs/file-max",
        "processes and threads of the machine": "kernel/pid_max",
    }.items():
        yield f"| {name} (`/proc/sys/{file}`) | {int(pathlib.Path('/proc/sys', file).read_text()):,} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--handles", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child()
        return 0
    from dlbridge import __version__

    machine = _machine.describe()
    version = ".".join(str(machine["python"]).split(".")[:2])
    facts = ", ".join(f"{key} {value}" for key, value in machine.items() if value and key not in ("kind", "gpu"))
    text = "\n".join(
        [
            f"# Handles and processes on {machine['kind']}, Python {machine['python']}\n",
            f"{facts}, Linux {os.uname().release.partition('-')[0]}, dlbridge {__version__}\n",
            f"Arrays of {ARRAY_BYTES // KIB} KiB of host memory. What each adds to its process, as the kernel counts.",
            f"us each: of all, of the first {SAMPLE} and of the last {SAMPLE}. Others worked on the machine.\n",
            "## Handles\n",
            *many_handles(options.handles),
            "\n## Processes\n",
            *many_processes(options.processes),
            "\n## Limits\n",
            *limits(),
            "",
        ]
    )
    _machine.publish(text, options.out / f"scale-{machine['kind']}-py{version}.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
