"""Arrays from nothing, from values and from other arrays."""

from __future__ import annotations

from itertools import islice

from dlbridge import _core
from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, one_device, order_of
from dlbridge.nd._dtypes import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray

# --- from values and objects -----------------------------------------------------------------------------------------


_stack = _native.late("_joining", "stack")


def _stack_sequence(obj: Any, dtype: DTypeLike | None, device: DeviceLike) -> ndarray:
    """A nested sequence with arrays in it, each level stacked, on the first ndarray's device. The extension calls."""
    if device is None:
        found = [item for item in obj if isinstance(item, ndarray)]
        device = one_device(found, "array")
    parts = [item if isinstance(item, ndarray) else _as_part(item, device) for item in obj]
    x = _stack([_native.to_device(part, parts[0].device if device is None else device) for part in parts])
    return x if dtype is None else x.astype(dtype, copy=False)


def _as_part(item: Any, device: DeviceLike) -> ndarray:
    """An element of a sequence, which is copied once more: numbers in the other byte order may be turned around."""
    try:
        return _native.asarray(item, device=device)
    except _core.ExchangeError:
        return _native.array(item, device=device)


array, asarray, asanyarray = _native.array, _native.asarray, _native.asanyarray
ascontiguousarray, asfortranarray = _native.ascontiguousarray, _native.asfortranarray


def _wait_for(x: ndarray) -> None:
    """Until the values of an array are there. The extension calls."""
    if isinstance(x, _native.HostArray):
        return
    from dlbridge.nd.cuda import get_current_stream

    with x.device:
        get_current_stream().synchronize()


def copy(a: ArrayLike, order: str = "K") -> ndarray:
    """A copy of `a` in memory of its own, laid out by `order`: "C", "F", "A" or "K"."""
    return as_array(a).copy("K" if order is None else order_of(order, "copy"))


def frombuffer(
    buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0, *, device: DeviceLike = None
) -> ndarray:
    """The bytes of a buffer as a flat array, from `offset` (bytes) on, `count` elements (-1: all that there are).

    On the CPU the memory is shared, else moved to the device. ValueError where the buffer is too short or no multiple
    of the itemsize. Source: NumPy.
    """
    shared = _native.frombuffer_on_host(buffer, dtype, count, offset, device)
    if shared is not None:
        return shared
    import dlbridge

    found = resolve(dtype)
    octets = memoryview(buffer).cast("B")
    if not 0 <= offset <= octets.nbytes:
        raise ValueError(f"frombuffer(): offset {offset} lies outside of the buffer of {octets.nbytes} bytes")
    available = octets.nbytes - offset
    if count < 0 and available % found.itemsize:
        raise ValueError(
            f"frombuffer(): {available} bytes are not a multiple of {found.itemsize}, the itemsize. Give count"
        )
    n = available // found.itemsize if count < 0 else count
    if n * found.itemsize > available:
        raise ValueError(
            f"frombuffer(): {n} elements of {found} need {n * found.itemsize} bytes; there are {available}"
        )
    chosen = octets[offset : offset + n * found.itemsize] if offset or n < available // found.itemsize else octets
    data = dlbridge.asdlpack(chosen)
    if offset % found.itemsize:
        data = dlbridge.asdlpack(data, copy=True)
    return _native.asarray(dlbridge._core.reinterpret(data, dtype=found.name, shape=(n,)), device=device)


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1, *, device: DeviceLike = None) -> ndarray:
    """A flat array of what an iterable gives, `count` items of it (-1: all). ValueError where it gives fewer."""
    items = list(iter if count < 0 else islice(iter, count))
    if len(items) < count:
        raise ValueError(f"fromiter(): the iterable gave {len(items)} of {count} items")
    return _native.array(items, dtype, device=device) if items else _native.empty((0,), dtype, device=device)


def fromfunction(
    function: Callable[..., Any], shape: Shape, *, dtype: DTypeLike = float, device: DeviceLike = None, **kwargs: Any
) -> Any:
    """What `function` returns for the coordinate arrays of `shape`, one argument per axis. Source: NumPy."""
    from dlbridge.nd._grids import indices

    return function(*indices(shape, dtype=dtype, device=device), **kwargs)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    """A numpy.ndarray of the values of `a`, which may be any array: on the host, or moved there.

    stream: the CUDA stream to copy on (the current one by default). order: the layout, "C", "F" or "A". out: a NumPy
    array to write to. blocking: False allows to return early; the copy is always done on return.
    An ndarray on the CPU is copied. Source: CuPy.
    """
    if isinstance(a, ndarray):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    import numpy

    try:
        host = numpy.asarray(a, order=order_of(order, "asnumpy", "CFA"))  # type: ignore[call-overload]
    except TypeError:  # on a device: what is no ndarray of ours may still be read by its protocols
        host = asnumpy(_native.asarray(a), stream, order)
    if host.dtype == object and (hasattr(a, "__dlpack__") or hasattr(a, "__cuda_array_interface__")):
        host = asnumpy(_native.asarray(a), stream, order)  # numpy.asarray() knows neither, and took the object itself
    if out is None:
        return host
    out[...] = host
    return out


from_dlpack = _native.from_dlpack


def fromDlpack(dltensor: Any) -> ndarray:
    """The array behind a DLPack capsule, which is consumed. CuPy's older name of from_dlpack()."""
    return _native.from_dlpack(dltensor, device=None, copy=None)


def get_array_module(*args: Any) -> ModuleType:
    """This module if any argument is an array of it, else NumPy. For code that runs on both. Source: CuPy."""
    if any(isinstance(arg, ndarray) for arg in args):
        from dlbridge.nd._protocols import namespace

        return namespace()
    import numpy

    return numpy


# --- filled ---------------------------------------------------------------------------------------------------------

full, ones, zeros = _native.full, _native.ones, _native.zeros
empty_like, full_like = _native.empty_like, _native.full_like
ones_like, zeros_like = _native.ones_like, _native.zeros_like
