"""What the checks found: results, as text and as plain types."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from dlbridge import __version__
from dlbridge.tests.conformance._check import MUST, Check

PASSED, FAILED, SKIPPED, ERROR = "passed", "failed", "skipped", "error"


@dataclass(frozen=True)
class Result:
    """One check. `got` is the reason for a skip, too; `severity` "should" marks what is only recommended."""

    id: str
    protocol: str
    severity: str
    outcome: str
    clause: str
    source: str
    expected: str = ""
    got: str = ""

    @staticmethod
    def of(check: Check, outcome: str, expected: str = "", got: str = "") -> Result:
        return Result(check.id, check.protocol, check.severity, outcome, check.clause, check.source, expected, got)

    def todict(self) -> dict[str, str]:
        return asdict(self)


@dataclass
class Report:
    """The results of one library; `subject` says which one, `kind` is "producer" or "consumer"."""

    kind: str
    subject: str
    results: list[Result] = field(default_factory=list)
    could_not_run: str = ""

    def having(self, outcome: str, severity: str | None = None) -> list[Result]:
        return [r for r in self.results if r.outcome == outcome and severity in (None, r.severity)]

    @property
    def failures(self) -> list[Result]:
        """The defects: a "must" that does not hold."""
        return self.having(FAILED, MUST)

    @property
    def nothing_ran(self) -> bool:
        """No check was passed or failed: one reason says why, and not a line for each."""
        return not any(result.outcome in (PASSED, FAILED, ERROR) for result in self.results)

    @property
    def exit_code(self) -> int:
        """0: no "must" is broken; 1: one is; 2: nothing could be run, or the kit itself failed."""
        if self.failures:
            return 1
        return 2 if self.nothing_ran or self.having(ERROR) or self.could_not_run else 0

    def raise_for_failures(self) -> None:
        """AssertionError with the text of the report where the exit code is not 0."""
        if self.exit_code:
            raise AssertionError(self.text())

    def todict(self) -> dict[str, Any]:
        return {
            "dlbridge": __version__,
            "python": platform.python_version(),
            "kind": self.kind,
            "subject": self.subject,
            "exit_code": self.exit_code,
            "could_not_run": self.could_not_run,
            "counts": self.counts(),
            "results": [result.todict() for result in self.results],
        }

    def counts(self) -> dict[str, int]:
        return {
            "passed": len(self.having(PASSED)),
            "failed": len(self.failures),
            "failed (should)": len(self.having(FAILED)) - len(self.failures),
            "skipped": len(self.having(SKIPPED)),
            "error": len(self.having(ERROR)),
        }

    def text(self, *, verbose: bool = False) -> str:
        return "\n".join(self._lines(verbose))

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts().items())
        return f"<conformance of {self.kind} {self.subject}: {counts}>"

    def _lines(self, verbose: bool) -> Iterator[str]:
        yield f"{self.kind} {self.subject}, dlbridge {__version__}, Python {platform.python_version()}"
        for result in self.having(FAILED) + self.having(ERROR):
            yield from _finding(result)
        if self.could_not_run:
            yield f"could not run: {self.could_not_run}"
        if verbose or not self.nothing_ran:
            yield from _skips(self.having(SKIPPED), verbose)
        if verbose:
            yield from (f"passed {result.id}" for result in self.having(PASSED))
        yield ", ".join(f"{count} {name}" for name, count in self.counts().items())


def _finding(result: Result) -> Iterator[str]:
    word = "ERROR in the kit" if result.outcome == ERROR else "FAILED" if result.severity == MUST else "failed (should)"
    yield f"{word} {result.id}"
    yield f"    clause:   {result.clause} [{result.source}]"
    if result.expected:
        yield f"    expected: {result.expected}"
    yield f"    got:      {result.got}"


def _skips(skipped: Iterable[Result], verbose: bool) -> Iterator[str]:
    """Each reason once, with how many checks it explains; `verbose` lists the checks."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in skipped:
        reasons.setdefault((result.protocol, result.got), []).append(result.id)
    for (protocol, reason), ids in reasons.items():
        yield f"skipped {len(ids)} of {protocol}: {reason}"
        if verbose:
            yield from (f"    {id}" for id in ids)
