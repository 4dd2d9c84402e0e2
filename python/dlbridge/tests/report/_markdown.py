"""The report as GitHub-flavoured Markdown, short enough for a ticket.

What libraries say is shown as code: there "@name" calls nobody, "#1" links nothing, and no markup is followed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from typing import TextIO

from dlbridge.tests import _machine
from dlbridge.tests._results import BAD, Cell, Results, Status
from dlbridge.tests.report import _text
from dlbridge.tests.report._summary import LEGEND, Table, reasons, reproducers, tables, troubles

_LIMIT = 60_000  # characters: GitHub takes 65,536, and somebody will want to write a word of their own
_ROWS = 40
_SCRIPTS = 5
_KEPT_OF_A_REASON = 300
_KEPT_OF_A_SCRIPT = 4_000
_VERDICTS = ("all is well", "something is wrong", "nothing could be run")  # by exit code
_FOLDED = (("Refused", Status.REFUSED), ("Copied", Status.COPIES))


def _line(text: str, kept: int = _KEPT_OF_A_REASON) -> str:
    one = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return one if len(one) <= kept else one[: kept - 4] + " ..."


def _fence(text: str, shortest: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(shortest, longest + 1)


def code(text: str) -> str:
    """A code span that may stand in a table."""
    one = _line(text).replace("|", "\\|")
    if not one:
        return ""
    fence = _fence(one, 1)
    pad = " " if "`" in (one[0], one[-1]) else ""
    return f"{fence}{pad}{one}{pad}{fence}"


def plain(text: str) -> str:
    """Text that is shown as it is, also in a table."""
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", _line(text))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _matrix(table: Table) -> Iterator[str]:
    yield from (f"### {plain(table.title)}", "")
    yield _row(["", *map(plain, table.consumers)])
    yield _row(["---"] * (len(table.consumers) + 1))
    for producer in table.producers:
        yield _row([plain(producer), *(plain(table.text(producer, c)) for c in table.consumers)])
    yield ""


def _folded(title: str, said: str, lines: Iterable[str]) -> list[str]:
    """What is there for who opens it. HTML until the first empty line, Markdown after it."""
    shown = escape(title, quote=False) + (f" <code>{escape(_line(said), quote=False)}</code>" if said else "")
    return ["<details>", f"<summary>{shown}</summary>", "", *lines, "", "</details>", ""]


def _reasons(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    yield from (_row(("exchange", "of", "reason")), _row(["---"] * 3))
    for heading, what, reason in rows[:_ROWS]:
        yield _row((plain(heading), plain(what), code(reason)))
    if len(rows) > _ROWS:
        yield from ("", f"and {len(rows) - _ROWS} more: `--json` has them")


def _script(cell: Cell) -> list[str]:
    text = cell.reproducer.replace("\0", "?")
    if len(text) > _KEPT_OF_A_SCRIPT:
        text = text[:_KEPT_OF_A_SCRIPT] + "\n# cut here: --json has all of it"
    fence = _fence(text, 3)
    title = f"at fault: {cell.culprit}. {cell.producer} to {cell.consumer} ({cell.route}):"
    return _folded(title, cell.reason, [f"{fence}python", text, fence])


def _failures(results: Results) -> Iterator[str]:
    whole = list(troubles(results))
    yield from (f"- **{plain(line)}**" for line in whole)
    yield from ("",) if whole else ()
    rows = list(reasons(results.cells, BAD))
    if rows:
        yield from ("### Wrong", "", *_reasons(rows), "")
    scripts = list(reproducers(results))
    for cell in scripts[:_SCRIPTS]:
        yield from _script(cell)
    if len(scripts) > _SCRIPTS:
        yield from (f"and {len(scripts) - _SCRIPTS} more scripts: `--json` has them", "")


def _environment(results: Results) -> Iterator[str]:
    machine = _machine.describe()
    first, *rest = _text.heading(results)
    yield f"- {plain(first)}, {plain(machine['platform'])}"
    gpus = ", ".join(f"{number} x {name}" for name, number in Counter(machine["gpus"]).items())
    if gpus:
        yield f"- {plain(gpus)}, driver {plain(machine['driver'] or 'unknown')}"
    yield from (f"- {plain(line)}" for line in rest)
    absent = {name: why for name, why in results.absent.items() if why != "not installed"}
    yield from (f"- absent: {plain(name)}: {code(why)}" for name, why in absent.items())
    yield f"- {results.mode} run at {results.started}: {plain(_text.summary(results))}"
    yield ""


def write_markdown(results: Results, out: TextIO) -> None:
    """A verdict, the environment, what went wrong and its scripts, tables; folded up, why others were not shared."""
    lines = [f"## Array exchanges: {_VERDICTS[results.exit_code]}", ""]
    lines += [*_environment(results), *_failures(results)]
    for table in tables(results):
        lines += _matrix(table)
    lines += [plain(LEGEND), ""]
    left_out = []
    for title, status in _FOLDED:
        rows = list(reasons(results.cells, (status,)))
        block = _folded(f"{title}: {len(rows)} reason(s)", "", _reasons(rows)) if rows else []
        if sum(len(line) + 1 for line in (*lines, *block)) > _LIMIT:
            left_out.append(title.lower())
        else:
            lines += block
    if left_out:
        lines.append(
            f"Left out, as too long for a ticket: why exchanges were {' and '.join(left_out)}. `--json` has it."
        )
    out.write("\n".join(lines).rstrip() + "\n")
