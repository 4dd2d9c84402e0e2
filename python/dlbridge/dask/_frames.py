"""An array's bytes as frames that arrive where the array can lie, without another copy.

Dask receives the first buffer of a message in one piece with the headers before it, at any address, and each buffer of
another object in memory of its own, which NumPy aligns to 16 bytes. So a frame goes ahead of the array: a byte of
another object, and the array gets memory of its own; or the array's own first bytes, and there is room before it by
which it is moved in place, a fourth of the time of a copy to new memory. Both are Dask's habit and not its promise: the
reader looks at the address, and copies where it must.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from dlbridge import _core

_SMALL = 1 << 16  # bytes: a copy takes no longer than one read more from the connection
_OWN_ALIGNMENT = 16  # bytes, of memory of its own
_ROOM = 64  # bytes: the strictest alignment that any framework asks for

_lock = threading.Lock()


def sent(octets: memoryview, alignment: int, header: dict[str, Any]) -> list[memoryview]:
    """The frames of an array that wants `alignment` bytes, of which `header` then tells."""
    if len(octets) < _SMALL:
        return [octets]
    from distributed.protocol.utils import BIG_BYTES_SHARD_SIZE

    if alignment <= _OWN_ALIGNMENT and len(octets) <= BIG_BYTES_SHARD_SIZE:  # larger: in pieces, each on its own
        return [memoryview(bytearray(1)), octets]
    header["moved"] = 0
    return [octets[:_ROOM], octets]


def received(frames: Sequence[Any], header: dict[str, Any]) -> memoryview:
    """The array's bytes, moved in place where there is room for it."""
    frame = memoryview(frames[-1]) if frames else memoryview(b"")
    return frame if "moved" not in header else _moved(memoryview(frames[0]), frame, header)


def _moved(room: memoryview, frame: memoryview, header: dict[str, Any]) -> memoryview:
    """The bytes that begin header["moved"] before `frame`, which may be read more than once and sent on."""
    from distributed.protocol.utils import host_array_from_buffers, merge_memoryviews

    with _lock:
        before = header["moved"]
        try:
            whole: memoryview = merge_memoryviews([room, frame])
        except ValueError:  # received apart
            if not before:
                return frame
            whole = host_array_from_buffers([room, frame]).toreadonly()
        if not whole.readonly:
            address = _core.asdlpack(whole).data_ptr
            header["moved"] = (address + len(room)) % _ROOM
        begin, found = (len(room) - one for one in (header["moved"], before))
        if begin != found:
            whole[begin : begin + len(frame)] = whole[found : found + len(frame)]
        return whole[begin : begin + len(frame)]
