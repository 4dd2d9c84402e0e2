"""Gates: work on a CUDA stream that waits until the host lets it through, for tests of order that watch no clock.

A gate is a word of page-locked host memory that a stream waits for. While it is closed, whatever is queued behind it
has not happened, however slow or busy the machine is: who returns meanwhile has not waited on the host, and who reads
meanwhile and gets an answer has not waited on the device.

While a gate is closed nothing may wait for the whole device: no first launch of a kernel (which loads it), no memory
from the driver, no cudaDeviceSynchronize. Warm up before.

Only the driver is needed, so the streams of every framework will do.
"""

from __future__ import annotations

import contextlib
import ctypes as ct
import functools
from collections.abc import Iterator
from types import TracebackType
from typing import Any

__all__ = ["Gate", "Unsupported", "prepare_reading", "read_unordered"]

_WORD_BYTES = 64  # a cache line each; holds a sem_t
_WORDS = 16_384  # of one piece of memory
_SCRATCH_BYTES = 4096
_PORTABLE_AND_MAPPED = 0x1 | 0x2
_NON_BLOCKING = 0x1
_WAIT_UNTIL_GREATER_OR_EQUAL = 0x0
_SIGEV_THREAD = 2
_CLOCK_MONOTONIC = 1
_NOT_HERE = (3, 34, 100, 101, 801)  # not initialised, a stub driver, no device, no such device, not supported


class Unsupported(RuntimeError):
    """There is no driver here, no device, or none of what a gate is made of."""


class _TimerEvent(ct.Structure):
    """struct sigevent with SIGEV_THREAD."""

    _fields_ = (
        ("value", ct.c_void_p),
        ("signal", ct.c_int),
        ("notify", ct.c_int),
        ("function", ct.c_void_p),
        ("attributes", ct.c_void_p),
        ("padding", ct.c_char * 32),
    )


@functools.cache
def _libc_function(name: str) -> Any:
    for library in (None, "librt.so.1", "libpthread.so.0"):  # one library of all since glibc 2.34
        try:
            return getattr(ct.CDLL(library), name)
        except (OSError, AttributeError):
            continue
    raise Unsupported(f"libc has no {name}()")


@functools.cache
def _libcuda() -> ct.CDLL:
    try:
        return ct.CDLL("libcuda.so.1")
    except OSError as error:
        raise Unsupported(f"no CUDA driver: {error}") from None


def _driver(name: str, *arguments: Any) -> None:
    function = getattr(_libcuda(), name, None)
    if function is None:
        raise Unsupported(f"this CUDA driver has no {name}()")
    code = function(*arguments)
    if code != 0:
        error = Unsupported if code in _NOT_HERE else RuntimeError
        raise error(f"{name}() failed with CUDA error {code}")


@contextlib.contextmanager
def _context() -> Iterator[int]:
    """The calling thread's context; for as long as it lasts device 0's primary one where there is none."""
    context, popped = ct.c_void_p(), ct.c_void_p()
    _driver("cuInit", 0)
    _driver("cuCtxGetCurrent", ct.byref(context))
    if context.value:
        yield context.value
        return
    _driver("cuDevicePrimaryCtxRetain", ct.byref(context), 0)
    _driver("cuCtxPushCurrent_v2", context)
    try:
        yield context.value or 0
    finally:
        _driver("cuCtxPopCurrent_v2", ct.byref(popped))


def _page_locked(nbytes: int) -> int:
    """Memory that lives as long as the process, as a stream may go on looking at it."""
    address = ct.c_void_p()
    with _context():
        _driver("cuMemHostAlloc", ct.byref(address), ct.c_size_t(nbytes), _PORTABLE_AND_MAPPED)
    return address.value or 0


class _Words:
    """Words that are 0. None is used twice: a stream may see late that it was let through."""

    def __init__(self) -> None:
        self._next, self._left = 0, 0

    def take(self) -> int:
        if self._left == 0:
            self._next, self._left = _page_locked(_WORDS * _WORD_BYTES), _WORDS
        address = self._next
        self._next, self._left = address + _WORD_BYTES, self._left - 1
        _libc_function("sem_init")(ct.c_void_p(address), 0, 0)
        return address


