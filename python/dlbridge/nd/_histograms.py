"""Counts of values: bins and histograms."""

from __future__ import annotations

import itertools
import math
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, count_up
from dlbridge.nd._dtypes import BY_NAME, finfo, is_inexact, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray
_FLOAT64, _INT64 = BY_NAME["float64"], BY_NAME["int64"]
_FEW = 4096  # numbers, each of which a GPU's blocks count by themselves
_FEW_MARKS = 8  # to compare the host's elements with each takes less time than to search for theirs
_PART = 1 << 15  # elements of the host that are counted at a time


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0) -> ndarray:
    """How often each integer from 0 on occurs in a vector, or the sum of the weights of its occurrences.

    The length is that of the largest value, for which the host waits, or `minlength`. ValueError for negative values.
    Source: NumPy.
    """
    counts = _native.count_on_host(x, weights, minlength)
    if counts is not None:
        return counts
    x = as_array(x)
    if x.ndim != 1 or kind_of(x.dtype) not in "iub":
        raise (TypeError if x.ndim == 1 else ValueError)(
            f"bincount(): x is {x.dtype} of {x.ndim} dimension(s); give a vector of integers"
        )
    if index(minlength) < 0:
        raise ValueError(f"bincount(): minlength is {minlength}; it is a length, 0 or more")
    w = None if weights is None or x.size == 0 else _weights("bincount", weights, x)
    n = minlength if x.size == 0 else _largest_of_naturals(x) + 1
    n = n if n > minlength else minlength
    if w is None:
        return _counts(x.astype(_INT64, copy=False), n)
    if kind_of(w.dtype) == "c":
        raise TypeError(f"bincount(): weights are {w.dtype}; they must be real")
    totals = _native.empty((n,), _FLOAT64, device=x.device)
    totals.fill(0)
    _native.index_combine(totals, x.astype(_INT64, copy=False), w.astype(_FLOAT64, copy=False))
    return totals


def _weights(operation: str, weights: ArrayLike, x: ndarray) -> ndarray:
    """Weights as an array, before anything is computed. ValueError unless there is one for each element of `x`."""
    w = as_array(weights, x)
    if w.shape != x.shape:
        raise ValueError(
            f"{operation}(): weights of shape {w.shape} for values of shape {x.shape}; they must be equal. "
            "Give one for each, e.g. broadcast_to(weights, x.shape)"
        )
    return w


def _largest_of_naturals(x: ndarray) -> int:
    """The largest of integers from 0 on. ValueError for others."""
    if kind_of(x.dtype) != "i":
        return int(x.max())
    found = int(x.view(f"u{x.dtype.name}").max())  # in one walk: read as unsigned, the negative ones are the largest
    if found >> (8 * x.itemsize - 1) != 0:
        raise ValueError(f"bincount(): x holds {int(x.min())}; it counts integers from 0 on")
    return found


def _counts(x: ndarray, n: int) -> ndarray:
    """How often each of the numbers from 0 to n - 1 occurs. A GPU sorts what it counts by many numbers; the counts of
    few fit into each of its blocks."""
    found = _native.count_on_host(x, None, n)
    if found is not None:
        return found
    if isinstance(x, _native.HostArray) or n <= _FEW:
        counts = _native.empty((n,), _INT64, device=x.device)
        counts.fill(0)
        _native.index_combine(counts, x, 1)
        return counts
    ends = count_up(n, x.device)
    ordered = _native.sort(x, 0, False, False)
    return _native.searchsorted_flat(ordered, ends, True) - _native.searchsorted_flat(ordered, ends, False)


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
    w = None if weights is None else _weights("histogram", weights, a).ravel()
    edges = histogram_bin_edges(a, bins, range)
    flat = a.ravel()
    common = _native.result_type(flat.dtype, edges.dtype)
    counts = _binned(flat, edges.astype(common, copy=False), w)
    if density:
        return counts / (edges[1:] - edges[:-1]).astype(_FLOAT64, copy=False) / counts.sum(), edges
    return counts, edges


def _weight_dtype(w: ndarray) -> Any:
    return w.dtype if is_inexact(w) else _FLOAT64


