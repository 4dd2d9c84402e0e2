"""What Arrow's C data and C stream interfaces ask of release callbacks: what lives how long, and who ends it."""

from __future__ import annotations

import gc
from typing import Any

from dlbridge.tests.conformance._arrow_abi import (
    NAMES,
    Array,
    Schema,
    Stream,
    base_of,
    capsule,
    move,
    release,
    struct_of,
)
from dlbridge.tests.conformance._arrow_export import (
    KINDS,
    METHODS,
    Row,
    Spy,
    StreamFailed,
    Taken,
    call_stream,
    chunks_of,
    expect_capsules,
    export,
    export_twice,
    first_route,
    formats_of,
    rows,
    take,
)
from dlbridge.tests.conformance._arrow_format import read
from dlbridge.tests.conformance._check import (
    ARROW_DATA,
    ARROW_STREAM,
    MUST,
    PYCAPSULE,
    SHOULD,
    Check,
    Skip,
    expect,
    expect_equal,
)
from dlbridge.tests.conformance._making import Making, take_freed_memory
from dlbridge.tests.conformance._spec import ARROW_BASE, ARROW_TABLE, LARGE_COLUMN
from dlbridge.tests.conformance.producer_dlpack_calls import leak

# --- lifetimes --------------------------------------------------------------------------------------------------------


def _unconsumed(route: str, making: Making) -> None:
    """The destructor of a capsule that nobody took."""
    _made, capsules = export(making, route)
    spies = [Spy(struct_of(one, kind)) for one, kind in zip(capsules, KINDS[route], strict=True)]
    del capsules
    gc.collect()
    expect_equal([spy.calls for spy in spies], [1] * len(spies), "calls of release by the destructors of the capsules")


def _consumed(route: str, making: Making) -> None:
    """A released struct in a capsule is left alone, and what was moved out of it is as it was."""
    _made, capsules = export(making, route)
    spies = [Spy(struct_of(one, kind)) for one, kind in zip(capsules, KINDS[route], strict=True)]
    moved = [move(struct_of(one, kind)) for one, kind in zip(capsules, KINDS[route], strict=True)]
    del capsules
    gc.collect()
    calls = [spy.calls for spy in spies]
    got = take(tuple(map(capsule, moved)), route).values()
    expect_equal(calls, [0] * len(spies), "calls of release by the destructors of capsules that were consumed")
    _other, kept = export(making, route)  # a capsule that lives on has destroyed nothing
    expect_equal(got, take(kept, route).values(), "the elements of what was consumed")


def _marks(route: str, making: Making) -> None:
    _made, capsules = export(making, route)
    for one, kind in zip(capsules, KINDS[route], strict=True):
        moved = move(struct_of(one, kind))
        release(moved)
        expect(not base_of(moved).release, f"release NULL in a released {NAMES[kind].decode()}", "the callback")


def _with_children(making: Making) -> Taken:
    for spec in (ARROW_BASE, ARROW_TABLE):
        for route in METHODS:
            try:
                taken = take(export(making, route, spec)[1], route)
            except Skip:
                continue
            if taken.arrays and taken.arrays[0].n_children:
                return taken
    raise Skip("no array that the factory makes has children")


def _releases_children(making: Making) -> None:
    taken = _with_children(making)
    for base in (taken.arrays[0], taken.schema):
        spies = [Spy(base.children[i].contents) for i in range(base.n_children)]
        release(base)
        expect_equal([spy.calls for spy in spies], [1] * len(spies), "calls of the release callbacks of the children")


def _moved_child(making: Making) -> None:
    """One child is moved out, and the parent is released right after."""
    taken = _with_children(making)
    taken.need_host()
    base = taken.arrays[0]
    wanted = read(taken.schema.children[0].contents, base.children[0].contents)
    array, schema = move(base.children[0].contents), move(taken.schema.children[0].contents)
    taken.close()
    noise = take_freed_memory(8 * max(len(wanted), 1))
    got = read(schema, array)
    release(array)
    release(schema)
    expect(bool(noise) and got == wanted, "the elements of a child that outlives its parent", "others: it was freed")


def _outlives(route: str, making: Making) -> None:
    made, capsules = export(making, route, LARGE_COLUMN if making.form == "spec" else ARROW_BASE)
    taken = take(capsules, route)
    before = taken.values()
    del made, capsules
    noise = take_freed_memory(8 * len(before))
    after = taken.values()
    expect(bool(noise) and after == before, "the same elements after the array is gone", "others: they were freed")
    if making.form == "spec":
        expect_equal(before, LARGE_COLUMN.values, "the elements")


