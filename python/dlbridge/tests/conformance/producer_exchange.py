"""What DLPack 1.3 asks of the C exchange API that a type advertises."""

from __future__ import annotations

import ctypes as ct
import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi, _adversary, _spec
from dlbridge.tests.conformance._check import HEADER, SHOULD, Check, Failed, Skip, describe, expect, expect_equal
from dlbridge.tests.conformance._making import (
    Described,
    Making,
    describe_managed,
    describe_tensor,
    expect_independent,
    take_freed_memory,
)
from dlbridge.tests.conformance._spec import BASE, DTYPES, Spec
from dlbridge.tests.conformance.producer_dlpack_calls import leak

_ATTRIBUTE = "__dlpack_c_exchange_api__"
_VERSIONED = ct.POINTER(_abi.DLManagedTensorVersioned)

# PYFUNCTYPE: with the GIL, and a Python exception that the slot sets is raised here.
FROM_OBJECT = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.POINTER(ct.c_void_p))
TO_OBJECT = ct.PYFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(ct.c_void_p))
BORROW = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.POINTER(_abi.DLTensor))
WORK_STREAM = ct.PYFUNCTYPE(ct.c_int, ct.c_int32, ct.c_int32, ct.POINTER(ct.c_void_p))
SET_ERROR = ct.CFUNCTYPE(None, ct.c_void_p, ct.c_char_p, ct.c_char_p)
ALLOCATE = ct.PYFUNCTYPE(ct.c_int, ct.POINTER(_abi.DLTensor), ct.POINTER(ct.c_void_p), ct.c_void_p, SET_ERROR)


def _owned(address: int) -> Any:
    """The object behind a new reference at `address`, and that reference given up."""
    obj = ct.cast(address, ct.py_object).value
    ct.pythonapi.Py_DecRef(ct.py_object(obj))
    return obj


def table_of(array: Any) -> _abi.ExchangeTable:
    capsule = getattr(type(array), _ATTRIBUTE, None)
    if capsule is None:
        raise Skip(f"{type(array).__name__} has no {_ATTRIBUTE}")
    expect(_abi.is_capsule(capsule), "a PyCapsule on the type", type(capsule).__name__)
    expect_equal(_abi.capsule_name(capsule), _abi.EXCHANGE, "capsule name")
    pointer = ct.cast(_abi.capsule_pointer(capsule, _abi.EXCHANGE), ct.POINTER(_abi.ExchangeTable))
    return pointer.contents


def _table(making: Making, spec: Spec = BASE) -> tuple[Any, _abi.ExchangeTable]:
    array = making.array(spec)
    return array, table_of(array)


def _export(array: Any, table: _abi.ExchangeTable) -> Any:
    out = ct.c_void_p()
    status = FROM_OBJECT(table.from_object)(array, ct.byref(out))
    expect(status == 0 and bool(out.value), "0 and a managed tensor", f"{status} with no exception set")
    return ct.cast(out, _VERSIONED).contents


def _managed(making: Making, spec: Spec) -> tuple[Described, Any, Any]:
    array, table = _table(making, spec)
    try:
        managed = _export(array, table)
    except (BufferError, ValueError, RuntimeError, TypeError) as error:
        raise Skip(f"the export is refused: {describe(error)}") from None
    return describe_managed(managed, [array]), managed, array


def _same(described: Described, spec: Spec, making: Making) -> None:
    if making.form == "plain":
        return
    row = DTYPES[spec.dtype]
    expect_equal(described.shape, spec.shape, "shape")
    got = (described.code, described.bits, described.lanes)
    expect_equal(got, (row["code"], row["bits"], row["lanes"]), f"{spec.dtype} as (code, bits, lanes)")
    if making.knows_values:
        expect_equal(described.values(), spec.values, "the elements")


def _managed_form(spec: Spec, making: Making) -> None:
    described, managed, _array = _managed(making, spec)
    try:
        expect_equal(managed.version.major, 1, "major version")
        _same(described, spec, making)
    finally:
        _abi.call_deleter(managed)


def _borrowed_form(spec: Spec, making: Making) -> None:
    array, table = _table(making, spec)
    if not table.borrow:
        raise Skip("dltensor_from_py_object_no_sync is NULL, which is allowed")
    tensor = _abi.DLTensor()
    try:
        status = BORROW(table.borrow)(array, ct.byref(tensor))
    except (BufferError, ValueError, RuntimeError, TypeError) as error:
        raise Skip(f"the borrowed export is refused: {describe(error)}") from None
    expect_equal(status, 0, "status")
    _same(describe_tensor(tensor, [array]), spec, making)


