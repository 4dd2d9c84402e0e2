"""A library of Arrow columns in plain Python, in which faults can be planted: `make_<fault>` is its factory with it.

`make_sound` has none, and `make_sound_failing` none either: its stream fails as it should. What was released is
overwritten. The factories come from `__getattr__`, so that a child process can import them by name.
"""

from __future__ import annotations

import ctypes as ct
import functools
import itertools

import numpy as np
from conformance_fake_arrow_faults import ARRAY_FAULTS, OF_LISTS, SCHEMA_FAULTS
from dlbridge.tests.conformance import Unsupported, _abi
from dlbridge.tests.conformance._arrow_abi import (
    GET_ERROR,
    GET_NEXT,
    GET_SCHEMA,
    NAMES,
    RELEASE,
    Array,
    DeviceArray,
    Schema,
    Stream,
    base_of,
    move,
    pack_metadata,
    release,
    struct_of,
)
from dlbridge.tests.conformance._arrow_format import FORMAT_OF, nodes
from dlbridge.tests.conformance._spec import ARROW_DTYPES

_contents = {}  # by private_data: what a struct owns; gone with its release
_in_capsules = {}  # by address: structs that capsules own
_keys = itertools.count(1)
_pointer = ct.PYFUNCTYPE(ct.c_void_p, ct.c_void_p, ct.c_char_p)(("PyCapsule_GetPointer", ct.pythonapi))


class Contents:
    def __init__(self, fault, *, buffers=(), children=(), keep=()):
        self.fault, self.buffers, self.children, self.keep = fault, buffers, children, keep

    def free(self, released):
        for child in self.children:
            if child.release and self.fault != "forgets_children":
                child.release(ct.addressof(child))
            elif not child.release and self.fault == "frees_moved_children":
                _contents.pop(child.private_data).free(child)
        for buffer in self.buffers:
            ct.memset(buffer, 0xA5, ct.sizeof(buffer))


def _release_callback(kind):
    @RELEASE
    def callback(address):
        struct = kind.from_address(address)
        found = _contents.get(struct.private_data)
        if found is None or found.fault == "never_frees":
            struct.release = RELEASE()
            return
        del _contents[struct.private_data]
        found.free(struct)
        keeps = {Stream: "stream_keeps_release"}.get(kind, "keeps_release")
        if found.fault != keeps:
            struct.release = RELEASE()

    return callback


_RELEASE = {kind: _release_callback(kind) for kind in (Schema, Array, Stream)}


def _own(struct, contents):
    """`struct` with its release callback, which needs nothing but private_data."""
    struct.private_data = next(_keys)
    _contents[struct.private_data] = contents
    struct.release = _RELEASE[type(struct)]
    return struct


def _pointers(kind, structs):
    return (ct.POINTER(kind) * len(structs))(*map(ct.pointer, structs)) if structs else None


def _destructor(kind):
    @_abi.DESTRUCTOR
    def destroy(capsule):
        address = _pointer(capsule, NAMES[kind])
        struct, fault = _in_capsules.pop(address)
        base = base_of(struct)
        if fault == "destroys_consumed" and base.private_data in _contents:
            _contents.pop(base.private_data).free(base)
        release(struct)

    return destroy


_DESTROY = {kind: _destructor(kind) for kind in NAMES}


def _capsule(struct, fault, name=None):
    _in_capsules[ct.addressof(struct)] = (struct, fault)
    destructor = None if fault == "no_destructor" else _DESTROY[type(struct)]
    return _abi.new_capsule(ct.addressof(struct), name or NAMES[type(struct)], destructor)


# --- structs ----------------------------------------------------------------------------------------------------------


def _schema(spec, fault, axis=0):
    deeper = [_schema(spec, fault, axis + 1)] if axis + 1 < len(spec.shape) else []
    format = f"+w:{spec.shape[axis + 1]}" if deeper else FORMAT_OF[spec.dtype]
    texts = [ct.create_string_buffer(format.encode()), ct.create_string_buffer(b"item" if axis else b"")]
    block = pack_metadata([(b"key", b"value")])
    if fault == "bad_metadata":
        block = b"\xff" * 4 + block[4:]
    elif fault == "two_extensions":
        block = pack_metadata([(b"ARROW:extension:name", b"a")] * 2)
    texts.append(ct.create_string_buffer(block, len(block) + 64))
    struct = Schema(n_children=len(deeper), children=_pointers(Schema, deeper), flags=2)
    struct.format, struct.name = (ct.cast(text, ct.c_char_p) for text in texts[:2])
    struct.metadata = ct.addressof(texts[2])
    if fault == "unterminated_name":
        struct.name = b"\xff"
    _own(struct, Contents(fault, children=deeper, keep=(texts, struct.children)))
    edit = SCHEMA_FAULTS.get(fault)
    if edit is not None:
        edit(struct)
    return struct


