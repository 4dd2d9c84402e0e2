"""What Arrow's PyCapsule and C device interfaces ask of the methods, of requested schemas and of device structs."""

from __future__ import annotations

import ctypes as ct
import gc
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._arrow_abi import (
    NAMES,
    DeviceArray,
    Schema,
    capsule,
    move,
    release,
    struct_of,
)
from dlbridge.tests.conformance._arrow_adversary import Maker
from dlbridge.tests.conformance._arrow_export import (
    KINDS,
    METHODS,
    Row,
    Spy,
    Taken,
    expect_capsules,
    export,
    export_twice,
    first_route,
    formats_of,
    made_by,
    rows,
    take,
)
from dlbridge.tests.conformance._arrow_format import format_of
from dlbridge.tests.conformance._check import (
    ARROW_DATA,
    ARROW_DEVICE,
    MUST,
    PYCAPSULE,
    ROBUST,
    SHOULD,
    Check,
    Failed,
    Skip,
    describe,
    expect,
    expect_equal,
)
from dlbridge.tests.conformance._making import Making

_SCHEMA = "__arrow_c_schema__"

# --- calls ------------------------------------------------------------------------------------------------------------


def _plain_call(route: str, making: Making) -> None:
    made = made_by(making, METHODS[route])
    expect_capsules(getattr(made, METHODS[route])(), route)


def _fresh(route: str, making: Making) -> None:
    _made, first, second = export_twice(route, making)
    for one, other, kind in zip(first, second, KINDS[route], strict=True):
        same = ct.addressof(struct_of(one, kind)) == ct.addressof(struct_of(other, kind))
        expect(not same, "a struct of its own for each call", f"one {NAMES[kind].decode()} for two calls")
    taken = take(first, route)
    values = taken.values()
    taken.close()
    later = take(second, route)
    expect_equal(later.values(), values, "of the second export, after the first was released, the elements")


def _schema_alone(making: Making) -> None:
    """The method of schemas and types; an array may have it, too."""
    made = made_by(making, _SCHEMA)
    given = getattr(made, _SCHEMA)()
    expect(_abi.is_capsule(given), "a PyCapsule", type(given).__name__)
    expect_equal(_abi.capsule_name(given), NAMES[Schema], "a capsule named")
    spy = Spy(struct_of(given, Schema))
    schema = move(struct_of(given, Schema))
    formats = formats_of(schema)
    release(schema)
    expect_equal((spy.calls, bool(schema.release)), (1, False), "released once, with release NULL after it:")
    taken = take(export(making, first_route(making))[1], first_route(making))
    expect_equal(formats, formats_of(taken.schema), "the formats that come with the array,")


def _device_keyword(value: Any, making: Making) -> None:
    made = made_by(making, METHODS["device"])
    try:
        given = made.__arrow_c_device_array__(no_such_keyword_yet=value)
    except NotImplementedError as error:
        expect(value is not None, "an unknown keyword of None taken", describe(error))
        return
    except Exception as error:
        raise Failed("NotImplementedError, or None taken", describe(error)) from None
    expect_capsules(given, "device")
    expect(value is None, "NotImplementedError for a keyword that is not known", "capsules")


# --- requested_schema -------------------------------------------------------------------------------------------------

_WIDER = {"c": "l", "s": "l", "i": "l", "C": "L", "S": "L", "I": "L", "e": "g", "f": "g", "u": "U", "z": "Z"}


def _clone(maker: Maker, schema: Schema, formats: dict[str, str]) -> Any:
    """A schema like the one given, with other formats for its leaves."""
    children = [_clone(maker, schema.children[i].contents, formats) for i in range(schema.n_children)]
    dictionary = _clone(maker, schema.dictionary.contents, {}) if schema.dictionary else None
    format = format_of(schema)
    wanted = format if children else formats.get(format, format)
    return maker.schema(wanted.encode(), schema.name, None, children, dictionary, flags=schema.flags)


def _request(kind: str, maker: Maker, own: Schema) -> Any:
    if kind == "own":
        return _clone(maker, own, {})
    if kind == "wider":
        return _clone(maker, own, _WIDER)
    fields = [_clone(maker, own.children[i].contents, {}) for i in range(own.n_children)] if own.format == b"+s" else []
    fields += [maker.schema(b"i", b"one"), maker.schema(b"i", b"more")]
    return maker.schema(b"+s", b"", None, fields)


@dataclass
class _Asked:
    """What comes without a request, and what comes of one: an error where `taken` is None."""

    plain: Taken
    wanted: list[str]
    maker: Maker
    taken: Taken | None = None
    error: str = ""


def _asking(kind: str, route: str, making: Making) -> _Asked:
    """The producer may take the requested schema over or leave it."""
    maker = Maker()
    plain = take(export(making, route)[1], route)
    schema = _request(kind, maker, plain.schema)
    asked = _Asked(plain, formats_of(schema), maker)
    made = made_by(making, METHODS[route])
    try:
        given = getattr(made, METHODS[route])(requested_schema=capsule(schema))
    except Exception as error:
        asked.error = describe(error)
    else:
        asked.taken = take(expect_capsules(given, route), route)
    return asked


def _requested_none(route: str, making: Making) -> None:
    wanted = take(export(making, route)[1], route).values()
    for arguments, keywords in (((None,), {}), ((), {"requested_schema": None})):
        made = made_by(making, METHODS[route])
        try:
            given = getattr(made, METHODS[route])(*arguments, **keywords)
        except Exception as error:
            raise Failed("requested_schema=None, by place and by name", describe(error)) from None
        expect_equal(
            take(expect_capsules(given, route), route).values(), wanted, "with None for a request the elements"
        )


