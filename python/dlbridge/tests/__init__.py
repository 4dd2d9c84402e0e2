"""The self-test runner: which exchanges work in this environment, which do not, and why.

``python -m dlbridge`` and ``dlbridge.tests.run()`` send real arrays of every producer that is installed through
asdlpack() to every consumer that is installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from dlbridge.tests._report import Results

__all__ = ["run"]


def run(
    only: Iterable[str] | None = None,
    *,
    verbose: bool = False,
    json: bool = False,
    file: TextIO | None = None,
) -> Results:
    """Runs every exchange and prints a table; returns the results, whose `exit_code` says how it went.

    `only` names modules ("numpy", "torch"; "stdlib" for Python's own types) to which producers and consumers are
    restricted. `verbose` prints each exchange with its reason, `json` one JSON document instead of the table. `file`
    defaults to standard output. The exit code is 0 where all is well, 1 for a wrong value, pointer or a leak, 2
    where nothing could be run.
    """
    from dlbridge.tests import _exchange, _report

    results = _exchange.run_all(None if only is None else frozenset(only))
    _report.write(results, verbose=verbose, json=json, file=file)
    return results
