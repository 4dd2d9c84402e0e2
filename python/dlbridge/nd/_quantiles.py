"""Order statistics: quantiles and the median, by sorting."""

from __future__ import annotations

import math

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, into, normalize_axes
from dlbridge.nd._dtypes import float_for, is_inexact, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis

ndarray = _native.ndarray


def sorted_along(
    a: ndarray, axis: Axis, operation: str, needed: Callable[[int], Iterable[int]] | None = None
) -> tuple[ndarray, tuple[int, ...]]:
    """`a` with the reduced axes flattened to the last one and sorted, and those axes.

    needed: what positions are looked at, among so many elements, besides the last one for NaN; the host may leave the
    others where they are.
    """
    from dlbridge.nd._manipulation import moveaxis
    from dlbridge.nd._searching import places_of

    axes = normalize_axes(axis, a.ndim, operation)
    if axis is None:
        flat = a.ravel()
    else:
        moved = moveaxis(a, axes, tuple(range(-len(axes), 0)))
        extent = 1
        for position in axes:
            extent *= a.shape[position]
        flat = moved.reshape((*moved.shape[: a.ndim - len(axes)], extent))
    extent = flat.shape[-1]
    last = (extent - 1,) if is_inexact(a) else ()
    places = places_of((*needed(extent), *last)) if needed is not None and extent else None
    return _native.sort(flat, -1, False, False, places), axes


def with_kept_dims(result: ndarray, shape: tuple[int, ...], axes: tuple[int, ...], leading: int) -> ndarray:
    kept = tuple(1 if position in axes else extent for position, extent in enumerate(shape))
    return result.reshape(result.shape[:leading] + kept)


# Where the fraction q of n elements lies: at n q + alpha + q (1 - alpha - beta) - 1, after Hyndman and Fan (1996).
_THIRD, _THREE_EIGHTHS = 1 / 3, 3 / 8
_PLOTTING: dict[str, tuple[float, float]] = {
    "linear": (1, 1),
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (_THIRD, _THIRD),
    "normal_unbiased": (_THREE_EIGHTHS, _THREE_EIGHTHS),
}
# Those that give an element as it is; the others give a value between two.
_EXACT = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
METHODS = (*_PLOTTING, *_EXACT, "midpoint", "averaged_inverted_cdf")


def gives_elements(method: str) -> bool:
    return method in _EXACT


def place_of(n: int, q: float, method: str) -> tuple[int, float]:
    """The element that the fraction q of n lies at or behind, and how far behind it, from 0 to 1."""
    virtual = q * (n - 1)
    if method in _PLOTTING and method != "linear":
        alpha, beta = _PLOTTING[method]
        virtual = n * q + (alpha + q * (1 - alpha - beta)) - 1
    elif method in ("inverted_cdf", "averaged_inverted_cdf"):
        virtual = n * q - 1
    elif method == "closest_observation":
        virtual = n * q - 1.5
    low = math.floor(virtual)
    weight = virtual - low
    if method in ("lower", "higher", "inverted_cdf"):
        weight = 0.0 if method == "lower" or weight == 0 else 1.0
    elif method == "nearest":
        low, weight = round(virtual), 0.0
    elif method == "closest_observation":
        weight = 0.0 if weight == 0 and low % 2 == 1 else 1.0
    elif method in ("midpoint", "averaged_inverted_cdf"):
        weight = 0.5 if (weight == 0) == (method == "averaged_inverted_cdf") else 0.0 if method == "midpoint" else 1.0
    if low < 0:
        return 0, 0.0
    return (n - 1, 0.0) if low >= n - 1 else (low, weight)


def interpolate(ordered: ndarray, fraction: float, method: str) -> ndarray:
    """What lies there in each slice."""
    low, weight = place_of(ordered.shape[-1], fraction, method)
    if weight in (0, 1):
        return ordered[..., low + int(weight)]
    return between(ordered[..., low], ordered[..., low + 1], weight)


def _neighbours(n: int, fractions: Iterable[float], method: str) -> Iterator[int]:
    """What interpolate() looks at."""
    for fraction in fractions:
        low, weight = place_of(n, fraction, method)
        if weight != 1:
            yield low
        if weight != 0:
            yield low + 1


def between(a: ndarray, b: ndarray, weight: Any) -> ndarray:
    """What lies between `a` (weight 0) and `b` (1), from the nearer of the two, so that both ends are exact."""
    gap = _native.subtract(b, a)
    from_b = _native.subtract(b, _native.multiply(gap, 1 - weight))
    from_a = _native.add(a, _native.multiply(gap, weight))
    if isinstance(weight, float):
        return from_b if weight >= 0.5 else from_a
    return _native.where(_native.greater_equal(weight, 0.5), from_b, from_a)


