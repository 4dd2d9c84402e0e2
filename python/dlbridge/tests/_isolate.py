"""The matrix in processes of their own: what crashes or hangs is a cell, and no end of the run.

Together, one worker loads everything; where it dies, the rest is not tried. Isolated, every framework is first imported
alone, so that one that cannot be is left out of all the rest. Then a worker for each producer sends its arrays to all
consumers; a worker that dies is replaced by one that goes on behind the exchange it died at.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from dlbridge.tests._child import SILENCE_S, Child
from dlbridge.tests._results import EXIT, IMPORT, Cell, Import, Results, Status
from dlbridge.tests._runner import Progress, consumers_of
from dlbridge.tests.frameworks import Framework

_START_S = 60.0  # until a worker says its first word, where less is a hang later on
_MAX_DEATHS = 25  # of one producer's workers; a framework that dies so often says nothing new
_WORKER = "dlbridge.tests._worker"


class Deadline:
    """When the whole run has to be over."""

    def __init__(self, limit_s: float | None) -> None:
        self.words = f"the limit of {limit_s:g} s was reached" if limit_s is not None else ""
        self._end = None if limit_s is None else time.monotonic() + limit_s
        self.struck = False  # something was ended, or not begun

    def left_s(self) -> float:
        return float("inf") if self._end is None else max(self._end - time.monotonic(), 0)

    def strike(self) -> Stopped:
        self.struck = True
        return Stopped(self.words)


@dataclass(frozen=True)
class _Options:
    full: bool
    timeout_s: float  # how long a worker may be silent
    deadline: Deadline


class Died(Exception):
    """A worker that ended before its work, or was ended because it hung."""

    def __init__(self, status: Status, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.log = log


class Stopped(Exception):
    """The time for the whole run is over."""

    log = ""


@dataclass
class _State:
    """What the messages of a worker have said so far."""

    loading: str = ""
    at: int = -1
    total: int = 0
    current: dict[str, Any] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    imports: dict[str, Import] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    loaded_at: float = 0.0

    @property
    def doing(self) -> str:
        """What it was at, in words."""
        if self.current:
            cell = Cell(**self.current, status=Status.HUNG)
            return f"{cell.producer} to {cell.consumer} ({cell.name})"
        if self.loading:
            return f"the import of {self.loading}"
        return "its exit" if self.total else "its start"


def _work(job: dict[str, Any], options: _Options, on_message: Callable[[dict[str, Any]], None]) -> None:
    """One worker from start to end; Died where it did not get there, Stopped where the time was over."""
    deadline = options.deadline
    if not deadline.left_s():
        raise deadline.strike()
    child = Child(_WORKER, job)
    ended, silence_s = False, max(options.timeout_s, _START_S)
    late: Died | Stopped | None = None
    try:
        while (message := child.answer(min(silence_s, deadline.left_s()))) is not None:
            silence_s = options.timeout_s
            ended = ended or "end" in message
            on_message(message)
    except TimeoutError:
        child.kill()
        late = Died(Status.HUNG, f"no answer in {silence_s:g} s; it was ended")
        if not deadline.left_s():
            late = deadline.strike()
    except BaseException:
        child.kill()
        raise
    finally:
        ending = child.close(min(silence_s, deadline.left_s()))
    if late is None and ending.status is None:
        late = Died(Status.HUNG, f"no end in {silence_s:g} s; it was ended") if deadline.left_s() else deadline.strike()
    if late is not None:
        late.log = ending.log
        raise late
    if ending.status or not ended:
        raise Died(Status.CRASHED, str(ending), ending.log)


class _Loners:
    """Frameworks that died while they were imported beside others: they get workers with no others from then on."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._lock = threading.Lock()

    def add(self, name: str) -> None:
        with self._lock:
            self._names[name] = None

    def companies(self, producer: str, consumers: list[str]) -> list[list[str]]:
        """The consumers of a producer, in groups that can be loaded together."""
        with self._lock:
            alone = [name for name in consumers if name in self._names and name != producer]
            if producer in self._names:
                return [[name] for name in consumers]
            return [[name for name in consumers if name not in alone], *([name] for name in alone)]


class _Reader:
    """Keeps what the messages of workers say."""

    def __init__(self, options: _Options, progress: Progress) -> None:
        self.options = options
        self.progress = progress
        self.state = _State()

    def take(self, message: dict[str, Any]) -> None:
        state = self.state
        if "loading" in message:
            state.loading = message["loading"]
            self.progress.loading(state.loading)
        elif "absent" in message:
            state.absent.update(message["absent"])
        elif "import" in message:
            state.imports.update({name: Import(**how) for name, how in message["import"].items()})
        elif "total" in message:
            state.loading, state.total, state.loaded_at = "", message["total"], time.perf_counter()
            self.start(state.total)
        elif "at" in message:
            state.at, state.current = message["at"], message["cell"]
        elif "done" in message:
            self.keep(None if message["done"] is None else Cell.fromdict(message["done"]))
            state.current = {}

    def start(self, total: int) -> None:
        """A worker has this many exchanges to make."""

    def keep(self, cell: Cell | None) -> None:
        if cell is not None:
            self.state.cells.append(cell)
        self.progress.advance(cell)


