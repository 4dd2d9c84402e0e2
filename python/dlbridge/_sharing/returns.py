"""What was borrowed of a GPU goes back, when the work on it is done and nobody has come for more."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from typing import Any

from dlbridge import _core
from dlbridge._sharing.allocations import idle_stream, nd_cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge._sharing.allocations import Memory
    from dlbridge._sharing.loans import Held

LINGER_S = 0.05  # how long what was borrowed may stay mapped
LINGERING_BYTES = 64 << 20  # how much of that, in allocations
LINGERING_LOANS = 64  # and how many, for each is a descriptor
_LEGACY_STREAM = 1
_lock = threading.RLock()


def current_streams(ordinal: int) -> list[Any]:
    """Streams that nobody named and that may work on the memory: the legacy default one, and PyTorch's current one.

    That may be somebody's who destroys it before it is waited for, and the driver crashes then: one of ours waits in
    its place from now on. A stream that captures a graph is alive, and cannot be waited for yet.
    """
    try:
        torch = sys.modules["torch"].cuda
        stream = torch.current_stream(ordinal).cuda_stream if torch.is_initialized() else 0
        if stream in (0, _LEGACY_STREAM):
            return [_LEGACY_STREAM]
        if torch.is_current_stream_capturing():
            return [_LEGACY_STREAM, stream]
    except (KeyError, AttributeError):  # not there, or not yet
        return [_LEGACY_STREAM]
    try:
        with nd_cuda().Device(ordinal):
            ours = idle_stream(ordinal)
            ours.wait_stream(stream)
            return [_LEGACY_STREAM, ours]
    except (BufferError, _core.CudaError):  # a capture on another device's, or a device that has failed
        return [_LEGACY_STREAM, stream]


class _Returner:
    """Gives back what was borrowed when the work on it is done; a thread waits for that.

    It lets a while pass first, and gives back together what has come by then: who reads one array of an allocation
    after the other finds it mapped still, for the driver takes longer to open and close a mapping than all else of a
    loan does. The lender keeps what it has lent meanwhile, so that is little.
    """

    def __init__(self) -> None:
        self._lingering: list[Held] = []
        self._allocations: set[Memory | None] = set()  # of what lingers
        self._is_too_much = False
        self._leaving: list[Held] = []
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()  # the first that lingers, and the one too many
        self._is_running = False

    def give_back(self, held: Held) -> None:
        with _lock:
            is_first, was_too_much = not self._lingering, self._is_too_much
            self._lingering.append(held)
            self._allocations.add(held.memory)
            nbytes = sum(memory.nbytes for memory in self._allocations if memory is not None)
            self._is_too_much = nbytes > LINGERING_BYTES or len(self._lingering) > LINGERING_LOANS
            calls = is_first + (self._is_too_much and not was_too_much)
            if not self._is_running:
                threading.Thread(target=self._run, name="dlbridge", daemon=True).start()
                self._is_running = True
        for _ in range(calls):
            self._calls.put(None)

    def _run(self) -> None:
        try:
            while True:
                self._calls.get()
                with contextlib.suppress(queue.Empty):
                    self._calls.get(timeout=LINGER_S)
                with _lock:
                    self._leaving, self._lingering = self._lingering, []
                    self._allocations, self._is_too_much = set(), False
                for ordinal in {held.ordinal for held in self._leaving}:
                    _wait_for(ordinal, set().union(*(one.users for one in self._leaving if one.ordinal == ordinal)))
                while self._leaving:
                    held = self._leaving.pop()
                    held.memory = held.event = None  # unmaps, before the lender hears of it
                    os.close(held.fd)
        finally:
            self._is_running = False

    def forget(self) -> None:
        """In a child by fork: its parent gives back."""
        for held in self._lingering + self._leaving:
            os.close(held.fd)


def _wait_for(ordinal: int, streams: set[Any]) -> None:
    """Until they have done what they hold; where one is captured now, behind the capture."""
    with contextlib.suppress(_core.CudaError), nd_cuda().Device(ordinal):  # of a device that has failed for good
        waiting = idle_stream(ordinal)
        for stream in streams:
            while True:
                try:
                    waiting.wait_stream(stream)
                    break
                except BufferError:
                    time.sleep(0.01)
        waiting.synchronize()


_returner = _Returner()


def give_back(held: Held) -> None:
    """Any thread, and any time: an array's last owner may be the collector of garbage."""
    _returner.give_back(held)


def _after_fork() -> None:
    global _lock, _returner
    _lock = threading.RLock()  # a thread that is not in the child may have held it
    _returner.forget()
    _returner = _Returner()


os.register_at_fork(after_in_child=_after_fork)
