"""Runs checks: here, or in a process of their own that may crash or hang."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlbridge.tests._child import SILENCE_S
from dlbridge.tests._patience import cheap_collections
from dlbridge.tests.conformance._check import Check, Failed, Skip, describe
from dlbridge.tests.conformance._making import Making
from dlbridge.tests.conformance._report import FAILED, PASSED, SKIPPED, Report, Result
from dlbridge.tests.conformance._tables import select
from dlbridge.tests.conformance._taking import Taking


class Unusable(Exception):
    """The subject cannot be imported or called at all."""


def resolve(name: str) -> Any:
    """The object that "package.module:attribute" names."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise Unusable(f"{name!r} is not of the form package.module:attribute")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        raise Unusable(f"{module} cannot be imported: {describe(error)}") from error
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Unusable(f"{module} has no {attribute}") from None
    if not callable(found):
        raise Unusable(f"{name} is not callable")
    return found


def name_of(func: Any) -> str | None:
    """The name by which another process can import `func`, or None."""
    module, qualname = getattr(func, "__module__", None), getattr(func, "__qualname__", None)
    if not module or not qualname or module == "__main__":
        return None
    name = f"{module}:{qualname}"
    try:
        return name if resolve(name) is func else None
    except Unusable:
        return None


@dataclass(frozen=True)
class Subject:
    """What is under test: `kind` "producer" or "consumer", and how another process finds it (`name` may be None)."""

    kind: str
    func: Callable[..., Any] | None
    name: str | None
    device: str = "cpu"
    immutable: bool = False
    protocols: tuple[str, ...] = ()
    observe: str | Callable[[Any], Any] | None = None
    cuda_memory: Callable[[bytes], int] | None = None

    @staticmethod
    def of(kind: str, func: Callable[..., Any] | str, **options: Any) -> Subject:
        if isinstance(func, str):
            return Subject(kind, None, func, **options)
        return Subject(kind, func, name_of(func), **options)

    @property
    def title(self) -> str:
        return self.name or getattr(self.func, "__qualname__", None) or repr(self.func)

    @property
    def can_be_sent(self) -> bool:
        """Whether another process can run it."""
        sendable = self.observe is None or isinstance(self.observe, str)
        return self.name is not None and sendable and self.cuda_memory is None

    def open(self) -> Any:
        """The Making or Taking that the checks are run on."""
        func = resolve(self.name or "") if self.func is None else self.func
        observe: Any = resolve(self.observe) if isinstance(self.observe, str) else self.observe
        if self.kind == "producer":
            return Making(func, device=self.device, immutable=self.immutable)
        return Taking(func, observe=observe, protocols=self.protocols, cuda_memory=self.cuda_memory)

    def todict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "device": self.device,
            "immutable": self.immutable,
            "protocols": list(self.protocols),
            "observe": self.observe,
        }


def run_check(check: Check, subject: Any) -> Result:
    """One check in this process. An exception that no check foresaw is the library's: it did what none should."""
    try:
        check.run(subject)
    except Skip as skip:
        return Result.of(check, SKIPPED, got=str(skip))
    except Failed as failure:
        return Result.of(check, FAILED, failure.expected, failure.got)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # pyo3 and others raise from BaseException
        return Result.of(check, FAILED, "no exception", describe(error))
    return Result.of(check, PASSED)


def is_claimed(check: Check, result: Result, claims: Iterable[str]) -> Result:
    """A protocol that nobody claims for the consumer may be absent: its control is a skip then."""
    unclaimed = check.protocol not in claims
    if result.outcome == FAILED and unclaimed and check.id.endswith(".control"):
        return Result.of(check, SKIPPED, got=f"the consumer does not take it: {result.got}")
    return result


def run_all(
    subject: Subject,
    *,
    protocols: Iterable[str] | None,
    only: Iterable[str] | None,
    isolate: bool | str,
    timeout: float,
) -> Report:
    report = Report(subject.kind, subject.title)
    checks = select(subject.kind, protocols, only)
    apart = [c for c in checks if isolate is True or (isolate == "auto" and c.risky)]
    here = [c for c in checks if c not in apart] if apart else checks
    results: dict[str, Result] = {}
    try:
        if here:
            opened = subject.open()
            with cheap_collections():
                results |= {check.id: run_check(check, opened) for check in here}
        if apart:
            results |= {r.id: r for r in _apart(subject, apart, timeout)}
    except Unusable as error:
        report.could_not_run = str(error)
    claims = subject.protocols
    report.results = [is_claimed(c, results[c.id], claims) for c in checks if c.id in results]
    if not report.could_not_run and not any(r.outcome in (PASSED, FAILED) for r in report.results):
        report.could_not_run = _why_none(report.results)
    return report


def _why_none(results: Sequence[Result]) -> str:
    """Why no check applies: the reason that is given most often, with what differs from check to check left out."""
    kinds = Counter(result.got.partition(":")[0] for result in results)
    if not kinds:
        return "no check was selected"
    first, number = kinds.most_common(1)[0]
    reason = next(result.got for result in results if result.got.partition(":")[0] == first)
    return f"no check applies: {reason.rstrip(': ')} ({number:,} of {len(results):,} checks; verbose lists the others)"


def _apart(subject: Subject, checks: Sequence[Check], timeout: float) -> Iterator[Result]:
    if not subject.can_be_sent:
        why = "it may end the process, and what is under test cannot be imported by name in another: pass 'module:name'"
        yield from (Result.of(check, SKIPPED, got=why) for check in checks)
        return
    from dlbridge.tests.conformance._isolate import run_apart

    yield from run_apart(subject, checks, timeout)


def check_producer(
    factory: Callable[..., Any] | str,
    *,
    device: str = "cpu",
    immutable: bool = False,
    protocols: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    isolate: bool | str = "auto",
    timeout: float = SILENCE_S,
) -> Report:
    """Runs every check of exports on the arrays that `factory` makes.

    `factory(spec)` returns an array as the `Spec` says, or raises `Unsupported`; `factory(shape, dtype)` and
    `factory()` run those checks that need no more than that. A string "module:name" is imported. `immutable`: all
    arrays of the library are read-only, whatever the spec says. `protocols` are of `PROTOCOLS`, `only` are
    texts of which one must be in the id. `isolate`: True runs all checks in a process of their own, "auto" those that
    are known to end the process of some library, False none. `timeout`: seconds a check.
    """
    subject = Subject.of("producer", factory, device=device, immutable=immutable)
    return run_all(subject, protocols=protocols, only=only, isolate=isolate, timeout=timeout)


def check_consumer(
    func: Callable[..., Any] | str,
    *,
    observe: Callable[[Any], Any] | str | None = None,
    protocols: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    isolate: bool | str = "auto",
    timeout: float = SILENCE_S,
    cuda_memory: Callable[[bytes], int] | None = None,
) -> Report:
    """Runs every check of imports on ``func(obj)``, which returns the library's own array.

    `observe(result)` may return a mapping with any of `shape`, `values` (nested lists), `readonly`, where the usual
    attributes do not tell. With `protocols` given, each of them must be taken; without, those that are not are
    skipped. `cuda_memory(raw)` returns the address of device memory with these bytes; by default the driver is asked.
    """
    claims = tuple(protocols) if protocols is not None else ()
    subject = Subject.of("consumer", func, observe=observe, protocols=claims, cuda_memory=cuda_memory)
    return run_all(subject, protocols=protocols, only=only, isolate=isolate, timeout=timeout)
