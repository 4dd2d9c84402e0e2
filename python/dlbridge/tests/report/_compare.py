"""Two reports compared: what broke since yesterday."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from dlbridge.tests._results import Cell, Status

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
_CHANCE = "is not aligned to"  # whether memory happens to be aligned changes from run to run


class ReportError(Exception):
    """A file that is no report of this runner."""


def load(path: str) -> tuple[dict[str, Any], dict[tuple[str, ...], Cell]]:
    """The header of a report and its exchanges by what was exchanged."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        cells = [Cell.fromdict(fields) for fields in document.pop("exchanges")]
        document["versions"].items()
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"{path} is no report of `python -m dlbridge --json`: {error!r}") from error
    # What asdlpack() chooses and what it is asked for may be the same protocol: the n-th of such cells is the n-th.
    times: Counter[tuple[str, ...]] = Counter()
    table: dict[tuple[str, ...], Cell] = {}
    for cell in cells:
        key = (cell.producer, cell.consumer, cell.route, cell.protocol, cell.dtype, cell.layout, cell.device)
        times[key] += 1
        table[(*key, str(times[key]))] = cell
    return document, table


def _name(cell: Cell) -> str:
    case = " ".join(filter(None, (cell.protocol, cell.dtype, cell.layout, cell.device)))
    return f"{cell.producer} to {cell.consumer} ({cell.route}) {case}"


def _versions(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    before, after = ({"dlbridge": d["dlbridge"], "Python": d["python"], **d["versions"]} for d in (old, new))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"


def _by_chance(old: Cell, new: Cell) -> bool:
    return {old.status, new.status} == {Status.WORKS, Status.COPIES} and _CHANCE in old.reason + new.reason


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{title} ({len(lines)})"
        yield from (f"    {line}" for line in lines[:_SHOWN])
        if len(lines) > _SHOWN:
            yield f"    and {len(lines) - _SHOWN} more"


def compare(old_path: str, new_path: str, out: TextIO) -> int:
    """Prints what changed; 1 where anything got worse, else 0. Raises ReportError for a file that is no report."""
    old_head, old = load(old_path)
    new_head, new = load(new_path)
    worse: list[str] = []
    better: list[str] = []
    slower: list[str] = []
    for key in old.keys() & new.keys():
        before, after = old[key], new[key]
        if before.status is not after.status and not _by_chance(before, after):
            line = f"{_name(after)}: {before.status.value} -> {after.status.value}"
            reason = f" ({after.reason})" if after.reason else ""
            got_worse = _RANK[after.status] > _RANK[before.status]
            (worse if got_worse else better).append(line + reason)
        elif before.cost_ns and after.cost_ns > max(_SLOWER * before.cost_ns, before.cost_ns + _SLOWER_NS):
            slower.append(f"{_name(after)}: {before.cost_ns} -> {after.cost_ns} ns")
    gone = [_name(old[key]) for key in old.keys() - new.keys()]
    fresh = [new[key] for key in new.keys() - old.keys()]
    bad = [f"{_name(c)}: {c.status.value} ({c.reason})" for c in fresh if _RANK[c.status] >= _RANK[Status.WRONG]]
    lines = [
        *_section("versions", list(_versions(old_head, new_head))),
        *_section("broke", sorted(worse)),
        *_section("new and wrong", sorted(bad)),
        *_section("mended", sorted(better)),
        *_section(f"slower, more than {_SLOWER:g} times", sorted(slower)),
        *_section("no longer tried", sorted(gone)),
        f"{len(worse) + len(bad)} broke, {len(better)} mended, {len(slower)} slower, {len(gone)} no longer tried, "
        f"{len(fresh)} new, {len(old.keys() & new.keys())} compared",
    ]
    out.write("\n".join(lines) + "\n")
    return 1 if worse or bad else 0
