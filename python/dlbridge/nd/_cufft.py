"""Fourier transforms on a device, by cuFFT. Plans are kept, the memory they work in is the pool's.

cuFFT is given dense copies that have the axes of a transform last; up to three axes are one plan.
"""

from __future__ import annotations

from collections import OrderedDict
from math import prod, sqrt
from threading import Lock
from weakref import finalize

from dlbridge.nd import _native
from dlbridge.nd._dtypes import real_dtype
from dlbridge.nd._manipulation import moveaxis
from dlbridge.nd._nvidia import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._dtypes import DType

ndarray = _native.ndarray

_create = Function("cufft", "cufftCreate", "p")
_auto_allocate = Function("cufft", "cufftSetAutoAllocation", "ii")
_make = Function("cufft", "cufftXtMakePlanMany", "iippllipllilpi")
_set_stream = Function("cufft", "cufftSetStream", "ip")
_set_work = Function("cufft", "cufftSetWorkArea", "ip")
_execute = Function("cufft", "cufftXtExec", "ippi")
_destroy = Function("cufft", "cufftDestroy", "i")

_TYPES = {"float32": 0, "float64": 1, "complex64": 4, "complex128": 5}  # cudaDataType
_FORWARD, _INVERSE = -1, 1
_AXES_OF_A_PLAN = 3


# --- plans -----------------------------------------------------------------------------------------------------------


class _Plan:
    """How one shape is transformed on one device. A plan has one stream and one work area at a time: hence the lock."""

    def __init__(self, extents: Sequence[int], batch: int, given: str, wanted: str) -> None:
        from ctypes import byref, c_int, c_longlong, c_size_t

        handle, work = c_int(), c_size_t()
        _create(byref(handle))
        self.handle, self.lock = handle.value, Lock()
        finalize(self, _destroy, self.handle).atexit = False  # the process takes its plans along
        _auto_allocate(self.handle, 0)
        n = (c_longlong * len(extents))(*extents)
        execution = max(_TYPES[given], _TYPES[wanted])  # complex, of the precision of both
        _make(
            self.handle, len(extents), n, None, 1, 0, _TYPES[given], None, 1, 0, _TYPES[wanted], batch, byref(work),
            execution,
        )  # fmt: skip
        self.work = work.value

    def run(self, x: ndarray, out: ndarray, direction: int) -> None:
        stream = _native.get_current_stream().ptr
        work = _native.empty((self.work,), "uint8", device=x.device)
        with self.lock:
            _set_stream(self.handle, stream)
            _set_work(self.handle, work.data_ptr)
            _execute(self.handle, x.data_ptr, out.data_ptr, direction)


_MOST_PLANS = 16
_plans: OrderedDict[tuple[Any, ...], _Plan] = OrderedDict()  # the least recently used one first
_plans_lock = Lock()


def _plan(device: int, *key: Any) -> _Plan:
    with _plans_lock:
        found = _plans.get((device, *key))
        if found is None:
            found = _plans[(device, *key)] = _Plan(*key)
            if len(_plans) > _MOST_PLANS:
                _plans.popitem(last=False)
        else:
            _plans.move_to_end((device, *key))
        return found


def _run(x: ndarray, axes: Sequence[int], extents: tuple[int, ...], wanted: DType, direction: int) -> ndarray:
    """Transforms axes of `extents` data points. `x` has these, or half of the last one; so has the result."""
    last = tuple(range(x.ndim - len(axes), x.ndim))
    # Always a copy of our own: transforms to real numbers write to what they read.
    dense = moveaxis(x, tuple(axes), last).copy("C")
    kept = dense.shape[: -len(axes)]
    inner = dense.shape[len(kept) :]
    if wanted.kind == "f":
        inner = extents
        dense.imag[..., 0] = 0  # what has no imaginary part in the transform of real numbers is not looked at
        if extents[-1] % 2 == 0:
            dense.imag[..., -1] = 0
    elif x.dtype.kind == "f":
        inner = (*extents[:-1], extents[-1] // 2 + 1)
    out = _native.empty((*kept, *inner), wanted, device=x.device)
    if out.size:
        _plan(x.device.id, extents, prod(kept), x.dtype.name, wanted.name).run(dense, out, direction)
    return out if tuple(axes) == last else moveaxis(out, last, tuple(axes)).copy("C")


# --- transforms, by their names in NumPy ------------------------------------------------------------------------------


def _sized(x: ndarray, axis: int, n: int) -> ndarray:
    """With n elements along an axis: the first ones, or all of them and zeros."""
    extent = x.shape[axis]
    head = (slice(None),) * axis
    if n <= extent:
        return x[(*head, slice(n))]
    padded = _native.empty((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, device=x.device)
    padded[(*head, slice(extent))] = x
    padded[(*head, slice(extent, None))] = 0
    return padded


def _complex_axes(x: ndarray, extents: Sequence[int], axes: Sequence[int], direction: int) -> ndarray:
    """Complex to complex along axes, of which one may stand there twice."""
    pairs = list(zip(axes, extents, strict=True))
    repeated = len(set(axes)) != len(axes)
    while pairs:
        taken = pairs[-1:] if repeated else pairs[-_AXES_OF_A_PLAN:]
        del pairs[-len(taken) :]
        for axis, n in taken:
            x = _sized(x, axis, n)
        x = _run(x, [axis for axis, _ in taken], tuple(n for _, n in taken), x.dtype, direction)
    return x


def _to_half(x: ndarray, extents: Sequence[int], axes: Sequence[int], wanted: DType) -> ndarray:
    """Of real numbers, so that half of the last axis is enough."""
    x = _run(_sized(x, axes[-1], extents[-1]), axes[-1:], (extents[-1],), wanted, _FORWARD)
    return _complex_axes(x, extents[:-1], axes[:-1], _FORWARD)


def _from_half(x: ndarray, extents: Sequence[int], axes: Sequence[int], wanted: DType) -> ndarray:
    """The inverse. Axis after axis: a plan of several would read the half that NumPy ignores."""
    x = _complex_axes(x, extents[:-1], axes[:-1], _INVERSE)
    x = _sized(x, axes[-1], extents[-1] // 2 + 1)
    return _run(x, axes[-1:], (extents[-1],), wanted, _INVERSE)


def transform(name: str, x: ndarray, extents: Sequence[int], axes: Sequence[int], norm: str | None) -> ndarray:
    """A transform of an array of float32, float64 or a complex dtype of these; real ones are made complex where needed.

    name: NumPy's: fft, ifftn, rfft, hfft and so on. extents: of the real side, one for each axis.
    """
    complex_dtype, real = _native.result_type(x.dtype, 1j), real_dtype(x.dtype)
    forward = "i" not in name[:2]
    kind = name.removesuffix("n").removesuffix("fft")
    with _device(x):
        if kind in ("", "i"):
            result = _complex_axes(
                x.astype(complex_dtype, copy=False), extents, axes, _FORWARD if forward else _INVERSE
            )
        elif kind == "r":
            result = _to_half(x, extents, axes, complex_dtype)
        elif kind == "ih":
            result = _native.conjugate(_to_half(x, extents, axes, complex_dtype))
        else:
            x = x.astype(complex_dtype, copy=False)
            result = _from_half(_native.conjugate(x) if kind == "h" else x, extents, axes, real)
        n = prod(extents)
        if norm == "ortho":
            result *= 1 / sqrt(n)
        elif (norm == "forward") == forward and n > 1:
            result *= 1 / n
    return result


def _device(x: ndarray) -> Any:
    from dlbridge.nd.cuda import Device

    return Device(x.device.id)
