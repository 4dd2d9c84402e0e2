"""What the array interface asks of who reads ``__array_interface__``: sound and unsound dictionaries."""

from __future__ import annotations

import ctypes as ct
import gc
import sys
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _spec
from dlbridge.tests.conformance._adversary import Interface, Resizable, memory_of
from dlbridge.tests.conformance._check import INTERFACE, MUST, ROBUST, SHOULD, Check, Failed, Skip, expect
from dlbridge.tests.conformance._spec import BASE, DTYPES, Spec, encode
from dlbridge.tests.conformance._taking import Taking

_ATTRIBUTE = "__array_interface__"
_NAMED = tuple(s for s in _spec.EXPRESSIBLE if DTYPES[s.dtype]["typestr"])
_OTHER = ">" if sys.byteorder == "little" else "<"


def interface_of(spec: Spec, **changes: Any) -> dict[str, Any]:
    """A sound dictionary, but for `changes`; a value of ... takes the key away."""
    memory, offset, strides = memory_of(spec)
    address = ct.addressof(memory) + offset if spec.size else 0
    value = {
        "shape": spec.shape,
        "typestr": DTYPES[spec.dtype]["typestr"],
        "strides": None if spec.layout == "C" else strides,
        "data": (address, spec.readonly),
        "version": 3,
    } | changes
    return {key: entry for key, entry in value.items() if entry is not ...}


def _take(taking: Taking, value: Any) -> Any:
    return taking.taken_or_skip(Interface(_ATTRIBUTE, value))


def _control(taking: Taking) -> None:
    taking.expect_right(taking.taken(Interface(_ATTRIBUTE, interface_of(BASE))), BASE)


def gate(taking: Taking) -> None:
    """Consumers that take no such object are not asked more about it."""
    result, refusal = taking.attempt(Interface(_ATTRIBUTE, interface_of(BASE)))
    if refusal is not None:
        raise Skip(f"the consumer takes no {_ATTRIBUTE}: {refusal.words}")
    if taking.values(result) != BASE.values:
        raise Skip(f"the consumer takes no {_ATTRIBUTE}: it made something else of the object")


def _values(spec: Spec, taking: Taking) -> None:
    gate(taking)
    taking.expect_right(_take(taking, interface_of(spec)), spec)


def _changed(spec: Spec, changes: dict[str, Any], taking: Taking) -> None:
    gate(taking)
    taking.expect_right(_take(taking, interface_of(spec, **changes)), spec)


def _swapped(dtype: str, taking: Taking) -> None:
    """Data in the opposite byte order: the right values, or a refusal."""
    gate(taking)
    spec = Spec((2, 3), dtype)
    typestr = DTYPES[dtype]["typestr"]
    parts = 2 if typestr[1] == "c" else 1
    raw = b""
    for value in spec.values:
        native = encode(value, dtype)
        size = len(native) // parts
        raw += b"".join(native[i * size : (i + 1) * size][::-1] for i in range(parts))
    memory = ct.create_string_buffer(raw)
    value = interface_of(spec, typestr=_OTHER + typestr[1:], data=(ct.addressof(memory), False))
    taking.expect_right(_take(taking, value), spec)


def _data_object(offset: int, writable: bool, taking: Taking) -> None:
    gate(taking)
    raw = bytes(offset) + b"".join(encode(v, "float32") for v in BASE.values)
    data: Any = bytearray(raw) if writable else raw
    value = interface_of(BASE, data=data, **({"offset": offset} if offset else {}))
    result = _take(taking, value)
    del data, value
    gc.collect()
    taking.expect_right(result, BASE)


def _data_object_released(taking: Taking) -> None:
    """When the result is gone, the bytearray behind it can be resized again."""
    gate(taking)
    lent = Resizable(b"".join(encode(v, "float32") for v in BASE.values))
    result, refusal = taking.attempt(Interface(_ATTRIBUTE, interface_of(BASE, data=lent.data)))
    del result
    taking.settle(lent)
    if refusal is not None:
        raise Skip(f"refused: {refusal.words}")


def _readonly(spec: Spec, taking: Taking) -> None:
    gate(taking)
    value = interface_of(spec)
    result = _take(taking, value)
    readonly = taking.says_readonly(result)
    if readonly is False and not taking.shares(result, value["data"][0]):
        raise Skip("the result is a copy")
    expect(readonly == spec.readonly, "read-only as the interface says", f"readonly={readonly}")


def _kept_alive(taking: Taking) -> None:
    """The dictionary owns nothing: who uses the memory holds the object."""
    gate(taking)
    value = interface_of(BASE)
    producer = Interface(_ATTRIBUTE, value)
    alive = weakref.ref(producer)
    result = taking.call(producer)
    del producer
    gc.collect()
    held = alive() is not None
    taking.skip_a_copy(result, value["data"][0])
    expect(held, "the producer held by the result, which uses its memory", "the producer is gone")


def _mask(taking: Taking) -> None:
    """Elements that the mask takes out must not come out as valid ones."""
    gate(taking)
    mask = Interface(_ATTRIBUTE, interface_of(Spec((2, 3), "bool")))
    result, refusal = taking.attempt(Interface(_ATTRIBUTE, interface_of(BASE, mask=mask)))
    if refusal is not None:
        return
    values = taking.values(result)
    expect(values != BASE.values or hasattr(result, "mask"), "an error, or the mask kept", "all elements as valid ones")


