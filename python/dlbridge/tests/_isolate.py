"""The matrix with each framework's arrays in a process of their own: what crashes or hangs is a cell.

First every framework is imported alone, so that one that cannot be is left out of all the rest. Then a worker for
each producer sends its arrays to all consumers; a worker that dies is replaced by one that goes on behind the
exchange it died at.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Any

from dlbridge.tests._results import Cell, Import, Results, Status
from dlbridge.tests._runner import Progress, consumers_of
from dlbridge.tests.frameworks import Framework

_MAX_DEATHS = 25  # of one producer's workers; a framework that dies so often says nothing new
_END_WAIT_S = 15
_NOISE = ("frame #", "File ", "Thread ", "Current thread", "Extension modules", "<", "Fatal Python error")


@dataclass(frozen=True)
class _Options:
    full: bool
    timeout_s: float  # how long a worker may be silent


class Died(Exception):
    """A worker that ended before its work, or was ended because it hung."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class _State:
    """What the messages of a worker have said so far."""

    loading: str = ""
    at: int = -1
    current: dict[str, Any] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    imports: dict[str, Import] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


def _last_words(log: IO[bytes]) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 20_000))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    said = [line for line in lines if line and not line.startswith(_NOISE)]
    return "; ".join(said[:3])[:300]


def _why(code: int, log: IO[bytes]) -> str:
    words = _last_words(log)
    try:
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
    except ValueError:
        how = f"died of signal {-code}"
    return f"{how}: {words}" if words else how


def _messages(process: subprocess.Popen[bytes], timeout_s: float) -> Iterator[dict[str, Any]]:
    """What the worker says, a message a line; Died when it is silent for too long."""
    assert process.stdout is not None
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(timeout_s):
                raise Died(Status.HUNG, f"no answer in {timeout_s:g} s; it was ended")
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            yield from (json.loads(line) for line in lines)


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _work(job: dict[str, Any], timeout_s: float, on_message: Callable[[dict[str, Any]], None]) -> None:
    """One worker from start to end; Died where it did not get there."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "dlbridge.tests._worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        try:
            assert process.stdin is not None
            with process.stdin as stdin:
                stdin.write(json.dumps(job).encode())
            ended = False
            for message in _messages(process, timeout_s):
                ended = ended or "end" in message
                on_message(message)
            code = process.wait(_END_WAIT_S)
        except (BrokenPipeError, subprocess.TimeoutExpired) as error:
            raise Died(Status.HUNG, f"the worker did not end: {type(error).__name__}") from error
        finally:
            if process.poll() is None:
                _kill(process)
            if process.stdout is not None:
                process.stdout.close()
        if code or not ended:
            raise Died(Status.CRASHED, _why(code, log))


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


class _Producer:
    """The exchanges of one producer, through as many workers as it takes."""

    def __init__(self, name: str, options: _Options, progress: Progress) -> None:
        self.name = name
        self.options = options
        self.progress = progress
        self.state = _State()
        self.deaths = 0

    def take(self, message: dict[str, Any]) -> None:
        """Keeps what a message says."""
        state = self.state
        if "loading" in message:
            state.loading = message["loading"]
        elif "absent" in message:
            state.absent.update(message["absent"])
        elif "import" in message:
            state.imports.update({name: Import(**how) for name, how in message["import"].items()})
        elif "total" in message:
            state.loading = ""
        elif "at" in message:
            state.at, state.current = message["at"], message["cell"]
        elif "done" in message:
            cell = None if message["done"] is None else Cell.fromdict(message["done"])
            if cell is not None:
                self._keep(cell)
            state.current = {}

    def _keep(self, cell: Cell) -> None:
        self.state.cells.append(cell)
        self.progress.advance(cell)

    def run(self, consumers: list[str], loners: _Loners) -> _State:
        """All workers, one after the other."""
        queue = loners.companies(self.name, consumers)
        first = True
        while queue and self.deaths < _MAX_DEATHS:
            company = queue.pop(0)
            queue += self._company(company, loners, read=first)
            first = False
        if queue:
            gave_up = f"given up after {_MAX_DEATHS} workers died; the rest was not tried"
            self._keep(Cell(self.name, "all others", "import", Status.CRASHED, gave_up))
        return self.state

    def _company(self, company: list[str], loners: _Loners, *, read: bool) -> list[list[str]]:
        """The exchanges with some consumers; returns those that must be tried apart."""
        state = self.state
        job = {"producer": self.name, "frameworks": company, "full": self.options.full, "skip": 0, "read": read}
        while self.deaths < _MAX_DEATHS:
            state.at, state.loading, state.current = -1, "", {}
            try:
                _work(job, self.options.timeout_s, self.take)
                return []
            except Died as died:
                self.deaths += 1
                if state.current:
                    self._keep(Cell(**state.current, status=died.status, reason=str(died)))
                    job["skip"] = state.at + 1
                elif state.loading and len(company) > 1:
                    culprit = state.loading if state.loading != self.name else ""
                    if culprit:
                        loners.add(culprit)
                        return [[name for name in company if name != culprit], [culprit]]
                    return [[name] for name in company]
                else:
                    where = state.loading or "exit"
                    self._keep(Cell(self.name, where, "import" if state.loading else "exit", died.status, str(died)))
                    return []
        return [company]


def _probe(name: str, timeout_s: float, progress: Progress) -> _State:
    """One framework imported alone."""
    progress.loading(name)
    producer = _Producer(name, _Options(False, timeout_s), progress)
    try:
        _work({"frameworks": [name]}, timeout_s, producer.take)
    except Died as died:
        producer.state.imports.clear()
        producer.state.cells.append(Cell(name, "import", "import", died.status, str(died)))
    return producer.state


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
    timeout_s: float = 60.0,
    jobs: int = 2,
) -> Results:
    """All of `chosen` with each other; `timeout_s` is how long a worker may be silent, `jobs` how many run at once."""
    results = Results(absent=dict(broken), mode="full, isolated" if full else "isolated")
    told = _Locked(progress)
    started = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        probes = list(pool.map(lambda framework: _probe(framework.name, timeout_s, told), chosen))
        _merge(results, probes)
        results.load_s = time.perf_counter() - started
        there = [framework for framework in chosen if framework.name in results.imports]
        consumers = [framework.name for framework in consumers_of(there)]
        told.start(0)  # how many is known to the workers only
        loners = _Loners()
        makers = [_Producer(f.name, _Options(full, timeout_s), told) for f in there if f.types]
        _merge(results, pool.map(lambda maker: maker.run(consumers, loners), makers))
    results.run_s = time.perf_counter() - started - results.load_s
    return results
