"""What the buffer protocol asks of an exporter: which fields are filled for which request, and what is refused."""

from __future__ import annotations

import ctypes as ct
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi, _spec
from dlbridge.tests.conformance._check import (
    BUFFER,
    SHOULD,
    STRUCT,
    Check,
    Failed,
    Skip,
    describe,
    expect,
    expect_equal,
)
from dlbridge.tests.conformance._making import Described, Making, expect_independent, take_freed_memory
from dlbridge.tests.conformance._spec import DTYPES, Spec, decode
from dlbridge.tests.conformance.producer_dlpack_calls import leak

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


def _described(array: Any, view: _abi.PyBuffer, spec: Spec) -> Described:
    row = DTYPES[spec.dtype]
    shape = tuple(view.shape[: view.ndim]) if view.ndim else ()
    strides = tuple(view.strides[: view.ndim]) if view.ndim else ()
    return Described(view.buf or 0, shape, strides, row["code"], row["bits"], keep=[array])


def _suboffsets(view: _abi.PyBuffer) -> tuple[int, ...]:
    return tuple(view.suboffsets[: view.ndim]) if view.suboffsets and view.ndim else ()


def _values(spec: Spec, making: Making) -> None:
    if not making.knows_values:
        raise Skip("the factory chooses the values")
    array = _exporter(making, spec)
    with View(array, _abi.FULL_RO) as view:
        if any(n >= 0 for n in _suboffsets(view)):
            raise Skip("the view has suboffsets, which another check follows")
        expect_equal(_described(array, view, spec).values(), spec.values, "the elements")


def _direct(spec: Spec, making: Making) -> None:
    """Suboffsets come only where PyBUF_INDIRECT asks for them, and only where there is a pointer to follow."""
    array = _exporter(making, spec)
    try:
        with View(array, _abi.RECORDS_RO) as view:
            expect(not view.suboffsets, "suboffsets NULL without PyBUF_INDIRECT", _suboffsets(view))
    except BufferError:  # memory that needs them is refused
        pass
    with View(array, _abi.FULL_RO) as view:
        offsets = _suboffsets(view)
        expect(not offsets or max(offsets) >= 0, "suboffsets NULL where none is followed", offsets)


def _indirect(spec: Spec, making: Making) -> None:
    """Where suboffsets are not negative, a pointer is read and followed at that axis."""
    if not making.knows_values:
        raise Skip("the factory chooses the values")
    array = _exporter(making, spec)
    with View(array, _abi.FULL_RO) as view:
        offsets = _suboffsets(view)
        if not any(n >= 0 for n in offsets):
            raise Skip("the view has no suboffsets")
        row, addresses = DTYPES[spec.dtype], [int(view.buf or 0)]
        for extent, stride, offset in zip(view.shape[: view.ndim], view.strides[: view.ndim], offsets, strict=True):
            addresses = [address + i * stride for address in addresses for i in range(extent)]
            if offset >= 0:
                addresses = [ct.c_size_t.from_address(address).value + offset for address in addresses]
        got = [decode(ct.string_at(address, view.itemsize), row["code"], row["bits"]) for address in addresses]
        expect_equal(got, spec.values, "the elements")


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
    except BufferError:
        return
    except Exception as error:
        raise Failed("BufferError", describe(error)) from None
    _abi.release_buffer(ct.byref(view))
    raise Failed("BufferError", "a view")


def _refused_view(making: Making) -> None:
    """Whoever releases the view on its error path would drop a reference that is none."""
    refused = []
    for name, flags, spec in _REFUSED:
        try:
            array = _exporter(making, spec)
        except Skip:
            continue
        try:
            view = _abi.get_buffer(array, flags)
        except Exception as error:
            refused.append(name)
            left = error.view  # type: ignore[attr-defined]
            expect(not left.obj, "view->obj set to NULL on failure", f"what was there before ({name})")
        else:
            _abi.release_buffer(ct.byref(view))
    if not refused:
        raise Skip("no request was refused")


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
    array = _exporter(making, making.large())
    view = _abi.get_buffer(array, _abi.SIMPLE)
    before = ct.string_at(view.buf, view.len)
    del array
    noise = take_freed_memory(len(before))
    after = ct.string_at(view.buf, view.len)
    _abi.release_buffer(ct.byref(view))
    expect(bool(noise) and after == before, "the same bytes after the array is gone", "others: the memory was freed")


def _independent(making: Making) -> None:
    specs = making.two()
    arrays = [_exporter(making, spec) for spec in specs]
    with View(arrays[0], _abi.FULL_RO) as view:
        first = _described(arrays[0], view, specs[0])

        def second() -> Described:
            with View(arrays[1], _abi.FULL_RO) as other:
                return _described(arrays[1], other, specs[1])

        expect_independent(first, second)


def _leak(making: Making) -> None:
    array = _exporter(making, _spec.BASE)

    def step() -> None:
        with View(array, _abi.FULL_RO):
            pass

    leak(step)


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
        clause = "a request that cannot be met raises BufferError"
        yield Check(f"buffer.refuses-{name}", "buffer", clause, BUFFER, partial(_refused, flags, spec))
    clause = "a request that fails sets view->obj to NULL (CPython's own bytes do not)"
    yield Check("buffer.refused-view", "buffer", clause, BUFFER, _refused_view, SHOULD)
    for name, flags, spec in _GRANTED:
        clause = "a request that the memory meets is granted"
        yield Check(f"buffer.grants-{name}", "buffer", clause, BUFFER, partial(_granted, flags, spec))
    for name, whole, clause in (
        ("outlives", _outlives, "a view keeps the memory until it is released"),
        ("release", _release, "releasing a view gives back its reference"),
        ("leak", _leak, "releasing a view frees what it took"),
        ("two-views", _two_views, "views are independent of each other"),
        ("independent", _independent, "a view of one array leaves those of others alone"),
    ):
        yield Check(f"buffer.{name}", "buffer", clause, BUFFER, whole, risky=name == "outlives")
    for spec in (_spec.BASE, _C_2D, _STRIDED):
        clause = "suboffsets are given where they are asked for and needed, and NULL otherwise"
        yield Check(f"buffer.suboffsets[{spec}]", "buffer", clause, BUFFER, partial(_direct, spec))
        clause = "suboffsets lead to the elements"
        yield Check(f"buffer.indirect[{spec}]", "buffer", clause, BUFFER, partial(_indirect, spec), risky=True)


CHECKS: tuple[Check, ...] = tuple(_all())
