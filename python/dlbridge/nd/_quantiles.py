"""Order statistics: quantiles and the median, by sorting."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, into, normalize_axes
from dlbridge.nd._dtypes import float_for, is_inexact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis

ndarray = _native.ndarray


def _sorted_along(a: ndarray, axis: Axis, operation: str) -> tuple[ndarray, tuple[int, ...]]:
    """`a` with the reduced axes flattened to the last one and sorted, and those axes."""
    from dlbridge.nd._manipulation import moveaxis

    axes = normalize_axes(axis, a.ndim, operation)
    if axis is None:
        flat = a.ravel()
    else:
        moved = moveaxis(a, axes, tuple(range(-len(axes), 0)))
        extent = 1
        for position in axes:
            extent *= a.shape[position]
        flat = moved.reshape((*moved.shape[: a.ndim - len(axes)], extent))
    if flat.shape[-1] == 0:
        raise ValueError(f"{operation}(): there is no element along axis {axis}; an order statistic needs one")
    return _native.sort(flat, -1, False, False), axes


def _with_kept_dims(result: ndarray, shape: tuple[int, ...], axes: tuple[int, ...], leading: int) -> ndarray:
    kept = tuple(1 if position in axes else extent for position, extent in enumerate(shape))
    return result.reshape(result.shape[:leading] + kept)


_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def _interpolate(ordered: ndarray, fraction: float, method: str) -> ndarray:
    import math

    n = ordered.shape[-1]
    virtual = fraction * (n - 1)
    low = math.floor(virtual)
    weight = virtual - low
    if method == "lower" or (method in ("linear", "midpoint") and weight == 0):
        return ordered[..., low]
    if method == "higher":
        return ordered[..., math.ceil(virtual)]
    if method == "nearest":
        return ordered[..., round(virtual)]
    a, b = ordered[..., low], ordered[..., low + 1]
    if method == "midpoint":
        weight = 0.5
    return b - (b - a) * (1 - weight) if weight >= 0.5 else a + (b - a) * weight


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

    q: a number, or a sequence, which puts an axis in front. method: "linear", "lower", "higher", "nearest", "midpoint".
    overwrite_input has no effect. ValueError for q out of range or no element. Source: NumPy.
    """
    a = as_array(a)
    if method not in _METHODS:
        raise ValueError(f"quantile(): method {method!r} is unknown; give one of {', '.join(_METHODS)}")
    fractions = q.tolist() if hasattr(q, "tolist") else q
    several = isinstance(fractions, (list, tuple))
    for fraction in fractions if several else [fractions]:
        if not 0 <= fraction <= 1:
            raise ValueError(f"quantile(): q is {fraction}; it is a fraction from 0 to 1")
    exact = method in ("lower", "higher", "nearest")
    ordered, axes = _sorted_along(a, axis, "quantile")
    if not exact:
        ordered = ordered.astype(float_for(a.dtype), copy=False)
    if several:
        from dlbridge.nd._joining import stack

        parts = [_interpolate(ordered, fraction, method) for fraction in fractions]
        result = stack(parts) if parts else ordered[..., :0].sum(axis=-1)[None][:0]
    else:
        result = _interpolate(ordered, fractions, method)
    result = _nan_where_last(ordered, result)
    if keepdims:
        result = _with_kept_dims(result, a.shape, axes, int(several))
    return into(out, result, "quantile")


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
    percents = q.tolist() if hasattr(q, "tolist") else q
    several = isinstance(percents, (list, tuple))
    for percent in percents if several else [percents]:
        if not 0 <= percent <= 100:
            raise ValueError(f"percentile(): q is {percent}; it is a percentage from 0 to 100")
    fractions: Any = [percent / 100 for percent in percents] if several else percents / 100
    return quantile(a, fractions, axis, out, overwrite_input, method, keepdims)


def median(
    a: ArrayLike,
    /,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """The middle element over axes, or the mean of the two; NaN where there is a NaN. ValueError of no element."""
    a = as_array(a)
    ordered, axes = _sorted_along(a, axis, "median")
    middle = ordered.shape[-1] // 2
    result = ordered[..., middle - 1 + ordered.shape[-1] % 2 : middle + 1].mean(axis=-1)
    result = _nan_where_last(ordered, result)
    return into(out, _with_kept_dims(result, a.shape, axes, 0) if keepdims else result, "median")
