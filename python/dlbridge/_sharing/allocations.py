"""What the CUDA driver has for other processes: handles of allocations and of events. `dlbridge.nd.cuda` has the rest.

Memory that cuMemAlloc gave has a handle: the caching allocators of PyTorch, CuPy and `nd` cut their blocks from such.
Memory of the driver's own pools, of virtual-memory calls, and managed memory has none.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import weakref
from collections import defaultdict
from typing import Any, NamedTuple

from dlbridge import _core

HANDLE_BYTES = 64
# From cuda.h.
_BUFFER_ID, _IS_MANAGED, _RANGE_BEGIN, _RANGE_BYTES, _IS_IPC_CAPABLE = 7, 8, 11, 12, 13
_ASKED = (ctypes.c_int * 5)(_RANGE_BEGIN, _RANGE_BYTES, _BUFFER_ID, _IS_MANAGED, _IS_IPC_CAPABLE)
_OPEN_TO_PEERS = 1
_DISABLE_TIMING, _INTERPROCESS = 2, 4


class _IpcHandle(ctypes.Structure):
    """CUipcMemHandle and CUipcEventHandle, which go by value."""

    _fields_ = (("octets", ctypes.c_ubyte * HANDLE_BYTES),)


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _try(function: str, *arguments: Any) -> int:
    return int(getattr(_library(), function)(*arguments))


def _call(operation: str, function: str, *arguments: Any, remedy: str = "") -> None:
    result = _try(function, *arguments)
    if result != 0:
        name = ctypes.c_char_p()
        _try("cuGetErrorName", result, ctypes.byref(name))
        text = (name.value or b"an unknown error").decode()
        raise _core.CudaError(f"{operation}: {function} failed with {text} ({result}){remedy}")


def nd_cuda() -> Any:
    from dlbridge.nd import cuda  # the driver is there

    return cuda


class Event:
    """An event of the driver's that several processes know: destroyed with the object, or kept for the next where it is
    this process's own, for making one and its handle costs more than all else of a loan."""

    def __init__(self, ordinal: int, handle: bytes = b"") -> None:
        self.ordinal, self.handle, self.pid = ordinal, handle, os.getpid()
        self.pointer, self.is_own = ctypes.c_void_p(), False

    @classmethod
    def recorded(cls, ordinal: int, stream: int) -> Event:
        """One that other processes may wait for. The device is current."""
        made = cls(ordinal)
        try:
            made.pointer, made.handle = _idle_events[ordinal].pop()
        except IndexError:
            handle = _IpcHandle()
            _call("share()", "cuEventCreate", ctypes.byref(made.pointer), _DISABLE_TIMING | _INTERPROCESS)
            _call("share()", "cuIpcGetEventHandle", ctypes.byref(handle), made.pointer)
            made.handle = bytes(handle)
        made.is_own = True
        _call("share()", "cuEventRecord", made.pointer, ctypes.c_void_p(stream))
        return made

    @classmethod
    def opened(cls, ordinal: int, handle: bytes, operation: str) -> Event:
        """Another process's."""
        made = cls(ordinal, handle)
        arguments = ctypes.byref(made.pointer), _IpcHandle.from_buffer_copy(handle)
        _call(operation, "cuIpcOpenEventHandle", *arguments, remedy=_GONE)
        return made

    @property
    def done(self) -> bool:
        return _try("cuEventQuery", self.pointer) == 0

    def hold(self, stream: int, operation: str) -> None:
        """Lets later work on the stream wait."""
        _call(operation, "cuStreamWaitEvent", ctypes.c_void_p(stream), self.pointer, 0)

    def __del__(self) -> None:
        if not self.pointer or self.pid != os.getpid() or sys.is_finalizing():
            return
        # A loan has ended when nobody can open its event or wait for it any more.
        if self.is_own and len(_idle_events[self.ordinal]) < _MOST_IDLE_EVENTS:
            _idle_events[self.ordinal].append((self.pointer, self.handle))
        else:
            _try("cuEventDestroy_v2", self.pointer)


_MOST_IDLE_EVENTS = 64  # of a device
_idle_events: defaultdict[int, list[tuple[ctypes.c_void_p, bytes]]] = defaultdict(list)
_GONE = ". The process that made the memory ended, is on another machine, or its container keeps it apart"
_streams: dict[int, list[Any]] = {}


