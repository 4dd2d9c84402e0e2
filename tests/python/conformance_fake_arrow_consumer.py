"""An importer of Arrow columns in plain Python, in which faults can be planted: `take_<fault>` is `take` with it.

`take_sound` has none. The functions come from `__getattr__`, so that a child process can import them by name.
"""

from __future__ import annotations

import ctypes as ct
import functools

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._arrow_abi import (
    RELEASE,
    Array,
    DeviceArray,
    Schema,
    Stream,
    base_of,
    move,
    release,
    struct_of,
)
from dlbridge.tests.conformance._arrow_format import FORMAT_OF, layout_of
from dlbridge.tests.conformance._spec import decode

_FORMATS = set(FORMAT_OF.values())
_LIMIT = 2**40
_nothing = RELEASE(lambda address: None)


class Column:
    """What `take` returns: elements that are read at every look, over structs that die with it."""

    readonly = True

    def __init__(self, schema, arrays, fault):
        self.schema, self.arrays, self.fault = schema, arrays, fault
        if fault == "drops_readonly":
            self.readonly = False

    def tolist(self):
        return [value for array in self.arrays for value in _read(self.schema, array, self.fault)]

    def __del__(self):
        for struct in (self.schema, *self.arrays):
            _let_go(struct, self.fault)


def _let_go(struct, fault):
    if fault == "never_releases":
        return
    if fault == "releases_children":
        for i in range(struct.n_children):
            release(struct.children[i].contents)
    again = RELEASE(ct.cast(struct.release, ct.c_void_p).value or 0)
    release(struct)
    if fault == "releases_twice":
        again(ct.addressof(struct))


# --- what is read -----------------------------------------------------------------------------------------------------


def _list_size(schema, fault):
    digits = schema.format[3:]
    if digits.isdigit():
        return int(digits)
    if fault == "guesses_list_size":
        return 2
    raise ValueError("no list size")


def _format(schema, fault):
    format = (schema.format or b"").decode()
    if format in _FORMATS or format.startswith("+w:"):
        return format
    if fault == "guesses_format":
        return "i"
    raise ValueError(f"format {format!r}")


def _check(schema, array, fault):
    """Raises for what is malformed, level by level."""
    format, is_list = _format(schema, fault), (schema.format or b"").startswith(b"+w:")
    if schema.name is None and fault == "needs_name":
        raise ValueError("no name")
    if fault == "refuses_metadata" and schema.metadata:
        raise ValueError("metadata")
    counts = (array.length, array.offset)
    if (min(counts) < 0 and fault != "takes_negative") or (max(counts) > _LIMIT and fault != "caps_length"):
        raise ValueError(f"length and offset {counts}")
    if array.n_buffers != (1 if is_list else 2) and fault != "ignores_n_buffers":
        raise ValueError("buffers")
    too_many = array.null_count > max(array.length, 0) or (array.null_count > 0 and not array.buffers[0])
    if too_many and fault != "ignores_null_count":
        raise ValueError("nulls")
    if not is_list:
        if array.length > 0 and not array.buffers[1] and fault != "zeros_for_null":
            raise ValueError("no data")
        return format
    size = _list_size(schema, fault)
    if (schema.n_children, array.n_children) != (1, 1) and fault != "assumes_children":
        raise ValueError("children")
    child = array.children[0].contents
    if child.length < (array.length + array.offset) * size and fault != "reads_beyond":
        raise ValueError("short child")
    _check(schema.children[0].contents, child, fault)
    return format


