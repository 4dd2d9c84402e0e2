"""What all reports share: the counts of a producer and a consumer, and reasons said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dlbridge.tests._plan import CONVERT, READ
from dlbridge.tests._results import BAD, EXIT, IMPORT, Cell, Results, Status

# Titles of the two tables, and which routes each holds.
TITLES = {"convert": "convert(x, consumer)", "own": "consumer's own importer of asdlpack(x)"}
_SHORT = {
    Status.COPIES: "c",
    Status.REFUSED: "r",
    Status.WRONG: "W",
    Status.CRASHED: "X",
    Status.HUNG: "H",
    Status.ABSENT: "-",
}
LEGEND = (
    "works: all with no copy; 56 12c 3r: 56 with no copy, 12 by copy, 3 refused; W wrong, X crashed, H hung, - not made"
)


def table_of(cell: Cell) -> str:
    """The table that a cell belongs to; empty for cells that are no exchange."""
    if cell.route in (READ, IMPORT, EXIT):
        return ""
    return "convert" if cell.route == CONVERT else "own"


def brief(counts: Counter[Status]) -> str:
    """The counts of one pair in a few characters."""
    total = sum(counts.values())
    for status in (Status.WORKS, Status.COPIES, Status.REFUSED):
        if counts[status] == total:
            return str(status.value)
    parts = [str(counts[Status.WORKS])] if counts[Status.WORKS] else []
    parts += [f"{counts[status]}{mark}" for status, mark in _SHORT.items() if counts[status]]
    return " ".join(parts)


@dataclass
class Table:
    """One table: the counts by producer and consumer, in the order met."""

    title: str
    producers: list[str] = field(default_factory=list)
    consumers: list[str] = field(default_factory=list)
    counts: dict[tuple[str, str], Counter[Status]] = field(default_factory=dict)

    def text(self, producer: str, consumer: str) -> str:
        found = self.counts.get((producer, consumer))
        return brief(found) if found else "-"

    def worst(self, producer: str, consumer: str) -> Status | None:
        """The status that a reader must see first."""
        found = self.counts.get((producer, consumer), Counter[Status]())
        order = (*BAD, Status.REFUSED, Status.COPIES, Status.WORKS)
        return next((status for status in order if found[status]), None)


def tables(results: Results) -> list[Table]:
    """The tables that have anything in them."""
    made = {key: Table(title) for key, title in TITLES.items()}
    for cell in results.cells:
        key = table_of(cell)
        if key:
            made[key].counts.setdefault((cell.producer, cell.consumer), Counter())[cell.status] += 1
    for table in made.values():
        table.producers = list(dict.fromkeys(producer for producer, _ in table.counts))
        table.consumers = list(dict.fromkeys(consumer for _, consumer in table.counts))
    return [table for table in made.values() if table.counts]


def _spans(cells: list[Cell]) -> str:
    dtypes = list(dict.fromkeys(cell.dtype for cell in cells if cell.dtype))
    layouts = list(dict.fromkeys(cell.layout for cell in cells if cell.layout))
    few = ", ".join(dtypes) if len(dtypes) <= 4 else f"{len(dtypes)} dtypes"
    return "; ".join(filter(None, (few, ", ".join(layouts))))


def reasons(cells: Iterable[Cell], wanted: Iterable[Status]) -> Iterator[tuple[str, str, str]]:
    """(heading, what it concerns, reason), each reason of a producer, consumer and route once."""
    kept = frozenset(wanted)
    grouped: dict[tuple[str, str, str, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.status in kept and cell.reason:
            key = (cell.status.value, cell.consumer, cell.route, cell.producer, _without_numbers(cell.reason))
            grouped.setdefault(key, []).append(cell)
    for (status, consumer, route, producer, _), group in grouped.items():
        heading, what = f"{status} by {consumer} ({route})", producer
        if route == IMPORT:
            heading, what = (
                f"{status} at the import of {consumer}",
                "alone" if producer == consumer else f"beside {producer}",
            )
        elif route == EXIT:
            heading, what = f"{status} at exit", f"{producer} with {consumer}"
        elif group[0].layout:
            what = f"{producer} [{_spans(group)}]"
        yield heading, what, group[0].reason


def reproducers(results: Results) -> Iterator[Cell]:
    """The cells whose scripts are worth showing: the first of each producer, consumer and route."""
    shown: set[tuple[str, str, str]] = set()
    for cell in results.cells:
        key = (cell.producer, cell.consumer, cell.route)
        if cell.reproducer and key not in shown:
            shown.add(key)
            yield cell


def troubles(results: Results) -> Iterator[str]:
    """What is wrong with the run as a whole."""
    if results.stopped:
        yield f"not finished: {results.stopped}"
    for name, why in results.missing.items():
        yield f"required, and not there: {name} ({why})"


def _without_numbers(reason: str) -> str:
    """Reasons that differ in addresses and shapes only are one."""
    return "".join("#" if character.isdigit() else character for character in reason)


def refused_readings(results: Results) -> list[Cell]:
    """What asdlpack() itself refused or read wrongly."""
    return [cell for cell in results.cells if cell.route == READ and cell.status is not Status.WORKS]
