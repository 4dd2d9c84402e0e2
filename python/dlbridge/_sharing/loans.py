"""Loans: memory of GPUs that another process may map.

A loan is an allocation of the driver's, with the arrays in it that its lender keeps. Its name is a pipe: who borrows
holds the end for writing, so that the kernel tells the lender when the last borrower is gone, however it went. That end
is opened as ``/proc/PID/fd/N``, as segments are; a lender that closes that number lets nobody in any more, and looks
for borrowers only then.
"""

from __future__ import annotations

import functools
import os
import select
import stat
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dlbridge import _core
from dlbridge._reach import reach
from dlbridge._sharing import layouts, returns, segments
from dlbridge._sharing.allocations import Event, Memory, idle_stream, imported, memory_of, nd_cuda

UUID_BYTES = 16


class LoanReference(NamedTuple):
    """What another process needs to borrow; `pid` has the pipe as `fd`. `gpu`: the UUID. Empty: no memory, no event."""

    pid: int
    fd: int
    device: int
    inode: int
    gpu: bytes
    memory: bytes
    event: bytes


_lock = threading.RLock()
_loans: weakref.WeakValueDictionary[tuple[int, int], Loan] = weakref.WeakValueDictionary()


@dataclass
class Held:
    """What a loan has. It is handed on when the loan ends, and nobody else has it then."""

    fd: int
    ordinal: int
    memory: Memory | None
    stream: Any = None  # that the data is ready on
    event: Event | None = None  # the same for another process
    kept: list[Any] = field(default_factory=list)  # the lender's arrays
    users: set[Any] = field(default_factory=set)  # streams whose work may use the memory still


class Loan:
    """An allocation, or only a device for arrays without elements, that others may borrow while this object lives."""

    is_cuda = True
    writable = True
    readonly = False  # of the mapping: the driver knows no other
    protocol = "__cuda_array_interface__"

    def __init__(self, held: Held, key: tuple[int, int], gpu: bytes, end: Callable[[Held], None]) -> None:
        """Owns what is held, until `end` takes it: not __del__, in which others would find the loan still.

        key: the device and number of the pipe's inode.
        """
        self.held, self.key, self.gpu, self.pid = held, key, gpu, os.getpid()
        weakref.finalize(self, end, held).atexit = False

    def mapped(self, nbytes: int, operation: str) -> Loan:
        """Itself. DataError where the memory is smaller."""
        self._refuse_fork(operation)
        size = 0 if self.held.memory is None else self.held.memory.nbytes
        if size < nbytes:
            raise _core.DataError(
                f"{operation}: the handle says {nbytes} bytes, and the allocation on cuda:{self.held.ordinal} has "
                f"{size}. The handle is damaged or forged"
            )
        return self

    @property
    def address(self) -> int:
        return 0 if self.held.memory is None else self.held.memory.base

    @property
    def extras(self) -> dict[str, Any]:
        """What the interface of an array says beside its memory."""
        return {"stream": None if self._is_ready() else self.held.stream.ptr}

    def _is_ready(self) -> bool:
        if self.held.stream is not None and self.held.stream.done:
            self.held.stream = None
        return self.held.stream is None

    def reference(self) -> LoanReference:
        self._refuse_fork("Handle")
        memory = b"" if self.held.memory is None else self.held.memory.handle
        event = b"" if self.held.event is None or self._is_ready() else self.held.event.handle
        return LoanReference(os.getpid(), self.held.fd, *self.key, self.gpu, memory, event)

    def _refuse_fork(self, operation: str) -> None:
        if self.pid != os.getpid():
            raise _core.CudaError(
                f"{operation}: this process was forked from one that uses CUDA, which does not work here. Start it "
                "with multiprocessing's 'spawn' or 'forkserver', and give it the handle"
            )


def lent(ordinal: int, memory: Memory | None) -> Loan:
    """A loan of this process's."""
    fd, other = os.pipe()
    os.close(other)
    found = os.fstat(fd)
    loan = Loan(Held(fd, ordinal, memory), (found.st_dev, found.st_ino), _uuid(ordinal), _end_lending)
    with _lock:
        _loans[loan.key] = loan
    return loan


def _end_lending(held: Held) -> None:
    if held.fd < 0 or sys.is_finalizing():
        return
    rest = os.dup(held.fd)
    os.close(held.fd)
    if _has_borrowers(rest):
        _keeper.keep(rest, held)
    else:
        os.close(rest)


def _end_borrowing(held: Held) -> None:
    if held.fd >= 0 and not sys.is_finalizing():
        held.users = {held.stream, *returns.current_streams(held.ordinal)} - {None}
        returns.give_back(held)


def _has_borrowers(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, 0)  # POLLHUP comes unasked
    return not poll.poll(0)


class _Keeper:
    """What was lent, and is kept for its borrowers alone; a thread lets go of it when the last is gone."""

    def __init__(self) -> None:
        self.kept: dict[int, Any] = {}
        self._epoll: select.epoll | None = None

    def keep(self, fd: int, kept: Any) -> None:
        with _lock:
            if self._epoll is None:
                self._epoll = select.epoll()
                threading.Thread(target=self._run, args=(self._epoll,), name="dlbridge", daemon=True).start()
            self.kept[fd] = kept
            self._epoll.register(fd, 0)

    def _run(self, epoll: select.epoll) -> None:
        while True:
            for fd, _ in epoll.poll():
                epoll.unregister(fd)
                kept = self.kept.pop(fd, None)
                os.close(fd)
                del kept

    def forget(self) -> None:
        """In a child by fork: what is kept is its parent's."""
        for fd in self.kept:
            os.close(fd)
        if self._epoll is not None:
            self._epoll.close()