def _is_null(array, at, fault):
    bitmap = array.buffers[0]
    if not bitmap or fault == "ignores_bitmap" or (fault == "trusts_null_count" and array.null_count <= 0):
        return False
    if fault == "takes_a_bitmap_for_nulls" and array.null_count == 0:
        return True
    return not ct.c_uint8.from_address(bitmap + at // 8).value >> at % 8 & 1


def _element(schema, array, index, fault):
    format = _format(schema, fault)
    offset = 0 if fault == "ignores_offset" else max(array.offset, 0)
    at = index + offset
    if _is_null(array, at, fault):
        return None
    if format.startswith("+w:"):
        size = _list_size(schema, fault)
        child, inner = array.children[0].contents, schema.children[0].contents
        start = (index if fault == "forgets_list_offset" else at) * size
        return [_element(inner, child, start + i, fault) for i in range(size)]
    data = array.buffers[1]
    if not data:
        return 0
    if format == "b":
        if fault == "bools_are_bytes":
            return bool(ct.c_uint8.from_address(data + at // 8).value)
        bit = ct.c_uint8.from_address(data + at // 8).value >> at % 8 & 1
        return bit if fault == "bools_are_numbers" else bool(bit)
    found = layout_of(format)
    value = decode(ct.string_at(data + at * found.width, found.width), found.code, 8 * found.width)
    return -value if fault == "minds_extensions" and schema.metadata else value


def _read(schema, array, fault):
    length = min(array.length, 5) if fault == "caps_length" else max(array.length, 0)
    if fault == "pads_empty" and not length:
        return [0]
    return [_element(schema, array, i, fault) for i in range(length)]


# --- how it is taken --------------------------------------------------------------------------------------------------


def _open(given, kind, fault):
    if not _abi.is_capsule(given):
        raise TypeError("no capsule")
    if fault == "takes_any_name":
        struct = kind.from_address(_abi.capsule_pointer(given, _abi.capsule_name(given)))
    else:
        struct = struct_of(given, kind)
    if not base_of(struct).release and fault != "takes_released":
        raise ValueError("released")
    return struct


def _move(struct, fault):
    if fault != "never_moves":
        return move(struct)
    copy = type(struct)()
    ct.memmove(ct.byref(copy), ct.byref(struct), ct.sizeof(struct))
    return copy


def _request(obj, method, fault):
    arguments = (1,) if fault == "requests_a_number" else ()
    options = {"copy": True} if fault == "passes_keywords" else {}
    try:
        return getattr(obj, method)(*arguments, **options)
    except Exception:
        if fault != "swallows_errors":
            raise
        raise ValueError("import failed") from None


def _take_pair(obj, method, kind, fault):
    given = _request(obj, method, fault)
    if fault == "sorts_by_name" and isinstance(given, tuple):
        given = tuple(sorted(given, key=_abi.capsule_name, reverse=True))
    if not (isinstance(given, tuple) and len(given) == 2):
        if fault == "takes_anything":
            return Column(Schema(), [], fault)
        raise TypeError("no pair of capsules")
    schema, array = (_open(one, k, fault) for one, k in zip(given, (Schema, kind), strict=True))
    if kind is DeviceArray and array.device_type != 1 and fault != "takes_any_device":
        raise BufferError("no such device")
    return _column(_move(schema, fault), [base_of(_move(array, fault))], fault)


def _column(schema, arrays, fault):
    """Owns the structs from here on."""
    try:
        for array in arrays:
            _check(schema, array, fault)
        if not arrays:
            _format(schema, fault)
    except Exception:
        if fault != "leaks_on_error":
            for struct in (schema, *arrays):
                release(struct)
        raise
    taken = Column(schema, arrays, fault)
    if fault == "releases_at_once":
        for array in arrays:
            release(array)
    return taken


def _take_stream(obj, fault):
    given = _request(obj, "__arrow_c_stream__", fault)
    if fault == "takes_anything" and not _abi.is_capsule(given):
        return Column(Schema(), [], fault)
    stream = _move(_open(given, Stream, fault), fault)
    schema, arrays = Schema(), []

    def call(name, out):
        code = getattr(stream, name)(ct.addressof(stream), ct.byref(out))
        if fault == "asks_for_errors":
            stream.get_last_error(ct.addressof(stream))
        if code and fault == "takes_schema_errors":
            out.format, out.release = b"i", _nothing
        elif code and fault != "ignores_stream_errors":
            address = stream.get_last_error(ct.addressof(stream))
            words = ct.string_at(address) if address and fault != "silent_errors" else b"no reason"
            raise OSError(f"{name}: {words.decode()}")

    try:
        call("get_schema", schema)
        while True:
            array = Array()
            call("get_next", array)
            if not array.release or (fault == "stops_at_empty" and not array.length):
                release(array)
                break
            arrays.append(array)
    except Exception:
        if fault != "leaks_on_error":
            for struct in (schema, *arrays):
                release(struct)
        raise
    finally:
        if fault != "never_releases":
            release(stream)
    if fault == "calls_released_streams":
        stream.get_next(ct.addressof(stream), ct.byref(Array()))
    if fault == "needs_chunks" and not arrays:
        release(schema)
        raise ValueError("no chunks")
    return _column(schema, arrays, fault)


def take(fault, obj):
    if fault == "takes_nothing":
        raise TypeError("not today")
    if hasattr(obj, "__arrow_c_device_array__"):
        return _take_pair(obj, "__arrow_c_device_array__", DeviceArray, fault)
    if hasattr(obj, "__arrow_c_array__"):
        return _take_pair(obj, "__arrow_c_array__", Array, fault)
    return _take_stream(obj, fault)


def __getattr__(name):
    if name.startswith("take_"):
        return functools.partial(take, name.removeprefix("take_"))
    raise AttributeError(name)
