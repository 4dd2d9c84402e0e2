"""Arrow structs, as good or as bad as a check wants: what they point to lives on, and every release is counted."""

from __future__ import annotations

import ctypes as ct
import struct as packing
from collections.abc import Sequence
from ctypes import pythonapi
from typing import Any

from dlbridge.tests.conformance._adversary import _kept
from dlbridge.tests.conformance._arrow_abi import (
    GET_ERROR,
    GET_NEXT,
    GET_NEXT_PLACED,
    GET_SCHEMA,
    RELEASE,
    Array,
    DeviceArray,
    DeviceStream,
    Schema,
    Stream,
    base_of,
    capsule,
)

_EIO = 5
_POISON = 0xA5

# A consumer may release with an exception pending, which Python code cannot run under. It is lost then, and the
# consumer's refusal is a SystemError: the count is right, which is what matters here.
_clear_error = ct.PYFUNCTYPE(None)(("PyErr_Clear", pythonapi))


class Made:
    """What became of one struct: `releases` are calls of its callback, `given` says that a stream handed it out."""

    def __init__(self, struct: Any) -> None:
        self.struct = struct  # where it was made, or where it was put since
        self.releases = 0
        self.given = False
        self.parent: Any = None

    @property
    def is_moved(self) -> bool:
        """The consumer marked it released, or released it."""
        return self.given or not base_of(self.struct).release

    def __str__(self) -> str:
        return type(base_of(self.struct)).__name__


