"""What NumPy's array interface asks of ``__array_interface__`` and ``__array_struct__``."""

from __future__ import annotations

import ctypes as ct
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi, _spec
from dlbridge.tests.conformance._check import INTERFACE, SHOULD, Check, Skip, expect, expect_equal
from dlbridge.tests.conformance._making import Described, Making, expect_independent, take_freed_memory
from dlbridge.tests.conformance._spec import BOOL, COMPLEX, DTYPES, FLOAT, INT, UINT, Spec

TYPESTR = re.compile(r"^([<>|])([tbiufcmMOSUV])(\d+)(\[.+\])?$")
KINDS = {"b": BOOL, "i": INT, "u": UINT, "f": FLOAT, "c": COMPLEX}
NATIVE = "<" if sys.byteorder == "little" else ">"

# The dtypes that a typestr can name.
_NAMED = tuple(s for s in _spec.EXPRESSIBLE if DTYPES[s.dtype]["typestr"])


def interface(making: Making, spec: Spec, attribute: str = "__array_interface__") -> tuple[Any, dict[str, Any]]:
    array = making.offering(attribute, spec)
    value = getattr(array, attribute)
    expect(isinstance(value, dict), "a dict", type(value).__name__)
    return array, value


def pointer_of(array: Any, value: dict[str, Any], keep: list[Any]) -> tuple[int, bool]:
    """(address, read-only) of the `data` of an interface, whichever of its three forms it has."""
    data = value.get("data")
    if isinstance(data, tuple):
        return int(data[0] or 0), bool(data[1])
    view = _abi.get_buffer(array if data is None else data, _abi.SIMPLE)
    keep.append(view)
    return int(view.buf or 0) + int(value.get("offset", 0)), bool(view.readonly)


def describe_interface(array: Any, value: dict[str, Any]) -> Described:
    match = TYPESTR.match(value["typestr"])
    if match is None or match[2] not in KINDS:
        raise Skip(f"typestr {value['typestr']!r} is checked elsewhere")
    keep: list[Any] = [value, array]
    pointer, readonly = pointer_of(array, value, keep)
    strides = value.get("strides")
    return Described(
        pointer,
        tuple(value["shape"]),
        None if strides is None else tuple(strides),
        KINDS[match[2]],
        8 * int(match[3]),
        readonly=readonly,
        swapped=match[1] not in ("|", NATIVE),
        keep=keep,
    )


