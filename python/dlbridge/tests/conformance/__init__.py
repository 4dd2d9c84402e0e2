"""The conformance kit: thousands of checks of DLPack, array interfaces, buffers and Arrow, for any library.

    from dlbridge.tests import check_producer, check_consumer
    print(check_producer("mylib:make_array").text())
    print(check_consumer("mylib:from_dlpack").text())

Each check is a row of a table: the protocol, the clause of the specification that it comes from, whether that is a
"must" or a "should", and how it is looked at. Producers are checked on their own arrays, byte by byte, through ctypes;
consumers are given adversarial producers. A crash or a hang of the library under test is a failed check.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlbridge.tests.conformance._check import PROTOCOLS, Check, Unsupported
from dlbridge.tests.conformance._report import Report, Result
from dlbridge.tests.conformance._run import check_consumer, check_producer
from dlbridge.tests.conformance._spec import Spec

__all__ = ["PROTOCOLS", "Check", "Report", "Result", "Spec", "Unsupported", "check_consumer", "check_producer", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m dlbridge conformance``; returns the exit status."""
    from dlbridge.tests.conformance import _cli

    return _cli.main(arguments)
