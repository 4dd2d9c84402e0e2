"""Order statistics that leave NaN out: NaN sorts last, so that each slice says how many elements it has."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, into
from dlbridge.nd._dtypes import is_inexact
from dlbridge.nd._indexing import take_along_axis
from dlbridge.nd._quantiles import (
    between,
    checked_fractions,
    dtype_between,
    gives_elements,
    interpolate,
    median,
    middle_of,
    order_statistics,
    place_of,
    sorted_along,
    stacked,
    with_kept_dims,
)
from dlbridge.nd._sets import unique_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis

ndarray = _native.ndarray


def _without_nan(a: ndarray, axis: Axis) -> ndarray | None:
    """An array with the same order statistics, none of them NaN, where the host finds it in a pass or two."""
    if not isinstance(a, _native.HostArray) or a.size == 0:
        return None
    missing = _native.isnan(a)
    if not bool(missing.any()):
        return a
    if axis is not None:
        return None
    kept = a[~missing]
    return kept if kept.size else None


def _only_slice(ordered: ndarray) -> ndarray | None:
    """What is not NaN of a vector, or one NaN where there is nothing else; None where there are several slices."""
    if ordered.ndim != 1 or ordered.size == 0:
        return None
    infinity = _native.full((1,), float("inf"), ordered.dtype, device=ordered.device)
    return ordered[: max(_native.searchsorted_flat(ordered, infinity, True).item(), 1)]


def _element(ordered: ndarray, position: ndarray) -> ndarray:
    """The element of each slice at its position; the first one where that is negative."""
    place = _native.maximum(position, 0).astype("int64", copy=False)
    return take_along_axis(ordered, place[..., None], -1)[..., 0]


def _fraction_of(ordered: ndarray, counts: ndarray, fraction: float, method: str) -> ndarray:
    """The fraction of each slice: where it lies is asked for each count that there is, and looked up."""
    device, known = ordered.device, unique_values(counts)
    places = [place_of(n, fraction, method) if n else (0, 0.0) for n in known.tolist()]
    which = _native.searchsorted_flat(known, counts.ravel(), False).reshape(counts.shape)
    low = _native.take(_native.array([low for low, _ in places], "int64", device=device), which, None)
    weight = _native.take(_native.array([weight for _, weight in places], "float64", device=device), which, None)
    high = _native.minimum(low + 1, _native.maximum(counts - 1, 0))
    below, above = _element(ordered, low), _element(ordered, high)
    middle = between(below, above, weight)
    return _native.where(_native.equal(weight, 0), below, _native.where(_native.equal(weight, 1), above, middle))


def _nan_order_statistics(
    a: ndarray, q: Any, whole: int, axis: Axis, out: ndarray | None, method: str, keepdims: bool, operation: str
) -> ndarray:
    """nanquantile() for `q` in parts of `whole`."""
    if not is_inexact(a):
        return order_statistics(a, q, whole, axis, out, method, keepdims, operation)
    fractions, shape = checked_fractions(a, q, whole, method, operation)
    numbers = None if keepdims else _without_nan(a, axis)
    if numbers is not None:
        return order_statistics(numbers, q, whole, axis, out, method, keepdims, operation)
    ordered, axes = sorted_along(a, axis, operation)
    dtype = a.dtype if gives_elements(method) else dtype_between(a, q)
    only = _only_slice(ordered)
    if only is not None:
        only = only.astype(dtype, copy=False)
        result = stacked([interpolate(only, fraction / whole, method) for fraction in fractions], shape, only)
        result = result if result.flags.owndata else result.copy()
        return into(out, with_kept_dims(result, a.shape, axes, len(shape)) if keepdims else result, operation)
    counts = _native.logical_not(_native.isnan(ordered)).sum(axis=-1)
    if ordered.shape[-1] == 0:
        ordered = _native.broadcast_to(_native.array(float("nan"), a.dtype, device=a.device), (*ordered.shape[:-1], 1))
    ordered = ordered.astype(dtype, copy=False)
    found = [
        _fraction_of(ordered, counts, fraction / whole, method).astype(dtype, copy=False) for fraction in fractions
    ]
    result = stacked(found, shape, ordered)
    if keepdims:
        result = with_kept_dims(result, a.shape, axes, len(shape))
    return into(out, result, operation)


def nanquantile(
    a: ArrayLike,
    /,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> ndarray:
    """quantile() of what is not NaN; NaN where there is nothing else. The host waits for how many those are."""
    return _nan_order_statistics(as_array(a), q, 1, axis, out, method, keepdims, "nanquantile")


def nanpercentile(
    a: ArrayLike,
    /,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> ndarray:
    """percentile() of what is not NaN; NaN where there is nothing else."""
    return _nan_order_statistics(as_array(a), q, 100, axis, out, method, keepdims, "nanpercentile")


def nanmedian(
    a: ArrayLike,
    /,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """median() of what is not NaN; NaN where there is nothing else."""
    a = as_array(a)
    if not is_inexact(a):
        return median(a, axis, out, overwrite_input, keepdims)
    numbers = None if keepdims else _without_nan(a, axis)
    if numbers is not None:
        return median(numbers, axis, out)
    ordered, axes = sorted_along(a, axis, "nanmedian")
    if ordered.shape[-1] == 0:
        return median(a, axis, out, overwrite_input, keepdims)
    only = _only_slice(ordered)
    if only is not None:
        result = middle_of(only)
        return into(out, with_kept_dims(result, a.shape, axes, 0) if keepdims else result, "nanmedian")
    counts = _native.logical_not(_native.isnan(ordered)).sum(axis=-1)
    low, high = _element(ordered, (counts - 1) // 2), _element(ordered, counts // 2)
    result = between(low, high, 0.5)
    result = _native.where(_native.equal(low, high), low, result)  # two infinities have no middle between them
    return into(out, with_kept_dims(result, a.shape, axes, 0) if keepdims else result, "nanmedian")
