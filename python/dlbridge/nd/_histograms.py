"""Counts of values: bins and histograms."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, count_up
from dlbridge.nd._dtypes import BY_NAME, finfo, is_inexact, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray
_FLOAT64, _INT64 = BY_NAME["float64"], BY_NAME["int64"]


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0) -> ndarray:
    """How often each integer from 0 on occurs in a vector, or the sum of the weights of its occurrences.

    The length is that of the largest value, for which the host waits, or `minlength`. ValueError for negative values.
    Source: NumPy.
    """
    x = as_array(x)
    if x.ndim != 1 or kind_of(x.dtype) not in "iub":
        raise (TypeError if x.ndim == 1 else ValueError)(
            f"bincount(): x is {x.dtype} of {x.ndim} dimension(s); give a vector of integers"
        )
    if index(minlength) < 0:
        raise ValueError(f"bincount(): minlength is {minlength}; it is a length, 0 or more")
    if x.size and kind_of(x.dtype) == "i" and int(x.min()) < 0:
        raise ValueError(f"bincount(): x holds {int(x.min())}; it counts integers from 0 on")
    n = minlength if x.size == 0 else int(x.max()) + 1
    n = n if n > minlength else minlength
    if weights is None:
        ends = count_up(n, x.device)
        ordered = _native.sort(x.astype(_INT64, copy=False), 0, False, False)
        return _native.searchsorted_flat(ordered, ends, True) - _native.searchsorted_flat(ordered, ends, False)
    w = as_array(weights, x)
    if w.shape != x.shape:
        raise ValueError(f"bincount(): weights of shape {w.shape} for values of shape {x.shape}; they must be equal")
    if kind_of(w.dtype) == "c":
        raise TypeError(f"bincount(): weights are {w.dtype}; they must be real")
    totals = _native.empty((n,), _FLOAT64, device=x.device)
    totals.fill(0)
    _native.index_add(totals, (x.astype(_INT64, copy=False),), w.astype(_FLOAT64, copy=False))
    return totals


def histogram_bin_edges(a: ArrayLike, bins: Any = 10, range: tuple[float, float] | None = None) -> ndarray:
    """The edges of the bins of histogram(), one more than there are bins."""
    from dlbridge.nd._ranges import linspace

    a = as_array(a)
    if not isinstance(bins, int):
        given = as_array(bins, a)
        if given.ndim != 1 or bool((given[1:] < given[:-1]).any()):
            raise ValueError("histogram(): bins must be a number, or a vector of edges that never decreases")
        return given
    if bins < 1:
        raise ValueError(f"histogram(): {bins} bins; give 1 or more")
    low, high = range if range is not None else (a.min().item(), a.max().item()) if a.size else (0.0, 1.0)
    if not (low <= high and high - low < float("inf")):
        raise ValueError(f"histogram(): the range from {low} to {high} is not finite and increasing")
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges: ndarray = linspace(float(low), float(high), bins + 1, device=a.device)
    edges = edges.astype(a.dtype) if is_inexact(a) else edges
    width, spacing = (high - low) / bins, max(abs(low), abs(high)) * float(finfo(edges.dtype).eps)
    if width <= 2 * spacing and bool((edges[1:] <= edges[:-1]).any()):  # the device is waited for where it may be
        raise ValueError(f"histogram(): from {low} to {high} there are no {bins} bins of finite size; give fewer")
    return edges


def histogram(
    a: ArrayLike,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, ndarray]:
    """How many elements fall in each bin, and the edges of the bins; the last bin includes its upper edge.

    bins: a number of equal ones between the extremes (or over `range`), or the edges. density: the integral is 1.
    weights: what each element counts. The host waits for the extremes. ValueError for bad bins or ranges.
    Source: NumPy.
    """
    a = as_array(a)
    edges = histogram_bin_edges(a, bins, range)
    flat = a.ravel()
    common = _native.result_type(flat.dtype, edges.dtype)
    flat, marks = flat.astype(common, copy=False), edges.astype(common, copy=False)
    if weights is None:
        ordered = _native.sort(flat, 0, False, False)
        below = _native.searchsorted_flat(ordered, marks, False)
        below[-1:] = _native.searchsorted_flat(ordered, marks[-1:], True)
        counts = below[1:] - below[:-1]
    else:
        w = as_array(weights, a).ravel()
        position = _native.searchsorted_flat(marks, flat, True) - 1
        position = _native.where(flat == marks[-1], edges.size - 2, position)
        inside = (flat >= marks[0]) & (flat <= marks[-1])
        dtype = w.dtype if is_inexact(w) else _FLOAT64
        counts = _native.empty((edges.size - 1,), dtype, device=a.device)
        counts.fill(0)
        _native.index_add(counts, (position[inside],), w[inside].astype(dtype, copy=False))
        if w.dtype != dtype:
            counts = counts.astype(w.dtype)
    if density:
        return counts / (edges[1:] - edges[:-1]) / counts.sum(), edges
    return counts, edges