def _bits(flags):
    return np.packbits(np.array(flags, bool), bitorder="little").tobytes()


def _array(spec, values, fault, axis=0):
    lead = 1 if spec.layout == "offset" and axis == 0 else 0
    inner = axis + 1 < len(spec.shape)
    extent = len(values) if len(spec.shape) == 1 else int(np.prod(spec.shape[: axis + 1]))
    children, raw = [], [None]
    if inner:
        children = [_array(spec, values, fault, axis + 1)]
    else:
        nulls = [value is None for value in values]
        filled = [values[0] if values else 0] * lead + [0 if value is None else value for value in values]
        raw.append(_bits(filled) if spec.dtype == "bool" else np.array(filled, spec.dtype).tobytes())
        if any(nulls):
            raw[0] = _bits([True] * lead + [not null for null in nulls])
    blocks = [None if data is None else ct.create_string_buffer(data + b"\0", len(data) + 16) for data in raw]
    struct = Array(length=extent, offset=lead, n_buffers=len(raw), n_children=len(children))
    struct.null_count = 0 if inner else sum(nulls)
    struct.buffers = (ct.c_void_p * len(raw))(*(None if b is None else ct.addressof(b) for b in blocks))
    struct.children = _pointers(Array, children)
    _own(struct, Contents(fault, buffers=list(filter(None, blocks)), children=children, keep=(struct.buffers,)))
    _contents[struct.private_data].keep = (struct.buffers, struct.children)
    edit = ARRAY_FAULTS.get(fault)
    if edit is not None and (not inner or fault in OF_LISTS):
        edit(struct)
    return struct


# --- streams ----------------------------------------------------------------------------------------------------------


class Source(Contents):
    """What a stream owns."""

    def __init__(self, spec, parts, fault):
        super().__init__(fault)
        self.spec, self.parts, self.asked, self.at, self.lent = spec, parts, 0, 0, []

    def free(self, released):
        if self.fault == "stream_owns_chunks":
            for block in self.lent:
                ct.memset(block, 0xA5, ct.sizeof(block))


def _source(address):
    return _contents[Stream.from_address(address).private_data]


def _give(out, struct):
    ct.memmove(out, ct.byref(struct), ct.sizeof(struct))
    return 0


@GET_SCHEMA
def _get_schema(address, out):
    source = _source(address)
    source.asked += 1
    struct = _schema(source.spec, source.fault)
    if source.fault == "stream_changes_schema" and source.asked > 1:
        struct.format = b"L"
    return _give(out, struct)


@GET_NEXT
def _get_next(address, out):
    source = _source(address)
    if source.fault in ("sound_failing", "error_of_noise", "negative_error") and source.at == len(source.parts):
        return -5 if source.fault == "negative_error" else 5
    if source.at >= len(source.parts):
        if source.fault == "stream_starts_again":
            source.at = 0
        return _give(out, Array())
    values, source.at = source.parts[source.at], source.at + 1
    struct = _array(source.spec, values, source.fault)
    source.lent += _contents[struct.private_data].buffers
    return _give(out, struct)


_NOISE, _WORDS = ct.create_string_buffer(b"\xff\xfe"), ct.create_string_buffer("it ran dry \N{EM DASH} really".encode())


@GET_ERROR
def _get_last_error(address):
    return ct.addressof(_NOISE if _source(address).fault == "error_of_noise" else _WORDS)


# --- the library ------------------------------------------------------------------------------------------------------


