"""The results of a run, as a plain-text table or as JSON."""

from __future__ import annotations

import json as json_module
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TextIO

from dlbridge import _core


class Status(Enum):
    WORKS = "works"
    COPIES = "copies"
    REFUSED = "refused"
    WRONG = "WRONG"


@dataclass(frozen=True)
class Cell:
    """One exchange; `route` is "read" (asdlpack alone), "convert" or "from_dlpack"."""

    producer: str
    consumer: str
    route: str
    status: Status
    reason: str = ""
    protocol: str = ""


@dataclass
class Results:
    """All exchanges of a run, the versions met, and why the rest is absent."""

    versions: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    load_s: float = 0.0
    run_s: float = 0.0

    def count(self, status: Status) -> int:
        return sum(cell.status is status for cell in self.cells)

    @property
    def exit_code(self) -> int:
        """0: all is well; 1: a wrong value, pointer or a leak; 2: nothing could be run."""
        if not self.cells:
            return 2
        return 1 if self.count(Status.WRONG) else 0

    def todict(self) -> dict[str, Any]:
        """Plain types only."""
        return {
            "dlbridge": _core.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cuda": dict(_core.cuda_info()),
            "versions": dict(self.versions),
            "absent": dict(self.absent),
            "counts": {status.value: self.count(status) for status in Status},
            "exit_code": self.exit_code,
            "load_s": round(self.load_s, 3),
            "run_s": round(self.run_s, 3),
            "exchanges": [{**vars(cell), "status": cell.status.value} for cell in self.cells],
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.count(status)} {status.value}" for status in Status)
        return f"<dlbridge.tests results: {counts}>"


def _table(results: Results, route: str) -> Iterator[str]:
    """One line a producer, one column a consumer."""
    cells = {(c.producer, c.consumer): c.status.value for c in results.cells if c.route == route}
    consumers = list(dict.fromkeys(consumer for _, consumer in cells))
    producers = list(dict.fromkeys(producer for producer, _ in cells))
    if not producers:
        return
    first = max(len(name) for name in producers)
    width = {name: max(len(name), len("refused")) for name in consumers}
    yield " " * first + "  " + "  ".join(name.ljust(width[name]) for name in consumers).rstrip()
    for producer in producers:
        line = "  ".join(cells.get((producer, name), "-").ljust(width[name]) for name in consumers)
        yield f"{producer.ljust(first)}  {line.rstrip()}"


def _reasons(results: Results, wanted: tuple[Status, ...]) -> Iterator[str]:
    """Each reason once, with the exchanges it explains."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for cell in results.cells:
        if cell.status in wanted and cell.reason:
            grouped.setdefault((cell.status.value, cell.consumer, cell.route), []).append(
                f"{cell.producer}: {cell.reason}"
            )
    for (status, consumer, route), lines in grouped.items():
        yield f"{status} by {consumer} ({route})"
        yield from (f"    {line}" for line in lines)


def _lines(results: Results, verbose: bool) -> Iterator[str]:
    cuda = _core.cuda_info()
    where = f"{cuda['device_count']} CUDA device(s)" if cuda["available"] else f"no CUDA: {cuda['reason']}"
    yield f"dlbridge {_core.__version__}, Python {platform.python_version()}, {where}"
    if results.versions:
        yield "with " + ", ".join(f"{name} {version}" for name, version in results.versions.items())
    titles = {"convert": "convert(x, consumer)", "from_dlpack": "consumer.from_dlpack(asdlpack(x))"}
    for route, title in titles.items():
        lines = list(_table(results, route))
        if lines:
            yield ""
            yield title
            yield from lines
    wanted = (Status.WRONG, Status.REFUSED, Status.COPIES) if verbose else (Status.WRONG,)
    reasons = list(_reasons(results, wanted))
    if reasons:
        yield ""
        yield from reasons
    if results.absent:
        yield ""
        yield from (f"absent: {name} ({why})" for name, why in results.absent.items())
    yield ""
    counts = ", ".join(f"{results.count(status)} {status.value}" for status in Status)
    yield f"{counts}; frameworks loaded in {results.load_s:.1f} s, exchanged in {results.run_s:.1f} s"
    if not verbose and results.count(Status.REFUSED) + results.count(Status.COPIES):
        yield "-v says why exchanges were refused or copied"


def write(results: Results, *, verbose: bool, json: bool, file: TextIO | None) -> None:
    """Prints `results` to `file`, by default standard output."""
    out = sys.stdout if file is None else file
    if json:
        json_module.dump(results.todict(), out, indent=1)
        out.write("\n")
        return
    out.write("\n".join(_lines(results, verbose)) + "\n")
