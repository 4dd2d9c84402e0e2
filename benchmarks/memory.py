"""A million round trips leave nothing behind, and importing dlbridge is cheap.

    python benchmarks/memory.py [--count 1000000] [--imports 31] [--only TEXT] [--out FOLDER]

Exits 1 when resident memory, live objects or allocated blocks grow, or when the import is too slow.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
from _peers import Environment  # noqa: E402
from _timing import Call  # noqa: E402
from _trips import trips  # noqa: E402

# One leaked pointer a trip is 8 MB in a million trips; the allocators' own motion stays below this.
MAX_GROWTH_BYTES = 1 << 20
# Blocks that the interpreter itself keeps (method caches, the integers of this script).
MAX_GROWTH_BLOCKS = 64
MAX_IMPORT_MS = 20.0
WARM_UP_SHARE = 10
FRAMEWORKS = ("numpy", "torch", "cupy", "jax", "tensorflow", "numba", "pyarrow", "tvm_ffi")


@dataclass(frozen=True)
class Growth:
    """What was there after the trips and not before them."""

    trip: str
    count: int
    seconds: float
    resident_bytes: int
    blocks: int
    producer_references: int
    live: dict[str, int]
    error: str | None = None

    def faults(self) -> list[str]:
        found = [] if self.error is None else [self.error]
        if self.resident_bytes > MAX_GROWTH_BYTES:
            found.append(f"resident memory grew by {self.resident_bytes / 1024:.0f} KiB")
        if self.blocks > MAX_GROWTH_BLOCKS:
            found.append(f"{self.blocks} more allocated blocks")
        if self.producer_references != 0:
            found.append(f"{self.producer_references:+d} references to the producer")
        found += [f"{n:+d} live {name}" for name, n in self.live.items() if n != 0]
        return found


def resident_bytes() -> int:
    """Resident memory without file pages, which come and go with the page cache."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        _, resident, shared, *_ = map(int, statm.read().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def _repeat(call: Call, count: int) -> None:
    for _ in itertools.repeat(None, count):
        call()


def _live(env: Environment) -> dict[str, int]:
    return dict(env.dlbridge._core.live_counts()) if env.get("dlbridge") else {}


