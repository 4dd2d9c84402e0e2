"""The command line of the runner: ``python -m dlbridge`` with no subcommand."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from typing import Any, TextIO

from dlbridge.tests import _isolate, _runner
from dlbridge.tests._child import SILENCE_S
from dlbridge.tests._results import Results
from dlbridge.tests.report import _compare, _files, _html, _markdown, _rich, _text

COULD_NOT_RUN = 2
_Write = Callable[[Results, TextIO], None]

# Reports by option: what writes them. "-" as the file is standard output, which then holds nothing else.
_REPORTS: dict[str, tuple[_Write, str]] = {
    "json": (_files.write_json, "one JSON document"),
    "junit": (_files.write_junit, "JUnit XML"),
    "markdown": (_markdown.write_markdown, "Markdown that fits a ticket"),
    "html": (_html.write_html, "one self-contained page (needs jinja2)"),
}


class UsageError(Exception):
    """Options that cannot be followed."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="python -m dlbridge",
        description="Sends real arrays of every installed framework to every other, and says which exchanges work.",
        epilog="Other commands: `python -m dlbridge doctor` says what is here and what is wrong with it; `python -m "
        "dlbridge --probe` holds what convert() promises against what is installed; `python -m "
        "dlbridge conformance` checks a library of your own. Exit status: 0 all is well; 1 a wrong result, a leak, a "
        "crash, a hang, a required framework that is absent (with --compare: something broke); 2 nothing could be run.",
    )
    made.add_argument("--only", metavar="NAME,...", help="only these frameworks, e.g. stdlib,numpy,torch")
    made.add_argument("--full", action="store_true", help="the whole matrix: every dtype, layout and protocol")
    made.add_argument("--isolate", action="store_true", help="a process a framework: a crash or a hang is one cell")
    made.add_argument("--require", metavar="NAME,...", help="exit 1 unless these are there: torch,jax,torch:cuda")
    made.add_argument("--timeout", type=float, default=SILENCE_S, metavar="S", help="silence that is a hang")
    made.add_argument("--limit", type=float, metavar="S", help="end the whole run after this many seconds")
    made.add_argument("--jobs", type=int, default=2, metavar="N", help="with --isolate: processes at a time")
    for name, (_, what) in _REPORTS.items():
        made.add_argument(f"--{name}", nargs="?", const="-", metavar="FILE", help=f"write {what} ('-': to the output)")
    made.add_argument("--slower", type=float, metavar="N", help="with --compare: exit 1 for what takes N times as long")
    made.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"), help="compare two --json reports; runs nothing")
    made.add_argument("--json-schema", action="store_true", help="print the JSON Schema of --json; runs nothing")
    made.add_argument("--plain", action="store_true", help="no colour and no progress bar, even where rich is there")
    made.add_argument("-v", "--verbose", action="store_true", help="also why exchanges were refused or copied")
    return made


def _open_reports(options: argparse.Namespace, stack: contextlib.ExitStack) -> dict[str, TextIO]:
    """The files of the reports that are asked for, opened before the run: a run for nothing helps nobody."""
    wanted = {name: getattr(options, name) for name in _REPORTS if getattr(options, name)}
    if list(wanted.values()).count("-") > 1:
        raise UsageError("only one report can go to the standard output")
    if "html" in wanted and _html.missing():
        raise UsageError(_html.missing())
    opened: dict[str, TextIO] = {}
    for name, path in wanted.items():
        try:
            file = sys.stdout if path == "-" else open(path, "w", encoding="utf-8")  # noqa: SIM115  (by the stack)
        except OSError as error:
            raise UsageError(f"--{name} {path}: cannot be written: {error.strerror}") from error
        opened[name] = file if path == "-" else stack.enter_context(file)
    return opened


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _run(options: argparse.Namespace, progress: _runner.Progress) -> Results:
    try:
        chosen, broken = _runner.choose(_names(options.only))
    except ValueError as error:
        raise UsageError(f"--only: {error}") from error
    try:
        required = _runner.require(_names(options.require) or [], chosen, broken)
    except ValueError as error:
        raise UsageError(f"--require: {error}") from error
    if options.timeout <= 0 or options.jobs < 1 or (options.limit is not None and options.limit <= 0):
        raise UsageError("--timeout and --limit must be above 0 and --jobs at least 1")
    common: dict[str, Any] = {"full": options.full, "progress": progress}
    common |= {"timeout_s": options.timeout, "limit_s": options.limit}
    if options.isolate:
        results = _isolate.run_isolated(chosen, broken, jobs=options.jobs, **common)
    else:
        results = _isolate.run_together(chosen, broken, **common)
    results.required = required
    return results


def _print(results: Results, options: argparse.Namespace) -> None:
    coloured = not options.plain and sys.stdout.isatty() and _rich.available()
    (_rich if coloured else _text).write(results, sys.stdout, verbose=options.verbose)


def _main(options: argparse.Namespace) -> int:
    if options.json_schema:
        print(_files.json_schema(), end="")
        return 0
    if options.compare:
        try:
            return _compare.compare(options.compare[0], options.compare[1], sys.stdout, slower=options.slower)
        except _compare.ReportError as error:
            raise UsageError(f"--compare: {error}") from error
    with contextlib.ExitStack() as stack:
        files = _open_reports(options, stack)
        with _rich.progress(not options.plain) as progress:
            results = _run(options, progress)
        if sys.stdout not in files.values():
            _print(results, options)
        for name, file in files.items():
            _REPORTS[name][0](results, file)
    return results.exit_code


def main(arguments: list[str]) -> int:
    """Runs what the options ask for; the exit status."""
    options = parser().parse_args(arguments)
    try:
        return _main(options)
    except UsageError as error:
        print(f"python -m dlbridge: {error}", file=sys.stderr)
    except OSError as error:  # the disk is full, the pipe is closed
        print(f"python -m dlbridge: the report cannot be written: {error}", file=sys.stderr)
    return COULD_NOT_RUN
