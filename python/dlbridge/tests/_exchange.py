"""One exchange: a producer's array through asdlpack() into a consumer, checked from both ends."""

from __future__ import annotations

import math
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from dlbridge import _core
from dlbridge.tests._cases import flatten, same
from dlbridge.tests._gate import Gate, Unsupported, prepare_reading, read_unordered
from dlbridge.tests._plan import CONVERT, READ, Spec
from dlbridge.tests._results import Cell, Status
from dlbridge.tests.frameworks import Bench

_REPEATS = 10
_GATE_LIMIT_S = 10.0  # of a gate that nobody should wait for
_CONTROL_LIMIT_S = 0.5  # streams may share a connection to the GPU, and then one holds up the other
_CLOSED_FOR_S = 0.03  # how long one stays closed for a consumer, which may wait on the host: none that waits is hurried


class Fault(Exception):
    """A wrong value, pointer, mark or a leak."""


class Unmakeable(Exception):
    """The producer cannot make the array of this case here."""


@dataclass(frozen=True)
class Ends:
    """The two benches of an exchange, and what is done on them."""

    spec: Spec
    producer: Bench
    consumer: Bench | None

    def make(self) -> Any:
        try:
            return self.producer.make(self.spec.kind, self.spec.case)
        except MemoryError:
            raise
        except Exception as error:
            raise Unmakeable(f"{self.spec.kind.name} makes no such array: {_first_line(error)}") from error

    def make_delayed(self, hold: Callable[[int], None]) -> tuple[Any, AbstractContextManager[Any]]:
        """An array that is written behind a gate, and the context to hand it over in."""
        try:
            return self.producer.make_delayed(self.spec.kind, self.spec.case, hold)
        except MemoryError:
            raise
        except Exception as error:
            raise Unmakeable(f"{self.spec.kind.name} makes no such array: {_first_line(error)}") from error

    def read_tensor(self, source: Any) -> _core.Tensor:
        return _core.asdlpack(source, protocol=self.spec.protocol or None)

    def deliver(self, source: Any) -> Any:
        """The whole exchange, as a user would write it."""
        assert self.consumer is not None and self.spec.consumer is not None
        if self.spec.route == CONVERT:
            given = self.read_tensor(source) if self.spec.protocol else source
            return _core.convert(given, self.spec.consumer.convert)
        take = self.spec.consumer.takes[self.spec.route]
        return self.consumer.function(take, "source")(self.read_tensor(source))

    def read(self, result: Any) -> Any:
        return self._look("read")(result)

    def pointer(self, result: Any) -> int | None:
        """None where the consumer cannot say."""
        look = self._look("pointer")
        return None if look is _nothing else int(look(result))

    def _look(self, what: str) -> Callable[..., Any]:
        assert self.consumer is not None and self.spec.consumer is not None
        expression = getattr(self.spec.consumer.look, what)
        parameters = ("x", "value") if what == "write" else ("x",)
        return self.consumer.function(expression, *parameters) if expression else _nothing

    def write(self) -> Callable[..., Any]:
        return self._look("write")

    def readonly(self, result: Any) -> bool | None:
        look = self._look("readonly")
        return None if look is _nothing else bool(look(result))

    def wait(self, done: Callable[[], bool]) -> bool:
        """Whether the consumer gives back in time."""
        assert self.consumer is not None
        return self.consumer.patience.wait(done)

    def read_source(self, source: Any) -> Any:
        return self.producer.function(self.spec.kind.look.read, "x")(source)


def _nothing(*_: Any) -> None:
    """Stands for a look that a framework does not offer."""


def _first_line(error: BaseException) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"


def reason_of(error: Exception) -> str:
    """The words of a refusal: ours say who refuses, others' come with the exception's type."""
    own = isinstance(error, (_core.ExchangeError, _core.ProtocolError))
    first = (str(error).splitlines() or [""])[0]
    return first.removeprefix("convert(): ") if own else _first_line(error)


def _declared_copy(spec: Spec, tensor: _core.Tensor) -> str:
    """Why the table of frameworks, or the importer itself, declares a copy for this exchange; empty: none."""
    if spec.consumer is None:
        return ""
    plan = _core.plan(tensor, spec.consumer.convert) if spec.consumer.convert else None
    reason = plan.reason if plan is not None and plan.outcome == "copied" else ""
    return reason if spec.route == CONVERT else reason or spec.consumer.own_copy(tensor)


def _spared(spec: Spec, tensor: _core.Tensor) -> str:
    """Why an importer of the framework's own is not tried; empty: it is.

    It is spared the strides that it may end the process on instead of raising (torch: negative ones).
    """
    if spec.consumer is None or spec.route == CONVERT or not spec.consumer.convert:
        return ""
    plan = _core.plan(_core.reinterpret(tensor, readonly=False), spec.consumer.convert)
    return plan.reason if plan.rule == "strides" else ""


