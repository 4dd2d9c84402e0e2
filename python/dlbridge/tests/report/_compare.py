"""Two reports compared: what broke since yesterday."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TextIO

from dlbridge.tests._results import IMPORT, SCHEMA, Cell, Status

# From best to worst; a copy that was declared is no worse than none at all for who reads values, but it is slower.
_RANK = {
    status: rank
    for rank, status in enumerate(
        (Status.WORKS, Status.COPIES, Status.REFUSED, Status.ABSENT, Status.WRONG, Status.HUNG, Status.CRASHED)
    )
}
_SHOWN = 200
_SLOWER = 2.0  # times; less is the machine's mood
_SLOWER_NS = 2_000
_CHANCE = "expected data aligned to"  # whether memory happens to be aligned changes from run to run

_Key = tuple[str, ...]
_Pair = tuple[str, str, str]


class ReportError(Exception):
    """A file that is not a report of this runner."""


@dataclass(frozen=True)
class Report:
    """A report as it was written: its header, and its exchanges."""

    head: dict[str, Any]
    cells: list[Cell]

    @property
    def schema(self) -> int:
        return int(self.head.get("schema", 1))

    @property
    def versions(self) -> dict[str, str]:
        head = self.head
        found = {"dlbridge": head["dlbridge"], "Python": head["python"], **head["versions"]}
        machine = {"host": head.get("host"), "GPUs": ", ".join(head.get("gpus", ())), "driver": head.get("driver")}
        return {**found, **{name: str(value) for name, value in machine.items() if value}}

    def table(self, schema: int) -> dict[_Key, Cell]:
        """The exchanges by what was exchanged.

        Before schema 2 a report did not say which protocol was asked for: of cells that are alike the n-th is the n-th.
        """
        times: Counter[_Key] = Counter()
        table: dict[_Key, Cell] = {}
        for cell in self.cells:
            by = cell.asked if schema > 1 else cell.protocol
            key = (cell.producer, cell.consumer, cell.route, by, cell.dtype, cell.layout, cell.device)
            times[key] += 1
            table[(*key, str(times[key]))] = cell
        return table


def _check(path: str, schema: object) -> None:
    """ReportError unless it is the number of a schema that is read here: what its keys mean is not guessed."""
    number = schema if type(schema) is int else 0  # True is an int, too
    if not 1 <= number <= SCHEMA:
        remedy = "use the newer dlbridge that wrote it" if number > SCHEMA else "it was not written by this runner"
        raise ReportError(
            f"{path} has schema {json.dumps(schema)}; this dlbridge reads reports of schema 1 to {SCHEMA}: {remedy}"
        )


def load(path: str) -> Report:
    """The report in a file; ReportError where there is none, or one of a later schema."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        _check(path, document.get("schema", 1))
        cells = [Cell.fromdict(fields) for fields in document.pop("exchanges")]
        report = Report(document, cells)
        report.versions.items()
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"{path} is not a report of `python -m dlbridge --json`: {error!r}") from error
    return report


def _pair(cell: Cell) -> _Pair:
    return cell.producer, cell.consumer, cell.route


def _line(cell: Cell, text: str) -> str:
    return f"{cell.producer} to {cell.consumer} ({cell.name}): {text}"


def _changed(old: Report, new: Report) -> Iterator[str]:
    before, after = old.versions, new.versions
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
    if old.head.get("mode") != new.head.get("mode"):
        yield f"kind of run: {old.head.get('mode')} -> {new.head.get('mode')}; what only one of them makes is listed"


def _gone(old: Report, new: Report) -> Iterator[str]:
    """Frameworks that were there and are not: an environment breaks in no way more often."""
    died = {cell.consumer: f"{cell.status.value}: {cell.reason}" for cell in new.cells if cell.route == IMPORT}
    for name in old.head["versions"]:
        if name not in new.head["versions"]:
            why = new.head.get("absent", {}).get(name) or died.get(name) or "it was not run"
            yield f"{name} is gone: {why}"


def by_chance(old: Cell, new: Cell) -> bool:
    """Whether only the alignment of memory makes the difference."""
    return {old.status, new.status} == {Status.WORKS, Status.COPIES} and _CHANCE in old.reason + new.reason


