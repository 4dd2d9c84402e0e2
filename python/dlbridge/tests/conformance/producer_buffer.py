"""What the buffer protocol asks of an exporter: which fields are filled for which request, and what is refused."""

from __future__ import annotations

import ctypes as ct
import gc
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi, _spec
from dlbridge.tests.conformance._check import BUFFER, STRUCT, Check, Failed, Skip, describe, expect, expect_equal
from dlbridge.tests.conformance._making import Described, Making
from dlbridge.tests.conformance._spec import DTYPES, Spec

_NAMED = tuple(s for s in _spec.EXPRESSIBLE if DTYPES[s.dtype]["pep3118"])


class View:
    """A Py_buffer that is released when the check is over, and the array behind it."""

    def __init__(self, array: Any, flags: int) -> None:
        self.array = array
        self.raw = _abi.get_buffer(array, flags)

    def __enter__(self) -> _abi.PyBuffer:
        return self.raw

    def __exit__(self, *_: object) -> None:
        _abi.release_buffer(ct.byref(self.raw))


def _exporter(making: Making, spec: Spec) -> Any:
    """An array that takes the widest request; the others have no buffer, or refuse this dtype."""
    array = making.array(spec)
    try:
        with View(array, _abi.FULL_RO):
            return array
    except TypeError:
        raise Skip(f"{type(array).__name__} has no buffer protocol") from None
    except Exception as error:
        raise Skip(f"the exporter refuses: {describe(error)}") from None


def _values(spec: Spec, making: Making) -> None:
    if not making.knows_values:
        raise Skip("the factory chooses the values")
    with View(_exporter(making, spec), _abi.FULL_RO) as view:
        row = DTYPES[spec.dtype]
        shape = tuple(view.shape[: view.ndim]) if view.ndim else ()
        strides = tuple(view.strides[: view.ndim]) if view.ndim else ()
        described = Described(view.buf or 0, shape, strides, row["code"], row["bits"], keep=[])
        expect_equal(described.values(), spec.values, "the elements")


def _sizes(spec: Spec, making: Making) -> None:
    with View(_exporter(making, spec), _abi.FULL_RO) as view:
        if making.form != "plain":
            expect_equal(view.ndim, len(spec.shape), "ndim")
            expect_equal(view.itemsize, DTYPES[spec.dtype]["itemsize"], "itemsize")
        count = 1
        for extent in view.shape[: view.ndim] if view.ndim else ():
            count *= extent
        expect_equal(view.len, count * view.itemsize, "len as product(shape) * itemsize")


def _format(spec: Spec, making: Making) -> None:
    with View(_exporter(making, spec), _abi.FULL_RO) as view:
        expect(view.format is not None, "a format where PyBUF_FORMAT is asked", "NULL")
        text = view.format.decode()
        size = _size_of(text)
        if size is not None:
            expect_equal(size, view.itemsize, f"itemsize, which format {text!r} gives as")
        if making.form == "plain":
            return
        kind, wanted = text.lstrip("@=<>!^"), DTYPES[spec.dtype]["pep3118"]
        same = kind == wanted or {kind, wanted} <= set("lq") or {kind, wanted} <= set("LQ")
        expect(same, f"format {wanted!r} for {spec.dtype}", repr(text))


def _size_of(format: str) -> int | None:
    if "Z" in format:
        return None
    try:
        return struct.calcsize(format)
    except struct.error as error:
        raise Failed("a format of the struct module or PEP 3118", f"{format!r}: {error}") from None


def _null_fields(spec: Spec, making: Making) -> None:
    """Each optional field is NULL unless its flag is given."""
    array = _exporter(making, spec)
    with View(array, _abi.SIMPLE) as view:
        expect(view.format is None, "format NULL without PyBUF_FORMAT", repr(view.format))
        expect(not view.shape, "shape NULL without PyBUF_ND", "a pointer")
        expect(not view.strides, "strides NULL without PyBUF_STRIDES", "a pointer")
    with View(array, _abi.ND) as view:
        expect(bool(view.shape) or not view.ndim, "a shape with PyBUF_ND", "NULL")
        expect(not view.strides, "strides NULL without PyBUF_STRIDES", "a pointer")


