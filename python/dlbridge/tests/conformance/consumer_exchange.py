"""What DLPack 1.3 asks of who uses the C exchange API of a type."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._adversary import Managed, _kept
from dlbridge.tests.conformance._check import HEADER, MUST, ROBUST, SHOULD, Check, Failed, Skip, expect
from dlbridge.tests.conformance._spec import BASE, Spec
from dlbridge.tests.conformance._taking import Offer, Taking, managed_for

_FROM_OBJECT = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(ct.c_void_p))
_WORK_STREAM = ct.CFUNCTYPE(ct.c_int, ct.c_int32, ct.c_int32, ct.POINTER(ct.c_void_p))

# A slot that returns -1 with a Python exception set, which no ctypes callback can do: `int PyObject_IsTrue(PyObject*)`
# fails with what __bool__ of the object raises.
_FAILS_AS_BOOL = ct.cast(ct.pythonapi.PyObject_IsTrue, ct.c_void_p).value


class Advertised:
    """A type with an exchange table of our own, and ``__dlpack__`` to fall back on; `taken` are tensors given out."""

    def __init__(
        self,
        build: Callable[[], Managed],
        *,
        version: tuple[int, int] = (1, 3),
        older: _abi.ExchangeTable | None = None,
        name: bytes = _abi.EXCHANGE,
        **slots: Any,
    ) -> None:
        _kept.append(self)
        self.taken: list[Managed] = []
        self.fallback = Offer(lambda: managed_for(BASE, version=None))
        self._build = build
        self._slots = {"from_object": _FROM_OBJECT(self._give), "work_stream": _WORK_STREAM(_no_stream)} | slots
        self.table = _abi.ExchangeTable(version=_abi.DLPackVersion(*version))
        for slot, function in self._slots.items():
            address = (
                function if isinstance(function, int) or function is None else ct.cast(function, ct.c_void_p).value
            )
            setattr(self.table, slot, address)
        if older is not None:
            self.table.prev_api = ct.addressof(older)
        producer = self.fallback.producer
        attributes = {
            "__dlpack_c_exchange_api__": _abi.new_capsule(ct.addressof(self.table), name),
            "__dlpack__": lambda _self, **options: producer.__dlpack__(**options),
            "__dlpack_device__": lambda _self: (1, 0),
            "__bool__": _own_error,
        }
        self.type = type("Advertised", (), attributes)
        self.object = self.type()

    def _give(self, _object: int, out: Any) -> int:
        tensor = self._build()
        self.taken.append(tensor)
        out[0] = ct.addressof(tensor.struct)
        return 0

    def unsettled(self) -> tuple[str, str] | None:
        """Each tensor that was given out is deleted once."""
        got = [tensor.deletions for tensor in self.taken]
        if any(count != 1 for count in got):
            return "one call of the deleter of each tensor given out", str(got)
        return self.fallback.unsettled()

    @property
    def hopeless(self) -> bool:
        """What has been deleted twice or written to gets no better."""
        return self.fallback.hopeless or any(tensor.deletions not in (0, 1) for tensor in self.taken)


class OwnError(Exception):
    """An error that only the slot can have set."""


def _own_error(_self: Any) -> bool:
    raise OwnError("the slot's own error")


def _no_stream(_kind: int, _id: int, out: Any) -> int:
    out[0] = None
    return 0


def _gate(taking: Taking) -> None:
    probe = Advertised(lambda: managed_for(BASE, version=(1, 3)))
    taking.attempt(probe.object)
    if not probe.taken:
        raise Skip("the consumer does not use the C exchange API")


def _right(build: Callable[[], Managed], spec: Spec, taking: Taking, **options: Any) -> None:
    _gate(taking)
    offer = Advertised(build, **options)
    result = taking.taken(offer.object)
    taking.expect_right(result, spec)
    del result
    taking.settle(offer)


def _refused(build: Callable[[], Managed], taking: Taking) -> None:
    _gate(taking)
    offer = Advertised(build)
    result, refusal = taking.attempt(offer.object)
    if refusal is not None:
        taking.settle(offer)
        return
    if not offer.taken or offer.fallback.capsules:
        raise Skip("the consumer fell back on __dlpack__")
    raise Failed("an error", f"{type(result).__name__} of shape {taking.shape(result)}")


def _slot_fails(taking: Taking) -> None:
    """The slot's exception reaches the caller, or __dlpack__ is asked."""
    _gate(taking)
    offer = Advertised(lambda: managed_for(BASE), from_object=_FAILS_AS_BOOL)
    result, refusal = taking.attempt(offer.object)
    if refusal is not None:
        expect(issubclass(refusal.kind, OwnError), "the slot's own error", refusal.words)
        return
    taking.expect_right(result, BASE)