def _lost(cells: Iterable[Cell], left: Iterable[Cell]) -> Iterator[str]:
    """Exchanges that were made and are not any more; those that were wrong are no loss.

    A line for an array type or a consumer that is not in what is `left` at all, and for each other pair.
    """
    producers, consumers = ({getattr(cell, end) for cell in left} for end in ("producer", "consumer"))
    found: Counter[str] = Counter()
    for cell in cells:
        if _RANK[cell.status] > _RANK[Status.REFUSED]:
            continue
        if cell.producer not in producers:
            found[f"all that {cell.producer} gives"] += 1
        elif cell.consumer not in consumers:
            found[f"all that {cell.consumer} takes"] += 1
        else:
            found[f"{cell.producer} to {cell.consumer} ({cell.route})"] += 1
    yield from (f"{what}: {number:,}" for what, number in found.items())


def _slower(costs: dict[_Pair, list[tuple[int, int]]], threshold: float) -> list[str]:
    """Pairs whose median cost has grown by more than the threshold, and by more than the whole run's."""
    everything = [new / old for pairs in costs.values() for old, new in pairs]
    pace = max(median(everything), 1.0) if everything else 1.0
    found = []
    for (producer, consumer, route), pairs in costs.items():
        old, new = (round(median(column)) for column in zip(*pairs, strict=True))
        if new > max(threshold * pace * old, old + _SLOWER_NS):
            where = f"{producer} to {consumer} ({route})"
            found.append(f"{where}: {old:,} -> {new:,} ns, {new / old:.1f} times, median of {len(pairs)}")
    if found and pace > 1.2:
        found.append(f"(over the whole run an exchange took {pace:.1f} times as long; that much is not counted)")
    return found


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{title} ({len(lines)})"
        yield from (f"    {line}" for line in lines[:_SHOWN])
        if len(lines) > _SHOWN:
            yield f"    and {len(lines) - _SHOWN} more"


def compare(old_path: str, new_path: str, out: TextIO, *, slower: float | None = None) -> int:
    """Prints what changed; 1 where anything got worse or is no longer there, else 0.

    What takes more than twice as long is listed; with `slower` given, what takes this many times as long makes the
    result 1, too. Raises ReportError for a file that is no report.
    """
    old, new = load(old_path), load(new_path)
    schema = min(old.schema, new.schema)
    before, after = old.table(schema), new.table(schema)
    worse: dict[str, None] = dict.fromkeys(_gone(old, new))
    better: dict[str, None] = {}
    costs: dict[_Pair, list[tuple[int, int]]] = {}
    for key, now in after.items():
        then = before.get(key)
        if then is None:
            continue
        if then.status is not now.status and not by_chance(then, now):
            reason = f" ({now.reason})" if now.reason else ""
            got_worse = _RANK[now.status] > _RANK[then.status]
            (worse if got_worse else better)[_line(now, f"{then.status.value} -> {now.status.value}{reason}")] = None
        elif then.cost_ns and now.cost_ns:
            costs.setdefault(_pair(now), []).append((then.cost_ns, now.cost_ns))
    lost = list(_lost((cell for key, cell in before.items() if key not in after), new.cells))
    fresh = [cell for key, cell in after.items() if key not in before]
    bad = [_line(c, f"{c.status.value} ({c.reason})") for c in fresh if _RANK[c.status] >= _RANK[Status.WRONG]]
    threshold = _SLOWER if slower is None else slower
    slow = _slower(costs, threshold)
    lines = [
        *_section("changed", list(_changed(old, new))),
        *_section("broke", list(worse)),
        *_section("new and wrong", list(dict.fromkeys(bad))),
        *_section("no longer tried", lost),
        *_section("fixed", list(better)),
        *_section(f"slower: pairs that take more than {threshold:g} times as long", slow),
        f"{len(worse) + len(bad)} broke, {len(better)} fixed, {len(slow)} slower, {len(lost)} no longer tried, "
        f"{len(fresh)} new, {len(before.keys() & after.keys())} compared",
    ]
    out.write("\n".join(lines) + "\n")
    return 1 if worse or bad or lost or (slower is not None and slow) else 0