def _requested_own(route: str, making: Making) -> None:
    asked = _asking("own", route, making)
    if asked.taken is None:
        raise Failed("the schema that the array has anyway", asked.error)
    expect_equal(formats_of(asked.taken.schema), asked.wanted, "the formats that were requested,")
    expect_equal(asked.taken.values(), asked.plain.values(), "the elements")


def _requested_wider(route: str, making: Making) -> None:
    """Another representation of the same data; where the producer has none, its own."""
    asked = _asking("wider", route, making)
    own = formats_of(asked.plain.schema)
    if asked.wanted == own:
        raise Skip("the array has no elements that could be wider")
    if asked.taken is None:
        raise Failed("the requested schema, or the one that None gives", asked.error)
    got = formats_of(asked.taken.schema)
    expect(got in (own, asked.wanted), f"the formats {asked.wanted} or {own}", got)
    expect_equal(asked.taken.values(), asked.plain.values(), "the elements")


def _requested_other(route: str, making: Making) -> None:
    asked = _asking("fields", route, making)
    if asked.taken is not None:
        raise Failed("an exception for a schema of other fields", f"formats {formats_of(asked.taken.schema)}")


def _requested_released(kind: str, route: str, making: Making) -> None:
    asked = _asking(kind, route, making)
    asked.taken = None
    gc.collect()
    left = asked.maker.unsettled()
    if left is not None:
        raise Failed(*left)


def _requested_junk(name: str, route: str, making: Making) -> None:
    request = {"number": 1, "name": capsule(Maker().array()), "string": "int64"}[name]
    made = made_by(making, METHODS[route])
    try:
        getattr(made, METHODS[route])(request)
    except Exception:
        return
    raise Failed("an exception for what is no capsule named arrow_schema", "capsules")


# --- devices ----------------------------------------------------------------------------------------------------------

_DEVICES = frozenset((*range(1, 5), *range(7, 17)))


def _placed(making: Making) -> tuple[Any, Taken, DeviceArray]:
    made, capsules = export(making, "device")
    taken = take(capsules, "device")
    return made, taken, taken.placed


def _device(making: Making) -> None:
    made, _taken, placed = _placed(making)
    expect(placed.device_type in _DEVICES, "one of the device types", placed.device_type)
    if hasattr(made, "__dlpack_device__"):
        kind, index = map(int, made.__dlpack_device__())
        expect_equal(placed.device_type, kind, "the device type of __dlpack_device__,")
        expect(kind == 1 or placed.device_id == index, f"device_id {index} of __dlpack_device__", placed.device_id)


def _reserved(making: Making) -> None:
    _made, _taken, placed = _placed(making)
    expect_equal(list(placed.reserved), [0, 0, 0], "reserved bytes")


def _no_event(making: Making) -> None:
    _made, _taken, placed = _placed(making)
    if placed.device_type != 1:
        raise Skip("the array is on a device with events")
    expect(not placed.sync_event, "no sync_event on the CPU, which has no type of event", placed.sync_event)


# --- the table --------------------------------------------------------------------------------------------------------


_OF_ROUTES: tuple[Row, ...] = (
    (
        "call",
        "capsules have the names of the protocol, and hold unreleased structs",
        PYCAPSULE,
        _plain_call,
        MUST,
        False,
    ),
    ("fresh", "a capsule can be consumed once: each call gives its own", PYCAPSULE, _fresh, MUST, True),
    ("requested-none", "requested_schema is a capsule or None", PYCAPSULE, _requested_none, MUST, False),
    ("requested-own", "the callee attempts to provide the requested schema", PYCAPSULE, _requested_own, SHOULD, False),
    (
        "requested-wider",
        "conversion is best-effort: if the schema cannot be provided, that of None is returned",
        PYCAPSULE,
        _requested_wider,
        SHOULD,
        False,
    ),
    (
        "requested-fields",
        "a schema that is not compatible with the data, with other fields, raises an exception",
        PYCAPSULE,
        _requested_other,
        SHOULD,
        False,
    ),
    *(
        (
            f"requested-released[{kind}]",
            "the requested schema is left to the caller, or moved and released once",
            ARROW_DATA,
            partial(_requested_released, kind),
            MUST,
            True,
        )
        for kind in ("own", "fields")
    ),
    *(
        (
            f"requested-junk[{name}]",
            "anything but a capsule named arrow_schema is an error",
            ROBUST,
            partial(_requested_junk, name),
            SHOULD,
            True,
        )
        for name in ("number", "name", "string")
    ),
)

_ONCE: tuple[Row, ...] = (
    ("schema.call", "__arrow_c_schema__ gives a capsule named arrow_schema", PYCAPSULE, _schema_alone, MUST, True),
    ("device.device", "device_type and device_id say where the buffers are", ARROW_DEVICE, _device, MUST, False),
    ("device.reserved", "the reserved bytes are zero", ARROW_DEVICE, _reserved, SHOULD, False),
    (
        "device.no-event",
        "sync_event is NULL where no synchronisation is needed",
        ARROW_DEVICE,
        _no_event,
        SHOULD,
        False,
    ),
    *(
        (
            f"device.keyword[{value}]",
            "unknown keywords are taken if they are None, and are a NotImplementedError if not",
            PYCAPSULE,
            partial(_device_keyword, value),
            SHOULD,
            False,
        )
        for value in (None, 1)
    ),
)


CHECKS: tuple[Check, ...] = tuple(rows(_OF_ROUTES, _ONCE))
