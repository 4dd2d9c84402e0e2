"""Arrow's C structs by ctypes, and how a consumer moves and releases them.

Classes have the names of the specification without "Arrow": Schema is ArrowSchema.
"""

from __future__ import annotations

import ctypes as ct
import struct as packing
from typing import Any

from dlbridge.tests.conformance._abi import capsule_pointer, new_capsule

NULLABLE, DICTIONARY_ORDERED, MAP_KEYS_SORTED = 2, 1, 4  # flags of a schema
KNOWN_FLAGS = NULLABLE | DICTIONARY_ORDERED | MAP_KEYS_SORTED

RELEASE = ct.CFUNCTYPE(None, ct.c_void_p)  # releases the GIL, as a C++ consumer may


class Schema(ct.Structure):
    pass


class Array(ct.Structure):
    pass


class Stream(ct.Structure):
    pass


class DeviceStream(ct.Structure):
    pass


Schema._fields_ = [
    ("format", ct.c_char_p),
    ("name", ct.c_char_p),
    ("metadata", ct.c_void_p),
    ("flags", ct.c_int64),
    ("n_children", ct.c_int64),
    ("children", ct.POINTER(ct.POINTER(Schema))),
    ("dictionary", ct.POINTER(Schema)),
    ("release", RELEASE),
    ("private_data", ct.c_void_p),
]
Array._fields_ = [
    *((name, ct.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ct.POINTER(ct.c_void_p)),
    ("children", ct.POINTER(ct.POINTER(Array))),
    ("dictionary", ct.POINTER(Array)),
    ("release", RELEASE),
    ("private_data", ct.c_void_p),
]
GET_SCHEMA = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(Schema))
GET_NEXT = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(Array))
GET_ERROR = ct.CFUNCTYPE(ct.c_void_p, ct.c_void_p)
Stream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", GET_ERROR),
    ("release", RELEASE),
    ("private_data", ct.c_void_p),
]


class DeviceArray(ct.Structure):
    _fields_ = [
        ("array", Array),
        ("device_id", ct.c_int64),
        ("device_type", ct.c_int32),
        ("sync_event", ct.c_void_p),
        ("reserved", ct.c_int64 * 3),
    ]


GET_NEXT_PLACED = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(DeviceArray))
DeviceStream._fields_ = [
    ("device_type", ct.c_int32),
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT_PLACED),
    ("get_last_error", GET_ERROR),
    ("release", RELEASE),
    ("private_data", ct.c_void_p),
]

NAMES: dict[Any, bytes] = {
    Schema: b"arrow_schema",
    Array: b"arrow_array",
    Stream: b"arrow_array_stream",
    DeviceArray: b"arrow_device_array",
    DeviceStream: b"arrow_device_array_stream",
}


def capsule(value: Any, name: bytes | None = None) -> Any:
    """Of a struct that the caller keeps; it has no destructor."""
    return new_capsule(ct.addressof(value), name or NAMES[type(value)])


def struct_of(given: Any, kind: Any) -> Any:
    """The struct in a capsule; borrowed."""
    return kind.from_address(capsule_pointer(given, NAMES[kind]))


def base_of(value: Any) -> Any:
    """The struct that has the release callback."""
    return value.array if isinstance(value, DeviceArray) else value


def move(source: Any) -> Any:
    """Takes a struct over by a bitwise copy, which the caller has to release; the source is marked released."""
    taken = type(source)()
    ct.memmove(ct.byref(taken), ct.byref(source), ct.sizeof(source))
    base_of(source).release = RELEASE()
    return taken


def release(value: Any) -> None:
    """Calls the release callback unless the struct is released already."""
    base = base_of(value)
    if base.release:
        base.release(ct.addressof(base))


# --- metadata ---------------------------------------------------------------------------------------------------------


def pack_metadata(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """The block of key-value pairs that ArrowSchema.metadata points to."""
    block = packing.pack("=i", len(pairs))
    for text in (text for pair in pairs for text in pair):
        block += packing.pack("=i", len(text)) + text
    return block


def read_metadata(address: int) -> list[tuple[bytes, bytes]]:
    """The pairs; a ValueError for a count or a length that is none."""
    at = address

    def number(limit: int) -> int:
        nonlocal at
        (value,) = packing.unpack("=i", ct.string_at(at, 4))
        at += 4
        if not 0 <= value <= limit:
            raise ValueError(f"{value} at byte {at - 4 - address}, where a count or a length is")
        return int(value)

    def text() -> bytes:
        nonlocal at
        size = number(2**28)
        raw = ct.string_at(at, size)
        at += size
        return raw

    return [(text(), text()) for _ in range(number(2**20))]
