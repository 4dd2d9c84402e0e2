"""What Arrow's C data interface asks of exported structs: types, buffers, children and elements, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dlbridge.tests.conformance import producer_array_interface as host
from dlbridge.tests.conformance._arrow_abi import DICTIONARY_ORDERED, KNOWN_FLAGS, read_metadata
from dlbridge.tests.conformance._arrow_export import METHODS, Taken, export, first_route, take
from dlbridge.tests.conformance._arrow_format import (
    BYTES,
    DATA,
    FORMAT_OF,
    OFFSETS,
    SIZES,
    TYPES,
    VALIDITY,
    expect_room,
    format_of,
    is_valid,
    layout,
    nodes,
    span,
)
from dlbridge.tests.conformance._check import ARROW_DATA, MUST, SHOULD, Check, Failed, Skip, expect, expect_equal
from dlbridge.tests.conformance._making import Making
from dlbridge.tests.conformance._spec import ARROW, ARROW_BASE, ARROW_TABLE, Spec, flatten

EXTENSION = b"ARROW:extension:name"


# --- the schema -------------------------------------------------------------------------------------------------------


def _format(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, _ in nodes(taken.schema):
        layout(schema)


def _dtype(taken: Taken, spec: Spec, making: Making) -> None:
    if making.form == "plain":
        raise Skip("the factory makes one array of its own choice")
    leaves = [format_of(schema) for schema, _ in nodes(taken.schema) if not schema.n_children]
    expect_equal(leaves, [FORMAT_OF[spec.dtype]], f"{spec.dtype} as the format of the elements,")


def _children(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, path in nodes(taken.schema):
        found = layout(schema)
        if found.children is not None:
            expect_equal(schema.n_children, found.children, f"n_children of {path}, of format {format_of(schema)!r},")
        if format_of(schema) == "+m":
            entries = schema.children[0].contents
            expect_equal((format_of(entries), entries.n_children), ("+s", 2), "a map's one child, of key and value,")


def _dictionary(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, path in nodes(taken.schema):
        if schema.dictionary:
            expect(format_of(schema) in "csilCSIL", f"an integer format for the indices of {path}", format_of(schema))


def _flags(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, path in nodes(taken.schema):
        expect_equal(schema.flags & ~KNOWN_FLAGS, 0, f"unknown flag bits of {path}")
        ordered = bool(schema.flags & DICTIONARY_ORDERED)
        expect(not ordered or bool(schema.dictionary), f"an ordered dictionary at {path}", "no dictionary")


def _name(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, path in nodes(taken.schema):
        try:
            (schema.name or b"").decode()
        except UnicodeDecodeError:
            raise Failed(f"a name in UTF-8 at {path}", repr(schema.name)) from None


def _metadata(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, path in nodes(taken.schema):
        if not schema.metadata:
            continue
        try:
            found = read_metadata(schema.metadata)
        except ValueError as error:
            raise Failed(f"counts and lengths of int32 in the metadata of {path}", error) from None
        keys = [key for key, _ in found]
        expect(keys.count(EXTENSION) <= 1, f"one {EXTENSION.decode()} at {path}", keys)


# --- the array --------------------------------------------------------------------------------------------------------


def _array_children(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, array, _, path in taken.pairs():
        expect_equal(array.n_children, schema.n_children, f"n_children of {path}, as its schema has it,")


def _array_dictionary(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, array, _, path in taken.pairs():
        expect_equal(bool(array.dictionary), bool(schema.dictionary), f"a dictionary at {path} as its schema says:")


def _n_buffers(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, array, found, path in taken.pairs():
        wanted, got = len(found.buffers), array.n_buffers
        good = got >= wanted if found.variadic else got == wanted
        expect(good, f"{wanted} buffers of {path}, of format {format_of(schema)!r}", got)
        expect(not wanted or bool(array.buffers), f"the buffers of {path}", "a NULL pointer")


def _length(taken: Taken, spec: Spec, making: Making) -> None:
    for _, array, _, path in taken.pairs():
        expect(array.length >= 0, f"a length of 0 or more at {path}", array.length)
    if making.form != "plain":
        wanted = spec.shape[0] if spec.shape else 1
        expect_equal(sum(array.length for array in taken.arrays), wanted, "as many rows as axis 0 has,")


def _offset(taken: Taken, spec: Spec, making: Making) -> None:
    for _, array, _, path in taken.pairs():
        expect(array.offset >= 0, f"an offset of 0 or more at {path}", array.offset)


def _null_count(taken: Taken, spec: Spec, making: Making) -> None:
    for schema, array, found, path in taken.pairs():
        count = array.null_count
        expect(-1 <= count <= array.length, f"a null_count of -1 to {array.length} at {path}", count)
        if count < 0 or VALIDITY not in found.buffers or not array.buffers[0]:
            expect(count <= 0 or format_of(schema) == "n", f"a null_count of 0 at {path}, which has no bitmap", count)
            continue
        taken.need_host()
        zeros = sum(not is_valid(array, array.offset + i) for i in range(array.length))
        expect_equal(count, zeros, f"a null_count of {path} as its bitmap says,")


def _null_buffers(taken: Taken, spec: Spec, making: Making) -> None:
    for _, array, found, path in taken.pairs():
        missing = [kind for i, kind in enumerate(found.buffers) if i < array.n_buffers and not array.buffers[i]]
        if array.length + array.offset == 0:
            continue
        if VALIDITY in missing:
            expect_equal(array.null_count, 0, f"a null_count of {path}, whose bitmap is NULL,")
        empty = {VALIDITY, BYTES} | ({DATA} if not found.width else set())
        empty |= {SIZES} if found.variadic and array.n_buffers == len(found.buffers) else set()
        expect(not set(missing) - empty, f"all buffers of {path} but empty ones", f"NULL for {', '.join(missing)}")


def _room(taken: Taken, spec: Spec, making: Making) -> None:
    taken.need_host()
    for array in taken.arrays:
        expect_room(taken.schema, array)


def _offsets(taken: Taken, spec: Spec, making: Making) -> None:
    for _, array, found, path in taken.pairs():
        if OFFSETS not in found.buffers or TYPES in found.buffers or not array.length:
            continue
        taken.need_host()
        spans = [span(array, i, found) for i in range(array.offset, array.offset + array.length)]
        wrong = [pair for pair in spans if not 0 <= pair[0] <= pair[1]]
        expect(not wrong, f"offsets of {path} of 0 or more that do not fall", wrong[:3])


def _alignment(taken: Taken, spec: Spec, making: Making) -> None:
    for _, array, found, path in taken.pairs():
        for i, kind in enumerate(found.buffers):
            is_typed = kind in (DATA, OFFSETS) or (kind == SIZES and not found.variadic)
            width = min(found.width, 8) if is_typed else 1
            if i < array.n_buffers and width in (2, 4, 8) and array.length:
                rest = (array.buffers[i] or 0) % width
                expect_equal(rest, 0, f"{kind} of {path} aligned to {width} bytes; the address modulo {width} is")


def _values(taken: Taken, spec: Spec, making: Making) -> None:
    if not making.knows_values:
        taken.values()
        raise Skip("the factory chooses the values; they can be read")
    expect_equal(flatten(taken.values()), spec.values, "the elements")


_Look = Callable[[Taken, Spec, Making], None]
_SOME = (
    ARROW_BASE,
    ARROW_TABLE,
    *(spec for spec in ARROW if 0 in spec.shape or spec.layout != "C"),
)

_ASPECTS: tuple[tuple[str, _Look, Sequence[Spec], str, str], ...] = (
    ("format", _format, ARROW, MUST, "format is one of the format strings"),
    ("dtype", _dtype, ARROW, MUST, "format describes the data type"),
    ("children", _children, _SOME, MUST, "n_children is the number of children that the type has, each a valid schema"),
    ("dictionary", _dictionary, _SOME, MUST, "the format of a dictionary-encoded array is that of the indices"),
    ("flags", _flags, _SOME, MUST, "flags are zero but for the three that there are"),
    ("name", _name, _SOME, MUST, "name is NULL or a string in UTF-8"),
    ("metadata", _metadata, _SOME, MUST, "metadata is NULL, or key-value pairs with their lengths as native int32"),
    ("array-children", _array_children, _SOME, MUST, "the number of children is a function of the data type"),
    ("array-dictionary", _array_dictionary, _SOME, MUST, "dictionary is there for dictionary-encoded arrays alone"),
    ("n-buffers", _n_buffers, _SOME, MUST, "the number of buffers is a function of the data type"),
    ("length", _length, _SOME, MUST, "length is the number of items"),
    ("offset", _offset, _SOME, MUST, "offset is 0 or positive"),
    ("null-count", _null_count, _SOME, MUST, "null_count is the number of null items, or -1"),
    (
        "null-buffers",
        _null_buffers,
        _SOME,
        MUST,
        "buffer pointers are NULL for the bitmap if null_count is 0, and for empty buffers",
    ),
    ("room", _room, _SOME, MUST, "buffers and children are large enough for length + offset values"),
    ("offsets", _offsets, _SOME, MUST, "offsets do not fall (columnar format)"),
    ("alignment", _alignment, ARROW, SHOULD, "buffers are aligned to the type that they hold"),
    ("values", _values, ARROW, MUST, "buffers, offset, bitmap and children lead to the elements"),
)


def _look(look: _Look, route: str, spec: Spec, making: Making) -> None:
    _made, capsules = export(making, route, spec)
    look(take(capsules, route), spec, making)


# --- the other protocols ----------------------------------------------------------------------------------------------


def _of_dlpack(made: Any, spec: Spec, making: Making) -> list[Any]:
    try:
        return making.managed("versioned", spec).values()
    except Skip:
        return making.managed("legacy", spec).values()


def _of_buffer(made: Any, spec: Spec, making: Making) -> list[Any]:
    try:
        with memoryview(made) as view:
            return flatten(view.tolist())
    except (TypeError, BufferError, NotImplementedError, ValueError):
        raise Skip(f"{type(made).__name__} has no buffer that Python can read") from None


def _of_interface(made: Any, spec: Spec, making: Making) -> list[Any]:
    if not hasattr(made, "__array_interface__"):
        raise Skip(f"{type(made).__name__} has no __array_interface__")
    return host.describe_interface(made, made.__array_interface__).values()


def _of_route(route: str, made: Any, spec: Spec, making: Making) -> list[Any]:
    return take(export(making, route, spec)[1], route).values()


_Others = Callable[[Any, Spec, Making], list[Any]]
_OTHERS: tuple[tuple[str, str, _Others], ...] = (
    ("dlpack", SHOULD, _of_dlpack),
    ("buffer", SHOULD, _of_buffer),
    ("array_interface", SHOULD, _of_interface),
    ("stream", MUST, partial(_of_route, "stream")),
    ("device", MUST, partial(_of_route, "device")),
)


def _agrees(name: str, other: _Others, spec: Spec, making: Making) -> None:
    route = first_route(making, spec)
    made, capsules = export(making, route, spec)
    taken = take(capsules, route)
    wanted = flatten(other(made, spec, making))
    expect_equal(flatten(taken.values()), wanted, f"the elements of its {name}:")


def _all() -> Iterator[Check]:
    for route in METHODS:
        for name, look, specs, severity, clause in _ASPECTS:
            for spec in specs:
                run: Any = partial(_look, look, route, spec)
                yield Check(f"arrow.{route}.{name}[{spec}]", "arrow", clause, ARROW_DATA, run, severity)
    for name, severity, other in _OTHERS:
        for spec in (ARROW_BASE, Spec((5,), "float64"), Spec((5,), "uint8"), ARROW_TABLE):
            run = partial(_agrees, name, other, spec)
            clause = "all protocols of an array describe the same elements"
            yield Check(f"arrow.agrees-with-{name}[{spec}]", "arrow", clause, ARROW_DATA, run, severity)


CHECKS: tuple[Check, ...] = tuple(_all())
