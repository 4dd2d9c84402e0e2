"""How the results of sweep.py are read: lines of a run, and a table for each machine."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Iterable
from typing import Any

WORST_ROWS = 180
ROWS_OF_ONE = 3  # of the worst rows: of the same code there are many dtypes and layouts
WORST_FUNCTIONS = 80
WRONG_ROWS = 40
Rows = list[dict[str, Any]]


def timed(rows: Iterable[dict[str, Any]]) -> Rows:
    return [row for row in rows if "ratio" in row]


def duration(ns: float) -> str:
    for unit, scale in (("ns", 1.0), ("us", 1e3), ("ms", 1e6)):
        if ns < 1000 * scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns / 1e9:.3g} s"


def shown(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


def count(size: int) -> str:
    return f"{size // 10**6}M" if size >= 10**6 else f"{size // 1000}k" if size >= 1000 else str(size)


def code(row: dict[str, Any]) -> str:
    return str(row["code"]).replace("\n", "; ").replace("|", "\\|")


def shapes(row: dict[str, Any]) -> str:
    """The first input as the key has it: dtype, shape, layout."""
    inputs = [part for part in row["key"].split(" ") if "=" in part and ":" in part.split("=", 1)[1]]
    return inputs[0].split("=", 1)[1].split(":")[0] if inputs else ""


def lines_of(row: dict[str, Any]) -> list[str]:
    """What a run prints of a row: that it is wrong, or slower than a peer."""
    where = f"{code(row)}  {row['dtype']} {count(row['size'])} {row['layout']}"
    found = [f"WRONG  {name}: {message}  {where}" for name, message in row["wrong"].items()]
    if row.get("ratio", 1.0) < 1.0:
        ns = row["ns"]
        figures = f"{duration(ns['dlbridge'])} / {duration(ns[row['peer']])}"
        found.append(f"{row['ratio']:.2f}  {row['peer']}  {figures}  {where}")
    return found


def mean(rows: Rows) -> float:
    return statistics.geometric_mean(row["ratio"] for row in rows)


def summary(rows: Rows, field: str) -> list[str]:
    """A table with a line for each value of a field."""
    lines = [
        f"| {field} | rows | geometric mean | below 1.0 | below 0.8 | worst | of |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    groups: dict[Any, Rows] = {}
    for row in timed(rows):
        groups.setdefault(row[field], []).append(row)
    for name, group in sorted(groups.items(), key=lambda pair: mean(pair[1])):
        worst = min(group, key=lambda row: row["ratio"])
        slower, much = (sum(row["ratio"] < limit for row in group) for limit in (1.0, 0.8))
        label = count(name) if field == "size" else name
        lines.append(
            f"| {label} | {len(group)} | {mean(group):.2f} | {slower} | {much} | {shown(worst['ratio'])} "
            f"| `{code(worst)}` {worst['dtype']} {count(worst['size'])} {worst['layout']} |"
        )
    return lines


def functions(rows: Rows) -> list[str]:
    groups: dict[str, Rows] = {}
    for row in timed(rows):
        groups.setdefault(row["subject"].replace("\n", "; "), []).append(row)
    slow = sorted((pair for pair in groups.items() if mean(pair[1]) < 1), key=lambda pair: mean(pair[1]))
    lines = [
        f"## Code slower on average: {len(slow)} of {len(groups)}"
        + (f", the {WORST_FUNCTIONS} worst" if len(slow) > WORST_FUNCTIONS else ""),
        "",
        "| code | rows | geometric mean | worst | of |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for subject, group in slow[:WORST_FUNCTIONS]:
        worst = min(group, key=lambda row: row["ratio"])
        text = subject.replace("|", "\\|")
        lines.append(
            f"| `{text}` | {len(group)} | {shown(mean(group))} | {shown(worst['ratio'])} "
            f"| {worst['dtype']} {count(worst['size'])} {worst['layout']} |"
        )
    return lines


def worst(rows: Rows) -> list[str]:
    slow = sorted((row for row in timed(rows) if row["ratio"] < 1), key=lambda row: row["ratio"])
    met: collections.Counter[str] = collections.Counter()
    chosen = []
    for row in slow:
        met[row["subject"]] += 1
        if met[row["subject"]] <= ROWS_OF_ONE:
            chosen.append(row)
    most = f", the {WORST_ROWS} worst, up to {ROWS_OF_ONE} of the same code" if len(slow) > WORST_ROWS else ""
    lines = [
        f"## Rows below 1.0: {len(slow)}{most}",
        "",
        "| ratio | peer | ours | theirs | code | size | first input |",
        "| ---: | --- | ---: | ---: | --- | ---: | --- |",
    ]
    for row in (chosen if most else slow)[:WORST_ROWS]:
        ns = row["ns"]
        lines.append(
            f"| {shown(row['ratio'])} | {row['peer']} | {duration(ns['dlbridge'])} | {duration(ns[row['peer']])} "
            f"| `{code(row)}` | {count(row['size'])} | {shapes(row)} |"
        )
    return lines


def differing(rows: Rows) -> list[str]:
    found = [(row, name, message) for row in rows for name, message in row["wrong"].items()]
    if not found:
        return ["No result differed from a peer's."]
    lines = [f"## Results that differ, not timed: {len(found)}", ""]
    for row, name, message in found[:WRONG_ROWS]:
        text = message.replace("\n", " ")[:160]
        lines.append(f"- `{code(row)}` {row['dtype']} {count(row['size'])} {row['layout']}, {name}: {text}")
    return lines


def document(rows: Rows, session: dict[str, Any], note: str) -> str:
    machine, versions = session["machine"], session["versions"]
    measured = timed(rows)
    neither = sum(not row["wrong"] and "ratio" not in row for row in rows)
    figure = "best" if session["figure"] == "best_ns" else "median"
    head = [
        f"# Every function on {session['on']}, Python {machine['python']}",
        "",
        ", ".join(f"{key} {value}" for key, value in machine.items() if value and key not in ("kind", "python")),
        "",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()),
        "",
        f"The time of the fastest peer by ours, {figure} round, interleaved in one process: above 1 we are faster. "
        f"{len(measured)} rows were timed; {neither} have no peer: a function or dtype that it lacks or refuses, most "
        f"of them as we do. How they are chosen: [README.md](../README.md)." + (f" {note}" if note else ""),
    ]
    parts = [head]
    for field in ("family", "size", "layout", "dtype"):
        parts.append([f"## By {field}", "", *summary(rows, field)])
    parts += [differing(rows), functions(rows), worst(rows)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def documents(records: Rows, note: str = "") -> dict[str, str]:
    """File name to text, one for each machine in a file of results."""
    sessions = {record["session"]["on"]: record["session"] for record in records if "session" in record}
    found = {}
    for place, session in sessions.items():
        rows = [record for record in records if record.get("on") == place]
        version = ".".join(session["machine"]["python"].split(".")[:2])
        found[f"sweep-{place}-py{version}.md"] = document(rows, session, note)
    return found
