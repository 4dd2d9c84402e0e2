"""The plain table: needs nothing."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from typing import TextIO

from dlbridge import _core
from dlbridge.tests._results import BAD, Results, Status
from dlbridge.tests.report._summary import LEGEND, Table, reasons, reproducers, tables, troubles

_MINIMUM_WIDTH = 5


def heading(results: Results) -> Iterator[str]:
    """Versions, and whether there is a GPU."""
    cuda = _core.cuda_info()
    where = f"{cuda['device_count']} CUDA device(s)" if cuda["available"] else "no CUDA"
    yield f"dlbridge {_core.__version__}, Python {platform.python_version()}, {where}"
    if results.versions:
        yield "with " + ", ".join(f"{name} {version}" for name, version in results.versions.items())


def _table(table: Table) -> Iterator[str]:
    first = max(len(name) for name in table.producers)
    texts = {(p, c): table.text(p, c) for p in table.producers for c in table.consumers}
    width = {c: max(_MINIMUM_WIDTH, len(c), *(len(texts[p, c]) for p in table.producers)) for c in table.consumers}
    yield ""
    yield table.title
    yield (" " * first + "  " + "  ".join(c.ljust(width[c]) for c in table.consumers)).rstrip()
    for producer in table.producers:
        line = "  ".join(texts[producer, c].ljust(width[c]) for c in table.consumers)
        yield f"{producer.ljust(first)}  {line}".rstrip()


def _reasons(results: Results, wanted: Iterable[Status]) -> Iterator[str]:
    last = ""
    for group, what, reason in reasons(results.cells, wanted):
        if group != last:
            yield ""
            yield group
            last = group
        yield f"    {what}: {reason}"


def failures(results: Results) -> Iterator[str]:
    """What went wrong, with its scripts: the first that a reader must see."""
    whole = list(troubles(results))
    yield from ("", *whole) if whole else ()
    yield from _reasons(results, BAD)
    for cell in reproducers(results):
        yield ""
        yield f"at fault: {cell.culprit}. {cell.producer} to {cell.consumer} ({cell.route}), {cell.reason}:"
        yield from (f"    {line}" for line in cell.reproducer.splitlines())


def whys(results: Results, verbose: bool) -> Iterator[str]:
    """With `verbose`, why exchanges were refused or copied."""
    if verbose:
        yield from _reasons(results, (Status.REFUSED, Status.COPIES))


def remarks(results: Results, verbose: bool) -> Iterator[str]:
    """What was absent, and what frameworks did while they were imported."""
    cuda = _core.cuda_info()
    if verbose and not cuda["available"]:
        yield f"no CUDA: {cuda['reason']}"
    for name, why in results.absent.items():
        if verbose or why != "not installed":
            yield f"absent: {name} ({why})"
    missing = [name for name, why in results.absent.items() if why == "not installed"]
    if missing and not verbose:
        yield f"not installed: {', '.join(missing)}"
    for name, how in results.imports.items():
        if how.printed and verbose:
            yield f"{name} printed at import: {how.printed.splitlines()[0]}"
        if how.threads and verbose:
            yield f"{name} started {how.threads} thread(s) at import"


def summary(results: Results) -> str:
    """One line of counts and times."""
    found = results.counts()
    shown = [status for status in Status if found[status] or status in (Status.WORKS, Status.WRONG)]
    counts = ", ".join(f"{found[status]} {status.value}" for status in shown)
    return f"{counts}; frameworks loaded in {results.load_s:.1f} s, exchanged in {results.run_s:.1f} s"


def write(results: Results, out: TextIO, *, verbose: bool) -> None:
    """Prints the whole report."""
    lines = [*heading(results), *failures(results)]
    for table in tables(results):
        lines += _table(table)
    lines += ["", LEGEND, *whys(results, verbose), ""]
    rest = list(remarks(results, verbose))
    lines += [*rest, ""] if rest else []
    lines.append(summary(results))
    found = results.counts()
    if not verbose and found[Status.REFUSED] + found[Status.COPIES]:
        lines.append("-v says why exchanges were refused or copied")
    out.write("\n".join(lines) + "\n")
