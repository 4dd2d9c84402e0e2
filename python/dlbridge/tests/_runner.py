"""The matrix, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from dlbridge.tests import _blame, _exchange, _loader, _plan, frameworks
from dlbridge.tests._patience import cheap_collections
from dlbridge.tests._results import Cell, Results, Status
from dlbridge.tests.frameworks import Bench, Framework


class Progress(Protocol):
    """Who is told how far a run is."""

    def loading(self, name: str) -> None:
        """The framework `name` is about to be imported."""

    def start(self, total: int) -> None:
        """So many exchanges will be made."""

    def advance(self, cell: Cell | None) -> None:
        """One is done; None where it has no cell of its own."""


class NoProgress:
    """Tells nobody."""

    def loading(self, name: str) -> None: ...

    def start(self, total: int) -> None: ...

    def advance(self, cell: Cell | None) -> None: ...


def devices_of(bench: Bench) -> tuple[list[str], dict[str, str]]:
    """The devices that a framework's arrays can be on here, and why not on the others, by "framework device"."""
    wanted = dict.fromkeys(device for kind in bench.framework.types for device in kind.devices)
    why = {device: bench.has_device(device) for device in wanted}
    name = bench.framework.name
    return [d for d, reason in why.items() if not reason], {f"{name} {d}": r for d, r in why.items() if r}


def exchanges(
    specs: Iterable[_plan.Spec],
    benches: dict[str, Bench],
    *,
    skip: int = 0,
    before: Callable[[int, _plan.Spec], None] = lambda index, spec: None,
) -> Iterator[Cell | None]:
    """The cells of all specs but the first `skip`; None for those whose array cannot be made, after the first."""
    unmakeable: set[tuple[str, object]] = set()
    for index, spec in enumerate(specs):
        if index < skip:
            continue
        if (spec.kind.name, spec.case) in unmakeable:
            yield None
            continue
        before(index, spec)
        consumer = None if spec.consumer is None else benches[spec.consumer.name]
        ends = _exchange.Ends(spec, benches[spec.producer.name], consumer)
        cell = _exchange.run(ends)
        if cell.status is Status.ABSENT:
            unmakeable.add((spec.kind.name, spec.case))
        yield _blame.blame(ends, cell) if cell.status is Status.WRONG else cell


def consumers_of(there: Iterable[Framework]) -> list[Framework]:
    """Those that take arrays."""
    return [framework for framework in there if framework.convert or framework.takes]


def run_here(chosen: list[Framework], broken: dict[str, str], *, full: bool, progress: Progress) -> Results:
    """All of `chosen` with each other, in this process."""
    started = time.perf_counter()
    benches, imports, absent = _loader.load_all(chosen, progress.loading)
    results = Results(imports, {**absent, **broken}, mode="full" if full else "default")
    devices: dict[str, list[str]] = {}
    for name, bench in benches.items():
        devices[name], missing = devices_of(bench)
        results.absent.update(missing)
    loaded = time.perf_counter()
    there = [framework for framework in chosen if framework.name in benches]
    specs = list(_plan.specs(there, consumers_of(there), full=full, devices=devices))
    progress.start(len(specs))
    with cheap_collections():
        for cell in exchanges(specs, benches):
            progress.advance(cell)
            if cell is not None:
                results.cells.append(cell)
    results.load_s = loaded - started
    results.run_s = time.perf_counter() - loaded
    return results


def choose(only: Iterable[str] | None) -> tuple[list[Framework], dict[str, str]]:
    """The frameworks of a run; ValueError for an unknown name."""
    return frameworks.find(None if only is None else list(only))


def require(names: Iterable[str], chosen: list[Framework], broken: dict[str, str]) -> tuple[str, ...]:
    """What must be there, "framework" or "framework:device", by the framework's own name; ValueError for what no run
    of `chosen` can have."""
    there = {framework.name: framework for framework in chosen}
    wanted = []
    for text in names:
        name, separator, device = text.partition(":")
        (found, plugins) = frameworks.find([name])
        name = found[0].name if found else next(iter(plugins))
        if name not in there and name not in broken:
            raise ValueError(f"{name} is not among the frameworks of this run: {', '.join(there)}")
        known = {d for kind in (there[name].types if name in there else ()) for d in kind.devices}
        if separator and name in there and device not in known:
            raise ValueError(f"{name} makes no arrays on {device!r}; its devices: {', '.join(sorted(known)) or 'none'}")
        wanted.append(name + separator + device)
    return tuple(dict.fromkeys(wanted))
