"""Where elements are: extremes, sorts, positions of what is true, places in sorted arrays."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, as_positions, normalize_axis
from dlbridge.nd._dtypes import BY_NAME, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DTypeLike

ndarray = _native.ndarray
_INT64 = BY_NAME["int64"]
_take_along_axis = _native.late("_indexing", "take_along_axis")


def argmax(
    a: ArrayLike,
    /,
    axis: int | None = None,
    out: ndarray | None = None,
    *,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The position of the largest element along an axis (of the flattened array by default), the first of equal ones;
    NaN counts as the largest. ValueError if there are none. dtype: of integers, int64 by default; OverflowError for
    one that does not hold every position. Source: Array API 2024.12, CuPy for dtype.
    """
    return as_array(a).argmax(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def argmin(
    a: ArrayLike,
    /,
    axis: int | None = None,
    out: ndarray | None = None,
    *,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The position of the smallest element along an axis (of the flattened array by default), the first of equal ones;
    NaN counts as the smallest. ValueError if there are none. dtype: of integers, int64 by default; OverflowError for
    one that does not hold every position. Source: Array API 2024.12, CuPy for dtype.
    """
    return as_array(a).argmin(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def _flat_axis(a: ndarray, axis: int | None, operation: str) -> tuple[ndarray, int]:
    if axis is None:
        return a.ravel(), 0
    return a, normalize_axis(axis, a.ndim, operation)


def sort(
    a: ArrayLike,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> ndarray:
    """A sorted copy along an axis (None: flattened). NaN comes last, complex numbers are ordered lexicographically.

    kind has no effect but that "stable" is stable=True, which keeps equal elements in their order.
    Source: Array API 2024.12.
    """
    keeps = (kind is not None and _native.keeps_order("sort()", kind)) or bool(stable)
    a = as_array(a)
    return (
        _native.sort(a, axis, descending, keeps) if axis is not None else _native.sort(a.ravel(), 0, descending, keeps)
    )


def argsort(
    a: ArrayLike, /, axis: int | None = -1, kind: str | None = None, *, descending: bool = False, stable: bool = True
) -> ndarray:
    """The positions, as int64, in the order in which sort() takes the elements. Always stable (Array API).

    Source: Array API 2024.12.
    """
    if kind is not None:
        _native.keeps_order("argsort()", kind)
    a = as_array(a)
    if axis is None or a.ndim == 0:  # of one axis, as NumPy has it
        a, axis = a.ravel(), 0 if axis is None else axis
    return _native.argsort(a, axis, descending, True)


def lexsort(keys: Sequence[ArrayLike], axis: int = -1) -> ndarray:
    """The positions that sort by several keys along an axis, the last one first in importance."""
    rows = as_arrays(*keys)
    if not rows:
        raise TypeError("lexsort(): no key; give at least one")
    order = _native.lexsort(rows, axis)
    if order is not None:
        return order
    if rows[0].ndim == 0:  # of a vector of keys there is one element to sort
        normalize_axis(axis, 1, "lexsort")
        return _native.argsort(rows[0].reshape(1), 0, False, True).reshape(())
    axis, shape = normalize_axis(axis, rows[0].ndim, "lexsort"), rows[0].shape
    for row in rows:
        if row.shape != shape:
            raise ValueError(f"lexsort(): keys have the shapes {shape} and {row.shape}; give keys of one shape")
    order = _native.argsort(rows[0], axis, False, True)
    for row in rows[1:]:
        order = _take_along_axis(order, _native.argsort(_take_along_axis(row, order, axis), axis, False, True), axis)
    return order


_MOST_PLACES = 8  # that are selected one after the other; for more a sort is cheaper


def _places(kth: Any, extent: int, operation: str) -> list[int] | None:
    given = kth if isinstance(kth, (list, tuple)) else (kth,)
    return places_of([normalize_axis(k, extent, operation) for k in given]) if extent else None


def places_of(positions: Iterable[int]) -> list[int] | None:
    """Positions as _native.sort() takes them; None where all elements are better sorted."""
    places = sorted(set(positions))
    return places if len(places) <= _MOST_PLACES else None


def places_along(a: ndarray, kth: Any, axis: int) -> tuple[int, list[int] | None]:
    """An axis, and the places that partition() of an array selects there."""
    axis = normalize_axis(axis, a.ndim, "partition")
    return axis, _places(kth, a.shape[axis], "partition")


def partition(a: ArrayLike, kth: Any, axis: int | None = -1) -> ndarray:
    """A copy in which the kth element stands where it would in a sorted one, none before it larger, none behind it
    smaller. On a device all of them are sorted."""
    a, axis = _flat_axis(as_array(a), axis, "partition")
    return _native.sort(a, axis, False, False, _places(kth, a.shape[axis], "partition"))


def argpartition(a: ArrayLike, kth: Any, axis: int | None = -1) -> ndarray:
    """The positions in the order in which partition() takes the elements."""
    a, axis = _flat_axis(as_array(a), axis, "argpartition")
    return _native.argsort(a, axis, False, True, _places(kth, a.shape[axis], "argpartition"))


def nonzero(a: ArrayLike, /) -> tuple[ndarray, ...]:
    """The positions of the elements that are not zero, one int64 array per axis, in C order. Waits for their number.

    ValueError for zero dimensions. Source: Array API 2024.12.
    """
    a = as_array(a)
    if a.ndim == 0:
        raise ValueError("nonzero(): the array is 0-d. Use atleast_1d(a)")
    return a.nonzero()


def flatnonzero(a: ArrayLike) -> ndarray:
    """The positions in the flattened array of the elements that are not zero."""
    return as_array(a).ravel().nonzero()[0]


def argwhere(a: ArrayLike) -> ndarray:
    """The positions of the elements that are not zero, one row each."""
    a = as_array(a)
    if a.ndim == 0:
        return _native.empty((int(bool(a)), 0), _INT64, device=a.device)
    return _native.nonzero_rows(a).T  # laid out as NumPy does it


def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /) -> Any:
    """Elements of `x` where the condition is true, of `y` elsewhere; with the condition alone, nonzero(condition).

    The three broadcast; Python scalars take the dtype of the other. Source: Array API 2024.12.
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("where(): give both x and y, or neither")
    return _native.where(condition, x, y)


def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None) -> ndarray:
    """The positions, as int64, at which the values `v` go into the sorted vector `a` so that it stays sorted.

    side: "left" in front of equal elements, "right" behind them. sorter: positions that sort `a`. ValueError for
    another side or an `a` that is no vector. Source: Array API 2024.12.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): side is {side!r}; give 'left' or 'right'")
    ordered, values = (a, v) if isinstance(a, ndarray) and isinstance(v, ndarray) else as_arrays(a, v)
    if ordered.ndim != 1:
        raise ValueError(f"searchsorted(): a has {ordered.ndim} dimensions; give a sorted vector")
    if sorter is not None:
        positions = as_positions(sorter, ordered, "searchsorted")
        if positions.size != ordered.size:
            raise ValueError(
                f"searchsorted(): sorter has {positions.size} elements, and a {ordered.size}; give as many"
            )
        ordered = _native.take(ordered, positions, 0)
    return _native.searchsorted_flat(ordered, values, side == "right")


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> ndarray:
    """The bin of each value: i where bins[i-1] <= x < bins[i] (right: bins[i-1] < x <= bins[i]).

    bins may decrease, then it is i where bins[i-1] > x >= bins[i] (right: bins[i-1] >= x > bins[i]); which is waited
    for. ValueError for bins that do neither, TypeError for complex values. Source: NumPy.
    """
    values, edges = as_arrays(x, bins)
    if kind_of(values.dtype) == "c" or kind_of(edges.dtype) == "c":
        raise TypeError("digitize(): complex numbers have no order of bins")
    if edges.ndim != 1:
        raise ValueError(f"digitize(): bins has {edges.ndim} dimensions; give a vector of edges")
    falls = _decreases(edges)
    return _native.searchsorted_flat(edges[::-1] if falls else edges, values, not right, falls)


_READ_AT_ONCE = 4096  # elements: a device's are copied to the host sooner than it answers several questions


def _decreases(edges: ndarray) -> bool:
    """Whether the bins decrease: where the first of them differ, none before the others. NaN is neither more nor
    less."""
    found = _native.falls_on_host(edges)
    if found is not None:
        return found
    if not isinstance(edges, _native.HostArray) and edges.size <= _READ_AT_ONCE:
        return _decreases(_native.to_device(edges, "cpu"))  # waited for once
    before, after = edges[:-1], edges[1:]
    differs = before != after
    if edges.size < 2 or not bool(differs.any()):
        return False
    grows, falls = before < after, before > after
    first = int(differs.argmax())
    increases = bool(grows[first])
    if bool((falls if increases else grows).any()):
        raise ValueError("digitize(): bins neither increase nor decrease throughout")
    return not increases


_compress = _native.late("_indexing", "compress")


def extract(condition: ArrayLike, arr: ArrayLike) -> ndarray:
    """The elements of the flattened array where the flattened condition is true."""
    chosen, arr = as_arrays(condition, arr)
    return _compress(chosen.ravel(), arr.ravel())


def sort_complex(a: ArrayLike) -> ndarray:
    """A copy sorted along the last axis, as complex numbers: by the real part, then by the imaginary one."""
    x = as_array(a)
    if kind_of(x.dtype) == "c":
        return sort(x)
    return sort(x).astype("complex64" if x.dtype.name in ("int8", "uint8", "int16", "uint16") else "complex128")
