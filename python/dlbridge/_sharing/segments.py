"""Segments: memory that has a descriptor, so that another process can map it.

A descriptor is opened by another process as ``/proc/PID/fd/N``: the kernel lets the same user do so, no thread has to
serve it, no name is left behind, and what nobody has open or mapped is freed, however its users ended. A descriptor's
number may have been given to another file since, so a segment is known by the device and number of its inode.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, NoReturn

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge._sharing.loans import LoanReference

# From linux/fcntl.h; the module has them only where it was built with such headers.
_ADD_SEALS = getattr(fcntl, "F_ADD_SEALS", 1033)
_SEAL_SIZE = getattr(fcntl, "F_SEAL_SHRINK", 2) | getattr(fcntl, "F_SEAL_GROW", 4)
_SEAL_WRITE = getattr(fcntl, "F_SEAL_WRITE", 8)
_MOST_AT_ONCE = 1 << 30  # bytes; Linux writes less than 2 GiB in one call


class Reference(NamedTuple):
    """What another process needs to open a segment; `pid` has it open as `fd`."""

    pid: int
    fd: int
    device: int
    inode: int
    writable: bool


def refuse_descriptor(error: OSError, operation: str) -> NoReturn:
    """What the kernel said, with the remedy."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise OSError(
            error.errno,
            f"{operation}: no file descriptor is left; each handle and each mapping needs one. Close handles, share "
            "arrays as one tree, or raise the limit: ulimit -n",
        ) from error
    if error.errno in (errno.ENOSPC, errno.ENOMEM, errno.EFBIG):
        raise OSError(
            error.errno,
            f"{operation}: there is no memory left for what is shared, or this process may not have as much. Share "
            "less, close handles, or raise the limit: ulimit -f",
        ) from error
    raise error


class Segment:
    """A descriptor, closed with the last who holds this object: a handle, or an array over its memory."""

    is_cuda = False

    def __init__(self, fd: int, writable: bool) -> None:
        """Owns `fd` from here on."""
        self.fd, self.writable = fd, writable
        self._known: Callable[[], Mapping | None] = lambda: None
        found = os.fstat(fd)
        self.device, self.inode = found.st_dev, found.st_ino
        # Not __del__, in which others would find the segment still, and bring it back to life.
        weakref.finalize(self, os.close, fd).atexit = False

    @property
    def key(self) -> tuple[int, int, bool]:
        return self.device, self.inode, self.writable

    def reference(self) -> Reference:
        return Reference(os.getpid(), self.fd, self.device, self.inode, self.writable)

    def mapped(self, nbytes: int, operation: str) -> Mapping:
        """The mapping of this process, of at least `nbytes`. DataError where the memory is smaller."""
        mapping = self._known()
        if mapping is None or mapping.nbytes < nbytes:
            with _lock:
                mapping = self._known()  # another thread's, meanwhile
                if mapping is None or mapping.nbytes < nbytes:
                    mapping = Mapping(self, nbytes, operation)
                    self._known = weakref.ref(mapping)
        return mapping


class Mapping:
    """A segment in the memory of this process, as long as an array looks at it."""

    protocol = "__array_interface__"
    extras: ClassVar[dict[str, Any]] = {}

    def __init__(self, segment: Segment, nbytes: int, operation: str) -> None:
        self.segment = segment
        size = os.fstat(segment.fd).st_size
        if size < nbytes or size == 0:
            raise _core.DataError(
                f"{operation}: the handle says {nbytes} bytes, and the memory has {size}. The handle is damaged or "
                "forged, or the file was cut"
            )
        access = mmap.PROT_READ | (mmap.PROT_WRITE if segment.writable else 0)
        try:
            self.base = _core.asdlpack(mmap.mmap(segment.fd, size, prot=access))
        except OSError as error:
            refuse_descriptor(error, operation)
        self.address, self.nbytes, self.readonly = self.base.data_ptr, self.base.nbytes, self.base.readonly


_lock = threading.RLock()
_segments: weakref.WeakValueDictionary[tuple[int, int, bool], Segment] = weakref.WeakValueDictionary()


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # a thread that is not in the child may have held it


os.register_at_fork(after_in_child=_after_fork)


def adopted(fd: int, writable: bool) -> Segment:
    """The segment of a descriptor, which is owned from here on; one that is there already if it is the same memory."""
    segment = Segment(fd, writable)
    with _lock:
        return _segments.setdefault(segment.key, segment)