def grow(env: Environment, trip: str, producer: object, call: Call, count: int) -> Growth:
    """Runs the trip `count` times after a warm-up and returns what stayed."""
    _repeat(call, max(1, count // WARM_UP_SHARE))
    gc.collect()
    live = _live(env)
    references = sys.getrefcount(producer)
    blocks = sys.getallocatedblocks()
    resident = resident_bytes()
    begin = time.perf_counter()
    _repeat(call, count)
    seconds = time.perf_counter() - begin
    gc.collect()
    # The resident size first: the other readings allocate.
    more_resident = resident_bytes() - resident
    more_blocks = sys.getallocatedblocks() - blocks
    # None and other immortal objects have no count worth comparing.
    more_references = 0 if producer is None else sys.getrefcount(producer) - references
    after = _live(env)
    more_live = {name: after[name] - n for name, n in live.items()}
    return Growth(trip, count, seconds, more_resident, more_blocks, more_references, more_live)


def _checked(env: Environment, trip: str, producer: object, call: Call, count: int) -> Growth:
    """A trip that raises is a fault of that trip: the others still run."""
    try:
        call()
    except Exception as error:
        return Growth(trip, 1, 0.0, 0, 0, 0, {}, f"raised {type(error).__name__}: {error}"[:120])
    return grow(env, trip, producer, call, count)


def control(env: Environment, count: int) -> Growth:
    """A trip that does leak: the measurement is only worth something when it sees this one."""
    kept: list[object] = []
    data = bytearray(8)
    result = grow(env, "negative control", data, lambda: kept.append(memoryview(data)), count)
    if not result.faults():
        raise AssertionError("the deliberate leak was not seen")
    return result


def _import_us(statement: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return (time.perf_counter() - begin) * 1e6


def import_cost(runs: int) -> dict[str, Any]:
    """Whole processes with and without the import, interleaved: the difference of their medians."""
    statements = {"bare": "pass", "dlbridge": "import dlbridge"}
    taken: dict[str, list[float]] = {name: [] for name in statements}
    for statement in statements.values():  # writes the byte code, fills the page cache
        _import_us(statement)
    for _ in range(runs):
        for name, statement in statements.items():
            taken[name].append(_import_us(statement))
    medians = {name: statistics.median(us) / 1000 for name, us in taken.items()}
    return {
        "runs": runs,
        "interpreter_ms": medians["bare"],
        "with_dlbridge_ms": medians["dlbridge"],
        "beyond_interpreter_ms": medians["dlbridge"] - medians["bare"],
        "importtime_ms": statistics.median(_importtime_ms() for _ in range(max(3, runs // 4))),
        "frameworks_imported": _frameworks_imported(),
    }


def _importtime_ms() -> float:
    """The cumulative figure of -X importtime, which costs a little itself."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import dlbridge"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"\|\s*(\d+) \|\s*dlbridge$", done.stderr, re.MULTILINE)
    return int(found.group(1)) / 1000 if found else float("nan")


def _frameworks_imported() -> list[str]:
    code = f"import dlbridge, sys; print(*[m for m in {FRAMEWORKS!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def markdown(document: dict[str, Any]) -> str:
    machine = document["machine"]
    cost = document["import"]
    lines = [f"# Memory and import time on {machine['kind']}, Python {machine['python']}", ""]
    lines.append(", ".join(f"{k} {v}" for k, v in machine.items() if v is not None and k != "kind"))
    lines += [
        "",
        f"`import dlbridge`: {cost['beyond_interpreter_ms']:.1f} ms beyond the interpreter's "
        f"{cost['interpreter_ms']:.1f} ms (medians of {cost['runs']} processes each; goal "
        f"<= {MAX_IMPORT_MS:g} ms); -X importtime says {cost['importtime_ms']:.1f} ms. Frameworks "
        f"imported with it: {' '.join(cost['frameworks_imported']) or 'none'}.",
        "",
        "| round trip | trips | ns each | resident, KiB | blocks | live objects | verdict |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for trip in [document["control"], *document["trips"]]:
        leaks = sum(trip["live"].values())
        lines.append(
            f"| `{trip['trip']}` | {trip['count']:,} | {trip['seconds'] / trip['count'] * 1e9:,.0f} "
            f"| {trip['resident_bytes'] / 1024:+,.0f} | {trip['blocks']:+d} | {leaks:+d} "
            f"| {'; '.join(trip['faults']) or 'nothing grows'} |"
        )
    return "\n".join(lines) + "\n"


def _with_faults(growth: Growth) -> dict[str, Any]:
    return {**asdict(growth), "faults": growth.faults()}


def run(options: argparse.Namespace) -> dict[str, Any]:
    env = Environment()
    cost = import_cost(options.imports)
    if env.get("dlbridge") is None:
        raise SystemExit(f"dlbridge: {env.absent['dlbridge']}")
    leak = control(env, max(1000, options.count // 10))
    gc.collect()
    grown = []
    for trip, producer, call in trips(env):
        if options.only in trip:
            grown.append(_checked(env, trip, producer, call, options.count))
            print(f"{trip}: {'; '.join(grown[-1].faults()) or 'nothing grows'}", flush=True)
    return {
        "benchmark": "memory",
        "machine": _machine.describe(),
        "versions": env.versions(),
        "import": cost,
        "control": _with_faults(leak),
        "trips": [_with_faults(growth) for growth in grown],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000, help="trips of each kind")
    parser.add_argument("--imports", type=int, default=31, help="processes of each kind")
    parser.add_argument("--only", default="", help="trips whose label holds this text")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    options = parser.parse_args(arguments)
    document = run(options)
    text = markdown(document)
    machine = document["machine"]
    version = ".".join(machine["python"].split(".")[:2])
    _machine.publish(text, options.out / f"memory-{machine['kind']}-py{version}.md")
    cost = document["import"]
    too_slow = cost["beyond_interpreter_ms"] > MAX_IMPORT_MS or cost["frameworks_imported"]
    return 1 if too_slow or any(trip["faults"] for trip in document["trips"]) else 0


if __name__ == "__main__":
    sys.exit(main())