def _check_values(ends: Ends, result: Any, when: str) -> None:
    got = ends.read(result)
    if got is not None and not same(got, ends.spec.case.values):
        raise Fault(f"wrong values {when}: {flatten(got)[:8]}, expected {ends.spec.case.values[:8]}")


def _check_pointer(ends: Ends, result: Any, tensor: _core.Tensor, declared: str) -> bool:
    """Whether the memory is shared; Fault where a copy was made that the capability table does not declare."""
    if not tensor.size or not ends.spec.kind.look.pointer:  # nothing there, or fresh memory at every access
        return ends.spec.route != CONVERT or not declared
    got = ends.pointer(result)
    if got is None or got == tensor.data_ptr:
        return got is not None or not declared
    if not declared:
        own = "" if ends.spec.route == CONVERT else "; an importer that copies says so by own_copy in its adapter"
        raise Fault(f"wrong pointer: {got:#x}, expected {tensor.data_ptr:#x} (no copy was declared{own})")
    return False


def _check_readonly(ends: Ends, result: Any, tensor: _core.Tensor) -> str:
    """A remark where the consumer has no such mark."""
    if not tensor.readonly or not tensor.size:  # NumPy gives memory of its own for a null pointer
        return ""
    mark = ends.readonly(result)
    if mark is False:
        raise Fault("the read-only mark was lost")
    return "shared; this consumer has no read-only mark" if mark is None and ends.write() is not _nothing else ""


def _check_write(ends: Ends, source: Any, tensor: _core.Tensor, result: Any) -> None:
    """Writes by the consumer's own means and reads by the producer's own."""
    write, case = ends.write(), ends.spec.case
    if tensor.readonly or not tensor.size or write is _nothing or not ends.spec.kind.look.write:
        return
    write(result, case.new_value)
    if not same(ends.read_source(source), [case.new_value, *case.values[1:]]):
        raise Fault("a write through the consumer is not seen by the producer")
    write(result, case.values[0])


def _weakref(obj: Any) -> Callable[[], Any] | None:
    try:
        return weakref.ref(obj)
    except TypeError:
        return None


def _exchange_once(ends: Ends, met: list[str]) -> tuple[Status, str, Callable[[], Any] | None]:
    """Sends one array, checks it, drops the producer first and checks again. Leaves nothing alive.

    `met` gets the protocol that the array was read by, also where the rest is refused.
    """
    source = ends.make()
    tensor = ends.read_tensor(source)
    met.append(tensor.protocol)
    declared, spared = _declared_copy(ends.spec, tensor), _spared(ends.spec, tensor)
    if spared:
        return Status.REFUSED, f"not tried: {spared}", None
    result = ends.deliver(source)
    _check_values(ends, result, "at once")
    shared = _check_pointer(ends, result, tensor, declared)
    remark = ""
    if shared and not declared:
        remark = _check_readonly(ends, result, tensor)
        _check_write(ends, source, tensor, result)
    alive = _weakref(source)
    del source, tensor
    _check_values(ends, result, "after the producer was deleted")
    return (Status.WORKS, remark, alive) if shared else (Status.COPIES, declared, alive)


def _late_gate() -> Gate:
    try:
        prepare_reading()
        return Gate(_GATE_LIMIT_S)
    except Unsupported as error:
        raise Unmakeable(str(error)) from error


def _was_late(gate: Gate, tensor: _core.Tensor) -> bool:
    """The negative control: who waits for nothing finds zeros. False where the GPU was too slow to show it."""
    gate.open_within(_CONTROL_LIMIT_S)
    seen = read_unordered(tensor.data_ptr, tensor.nbytes)
    if gate.is_closed() and any(seen):
        raise Fault("the data was there before its gate was opened: this producer is not late")
    return gate.is_closed()


def _deliver_late(ends: Ends, tensor: _core.Tensor) -> tuple[Status, str]:
    """The part of the exchange that a consumer does, on whichever stream is its own."""
    if ends.spec.consumer is None:
        host: Any = _core.asdlpack(tensor, device="cpu")
        got = memoryview(host).tolist()
        if not same(got, ends.spec.case.values):
            raise Fault(f"wrong values of data that is written late: {flatten(got)[:8]}")
        return Status.WORKS, ""
    declared, spared = _declared_copy(ends.spec, tensor), _spared(ends.spec, tensor)
    spared = spared or ends.spec.consumer.unordered.get(ends.spec.route, "")
    if spared:
        return Status.REFUSED, f"not tried: {spared}"
    read_already = Ends(replace(ends.spec, protocol=""), ends.producer, ends.consumer)
    result = read_already.deliver(tensor)
    _check_values(ends, result, "of data that is written late")
    if _check_pointer(ends, result, tensor, declared):
        return Status.WORKS, ""
    return Status.COPIES, declared


