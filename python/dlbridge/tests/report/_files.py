"""JSON and JUnit."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from dlbridge.tests._results import SCHEMA, Cell, Results, Status


def json_schema() -> str:
    """The JSON Schema of what `write_json` writes, in draft 2020-12."""
    return (resources.files(__package__) / f"schema-{SCHEMA}.json").read_text(encoding="utf-8")


def write_json(results: Results, out: TextIO) -> None:
    """One document, an exchange a line: what --compare reads."""
    head = json.dumps(results.header(), indent=1).rstrip().removesuffix("}").rstrip()
    rows = ",\n".join(json.dumps(cell.todict(), separators=(",", ":")) for cell in results.cells)
    out.write(f'{head},\n "exchanges": [\n{rows}\n]}}\n')


_INVALID_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32)), "?")


def _clean(text: str) -> str:
    return text.translate(_INVALID_XML)


def _xml(text: str) -> str:
    return escape(_clean(text))


def _start(where: str, name: str, time_s: float = 0.0) -> str:
    where, name = (quoteattr(_clean(text)) for text in (where, name))
    return f'<testcase classname={where} name={name} time="{time_s:.9f}"'


def _case(cell: Cell, name: str) -> str:
    start = _start(f"{cell.producer} to {cell.consumer}", name, cell.cost_ns / 1e9)
    if cell.status in (Status.WORKS, Status.COPIES):
        return start + "/>"
    message = quoteattr(_clean(cell.reason))
    kinds = {Status.WRONG: "failure", Status.CRASHED: "error", Status.HUNG: "error"}
    kind = kinds.get(cell.status, "skipped")
    body = _xml("\n".join(filter(None, (cell.culprit and f"at fault: {cell.culprit}", cell.reproducer))))
    return f"{start}><{kind} message={message}>{body}</{kind}></testcase>"


def _cases_of_the_run(results: Results) -> Iterator[str]:
    """A case for each required framework, and one where the run was not finished."""
    for name in results.required:
        why = results.missing.get(name)
        start = _start("required", name)
        yield f"{start}/>" if why is None else f"{start}><failure message={quoteattr(_clean(why))}/></testcase>"
    if results.stopped:
        yield f"{_start('run', 'finished')}><error message={quoteattr(_clean(results.stopped))}/></testcase>"


def write_junit(results: Results, out: TextIO) -> None:
    """A test case an exchange: wrong results are failures, crashes and hangs errors, refusals skipped."""
    found = results.counts()
    failures = found[Status.WRONG] + len(results.missing)
    errors = found[Status.CRASHED] + found[Status.HUNG] + bool(results.stopped)
    skipped = found[Status.REFUSED] + found[Status.ABSENT]
    of_the_run = list(_cases_of_the_run(results))
    out.write('<?xml version="1.0" encoding="utf-8"?>\n')
    out.write(
        f'<testsuites><testsuite name="dlbridge" tests="{len(results.cells) + len(of_the_run)}" '
        f'failures="{failures}" errors="{errors}" skipped="{skipped}" time="{results.run_s:.3f}" '
        f"timestamp={quoteattr(results.started)} hostname={quoteattr(platform.node())}>\n"
    )
    out.writelines(line + "\n" for line in of_the_run)
    times: Counter[tuple[str, str, str]] = Counter()  # a worker may end at its exit more than once
    for cell in results.cells:
        key = (cell.producer, cell.consumer, cell.name)
        times[key] += 1
        name = cell.name if times[key] == 1 else f"{cell.name} #{times[key]}"
        out.write(_case(cell, name) + "\n")
    out.write("</testsuite></testsuites>\n")