_keeper = _Keeper()


def _after_fork() -> None:
    global _lock, _keeper
    _lock = threading.RLock()  # a thread that is not in the child may have held it
    for loan in list(_loans.values()):
        os.close(loan.held.fd)
        loan.held.fd = -1
    _keeper.forget()
    _keeper = _Keeper()


os.register_at_fork(after_in_child=_after_fork)


# ---- lending and borrowing


@functools.cache
def _pool() -> Any:
    """Of memory that the driver gives handles of, whichever allocator is set."""
    return nd_cuda().MemoryPool()


class Lender:
    """The loans of one handle: an allocation each."""

    def __init__(self) -> None:
        self._loans: dict[Memory | int, Loan] = {}
        self._streams: dict[int, Any] = {}  # by device: behind all that makes the arrays
        self.has_copied = False

    def lend(self, tensor: _core.CudaTensor) -> tuple[Loan, int, tuple[int, ...] | None]:
        """The loan that keeps a tensor, or a copy, its lowest byte's offset there, and its strides."""
        ordinal = tensor.device.id
        strides = layouts.strides_of(tensor, "share()")
        with nd_cuda().Device(ordinal):
            if ordinal not in self._streams:
                self._streams[ordinal] = idle_stream(ordinal)
            if tensor.size == 0:
                return self._loan(ordinal, None), 0, None
            memory, begin, kept = self._found(tensor, strides)
            if memory is None:
                memory, begin, kept = self._copied(tensor, self._streams[ordinal])
                strides = None
            else:
                _core.asdlpack(tensor, stream=self._streams[ordinal])
            loan = self._loan(ordinal, memory)
        loan.held.kept.append(kept)
        return loan, begin - memory.base, strides

    @staticmethod
    def _found(tensor: _core.CudaTensor, strides: tuple[int, ...] | None) -> tuple[Memory | None, int, Any]:
        """Where a tensor lies, its lowest byte, and itself."""
        low, high = (0, tensor.nbytes) if strides is None else reach(tensor.itemsize, tensor.shape, strides)
        begin = tensor.data_ptr + low
        return memory_of(tensor.device.id, begin, tensor.data_ptr + high), begin, tensor

    def _copied(self, tensor: _core.CudaTensor, stream: Any) -> tuple[Memory, int, Any]:
        """The same of the elements in C order, in memory of our own."""
        dense = _core.asdlpack(tensor, copy=True) if not tensor.is_contiguous else _core.reinterpret(tensor)
        _core.asdlpack(dense, stream=stream)
        dense.record_stream(stream)  # nobody keeps it
        made = _pool().malloc(tensor.nbytes)
        made.copy_from_device_async(dense.data_ptr, tensor.nbytes, stream)
        memory = memory_of(tensor.device.id, made.ptr, made.ptr + tensor.nbytes)
        if memory is None:
            raise _core.CudaError(
                f"share(): the driver gives no handle of memory on {tensor.device} for other processes. Copy the array "
                "to the host first: share(asdlpack(x, device='cpu'))"
            )
        self.has_copied = True
        return memory, made.ptr, made

    def _loan(self, ordinal: int, memory: Memory | None) -> Loan:
        key = ordinal if memory is None else memory
        if key not in self._loans:
            self._loans[key] = lent(ordinal, memory)
        return self._loans[key]

    def record(self) -> None:
        """Says where the data of all is ready. The host waits where the driver has no events for other processes."""
        for ordinal, stream in self._streams.items():
            if stream.done:
                continue
            with nd_cuda().Device(ordinal):
                try:
                    event = Event.recorded(ordinal, stream.ptr)
                except _core.CudaError:
                    stream.synchronize()
                    continue
            for loan in self._loans.values():
                if loan.held.ordinal == ordinal:
                    loan.held.stream, loan.held.event = stream, event


@functools.cache
def _uuid(ordinal: int) -> bytes:
    return bytes(nd_cuda().Device(ordinal).uuid)


@functools.cache
def _ordinals() -> dict[bytes, int]:
    return {_uuid(number): number for number in range(nd_cuda().device_count())}


def _name(gpu: bytes) -> str:
    text = gpu.hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def borrow(reference: LoanReference, operation: str) -> Loan:
    """The loan that another process has: mapped, and its data waited for on a stream. FileNotFoundError where it has it
    no more, CudaError where its GPU is not to be seen here."""
    key = reference.device, reference.inode
    known = _loans.get(key)
    if known is not None:
        return known
    if reference.gpu not in _ordinals():
        seen = ", ".join(map(_name, _ordinals())) or "none: " + _core.cuda_info()["reason"]
        raise _core.CudaError(
            f"{operation}: the array is on {_name(reference.gpu)}, and this process sees {seen}. Let it see that GPU, "
            "by CUDA_VISIBLE_DEVICES, its container, or num_gpus= of an actor of Ray's"
        )
    ordinal = _ordinals()[reference.gpu]
    fd = segments.reached(reference, os.O_WRONLY, stat.S_ISFIFO, operation)
    held = Held(fd, ordinal, None)
    loan = Loan(held, key, reference.gpu, _end_borrowing)
    if not segments.is_there(reference):  # still there: so the lender finds this end before it lets go
        segments.refuse_gone(reference.pid, operation)
    if reference.memory:
        held.memory = imported(ordinal, reference.memory, operation)
    if reference.event:
        with nd_cuda().Device(ordinal):
            held.event = Event.opened(ordinal, reference.event, operation)
            if not held.event.done:
                held.stream = idle_stream(ordinal)
                held.event.hold(held.stream.ptr, operation)
    with _lock:
        return _loans.setdefault(loan.key, loan)