def _exchange_late(ends: Ends, met: list[str]) -> tuple[Status, str]:
    """One array that is written behind a gate, on a stream of its producer's own.

    It is read on that stream, by the producer's rules, and delivered outside. The gate stays closed for a while after,
    so that a consumer that does not wait finds zeros, and opens by itself, since many wait on the host.
    """
    with _late_gate() as gate:
        source, on_its_stream = ends.make_delayed(gate.hold)
        with on_its_stream:
            tensor = ends.read_tensor(source)
        met.append(tensor.protocol)
        late = _was_late(gate, tensor)
        gate.open_within(_CLOSED_FOR_S)
        status, reason = _deliver_late(ends, tensor)
    return status, reason if late else reason or "the GPU was too busy to show that the data was late"


def _check_leaks(ends: Ends) -> int:
    """Repeats the exchange, finds what is left behind, and returns the quickest repetition in ns."""
    source = ends.make()
    references = sys.getrefcount(source)
    before = _core.live_counts()
    costs_ns = []
    for _ in range(_REPEATS):
        started = time.perf_counter_ns()
        ends.deliver(source)
        costs_ns.append(time.perf_counter_ns() - started)
    if not ends.wait(lambda: _core.live_counts() == before):
        raise Fault(f"leak: live objects {before} became {_core.live_counts()} after {_REPEATS} exchanges")
    if not ends.wait(lambda: sys.getrefcount(source) <= references):
        raise Fault(f"leak: {sys.getrefcount(source) - references} references to the producer were kept")
    return min(costs_ns)


def _can_say_readonly(source: Any, protocol: str) -> bool:
    """Whether what the producer gave could carry the mark: a legacy DLPack capsule has no flags."""
    if protocol != "dlpack" or not hasattr(source, "__dlpack__"):
        return True
    try:
        capsule = source.__dlpack__(max_version=(1, 0))
    except TypeError:
        return False
    return bool(_core.peek_capsule(capsule)["name"] == "dltensor_versioned")


def _read_once(ends: Ends) -> tuple[Status, str, str]:
    """Whether asdlpack() reads the producer: right pointer, shape and read-only mark."""
    spec = ends.spec
    source = ends.make()
    tensor = ends.read_tensor(source)
    problems = []
    look = spec.kind.look.pointer
    pointer = ends.producer.function(look, "x")(source) if look and tensor.size else None
    if pointer is not None and pointer != tensor.data_ptr:
        problems.append(f"wrong pointer: {tensor.data_ptr:#x}, expected {pointer:#x}")
    if tensor.shape != spec.kind.shape(spec.case) or math.prod(tensor.shape) != tensor.size:
        problems.append(f"wrong shape: {tensor.shape}, expected {spec.kind.shape(spec.case)}")
    dtype = spec.kind.arrives.get(spec.case.dtype, spec.case.dtype)
    if tensor.dtype != dtype:
        problems.append(f"wrong dtype: {tensor.dtype}, expected {dtype}")
    if tensor.device.type != spec.case.device:
        problems.append(f"wrong device: {tensor.device}, expected {spec.case.device}")
    marked = spec.kind.look.readonly
    readonly = ends.producer.function(marked, "x")(source) if marked else spec.kind.readonly
    if readonly and not tensor.readonly and _can_say_readonly(source, tensor.protocol):
        problems.append("the read-only mark was lost")
    return Status.WRONG if problems else Status.WORKS, "; ".join(problems), tensor.protocol


def run(ends: Ends) -> Cell:
    """The outcome of one exchange; raises nothing."""
    spec = ends.spec
    cell = Cell(
        spec.kind.name,
        spec.consumer_label,
        spec.route,
        Status.WORKS,
        protocol=spec.protocol,
        asked=spec.protocol,
        dtype=spec.case.dtype,
        layout=spec.case.layout,
        device=spec.case.device,
    )
    met: list[str] = []
    try:
        if spec.case.layout == "delayed":
            status, reason = _exchange_late(ends, met)
            return replace(cell, status=status, reason=reason, protocol=met[0])
        if spec.route == READ:
            status, reason, protocol = _read_once(ends)
            return replace(cell, status=status, reason=reason, protocol=protocol)
        before = _core.live_counts()
        status, reason, alive = _exchange_once(ends, met)
        cell = replace(cell, status=status, reason=reason, protocol=met[0])
        if alive is not None and not ends.wait(lambda: alive() is None):
            raise Fault("leak: the producer is alive after the last consumer was deleted")
        if not ends.wait(lambda: _core.live_counts() == before):
            raise Fault(f"leak: live objects {before} became {_core.live_counts()}")
        return cell if status is Status.REFUSED else replace(cell, cost_ns=_check_leaks(ends))
    except Fault as fault:
        status, reason = Status.WRONG, str(fault)
    except Unmakeable as error:
        status, reason = Status.ABSENT, str(error)
    except Exception as error:
        status, reason = Status.REFUSED, reason_of(error)
    return replace(cell, status=status, reason=reason, protocol=met[0] if met else spec.protocol)
