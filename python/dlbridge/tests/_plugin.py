"""The pytest plugin of the conformance kit: ``pytest --dlbridge-producer mylib:make_array`` collects one item a check.

``--dlbridge-consumer mylib:from_dlpack`` does so for an importer; both may be given many times. What a specification
only recommends is reported as an expected failure, unless ``--dlbridge-strict`` is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from dlbridge.tests._child import SILENCE_S

if TYPE_CHECKING:
    from dlbridge.tests.conformance._check import Check
    from dlbridge.tests.conformance._report import Result
    from dlbridge.tests.conformance._run import Subject


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dlbridge", "conformance of array libraries (dlbridge)")
    add = group.addoption
    add("--dlbridge-producer", action="append", default=[], metavar="MODULE:NAME", help="check this factory(spec)")
    add("--dlbridge-consumer", action="append", default=[], metavar="MODULE:NAME", help="check this from_dlpack(obj)")
    add("--dlbridge-protocol", action="append", metavar="NAME", help="only this protocol; a consumer must take it")
    add("--dlbridge-device", default="cpu", metavar="DEVICE", help="where the factory makes its arrays")
    add("--dlbridge-immutable", action="store_true", help="the factory's arrays are all read-only")
    add("--dlbridge-timeout", type=float, default=SILENCE_S, metavar="SECONDS", help="for one check in its own process")
    add("--dlbridge-strict", action="store_true", help="what a specification only recommends fails, too")


class ConformanceFailure(Exception):
    """A check that failed; `result` says how."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.id)
        self.result = result


class Runner:
    """The checks of one subject. The risky ones run together in a process of their own, when the first is asked for."""

    def __init__(self, subject: Subject, checks: Iterable[Check], timeout: float) -> None:
        self.subject, self.timeout = subject, timeout
        self.checks = list(checks)
        self._opened: Any = None
        self._apart: dict[str, Result] | None = None

    def result(self, check: Check, wanted: Iterable[Check]) -> Result:
        from dlbridge.tests.conformance._isolate import run_apart
        from dlbridge.tests.conformance._run import is_claimed, run_check

        if check.risky:
            if self._apart is None:
                risky = [other for other in wanted if other.risky]
                self._apart = {result.id: result for result in run_apart(self.subject, risky, self.timeout)}
            return self._apart[check.id]
        if self._opened is None:
            self._opened = self.subject.open()
        return is_claimed(check, run_check(check, self._opened), self.subject.protocols)


class ConformanceItem(pytest.Item):
    def __init__(self, *, runner: Runner, check: Check, **options: Any) -> None:
        super().__init__(**options)
        self.runner, self.check = runner, check

    def runtest(self) -> None:
        # Only what was selected (-k, --lf) is run apart.
        wanted = [
            item.check
            for item in self.session.items
            if isinstance(item, ConformanceItem) and item.runner is self.runner
        ]
        result = self.runner.result(self.check, wanted)
        if result.outcome == "skipped":
            pytest.skip(result.got)
        if result.outcome == "failed":
            if result.severity != "must" and not self.config.getoption("--dlbridge-strict"):
                pytest.xfail(f"only recommended: expected {result.expected}, got {result.got}")
            raise ConformanceFailure(result)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if not isinstance(excinfo.value, ConformanceFailure):
            return super().repr_failure(excinfo, style)
        result = excinfo.value.result
        return (
            f"{self.runner.subject.kind} {self.runner.subject.title}: {result.id}\n"
            f"clause:   {result.clause} [{result.source}]\n"
            f"expected: {result.expected}\n"
            f"got:      {result.got}"
        )

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, f"{self.runner.subject.title} {self.check.id}"


class ConformanceCollector(pytest.Collector):
    def __init__(self, *, runner: Runner, **options: Any) -> None:
        super().__init__(**options)
        self.runner = runner

    def collect(self) -> Iterator[ConformanceItem]:
        for check in self.runner.checks:
            yield ConformanceItem.from_parent(self, name=check.id, runner=self.runner, check=check)


def _subjects(config: pytest.Config) -> Iterator[Subject]:
    from dlbridge.tests.conformance._run import Subject

    option = config.getoption
    protocols = option("--dlbridge-protocol")
    for name in option("--dlbridge-producer"):
        immutable = option("--dlbridge-immutable")
        yield Subject.of("producer", name, device=option("--dlbridge-device"), immutable=immutable)
    for name in option("--dlbridge-consumer"):
        yield Subject.of("consumer", name, protocols=tuple(protocols or ()))


@pytest.hookimpl(tryfirst=True)  # before -k and -m take their choice
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if not (config.getoption("--dlbridge-producer") or config.getoption("--dlbridge-consumer")):
        return
    from dlbridge.tests.conformance._run import Unusable
    from dlbridge.tests.conformance._tables import select

    for subject in _subjects(config):
        try:
            subject.open()
            checks = select(subject.kind, config.getoption("--dlbridge-protocol"))
        except (Unusable, ValueError) as error:
            raise pytest.UsageError(f"dlbridge: {error}") from error
        runner = Runner(subject, checks, config.getoption("--dlbridge-timeout"))
        collector = ConformanceCollector.from_parent(session, name=f"{subject.kind} {subject.title}", runner=runner)
        items.extend(collector.collect())