def _all_fields(spec: Spec, making: Making) -> None:
    with View(_exporter(making, spec), _abi.FULL_RO) as view:
        expect(0 <= view.ndim <= 64, "ndim between 0 and 64", view.ndim)
        expect(bool(view.obj), "obj is set to a new reference", "NULL")
        if view.ndim:
            expect(bool(view.shape), "a shape with PyBUF_ND", "NULL")
            expect(bool(view.strides), "strides with PyBUF_STRIDES", "NULL")
        else:
            expect(not view.shape and not view.strides, "shape and strides NULL for ndim 0", "a pointer")


def _refused(flags: int, spec: Spec, making: Making) -> None:
    array = _exporter(making, spec)
    try:
        view = _abi.get_buffer(array, flags)
    except BufferError as error:
        left = error.view  # type: ignore[attr-defined]
        expect(not left.obj, "view->obj set to NULL on failure", "what was there before")
        return
    except Exception as error:
        raise Failed("BufferError", describe(error)) from None
    _abi.release_buffer(ct.byref(view))
    raise Failed("BufferError", "a view")


def _granted(flags: int, spec: Spec, making: Making) -> None:
    array = _exporter(making, spec)
    if flags & _abi.WRITABLE and making.immutable:
        raise Skip("the library's arrays are immutable")
    try:
        with View(array, flags) as view:
            shape = tuple(view.shape[: view.ndim]) if view.shape else spec.shape
            if making.form != "plain" and view.shape:
                expect_equal(shape, spec.shape, "shape")
    except BufferError as error:
        raise Failed("a view", describe(error)) from None


def _readonly(spec: Spec, making: Making) -> None:
    with View(_exporter(making, spec), _abi.FULL_RO) as view:
        expect_equal(bool(view.readonly), making.is_readonly(spec), "readonly")


def _outlives(making: Making) -> None:
    spec = Spec((50, 7), "float64") if making.form == "spec" else _spec.BASE
    array = _exporter(making, spec)
    view = _abi.get_buffer(array, _abi.SIMPLE)
    before = ct.string_at(view.buf, view.len)
    del array
    gc.collect()
    noise = [bytearray(b"\xa5") * len(before) for _ in range(64)]  # takes freed blocks over
    after = ct.string_at(view.buf, view.len)
    _abi.release_buffer(ct.byref(view))
    expect(bool(noise) and after == before, "the same bytes after the array is gone", "others: the memory was freed")


def _release(making: Making) -> None:
    array = _exporter(making, _spec.BASE)
    with View(array, _abi.SIMPLE):
        pass
    before = sys.getrefcount(array)
    for _ in range(20):
        with View(array, _abi.FULL_RO):
            pass
    expect_equal(sys.getrefcount(array) - before, 0, "references to the array left behind by 20 views")


def _two_views(making: Making) -> None:
    array = _exporter(making, _spec.BASE)
    first, second = _abi.get_buffer(array, _abi.FULL_RO), _abi.get_buffer(array, _abi.FULL_RO)
    _abi.release_buffer(ct.byref(first))
    same = (
        second.buf
        and second.shape
        and tuple(second.shape[: second.ndim])
        == (_spec.BASE.shape if making.form != "plain" else tuple(second.shape[: second.ndim]))
    )
    _abi.release_buffer(ct.byref(second))
    expect(bool(same), "a second view that stays whole when the first is released", "another shape")


def _c_dense(spec: Spec) -> bool:
    return spec.layout in ("C", "offset")


_F_2D, _STRIDED, _REVERSED = (
    Spec((4, 6), "float32", "F"),
    Spec((4, 6), "int16", "strided"),
    Spec((4, 6), "int16", "reversed"),
)
_C_2D = Spec((4, 6), "float32")