def idle_stream(ordinal: int) -> Any:
    """A stream that has nothing to do: what is queued on it waits for nobody else. The device is current."""
    known = _streams.setdefault(ordinal, [])
    for stream in known:
        if stream.done:
            return stream
    known.append(nd_cuda().Stream(non_blocking=True))
    return known[-1]


# ---- memory


class Memory:
    """An allocation in this process, and the driver's handle of it."""

    def __init__(self, ordinal: int, base: int, nbytes: int, handle: bytes) -> None:
        self.ordinal, self.base, self.nbytes, self.handle = ordinal, base, nbytes, handle


class Imported(Memory):
    """One of another process, mapped as long as a loan has it."""

    def __init__(self, ordinal: int, base: int, nbytes: int, handle: bytes) -> None:
        super().__init__(ordinal, base, nbytes, handle)
        # Not __del__, in which others would find the object still, and bring it back to life.
        weakref.finalize(self, _unmap, ordinal, base, os.getpid()).atexit = False


def _unmap(ordinal: int, base: int, pid: int) -> None:
    if pid == os.getpid() and not sys.is_finalizing():
        with nd_cuda().Device(ordinal):
            _try("cuIpcCloseMemHandle", ctypes.c_uint64(base))


_lock = threading.RLock()
_memories: weakref.WeakValueDictionary[bytes, Memory] = weakref.WeakValueDictionary()  # by the driver's handle


_MOST_HANDLES = 256
_handles: dict[int, bytes] = {}  # of this process's own allocations, by the number that the driver gives to no other


class _Allocation(NamedTuple):
    """What the driver says of one. number: of no other in this process, ever; 0 where it gives none."""

    base: int
    nbytes: int
    number: int
    is_managed: int
    is_capable: int  # of a handle, as far as its kind goes


def _handle_of(found: _Allocation) -> bytes | None:
    """None where the driver gives none."""
    known = _handles.get(found.number)
    if known is not None or found.is_managed or not found.is_capable:
        return known
    made = _IpcHandle()
    if _try("cuIpcGetMemHandle", ctypes.byref(made), ctypes.c_uint64(found.base)) != 0:
        return None
    if len(_handles) >= _MOST_HANDLES:
        del _handles[next(iter(_handles))]
    if found.number:
        _handles[found.number] = bytes(made)
    return bytes(made)


def _allocation(address: int, operation: str) -> _Allocation:
    """The allocation that has this address."""
    values = (ctypes.c_uint64 * len(_ASKED))()
    first = ctypes.addressof(values)
    pointers = (ctypes.c_void_p * len(_ASKED))(
        *range(first, first + ctypes.sizeof(values), ctypes.sizeof(ctypes.c_uint64))
    )
    _call(operation, "cuPointerGetAttributes", len(_ASKED), _ASKED, pointers, ctypes.c_uint64(address))
    return _Allocation(*values)


def memory_of(ordinal: int, begin: int, end: int) -> Memory | None:
    """The allocation that has these bytes; None where no handle of it is to be had, as of the driver's own pools."""
    with _lock:
        for known in list(_memories.values()):
            if known.base <= begin and end <= known.base + known.nbytes:
                return known
        found = _allocation(begin, "share()")
        handle = _handle_of(found) if end <= found.base + found.nbytes else None
        if handle is None:
            return None
        return _memories.setdefault(handle, Memory(ordinal, found.base, found.nbytes, handle))


def imported(ordinal: int, handle: bytes, operation: str) -> Memory:
    """The allocation of a handle, mapped once; this process's own where it made it."""
    with _lock:
        memory = _memories.get(handle)
        if memory is None:
            pointer = ctypes.c_uint64()
            arguments = ctypes.byref(pointer), _IpcHandle.from_buffer_copy(handle), _OPEN_TO_PEERS
            with nd_cuda().Device(ordinal):
                _call(operation, "cuIpcOpenMemHandle_v2", *arguments, remedy=_GONE)
                memory = Imported(ordinal, pointer.value, 0, handle)
                found = _allocation(pointer.value, operation)
            memory.nbytes = found.base + found.nbytes - pointer.value
            _memories[handle] = memory
        return memory


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # a thread that is not in the child may have held it


os.register_at_fork(after_in_child=_after_fork)
