"""One exchange: a producer's array through asdlpack() into a consumer, checked from both ends."""

from __future__ import annotations

import gc
import math
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import dlbridge
from dlbridge import _convert, _core
from dlbridge._capability import Outcome, Verdict
from dlbridge.tests import _frameworks
from dlbridge.tests._consumers import CONSUMERS, Consumer
from dlbridge.tests._producers import PRODUCERS, Producer, Unavailable
from dlbridge.tests._report import Cell, Results, Status

CONVERT = "convert"
FROM_DLPACK = "from_dlpack"
_REPEATS = 10
_RELEASE_WAIT_S = 1.0  # jax and TensorFlow give memory back on threads of their own


class Fault(Exception):
    """A wrong value, pointer, mark or a leak."""


def _reason(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    own = isinstance(error, (_core.ExchangeError, _core.ProtocolError))
    return first.removeprefix("convert(): ") if own else f"{type(error).__name__}: {first}"


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in _flat(part)]
    return [value]


def _same(got: Any, expected: Iterable[Any]) -> bool:
    flat, wanted = _flat(got), list(expected)
    return len(flat) == len(wanted) and all(a == b or (a != a and b != b) for a, b in zip(flat, wanted, strict=True))


def _deliver(route: str, consumer: Consumer, module: ModuleType, tensor: _core.Tensor) -> Any:
    if route == CONVERT:
        return dlbridge.convert(tensor, consumer.name)
    assert consumer.from_dlpack is not None
    return consumer.from_dlpack(module, tensor)


def _may_run(route: str, verdict: Verdict) -> bool:
    """Importers of their own are spared the strides that they abort on instead of raising (torch: negative ones)."""
    return route == CONVERT or verdict.outcome is not Outcome.COPY or "strides" not in verdict.reason


def _check_values(consumer: Consumer, result: Any, producer: Producer, when: str) -> None:
    got = consumer.read(result)
    if got is not None and not _same(got, producer.values):
        raise Fault(f"wrong values {when}: {_flat(got)[:8]}, expected {list(producer.values)[:8]}")


def _check_pointer(consumer: Consumer, result: Any, tensor: _core.Tensor, declared: Verdict) -> bool:
    """Whether the memory is shared; Fault where a copy was made that the capability table does not declare."""
    if not tensor.size:
        return declared.outcome is not Outcome.COPY
    got = consumer.pointer(result)
    if got == tensor.data_ptr:
        return True
    if declared.outcome is not Outcome.COPY:
        raise Fault(f"wrong pointer: {got:#x}, expected {tensor.data_ptr:#x} (no copy was declared)")
    return False


def _check_readonly(consumer: Consumer, result: Any, tensor: _core.Tensor) -> None:
    if tensor.readonly and consumer.readonly is not None and not consumer.readonly(result):
        raise Fault("the read-only mark was lost")


def _check_write(producer: Producer, consumer: Consumer, source: Any, tensor: _core.Tensor, result: Any) -> None:
    """Writes by the consumer's own means and reads by the producer's own."""
    if tensor.readonly or not tensor.size or producer.read is None or consumer.write is None:
        return
    consumer.write(result, producer.new_value)
    if not _same(producer.read(source), [producer.new_value, *producer.values[1:]]):
        raise Fault("a write through the consumer is not seen by the producer")
    consumer.write(result, producer.values[0])


def _weakref(obj: Any) -> Callable[[], Any] | None:
    try:
        return weakref.ref(obj)
    except TypeError:
        return None


def _wait_until(done: Callable[[], bool]) -> bool:
    if done():
        return True
    gc.collect()
    limit = time.monotonic() + _RELEASE_WAIT_S
    while not done():
        if time.monotonic() > limit:
            return False
        time.sleep(0.005)
    return True


def _exchange_once(
    producer: Producer, consumer: Consumer, route: str, modules: tuple[ModuleType, ModuleType]
) -> tuple[Status, str, Callable[[], Any] | None]:
    """Sends one array, checks it, drops the producer first and checks again. Leaves nothing alive."""
    source = producer.make(modules[0])
    tensor = _core.asdlpack(source)
    _, verdict = _convert.plan(tensor, consumer.name)
    own = consumer.own_copy(tensor) if route == FROM_DLPACK else ""
    if own and verdict.outcome is Outcome.AS_IS:
        verdict = Verdict(Outcome.COPY, own)
    if not _may_run(route, verdict):
        return Status.REFUSED, f"not tried: {verdict.reason}", None
    result = _deliver(route, consumer, modules[1], tensor)
    _check_values(consumer, result, producer, "at once")
    shared = _check_pointer(consumer, result, tensor, verdict)
    if shared and verdict.outcome is not Outcome.COPY:
        _check_readonly(consumer, result, tensor)
        _check_write(producer, consumer, source, tensor, result)
    alive = _weakref(source)
    del source, tensor
    _check_values(consumer, result, producer, "after the producer was deleted")
    return (Status.WORKS, "", alive) if shared else (Status.COPIES, verdict.reason, alive)