def _apart(making: Making) -> None:
    """Schema and array have lifetimes of their own."""
    route = first_route(making)
    taken, other = (take(export(making, route)[1], route) for _ in range(2))
    wanted = other.values()
    schema = taken.schema
    taken.schema = Schema()
    release(other.schema)
    noise = take_freed_memory(64)
    got = [value for array in other.arrays for value in read(schema, array)]
    release(schema)
    expect(bool(noise) and got == wanted, "elements that are there after the schema was released", got)


def _leak(route: str, making: Making) -> None:
    made, _, _ = export_twice(route, making)
    leak(lambda: take(expect_capsules(getattr(made, METHODS[route])(), route), route))


# --- streams ----------------------------------------------------------------------------------------------------------


def _stream(making: Making) -> tuple[Any, Stream]:
    made, (given,) = export(making, "stream")
    return made, move(struct_of(given, Stream))


def _callbacks(making: Making) -> None:
    _made, stream = _stream(making)
    missing = [n for n in ("get_schema", "get_next", "get_last_error", "release") if not getattr(stream, n)]
    release(stream)
    expect(not missing, "all callbacks of the stream", f"NULL for {', '.join(missing)}")


def _one_schema(making: Making) -> None:
    _made, stream = _stream(making)
    schemas = (Schema(), Schema())
    for schema in schemas:
        call_stream(stream, "get_schema", schema)
    formats = [formats_of(schema) for schema in schemas]
    for struct in (*schemas, stream):
        release(struct)
    expect_equal(formats[1], formats[0], "the same schema at a second call,")


def _ends(making: Making) -> None:
    """Once it has ended, it stays so."""
    _made, stream = _stream(making)
    try:
        for array in chunks_of(stream):
            release(array)
        more = Array()
        call_stream(stream, "get_next", more)
    except StreamFailed as error:
        raise Skip(str(error)) from None
    ended = not more.release
    release(more)
    release(stream)
    expect(ended, "a released array at every call after the end", "an array")


def _unread(making: Making) -> None:
    """A consumer may lose interest at any time."""
    for read_first in (0, 1):
        made, stream = _stream(making)
        if read_first:
            array = Array()
            call_stream(stream, "get_next", array)
            release(array)
        release(stream)
        expect(not stream.release and made is not None, "release NULL after a stream was released", "the callback")


def _errors(making: Making) -> None:
    _made, stream = _stream(making)
    try:
        schema = Schema()
        call_stream(stream, "get_schema", schema)
        release(schema)
        for array in chunks_of(stream):
            release(array)
    except StreamFailed as error:
        expect("returned -" not in str(error), "an errno code, which is positive", error)
        return
    finally:
        release(stream)
    raise Skip("the stream does not fail")


# --- the table --------------------------------------------------------------------------------------------------------

_OF_ROUTES: tuple[Row, ...] = (
    (
        "unconsumed",
        "a capsule has a destructor that calls the release callback, if it is not NULL",
        PYCAPSULE,
        _unconsumed,
        SHOULD,
        True,
    ),
    ("consumed", "the destructor leaves a struct alone whose release is NULL", PYCAPSULE, _consumed, MUST, True),
    ("marks-released", "the release callback sets release to NULL", ARROW_DATA, _marks, MUST, True),
    (
        "outlives",
        "a moved struct keeps its data until it is released, wherever it lies",
        ARROW_DATA,
        _outlives,
        MUST,
        True,
    ),
    ("leak", "the release callback frees what the struct owns", ARROW_DATA, _leak, MUST, True),
)

_ONCE: tuple[Row, ...] = (
    ("releases-children", "the release callback releases all children", ARROW_DATA, _releases_children, MUST, True),
    ("moved-child", "a child can be moved, and outlives its parent", ARROW_DATA, _moved_child, MUST, True),
    ("apart", "schema and array are released each on its own", ARROW_DATA, _apart, MUST, True),
    ("stream.callbacks", "all callbacks but private data are mandatory", ARROW_STREAM, _callbacks, MUST, False),
    ("stream.one-schema", "the schema is the same for all chunks", ARROW_STREAM, _one_schema, MUST, True),
    ("stream.ends", "the end of a stream is a released array with the code 0", ARROW_STREAM, _ends, SHOULD, True),
    ("stream.unread", "a stream is released at any time", ARROW_STREAM, _unread, MUST, True),
    (
        "stream.errors",
        "an error is an errno code, and get_last_error gives NULL or a string in UTF-8",
        ARROW_STREAM,
        _errors,
        MUST,
        True,
    ),
)


CHECKS: tuple[Check, ...] = tuple(rows(_OF_ROUTES, _ONCE))
