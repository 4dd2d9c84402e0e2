"""Discrete Fourier transforms. On the host by SciPy's pocketfft, by NumPy's where SciPy is not installed; on CUDA
devices by cuFFT: that of PyTorch, of a wheel (nvidia-cufft) or of a toolkit.

Transforms of float32 and complex64 are computed in single precision, 16-bit floats as float32, integers as float64.
"""

from __future__ import annotations

from functools import cache
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, axis_error, into, normalize_axes, normalize_axis
from dlbridge.nd._dtypes import BY_NAME, kind_of, real_dtype, resolve
from dlbridge.nd._host import COMPUTED, by_library, computed_in, inexact
from dlbridge.nd._host_fft import TO_REAL, arguments, library, transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis, DeviceLike, DTypeLike
    from dlbridge.nd._dtypes import DType

ndarray = _native.ndarray
_FLOAT64 = BY_NAME["float64"]

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_FROM_REAL = frozenset({"rfft", "rfftn", "ihfft"})
_NORMS = (None, "backward", "ortho", "forward")
_LAST_TWO = (-2, -1)


@cache  # an import statement takes half a microsecond also where the module is there
def _on_device() -> Any:
    from dlbridge.nd._cufft import transform

    return transform


def _operand(name: str, operation: str, a: ArrayLike, norm: str | None) -> ndarray:
    x = as_array(a)
    if norm not in _NORMS:
        raise ValueError(f"{operation}(): norm is {norm!r}; give 'backward', 'ortho', 'forward' or None")
    if name in _FROM_REAL and x.dtype.kind == "c":
        raise TypeError(
            f"{operation}(): the array is {x.dtype}; this transform is that of real ones. Use fft() or ifft()"
        )
    return x


def _extent(name: str, operation: str, n: Any, x: ndarray, axis: int, last: bool) -> int:
    """How many elements an axis is cut or padded to, of the real side of a transform. ValueError below 1."""
    if n is None and name in TO_REAL and last:
        extent = 2 * (x.shape[axis] - 1)
    else:
        extent = x.shape[axis] if n is None or index(n) == -1 else index(n)
    if extent < 1:
        raise ValueError(
            f"{operation}(): {extent} data points along axis {axis} of shape {x.shape}; a transform needs one or more. "
            "Give their number by n= or s=, and zeros are appended"
        )
    return extent


def _complex(x: ndarray) -> DType:
    return _native.result_type(computed_in(inexact(x)), 1j)


def _transform(
    name: str, operation: str, x: ndarray, out: ndarray | None, extents: Sequence[int], axes: Sequence[int], norm: Any
) -> ndarray:
    if not isinstance(x, _native.HostArray):
        if x.dtype.name in COMPUTED:  # no dtype to find out, and none to round to
            return into(out, _on_device()(name, x, extents, axes, norm), operation)
        result = _on_device()(name, x.astype(computed_in(inexact(x)), copy=False), extents, axes, norm)
    else:
        repeated = len(axes) > 1 and len(set(axes)) != len(axes)
        result = None if repeated else transform(name, x, extents, axes, norm)
        if result is not None and x.itemsize != 2:  # nor is what is wider rounded
            return into(out, result, operation)
        if result is None:
            function = library(name, operation, repeated)
            x = x.astype(_FLOAT64) if kind_of(x.dtype) in "biu" else x
            result = by_library(lambda a: function(a, *arguments(name, extents, axes), norm), [x], False)
    wide = inexact(x) if len(extents) == 1 else _complex(x)  # NumPy rounds to 16 bits what it computed in one step
    wanted = real_dtype(wide) if name in TO_REAL else _complex(x)
    return into(out, result.astype(wanted, copy=False), operation)  # NumPy 1 computes all in double precision


