"""What Arrow's C interfaces ask of who takes columns or tables: elements, moves, releases, errors."""

from __future__ import annotations

import gc
import struct as packing
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dlbridge.tests.conformance._abi import capsule_name
from dlbridge.tests.conformance._arrow_abi import NAMES, Array, Stream, capsule, move, pack_metadata
from dlbridge.tests.conformance._arrow_adversary import Maker
from dlbridge.tests.conformance._arrow_export import METHODS
from dlbridge.tests.conformance._arrow_lending import (
    Build,
    Built,
    Lending,
    column,
    edited,
    expect_right,
    form_of,
    gate,
    is_schema_capsule,
    packed_bits,
    take_refused,
    take_right,
    values_of,
)
from dlbridge.tests.conformance._check import (
    ARROW_DATA,
    ARROW_DEVICE,
    ARROW_STREAM,
    MUST,
    PYCAPSULE,
    ROBUST,
    SHOULD,
    Check,
    Failed,
    expect,
)
from dlbridge.tests.conformance._spec import ARROW, ARROW_BASE, ARROW_TABLE, Spec
from dlbridge.tests.conformance._taking import Taking


def _control(taking: Taking) -> None:
    """Columns or tables, by any of the methods."""
    words = []
    for route, method in METHODS.items():
        form, why = form_of(taking, route)
        if form is not None:
            return
        words.append(f"{method}: {why}")
    raise Failed("an object with one of the methods is taken", "; ".join(words))


def _values(spec: Spec, route: str, taking: Taking) -> None:
    take_right(taking, Lending(route, gate(taking, route), column(spec)), spec)


def _built(build: Build, spec: Spec, may_refuse: bool, route: str, taking: Taking) -> None:
    take_right(taking, Lending(route, gate(taking, route), build), spec, may_refuse=may_refuse)


# --- sound, but unusual -----------------------------------------------------------------------------------------------

_NULLS = Spec((67,), "int32", "nulls")
_EMPTY = Spec((0,), "int32")


def _described(block: bytes) -> Build:
    def build(maker: Maker) -> Built:
        return maker.schema(b"i", b"x", block), column(ARROW_BASE)(maker)[1]

    return build


def _no_buffers(maker: Maker) -> Built:
    return maker.schema(b"i", b"x"), [maker.array(0, (None, None))]


def _useless_bitmap(maker: Maker) -> Built:
    values = b"".join(packing.pack("=i", value) for value in ARROW_BASE.values)
    return maker.schema(b"i", b"x"), [maker.array(5, (packed_bits([True] * 5), values))]


def _offset_lists(maker: Maker) -> Built:
    """Pairs behind an offset of one pair, of numbers behind an offset of two."""
    child = maker.array(8, (None, packing.pack("=10i", 0, 0, 0, 0, *ARROW_TABLE.values)), offset=2)
    schema = maker.schema(b"+w:2", b"x", children=[maker.schema(b"i", b"item")])
    return schema, [maker.array(3, (None,), children=[child], offset=1)]


# Whether a consumer may refuse it: not every type is supported, and not every library has nulls.
_SOUND: tuple[tuple[str, Build, Spec, bool, str], ...] = (
    (
        "unknown-null-count",
        edited(lambda schema, array: setattr(array, "null_count", -1), _NULLS),
        _NULLS,
        True,
        "null_count may be -1: the bitmap says which items are null",
    ),
    ("no-buffers", _no_buffers, _EMPTY, False, "pointers of buffers of no bytes may be NULL"),
    ("bitmap-without-nulls", _useless_bitmap, ARROW_BASE, False, "a bitmap may be there without nulls"),
    ("no-name", edited(lambda schema, array: setattr(schema, "name", None)), ARROW_BASE, False, "name may be NULL"),
    ("metadata", _described(pack_metadata([(b"k", b"v"), (b"", b"")])), ARROW_BASE, False, "metadata may be ignored"),
    (
        "unknown-extension",
        _described(pack_metadata([(b"ARROW:extension:name", b"acme.thing")])),
        ARROW_BASE,
        True,
        "the array of an extension type is its storage",
    ),
    ("offset-lists", _offset_lists, ARROW_TABLE, True, "offsets of an array and of its child add up"),
)

# --- who owns what ----------------------------------------------------------------------------------------------------


def _alive(route: str, taking: Taking) -> None:
    """Capsules die when the consumer lets go of them, and release what was not moved, which is overwritten then."""
    lending = Lending(route, gate(taking, route), column(ARROW_BASE), mortal=True)
    result = taking.taken(lending.object)
    gc.collect()
    expect_right(taking, result, ARROW_BASE)
    del result
    taking.settle(lending)


def _readonly(route: str, taking: Taking) -> None:
    lending = Lending(route, gate(taking, route), column(ARROW_BASE))
    result = taking.taken(lending.object)
    readonly = taking.says_readonly(result)
    if not readonly:
        taking.skip_a_copy(result, lending.data)
    expect(readonly, "a read-only result", "a writable one over the producer's memory")


