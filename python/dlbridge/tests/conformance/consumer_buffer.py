"""What the buffer protocol asks of who reads an exporter: formats, strides, read-only, and giving the view back."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Iterator
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _spec
from dlbridge.tests.conformance._adversary import BufferExporter, Resizable, memory_of, row_pointers
from dlbridge.tests.conformance._check import (
    BUFFER,
    MUST,
    ROBUST,
    SHOULD,
    STRUCT,
    Check,
    Failed,
    Skip,
    expect,
)
from dlbridge.tests.conformance._spec import BASE, DTYPES, Spec, encode
from dlbridge.tests.conformance._taking import Taking

_NAMED = tuple(s for s in _spec.EXPRESSIBLE if DTYPES[s.dtype]["pep3118"])


def _exporter(spec: Spec, **changes: Any) -> BufferExporter:
    memory, offset, strides = memory_of(spec)
    row = DTYPES[spec.dtype]
    options: dict[str, Any] = {
        "shape": spec.shape,
        "strides": strides,
        "format": row["pep3118"].encode(),
        "itemsize": row["itemsize"],
        "offset": offset,
        "readonly": spec.readonly,
    }
    return BufferExporter(memory, **(options | changes))


def _lend(taking: Taking, exporter: BufferExporter) -> Any:
    """The result; a refusal is a skip, and leaves no view behind."""
    result, refusal = taking.attempt(exporter.object)  # nothing else may hold the object when its views are counted
    if refusal is not None:
        taking.settle(exporter)
        raise Skip(f"refused: {refusal.words}")
    return result


def _gate(taking: Taking) -> None:
    result, refusal = taking.attempt(_exporter(BASE).object)
    if refusal is not None:
        raise Skip(f"the consumer takes no buffer of a shape and format: {refusal.words}")
    taking.expect_right(result, BASE)


def _control(taking: Taking) -> None:
    taking.expect_right(taking.taken(_exporter(BASE).object), BASE)


def _values(spec: Spec, taking: Taking) -> None:
    _gate(taking)
    exporter = _exporter(spec)
    result = _lend(taking, exporter)
    taking.expect_right(result, spec)
    del result
    taking.settle(exporter)


def _readonly(spec: Spec, taking: Taking) -> None:
    _gate(taking)
    exporter = _exporter(spec)
    result = _lend(taking, exporter)
    readonly = taking.says_readonly(result)
    taking.skip_a_copy(result, exporter.address)
    expect(readonly == spec.readonly, f"readonly={spec.readonly}, as the exporter says", f"readonly={readonly}")


def _bytes(taking: Taking) -> None:
    """A plain bytes object: nothing may be written to it."""
    raw = b"".join(encode(value, "uint8") for value in range(6))
    result = taking.taken_or_skip(raw)
    readonly = taking.says_readonly(result)
    if not readonly:
        values = taking.values(result)
        raise (
            Skip("the result is a copy") if values != list(range(6)) else Failed("a read-only result", "a writable one")
        )


def _locks(taking: Taking) -> None:
    """While its memory is used, a bytearray cannot be resized."""
    data = bytearray(range(6))
    result = taking.taken_or_skip(data)
    data[0] = 77
    shares = taking.values(result)[0] == 77
    if not shares:
        raise Skip("the result is a copy")
    try:
        data.extend(bytes(4096))
    except BufferError:
        return
    raise Failed("BufferError on resizing the bytearray: the view is held", "it was resized under the result")


def _releases(taking: Taking) -> None:
    lent = Resizable(bytes(range(6)))
    result, refusal = taking.attempt(lent.data)
    del result
    taking.settle(lent)
    if refusal is not None:
        raise Skip(f"refused: {refusal.words}")


def _format(format: bytes, itemsize: int, values: list[Any] | None, raw: bytes, taking: Taking) -> None:
    """`values` None: must be refused; else those, or a refusal."""
    _gate(taking)
    memory = ct.create_string_buffer(raw + bytes(64))
    exporter = BufferExporter(memory, (3,), (itemsize,), format=format, itemsize=itemsize)
    result, refusal = taking.attempt(exporter.object)
    got = taking.values(result) if refusal is None else None
    del result
    taking.settle(exporter)
    if refusal is not None:
        if values is None:
            return
        raise Skip(f"refused: {refusal.words}")
    expect(values is not None, "an error", got)
    expect(got == values, f"the elements {values}", got)


def _null_format(taking: Taking) -> None:
    _gate(taking)
    exporter = _exporter(Spec((3,), "uint8"), format=None)
    got = taking.values(_lend(taking, exporter))
    taking.settle(exporter)
    expect(got == [1, 2, 3], "unsigned bytes [1, 2, 3]", got)


def _malformed(changes: dict[str, Any], taking: Taking) -> None:
    _gate(taking)
    exporter = _exporter(BASE, **changes)
    result, refusal = taking.attempt(exporter.object)
    if refusal is None:
        raise Failed("an error", f"{type(result).__name__} of shape {taking.shape(result)}")
    taking.settle(exporter)


def _indirect(taking: Taking) -> None:
    """An array of pointers to rows, as its suboffsets say: they are followed, or it is refused."""
    _gate(taking)
    exporter = row_pointers(BASE)
    result = _lend(taking, exporter)
    taking.expect_right(result, BASE)
    del result
    taking.settle(exporter)


def _swapped(numbers: tuple[int, ...], size: int) -> bytes:
    return b"".join(n.to_bytes(size, "big") for n in numbers)


_INT3 = b"".join(n.to_bytes(4, "little") for n in (1, 2, 3))

# name, format, itemsize, the values that must be seen (None: must be refused), memory
_FORMATS: tuple[tuple[str, bytes, int, list[Any] | None, bytes], ...] = (
    ("little-int", b"<i", 4, [1, 2, 3], _INT3),
    ("little-standard-long", b"<l", 4, [1, 2, 3], _INT3),
    ("standard-long", b"=l", 4, [1, 2, 3], _INT3),
    ("native-at", b"@i", 4, [1, 2, 3], _INT3),
    ("big-int", b">i", 4, [1, 2, 3], _swapped((1, 2, 3), 4)),
    ("big-short", b">h", 2, [1, 2, 3], _swapped((1, 2, 3), 2)),
    ("network-short", b"!h", 2, [1, 2, 3], _swapped((1, 2, 3), 2)),
    ("big-long-long", b">q", 8, [1, 2, 3], _swapped((1, 2, 3), 8)),
    ("unknown", b"y", 4, None, _INT3),
    ("empty", b"", 4, None, _INT3),
    ("itemsize-too-small", b"i", 2, None, _INT3),
    ("itemsize-too-large", b"h", 4, None, _INT3),
)

_MALFORMED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("suboffsets", {"suboffsets": (0, -1)}),
    ("ndim-65", {"ndim": 65}),
    ("negative-ndim", {"ndim": -1}),
    ("null-shape", {"shape": None, "ndim": 2}),
)


def _all() -> Iterator[Check]:
    def row(name: str, clause: str, run: Any, severity: str = MUST, source: str = BUFFER, risky: bool = False) -> Check:
        return Check(f"buffer.{name}", "buffer", clause, source, run, severity, risky)

    yield row("control", "an exporter with shape and format is taken", _control)
    for spec in _NAMED:
        risky = spec.layout in ("reversed", "broadcast")
        clause = "buf, shape, strides and format are followed, or the exporter is refused; the view is released"
        yield row(f"values[{spec}]", clause, partial(_values, spec), risky=risky)
    for name, spec, severity in (("readonly", Spec(readonly=True), MUST), ("writable", BASE, SHOULD)):
        yield row(name, "readonly says whether the memory may be written to", partial(_readonly, spec), severity)
    yield row("bytes", "bytes are read-only", _bytes)
    yield row("locks", "the view is held as long as the memory is used", _locks)
    yield row("releases", "the view is released when the memory is no more used", _releases)
    clause = "suboffsets that are not negative are followed, or the exporter is refused"
    yield row("suboffsets", clause, _indirect, risky=True)
    yield row("null-format", "format NULL means unsigned bytes", _null_format)
    for name, format, itemsize, values, raw in _FORMATS:
        clause = "format gives size and byte order, and agrees with itemsize; or the exporter is refused"
        run = partial(_format, format, itemsize, values, raw)
        yield row(f"format[{name}]", clause, run, MUST if values else SHOULD, STRUCT)
    for name, changes in _MALFORMED:
        clause = "a Py_buffer that breaks the protocol, or needs suboffsets, is an error"
        yield row(f"malformed[{name}]", clause, partial(_malformed, changes), SHOULD, ROBUST, True)


CHECKS: tuple[Check, ...] = tuple(_all())