# name, request, array: what must be refused
_REFUSED: tuple[tuple[str, int, Spec], ...] = (
    *(
        (f"{word}-of-{spec.layout}", flags, spec)
        for spec in (_F_2D, _STRIDED, _REVERSED)
        for word, flags in (("simple", _abi.SIMPLE), ("nd", _abi.ND), ("c-contiguous", _abi.C_CONTIGUOUS))
    ),
    ("f-contiguous-of-C", _abi.F_CONTIGUOUS, _C_2D),
    *(
        (f"{word}-of-{spec.layout}", flags, spec)
        for spec in (_STRIDED, _REVERSED)
        for word, flags in (("f-contiguous", _abi.F_CONTIGUOUS), ("any-contiguous", _abi.ANY_CONTIGUOUS))
    ),
    *(
        (f"writable-{word}-of-readonly", flags | _abi.WRITABLE, _spec.READONLY[0])
        for word, flags in (("simple", _abi.SIMPLE), ("strided", _abi.STRIDES), ("full", _abi.FULL_RO))
    ),
)

_GRANTED: tuple[tuple[str, int, Spec], ...] = (
    ("simple-of-C", _abi.SIMPLE, _C_2D),
    ("nd-of-C", _abi.ND, _C_2D),
    ("c-contiguous-of-C", _abi.C_CONTIGUOUS, _C_2D),
    ("any-contiguous-of-C", _abi.ANY_CONTIGUOUS, _C_2D),
    ("any-contiguous-of-F", _abi.ANY_CONTIGUOUS, _F_2D),
    ("f-contiguous-of-F", _abi.F_CONTIGUOUS, _F_2D),
    ("f-contiguous-of-1d", _abi.F_CONTIGUOUS, Spec((5,))),
    ("writable-of-C", _abi.WRITABLE, _C_2D),
    ("strides-of-strided", _abi.STRIDES, _STRIDED),
    ("strides-of-reversed", _abi.STRIDES, _REVERSED),
    ("simple-of-size-one-axes", _abi.SIMPLE, Spec((1, 4, 1))),
    ("simple-of-empty", _abi.SIMPLE, Spec((0, 3))),
)

_ASPECTS: tuple[tuple[str, Callable[[Spec, Making], None], Sequence[Spec], str, str], ...] = (
    ("values", _values, _NAMED, "buf, strides and itemsize lead to the elements", BUFFER),
    ("sizes", _sizes, _NAMED, "ndim, itemsize and len are those of the array", BUFFER),
    ("format", _format, _NAMED, "format is the struct-module type of one element, of itemsize bytes", STRUCT),
    (
        "null-fields",
        _null_fields,
        tuple(s for s in _NAMED if _c_dense(s)),
        "format, shape and strides are NULL unless asked for",
        BUFFER,
    ),
    (
        "all-fields",
        _all_fields,
        _NAMED,
        "a full request fills obj, shape and strides; for ndim 0 they are NULL",
        BUFFER,
    ),
    ("readonly", _readonly, (_spec.BASE, *_spec.READONLY), "readonly is what the array is", BUFFER),
)


def _all() -> Iterator[Check]:
    for name, look, specs, clause, source in _ASPECTS:
        for spec in specs:
            yield Check(f"buffer.{name}[{spec}]", "buffer", clause, source, partial(look, spec))
    for name, flags, spec in _REFUSED:
        clause = "a request that cannot be met raises BufferError and sets view->obj to NULL"
        yield Check(f"buffer.refuses-{name}", "buffer", clause, BUFFER, partial(_refused, flags, spec))
    for name, flags, spec in _GRANTED:
        clause = "a request that the memory meets is granted"
        yield Check(f"buffer.grants-{name}", "buffer", clause, BUFFER, partial(_granted, flags, spec))
    for name, run, clause in (
        ("outlives", _outlives, "a view keeps the memory until it is released"),
        ("release", _release, "releasing a view gives back its reference"),
        ("two-views", _two_views, "views are independent of each other"),
    ):
        yield Check(f"buffer.{name}", "buffer", clause, BUFFER, run, risky=name == "outlives")


CHECKS: tuple[Check, ...] = tuple(_all())
