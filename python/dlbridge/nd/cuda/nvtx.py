"""Marks and ranges for the timelines of NVIDIA's profilers; nothing where the NVTX library is not installed."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from typing import Any

_NAMES = ("libnvToolsExt.so.1", "libnvToolsExt.so", "libnvtx3interop.so.1", "libnvtx3interop.so")


@functools.cache
def _library() -> Any:
    """libnvToolsExt, of a toolkit or already loaded by another library; None where there is none."""
    for name in _NAMES:
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(name)
            if hasattr(library, "nvtxRangePushA"):
                return library
    return None


def is_available() -> bool:
    """Whether marks and ranges reach a profiler."""
    return _library() is not None


def range_push(message: str) -> None:
    """Opens a range, inside of the thread's open ones."""
    if (library := _library()) is not None:
        library.nvtxRangePushA(message.encode())


def range_pop() -> None:
    """Closes the range that was opened last."""
    if (library := _library()) is not None:
        library.nvtxRangePop()


def mark(message: str) -> None:
    """A point in time."""
    if (library := _library()) is not None:
        library.nvtxMarkA(message.encode())


@contextlib.contextmanager
def annotate(message: str) -> Iterator[None]:
    """A range for a with-block, or for the calls of a decorated function."""
    range_push(message)
    try:
        yield
    finally:
        range_pop()


# The names that other libraries use.
RangePush, RangePop, Mark = range_push, range_pop, mark
