"""Slopes, convolutions and windows of sampled signals."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, normalize_axes, normalize_axis
from dlbridge.nd._dtypes import is_inexact, kind_of
from dlbridge.nd._host import numpys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis, DeviceLike

ndarray = _native.ndarray

# --- slopes ---------------------------------------------------------------------------------------------------------


def _steps(spacing: Any, f: ndarray, axis: int) -> Any:
    """The distance between samples along an axis: a number, or one for each gap where the places are given."""
    step = as_array(spacing, f)
    if step.ndim == 0:
        return step.item()
    if step.shape != (f.shape[axis],):
        raise ValueError(
            f"gradient(): the places along axis {axis} have shape {step.shape}; give one for each of the "
            f"{f.shape[axis]} samples"
        )
    gaps = _native.subtract(step[1:], step[:-1])
    return gaps.reshape((-1,) + (1,) * (f.ndim - 1 - axis))


def _slope(f: ndarray, axis: int, step: Any, edge_order: int) -> ndarray:
    """The slope along one axis: of the parabola through three neighbours inside, and one-sided at the ends."""

    def at(start: int | None, stop: int | None = None) -> ndarray:
        part: ndarray = f[(slice(None),) * axis + (slice(start, stop),)]
        return part

    if isinstance(step, ndarray):
        left, right = step[:-1], step[1:]
        whole = left + right
        inner = at(2) * (left / (right * whole)) + at(1, -1) * ((right - left) / (left * right)) - at(None, -2) * (
            right / (left * whole)
        )  # fmt: skip
        first, second, before, last = step[:1], step[1:2], step[-2:-1], step[-1:]
    else:
        inner = (at(2) - at(None, -2)) / (2 * step)
        first = second = before = last = step
    if edge_order == 1:
        begin, end = (at(1, 2) - at(0, 1)) / first, (at(-1) - at(-2, -1)) / last
    else:
        begin = (
            at(1, 2) * ((first + second) / (first * second))
            - at(0, 1) * ((2 * first + second) / (first * (first + second)))
            - at(2, 3) * (first / (second * (first + second)))
        )
        end = (
            at(-1) * ((2 * last + before) / (last * (last + before)))
            - at(-2, -1) * ((last + before) / (last * before))
            + at(-3, -2) * (last / (before * (last + before)))
        )
    return _native.concatenate([begin, inner, end], axis)


def gradient(f: ArrayLike, *varargs: Any, axis: Axis = None, edge_order: int = 1) -> Any:
    """The slope of samples along each axis, by central differences: an array for one axis, else a tuple of them.

    varargs: the distance between samples, one number for all axes or one value an axis, a number or the places of the
    samples. axis: which axes; all of them for None. edge_order: 1 or 2, of the differences at both ends. Needs
    edge_order + 1 samples an axis. Source: NumPy.
    """
    f = as_array(f)
    axes = normalize_axes(axis, f.ndim, "gradient")
    if index(edge_order) not in (1, 2):
        raise ValueError(f"gradient(): edge_order is {edge_order}; give 1 or 2")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(
            f"gradient(): {len(varargs)} spacings for {len(axes)} axes. Give none, one for all, or one for each axis"
        )
    spacings = varargs if len(varargs) == len(axes) else (varargs or (1.0,)) * len(axes)
    if f.dtype == "bool":
        raise TypeError("gradient(): the array is bool, which has no differences. Convert it: f.astype('int8')")
    f = f if is_inexact(f) else f.astype("float64")
    for k in axes:
        if f.shape[k] < edge_order + 1:
            raise ValueError(f"gradient(): axis {k} has {f.shape[k]} samples; edge_order + 1 are needed")
    found = tuple(
        _slope(f, k, _steps(spacing, f, k), edge_order).astype(f.dtype, copy=False)
        for k, spacing in zip(axes, spacings, strict=True)
    )
    return found[0] if len(found) == 1 else found


# --- convolutions ---------------------------------------------------------------------------------------------------


def _sliding_products(a: ndarray, v: ndarray, mode: str, operation: str) -> ndarray:
    """The sums of products of `v` with each part of `a` that it lies on: a product of matrices."""
    n = v.size
    if mode == "valid":
        before = after = 0
    elif mode == "full":
        before = after = n - 1
    elif mode == "same":
        before, after = n // 2, n - 1 - n // 2
    else:
        raise ValueError(f"{operation}(): mode is {mode!r}; give 'full', 'same' or 'valid'")
    count = before + a.size + after - n + 1
    v = v.astype(_native.result_type(a.dtype, v.dtype), copy=False)
    if not isinstance(a, _native.HostArray) or count <= 2 * _PART:
        return _products_from(-before, count, a, v)
    result = _native.empty((count,), v.dtype, device=a.device)
    for done in range(0, count, _PART):
        here = min(_PART, count - done)
        result[done : done + here] = _products_from(done - before, here, a, v)
    return result


_PART = 1 << 14  # sums at a time on the host: they and what they are made of stay in the cache


def _products_from(first: int, count: int, a: ndarray, v: ndarray) -> ndarray:
    """The sums of products of `v` with the parts of `a` that begin at `first` and behind it; there are zeros around."""
    begin, end = max(first, 0), min(first + count + v.size - 1, a.size)
    needed = count + v.size - 1
    on_host = isinstance(a, _native.HostArray)
    room = a[begin:end]
    if not on_host or room.size < needed or room.dtype != v.dtype or room.strides[0] != room.itemsize:
        room = _native.empty((needed,), v.dtype, device=a.device)
        ends = (room[: begin - first], room[end - first :])
        for part in ends if on_host else (room,):  # on a device a launch costs more than what it fills
            part.fill(0)
        room[begin - first : end - first] = a[begin:end]
    step = room.strides[0]
    return _native.matmul(_native.as_strided(room, (count, v.size), (step, step)), v)


def _two_vectors(a: ArrayLike, v: ArrayLike, operation: str) -> tuple[ndarray, ndarray]:
    a, v = as_arrays(a, v)
    if a.ndim == v.ndim == 1 and a.size and v.size:
        return a, v
    a, v = (x.reshape(1) if x.ndim == 0 else x for x in (a, v))
    for x in (a, v):
        if x.ndim != 1 or x.size == 0:
            raise ValueError(f"{operation}(): an operand has shape {x.shape}; both must be vectors that are not empty")
    return a, v


def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full") -> ndarray:
    """The discrete convolution of two vectors.

    mode: "full" (all places where they overlap: n + m - 1), "same" (max(n, m), in the middle of those) or "valid"
    (where they overlap completely). Source: NumPy.
    """
    a, v = _two_vectors(a, v, "convolve")
    if v.size > a.size:
        a, v = v, a
    few = _native.correlate_on_host(a, v[::-1], mode)
    return _sliding_products(a, v[::-1], mode, "convolve") if few is None else few


def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid") -> ndarray:
    """The cross-correlation of two vectors, with `v` conjugated; mode as for convolve(). Source: NumPy."""
    few = _native.correlate_on_host(a, v, mode)
    if few is not None:
        return few
    if not (isinstance(a, ndarray) and isinstance(v, ndarray) and a.ndim and v.ndim):
        for name, x in (("a", a), ("v", v)):
            if not getattr(x, "shape", (1,)):
                raise ValueError(f"correlate(): {name} has no axis; give a vector")
    a, v = _two_vectors(a, v, "correlate")
    v = v.conj()
    if v.size <= a.size:
        return _sliding_products(a, v, mode, "correlate")
    return _sliding_products(v, a, mode, "correlate")[::-1].copy()


# --- phases ---------------------------------------------------------------------------------------------------------


def unwrap(p: ArrayLike, discont: float | None = None, axis: int = -1, *, period: float = 6.283185307179586) -> ndarray:
    """Phases without jumps: whenever neighbours differ by more than `discont`, multiples of `period` are added.

    discont: half a period for None, and never less. Source: NumPy.
    """
    from dlbridge.nd._statistics import diff

    p = as_array(p)
    axis = normalize_axis(axis, p.ndim, "unwrap")
    dtype = _native.result_type(p.dtype, period)
    if p.shape[axis] < 2:
        return p.astype(dtype)
    head = (slice(None),) * axis
    jumps = diff(p, axis=axis).astype(dtype, copy=False)  # of unsigned ones as they wrap around
    p = p.astype(dtype, copy=False)
    discont = period / 2 if discont is None else discont
    if kind_of(dtype) in "iu":
        high, uneven = divmod(period, 2)
        low, ambiguous = -high, uneven == 0
    else:
        high, low, ambiguous = period / 2, -period / 2, True
    small = _native.add(_native.remainder(_native.subtract(jumps, low), period), low)
    if ambiguous:
        small = _native.where(_native.logical_and(_native.equal(small, low), _native.greater(jumps, 0)), high, small)
    mended = _native.where(_native.less(_native.abs(jumps), discont), 0, _native.subtract(small, jumps))
    result = p.copy()
    inner = result[(*head, slice(1, None))]
    inner += mended.cumsum(axis=axis)
    return result


# --- windows --------------------------------------------------------------------------------------------------------


def _window(name: str, M: int, device: DeviceLike, *shape: float) -> ndarray:
    return _native.asarray(getattr(numpys("numpy", name), name)(index(M), *shape), None, None, device=device)


def bartlett(M: int, *, device: DeviceLike = None) -> ndarray:
    """The triangular window of M points, float64, made by NumPy on the host. Source: NumPy."""
    return _window("bartlett", M, device)


def blackman(M: int, *, device: DeviceLike = None) -> ndarray:
    """The Blackman window of M points, float64, made by NumPy on the host. Source: NumPy."""
    return _window("blackman", M, device)


def hamming(M: int, *, device: DeviceLike = None) -> ndarray:
    """The Hamming window of M points, float64, made by NumPy on the host. Source: NumPy."""
    return _window("hamming", M, device)


def hanning(M: int, *, device: DeviceLike = None) -> ndarray:
    """The Hann window of M points, float64, made by NumPy on the host. Source: NumPy."""
    return _window("hanning", M, device)


def kaiser(M: int, beta: float, *, device: DeviceLike = None) -> ndarray:
    """The Kaiser window of M points and shape `beta`, float64, made by NumPy on the host. Source: NumPy."""
    return _window("kaiser", M, device, beta)
