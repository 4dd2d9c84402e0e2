"""Arrow's structs by ctypes: producers that are as good or as bad as a test wants, and count what is released."""

import ctypes
import json
import struct
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_void_p

from dlbridge.tests.conformance._abi import capsule_pointer, new_capsule


class Schema(Structure):
    pass


class Array(Structure):
    pass


class Stream(Structure):
    pass


RELEASE = CFUNCTYPE(None, c_void_p)
Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(Schema))),
    ("dictionary", POINTER(Schema)),
    ("release", RELEASE),
    ("private_data", c_void_p),
]
Array._fields_ = [
    *((name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(Array))),
    ("dictionary", POINTER(Array)),
    ("release", RELEASE),
    ("private_data", c_void_p),
]
GET_SCHEMA = CFUNCTYPE(c_int, c_void_p, POINTER(Schema))
GET_NEXT = CFUNCTYPE(c_int, c_void_p, POINTER(Array))
GET_ERROR = CFUNCTYPE(c_void_p, c_void_p)
Stream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", GET_ERROR),
    ("release", RELEASE),
    ("private_data", c_void_p),
]


class DeviceArray(Structure):
    _fields_ = [
        ("array", Array),
        ("device_id", c_int64),
        ("device_type", c_int32),
        ("sync_event", c_void_p),
        ("reserved", c_int64 * 3),
    ]


NAMES = {
    Schema: b"arrow_schema",
    Array: b"arrow_array",
    Stream: b"arrow_array_stream",
    DeviceArray: b"arrow_device_array",
}


def capsule(value, name=None):
    """Of a struct that the test keeps."""
    return new_capsule(ctypes.addressof(value), name or NAMES[type(value)])


def struct_of(given, kind):
    """The struct in a capsule."""
    return kind.from_address(capsule_pointer(given, NAMES[kind]))


def metadata(**pairs):
    """The block of key-value pairs; `ext` and `json` are the two keys of an extension type."""
    keys = {"ext": "ARROW:extension:name", "json": "ARROW:extension:metadata"}
    block = struct.pack("=i", len(pairs))
    for key, value in pairs.items():
        for text in (keys.get(key, key).encode(), value if isinstance(value, bytes) else value.encode()):
            block += struct.pack("=i", len(text)) + text
    return block


def fixed_shape(shape, **more):
    return metadata(ext="arrow.fixed_shape_tensor", json=json.dumps({"shape": shape, **more}))


class Maker:
    """Makes structs, keeps all that they point to, and counts releases by kind."""

    def __init__(self):
        self.kept = []
        self.made = 0
        self.released = []

    def keep(self, value):
        self.kept.append(value)
        return value

    def _release_of(self, kind, **kept):
        def release(address):
            found = kind.from_address(address)
            inner = [found.children[i] for i in range(len(kept.get("children", ())))] + [kept.get("dictionary")]
            for child in filter(None, inner):
                if child.contents.release:
                    child.contents.release(ctypes.addressof(child.contents))
            found.release = RELEASE()
            self.released.append(kind.__name__)

        return self.keep(RELEASE(release))

    def _pointers(self, kind, items):
        if not items:
            return None
        return self.keep((POINTER(kind) * len(items))(*[ctypes.pointer(self.keep(item)) for item in items]))

    def schema(self, format=b"l", name=b"", block=None, children=(), dictionary=None, **fields):
        pointer = None if dictionary is None else ctypes.pointer(self.keep(dictionary))
        release = self._release_of(Schema, children=children, dictionary=pointer)
        made = Schema(format=format, name=name, release=release, n_children=len(children))
        if block is not None:
            made.metadata = ctypes.cast(self.keep(ctypes.create_string_buffer(block, len(block))), c_void_p)
        if children:
            made.children = self._pointers(Schema, children)
        if dictionary is not None:
            made.dictionary = pointer
        return self._finish(made, fields)

    def array(self, length=4, buffers=None, children=(), **fields):
        """`buffers`: bytes or None each; by default no bitmap and the int64 numbers from 0 on."""
        if buffers is None:
            buffers = (None, struct.pack(f"={max(length, 0)}q", *range(max(length, 0))))
        places = [
            None if b is None else ctypes.addressof(self.keep(ctypes.create_string_buffer(b, len(b)))) for b in buffers
        ]
        release = self._release_of(Array, children=children)
        made = Array(length=length, n_buffers=len(places), n_children=len(children), release=release)
        made.buffers = self.keep((c_void_p * max(len(places), 1))(*places))
        if children:
            made.children = self._pointers(Array, children)
        return self._finish(made, fields)

    def _finish(self, made, fields):
        for name, value in fields.items():
            setattr(made, name, value)
        self.made += 1
        return self.keep(made)

    def stream(self, schema, arrays, fails_at=None, says=b"the disk is on fire"):
        """Gives the structs one after the other; call number `fails_at` (0: get_schema) fails with EIO."""
        state = {"calls": 0}
        queue = list(arrays)

        def give(target, source):
            call, state["calls"] = state["calls"], state["calls"] + 1
            if call == fails_at:
                return 5
            if source is None:
                target.contents.release = RELEASE()
            else:
                ctypes.memmove(target, ctypes.byref(source), ctypes.sizeof(source))
                source.release = RELEASE()
            return 0

        text = None if says is None else ctypes.addressof(self.keep(ctypes.create_string_buffer(says)))
        made = Stream(
            get_schema=self.keep(GET_SCHEMA(lambda _, out: give(out, schema))),
            get_next=self.keep(GET_NEXT(lambda _, out: give(out, queue.pop(0) if queue else None))),
            get_last_error=self.keep(GET_ERROR(lambda _: text)),
            release=self._release_of(Stream),
        )
        self.made += 1
        return self.keep(made)


class Column:
    def __init__(self, schema, array):
        self.given = (capsule(schema), capsule(array))

    def __arrow_c_array__(self, requested_schema=None):
        return self.given


class Chunks:
    def __init__(self, stream):
        self.given = capsule(stream)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.given


class OnDevice:
    def __init__(self, maker, schema, array, device_type, device_id=0, event=None):
        placed = maker.keep(DeviceArray(array=array, device_id=device_id, device_type=device_type, sync_event=event))
        array.release = RELEASE()
        self.given = (capsule(schema), capsule(placed))

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        return self.given
