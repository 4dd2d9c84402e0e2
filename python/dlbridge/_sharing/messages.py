"""Segments that are on their way to another process, in a message that nobody may have read yet.

Whoever sends an array through a queue lets go of it at once. So its segments wait here until the receiver, which has
opened them, writes the message's number into a pipe of this process; the receiver opens that as it does the segments.
A message that is never read waits as long as the process lives.
"""

from __future__ import annotations

import itertools
import os
import stat
import struct
import threading
import time
from collections.abc import Sequence
from multiprocessing import parent_process, util
from typing import NamedTuple

from dlbridge._sharing.segments import opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge._sharing.loans import Loan
    from dlbridge._sharing.segments import Segment

LINGER_S = 10.0  # how long a child that ends waits for its last messages to be read
_BEHIND_THE_QUEUES = -10  # multiprocessing's queues are flushed with -5
_MOST_SENDERS = 8
_NUMBER = struct.Struct("=Q")


class Ticket(NamedTuple):
    """Where the receipt of message `number` goes: descriptor `fd` of process `pid`, a pipe of that inode."""

    pid: int
    fd: int
    device: int
    inode: int
    number: int


class _Outbox:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[Segment | Loan, ...]] = {}
        self._pipe: tuple[int, int] | None = None
        self._address = 0, -1, 0, 0  # of its end for writing, as a ticket has it

    def post(self, segments: Sequence[Segment | Loan]) -> Ticket:
        with self._lock:
            if self._pipe is None:
                self._pipe = os.pipe()
                found = os.fstat(self._pipe[1])
                self._address = os.getpid(), self._pipe[1], found.st_dev, found.st_ino
                threading.Thread(target=self._receive, args=self._pipe[:1], name="dlbridge", daemon=True).start()
            number = next(self._numbers)
            self._waiting[number] = tuple(segments)
        return Ticket(*self._address, number)

    def _receive(self, fd: int) -> None:
        rest = b""
        while data := os.read(fd, 4096):
            data = rest + data
            whole = len(data) - len(data) % _NUMBER.size
            rest = data[whole:]
            for (number,) in _NUMBER.iter_unpack(data[:whole]):
                self._waiting.pop(number, None)

    def __len__(self) -> int:
        return len(self._waiting)

    def linger(self) -> None:
        """A worker's last result may not have been read when it ends."""
        parent = parent_process()
        until = time.monotonic() + LINGER_S
        while parent is not None and self._waiting and time.monotonic() < until and parent.is_alive():
            time.sleep(0.005)

    def close(self) -> None:
        for fd in self._pipe or ():
            os.close(fd)


_outbox = _Outbox()


def _after_fork() -> None:
    global _outbox, _senders
    _outbox.close()  # the messages and the thread are the parent's
    _senders.close()
    _outbox, _senders = _Outbox(), _Senders()


def _linger_at_exit(_: object = None) -> None:
    """Asks multiprocessing to wait behind its queues; it forgets that in a child, and must be asked before it ends."""
    util.Finalize(None, lambda: _outbox.linger(), exitpriority=_BEHIND_THE_QUEUES)


os.register_at_fork(after_in_child=_after_fork)
util.register_after_fork(_linger_at_exit, _linger_at_exit)
_linger_at_exit()


def post(segments: Sequence[Segment | Loan]) -> Ticket:
    """Keeps segments until `acknowledge()` of the ticket, in whichever process."""
    return _outbox.post(segments)


def waiting() -> int:
    """How many messages were not read yet."""
    return len(_outbox)


class _Senders:
    """The pipes where receipts go, of the last few senders: opening one takes longer than the receipt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # so that nobody writes to a number that another has closed
        self._pipes: dict[tuple[int, ...], int] = {}

    def send(self, ticket: Ticket) -> None:
        with self._lock:
            fd = self._pipes.get(ticket[:4])
            if fd is None:
                fd = self._open(ticket)
            if fd is None:
                return
            try:
                os.write(fd, _NUMBER.pack(ticket.number))
            except OSError:
                os.close(self._pipes.pop(ticket[:4]))

    def _open(self, ticket: Ticket) -> int | None:
        try:
            fd = opened(f"/proc/{ticket.pid}/fd/{ticket.fd}", ticket.device, ticket.inode, os.O_WRONLY, stat.S_ISFIFO)
        except OSError:
            return None
        if fd is not None:
            while len(self._pipes) >= _MOST_SENDERS:
                os.close(self._pipes.pop(next(iter(self._pipes))))
            self._pipes[ticket[:4]] = fd
        return fd

    def close(self) -> None:
        for fd in self._pipes.values():
            os.close(fd)


_senders = _Senders()


def acknowledge(ticket: Ticket) -> None:
    """Says that the segments of a message were opened. Nothing happens where the sender is gone."""
    _senders.send(ticket)