def _nan_where_last(ordered: ndarray, result: ndarray) -> ndarray:
    """NaN sorts last, so that the last element tells whether there is one."""
    if not is_inexact(ordered):
        return result
    last = ordered[..., -1]
    return _native.where(_native.isnan(last), last, result)


def quantile(
    a: ArrayLike,
    /,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> ndarray:
    """The values below which the fractions `q` (0 to 1) of the elements over axes lie; NaN where there is a NaN.

    q: a number, or a sequence or array, which puts its axes in front. method: one of NumPy's: "linear", "lower",
    "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased".
    overwrite_input has no effect. ValueError for q out of range or no element. Source: NumPy.
    """
    return order_statistics(as_array(a), q, 1, axis, out, method, keepdims, "quantile")


def _flat(values: Any) -> tuple[list[float], tuple[int, ...]]:
    """Nested lists as one, and their shape."""
    if not isinstance(values, (list, tuple)):
        return [values], ()
    parts = [_flat(value) for value in values]
    if len({shape for _, shape in parts}) > 1:
        raise ValueError("quantile(): the lists in q have different lengths")
    return [x for part, _ in parts for x in part], (len(parts), *(parts[0][1] if parts else ()))


def checked_fractions(
    a: ndarray, q: Any, whole: int, method: str, operation: str
) -> tuple[list[float], tuple[int, ...]]:
    """The numbers in `q`, parts of `whole`, and their shape."""
    if method not in METHODS:
        raise ValueError(f"{operation}(): method {method!r} is unknown; give one of {', '.join(METHODS)}")
    if kind_of(a.dtype) == "c":
        raise TypeError(f"{operation}(): {a.dtype} has no order, which a quantile needs. Give real numbers")
    fractions, shape = _flat(q.tolist() if hasattr(q, "tolist") else q)
    if len(shape) > 2:
        raise ValueError(f"{operation}(): q has {len(shape)} axes; give a number or a vector")
    for fraction in fractions:
        if not 0 <= fraction <= whole:
            what = "fraction" if whole == 1 else "percentage"
            raise ValueError(f"{operation}(): q is {fraction}; it is a {what} from 0 to {whole}")
    return fractions, shape


def stacked(parts: list[ndarray], shape: tuple[int, ...], ordered: ndarray) -> ndarray:
    """The results for each number in q, whose shape comes in front."""
    if not shape:
        return parts[0]
    from dlbridge.nd._joining import stack

    result = stack(parts) if parts else ordered[..., :0].sum(axis=-1)[None][:0]
    return result.reshape(shape + result.shape[1:])


def order_statistics(
    a: ndarray, q: Any, whole: int, axis: Axis, out: ndarray | None, method: str, keepdims: bool, operation: str
) -> ndarray:
    """quantile() for `q` in parts of `whole`."""
    fractions, shape = checked_fractions(a, q, whole, method, operation)
    parts = [fraction / whole for fraction in fractions]
    ordered, axes = sorted_along(a, axis, operation, lambda n: _neighbours(n, parts, method))
    if ordered.shape[-1] == 0:
        raise ValueError(f"{operation}(): there is no element along axis {axis}; an order statistic needs one")
    names_ends = whole == 1 and bool(fractions) and all(isinstance(fraction, int) for fraction in fractions)
    if not gives_elements(method) and not (method == "linear" and names_ends):  # 0 and 1 as integers name elements
        ordered = ordered.astype(dtype_between(a, q), copy=False)
    result = stacked([interpolate(ordered, part, method) for part in parts], shape, ordered)
    result = _nan_where_last(ordered, result)
    if keepdims:
        result = with_kept_dims(result, a.shape, axes, len(shape))
    return into(out, result, operation)


def dtype_between(a: ndarray, q: Any) -> Any:
    """Of a value between two elements: a Python number takes the dtype of floats, anything else has one (NEP 50)."""
    if type(q) in (int, float, bool):
        return float_for(a.dtype)
    return _native.result_type(a.dtype, float_for(getattr(q, "dtype", "float64")))


def percentile(
    a: ArrayLike,
    /,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> ndarray:
    """quantile() with `q` in percent, from 0 to 100."""
    return order_statistics(as_array(a), q, 100, axis, out, method, keepdims, "percentile")


def middle_of(ordered: ndarray) -> ndarray:
    """The middle element of each slice, or the mean of the two."""
    middle = ordered.shape[-1] // 2
    return ordered[..., max(middle - 1 + ordered.shape[-1] % 2, 0) : middle + 1].mean(axis=-1)


def median(
    a: ArrayLike,
    /,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """The middle element over axes, or the mean of the two; NaN where there is a NaN or no element."""
    a = as_array(a)
    ordered, axes = sorted_along(a, axis, "median", lambda n: ((n - 1) // 2, n // 2))
    result = middle_of(ordered)
    if ordered.shape[-1] != 0:
        result = _nan_where_last(ordered, result)
    return into(out, with_kept_dims(result, a.shape, axes, 0) if keepdims else result, "median")