def _strides(spec: Spec, making: Making) -> None:
    described, managed, _array = _managed(making, spec)
    _abi.call_deleter(managed)
    expect(described.strides is not None, "a strides array", "NULL")


def _readonly(making: Making) -> None:
    for spec in _spec.READONLY:
        described, managed, _array = _managed(making, spec)
        _abi.call_deleter(managed)
        expect(bool(described.readonly), "the READ_ONLY flag", f"flags {described.flags:#x}")


def _functions(making: Making) -> None:
    _, table = _table(making)
    missing = [name for name in ("allocate", "from_object", "to_object", "work_stream") if not getattr(table, name)]
    expect(not missing, "all functions but the borrowing one", f"NULL: {', '.join(missing)}")


def _version(making: Making) -> None:
    _, table = _table(making)
    expect_equal(table.version.major, 1, "major version")
    seen = set()
    older = table.prev_api
    while older and older not in seen:
        seen.add(older)
        older = ct.cast(older, ct.POINTER(_abi.ExchangeTable)).contents.prev_api
    expect(not older, "a chain of older tables that ends with NULL", "a circle")


def _exact_type(making: Making) -> None:
    """The attribute stands on the type, so that it may be cached for it."""
    array, _ = _table(making)
    expect(_ATTRIBUTE not in getattr(array, "__dict__", {}), "nothing on the instance", "an attribute of the instance")
    first, second = (_abi.capsule_pointer(getattr(type(array), _ATTRIBUTE), _abi.EXCHANGE) for _ in range(2))
    expect_equal(second, first, "the same table at every look:")


