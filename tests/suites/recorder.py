"""A pytest plugin: writes what became of each test to the file $DLBRIDGE_SUITE_LOG, one JSON object a line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

_LOG = Path(os.environ["DLBRIDGE_SUITE_LOG"])


def _cause(report: Any) -> str:
    """The line that says what went wrong: the exception of the innermost frame that was reported, or that of a look
    into another library's insides, whatever came of it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    inside = re.search(r"\w+\.LooksInside: .*", str(report.longrepr))
    if inside:
        return inside[0][:300]
    at = next(
        (i for i in range(len(lines) - 1, -1, -1) if re.match(r"[\w.]*(?:Error|Exception|LooksInside)\b", lines[i])), 0
    )
    found = " ".join(lines[at:]) if lines[at].endswith(":") else lines[at]  # what NumPy's comparisons say comes below
    return found[:300]


def _note(test: str, outcome: str, cause: str = "") -> None:
    with _LOG.open("a") as log:
        log.write(json.dumps({"test": test, "outcome": outcome, "cause": cause}) + "\n")


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed and str(report.longrepr).startswith("[XPASS(strict)]"):
        _note(report.nodeid, "passed", "marked as failing by the suite")  # for its own library it is
    elif report.failed:
        _note(report.nodeid, "failed", _cause(report))
    elif report.skipped and not hasattr(report, "wasxfail"):
        _note(report.nodeid, "skipped", str(report.longrepr[-1]) if isinstance(report.longrepr, tuple) else "")
    elif report.when == "call":
        _note(report.nodeid, "passed")


@pytest.hookimpl(trylast=True)
def pytest_collectreport(report: Any) -> None:
    if report.failed:
        lines = [line.strip() for line in str(report.longrepr).splitlines()]
        errors = [line[1:].strip() for line in lines if line.startswith("E ")]
        _note(report.nodeid, "not collected", errors[-1][:300] if errors else lines[-1][:300])