def known(device: int, inode: int, writable: bool) -> Segment | None:
    """The segment of this memory that the process has already."""
    return _segments.get((device, inode, writable))


def opened_by_path(path: str, device: int, inode: int, writable: bool) -> int | None:
    """A descriptor of the file at `path`, None where it is another, or none. OSError where it may not be opened."""
    return opened(path, device, inode, os.O_RDWR if writable else os.O_RDONLY, stat.S_ISREG)


def opened(path: str, device: int, inode: int, access: int, is_kind: Callable[[int], bool]) -> int | None:
    """The same with an access of os.open(), of what is a regular file, a pipe, … as `is_kind` says of its mode."""
    try:
        found = os.stat(path)  # before it is opened: opening a stranger's device or pipe may do something
        if (found.st_dev, found.st_ino) != (device, inode) or not is_kind(found.st_mode):
            return None
        fd = os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, ProcessLookupError):
        return None
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) != (device, inode):
        os.close(fd)
        return None
    return fd


def open_reference(reference: Reference, operation: str) -> Segment:
    """The segment that another process has. FileNotFoundError where it has it no more, PermissionError of the kernel's.

    Memory that this process has already is found, whether the other lives or not.
    """
    writable = reference.writable
    segment = known(reference.device, reference.inode, writable)
    if segment is not None:
        return segment
    return adopted(reached(reference, os.O_RDWR if writable else os.O_RDONLY, stat.S_ISREG, operation), writable)


def reached(reference: Reference | LoanReference, access: int, is_kind: Callable[[int], bool], operation: str) -> int:
    """`opened()` of another process's descriptor, with the errors of `open_reference()`."""
    pid = reference.pid
    try:
        fd = opened(path_of(reference), reference.device, reference.inode, access, is_kind)
    except PermissionError as error:
        raise PermissionError(
            f"{operation}: the kernel refuses process {pid}'s memory: {error.strerror}. Both processes must be of one "
            "user, and memory that was shared read-only is opened so"
        ) from error
    except OSError as error:
        refuse_descriptor(error, operation)
    if fd is None:
        refuse_gone(pid, operation)
    return fd


def path_of(reference: Reference | LoanReference) -> str:
    return f"/proc/{reference.pid}/fd/{reference.fd}"


def is_there(reference: Reference | LoanReference) -> bool:
    """Whether the other process has that descriptor still."""
    try:
        found = os.stat(path_of(reference))
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (reference.device, reference.inode)


def refuse_gone(pid: int, operation: str) -> NoReturn:
    raise FileNotFoundError(
        errno.ENOENT,
        f"{operation}: process {pid} has the memory no more: it ended, closed or dropped its handle, or sees other "
        "processes than this one (a container). Keep the handle where it was made until the others have opened it",
    )


def read_only(fd: int) -> int:
    """A descriptor of the same file that nobody can write by."""
    return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)


def new_memory(nbytes: int, operation: str) -> int:
    """A descriptor of new memory of that size, zeros, which takes none until it is written to."""
    fd = -1
    try:
        fd = os.memfd_create("dlbridge", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, nbytes)
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        refuse_descriptor(error, operation)
    return fd


def write(fd: int, octets: memoryview, offset: int, operation: str) -> None:
    """Copies into new memory: the kernel copies into pages that it need not clear, and without the GIL."""
    done = 0
    try:
        while done < len(octets):
            done += os.pwrite(fd, octets[done : done + _MOST_AT_ONCE], offset + done)
    except OSError as error:
        refuse_descriptor(error, operation)


def temporary(fd: int, operation: str) -> Mapping:
    """New memory in this process, to be written to and dropped before it is `finished()`."""
    return Mapping(Segment(os.dup(fd), True), 1, operation)


def finished(fd: int, writable: bool, operation: str) -> Segment:
    """The segment of new memory, whose size nobody can change from here on, nor the content of one that is read-only.

    Owns `fd`, also where it fails.
    """
    try:
        fcntl.fcntl(fd, _ADD_SEALS, _SEAL_SIZE)
        if writable:
            return adopted(os.dup(fd), True)
        try:
            fcntl.fcntl(fd, _ADD_SEALS, _SEAL_WRITE)
        except OSError as error:
            if error.errno != errno.EBUSY:  # a fork has a mapping of the copying still; the descriptor is read-only
                raise
        return adopted(read_only(fd), False)
    except OSError as error:
        refuse_descriptor(error, operation)
    finally:
        os.close(fd)