class Column:
    def __init__(self, spec, fault):
        self.spec, self.fault = spec, fault
        self.given, self.memory = None, None

    @property
    def __array_interface__(self):
        if self.spec.layout in ("nulls", "chunks"):
            raise AttributeError("__array_interface__")
        self.memory = np.array(self.spec.values).astype(self.spec.dtype).reshape(self.spec.shape)
        if self.fault == "interface_disagrees":
            self.memory = self.memory + 1
        return self.memory.__array_interface__

    def _honour(self, request):
        """It has one representation of everything: a request is looked at, and left to the caller."""
        if request is None:
            return
        if self.fault == "takes_junk" and not (
            _abi.is_capsule(request) and _abi.capsule_name(request) == b"arrow_schema"
        ):
            return
        asked = struct_of(request, Schema)
        if self.fault == "refuses_requests":
            raise NotImplementedError("requested_schema")
        if asked.n_children != (len(self.spec.shape) > 1) and self.fault != "takes_any_fields":
            raise ValueError("other fields")
        if self.fault == "releases_request":
            copy = Schema.from_buffer_copy(asked)
            release(copy)

    def _pair(self, request, wrap):
        self._honour(request)
        if self.spec.layout == "chunks":
            raise ValueError("in chunks")
        fault = self.fault
        if fault == "same_capsules" and self.given is not None:
            return self.given
        schema, array = _schema(self.spec, fault), _array(self.spec, self.spec.values, fault)
        if fault == "claims_the_request" and request is not None:
            schema.format = struct_of(request, Schema).format
        elif fault == "schema_owns_array":
            _contents[schema.private_data].buffers = _contents[array.private_data].buffers
        elif fault == "lives_in_its_array" and array.n_buffers == 2:
            self.block = _contents[array.private_data].buffers[-1]
        elif fault == "released_already":
            array.release = RELEASE()
        given = (_capsule(schema, fault), _capsule(wrap(array), fault))
        if fault == "wrong_name":
            given = (given[0], _capsule(Array(), fault, b"arrow_arrays"))
        elif fault == "list_of_capsules":
            given = list(given)
        if fault == "same_capsules":
            self.given = given
        return given

    def __del__(self):
        if self.fault == "lives_in_its_array" and hasattr(self, "block"):
            ct.memset(self.block, 0xA5, ct.sizeof(self.block))

    def __arrow_c_array__(self, requested_schema=None):
        return self._pair(requested_schema, lambda array: array)

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        if any(value is not None for value in options.values()) and self.fault != "takes_any_keyword":
            raise NotImplementedError(f"keywords {sorted(options)}")
        placed = DeviceArray(device_type=99 if self.fault == "device_99" else 1, device_id=-1)
        if self.fault == "dirty_reserve":
            placed.reserved[1] = 7
        elif self.fault == "event_on_the_host":
            placed.sync_event = 64

        def wrap(array):
            placed.array = move(array)
            return placed

        return self._pair(requested_schema, wrap)

    def __arrow_c_stream__(self, requested_schema=None):
        self._honour(requested_schema)
        spec, fault = self.spec, self.fault
        values = spec.values[::-1] if fault == "stream_disagrees" else spec.values
        cut = 2 if spec.layout == "chunks" else len(values)
        parts = [values[:cut], values[cut:]] if len(spec.shape) == 1 and cut < len(values) else [values]
        struct = Stream(get_schema=_get_schema, get_next=_get_next, get_last_error=_get_last_error)
        if fault == "stream_without_errors":
            struct.get_last_error = GET_ERROR()
        _own(struct, Source(spec, parts, fault))
        return _capsule(struct, fault)

    def __arrow_c_schema__(self):
        other = self.fault == "schema_of_another_type"
        name = b"schema" if self.fault == "schema_of_another_name" else None
        return _capsule(_schema(type(self.spec)((5,), "uint8") if other else self.spec, self.fault), self.fault, name)


class NoRequests(Column):
    def __arrow_c_array__(self):
        return super().__arrow_c_array__()

    def __arrow_c_stream__(self):
        return super().__arrow_c_stream__()

    def __arrow_c_device_array__(self):
        return super().__arrow_c_device_array__()


class OnCuda:
    """Sound, and its memory is not the host's: whoever reads it there ends the process."""

    def __init__(self, column):
        self._column = column

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        schema, array = self._column.__arrow_c_device_array__(requested_schema, **options)
        placed = struct_of(array, DeviceArray)
        placed.device_type, placed.device_id = 2, 0
        for node, _ in nodes(placed.array):
            for i in range(node.n_buffers):
                node.buffers[i] = 256 if node.buffers[i] else None
        return schema, array

    def __dlpack_device__(self):
        return (2, 0)


def make(fault, spec):
    if fault == "on_cuda":
        return OnCuda(make("sound", type(spec)(spec.shape, spec.dtype, spec.layout)))
    if spec.dtype not in ARROW_DTYPES or spec.layout not in ("C", "nulls", "chunks", "offset") or not spec.shape:
        raise Unsupported(spec)
    return (NoRequests if fault == "no_requests" else Column)(spec, fault)


def __getattr__(name):
    if name.startswith("make_"):
        return functools.partial(make, name.removeprefix("make_"))
    raise AttributeError(name)