class Maker:
    """Makes structs, keeps all that they point to, and counts releases.

    `misuse` says what no consumer may do. Data buffers are overwritten when their array is released.
    """

    def __init__(self) -> None:
        _kept.append(self)  # a faulty consumer may use what it was lent at any time
        self.kept: list[Any] = []
        self.structs: list[Made] = []
        self.released: list[str] = []
        self.misuse: list[str] = []
        self.error_reads = 0
        self._releasing = 0

    @property
    def made(self) -> int:
        return len(self.structs)

    def keep(self, value: Any) -> Any:
        self.kept.append(value)
        return value

    def _release_of(self, made: Made, **kept: Any) -> Any:
        kind = type(made.struct)

        def release(address: int, clear: Any = _clear_error) -> None:
            clear()
            if made.parent is not None and not self._releasing and address == ct.addressof(made.struct):
                self.misuse.append(f"the release callback of a child of {kind.__name__} was called by the consumer")
            made.releases += 1
            found = kind.from_address(address)
            inner = [found.children[i] for i in range(len(kept.get("children", ())))] + [kept.get("dictionary")]
            self._releasing += 1
            for child in filter(None, inner):
                if child.contents.release:
                    child.contents.release(ct.addressof(child.contents))
            self._releasing -= 1
            for buffer in kept.get("poisoned", ()):
                ct.memset(buffer, _POISON, ct.sizeof(buffer))
            found.release = RELEASE()
            self.released.append(kind.__name__)

        return self.keep(RELEASE(release))

    def _pointers(self, kind: Any, items: Sequence[Any]) -> Any:
        if not items:
            return None
        pointers = [ct.pointer(self.keep(item)) for item in items]
        return self.keep((ct.POINTER(kind) * len(items))(*pointers))

    def _new(self, struct: Any, children: Sequence[Any] = (), dictionary: Any = None, **kept: Any) -> Any:
        made = Made(struct)
        self.structs.append(made)
        struct.made = made
        for inner in (*children, *([] if dictionary is None else [dictionary])):
            inner.made.parent = made
        if dictionary is not None:
            kept["dictionary"] = ct.pointer(self.keep(dictionary))
            struct.dictionary = kept["dictionary"]
        if children:
            struct.n_children, struct.children = len(children), self._pointers(type(struct), children)
        struct.release = self._release_of(made, children=children, **kept)
        return self.keep(struct)

    def schema(
        self,
        format: bytes | None = b"l",
        name: bytes | None = b"",
        block: bytes | None = None,
        children: Sequence[Any] = (),
        dictionary: Any = None,
        **fields: Any,
    ) -> Any:
        made = self._new(Schema(format=format, name=name), children, dictionary)
        if block is not None:
            made.metadata = ct.cast(self.keep(ct.create_string_buffer(block, len(block))), ct.c_void_p)
        return _with(made, fields)

    def array(
        self,
        length: int = 4,
        buffers: Sequence[bytes | None] | None = None,
        children: Sequence[Any] = (),
        dictionary: Any = None,
        **fields: Any,
    ) -> Any:
        """`buffers`: bytes or None each; by default no bitmap and the int64 numbers from 0 on."""
        if buffers is None:
            buffers = (None, packing.pack(f"={max(length, 0)}q", *range(max(length, 0))))
        blocks = [None if b is None else self.keep(ct.create_string_buffer(b, len(b))) for b in buffers]
        places = [None if block is None else ct.addressof(block) for block in blocks]
        struct = Array(length=length, n_buffers=len(places))
        struct.buffers = self.keep((ct.c_void_p * max(len(places), 1))(*places))
        made = self._new(struct, children, dictionary, poisoned=[b for b in blocks if b is not None])
        return _with(made, fields)

    def stream(
        self,
        schema: Any,
        arrays: Sequence[Any],
        fails_at: int | None = None,
        says: bytes | None = b"the disk is on fire",
        device_type: int | None = None,
    ) -> Any:
        """Gives the structs one after the other; call number `fails_at` (0: get_schema) fails with EIO.

        With a `device_type` it is a device stream, and `arrays` are what `on_device` made of them.
        """
        state = {"calls": 0, "failed": False}
        queue = list(arrays)

        def give(target: Any, source: Any) -> int:
            if made.made.releases:
                self.misuse.append("a callback of a released stream was called")
            call, state["calls"] = state["calls"], state["calls"] + 1
            state["failed"] = call == fails_at
            if state["failed"]:
                return _EIO
            if source is None:
                base_of(target.contents).release = RELEASE()
            else:
                ct.memmove(target, ct.byref(source), ct.sizeof(source))
                base_of(source).release, source.made.given = RELEASE(), True
            return 0

        def last_error(_: Any) -> int | None:
            self.error_reads += 1
            if not state["failed"]:
                self.misuse.append("get_last_error was called where no call had failed")
            return text

        text = None if says is None else ct.addressof(self.keep(ct.create_string_buffer(says)))
        kind: Any = Stream if device_type is None else DeviceStream
        get_next = GET_NEXT if device_type is None else GET_NEXT_PLACED
        made = kind(
            get_schema=self.keep(GET_SCHEMA(lambda _, out: give(out, schema))),
            get_next=self.keep(get_next(lambda _, out: give(out, queue.pop(0) if queue else None))),
            get_last_error=self.keep(GET_ERROR(last_error)),
        )
        if device_type is not None:
            made.device_type = device_type
        return self._new(made)

    def on_device(self, array: Any, device_type: int, device_id: int = 0, event: Any = None) -> Any:
        """`array` as it is embedded in an ArrowDeviceArray."""
        placed = self.keep(DeviceArray(array=array, device_id=device_id, device_type=device_type, sync_event=event))
        array.release = RELEASE()
        array.made.struct = placed.array
        placed.made = array.made
        return placed

    def unsettled(self) -> tuple[str, str] | None:
        """Each struct that was taken is released once, each other one never; children share their parent's fate."""
        if self.misuse:
            return "no misuse of a struct", self.misuse[0]
        for made in self.structs:
            base = made
            while base.parent is not None:
                base = base.parent
            wanted = int(base.is_moved)
            if made.releases != wanted:
                how = "was taken" if wanted else "was left"
                child = "a child of an" if base is not made else "an"
                return (
                    f"{wanted} calls of the release callback of {child} Arrow{base} that {how}",
                    f"{made.releases}, after the result was dropped",
                )
        return None

    @property
    def hopeless(self) -> bool:
        """What has been released twice gets no better."""
        return bool(self.misuse) or any(made.releases > 1 for made in self.structs)


def _with(made: Any, fields: dict[str, Any]) -> Any:
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class Column:
    def __init__(self, schema: Any, array: Any) -> None:
        self.given: Any = (capsule(schema), capsule(array))

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.given


class Chunks:
    def __init__(self, stream: Any) -> None:
        self.given: Any = capsule(stream)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.given


class DeviceChunks:
    def __init__(self, stream: Any) -> None:
        self.given: Any = capsule(stream)

    def __arrow_c_device_stream__(self, requested_schema: Any = None, **kwargs: Any) -> Any:
        return self.given


class OnDevice:
    def __init__(
        self, maker: Maker, schema: Any, array: Any, device_type: int, device_id: int = 0, event: Any = None
    ) -> None:
        self.given: Any = (capsule(schema), capsule(maker.on_device(array, device_type, device_id, event)))

    def __arrow_c_device_array__(self, requested_schema: Any = None, **kwargs: Any) -> Any:
        return self.given