def _requests(route: str, taking: Taking) -> None:
    """What the consumer passes."""
    lending = Lending(route, gate(taking, route), column(ARROW_BASE))
    taking.attempt(lending.object)
    for arguments, keywords in lending.calls:
        unknown = {name for name, value in keywords.items() if name != "requested_schema" and value is not None}
        expect(len(arguments) <= 1 and not unknown, "requested_schema and no other argument", (arguments, keywords))
        asked = [*arguments, *(value for name, value in keywords.items() if name == "requested_schema")]
        good = all(value is None or is_schema_capsule(value) for value in asked)
        expect(good, "None, or a capsule named arrow_schema", asked)


class _Error(Exception):
    pass


def _raise(given: Any) -> Any:
    raise _Error("the producer's own words")


def _error(route: str, taking: Taking) -> None:
    form = gate(taking, route)
    words = take_refused(taking, Lending(route, form, column(ARROW_BASE), finish=_raise), "the producer's error")
    expect("the producer's own words" in words, "the words of the producer's error", words)


def _finished(finish: Callable[[Any], Any], route: str, taking: Taking) -> None:
    take_refused(taking, Lending(route, gate(taking, route), column(ARROW_BASE), finish=finish))


def _like(given: Any) -> Any:
    """Another struct of the kind that the last capsule holds."""
    maker = Maker()
    name = capsule_name(given[1] if isinstance(given, tuple) else given)
    if name == NAMES[Stream]:
        return maker.stream(maker.schema(), [])
    return maker.array() if name == NAMES[Array] else maker.on_device(maker.array(), 1, -1)


def _renamed(which: int) -> Callable[[Any], Any]:
    """A sound struct under another name."""

    def finish(given: Any) -> Any:
        if not isinstance(given, tuple):
            return capsule(_like(given), b"arrow_stream")
        if which == 0:
            return capsule(Maker().schema(b"i"), b"schema"), given[1]
        return given[0], capsule(_like(given), b"array")

    return finish


def _released(given: Any) -> Any:
    """A capsule that another consumer has used before."""
    source = _like(given)
    move(source)
    return (given[0], capsule(source)) if isinstance(given, tuple) else capsule(source)


def _swapped(given: Any) -> Any:
    return given[::-1] if isinstance(given, tuple) else (given, given)


def _first(given: Any) -> Any:
    return given[:1] if isinstance(given, tuple) else [given]


def _nothing(given: Any) -> Any:
    return None


# --- malformed --------------------------------------------------------------------------------------------------------


def _set(which: str, name: str, value: Any) -> Build:
    return edited(lambda schema, array: setattr({"schema": schema, "array": array}[which], name, value))


def _lists(**fields: Any) -> Build:
    """Fixed-size lists, with other fields."""

    def edit(schema: Any, array: Any) -> None:
        for name, value in fields.items():
            setattr(schema, name, value)

    return edited(edit, ARROW_TABLE)


def _short_child(schema: Any, array: Any) -> None:
    array.children[0].contents.length = 3


_MALFORMED: tuple[tuple[str, Build], ...] = (
    ("unknown-format", _set("schema", "format", b"q!")),
    ("empty-format", _set("schema", "format", b"")),
    ("null-format", _set("schema", "format", None)),
    ("no-list-size", _lists(format=b"+w:")),
    ("negative-list-size", _lists(format=b"+w:-2")),
    ("schema-without-children", _lists(n_children=0)),
    ("array-without-children", edited(lambda schema, array: setattr(array, "n_children", 0), ARROW_TABLE)),
    ("short-child", edited(_short_child, ARROW_TABLE)),
    ("negative-length", _set("array", "length", -1)),
    ("negative-offset", _set("array", "offset", -1)),
    ("huge-length", _set("array", "length", 2**62)),
    ("one-buffer", _set("array", "n_buffers", 1)),
    ("no-data", edited(lambda schema, array: array.buffers.__setitem__(1, None))),
    ("too-many-nulls", _set("array", "null_count", 6)),
    ("nulls-without-bitmap", _set("array", "null_count", 2)),
)


def _malformed(build: Build, route: str, taking: Taking) -> None:
    take_refused(taking, Lending(route, gate(taking, route), build))


# --- streams ----------------------------------------------------------------------------------------------------------


def _chunks(lengths: tuple[int, ...]) -> Build:
    def build(maker: Maker) -> Built:
        arrays, start = [], 0
        for length in lengths:
            values = ARROW_BASE.values[start : start + length]
            raw = b"".join(packing.pack("=i", value) for value in values)
            arrays.append(maker.array(length, (None, raw or None)))
            start += length
        return maker.schema(b"i", b"x"), arrays

    return build


