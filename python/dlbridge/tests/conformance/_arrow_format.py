"""Arrow's types: which format strings there are, what buffers and children each has, and how elements are read."""

from __future__ import annotations

import ctypes as ct
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlbridge.tests.conformance._arrow_abi import Array, Schema
from dlbridge.tests.conformance._check import Failed, Skip, expect
from dlbridge.tests.conformance._spec import FLOAT, INT, UINT, decode

VALIDITY, BITS, DATA, BYTES, TYPES, VIEWS = "validity bitmap", "bits", "data", "bytes", "type ids", "views"
OFFSETS, SIZES = "offsets", "sizes"
MAX_DEPTH = 64


@dataclass(frozen=True)
class Layout:
    """What the columnar format has for a type. `children` None: any number. `width`: bytes of an element of `data`,
    or of an offset. `code`: how an element is read, a DLDataTypeCode; None for its bytes."""

    buffers: tuple[str, ...]
    children: int | None = 0
    width: int = 0
    code: int | None = None
    size: int = 0  # elements of a fixed-size list
    variadic: bool = False


def _data(width: int, code: int | None = None) -> Layout:
    return Layout((VALIDITY, DATA), width=width, code=code)


NUMBERS = {
    **{letter: _data(1 << i, INT) for i, letter in enumerate("csil")},
    **{letter: _data(1 << i, UINT) for i, letter in enumerate("CSIL")},
    **{letter: _data(2 << i, FLOAT) for i, letter in enumerate("efg")},
}
FORMAT_OF = {  # by the name of a dtype
    "bool": "b",
    **{f"int{8 << i}": letter for i, letter in enumerate("csil")},
    **{f"uint{8 << i}": letter for i, letter in enumerate("CSIL")},
    **{f"float{16 << i}": letter for i, letter in enumerate("efg")},
}
_PLAIN = {
    **NUMBERS,
    "n": Layout(()),
    "b": Layout((VALIDITY, BITS)),
    **{letter: Layout((VALIDITY, OFFSETS, BYTES), width=4) for letter in "zu"},
    **{letter: Layout((VALIDITY, OFFSETS, BYTES), width=8) for letter in "ZU"},
    **{name: Layout((VALIDITY, VIEWS, SIZES), width=16, variadic=True) for name in ("vz", "vu")},
    **{name: _data(4, INT) for name in ("tdD", "tts", "ttm", "tiM")},
    **{name: _data(8, INT) for name in ("tdm", "ttu", "ttn", "tDs", "tDm", "tDu", "tDn")},
    "tiD": _data(8),
    "tin": _data(16),
    "+l": Layout((VALIDITY, OFFSETS), 1, 4),
    "+L": Layout((VALIDITY, OFFSETS), 1, 8),
    "+vl": Layout((VALIDITY, OFFSETS, SIZES), 1, 4),
    "+vL": Layout((VALIDITY, OFFSETS, SIZES), 1, 8),
    "+s": Layout((VALIDITY,), None),
    "+m": Layout((VALIDITY, OFFSETS), 1, 4),
    "+r": Layout((), 2),
}


def _union(match: re.Match[str]) -> Layout:
    count = len(match[2].split(",")) if match[2] else 0
    return Layout((TYPES, OFFSETS) if match[1] == "d" else (TYPES,), count, 4)


