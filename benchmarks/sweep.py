"""Every function of dlbridge.nd that a peer has, over dtypes, sizes, layouts and axes: ours against theirs.

    python benchmarks/sweep.py --device cpu  [--sizes 16,1k,1M] [--seconds 300] [--out FILE]    against NumPy
    python benchmarks/sweep.py --device cuda [--sizes 16,1k,1M,64M] ...                         PyTorch and CuPy
    python benchmarks/sweep.py --out FILE --report      benchmarks/results/sweep-MACHINE-pyVERSION.md

The rows are the differential's (tests/oracle). A result is compared with the peer's before it is timed. FILE has a line
of JSON for each row; a row that is there is not run again, so that a sweep may be run in pieces.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import pathlib
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
import _sweep_report  # noqa: E402
import gpu  # noqa: E402
import numpy as np  # noqa: E402
from _sweep_peers import OURS, peers  # noqa: E402
from _sweep_rows import SIZES, Spot, walk  # noqa: E402
from _timing import Timing, calls_for, interleave, no_collections, time_round  # noqa: E402
from oracle.arrays import make, values_of  # noqa: E402
from oracle.cases import Case, Raised, known_difference, outcome, run  # noqa: E402
from oracle.cases import size_of as size_of_operands  # noqa: E402
from oracle.compare import Leaf, difference  # noqa: E402
from oracle.families import KNOWN  # noqa: E402

PEERS = {"cpu": ("numpy",), "cuda": ("torch", "cupy")}
ROUND_US = 60.0
LARGE = 1 << 22  # elements: the memory of such a row is given back behind it
BOUNDED_FOR = 20_000  # elements: the largest sums that the oracle's error bounds are meant for
# What an element becomes that is written twice, only NumPy and we say; what random numbers are, everybody for himself.
FORM_ONLY = re.compile(r"(q\[[bd]\]|q\[::-1\]\[d\]) = v|put\(|xp\.random|xp\.empty")
SLOW_NS = 2e8  # a call: two rounds must do, and one call where it takes ten times as long

Call = Callable[[], Any]


def writes(case: Case) -> bool:
    """Whether the code has statements: these write to its inputs, and each contender has its own."""
    return len(ast.parse(case.code).body) > 1


# --- right ------------------------------------------------------------------------------------------------------------


def narrower(got: Leaf, want: Leaf) -> tuple[Leaf, Leaf]:
    """Two results in the dtype of the two that says less: libraries disagree about the dtypes of results."""
    kinds = [x.values.dtype for x in (got, want)]
    if kinds[0] == kinds[1]:
        return got, want
    least = min(kinds, key=lambda d: ("cfiub".index(d.kind), d.itemsize))
    with np.errstate(all="ignore"):
        values = [x.values.astype(least) for x in (got, want)]
    return Leaf(values[0], str(least)), Leaf(values[1], str(least))


def thinned(x: Leaf) -> Leaf:
    """Of a large result some thousand elements of everywhere, and its end: more would take longer than the timing."""
    if x.values.size <= LARGE:
        return x
    flat = x.values.reshape(-1)
    return Leaf(np.append(flat[:: flat.size // 65_537], flat[-4096:]), x.dtype)


def apart(got: Any, want: Any, ulps: float, form_only: bool, size: Any = None) -> str | None:
    """How our result differs from that of a peer with dtypes of its own; None where it does not."""
    if isinstance(got, tuple) and isinstance(want, tuple) and len(got) == len(want):
        found = (apart(one, other, ulps, form_only, size) for one, other in zip(got, want, strict=True))
        return next((message for message in found if message), None)
    if not (isinstance(got, Leaf) and isinstance(want, Leaf)):
        return difference(type(got) if form_only else got, type(want) if form_only else want, ulps, True)
    shapes = got.values.shape, want.values.shape
    if shapes[0] != shapes[1]:
        return f"shape {shapes[0]} instead of {shapes[1]}"
    return None if form_only else difference(*narrower(thinned(got), thinned(want)), ulps, True, size)


def span(x: Any) -> range:
    """The addresses of an array's memory; none of anything else."""
    interface = getattr(x, "__array_interface__", None) or getattr(x, "__cuda_array_interface__", None)
    if not (isinstance(interface, dict) and interface.get("data") and x.nbytes):
        return range(0)
    begin, strides = interface["data"][0], interface.get("strides")
    if strides is None:
        return range(begin, begin + x.nbytes)
    steps = [(extent - 1) * stride for extent, stride in zip(interface["shape"], strides, strict=True)]
    item = int(interface["typestr"][2:])
    return range(
        begin + sum(step for step in steps if step < 0), begin + sum(step for step in steps if step > 0) + item
    )