def _unusable(options: dict[str, Any], taking: Taking) -> None:
    """A table that must not be used: __dlpack__ is, or an error is raised."""
    _gate(taking)
    offer = Advertised(lambda: managed_for(BASE, version=(1, 3)), **options)
    result, refusal = taking.attempt(offer.object)
    if refusal is not None:
        return
    expect(not offer.taken, "a table of this kind left alone", "its functions were called")
    taking.expect_right(result, BASE)


def _older(taking: Taking) -> None:
    """A newer major version with a table of version 1 behind it."""
    _gate(taking)
    inner = Advertised(lambda: managed_for(BASE, version=(1, 3)))
    offer = Advertised(lambda: managed_for(BASE), version=(2, 0), older=inner.table, from_object=None, work_stream=None)
    result, refusal = taking.attempt(offer.object)
    if refusal is not None:
        raise Failed("the older table, or __dlpack__", refusal.words)
    taking.expect_right(result, BASE)
    del result
    taking.settle(inner)


def _readonly(taking: Taking) -> None:
    _gate(taking)
    offer = Advertised(lambda: managed_for(BASE, version=(1, 3), flags=_abi.READ_ONLY))
    result = taking.call(offer.object)
    expect(taking.says_readonly(result), "a read-only result", "a writable one")


def _alive(taking: Taking) -> None:
    _gate(taking)
    offer = Advertised(lambda: managed_for(BASE, version=(1, 3)))
    result = taking.call(offer.object)
    expect(all(t.deletions == 0 for t in offer.taken), "no call of the deleter while the result lives", "a call")
    del result
    taking.settle(offer)


_OFFSET = Spec((4, 6), "int16", "strided")

_ROWS: tuple[tuple[str, Callable[[Taking], None], str, str, str], ...] = (
    (
        "plain",
        partial(_right, lambda: managed_for(BASE, version=(1, 3)), BASE),
        MUST,
        HEADER,
        "from_object gives a tensor",
    ),
    (
        "strided",
        partial(_right, lambda: managed_for(_OFFSET, version=(1, 3)), _OFFSET),
        MUST,
        HEADER,
        "strides are followed",
    ),
    (
        "minor-99",
        partial(_right, lambda: managed_for(BASE, version=(1, 99)), BASE),
        MUST,
        HEADER,
        "a newer minor is read",
    ),
    ("alive", _alive, MUST, HEADER, "the memory is the producer's until the deleter is called"),
    ("readonly", _readonly, MUST, HEADER, "READ_ONLY memory is not handed on as writable"),
    (
        "major-2",
        partial(_refused, lambda: managed_for(BASE, version=(2, 0))),
        MUST,
        HEADER,
        "another major is deleted, unread",
    ),
    (
        "malformed",
        partial(_refused, lambda: managed_for(BASE, ndim=-1)),
        SHOULD,
        ROBUST,
        "an unsound tensor is deleted",
    ),
    ("slot-fails", _slot_fails, MUST, HEADER, "the exception of a failing slot is kept"),
    ("newer-table", partial(_unusable, {"version": (2, 0)}), MUST, HEADER, "the major version of the table is checked"),
    ("older-table", _older, SHOULD, HEADER, "older tables are found through prev_api"),
    (
        "wrong-name",
        partial(_unusable, {"name": b"dlpack_api"}),
        MUST,
        HEADER,
        "the capsule has the name of the protocol",
    ),
    ("null-from-object", partial(_unusable, {"from_object": None}), SHOULD, ROBUST, "a NULL slot is not called"),
)


def _all() -> Iterator[Check]:
    for name, run, severity, source, clause in _ROWS:
        yield Check(f"exchange.{name}", "dlpack_exchange", clause, source, run, severity, True)


CHECKS: tuple[Check, ...] = tuple(_all())