_PATTERNS: tuple[tuple[str, Callable[[re.Match[str]], Layout]], ...] = (
    (r"ts[smun]:.*", lambda m: _data(8, INT)),
    (r"d:\d+,-?\d+(?:,(32|64|128|256))?", lambda m: _data(int(m[1] or 128) // 8, INT)),
    (r"w:(\d+)", lambda m: _data(int(m[1]))),
    (r"\+w:(\d+)", lambda m: Layout((VALIDITY,), 1, size=int(m[1]))),
    (r"\+u([ds]):((?:\d+(?:,\d+)*)?)", _union),
)


def layout_of(format: str) -> Layout | None:
    """None where no format string is like that."""
    if format in _PLAIN:
        return _PLAIN[format]
    for pattern, make in _PATTERNS:
        match = re.fullmatch(pattern, format)
        if match is not None:
            return make(match)
    return None


def format_of(schema: Schema) -> str:
    expect(bool(schema.format), "a format string", repr(schema.format))
    try:
        return str(schema.format.decode())
    except UnicodeDecodeError:
        raise Failed("a format string in UTF-8", repr(schema.format)) from None


def layout(schema: Schema) -> Layout:
    format = format_of(schema)
    found = layout_of(format)
    if found is None:
        raise Failed("a format string of the specification", repr(format))
    return found


def _inner(struct: Any, path: str) -> Iterator[tuple[Any, str]]:
    """The children and the dictionary; `n_children` is only as good as the producer, and so are the pointers."""
    expect(0 <= struct.n_children < 2**20, f"n_children at {path}", struct.n_children)
    expect(not struct.n_children or bool(struct.children), f"the children of {path}", "a NULL pointer")
    for i in range(struct.n_children):
        expect(bool(struct.children[i]), f"child {i} of {path}", "a NULL pointer")
        yield struct.children[i].contents, f"{path}.{i}"
    if struct.dictionary:
        yield struct.dictionary.contents, f"{path}.dictionary"


def nodes(struct: Any, path: str = "the base", depth: int = 0) -> Iterator[tuple[Any, str]]:
    """The struct and all below it, with words for where each is."""
    expect(depth < MAX_DEPTH, f"less than {MAX_DEPTH} levels", "more")
    expect(bool(struct.release), f"a release callback at {path}", "NULL: it is released")
    yield struct, path
    for inner, place in _inner(struct, path):
        yield from nodes(inner, place, depth + 1)


def pairs(
    schema: Schema, array: Array, path: str = "the base", depth: int = 0
) -> Iterator[tuple[Schema, Array, Layout, str]]:
    """Schema and array of each level together; a Failed where they do not fit."""
    expect(depth < MAX_DEPTH, f"less than {MAX_DEPTH} levels", "more")
    expect(bool(array.release), f"a release callback at {path}", "NULL: it is released")
    yield schema, array, layout(schema), path
    same = array.n_children == schema.n_children and bool(array.dictionary) == bool(schema.dictionary)
    if not same:
        return  # a check of its own
    for (of_schema, place), (of_array, _) in zip(_inner(schema, path), _inner(array, path), strict=True):
        yield from pairs(of_schema, of_array, place, depth + 1)


# --- elements ---------------------------------------------------------------------------------------------------------


def is_valid(array: Array, index: int) -> bool:
    """By the bitmap; `index` counts from the start of the buffers."""
    bitmap = array.buffers[0]
    return not bitmap or bool(ct.c_uint8.from_address(bitmap + index // 8).value >> index % 8 & 1)


def integer(address: int, width: int) -> int:
    return int(decode(ct.string_at(address, width), INT, 8 * width))


def span(array: Array, index: int, found: Layout) -> tuple[int, int]:
    """Where a variable-size element begins and ends in the last buffer or the child."""
    width, offsets = found.width, array.buffers[1]
    begin = integer(offsets + index * width, width)
    if found.buffers[-1] == SIZES:
        return begin, begin + integer(array.buffers[2] + index * width, width)
    return begin, integer(offsets + (index + 1) * width, width)


def _view(array: Array, at: int) -> bytes:
    address = array.buffers[1] + 16 * at
    size = integer(address, 4)
    if size <= 12:
        return ct.string_at(address + 4, size)
    block, start = integer(address + 8, 4), integer(address + 12, 4)
    expect(0 <= block < array.n_buffers - 3, f"a view of one of {array.n_buffers - 3} buffers", block)
    return ct.string_at(array.buffers[2 + block] + start, size)


def _text(format: str, raw: bytes) -> Any:
    return raw.decode() if format[-1] in "uU" else raw


def _element(schema: Schema, array: Array, index: int) -> Any:
    """Element `index` of the array; `read` has checked that all of it is there."""
    found, format, at = layout(schema), format_of(schema), array.offset + index
    if VALIDITY in found.buffers and not is_valid(array, at):
        return None
    if schema.dictionary:
        raw = ct.string_at(array.buffers[1] + at * found.width, found.width)
        key = decode(raw, INT if found.code is None else found.code, 8 * found.width)
        return _element(schema.dictionary.contents, array.dictionary.contents, key)
    child = partial(_element, schema.children[0].contents, array.children[0].contents) if schema.n_children else None
    if format == "n":
        return None
    if format == "b":
        return bool(ct.c_uint8.from_address(array.buffers[1] + at // 8).value >> at % 8 & 1)
    if found.buffers[-1] == DATA:
        raw = ct.string_at(array.buffers[1] + at * found.width, found.width)
        return raw if found.code is None else decode(raw, found.code, 8 * found.width)
    if VIEWS in found.buffers:
        return _text(format, _view(array, at))
    if found.buffers[-1] == BYTES:
        begin, end = span(array, at, found)
        return _text(format, ct.string_at((array.buffers[2] or 0) + begin, end - begin) if end > begin else b"")
    if format == "+s":
        fields = [_element(*_child(schema, array, i), at) for i in range(schema.n_children)]
        return fields[0] if len(fields) == 1 else tuple(fields)  # a table of one column is read as the column
    if child is not None and (found.size or format.startswith("+w:")):
        return [child(at * found.size + i) for i in range(found.size)]
    if child is not None and OFFSETS in found.buffers and TYPES not in found.buffers:
        return [child(i) for i in range(*span(array, at, found))]
    raise Skip(f"elements of format {format!r} are not read")


def _child(schema: Schema, array: Array, i: int) -> tuple[Schema, Array]:
    return schema.children[i].contents, array.children[i].contents


def expect_room(schema: Schema, array: Array) -> None:
    """All that length + offset elements reach is there: buffers are not NULL, children are long enough."""
    for node_schema, node, found, path in pairs(schema, array):
        count = node.length + node.offset
        expect(node.length >= 0 and node.offset >= 0, f"length and offset of {path}", (node.length, node.offset))
        expect(node.n_children == node_schema.n_children, f"children of {path}", node.n_children)
        wanted = len(found.buffers)
        enough = node.n_buffers >= wanted and (bool(node.buffers) or not wanted)
        expect(enough, f"{wanted} buffers of {path}", node.n_buffers)
        if not node.length:
            continue
        for i, kind in enumerate(found.buffers):
            optional = (
                kind in (VALIDITY, BYTES) or (kind == SIZES and found.variadic) or (kind == DATA and not found.width)
            )
            if not optional:
                expect(bool(node.buffers[i]), f"the {kind} of {path}", "NULL")
        format = format_of(node_schema)
        need = 0
        if format == "+s":
            need = count
        elif format.startswith("+w:"):
            need = count * found.size
        elif OFFSETS in found.buffers and node_schema.n_children == 1:
            need = max((span(node, i, found)[1] for i in range(node.offset, count)), default=0)
        for i in range(node.n_children if need else 0):
            length = node.children[i].contents.length
            expect(length >= need, f"child {i} of {path} of {need} elements or more", length)


def read(schema: Schema, array: Array) -> list[Any]:
    """The elements as Python objects: None for a null, integers for times, a tuple for a struct of several fields."""
    expect_room(schema, array)
    return [_element(schema, array, i) for i in range(array.length)]
