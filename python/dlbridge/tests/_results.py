"""The results of a run."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from dlbridge import _core


class Status(Enum):
    """What became of one exchange."""

    WORKS = "works"  # with no copy
    COPIES = "copies"  # by a copy that was declared
    REFUSED = "refused"
    WRONG = "WRONG"
    CRASHED = "CRASHED"
    HUNG = "HUNG"
    ABSENT = "absent"


BAD = (Status.WRONG, Status.CRASHED, Status.HUNG)


@dataclass(frozen=True)
class Cell:
    """One exchange.

    `protocol` is the one that the producer was read by; `route` how the consumer got it: "convert", or the protocol
    that its own importer used; "read" is asdlpack() alone, "import" the loading of a framework. `cost_ns` is the
    quickest of a few calls of asdlpack() and the route together, 0 where none was measured.
    """

    producer: str
    consumer: str
    route: str
    status: Status
    reason: str = ""
    protocol: str = ""
    dtype: str = ""
    layout: str = ""
    device: str = ""
    cost_ns: int = 0
    culprit: str = ""  # of a wrong result: the library at fault
    reproducer: str = ""  # a script that shows it

    def todict(self) -> dict[str, Any]:
        """Plain types, without the fields that are empty."""
        kept = {key: value for key, value in vars(self).items() if value or key in ("producer", "consumer", "route")}
        return {**kept, "status": self.status.value}

    @classmethod
    def fromdict(cls, fields: dict[str, Any]) -> Cell:
        return cls(**{**fields, "status": Status(fields["status"])})


@dataclass
class Import:
    """How the loading of a framework went."""

    version: str = "?"
    seconds: float = 0.0
    threads: int = 0  # that it started
    printed: str = ""  # what it wrote to standard output or error
    path: str = ""  # where it was found


@dataclass
class Results:
    """All exchanges of a run, what was loaded, and why the rest is absent."""

    imports: dict[str, Import] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    load_s: float = 0.0
    run_s: float = 0.0
    mode: str = "default"

    @property
    def versions(self) -> dict[str, str]:
        return {name: loaded.version for name, loaded in self.imports.items() if name != "stdlib"}

    def counts(self) -> Counter[Status]:
        return Counter(cell.status for cell in self.cells)

    def count(self, status: Status) -> int:
        return sum(cell.status is status for cell in self.cells)

    @property
    def exit_code(self) -> int:
        """0: all is well; 1: a wrong value, pointer or mark, a leak, a crash or a hang; 2: nothing could be run."""
        if any(cell.status in BAD for cell in self.cells):
            return 1
        return 0 if any(cell.route not in ("import", "read") for cell in self.cells) else 2

    def header(self) -> dict[str, Any]:
        """All but the exchanges, in plain types."""
        counts = self.counts()
        return {
            "dlbridge": _core.__version__,
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "mode": self.mode,
            "cuda": dict(_core.cuda_info()),
            "versions": self.versions,
            "imports": {name: asdict(loaded) for name, loaded in self.imports.items()},
            "absent": dict(self.absent),
            "counts": {status.value: counts[status] for status in Status},
            "exit_code": self.exit_code,
            "load_s": round(self.load_s, 3),
            "run_s": round(self.run_s, 3),
        }

    def todict(self) -> dict[str, Any]:
        """Everything in plain types: fit for json.dumps()."""
        return {**self.header(), "exchanges": [cell.todict() for cell in self.cells]}

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {status.value}" for status, number in self.counts().items())
        return f"<dlbridge.tests results: {counts or 'none'}>"