def shape(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("shape")
    expect(isinstance(got, tuple) and all(type(n) is int for n in got), "a tuple of int", repr(got))
    if making.form != "plain":
        expect_equal(got, spec.shape, "shape")


def typestr(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("typestr")
    expect(isinstance(got, str), "a str", repr(got))
    expect(TYPESTR.match(str(got)) is not None, "byte order, kind and bytes, such as <f4", repr(got))
    if making.form != "plain":
        wanted = DTYPES[spec.dtype]["typestr"]
        same = str(got)[1:] == wanted[1:] and (str(got)[0] == wanted[0] or wanted[0] == "|")
        expect(same, f"{wanted} for {spec.dtype}", repr(got))


def version(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    expect_equal(value.get("version"), 3, "version")


def strides(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("strides")
    if got is None:
        return
    expect(isinstance(got, tuple) and all(type(n) is int for n in got), "None or a tuple of int", repr(got))
    expect_equal(len(got), len(value["shape"]), "as many strides as dimensions:")


def data(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("data")
    if isinstance(got, tuple):
        good = len(got) == 2 and type(got[0]) is int and isinstance(got[1], bool)
        expect(good, "(int, bool)", repr(got))
        return
    if got is not None:
        memoryview(got).release()


def values(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    if not making.knows_values:
        raise Skip("the factory chooses the values")
    expect_equal(describe_interface(array, value).values(), spec.values, "the elements")


def descr(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("descr")
    if got is None:
        raise Skip("no descr, which is optional")
    expect(
        isinstance(got, list) and all(isinstance(f, tuple) and len(f) in (2, 3) for f in got), "a list of tuples", got
    )
    if len(got) == 1 and got[0][0] == "":
        expect_equal(got[0][1], value["typestr"], "the type of the one unnamed field")


def mask(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("mask")
    expect(got is None or hasattr(got, "__array_interface__"), "None or an object with the interface", repr(got))


def writable(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    expect_equal(pointer_of(array, value, [])[1], making.is_readonly(spec), "read-only as the array is:")


def readonly(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    expect(pointer_of(array, value, [])[1], "read-only true for a read-only array", "false")


_Look = Callable[[dict[str, Any], Any, Spec, Making], None]

_ASPECTS: tuple[tuple[str, _Look, Sequence[Spec], str, str], ...] = (
    ("shape", shape, _NAMED, "must", "shape is a tuple of integers"),
    ("typestr", typestr, _NAMED, "must", "typestr is byte order, kind and bytes of the element"),
    ("version", version, (_spec.BASE,), "must", "version is 3"),
    ("strides", strides, _NAMED, "must", "strides is None for C order, or a tuple of byte strides"),
    ("data", data, _NAMED, "must", "data is (address, read-only), a buffer, or None"),
    ("values", values, _NAMED, "must", "data, strides and typestr lead to the elements"),
    ("descr", descr, _NAMED, "must", "descr is a list of field tuples that agrees with typestr"),
    ("mask", mask, (_spec.BASE,), "must", "mask is None or an array-interface object"),
    ("writable", writable, (_spec.BASE,), "must", "the read-only flag is false for a writable array"),
    ("readonly", readonly, _spec.READONLY, "must", "the read-only flag is true for a read-only array"),
)


def _look(look: _Look, spec: Spec, making: Making) -> None:
    array, value = interface(making, spec)
    look(value, array, spec, making)


def _lifetime(making: Making) -> None:
    """Who uses the memory holds the object, and no more: the dictionary may be gone."""
    array, value = interface(making, making.large())
    described = describe_interface(array, value)
    described.keep.remove(value)  # what is left: the array, and a view where `data` is a buffer
    before = described.values()
    del value
    noise = take_freed_memory(len(before) * described.itemsize)
    after = described.values()
    expect(bool(noise) and after == before, "the same elements as long as the array lives", "others: they were freed")
    if making.knows_values:
        expect_equal(before, making.large().values, "the elements")


def _independent(making: Making) -> None:
    first, second = making.two()
    expect_independent(
        describe_interface(*interface(making, first)), lambda: describe_interface(*interface(making, second))
    )


# --- __array_struct__ -------------------------------------------------------------------------------------------------

_C, _F, _ALIGNED, _NOTSWAPPED, _WRITEABLE, _HAS_DESCR = 0x1, 0x2, 0x100, 0x200, 0x400, 0x800


def _struct(making: Making, spec: Spec) -> tuple[_abi.ArrayStruct, list[Any]]:
    array = making.offering("__array_struct__", spec)
    capsule = array.__array_struct__
    expect(_abi.is_capsule(capsule), "a PyCapsule", type(capsule).__name__)
    expect_equal(_abi.capsule_name(capsule), None, "the capsule's name")
    pointer = ct.cast(_abi.capsule_pointer(capsule, None), ct.POINTER(_abi.ArrayStruct))
    return pointer.contents, [capsule, array]


def _struct_fields(spec: Spec, making: Making) -> None:
    struct, _keep = _struct(making, spec)
    expect_equal(struct.two, 2, "two")
    if making.form == "plain":
        return
    expect_equal(struct.nd, len(spec.shape), "nd")
    expect_equal(tuple(struct.shape[: struct.nd]), spec.shape, "shape")
    row = DTYPES[spec.dtype]
    expect_equal(struct.typekind.decode(), row["typestr"][1], "typekind")
    expect_equal(struct.itemsize, row["itemsize"], "itemsize")


def _struct_values(spec: Spec, making: Making) -> None:
    if not making.knows_values:
        raise Skip("the factory chooses the values")
    struct, keep = _struct(making, spec)
    nd = struct.nd
    described = Described(
        struct.data or 0,
        tuple(struct.shape[:nd]),
        tuple(struct.strides[:nd]),
        KINDS[struct.typekind.decode()],
        8 * struct.itemsize,
        swapped=not struct.flags & _NOTSWAPPED,
        keep=keep,
    )
    expect_equal(described.values(), spec.values, "the elements")


def _struct_lifetime(making: Making) -> None:
    spec = making.large()
    struct, keep = _struct(making, spec)
    nd, size = struct.nd, struct.itemsize
    shape, strides = tuple(struct.shape[:nd]), tuple(struct.strides[:nd])
    code = KINDS.get(struct.typekind.decode())
    if code is None:
        raise Skip(f"typekind {struct.typekind!r} is checked elsewhere")
    described = Described(struct.data or 0, shape, strides, code, 8 * size, keep=keep[1:])
    before = described.values()
    del struct, keep  # the capsule with them: the array keeps the memory
    noise = take_freed_memory(len(before) * size)
    after = described.values()
    expect(bool(noise) and after == before, "the same elements as long as the array lives", "others: they were freed")


def _dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    step = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def _struct_flags(spec: Spec, making: Making) -> None:
    struct, _keep = _struct(making, spec)
    nd, flags = struct.nd, struct.flags
    extents, strides = tuple(struct.shape[:nd]), tuple(struct.strides[:nd])
    if 0 not in extents:
        c_order = _dense(extents, strides, struct.itemsize)
        f_order = _dense(extents[::-1], strides[::-1], struct.itemsize)
        expect_equal(bool(flags & _C), c_order, "the C-contiguous flag (0x1) as the strides say,")
        expect_equal(bool(flags & _F), f_order, "the Fortran flag (0x2) as the strides say,")
    expect_equal(bool(flags & _WRITEABLE), not making.is_readonly(spec), "the writeable flag (0x400)")
    expect(bool(flags & _NOTSWAPPED), "the not-swapped flag (0x200) for native data", hex(flags))
    expect(not flags & _HAS_DESCR or bool(struct.descr), "a descr where flag 0x800 is set", "NULL")


def _agree(spec: Spec, making: Making) -> None:
    """The dict and DLPack describe one array."""
    array, value = interface(making, spec)
    described = describe_interface(array, value)
    other = making.managed("versioned" if _versioned(making) else "legacy", spec)
    if spec.size == 0:
        return
    if making.form == "spec" and array is not other.keep[-1]:
        expect_equal(described.shape, other.shape, "the shape of __dlpack__")
        expect_equal(described.values(), other.values(), "the elements of __dlpack__")
    else:
        expect_equal(described.pointer, other.pointer, "the pointer of __dlpack__")


def _versioned(making: Making) -> bool:
    try:
        making.capsule("versioned")
    except Skip:
        return False
    return True


_STRUCT_ASPECTS: tuple[tuple[str, Callable[[Spec, Making], None], Sequence[Spec], str, str], ...] = (
    (
        "struct-fields",
        _struct_fields,
        _NAMED,
        "must",
        "the capsule is unnamed, two is 2, nd, shape, typekind, itemsize",
    ),
    ("struct-values", _struct_values, _NAMED, "must", "data, strides and itemsize lead to the elements"),
    ("struct-flags", _struct_flags, _NAMED + _spec.READONLY, "must", "flags say order, byte order and writability"),
    ("agrees-with-dlpack", _agree, _NAMED, SHOULD, "all protocols of an array describe the same elements"),
)


def _all() -> Iterator[Check]:
    for name, look, specs, severity, clause in _ASPECTS:
        for spec in specs:
            run: Any = partial(_look, look, spec)
            yield Check(f"array_interface.{name}[{spec}]", "array_interface", clause, INTERFACE, run, severity)
    for name, struct_look, specs, severity, clause in _STRUCT_ASPECTS:
        for spec in specs:
            run = partial(struct_look, spec)
            yield Check(f"array_interface.{name}[{spec}]", "array_interface", clause, INTERFACE, run, severity)
    for name, whole, clause in (
        ("lifetime", _lifetime, "data is memory of the array, which lives as long as the array"),
        ("struct-lifetime", _struct_lifetime, "data is memory of the array, which lives as long as the array"),
        ("independent", _independent, "what one array says leaves what others said alone"),
    ):
        yield Check(f"array_interface.{name}", "array_interface", clause, INTERFACE, whole, risky=name != "independent")


CHECKS: tuple[Check, ...] = tuple(_all())