def _round_trip(making: Making) -> None:
    """to_object of a foreign tensor: an object of the type, which deletes the tensor once when it dies."""
    array, table = _table(making)
    for spec in (BASE, Spec((), "float64"), Spec((4, 6), "int16", "strided")):
        memory, offset, strides = _adversary.memory_of(spec)
        row = DTYPES[spec.dtype]
        elements = [s // row["itemsize"] for s in strides]
        dtype = (row["code"], row["bits"], row["lanes"])
        tensor = _adversary.Managed(memory, spec.shape, elements, dtype=dtype, byte_offset=offset, version=(1, 3))
        out = ct.c_void_p()
        status = TO_OBJECT(table.to_object)(ct.addressof(tensor.struct), ct.byref(out))
        expect(status == 0 and bool(out.value), "0 and an object", status)
        made = _owned(out.value or 0)
        expect(type(made) is type(array), f"a {type(array).__name__}", type(made).__name__)
        expect_equal(tuple(made.shape), spec.shape, "shape")
        expect_equal(tensor.deletions, 0, "deletions while the object lives")
        del made
        gc.collect()
        expect_equal(tensor.deletions, 1, "deletions when the object died")


def _own_round_trip(making: Making) -> None:
    array, table = _table(making)
    managed = _export(array, table)
    described = describe_managed(managed, [])
    out = ct.c_void_p()
    expect_equal(TO_OBJECT(table.to_object)(ct.addressof(managed), ct.byref(out)), 0, "status")
    made = _owned(out.value or 0)
    again = _export(made, table)
    pointer = describe_managed(again, []).pointer
    _abi.call_deleter(again)
    expect_equal(pointer, described.pointer, "the same memory at")


def _references(making: Making) -> None:
    array, table = _table(making)
    before = sys.getrefcount(array)
    for _ in range(20):
        _abi.call_deleter(_export(array, table))
    expect_equal(sys.getrefcount(array) - before, 0, "references to the array left behind by 20 exports")


def _leak(making: Making) -> None:
    array, table = _table(making)
    leak(lambda: _abi.call_deleter(_export(array, table)))


def _outlives(making: Making) -> None:
    array, table = _table(making, making.large())
    managed = _export(array, table)
    described = describe_managed(managed, [])
    before = described.values()
    del array
    noise = take_freed_memory(len(before) * 8)
    after = described.values()
    _abi.call_deleter(managed)
    expect(bool(noise) and after == before, "the same elements after the array is gone", "others")


def _independent(making: Making) -> None:
    exports = []

    def export(spec: Spec) -> Described:
        described, managed, _array = _managed(making, spec)
        exports.append(managed)
        return described

    first, second = making.two()
    try:
        expect_independent(export(first), lambda: export(second))
    finally:
        for managed in exports:
            _abi.call_deleter(managed)


def _work_stream(making: Making) -> None:
    _, table = _table(making)
    out = ct.c_void_p(1)
    expect_equal(WORK_STREAM(table.work_stream)(1, 0, ct.byref(out)), 0, "status for the CPU")


def _allocate(prototype: _abi.DLTensor, table: _abi.ExchangeTable) -> tuple[int, Any, list[tuple[bytes, bytes]]]:
    errors: list[tuple[bytes, bytes]] = []
    report = SET_ERROR(lambda _context, kind, message: errors.append((kind, message)))
    out = ct.c_void_p()
    status = ALLOCATE(table.allocate)(ct.byref(prototype), ct.byref(out), None, report)
    return status, out.value, errors


def _prototype(shape: tuple[int, ...], dtype: tuple[int, int, int]) -> tuple[_abi.DLTensor, Any]:
    extents = _adversary.c_int64s(shape)
    pointer = ct.cast(extents, ct.POINTER(ct.c_int64))
    return _abi.DLTensor(None, _abi.DLDevice(1, 0), len(shape), _abi.DLDataType(*dtype), pointer), extents


def _allocates(spec: Spec, making: Making) -> None:
    _, table = _table(making)
    if not table.allocate:
        raise Skip("managed_tensor_allocator is NULL, which another check reports")
    row = DTYPES[spec.dtype]
    prototype, _keep = _prototype(spec.shape, (row["code"], row["bits"], row["lanes"]))
    status, address, errors = _allocate(prototype, table)
    if status:
        expect(bool(errors), "SetError is called where the allocator fails", "no call")
        raise Skip(f"the allocator refuses: {errors[0]!r}")
    expect(not errors, "no SetError where the allocator succeeds", errors)
    managed = ct.cast(address, _VERSIONED).contents
    described = describe_managed(managed, [])
    _abi.call_deleter(managed)
    expect_equal(described.shape, spec.shape, "shape")
    expect_equal((described.code, described.bits), (row["code"], row["bits"]), "dtype")
    expect(not described.readonly, "writable memory", "READ_ONLY")


def _allocator_fails(making: Making) -> None:
    _, table = _table(making)
    if not table.allocate:
        raise Skip("managed_tensor_allocator is NULL, which another check reports")
    prototype, _keep = _prototype((2,), (200, 13, 1))
    try:
        status, _, errors = _allocate(prototype, table)
    except Exception as error:
        raise Failed("-1 and SetError, no Python exception", describe(error)) from None
    expect(status != 0, "-1 for a dtype that does not exist", status)
    expect_equal(len(errors), 1, "calls of SetError")


_Run = Callable[[Making], None]

# name, severity, risky, clause, how
_ROWS: tuple[tuple[str, str, bool, str, _Run], ...] = (
    ("functions", "must", False, "all functions but dltensor_from_py_object_no_sync are not NULL", _functions),
    ("version", "must", False, "the header has major version 1, its chain of older tables ends", _version),
    ("on-type", "must", False, "the capsule is an attribute of the type; the table lives for the process", _exact_type),
    ("readonly", "must", False, "the managed form carries READ_ONLY", _readonly),
    ("round-trip", "must", True, "to_object gives the type's object and takes the tensor over", _round_trip),
    ("own-round-trip", "must", True, "an object's own export comes back on the same memory", _own_round_trip),
    ("references", "must", True, "the deleter gives back the reference to the array", _references),
    ("leak", "must", True, "the deleter frees the managed tensor itself", _leak),
    ("outlives", "must", True, "the managed tensor keeps the memory until its deleter is called", _outlives),
    ("independent", "must", True, "an export of one array leaves those of others alone", _independent),
    ("work-stream", "must", False, "current_work_stream answers for the CPU", _work_stream),
    ("allocator-fails", "must", True, "a failing allocator returns -1 and calls SetError", _allocator_fails),
)


def _all() -> Iterator[Check]:
    for name, severity, risky, clause, run in _ROWS:
        yield Check(f"exchange.{name}", "dlpack_exchange", clause, HEADER, run, severity, risky)
    for spec in _spec.EXPRESSIBLE:
        of_spec: tuple[tuple[str, Callable[[Spec, Making], None], str, str], ...] = (
            ("managed", _managed_form, "must", "the managed form describes the array"),
            ("borrowed", _borrowed_form, "must", "the borrowed DLTensor describes the array"),
            ("strides", _strides, SHOULD, "strides are not NULL where ndim is not 0"),
        )
        for name, look, severity, clause in of_spec:
            id = f"exchange.{name}[{spec}]"
            yield Check(id, "dlpack_exchange", clause, HEADER, partial(look, spec), severity)
    for spec in (BASE, Spec((), "float64"), Spec((0, 3)), Spec((2, 3), "bool"), Spec((2,), "int8")):
        clause = "the allocator makes a tensor of the prototype's shape, dtype and device"
        id = f"exchange.allocates[{spec}]"
        yield Check(id, "dlpack_exchange", clause, HEADER, partial(_allocates, spec), "must", True)


CHECKS: tuple[Check, ...] = tuple(_all())
