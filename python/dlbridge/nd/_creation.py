"""Arrays from nothing, from values and from other arrays."""

from __future__ import annotations

from dlbridge import _core
from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, is_scalar, one_device, order_of, shape_of
from dlbridge.nd._dtypes import BY_NAME, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray
_FLOAT64 = BY_NAME["float64"]

# --- from values and objects -----------------------------------------------------------------------------------------


def _stack_sequence(obj: Any, dtype: DTypeLike | None, device: DeviceLike) -> ndarray:
    """A nested sequence with arrays in it, each level stacked, on the first ndarray's device. The extension calls."""
    from dlbridge.nd._joining import stack

    if device is None:
        found = [item for item in obj if isinstance(item, ndarray)]
        device = one_device(found, "array")
    parts = [item if isinstance(item, ndarray) else _as_part(item, device) for item in obj]
    x = stack([_native.to_device(part, parts[0].device if device is None else device) for part in parts])
    return x if dtype is None else x.astype(dtype, copy=False)


def _as_part(item: Any, device: DeviceLike) -> ndarray:
    """An element of a sequence, which is copied once more: numbers in the other byte order may be turned around."""
    try:
        return _native.asarray(item, device=device)
    except _core.ExchangeError:
        return _native.array(item, device=device)


def _check_order(order: str | None, operation: str) -> str:
    return "K" if order is None else order_of(order, operation)


def _in_order(x: ndarray, order: str, copy: bool | None) -> ndarray:
    c_contiguous, f_contiguous, *_ = x._flags
    if (order != "C" or c_contiguous) and (order != "F" or f_contiguous):
        return x
    if copy is not None and not copy:
        raise _core.CopyError(f"nd.asarray(): order {order!r} needs a copy, and copy=False forbids one")
    return x.copy(order)


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: DeviceLike = None,
    blocking: bool = False,
) -> ndarray:
    """A new array of the values of `object`: a scalar, nested sequences, or an array of any framework.

    dtype: of the result, the values' own by default. copy: True always copies, None where needed, False never (then
    ValueError where it would be). order: the memory layout, "C", "F", "A" or "K" (as the input lies). ndmin: at least
    this many dimensions, new ones in front. device: the current device by default. blocking: waits until the values are
    on the device.
    Raises TypeError for what speaks no protocol and ValueError for ragged sequences. Source: NumPy.
    """
    order = _check_order(order, "array")
    x = _in_order(_native.array(object, dtype, copy, device=device), order, copy)
    if blocking:
        _wait_for(x)
    return x if x.ndim >= ndmin else x.reshape((1,) * (ndmin - x.ndim) + x.shape)


def _wait_for(x: ndarray) -> None:
    if isinstance(x, _native.HostArray):
        return
    from dlbridge.nd.cuda import get_current_stream

    with x.device:
        get_current_stream().synchronize()


def asarray(
    obj: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    device: DeviceLike = None,
    copy: bool | None = None,
    blocking: bool = False,
) -> ndarray:
    """`obj` as an ndarray, without a copy where its memory can be shared.

    An ndarray of that dtype and device is returned itself; a NumPy array is moved to the device, or shared on the CPU;
    arrays of other frameworks are shared. Arguments and errors as for array(). Source: Array API 2024.12.
    """
    if order is None and not blocking:
        return _native.asarray(obj, dtype, copy, device=device)
    return array(obj, dtype, copy, order, device=device, blocking=blocking)


def asanyarray(a: Any, dtype: DTypeLike | None = None, order: str | None = None, *, blocking: bool = False) -> ndarray:
    """asarray(); there are no subclasses to keep."""
    return asarray(a, dtype, order, blocking=blocking)