def _fails(at: int, says: bytes | None, taking: Taking) -> None:
    form = gate(taking, "stream")
    options = {"fails_at": at, "says": says}
    lending = Lending("stream", form, _chunks((3, 2)), stream=options)
    result, refusal = taking.attempt(lending.object)
    if refusal is None:
        raise Failed("an error", f"elements {values_of(taking, result)}")
    taking.settle(lending)


def _says_why(taking: Taking) -> None:
    form = gate(taking, "stream")
    lending = Lending("stream", form, _chunks((3, 2)), stream={"fails_at": 1})
    words = take_refused(taking, lending)
    expect("the disk is on fire" in words, "what get_last_error says", words)


# --- devices ----------------------------------------------------------------------------------------------------------


def _foreign(device: int, taking: Taking) -> None:
    take_refused(taking, Lending("device", gate(taking, "device"), column(ARROW_BASE), device=device))


# --- the table --------------------------------------------------------------------------------------------------------

_Row = tuple[str, str, str, Callable[..., None], str, bool]

_OF_ROUTES: tuple[_Row, ...] = (
    *(
        (name, clause, ARROW_DATA, partial(_built, build, spec, may_refuse), MUST, False)
        for name, build, spec, may_refuse, clause in _SOUND
    ),
    ("alive", "a struct is moved by a copy whose source is marked released", ARROW_DATA, _alive, MUST, True),
    ("readonly", "both sides consider the data to be immutable", ARROW_DATA, _readonly, SHOULD, False),
    ("requests", "requested_schema is None or a capsule, other keywords are None", PYCAPSULE, _requests, MUST, False),
    ("producer-error", "an error of the method reaches the caller", ROBUST, _error, SHOULD, False),
    ("name-of-schema", "the name says what is in a capsule", PYCAPSULE, partial(_finished, _renamed(0)), MUST, True),
    ("name-of-array", "the name says what is in a capsule", PYCAPSULE, partial(_finished, _renamed(1)), MUST, True),
    (
        "released",
        "a consumer checks for a NULL release callback",
        ARROW_DATA,
        partial(_finished, _released),
        SHOULD,
        True,
    ),
    ("swapped", "the schema comes first, the array second", PYCAPSULE, partial(_finished, _swapped), MUST, True),
    ("one-capsule", "a pair is two capsules, a stream is one", ROBUST, partial(_finished, _first), SHOULD, True),
    ("no-capsule", "anything but capsules is an error", ROBUST, partial(_finished, _nothing), SHOULD, True),
    *(
        (f"malformed[{name}]", "a struct that breaks the interface is an error", ROBUST, run, SHOULD, True)
        for name, run in ((name, partial(_malformed, build)) for name, build in _MALFORMED)
    ),
)

_ONCE: tuple[_Row, ...] = (
    (
        "stream.empty-chunks",
        "chunks may be empty",
        ARROW_STREAM,
        partial(_built, _chunks((0, 5, 0)), ARROW_BASE, False, "stream"),
        MUST,
        False,
    ),
    (
        "stream.no-chunks",
        "a released array is the end of the stream, be it the first",
        ARROW_STREAM,
        partial(_built, _chunks(()), _EMPTY, False, "stream"),
        MUST,
        False,
    ),
    *(
        (
            f"stream.fails[{name}]",
            "an error of a callback is an error",
            ARROW_STREAM,
            partial(_fails, at, says),
            MUST,
            True,
        )
        for name, at, says in (
            ("get_schema", 0, b"no"),
            ("first-get_next", 1, b"no"),
            ("second-get_next", 2, b"no"),
            ("without-words", 1, None),
        )
    ),
    ("stream.says-why", "get_last_error describes the error", ARROW_STREAM, _says_why, SHOULD, False),
    *(
        (
            f"device.foreign[{device}]",
            "device_type says who can access the buffers: the consumer, or nobody here",
            ARROW_DEVICE,
            partial(_foreign, device),
            MUST,
            True,
        )
        for device in (4, 8, 99)
    ),
)


def _all() -> Iterator[Check]:
    yield Check("arrow.control", "arrow", "a plain column, or a table of one, is taken", PYCAPSULE, _control)
    for route in METHODS:
        for spec in ARROW:
            if spec.layout == "chunks" and route != "stream":
                continue
            clause = "format, buffers, offset, bitmap and children are followed, or the array is refused"
            run: Any = partial(_values, spec, route)
            yield Check(f"arrow.{route}.values[{spec}]", "arrow", clause, ARROW_DATA, run)
    for name, clause, source, of_route, severity, risky in _OF_ROUTES:
        for route in METHODS:
            if route == "stream" and name == "name-of-array":
                continue
            run = partial(of_route, route)
            yield Check(f"arrow.{route}.{name}", "arrow", clause, source, run, severity, risky)
    for name, clause, source, once, severity, risky in _ONCE:
        yield Check(f"arrow.{name}", "arrow", clause, source, once, severity, risky)


CHECKS: tuple[Check, ...] = tuple(_all())