def _check_leaks(producer: Producer, consumer: Consumer, route: str, modules: tuple[ModuleType, ModuleType]) -> None:
    source = producer.make(modules[0])
    references = sys.getrefcount(source)
    before = _core.live_counts()
    for _ in range(_REPEATS):
        _deliver(route, consumer, modules[1], _core.asdlpack(source))
    if not _wait_until(lambda: _core.live_counts() == before):
        raise Fault(f"leak: live objects {before} became {_core.live_counts()} after {_REPEATS} exchanges")
    if not _wait_until(lambda: sys.getrefcount(source) <= references):
        raise Fault(f"leak: {sys.getrefcount(source) - references} references to the producer were kept")


def exchange(producer: Producer, consumer: Consumer, route: str, modules: tuple[ModuleType, ModuleType]) -> Cell:
    """The outcome of one exchange; raises nothing but Unavailable."""

    def cell(status: Status, reason: str) -> Cell:
        return Cell(producer.name, consumer.name, route, status, reason)

    before = _core.live_counts()
    try:
        status, reason, alive = _exchange_once(producer, consumer, route, modules)
        if alive is not None and not _wait_until(lambda: alive() is None):
            raise Fault("leak: the producer is alive after the last consumer was deleted")
        if not _wait_until(lambda: _core.live_counts() == before):
            raise Fault(f"leak: live objects {before} became {_core.live_counts()}")
        if status is not Status.REFUSED:
            _check_leaks(producer, consumer, route, modules)
        return cell(status, reason)
    except Fault as fault:
        return cell(Status.WRONG, str(fault))
    except Unavailable:
        raise
    except Exception as error:
        return cell(Status.REFUSED, _reason(error))


def read_once(producer: Producer, module: ModuleType) -> Cell:
    """Whether asdlpack() reads the producer: right pointer, size and read-only mark."""
    source = producer.make(module)
    try:
        tensor = _core.asdlpack(source)
    except Exception as error:
        return Cell(producer.name, "asdlpack", "read", Status.REFUSED, _reason(error))
    problems = []
    pointer = producer.pointer(source)
    if tensor.size and pointer not in (-1, tensor.data_ptr):
        problems.append(f"wrong pointer: {tensor.data_ptr:#x}, expected {pointer:#x}")
    if tensor.size != len(producer.values) or math.prod(tensor.shape) != tensor.size:
        problems.append(f"wrong size: shape {tensor.shape}, expected {len(producer.values)} elements")
    if producer.readonly and not tensor.readonly:
        problems.append("the read-only mark was lost")
    status = Status.WRONG if problems else Status.WORKS
    return Cell(producer.name, "asdlpack", "read", status, "; ".join(problems), protocol=tensor.protocol)


def _wanted(only: frozenset[str] | None) -> list[str]:
    names = dict.fromkeys([row.module for row in PRODUCERS] + [row.module for row in CONSUMERS])
    return [name for name in names if only is None or name in only]


def _run_producer(producer: Producer, found: _frameworks.Frameworks, results: Results) -> None:
    module = found.modules[producer.module]
    try:
        first = read_once(producer, module)
    except Unavailable as error:
        results.absent[producer.name] = str(error)
        return
    results.cells.append(first)
    if first.status is not Status.WORKS:
        return
    for consumer in CONSUMERS:
        if consumer.module not in found.modules:
            continue
        modules = (module, found.modules[consumer.module])
        results.cells.append(exchange(producer, consumer, CONVERT, modules))
        if consumer.from_dlpack is not None:
            results.cells.append(exchange(producer, consumer, FROM_DLPACK, modules))


def run_all(only: frozenset[str] | None = None) -> Results:
    """Every producer to every consumer, restricted to the modules in `only`."""
    started = time.perf_counter()
    found = _frameworks.load(_wanted(only))
    loaded = time.perf_counter()
    results = Results(versions=found.versions(), absent=dict(found.absent))
    for producer in PRODUCERS:
        if producer.module in found.modules:
            _run_producer(producer, found, results)
    results.load_s = loaded - started
    results.run_s = time.perf_counter() - loaded
    return results
