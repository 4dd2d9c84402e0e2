"""Which memory of this process is shared already, and by which descriptor."""

from __future__ import annotations

import array
import fcntl
import os
import stat
import struct
from typing import NamedTuple

from dlbridge import _core
from dlbridge._reach import reach
from dlbridge._sharing import layouts, segments
from dlbridge._sharing.segments import Segment

# PROCMAP_QUERY of linux/fs.h (6.11): size, flags, address, start, end, found flags, page size, offset, inode,
# major, minor, size of the name, of the build id, and where they go.
_QUERY = struct.Struct("9Q4I2Q")
_PROCMAP_QUERY = 0xC0006611 | _QUERY.size << 16
_WRITABLE, _SHARED, _OF_A_FILE = 2, 8, 0x20
_LONGEST_NAME = 4096


class Area(NamedTuple):
    """A shared mapping of a file: where it lies in memory, and what of the file it shows."""

    begin: int
    end: int
    writable: bool
    offset: int
    device: int
    inode: int
    path: str


def _asked(descriptor: int, address: int) -> Area | None:
    name = array.array("B", bytes(_LONGEST_NAME))
    query = bytearray(
        _QUERY.pack(
            _QUERY.size, _SHARED | _OF_A_FILE, address, *[0] * 6, 0, 0, _LONGEST_NAME, 0, name.buffer_info()[0], 0
        )
    )
    try:
        fcntl.ioctl(descriptor, _PROCMAP_QUERY, query)
    except FileNotFoundError:
        return None
    _, _, _, begin, end, flags, _, offset, inode, major, minor, length, *_ = _QUERY.unpack(query)
    path = os.fsdecode(name[: max(length - 1, 0)].tobytes())
    return Area(begin, end, bool(flags & _WRITABLE), offset, os.makedev(major, minor), inode, path)


def _read(text: bytes, address: int) -> Area | None:
    """What the text of /proc/self/maps says of an address."""
    for line in text.splitlines():
        span, access, offset, device, inode, *path = line.split(None, 5)
        begin, end = (int(number, 16) for number in span.split(b"-"))
        if not begin <= address < end:
            continue
        if access[3:4] != b"s" or not int(inode):
            return None
        major, minor = (int(number, 16) for number in device.split(b":"))
        name = os.fsdecode(path[0]) if path else ""
        writable = access[1:2] == b"w"
        return Area(begin, end, writable, int(offset, 16), os.makedev(major, minor), int(inode), name)
    return None


def area_of(address: int) -> Area | None:
    """The shared mapping of a file at `address`, if there is one."""
    with open("/proc/self/maps", "rb", buffering=0) as maps:
        try:
            return _asked(maps.fileno(), address)
        except OSError:  # an older kernel
            return _read(maps.readall(), address)


def _matching_descriptor(area: Area, writable: bool) -> int | None:
    """Another descriptor of the file that one of this process's is open for."""
    try:
        names = os.listdir("/proc/self/fd")
    except OSError as error:
        segments.refuse_descriptor(error, "share()")
    for name in names:
        try:
            found = os.fstat(int(name))
            if (found.st_dev, found.st_ino) != (area.device, area.inode) or not stat.S_ISREG(found.st_mode):
                continue
            fd = segments.opened_by_path(f"/proc/self/fd/{name}", area.device, area.inode, writable)
        except OSError:  # closed since, or not ours to open so
            continue
        if fd is not None:
            return fd
    return None


def segment_of(begin: int, end: int, writable: bool) -> tuple[Segment, int] | None:
    """The segment that the memory from `begin` to `end` lies in, and at which offset; None where it is private.

    Memory that is shared, but whose descriptor cannot be had, counts as private.
    """
    try:
        area = area_of(begin)
    except OSError as error:
        segments.refuse_descriptor(error, "share()")
    if area is None or end > area.end or (writable and not area.writable):
        return None
    offset = area.offset + begin - area.begin
    segment = segments.known(area.device, area.inode, writable)
    if segment is None:
        try:
            fd = segments.opened_by_path(area.path, area.device, area.inode, writable)
        except OSError:
            fd = None
        if fd is None:
            fd = _matching_descriptor(area, writable)
        if fd is None:
            return None
        segment = segments.adopted(fd, writable)
    if offset + end - begin > os.fstat(segment.fd).st_size:
        return None  # past the end of a file that was cut
    return segment, offset


def found(tensor: _core.HostTensor) -> tuple[Segment, int, tuple[int, ...] | None] | None:
    """The segment of a tensor with elements, its offset there, and its strides, None in C order; None if private."""
    strides = layouts.strides_of(tensor, "share()")
    low, high = (0, tensor.nbytes) if strides is None else reach(tensor.itemsize, tensor.shape, strides)
    segment = segment_of(tensor.data_ptr + low, tensor.data_ptr + high, not tensor.readonly)
    return segment and (*segment, strides)


def is_shared(tensor: _core.HostTensor) -> bool:
    """Whether `tensor` lies in memory that another process can map."""
    return tensor.size > 0 and found(tensor) is not None
