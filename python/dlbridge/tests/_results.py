"""The results of a run."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from dlbridge import _core
from dlbridge.tests import _machine

# Routes of cells that are no exchange: the import of a framework, the end of the process that loaded it.
IMPORT, EXIT = "import", "exit"


class Status(Enum):
    """What became of one exchange."""

    WORKS = "works"  # with no copy
    COPIES = "copies"  # by a copy that was declared
    REFUSED = "refused"
    WRONG = "WRONG"
    CRASHED = "CRASHED"
    HUNG = "HUNG"
    ABSENT = "absent"


# Of the JSON report, as report/schema-2.json has it. A new key needs no new number and is added there; a key that goes,
# changes its meaning or takes other values does, and a file of its own.
SCHEMA = 2

BAD = (Status.WRONG, Status.CRASHED, Status.HUNG)


@dataclass(frozen=True)
class Cell:
    """One exchange.

    `protocol` is the one that the producer was read by; `route` how the consumer got it: "convert", or the protocol
    that its own importer used; "read" is asdlpack() alone, "import" the loading of the consumer beside the producer, or
    alone where both are the same. `cost_ns` is the
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
    asked: str = ""  # the protocol that asdlpack() was told to read by; empty where it chose

    @property
    def name(self) -> str:
        """What was exchanged: no two cells of a run have the same producer, consumer and name."""
        by = f"{self.protocol} (chosen)" if self.protocol and not self.asked else self.protocol
        return " ".join(filter(None, (self.route, by, self.dtype, self.layout, self.device)))

    def todict(self) -> dict[str, Any]:
        """Plain types, without the fields that are empty."""
        kept = {key: value for key, value in vars(self).items() if value or key in ("producer", "consumer", "route")}
        return {**kept, "status": self.status.value}

    @classmethod
    def fromdict(cls, fields: dict[str, Any]) -> Cell:
        """Keys that a later version may have added are left out."""
        known = {key: value for key, value in fields.items() if key in cls.__dataclass_fields__}
        return cls(**{**known, "status": Status(fields["status"])})


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
    required: tuple[str, ...] = ()  # what must be there: names of frameworks, or "name:device"
    stopped: str = ""  # why the run ended before its end
    started: str = field(default_factory=lambda: datetime.now().astimezone().isoformat(timespec="seconds"))

    @property
    def versions(self) -> dict[str, str]:
        return {name: loaded.version for name, loaded in self.imports.items() if name != "stdlib"}

    @property
    def died(self) -> dict[str, str]:
        """How frameworks ended the process that imported them, by name."""
        return {
            cell.consumer: f"{cell.status.value}: {cell.reason}"
            for cell in self.cells
            if cell.route == IMPORT and cell.consumer not in self.imports
        }

    @property
    def missing(self) -> dict[str, str]:
        """What is required and is not there, and why."""
        found = {}
        for name in self.required:
            framework, _, device = name.partition(":")
            if framework not in self.imports:
                found[name] = self.absent.get(framework) or self.died.get(framework) or "not run"
            elif f"{framework} {device}" in self.absent:
                found[name] = self.absent[f"{framework} {device}"]
        return found

    def counts(self) -> Counter[Status]:
        return Counter(cell.status for cell in self.cells)

    def count(self, status: Status) -> int:
        return sum(cell.status is status for cell in self.cells)

    @property
    def exit_code(self) -> int:
        """0: all is well.

        1: a wrong value, pointer or mark, a leak, a crash or a hang, a required framework that is not there, or a run
        that was ended early; 2: nothing could be run.
        """
        if self.missing or self.stopped or any(cell.status in BAD for cell in self.cells):
            return 1
        return 0 if any(cell.route not in (IMPORT, EXIT, "read") for cell in self.cells) else 2

    def header(self) -> dict[str, Any]:
        """All but the exchanges, in plain types."""
        counts = self.counts()
        return {
            "schema": SCHEMA,
            "dlbridge": _core.__version__,
            "python": platform.python_version(),
            "started": self.started,
            **_machine.describe(),
            "mode": self.mode,
            "versions": self.versions,
            "imports": {name: asdict(loaded) for name, loaded in self.imports.items()},
            "absent": dict(self.absent),
            "required": list(self.required),
            "missing": self.missing,
            "stopped": self.stopped,
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
