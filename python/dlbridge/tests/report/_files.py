"""JSON, JUnit and Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from dlbridge.tests._results import BAD, Cell, Results, Status
from dlbridge.tests.report import _text
from dlbridge.tests.report._summary import LEGEND, Table, reasons, tables


def write_json(results: Results, out: TextIO) -> None:
    """One document, an exchange a line: what --compare reads."""
    head = json.dumps(results.header(), indent=1).rstrip().removesuffix("}").rstrip()
    rows = ",\n".join(json.dumps(cell.todict(), separators=(",", ":")) for cell in results.cells)
    out.write(f'{head},\n "exchanges": [\n{rows}\n]}}\n')


_INVALID_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32)), "?")


def _xml(text: str) -> str:
    return escape(text.translate(_INVALID_XML))


def _case(cell: Cell) -> Iterator[str]:
    name = " ".join(filter(None, (cell.route, cell.protocol, cell.dtype, cell.layout, cell.device)))
    seconds = cell.cost_ns / 1e9
    where = quoteattr(f"{cell.producer} to {cell.consumer}".translate(_INVALID_XML))
    start = f'<testcase classname={where} name={quoteattr(name)} time="{seconds:.9f}"'
    if cell.status in (Status.WORKS, Status.COPIES):
        yield start + "/>"
        return
    message = quoteattr(cell.reason.translate(_INVALID_XML))
    kinds = {Status.WRONG: "failure", Status.CRASHED: "error", Status.HUNG: "error"}
    kind = kinds.get(cell.status, "skipped")
    body = _xml("\n".join(filter(None, (cell.culprit and f"at fault: {cell.culprit}", cell.reproducer))))
    yield f"{start}><{kind} message={message}>{body}</{kind}></testcase>"


def write_junit(results: Results, out: TextIO) -> None:
    """A test case an exchange: wrong results are failures, crashes and hangs errors, refusals skipped."""
    found = results.counts()
    failures, errors = found[Status.WRONG], found[Status.CRASHED] + found[Status.HUNG]
    skipped = found[Status.REFUSED] + found[Status.ABSENT]
    out.write('<?xml version="1.0" encoding="utf-8"?>\n')
    out.write(
        f'<testsuites><testsuite name="dlbridge" tests="{len(results.cells)}" failures="{failures}" '
        f'errors="{errors}" skipped="{skipped}" time="{results.run_s:.3f}">\n'
    )
    for cell in results.cells:
        out.writelines(line + "\n" for line in _case(cell))
    out.write("</testsuite></testsuites>\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _markdown_table(table: Table) -> Iterator[str]:
    yield f"## {table.title}"
    yield ""
    yield "| | " + " | ".join(map(_cell, table.consumers)) + " |"
    yield "| --- |" + " --- |" * len(table.consumers)
    for producer in table.producers:
        texts = [table.text(producer, c) for c in table.consumers]
        yield f"| {_cell(producer)} | " + " | ".join(map(_cell, texts)) + " |"
    yield ""


def write_markdown(results: Results, out: TextIO) -> None:
    """The tables, what went wrong, and the reasons of all refusals."""
    lines = ["# Array exchanges", "", *_text.heading(results), "", _text.summary(results), ""]
    for table in tables(results):
        lines += _markdown_table(table)
    lines += [LEGEND, ""]
    for title, wanted in (("Wrong", BAD), ("Refused", (Status.REFUSED,)), ("Copied", (Status.COPIES,))):
        rows = list(reasons(results.cells, wanted))
        if rows:
            lines += [f"## {title}", "", "| exchange | of | reason |", "| --- | --- | --- |"]
            lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows] + [""]
    for cell in results.cells:
        if cell.reproducer:
            lines += [f"At fault: {cell.culprit}", "", "```python", cell.reproducer, "```", ""]
    out.write("\n".join(lines).rstrip() + "\n")