def _binned(flat: ndarray, marks: ndarray, w: ndarray | None) -> ndarray:
    """The counts of the bins between the marks, in whose dtype they are found, or the sums of the weights. What lies
    outside has a bin before the first and one behind the last. By many bins a GPU counts what it has sorted."""
    on_host = isinstance(flat, _native.HostArray)
    if w is None and on_host and flat.size > _PART:  # the positions of a part stay in the cache
        counts = _binned(flat[:_PART], marks, None)
        for first in range(_PART, flat.size, _PART):
            counts += _binned(flat[first : first + _PART], marks, None)
        return counts
    flat = flat.astype(marks.dtype, copy=False)
    if w is None and marks.size >= _FEW and not on_host:
        ordered = _native.sort(flat, 0, False, False)
        below = _native.searchsorted_flat(ordered, marks, False)
        below[-1:] = _native.searchsorted_flat(ordered, marks[-1:], True)
        return below[1:] - below[:-1]
    if w is None and on_host and marks.size <= _FEW_MARKS and kind_of(flat.dtype) != "c":
        ends = [marks[k : k + 1] for k in range(marks.size)]
        beyond = [int((flat >= mark).sum()) for mark in ends[:-1]] + [int((flat > mark).sum()) for mark in ends[-1:]]
        return _native.array([more - less for more, less in itertools.pairwise(beyond)], _INT64, device="cpu")
    position = _native.searchsorted_flat(marks, flat, True)
    at_end = flat == marks[-1]  # these belong to the bin before it
    if w is None:
        counts = _counts(position, marks.size + 1)
        counts[-2:-1] += at_end.sum()
        return counts[1:-1].copy()
    sums = _native.empty((marks.size + 1,), _weight_dtype(w), device=flat.device)
    sums.fill(0)
    _native.index_combine(sums, _native.subtract(position, at_end), w.astype(sums.dtype, copy=False))
    return sums[1:-1].astype(w.dtype)


# --- of several variables ---------------------------------------------------------------------------------------------


def _edges_of_axis(x: ndarray, bins: Any, range: tuple[float, float] | None) -> ndarray:
    """As NumPy's histogramdd() has them: of a range in float64; between the extremes in the dtype of `x`, where that is
    of floats, and stepped in it."""
    if not isinstance(bins, int) or not is_inexact(x):
        return histogram_bin_edges(x, bins, range)
    if range is not None or x.size == 0 or x.dtype == _FLOAT64:
        return histogram_bin_edges(x.astype(_FLOAT64, copy=False), bins, range)
    ends = histogram_bin_edges(x, bins)[:: max(bins, 1)]  # checks what was given
    edges = count_up(bins + 1, x.device, x.dtype) * ((ends[1] - ends[0]) / bins) + ends[0]
    edges[-1] = ends[1]
    return edges


def _cell_counts(positions: list[ndarray], weights: ArrayLike | None, shape: tuple[int, ...]) -> ndarray:
    """How many points lie in each cell, flat. They lie within the shape: the host need not be told."""
    from dlbridge.nd._indexing import ravel_multi_index

    size = math.prod(shape)
    if weights is not None or not positions or not isinstance(positions[0], _native.HostArray):
        return bincount(ravel_multi_index(tuple(positions), shape), weights, size)
    flat: ndarray = positions[0]
    for position, extent in zip(positions[1:], shape[1:], strict=True):
        flat = flat * extent
        flat += position
    return _counts(flat, size)


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[tuple[float, float] | None] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, tuple[ndarray, ...]]:
    """How many points fall in each bin of a grid, float64, and the edges along each axis of it.

    sample: (points, axes), or a sequence of vectors, one an axis. bins: of each axis as for histogram(), or one number
    for all. range: of each axis. density: the integral is 1. weights: what each point counts. The host waits for the
    extremes. Source: NumPy.
    """
    columns = list(sample.T) if isinstance(sample, ndarray) else [as_array(column).ravel() for column in sample]
    count = len(columns)
    each = [bins] * count if isinstance(bins, int) else list(bins)
    ranges = [None] * count if range is None else list(range)
    for name, given in (("bins", each), ("range", ranges)):
        if len(given) != count:
            raise ValueError(f"histogramdd(): {len(given)} {name} for {count} axes. Give one for each axis")
    if weights is not None and count:
        weights = _weights("histogramdd", weights, columns[0])
    edges = tuple(_edges_of_axis(*row) for row in zip(columns, each, ranges, strict=True))
    positions = []
    for x, marks in zip(columns, edges, strict=True):
        common = _native.result_type(x.dtype, marks.dtype)
        x, marks = x.astype(common, copy=False), marks.astype(common, copy=False)
        place = _native.searchsorted_flat(marks, x.ravel(), True)
        positions.append(_native.subtract(place, _native.equal(x, marks[-1]).astype(_INT64)))
    shape = tuple(marks.size + 1 for marks in edges)  # a bin before the first and one behind the last
    counts = _cell_counts(positions, weights, shape).reshape(shape).astype(_FLOAT64)
    counts = counts[(slice(1, -1),) * count].copy()
    if density:
        total = counts.sum()
        for axis, marks in enumerate(edges):
            counts = counts / (marks[1:] - marks[:-1]).reshape((-1,) + (1,) * (count - 1 - axis))
        counts = counts / total
    return counts, edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[tuple[float, float] | None] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """histogramdd() of two vectors: the counts, and the edges along both axes.

    bins: one number or one sequence of edges for both axes, or two of them. Source: NumPy.
    """
    a, b = as_array(x).ravel(), as_array(y).ravel()
    if a.size != b.size:
        raise ValueError(f"histogram2d(): x has {a.size} elements and y has {b.size}. Give points, one of each")
    if not isinstance(bins, int) and len(bins) not in (1, 2):
        bins = [bins, bins]
    elif not isinstance(bins, int) and len(bins) == 1:
        bins = list(bins) * 2
    counts, edges = histogramdd([a, b], bins, range, density, weights)
    return counts, edges[0], edges[1]
