"""What a consumer has of an Arrow export: the capsules, the structs moved out of them, and their elements."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi, _spec
from dlbridge.tests.conformance._arrow_abi import (
    NAMES,
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
from dlbridge.tests.conformance._arrow_format import Layout, format_of, nodes, pairs, read
from dlbridge.tests.conformance._check import Check, Failed, Skip, describe, expect, expect_equal
from dlbridge.tests.conformance._making import HOST_DEVICES, Making
from dlbridge.tests.conformance._spec import ARROW_BASE, Spec

METHODS = {"array": "__arrow_c_array__", "stream": "__arrow_c_stream__", "device": "__arrow_c_device_array__"}
KINDS: dict[str, tuple[Any, ...]] = {"array": (Schema, Array), "stream": (Stream,), "device": (Schema, DeviceArray)}
_MAX_CHUNKS = 10_000
_kept: list[Any] = []  # callbacks that a faulty producer may call at any time


def made_by(making: Making, attribute: str, spec: Spec = ARROW_BASE) -> Any:
    """An array that has the method."""
    return making.offering(attribute, _asked(making, spec))


def _asked(making: Making, spec: Spec) -> Spec:
    """A factory of one array of its own choice makes that one for the first spec."""
    return _spec.BASE if making.form == "plain" and spec == ARROW_BASE else spec


def first_route(making: Making, spec: Spec = ARROW_BASE) -> str:
    made = making.array(_asked(making, spec))
    for route, method in METHODS.items():
        if hasattr(made, method):
            return route
    raise Skip(f"{type(made).__name__} has no {' or '.join(METHODS.values())}")


def expect_capsules(given: Any, route: str) -> tuple[Any, ...]:
    """The capsules that the method has to give, by number and name."""
    kinds = KINDS[route]
    if len(kinds) == 2:
        expect(isinstance(given, tuple) and len(given) == 2, "a tuple of two capsules", repr(given))
    capsules = given if len(kinds) == 2 else (given,)
    for capsule, kind in zip(capsules, kinds, strict=True):
        expect(_abi.is_capsule(capsule), f"a PyCapsule named {NAMES[kind].decode()}", type(capsule).__name__)
        expect_equal(_abi.capsule_name(capsule), NAMES[kind], "a capsule named")
        expect(bool(base_of(struct_of(capsule, kind)).release), "a release callback", "NULL")
    return tuple(capsules)


def export(making: Making, route: str, spec: Spec = ARROW_BASE) -> tuple[Any, tuple[Any, ...]]:
    """The array and its capsules; a refusal of the dtype or the layout is a skip."""
    made = made_by(making, METHODS[route], spec)
    try:
        given = getattr(made, METHODS[route])()
    except Exception as error:
        raise Skip(f"{METHODS[route]} refuses: {describe(error)}") from None
    return made, expect_capsules(given, route)


def export_twice(route: str, making: Making) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The array and two exports of it; a Skip where a stream can be had once."""
    made, first = export(making, route)
    try:
        second = getattr(made, METHODS[route])()
    except Exception as error:
        raise Skip(f"it is exported once: {describe(error)}") from None
    return made, first, expect_capsules(second, route)


def formats_of(schema: Schema) -> list[str]:
    return [format_of(node) for node, _ in nodes(schema)]


class Taken:
    """Structs that were moved out of their capsules, and are released with this object."""

    def __init__(self, schema: Any, arrays: list[Any]) -> None:
        self.schema, self._placed = schema, arrays

    @property
    def arrays(self) -> list[Array]:
        return [base_of(placed) for placed in self._placed]

    @property
    def placed(self) -> DeviceArray:
        return self._placed[0]  # type: ignore[no-any-return]

    def pairs(self) -> Iterator[tuple[Schema, Array, Layout, str]]:
        for array in self.arrays:
            yield from pairs(self.schema, array)

    def need_host(self) -> None:
        for placed in self._placed:
            if isinstance(placed, DeviceArray) and placed.device_type not in HOST_DEVICES:
                raise Skip(f"the host cannot read device {placed.device_type}")

    def values(self) -> list[Any]:
        self.need_host()
        return [value for array in self.arrays for value in read(self.schema, array)]

    def close(self) -> None:
        for struct in (*self._placed, self.schema):
            release(struct)

    def __del__(self) -> None:
        self.close()


def last_error(stream: Stream) -> str | None:
    """After a call that failed; a Failed where it is no string."""
    expect(bool(stream.get_last_error), "a get_last_error callback", "NULL")
    address = stream.get_last_error(ct.addressof(stream))
    if not address:
        return None
    try:
        return ct.string_at(address).decode()
    except UnicodeDecodeError:
        raise Failed("a string in UTF-8 from get_last_error", repr(ct.string_at(address)[:80])) from None


class StreamFailed(Exception):
    """A callback of a stream returned an error."""


def call_stream(stream: Stream, name: str, out: Any) -> None:
    callback = getattr(stream, name)
    expect(bool(callback), f"a {name} callback", "NULL")
    code = callback(ct.addressof(stream), ct.byref(out))
    if code:
        raise StreamFailed(f"{name} returned {code}: {last_error(stream)}")


def chunks_of(stream: Stream) -> Iterator[Array]:
    """What is left of a stream: the caller releases each array."""
    for _ in range(_MAX_CHUNKS):
        array = Array()
        call_stream(stream, "get_next", array)
        if not array.release:
            return
        yield array
    raise Failed("a released array at the end of the stream", f"{_MAX_CHUNKS:,} arrays, and no end")


def take(capsules: tuple[Any, ...], route: str) -> Taken:
    """Moves what is in the capsules; a stream is run to its end, and released before anything is read."""
    if route != "stream":
        return Taken(*_pair(capsules, route))
    stream, schema = move(struct_of(capsules[0], Stream)), Schema()
    taken = Taken(schema, [])
    try:
        call_stream(stream, "get_schema", schema)
        for array in chunks_of(stream):
            taken._placed.append(array)
    except StreamFailed as error:
        raise Failed("a stream that can be read", error) from None
    finally:
        release(stream)
    return taken


def _pair(capsules: tuple[Any, ...], route: str) -> tuple[Any, list[Any]]:
    schema, array = (move(struct_of(c, kind)) for c, kind in zip(capsules, KINDS[route], strict=True))
    return schema, [array]


class Spy:
    """Counts the calls of a struct's release callback, which it passes on."""

    def __init__(self, struct: Any) -> None:
        self.calls = 0
        base = base_of(struct)
        original = RELEASE(ct.cast(base.release, ct.c_void_p).value or 0)  # the field itself is about to change

        def count(address: int) -> None:
            self.calls += 1
            original(address)

        self._callback = RELEASE(count)
        _kept.append((self._callback, original))
        base.release = self._callback


Row = tuple[str, str, str, Callable[..., None], str, bool]  # name, clause, source, run, severity, risky


def rows(of_routes: tuple[Row, ...], once: tuple[Row, ...]) -> Iterator[Check]:
    """`of_routes` are run for each method that exports arrays."""
    for name, clause, source, run, severity, risky in of_routes:
        for route in METHODS:
            yield Check(f"arrow.{route}.{name}", "arrow", clause, source, partial(run, route), severity, risky)
    for name, clause, source, run, severity, risky in once:
        yield Check(f"arrow.{name}", "arrow", clause, source, run, severity, risky)