_words = _Words()


@functools.cache
def _semaphore_is_a_word() -> bool:
    """sem_post() adds 1 to what begins with a 32-bit word: so it is in glibc and in musl."""
    address = _words.take()
    _libc_function("sem_post")(ct.c_void_p(address))
    return ct.c_uint32.from_address(address).value == 1


class Gate:
    """Closed until open(), the end of the with block, or `limit_s`, whichever is first.

    The limit is kept by a thread of the C library's that needs no GIL: a call that waits on the host for what is behind
    the gate returns then, and finds the gate open. A test that must not be kept waiting leaves the limit as it is; one
    whose subject waits on the host by design makes it short, and learns from is_closed() whether it did wait.
    """

    def __init__(self, limit_s: float = 60.0) -> None:
        if not _semaphore_is_a_word():
            raise Unsupported("a semaphore of this C library is not a word that a stream could wait for")
        self._address = _words.take()
        self._word = ct.c_uint32.from_address(self._address)
        self._timer: ct.c_void_p | None = None
        self.open_within(limit_s)

    def hold(self, stream: int) -> None:
        """What is queued on `stream` from now on waits for the gate. 0 or 1: the legacy default stream."""
        pointer = ct.c_uint64()
        wait = "cuStreamWaitValue32_v2" if hasattr(_libcuda(), "cuStreamWaitValue32_v2") else "cuStreamWaitValue32"
        with _context():
            _driver("cuMemHostGetDevicePointer_v2", ct.byref(pointer), ct.c_void_p(self._address), 0)
            _driver(wait, ct.c_void_p(stream), pointer, ct.c_uint32(1), _WAIT_UNTIL_GREATER_OR_EQUAL)

    def is_closed(self) -> bool:
        return self._word.value == 0

    def open(self) -> None:
        """Lets through what waits. Harmless when the gate is open."""
        self._stop_timer()
        if self.is_closed():
            _libc_function("sem_post")(ct.c_void_p(self._address))

    def open_within(self, limit_s: float) -> None:
        """Puts another limit in the place of the one before, counted from now."""
        self._stop_timer()
        event = _TimerEvent(self._address, 0, _SIGEV_THREAD, ct.cast(_libc_function("sem_post"), ct.c_void_p).value)
        timer = ct.c_void_p()
        if _libc_function("timer_create")(_CLOCK_MONOTONIC, ct.byref(event), ct.byref(timer)) != 0:
            raise Unsupported("timer_create() failed")
        seconds = max(limit_s, 1e-9)
        times = (ct.c_long * 4)(0, 0, int(seconds), int(seconds % 1 * 1e9))
        _libc_function("timer_settime")(timer, 0, times, None)
        self._timer = timer

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            _libc_function("timer_delete")(timer)

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.open()


@functools.cache
def _reader_of(context: int) -> tuple[int, int]:
    """(a stream that waits for no other, page-locked memory to read to)."""
    stream = ct.c_void_p()
    _driver("cuStreamCreate", ct.byref(stream), _NON_BLOCKING)
    return stream.value or 0, _page_locked(_SCRATCH_BYTES)


def prepare_reading() -> None:
    """Makes what read_unordered() needs, which may wait for the device: call it before a gate is closed."""
    with _context() as context:
        _reader_of(context)


def read_unordered(pointer: int, nbytes: int) -> bytes:
    """What is at a device address this moment, read without waiting for anything: the negative control of a test."""
    count = ct.c_size_t(min(nbytes, _SCRATCH_BYTES))
    with _context() as context:
        stream, scratch = _reader_of(context)
        _driver("cuMemcpyDtoHAsync_v2", ct.c_void_p(scratch), ct.c_uint64(pointer), count, ct.c_void_p(stream))
        _driver("cuStreamSynchronize", ct.c_void_p(stream))
    return ct.string_at(scratch, count.value)
