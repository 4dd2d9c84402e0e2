"""What `conformance_fake_arrow` does to sound structs, by the name of the fault."""

from __future__ import annotations

import ctypes as ct

from dlbridge.tests.conformance._arrow_abi import RELEASE, Array, Schema

_kept = []
_nothing = RELEASE(lambda address: None)


def _keep(value):
    _kept.append(value)
    return value


def _set(name, value):
    return lambda struct: setattr(struct, name, value)


def _shift(struct):
    if struct.n_buffers == 2 and struct.buffers[1]:
        struct.buffers[1] += 1


def _no_data(struct):
    if struct.n_buffers == 2:
        struct.buffers[1] = None


def _short_child(struct):
    if struct.n_children:
        struct.children[0].contents.length -= 1


def _orphan(struct):
    struct.n_children = 0


def _null_child(struct):
    struct.children = None


def _indices_of_floats(struct):
    inner = _keep(Schema(format=b"i", release=_nothing))
    struct.format, struct.dictionary = b"f", ct.pointer(inner)


def _dictionary(struct):
    struct.dictionary = ct.pointer(_keep(Array(release=_nothing)))


def _text(struct):
    struct.format = b"u"


def _falling(struct):
    """Offsets of five strings, the second of which ends before it begins."""
    offsets, text = _keep((ct.c_int32 * 6)(0, 3, 1, 4, 5, 6)), _keep(ct.create_string_buffer(b"abcdef"))
    struct.buffers = _keep((ct.c_void_p * 3)(None, ct.addressof(offsets), ct.addressof(text)))
    struct.n_buffers = 3


SCHEMA_FAULTS = {
    "float_indices": _indices_of_floats,
    "falling_offsets": _text,
    "unknown_format": _set("format", b"q"),
    "no_format": _set("format", None),
    "wrong_format": lambda s: setattr(s, "format", {b"i": b"I"}.get(s.format, s.format)),
    "strange_flag": _set("flags", 64),
    "ordered_without_dictionary": _set("flags", 1),
    "schema_too_few_children": lambda s: setattr(s, "n_children", 0),
    "schema_null_children": _null_child,
}
ARRAY_FAULTS = {
    "stray_dictionary": _dictionary,
    "falling_offsets": _falling,
    "too_few_children": _orphan,
    "one_buffer": _set("n_buffers", 1),
    "three_buffers": _set("n_buffers", 3),
    "negative_length": _set("length", -1),
    "negative_offset": _set("offset", -1),
    "null_count_too_low": _set("null_count", -2),
    "null_count_too_high": _set("null_count", 1000),
    "null_count_off_by_one": lambda a: setattr(a, "null_count", a.null_count + 1),
    "nulls_without_bitmap": lambda a: setattr(a, "null_count", -1),
    "no_data": _no_data,
    "unaligned": _shift,
    "short_child": _short_child,
    "loses_offset": _set("offset", 0),
    "loses_bitmap": lambda a: (a.buffers.__setitem__(0, None), setattr(a, "null_count", 0)),
}
OF_LISTS = {"too_few_children", "short_child"}
