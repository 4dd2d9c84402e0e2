"""The coloured table and the progress bar, where rich is installed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from dlbridge.tests._results import Cell, Results, Status
from dlbridge.tests._runner import NoProgress, Progress
from dlbridge.tests.report import _text
from dlbridge.tests.report._summary import LEGEND, Table, tables

_COLOURS = {
    Status.WORKS: "green",
    Status.COPIES: "cyan",
    Status.REFUSED: "yellow",
    Status.WRONG: "bold white on red",
    Status.CRASHED: "bold white on red",
    Status.HUNG: "bold white on red",
}


def available() -> bool:
    """Whether rich can be imported."""
    try:
        import rich.console
        import rich.progress
        import rich.table  # noqa: F401  (all that is used below)
    except ImportError:
        return False
    return True


def _table(table: Table) -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=None, pad_edge=False, header_style="bold")
    made.add_column("", no_wrap=True)
    for consumer in table.consumers:
        made.add_column(consumer, overflow="fold")
    for producer in table.producers:
        colours = {c: _COLOURS.get(table.worst(producer, c) or Status.ABSENT, "dim") for c in table.consumers}
        made.add_row(producer, *(Text(table.text(producer, c), style=colours[c]) for c in table.consumers))
    return made


def write(results: Results, out: TextIO, *, verbose: bool) -> None:
    """Prints the whole report."""
    from rich.console import Console

    console = Console(file=out, highlight=False, soft_wrap=True)
    for line in _text.heading(results):
        console.print(line, markup=False)
    for line in _text.failures(results):
        console.print(line, style="bold red" if line and not line.startswith(" ") else None, markup=False)
    for table in tables(results):
        console.print("\n" + table.title, style="bold italic", markup=False)
        console.print(_table(table), soft_wrap=False)
    console.print("\n" + LEGEND, style="dim", markup=False)
    for line in (*_text.whys(results, verbose), "", *_text.remarks(results, verbose)):
        console.print(line, markup=False)
    style = "bold red" if results.exit_code else "bold green"
    console.print(_text.summary(results), style=style, markup=False)


class _Bar:
    """A progress bar on standard error."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task = progress.add_task("loading", total=None)

    def loading(self, name: str) -> None:
        self._progress.update(self._task, description=f"loading {name}")

    def start(self, total: int) -> None:
        self._progress.update(self._task, description="exchanging", total=total or None)

    def advance(self, cell: Cell | None) -> None:
        self._progress.advance(self._task)


@contextlib.contextmanager
def progress(wanted: bool) -> Iterator[Progress]:
    """A bar where it is wanted, rich is there, and standard error is a terminal."""
    if not wanted or not sys.stderr.isatty() or not available():
        yield NoProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        yield _Bar(bar)
