"""What a factory is asked to make, and the values that must be found in it."""

from __future__ import annotations

import ctypes as ct
import math
import struct
import sys
from dataclasses import dataclass
from typing import Any

from dlbridge import _core

Row = dict[str, Any]
DTYPES: dict[str, Row] = {row["name"]: dict(row) for row in _core.dtypes()}

# Not expressible in DLPack, all of them known to NumPy by these names.
FOREIGN_DTYPES = (">i4", ">f8", "O", "M8[s]", "U4", "S3", "i4,f8", "longdouble")

INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6  # DLDataTypeCode


@dataclass(frozen=True)
class Spec:
    """An array to be made: `values` in logical C order, stored as `layout` says.

    `layout`: "C"; "F" (the first axis is the fastest); "strided" (every second element of a longer last axis);
    "reversed" (negative stride on the last axis); "offset" (a view that starts inside a larger allocation);
    "broadcast" (stride 0 on the first axis); "packed" (strides that are not a multiple of the itemsize, such as a field
    of a packed structure); and of Arrow alone "nulls" (every third element is None) and "chunks" (in two parts).
    `dtype` is the usual name ("float32", "bfloat16"), or one of NumPy's in `FOREIGN_DTYPES`. A factory raises
    `Unsupported` for what it cannot make.
    """

    shape: tuple[int, ...] = (2, 3)
    dtype: str = "float32"
    layout: str = "C"
    readonly: bool = False
    device: str = "cpu"

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def values(self) -> list[Any]:
        """The elements in C order, exact in every dtype."""
        count = self.size
        rows = self.shape[0] if self.shape else 1
        period = count // rows if self.layout == "broadcast" and rows else count
        nulls = self.layout == "nulls"
        return [None if nulls and index % 3 == 2 else _value(self.dtype, index % period) for index in range(count)]

    def nested(self) -> Any:
        """`values` as nested lists of `shape`; a bare number where there are no dimensions."""
        return nest(self.values, self.shape)

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "0d"
        return "-".join([self.dtype, shape, self.layout] + ["readonly"] * self.readonly)


def _value(dtype: str, index: int) -> Any:
    code = DTYPES[dtype]["code"] if dtype in DTYPES else None
    if code == BOOL:
        return index % 3 != 1
    number = index % 8 + 1  # exact in eight bits of a float, too
    return complex(number, -number) if code == COMPLEX else float(number) if code in (FLOAT, BFLOAT) else number


def nest(values: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return values[0]
    step = math.prod(shape[1:])
    return [nest(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def flatten(nested: Any) -> list[Any]:
    if isinstance(nested, (list, tuple)):
        return [value for part in nested for value in flatten(part)]
    return [nested]


# --- reading and writing memory without any library -------------------------------------------------------------------

_FLOATS = {16: "e", 32: "f", 64: "d"}


def decode(raw: bytes, code: int, bits: int, *, swapped: bool = False) -> Any:
    """One element; its bytes where Python has no such type (float8 and the like)."""
    raw = raw[::-1] if swapped and code != COMPLEX else raw
    if code in (INT, UINT):
        return int.from_bytes(raw, sys.byteorder, signed=code == INT)
    if code == FLOAT and bits in _FLOATS:
        return struct.unpack("=" + _FLOATS[bits], raw)[0]
    if code == BFLOAT:
        return (
            struct.unpack("<f", b"\0\0" + raw)[0]
            if sys.byteorder == "little"
            else struct.unpack(">f", raw + b"\0\0")[0]
        )
    if code == COMPLEX and bits // 2 in _FLOATS:
        half = len(raw) // 2
        parts = (raw[:half], raw[half:])
        return complex(*(decode(part, FLOAT, bits // 2, swapped=swapped) for part in parts))
    if code == BOOL:
        return raw[0] != 0
    return raw


def encode(value: Any, dtype: str) -> bytes:
    """The inverse of `decode` for the dtypes that consumers are asked for."""
    row = DTYPES[dtype]
    code, bits = row["code"], row["bits"]
    if code in (INT, UINT, BOOL):
        return int(value).to_bytes(bits // 8, sys.byteorder, signed=code == INT)
    if code == BFLOAT:
        raw = struct.pack("=f", value)
        return raw[2:] if sys.byteorder == "little" else raw[:2]
    if code == COMPLEX:
        return struct.pack("=2" + _FLOATS[bits // 2], value.real, value.imag)
    return struct.pack("=" + _FLOATS[bits], value)


def strided_addresses(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The address of every element, in C order."""
    addresses = [pointer]
    for extent, stride in zip(shape, strides, strict=True):
        addresses = [address + i * stride for address in addresses for i in range(extent)]
    return addresses if 0 not in shape else []


def read_memory(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], code: int, bits: int, *, swapped: bool = False
) -> list[Any]:
    itemsize = (bits + 7) // 8
    return [
        decode(ct.string_at(address, itemsize), code, bits, swapped=swapped)
        for address in strided_addresses(pointer, shape, strides)
    ]


def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


# --- the arrays that every producer is asked for ----------------------------------------------------------------------

SHAPES = ((), (1,), (5,), (2, 3), (2, 3, 4), (1, 1, 1), (1, 4, 1), (2, 1, 3), (2,) * 6, (0,), (0, 3), (3, 0, 2))
NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16", "complex64", "complex128"),
)
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
LAYOUTS = ("F", "strided", "reversed", "offset", "broadcast")

BASE = Spec()
OTHER = Spec((2, 3), "int32")  # as large as BASE, with other bytes
OF_SHAPES = tuple(Spec(shape) for shape in SHAPES)
OF_DTYPES = tuple(Spec((2, 3), dtype) for dtype in NUMBERS if dtype != "float32")
OF_LAYOUTS = tuple(Spec((4, 6), dtype, layout) for layout in LAYOUTS for dtype in ("float32", "int16", "complex128"))
EXPRESSIBLE = OF_SHAPES + OF_DTYPES + OF_LAYOUTS
EMPTY = tuple(spec for spec in OF_SHAPES if spec.size == 0)
STRIDED = Spec((4, 6), "float32", "strided")
READONLY = (Spec(readonly=True), Spec((4, 6), "float32", "strided", readonly=True))

# What copies go wrong on: strides, and marks.
COPIED = (BASE, STRIDED, Spec((4, 6), "int16", "F"), Spec((4, 6), "int16", "reversed"), *READONLY)

# Arrow's arrays have one axis; more are lists of fixed size.
ARROW_DTYPES = tuple(dtype for dtype in NUMBERS if dtype != "bfloat16" and not dtype.startswith("complex"))
ARROW_LAYOUTS = ("nulls", "chunks")
ARROW_BASE = Spec((5,), "int32")
ARROW_TABLE = Spec((3, 2), "int32")  # the least that has children, where a library has such arrays
LARGE_COLUMN = Spec((350,), "float64")
ARROW = (
    *(Spec((5,), dtype) for dtype in ARROW_DTYPES),
    *(Spec(shape, "int32") for shape in ((0,), (1,), (3, 2), (0, 3), (3, 0), (2, 3, 4))),
    *(Spec((67,), dtype, layout) for layout in ("offset", *ARROW_LAYOUTS) for dtype in ("int32", "float64", "bool")),
)
