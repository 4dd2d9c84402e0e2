"""Python's own types, and memoryview as the consumer."""

from __future__ import annotations

import struct
from typing import Any

from dlbridge import _core
from dlbridge.tests.frameworks._base import FLAT, INTEGERS, ArrayType, Framework, Look


def _read(view: memoryview) -> Any:
    if not view.format.startswith("Z"):
        return view.tolist()
    count = 2 * view.nbytes // view.itemsize  # tolist() knows no complex format
    parts = struct.unpack(f"{count}{view.format[1]}", view.tobytes())
    return [complex(real, imaginary) for real, imaginary in zip(parts[::2], parts[1::2], strict=True)]


def _write(view: memoryview, value: Any) -> None:
    if view.format.startswith("Z"):  # no item assignment either
        struct.pack_into(f"2{view.format[1]}", view, 0, value.real, value.imag)
    else:
        view[(0,) * view.ndim] = value


_ADDRESS = "ctypes.addressof(ctypes.c_char.from_buffer(x))"
_SET_FIRST = "x.__setitem__(0, value)"
_CODES = dict(zip(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), "bhiqBHIQ", strict=True))
_ARRAY_CODES = {name: repr(code) for name, code in {**_CODES, "float32": "f", "float64": "d"}.items()}
_CTYPES = {name: name for name in sorted(INTEGERS)} | {"bool": "bool", "float32": "float", "float64": "double"}
_VIEWS = {**FLAT, "offset": "{x}[4:]"}
_BYTES = {"uint8": ""}
_BUFFER = ("buffer",)

_TYPES = (
    ArrayType(
        "bytes",
        "bytes({values})",
        _BYTES,
        # CPython: the characters follow the header, with one NUL behind them.
        Look("list(x)", "id(x) + bytes.__basicsize__ - 1"),
        FLAT,
        _BUFFER,
        flat=True,
        readonly=True,
    ),
    ArrayType(
        "bytearray", "bytearray({values})", _BYTES, Look("list(x)", _ADDRESS, _SET_FIRST), FLAT, _BUFFER, flat=True
    ),
    ArrayType(
        "memoryview",
        "memoryview(array.array({dtype}, {values}))",
        _ARRAY_CODES,
        Look(
            "x.tolist()",
            "x.obj.buffer_info()[0] + x.itemsize * (len(x.obj) - len(x) if x.strides[0] > 0 else len(x) - 1)",
            _SET_FIRST,
            "x.readonly",
        ),
        {**_VIEWS, "negative": "{x}[::-1]", "read-only": "{x}.toreadonly()"},
        _BUFFER,
        flat=True,
    ),
    ArrayType(
        "array.array",
        "array.array({dtype}, {values})",
        _ARRAY_CODES,
        Look("x.tolist()", "x.buffer_info()[0]", _SET_FIRST),
        FLAT,
        _BUFFER,
        flat=True,
    ),
    ArrayType(
        "mmap",
        "(lambda m: (m.__setitem__(slice(None), bytes({values})), m)[1])(mmap.mmap(-1, len({values})))",
        _BYTES,
        Look("list(x[:])", _ADDRESS, _SET_FIRST),
        {"contiguous": "{x}"},
        _BUFFER,
        flat=True,
    ),
    ArrayType(
        "ctypes",
        "(ctypes.c_{dtype} * len({values}))(*{values})",
        _CTYPES,
        Look("list(x)", "ctypes.addressof(x)", _SET_FIRST),
        FLAT,
        _BUFFER,
        flat=True,
    ),
)

FRAMEWORK = Framework(
    "stdlib",
    "",
    _TYPES,
    convert="buffer",
    takes={"buffer": "memoryview(source)"},
    look=Look(_read, lambda view: _core.asdlpack(view).data_ptr, _write, "x.readonly"),
    imports=("array", "ctypes", "mmap"),
    only_devices=("cpu",),
)