def ascontiguousarray(a: Any, dtype: DTypeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """`a` as an array of at least one dimension that is dense in C order; itself if it already is."""
    if dtype is None and device is None and isinstance(a, _native.HostArray) and a.ndim and a._flags[0]:
        return a
    return array(a, dtype, None, "C", 1, device=device)


def asfortranarray(a: Any, dtype: DTypeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """`a` as an array of at least one dimension that is dense in Fortran order; itself if it already is."""
    if dtype is None and device is None and isinstance(a, _native.HostArray) and a.ndim and a._flags[1]:
        return a
    return array(a, dtype, None, "F", 1, device=device)


def copy(a: ArrayLike, order: str = "K") -> ndarray:
    """A copy of `a` in memory of its own, laid out by `order`: "C", "F", "A" or "K"."""
    return as_array(a).copy(_check_order(order, "copy"))


def frombuffer(
    buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0, *, device: DeviceLike = None
) -> ndarray:
    """The bytes of a buffer as a flat array, from `offset` (bytes) on, `count` elements (-1: all that there are).

    On the CPU the memory is shared, else moved to the device. ValueError where the buffer is too short or no multiple
    of the itemsize. Source: NumPy.
    """
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
    data = dlbridge.asdlpack(octets[offset : offset + n * found.itemsize])
    if offset % found.itemsize:
        data = dlbridge.asdlpack(data, copy=True)
    return _native.asarray(dlbridge._core.reinterpret(data, dtype=found.name, shape=(n,)), device=device)


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1, *, device: DeviceLike = None) -> ndarray:
    """A flat array of what an iterable gives, `count` items of it (-1: all). ValueError where it gives fewer."""
    from itertools import islice

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


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> ndarray:
    """The array behind any object with ``__dlpack__``, or a DLPack capsule, sharing its memory.

    device: to move it to. copy: True always, False never (CopyError, a BufferError, where it would be needed), None
    where needed: read-only memory is shared, and the array is read-only. Source: Array API 2024.12.
    """
    return _native.from_dlpack(x, device=device, copy=copy)


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


def _filled(
    operation: str, value: Any, shape: Shape, dtype: DTypeLike | None, order: str, device: DeviceLike
) -> ndarray:
    x: ndarray = _native.empty_for(operation, shape, _FLOAT64 if dtype is None else dtype, order, device=device)
    if type(value) is int:
        x.fill(value)
    else:
        _native.copyto(x, value, "unsafe")
    return x


zeros, ones = _native.zeros, _native.ones


def full(
    shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, order: str = "C", *, device: DeviceLike = None
) -> ndarray:
    """An array filled with a scalar or with an array that broadcasts; its dtype by default. Source: Array API
    2024.12."""
    if isinstance(fill_value, (ndarray, list, tuple)):
        value = as_array(fill_value)
        dtype = value.dtype if dtype is None else dtype
        x = _native.empty_for("full()", shape, dtype, order, device=value.device if device is None else device)
        _native.copyto(x, value if device is None else _native.to_device(value, device), "unsafe")
        return x
    if dtype is None:
        dtype = _native.array(fill_value, device="cpu").dtype
    return _filled("full()", fill_value, shape, dtype, order, device)


def _like(
    operation: str,
    a: ArrayLike,
    dtype: DTypeLike | None,
    order: str | None,
    shape: Shape | None,
    device: DeviceLike,
) -> ndarray:
    a = as_array(a)
    dtype = a.dtype if dtype is None else dtype
    device = a.device if device is None else device
    if order == "K" and shape is None and a._flags[0]:  # nearly always
        return _native.empty_for(operation, a.shape, dtype, device=device)
    order = _check_order(order, operation.removesuffix("()"))
    extents = a.shape if shape is None else shape_of(shape, operation.removesuffix("()"))
    c_contiguous, f_contiguous, *_ = a._flags
    if order == "A":
        order = "F" if f_contiguous and not c_contiguous else "C"
    elif order == "K" and (c_contiguous or len(extents) != a.ndim):
        order = "C"
    elif order == "K" and f_contiguous:
        order = "F"
    if order != "K":
        return _native.empty_for(operation, extents, dtype, order, device=device)
    # As the input lies: axes from the largest stride to the smallest.
    axes = sorted(range(a.ndim), key=lambda axis: (-abs(a.strides[axis]), axis))
    x = _native.empty_for(operation, tuple(extents[axis] for axis in axes), dtype, device=device)
    return x.transpose(sorted(range(a.ndim), key=axes.__getitem__))


def empty_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    subok: bool | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """An uninitialised array of the shape, dtype, layout and device of `a`, except for what the arguments say.

    order: "C", "F", "A" (F where `a` is) or "K" (as `a` lies). subok has no effect. Source: Array API 2024.12, NumPy.
    """
    return _like("empty_like()", a, dtype, order, shape, device)


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    subok: bool | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """An array of zeros like `a`; arguments as for empty_like()."""
    x = _like("zeros_like()", a, dtype, order, shape, device)
    x.fill(0)
    return x


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    subok: bool | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """An array of ones like `a`; arguments as for empty_like()."""
    x = _like("ones_like()", a, dtype, order, shape, device)
    x.fill(1)
    return x


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    subok: bool | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """An array like `a`, filled with a scalar or an array that broadcasts; arguments as for empty_like()."""
    x = _like("full_like()", a, dtype, order, shape, device)
    _native.copyto(x, fill_value if is_scalar(fill_value) else as_array(fill_value, x), "unsafe")
    return x
