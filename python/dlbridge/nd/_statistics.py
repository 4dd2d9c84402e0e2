"""Reductions and scans: sums, extremes, moments, running sums, differences."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, into, normalize_axis
from dlbridge.nd._dtypes import BY_NAME, float_for
from dlbridge.nd._ufunc_methods import into_any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis, DTypeLike

ndarray = _native.ndarray
_BOOL = BY_NAME["bool"]

# --- reductions: axis None reduces all axes, keepdims keeps them with extent 1, out is written to and returned -------


def sum(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """The sum over axes, 0 if there are none. Integers and bool are summed in 64 bits, 16-bit floats in float32.

    Source: Array API 2024.12.
    """
    return as_array(a).sum(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def prod(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """The product over axes, 1 if there are none; dtypes as for sum(). Source: Array API 2024.12."""
    return as_array(a).prod(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def max(a: ArrayLike, /, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """The largest element over axes; NaN if any is NaN. ValueError if there are none. Source: Array API 2024.12."""
    return as_array(a).max(axis=axis, out=out, keepdims=keepdims)


def min(a: ArrayLike, /, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """The smallest element over axes; NaN if any is NaN. ValueError if there are none. Source: Array API 2024.12."""
    return as_array(a).min(axis=axis, out=out, keepdims=keepdims)


amax, amin = max, min


def any(a: ArrayLike, /, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """Whether any element over axes is true (not zero); False if there are none. Source: Array API 2024.12."""
    return as_array(a).any(axis=axis, out=out, keepdims=keepdims)


def all(a: ArrayLike, /, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """Whether all elements over axes are true (not zero); True if there are none. Source: Array API 2024.12."""
    return as_array(a).all(axis=axis, out=out, keepdims=keepdims)


def mean(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """The mean over axes, NaN if there are none; float64 for integers and bool. Source: Array API 2024.12."""
    return as_array(a).mean(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def _correction(ddof: float | None, correction: float | None, operation: str) -> float:
    if ddof is not None and correction is not None:
        raise ValueError(f"{operation}(): ddof and correction are two names of one thing. Give one of them")
    return ddof if ddof is not None else correction if correction is not None else 0.0


def var(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    ddof: float | None = None,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> ndarray:
    """The variance over axes: squared distances from the mean, divided by n - correction (also called ddof; 0).

    Source: Array API 2024.12.
    """
    c = _correction(ddof, correction, "var")
    return as_array(a).var(axis=axis, dtype=dtype, out=out, correction=c, keepdims=keepdims)


def std(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    ddof: float | None = None,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> ndarray:
    """The standard deviation over axes, the root of var(). Source: Array API 2024.12."""
    c = _correction(ddof, correction, "std")
    return as_array(a).std(axis=axis, dtype=dtype, out=out, correction=c, keepdims=keepdims)


def count_nonzero(a: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> ndarray:
    """The number of elements over axes that are not zero, as int64. Source: Array API 2024.12."""
    return _native.reduce("count_nonzero", as_array(a), axis, None, keepdims, None, 0.0)


def ptp(a: ArrayLike, /, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """The distance between the largest and the smallest element over axes."""
    a = as_array(a)
    largest, smallest = a.max(axis=axis, keepdims=keepdims), a.min(axis=axis, keepdims=keepdims)
    if isinstance(out, ndarray):  # NumPy: a distance that the elements' dtype does not hold is taken in that of `out`
        largest = largest.astype(_native.result_type(a, out), copy=False)
    return into(out, largest - smallest, "ptp")


def average(
    a: ArrayLike,
    /,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """The mean over axes, weighted where `weights` (of the shape of `a`, or of its axis) are given.

    returned: also return the sum of the weights. ZeroDivisionError is not raised where that is 0: the result is NaN or
    inf. ValueError where the shapes do not fit. Source: NumPy.
    """
    a = as_array(a)
    if weights is None:
        result = a.mean(axis=axis, keepdims=keepdims)
        if not returned:
            return result
        count = a.size / result.size if result.size else 0.0
        total = _native.empty(result.shape, result.dtype, device=a.device)
        total.fill(count)
        return result, total
    w = as_array(weights, a)
    if w.shape != a.shape:
        if axis is None or isinstance(axis, (tuple, list)) or w.ndim != 1:
            raise ValueError(
                f"average(): weights of shape {w.shape} for values of {a.shape}; give one shape, or an axis"
            )
        position = normalize_axis(axis, a.ndim, "average")
        if w.shape[0] != a.shape[position]:
            raise ValueError(f"average(): {w.shape[0]} weights for {a.shape[position]} elements of axis {position}")
        w = _native.broadcast_to(w.reshape((-1,) + (1,) * (a.ndim - 1 - position)), a.shape)
    dtype = _native.result_type(float_for(a.dtype), w.dtype)
    total = w.sum(axis=axis, dtype=dtype, keepdims=keepdims)
    result = _native.multiply(a, w, dtype=dtype).sum(axis=axis, keepdims=keepdims) / total
    return (result, total) if returned else result


# --- scans ----------------------------------------------------------------------------------------------------------


def cumsum(
    a: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """The running sum along an axis, of the flattened array by default; dtypes as for sum()."""
    return as_array(a).cumsum(axis=axis, dtype=dtype, out=out)


def cumprod(
    a: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """The running product along an axis, of the flattened array by default; dtypes as for sum()."""
    return as_array(a).cumprod(axis=axis, dtype=dtype, out=out)


def _cumulative(
    x: ArrayLike,
    name: str,
    axis: int | None,
    dtype: DTypeLike | None,
    include_initial: bool,
    initial: int,
    out: ndarray | None,
) -> ndarray:
    x = as_array(x)
    x = x if x.ndim else x.reshape(1)  # as NumPy has it
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"cumulative_{name}(): the array has {x.ndim} dimensions; name the axis unless it has one")
        axis = 0
    axis = normalize_axis(axis, x.ndim, f"cumulative_{name}")
    scanned = _native.scan(name, x, axis, dtype)
    if not include_initial:
        return into_any(out, scanned, f"cumulative_{name}")
    shape = list(scanned.shape)
    shape[axis] += 1
    result = _native.empty(tuple(shape), scanned.dtype, device=x.device)
    before: tuple[Any, ...] = (slice(None),) * axis
    result[(*before, slice(None, 1))] = initial
    result[(*before, slice(1, None))] = scanned
    return into_any(out, result, f"cumulative_{name}")


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    out: ndarray | None = None,
) -> ndarray:
    """The running sum along an axis, which may be omitted for vectors only; include_initial puts 0 in front.

    Source: Array API 2024.12, NumPy.
    """
    return _cumulative(x, "sum", axis, dtype, include_initial, 0, out)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    out: ndarray | None = None,
) -> ndarray:
    """The running product along an axis, which may be omitted for vectors only; include_initial puts 1 in front.

    Source: Array API 2024.12, NumPy.
    """
    return _cumulative(x, "prod", axis, dtype, include_initial, 1, out)


def diff(
    a: ArrayLike, /, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> ndarray:
    """The difference of neighbours along an axis, n times; of bool, whether they differ.

    prepend, append: scalars or arrays that are joined first. ValueError for a negative n. Source: Array API 2024.12.
    """
    x = as_array(a)
    times = index(n)
    if times < 0:
        raise ValueError(f"diff(): n is {times}; it is a number of times, 0 or more")
    axis = normalize_axis(axis, x.ndim, "diff")
    if prepend is not None or append is not None:
        from dlbridge.nd._joining import concatenate

        shape = tuple(1 if position == axis else extent for position, extent in enumerate(x.shape))
        ends = [None if end is None else as_array(end, x) for end in (prepend, append)]
        first, last = [end if end is None or end.ndim else _native.broadcast_to(end, shape) for end in ends]
        x = concatenate([part for part in (first, x, last) if part is not None], axis)
    before: tuple[Any, ...] = (slice(None),) * axis
    combine = _native.not_equal if x.dtype is _BOOL else _native.subtract
    for _ in range(times):
        x = combine(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return x


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> ndarray:
    """The differences of neighbours of the flattened array, with `to_begin` in front and `to_end` behind."""
    flat = as_array(ary).ravel()
    inner: ndarray = _native.subtract(flat[1:], flat[:-1])
    if to_begin is None and to_end is None:
        return inner
    from dlbridge.nd._joining import concatenate

    ends = [None if end is None else as_array(end, inner).ravel() for end in (to_begin, to_end)]
    for end in ends:
        if end is not None and not _native.can_cast(end, inner.dtype, "same_kind"):
            raise TypeError(f"ediff1d(): {end.dtype} cannot be cast to the {inner.dtype} of the array (same_kind)")
    ends = [None if end is None else end.astype(inner.dtype) for end in ends]
    return concatenate([part for part in (ends[0], inner, ends[1]) if part is not None])