def _one(name: str, a: ArrayLike, n: int | None, axis: int, norm: str | None, out: ndarray | None) -> ndarray:
    x = _operand(name, name, a, norm)
    position = normalize_axis(axis, x.ndim, name)
    if n is not None and index(n) < 1:  # -1 is a length in s= alone
        raise ValueError(f"{name}(): n is {n}; a transform needs one data point or more")
    extent = _extent(name, name, n, x, position, True)
    return _transform(name, name, x, out, (extent,), (position,), norm)


def _several(
    name: str,
    operation: str,
    a: ArrayLike,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str | None,
    out: ndarray | None,
) -> ndarray:
    x = _operand(name, operation, a, norm)
    if s is None and axes is _LAST_TWO and x.ndim > 1 and name not in TO_REAL and 0 not in x.shape[-2:]:
        return _transform(name, operation, x, out, x.shape[-2:], (x.ndim - 2, x.ndim - 1), norm)  # nothing to find out
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    positions = [normalize_axis(axis, x.ndim, operation) for axis in axes]
    lengths = [None] * len(positions) if s is None else list(s)
    if len(lengths) != len(positions):
        raise ValueError(f"{operation}(): s has {len(lengths)} lengths for {len(positions)} axes; give one for each")
    if not positions:
        if name in _FROM_REAL | TO_REAL:
            raise axis_error(operation, -1, 0)
        return into(out, x, operation)  # as it is, which is NumPy's rule, too
    last = len(positions) - 1
    extents = [
        _extent(name, operation, n, x, axis, i == last)
        for i, (n, axis) in enumerate(zip(lengths, positions, strict=True))
    ]
    return _transform(name, operation, x, out, extents, positions, norm)


# --- one axis --------------------------------------------------------------------------------------------------------


def fft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: ndarray | None = None
) -> ndarray:
    """The Fourier transform along an axis, complex: sum over k of a[k] exp(-2 pi i jk/n).

    n: the number of data points, for which the axis is cut, or padded with zeros. norm: where the factor 1/n is:
    "backward" (or None) in the inverse transforms, "forward" in the others, "ortho" as 1/sqrt(n) in both.
    out: takes the result, once all of it is there.
    Raises ValueError for n below 1 or an unknown norm, AxisError for an axis that there is not, RuntimeError for CUDA
    arrays where there is no cuFFT. Source: Array API 2024.12, NumPy.
    """
    return _one("fft", a, n, axis, norm, out)


def ifft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: ndarray | None = None
) -> ndarray:
    """The inverse of fft(): sum over k of a[k] exp(2 pi i jk/n), divided by n. Arguments and errors as for fft()."""
    return _one("ifft", a, n, axis, norm, out)


def rfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: ndarray | None = None
) -> ndarray:
    """The first n // 2 + 1 elements of fft() of a real array; the others are their conjugates.

    TypeError for complex arrays; other arguments and errors as for fft(). Source: Array API 2024.12, NumPy.
    """
    return _one("rfft", a, n, axis, norm, out)


def irfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: ndarray | None = None
) -> ndarray:
    """The inverse of rfft(), real.

    n: the number of elements of the result, of which the axis holds n // 2 + 1; 2 (m - 1) for m of them by default, so
    that an odd one has to be given.
    Other arguments and errors as for fft(). Source: Array API 2024.12, NumPy.
    """
    return _one("irfft", a, n, axis, norm, out)


def hfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: ndarray | None = None
) -> ndarray:
    """The transform, real, of n elements of which the second half are the conjugates of the first; the axis holds the
    first n // 2 + 1. Arguments and errors as for irfft()."""
    return _one("hfft", a, n, axis, norm, out)


def ihfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: ndarray | None = None
) -> ndarray:
    """The inverse of hfft(): the first n // 2 + 1 elements of ifft() of a real array. Arguments as for rfft()."""
    return _one("ihfft", a, n, axis, norm, out)


# --- several axes ----------------------------------------------------------------------------------------------------


def fftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """fft() along several axes, all of them by default.

    s: the number of data points of each axis, -1 for as many as it has; without axes, those of the last ones.
    axes: none at all, (), give the array itself.
    Raises ValueError for a number below 1, numbers that do not fit the axes or an unknown norm, AxisError for an axis
    that there is not. Source: Array API 2024.12, NumPy.
    """
    return _several("fftn", "fftn", a, s, axes, norm, out)


def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of fftn(). Arguments and errors as for fftn()."""
    return _several("ifftn", "ifftn", a, s, axes, norm, out)


def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """rfft() along the last of several axes, fft() along the others.

    TypeError for complex arrays; other arguments and errors as for fftn(). Source: Array API 2024.12, NumPy.
    """
    return _several("rfftn", "rfftn", a, s, axes, norm, out)


def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of rfftn(), real: the last number of `s` is that of irfft(). Arguments and errors as for fftn()."""
    return _several("irfftn", "irfftn", a, s, axes, norm, out)


def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = _LAST_TWO,
    norm: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """fftn() along the last two axes, or those given."""
    return _several("fftn", "fft2", a, s, axes, norm, out)


def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = _LAST_TWO,
    norm: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """ifftn() along the last two axes, or those given."""
    return _several("ifftn", "ifft2", a, s, axes, norm, out)


def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = _LAST_TWO,
    norm: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """rfftn() along the last two axes, or those given."""
    return _several("rfftn", "rfft2", a, s, axes, norm, out)


def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = _LAST_TWO,
    norm: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """irfftn() along the last two axes, or those given."""
    return _several("irfftn", "irfft2", a, s, axes, norm, out)


# --- frequencies and their order, on every device --------------------------------------------------------------------


def _frequencies(name: str, n: int, d: float, dtype: DTypeLike | None, device: DeviceLike, half: bool) -> ndarray:
    count = index(n)
    wanted = BY_NAME["float64"] if dtype is None else resolve(dtype)
    if count < 1:
        raise ValueError(f"{name}(): n is {n}; a transform has one data point or more")
    if kind_of(wanted) != "f":
        raise ValueError(f"{name}(): dtype is {wanted}; frequencies are real floats")
    positive = count // 2 + 1 if half else (count - 1) // 2 + 1
    x = _native.empty((positive if half else count,), "float64", device=device)
    _native.range_fill(x[:positive], 0, 1)
    if not half and count > positive:
        _native.range_fill(x[positive:], -(count // 2), 1)
    x *= 1.0 / (count * d)
    return x.astype(wanted, copy=False)


def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike = None) -> ndarray:
    """The frequencies of the elements of fft(), in cycles per unit of `d`: 0 and the positive ones, then the negative.

    n: the number of data points. d: the distance between two. dtype: of the result, float64 by default.
    Raises ValueError for n below 1 and for a dtype that is not of real floats. Source: Array API 2024.12, NumPy.
    """
    return _frequencies("fftfreq", n, d, dtype, device, False)


def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike = None) -> ndarray:
    """The frequencies of the n // 2 + 1 elements of rfft(), none negative. Arguments and errors as for fftfreq()."""
    return _frequencies("rfftfreq", n, d, dtype, device, True)


def _shifted(name: str, x: ArrayLike, axes: Axis, sign: int) -> ndarray:
    a = as_array(x)
    positions = normalize_axes(axes, a.ndim, name)
    steps = [0] * a.ndim
    for axis in positions:
        steps[axis] = sign * (a.shape[axis] // 2) % (a.shape[axis] or 1)
    return _native.roll(a, steps)


def fftshift(x: ArrayLike, axes: Axis = None) -> ndarray:
    """A copy with the frequency 0 moved to the middle of axes, all by default. Source: Array API 2024.12, NumPy."""
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, axes: Axis = None) -> ndarray:
    """The inverse of fftshift(): a copy with the middle of axes moved to their start. Source: Array API 2024.12."""
    return _shifted("ifftshift", x, axes, -1)
