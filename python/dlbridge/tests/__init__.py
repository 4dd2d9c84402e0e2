"""The self-test runner, and the conformance kit for libraries of others.

``python -m dlbridge`` and ``dlbridge.tests.run()`` send real arrays of every framework that is installed through
asdlpack() to every other; `check_producer` and `check_consumer` check an array type of your own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from dlbridge.tests._results import Results

__all__ = ["run"]

_CONFORMANCE = ("check_consumer", "check_producer")


def __getattr__(name: str) -> Any:
    if name in _CONFORMANCE:  # on first use: the kit is large, and the runner needs nothing of it
        import importlib

        return getattr(importlib.import_module("dlbridge.tests.conformance"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run(
    only: Iterable[str] | None = None,
    *,
    full: bool = False,
    isolate: bool = False,
    require: Iterable[str] = (),
    verbose: bool = False,
    json: bool = False,
    file: TextIO | None = None,
) -> Results:
    """Makes the exchanges and prints a table; returns the results, whose `exit_code` says how it went.

    `only` names frameworks ("numpy", "torch"; "stdlib" for Python's own types). `full` makes every exchange of every
    dtype, layout and protocol instead of a representative set, `isolate` gives each framework a process of its own.
    `require` names those that must be there ("torch", "torch:cuda").
    `verbose` adds why exchanges were refused or copied, `json` prints one JSON document instead of the table. `file`
    defaults to standard output. The exit code is 0 where all is well, 1 for a wrong value, pointer or mark, a leak,
    a crash, a hang or a required framework that is absent, 2 where nothing could be run. ValueError for a name that no
    framework has.
    """
    import sys

    from dlbridge.tests import _isolate, _runner
    from dlbridge.tests.report import _files, _text

    chosen, broken = _runner.choose(only)
    required = _runner.require(require, chosen, broken)
    runner = _isolate.run_isolated if isolate else _runner.run_here
    results = runner(chosen, broken, full=full, progress=_runner.NoProgress())
    results.required = required
    out = sys.stdout if file is None else file
    if json:
        _files.write_json(results, out)
    else:
        _text.write(results, out, verbose=verbose)
    return results