class _Producer(_Reader):
    """The exchanges of one producer, through as many workers as it takes."""

    def __init__(self, name: str, options: _Options, progress: Progress) -> None:
        super().__init__(options, progress)
        self.name = name
        self.deaths = 0

    def keep(self, cell: Cell | None) -> None:
        if cell is not None:
            super().keep(cell)

    def run(self, consumers: list[str], loners: _Loners) -> _State:
        """All workers, one after the other."""
        queue = loners.companies(self.name, consumers)
        first = True
        try:
            while queue and self.deaths < _MAX_DEATHS:
                company = queue.pop(0)
                queue += self._company(company, loners, read=first)
                first = False
        except Stopped:
            return self.state
        if queue:
            gave_up = f"given up after {_MAX_DEATHS} workers died; the rest was not tried"
            self.keep(Cell(self.name, "all others", EXIT, Status.CRASHED, gave_up))
        return self.state

    def _company(self, company: list[str], loners: _Loners, *, read: bool) -> list[list[str]]:
        """The exchanges with some consumers; returns those that must be tried apart."""
        state = self.state
        job = {"producers": [self.name], "frameworks": company, "full": self.options.full, "skip": 0, "read": read}
        while self.deaths < _MAX_DEATHS:
            state.at, state.loading, state.current = -1, "", {}
            try:
                _work(job, self.options, self.take)
                return []
            except Died as died:
                self.deaths += 1
                if state.current:
                    self.keep(Cell(**state.current, status=died.status, reason=str(died)))
                    job["skip"] = state.at + 1
                elif state.loading and len(company) > 1:
                    culprit = state.loading if state.loading != self.name else ""
                    if culprit:
                        loners.add(culprit)
                        return [[name for name in company if name != culprit], [culprit]]
                    return [[name] for name in company]
                else:
                    where = (state.loading, IMPORT) if state.loading else (", ".join(company), EXIT)
                    self.keep(Cell(self.name, *where, died.status, str(died)))
                    return []
        return [company]


def _probe(name: str, options: _Options, progress: Progress) -> _State:
    """One framework imported alone."""
    reader = _Reader(options, progress)
    try:
        _work({"frameworks": [name]}, options, reader.take)
    except Stopped:
        pass
    except Died as died:
        reader.state.imports.clear()
        reader.state.cells.append(Cell(name, name, IMPORT, died.status, str(died)))
    return reader.state


class _Locked:
    """Progress that several threads may tell."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner
        self._lock = threading.Lock()

    def loading(self, name: str) -> None:
        with self._lock:
            self._inner.loading(name)

    def start(self, total: int) -> None:
        with self._lock:
            self._inner.start(total)

    def advance(self, cell: Cell | None) -> None:
        with self._lock:
            self._inner.advance(cell)


def _merge(results: Results, states: Iterable[_State]) -> None:
    for state in states:
        results.cells += state.cells
        results.absent.update(state.absent)
        for name, how in state.imports.items():
            results.imports.setdefault(name, how)


def run_isolated(
    chosen: list[Framework],
    broken: dict[str, str],
    *,
    full: bool,
    progress: Progress,
    timeout_s: float = SILENCE_S,
    limit_s: float | None = None,
    jobs: int = 2,
) -> Results:
    """All of `chosen` with each other; `timeout_s` is how long a worker may be silent, `jobs` how many run at once."""
    results = Results(absent=dict(broken), mode="full, isolated" if full else "isolated")
    told = _Locked(progress)
    options = _Options(full, timeout_s, Deadline(limit_s))
    started = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        probes = list(pool.map(lambda framework: _probe(framework.name, options, told), chosen))
        _merge(results, probes)
        results.load_s = time.perf_counter() - started
        there = [framework for framework in chosen if framework.name in results.imports]
        consumers = [framework.name for framework in consumers_of(there)]
        told.start(0)  # how many is known to the workers only
        loners = _Loners()
        makers = [_Producer(f.name, options, told) for f in there if f.types]
        _merge(results, pool.map(lambda maker: maker.run(consumers, loners), makers))
    results.run_s = time.perf_counter() - started - results.load_s
    if options.deadline.struck:
        results.stopped = f"{options.deadline.words}; what was not done by then was not tried"
    return results


class _Together(_Reader):
    """All exchanges, by one worker."""

    def start(self, total: int) -> None:
        self.progress.start(total)

    def died(self, died: Died) -> str:
        """Keeps the cell that it died at; why the rest was not tried."""
        state = self.state
        how = f"{died.status.value} at {state.doing}"
        if state.current:
            self.keep(Cell(**state.current, status=died.status, reason=str(died)))
            how += f", exchange {state.at + 1} of {state.total}; --isolate goes on behind it"
        elif state.loading:
            self.keep(Cell(state.loading, state.loading, IMPORT, died.status, str(died)))
            how += "; --isolate goes on without it"
        else:
            self.keep(Cell("all", "all", EXIT, died.status, str(died)))
            return ""
        return how


def run_together(
    chosen: list[Framework],
    broken: dict[str, str],
    *,
    full: bool,
    progress: Progress,
    timeout_s: float = SILENCE_S,
    limit_s: float | None = None,
) -> Results:
    """All of `chosen` with each other, in one process that is not this one."""
    results = Results(absent=dict(broken), mode="full" if full else "default")
    reader = _Together(_Options(full, timeout_s, Deadline(limit_s)), progress)
    started = time.perf_counter()
    names = [framework.name for framework in chosen]
    try:
        job = {"producers": names, "frameworks": names, "full": full, "skip": 0, "read": True}
        _work(job, reader.options, reader.take)
    except Died as died:
        results.stopped = reader.died(died)
        sys.stderr.write(died.log)  # with the Python stack
    except Stopped as stopped:
        results.stopped = f"{stopped} at {reader.state.doing}; the rest was not tried"
        sys.stderr.write(stopped.log)
    ended = time.perf_counter()
    _merge(results, [reader.state])
    results.load_s = (reader.state.loaded_at or ended) - started
    results.run_s = ended - started - results.load_s
    return results