def shares(call: Call, case: Case) -> bool:
    """Whether the result of a call, or a part of it, lies in the memory of an input."""
    result, names = call(), getattr(call, "__globals__", {})
    parts = [span(part) for part in (result if isinstance(result, (tuple, list)) else [result])]
    spans = [span(names.get(name)) for name, _ in case.inputs]
    return any(len(part) and (part[0] in one or one[0] in part) for part in parts for one in spans if len(one))


# --- fast -------------------------------------------------------------------------------------------------------------


def timings_on_host(calls: dict[str, Call], seconds: float) -> dict[str, Timing]:
    once = {name: time_round(call, 1) for name, call in calls.items()}
    slowest = max(once.values())
    if slowest > 10 * SLOW_NS:
        return {name: Timing(ns, ns, 1, 1) for name, ns in once.items()}
    counts = {name: 1 if slowest > SLOW_NS else calls_for(call, ROUND_US) for name, call in calls.items()}
    return interleave(calls, counts, seconds=seconds, least=2 if slowest > SLOW_NS else 5)


def timings_on_gpu(calls: dict[str, Call], seconds: float, torch: Any) -> dict[str, Timing]:
    """By CUDA events around so many calls as take a fraction of a millisecond, as gpu.py does."""
    once = {}
    for name, call in calls.items():
        for _ in range(2):
            torch.cuda.synchronize()
            begin = time.perf_counter_ns()
            call()
            torch.cuda.synchronize()
            once[name] = time.perf_counter_ns() - begin
            if once[name] > 10 * SLOW_NS:
                break
    slowest = max(once.values())
    if slowest > 10 * SLOW_NS:
        return {name: Timing(ns, ns, 1, 1) for name, ns in once.items()}
    counts = {name: max(1, min(50, int(4000 * ROUND_US / ns))) for name, ns in once.items()}
    times = gpu.time_row(calls, torch, seconds, counts, 4 if slowest > SLOW_NS / 10 else 10)
    return {n: Timing(min(ms) * 1e6, sorted(ms)[len(ms) // 2] * 1e6, len(ms), counts[n]) for n, ms in times.items()}


class Sweep:
    """The contenders on a device, and how a row is run."""

    def __init__(self, device: str, wanted: tuple[str, ...], seconds: float) -> None:
        self.device, self.seconds = device, seconds
        self.peers, self.absent = peers(device, wanted)
        self.place = f"cpu{_machine.cpu_count()}" if device == "cpu" else _machine.kind()
        self.figure = "best_ns" if device == "cpu" else "median_ns"
        self.torch = __import__("torch") if device == "cuda" else None

    def session(self) -> dict[str, Any]:
        versions = {peer.name: peer.version for peer in self.peers.values()}
        return {"on": self.place, "machine": _machine.describe(), "versions": versions, "figure": self.figure}

    def inputs(self, case: Case) -> dict[str, Any]:
        return {name: make(spec, self.device) for name, spec in case.inputs}

    def calls(self, case: Case) -> tuple[dict[str, Call], dict[str, str]]:
        """The calls that work, and why others do not."""
        works: dict[str, Call] = {}
        refused: dict[str, str] = {}
        shared = self.inputs(case)
        for name, peer in self.peers.items():
            arrays = self.inputs(case) if writes(case) else shared
            try:
                call = peer.build(case, arrays)
                call()
                if OURS in works and not writes(case):
                    self.check_work(case, call, works[OURS])
                works[name] = call
            except Exception as error:  # a library that cannot do it is part of the result
                text = re.sub(r"\S*/\S*\s?", "", (str(error).splitlines() or [""])[0])  # without files of that machine
                refused[name] = f"{type(error).__name__}: {text}"[:120]
        return works, refused

    @staticmethod
    def check_work(case: Case, theirs: Call, ours: Call) -> None:
        """A peer that gives its argument back has not done what we do, where a copy is asked for."""
        if shares(theirs, case) and not shares(ours, case):
            raise TypeError("gives its argument, or a view of it, where a copy is asked for")

    def result(self, case: Case, name: str, call: Call) -> Any:
        """What a call gives, on inputs as they were."""
        if writes(case):
            call = self.peers[name].build(case, self.inputs(case))
        return self.peers[name].leaves(call())

    def wrong(self, case: Case, size: int, name: str, calls: dict[str, Call]) -> str | None:
        """How our result differs from a peer's, by the oracle's rules; None where it does not, or means to."""
        more = max(1.0, size / BOUNDED_FOR)
        if name == "numpy" and case.numpy is not None:
            found, _ = run(case._replace(numpy_ulps=case.numpy_ulps * more), "host", KNOWN)
            return found[0].message if found else None
        if known_difference(case, KNOWN):
            return None
        bound = max(case.device_ulps, case.numpy_ulps, 64) * more
        ours, theirs = (self.result(case, n, calls[n]) for n in (OURS, name))
        size = size_of_operands(case)
        return apart(ours, theirs, bound, FORM_ONLY.search(case.code) is not None, None if np.ndim(size) else size)

    def timings(self, calls: dict[str, Call], factor: float = 1) -> dict[str, Timing]:
        if self.torch is not None:
            return timings_on_gpu(calls, self.seconds * factor, self.torch)
        return timings_on_host(calls, self.seconds * factor)

    def row(self, spot: Spot) -> dict[str, Any]:
        """One line of the file. What is wrong is not timed against the peer that says so."""
        case = spot.case
        calls, refused = self.calls(case)
        row: dict[str, Any] = {"on": self.place, "key": spot.key, "family": case.family, "subject": spot.subject}
        row |= {"code": case.code, "dtype": spot.dtype, "size": spot.size, "layout": spot.layout, "refused": refused}
        row["wrong"] = {}
        for name in [name for name in calls if name != OURS]:
            message = None
            if OURS in calls:
                message = self.wrong(case, spot.size, name, calls)
            elif name == "numpy" and case.numpy is not None and not known_difference(case, KNOWN):
                message = f"ours raised {refused[OURS]}"
            if message:
                row["wrong"][name] = message[:300]
                del calls[name]
        if OURS in calls and len(calls) > 1:
            self.time(row, calls)
        return row

    def time(self, row: dict[str, Any], calls: dict[str, Call]) -> None:
        found = self.timings(calls)
        for again in (False, True):
            if again:  # slower than a peer: once more, and for longer
                longer = self.timings(calls, 3)
                found = {
                    n: t if longer[n].best_ns > t.best_ns and self.figure == "best_ns" else longer[n]
                    for n, t in found.items()
                }
            figures = {name: getattr(timing, self.figure) for name, timing in found.items()}
            row["peer"] = min((n for n in figures if n != OURS), key=lambda n: figures[n])
            row["ratio"] = figures[row["peer"]] / figures[OURS]
            if row["ratio"] >= 1:
                break
        row["ns"] = {name: round(figure, 1) for name, figure in figures.items()}

    def clean(self, spot: Spot) -> None:
        """Gives back what a large row holds."""
        if spot.size > LARGE:
            values_of.cache_clear()
            if self.torch is not None:
                self.torch.cuda.empty_cache()
            if "cupy" in self.peers:
                self.peers["cupy"].module.get_default_memory_pool().free_all_blocks()

    def is_lost(self, row: dict[str, Any]) -> bool:
        """Whether the device no longer works: what follows would be errors of one fault."""
        probe = Case("probe", "xp.sum(xp.ones(3, **on))", ())
        return OURS in row["refused"] and self.device == "cuda" and isinstance(outcome(probe, "cuda"), Raised)


# --- the file ---------------------------------------------------------------------------------------------------------


def read(file: pathlib.Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of results; the last one may be cut off."""
    if not file.exists():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def append(file: pathlib.Path, records: Iterator[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    cut = file.exists() and not file.read_bytes().endswith(b"\n") and file.stat().st_size
    with file.open("a", encoding="utf-8") as out:
        if cut:
            out.write("\n")
        for record in records:
            out.write(json.dumps(record) + "\n")
            out.flush()


def records(sweep: Sweep, spots: list[Spot], until: float) -> Iterator[dict[str, Any]]:
    """The session, and the rows until the time is over; prints those that are wrong or slower than a peer."""
    yield {"session": sweep.session()}
    with warnings.catch_warnings(), np.errstate(all="ignore"), no_collections():
        warnings.simplefilter("ignore")
        for position, spot in enumerate(spots):
            if time.monotonic() > until:
                return
            row = sweep.row(spot)
            if sweep.is_lost(row):
                raise SystemExit(f"the device no longer works, after {spot.key}")
            for line in _sweep_report.lines_of(row):
                print(line, flush=True)
            yield row
            sweep.clean(spot)
            if position % 256 == 255:
                gc.collect()


def size_of(text: str) -> int:
    return int(text.rstrip("kM")) * {"k": 1000, "M": 10**6}.get(text[-1], 1)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=list(PEERS), default="cpu")
    parser.add_argument("--peers", help="comma-separated; cpu: numpy, cuda: torch,cupy")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="elements: 16,1k,1M,64M")
    parser.add_argument("--only", default="", help="a regular expression that is found in a row's family and code")
    parser.add_argument("--seconds", type=float, default=300.0, help="stop after so many")
    parser.add_argument("--row-seconds", type=float, default=0.01, help="time to measure, a row")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent / "build" / "sweep.jsonl", help="file")
    parser.add_argument("--report", action="store_true", help="no run: the tables of the file")
    parser.add_argument("--note", default="", help="a sentence for the report: what else ran on the machine")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results", help="folder of the reports")
    options = parser.parse_args(arguments)
    options.sizes = tuple(size_of(text) for text in options.sizes.split(","))
    options.peers = tuple(options.peers.split(",")) if options.peers else PEERS[options.device]
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.report:
        for name, text in _sweep_report.documents(list(read(options.out)), options.note).items():
            _machine.publish(text, options.results / name)
        return 0
    sweep = Sweep(options.device, options.peers, options.row_seconds)
    for name, reason in sweep.absent.items():
        print(f"{name} does not take part: {reason}", file=sys.stderr)
    if len(sweep.peers) < 2:
        return 2
    spots = walk(options.sizes, options.only)
    done = {row["key"] for row in read(options.out) if row.get("on") == sweep.place}
    left = [spot for spot in spots if spot.key not in done]
    append(options.out, records(sweep, left, time.monotonic() + options.seconds))
    rows = [row for row in read(options.out) if row.get("on") == sweep.place]
    print(f"\n{len(spots) - len(left) + len(rows) - len(done)} of {len(spots)} rows done")
    print("\n".join(_sweep_report.summary(rows, "family")))
    return 1 if any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