def refused(taking: Taking, value: Any, what: str = "an error") -> None:
    gate(taking)
    result, refusal = taking.attempt(Interface(_ATTRIBUTE, value))
    if refusal is not None:
        return
    raise Failed(what, f"{type(result).__name__} of shape {taking.shape(result)}")


def _malformed(changes: dict[str, Any], taking: Taking) -> None:
    refused(taking, interface_of(BASE, **changes))


_SHORT = bytes(8)
_FITS = bytes(24)

# name, changes to a sound dictionary of six float32, severity
_MALFORMED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("no-shape", {"shape": ...}, MUST),
    ("no-typestr", {"typestr": ...}, MUST),
    ("no-version", {"version": ...}, SHOULD),
    ("shape-number", {"shape": 6}, SHOULD),
    ("shape-strings", {"shape": ("2", "3")}, MUST),
    ("shape-float", {"shape": (2.5, 3)}, SHOULD),
    ("negative-extent", {"shape": (-2, 3)}, MUST),
    ("both-extents-negative", {"shape": (-2, -3)}, MUST),
    ("overflowing-shape", {"shape": (2**62, 8)}, MUST),
    ("typestr-unknown-kind", {"typestr": "<x4"}, MUST),
    ("typestr-no-size", {"typestr": "<f"}, SHOULD),
    ("typestr-empty", {"typestr": ""}, MUST),
    ("typestr-float3", {"typestr": "<f3"}, MUST),
    ("typestr-number", {"typestr": 4}, MUST),
    ("data-number", {"data": 1234}, MUST),
    ("data-one", {"data": (1234,)}, MUST),
    ("data-string-address", {"data": ("1234x", False)}, MUST),
    ("strides-too-few", {"strides": (4,)}, MUST),
    ("strides-too-many", {"strides": (12, 4, 4)}, MUST),
    ("strides-strings", {"strides": ("12", "4")}, MUST),
    ("buffer-too-short", {"data": _SHORT}, MUST),
    ("buffer-too-short-by-offset", {"data": _FITS, "offset": 4}, MUST),
    ("buffer-too-short-by-strides", {"data": _FITS, "strides": (400, 4)}, MUST),
    ("buffer-before-its-start", {"data": _FITS, "strides": (-12, 4)}, MUST),
    ("buffer-negative-offset", {"data": _FITS, "offset": -4}, MUST),
)


def _not_a_dict(value: Any, taking: Taking) -> None:
    refused(taking, value)


_ROWS: tuple[tuple[str, Any, str, str], ...] = (
    ("future-version", partial(_changed, BASE, {"version": 4}), MUST, "a newer version of the interface is read"),
    ("no-strides", partial(_changed, BASE, {"strides": ...}), MUST, "absent strides mean C order"),
    ("explicit-strides", partial(_changed, BASE, {"strides": (12, 4)}), MUST, "strides are counted in bytes"),
    ("descr", partial(_changed, BASE, {"descr": [("", "<f4")]}), MUST, "descr with one unnamed field adds nothing"),
    ("mask-none", partial(_changed, BASE, {"mask": None}), MUST, "mask None: all elements are valid"),
    ("offset-with-address", partial(_changed, BASE, {"offset": 4}), MUST, "offset counts only with a buffer or None"),
    ("wild-stride-of-one", partial(_changed, Spec((1, 4)), {"strides": (10**12, 4)}), MUST, "it is never used"),
    ("data-object", partial(_data_object, 0, True), MUST, "data may be a buffer, which is held"),
    ("data-object-readonly", partial(_data_object, 0, False), MUST, "data may be a read-only buffer"),
    ("data-object-offset", partial(_data_object, 8, True), MUST, "offset is the start in a buffer"),
    ("data-object-released", _data_object_released, MUST, "a buffer is released when the memory is no more used"),
    ("readonly", partial(_readonly, Spec(readonly=True)), MUST, "the read-only flag is kept"),
    ("writable", partial(_readonly, BASE), SHOULD, "the memory is writable where the flag says so"),
    ("kept-alive", _kept_alive, MUST, "the producer is held as long as its memory is used"),
    ("mask", _mask, SHOULD, "a mask says which elements are valid"),
)


def _all() -> Iterator[Check]:
    def row(
        name: str, clause: str, run: Any, severity: str = MUST, source: str = INTERFACE, risky: bool = False
    ) -> Check:
        return Check(f"array_interface.{name}", "array_interface", clause, source, run, severity, risky)

    yield row("control", "a plain dictionary is taken", _control)
    for spec in _NAMED:
        risky = spec.layout in ("reversed", "broadcast")
        clause = "shape, strides, typestr and data are followed, or the array is refused"
        yield row(f"values[{spec}]", clause, partial(_values, spec), risky=risky)
    for dtype in ("int16", "int32", "int64", "float32", "float64", "complex64"):
        clause = "the byte order in typestr is followed, or the array is refused"
        yield row(f"swapped[{dtype}]", clause, partial(_swapped, dtype))
    for name, run, severity, clause in _ROWS:
        yield row(name, clause, run, severity)
    for name, changes, severity in _MALFORMED:
        clause = "a dictionary that breaks the interface is an error"
        yield row(f"malformed[{name}]", clause, partial(_malformed, changes), severity, ROBUST, True)
    not_dicts: tuple[Any, ...] = (None, 3, [], "interface")
    for value in not_dicts:
        clause = "anything that is not a dictionary is an error"
        yield row(f"no-dict[{value!r}]", clause, partial(_not_a_dict, value), SHOULD, ROBUST, True)


CHECKS: tuple[Check, ...] = tuple(_all())
