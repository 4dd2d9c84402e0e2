"""Arrays as sets: unique elements and what two have in common. All by sorting, on the device."""

from __future__ import annotations

from math import prod

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, count_up, normalize_axis
from dlbridge.nd._dtypes import BY_NAME, is_inexact
from dlbridge.nd._joining import concatenate
from dlbridge.nd._manipulation import moveaxis
from dlbridge.nd._searching import lexsort

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    from dlbridge.nd._arguments import ArrayLike
else:
    from collections import namedtuple

ndarray = _native.ndarray
_INT64 = BY_NAME["int64"]
_TABLE_PAYS = 2000  # elements

if TYPE_CHECKING:

    class UniqueAllResult(NamedTuple):
        values: ndarray
        indices: ndarray
        inverse_indices: ndarray
        counts: ndarray

    class UniqueCountsResult(NamedTuple):
        values: ndarray
        counts: ndarray

    class UniqueInverseResult(NamedTuple):
        values: ndarray
        inverse_indices: ndarray

else:
    UniqueAllResult = namedtuple("UniqueAllResult", "values indices inverse_indices counts")
    UniqueCountsResult = namedtuple("UniqueCountsResult", "values counts")
    UniqueInverseResult = namedtuple("UniqueInverseResult", "values inverse_indices")


def _run_lengths(begin: ndarray, size: int) -> ndarray:
    lengths = _native.empty(begin.shape, _INT64, device=begin.device)
    _native.subtract(begin[1:], begin[:-1], out=lengths[:-1])
    _native.subtract(size, begin[-1:], out=lengths[-1:])
    return lengths


def _counted_bools(x: ndarray) -> tuple[ndarray, ndarray]:
    """values and counts of bools, of which there are some: to a device they go in one copy, as parts of one array."""
    true = int(x.sum())
    found = [(value, count) for value, count in ((False, x.size - true), (True, true)) if count]
    values, counts = zip(*found, strict=True)
    both = _native.array([*counts, int.from_bytes(bytes(values), "little")], _INT64, device=x.device)
    return both[-1:].view("bool")[: len(found)], both[:-1]


def _counted(x: ndarray, equal_nan: bool) -> tuple[ndarray, ndarray]:
    """values and counts of the unique elements."""
    if x.dtype == "bool" and x.size:
        return _counted_bools(x)
    values, _, lengths, _ = _native.find_runs(_native.sort(x.ravel(), 0, False, False), None, equal_nan, False, True)
    return values, lengths


def _inverted(x: ndarray) -> tuple[ndarray, ndarray]:
    """values and inverse of the unique elements, each NaN one. Of few possible ones each element is looked up."""
    if x.itemsize <= 2 and not is_inexact(x) and x.size:
        values = _values(x, False)
        return values, _native.searchsorted_flat(values, x.ravel(), False)
    values, _, _, inverse = _grouped(x, False, False, True, False)
    return values, inverse


def _grouped(x: ndarray, equal_nan: bool, first: bool, inverse: bool, counts: bool) -> tuple[Any, ...]:
    """values, and what is wanted of first positions, counts and inverse (flat) of the unique elements."""
    flat = x.ravel()
    order = _native.argsort(flat, 0, False, True)
    return _native.find_runs(_native.take(flat, order, 0), order, equal_nan, first, counts, inverse)


def _values(x: ndarray, equal_nan: bool) -> ndarray:
    if x.dtype == "bool" and x.size:
        return _counted_bools(x)[0]
    return _native.find_runs(_native.sort(x.ravel(), 0, False, False), None, equal_nan)[0]


def _unique_parts(a: ndarray, axis: int, wanted: tuple[bool, bool, bool]) -> Any:
    """unique() of what lies along an axis: of rows, sorted by their columns."""
    moved = moveaxis(a, normalize_axis(axis, a.ndim, "unique"), 0)
    n = moved.shape[0]
    rows = moved.reshape(n, prod(moved.shape[1:]))
    if rows.shape[1] == 0 or n == 0:
        order = count_up(n, a.device)
        starts = _native.less(order, min(n, 1))
    else:
        order = lexsort(tuple(rows[:, k] for k in range(rows.shape[1] - 1, -1, -1)))
        ordered = _native.take(rows, order, 0)
        starts = _native.empty((n,), "bool", device=a.device)
        starts.fill(True)
        starts[1:] = _native.not_equal(ordered[1:], ordered[:-1]).any(axis=1)
    begin = _native.nonzero(starts)[0]
    first = _native.take(order, begin, 0)
    inverse = _native.empty((n,), _INT64, device=a.device)
    if n:
        inverse[order] = starts.cumsum(dtype=_INT64) - 1
    values = moveaxis(_native.take(moved, first, 0), 0, axis)
    parts = zip(wanted, (first, inverse, _run_lengths(begin, n)), strict=True)
    chosen = tuple(part for want, part in parts if want)
    return (values, *chosen) if chosen else values


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """The unique elements of the flattened array, sorted; the host waits for their number.

    Also, if asked for, their first positions, the positions in the result that rebuild `ar`, and how often each
    occurs, as a tuple. axis: the unique parts along it instead, in the order of their elements. equal_nan: whether NaNs
    are one element; in parts they never are. Source: NumPy.
    """
    a = as_array(ar)
    if axis is not None:
        return _unique_parts(a, axis, (return_index, return_inverse, return_counts))
    if not (return_index or return_inverse or return_counts):
        return _values(a, equal_nan)
    if not (return_index or return_inverse):
        return _counted(a, equal_nan)
    values, first, counts, inverse = _grouped(a, equal_nan, return_index, return_inverse, return_counts)
    parts = (first, None if inverse is None else inverse.reshape(a.shape), counts)
    return (values, *(part for part in parts if part is not None))


def unique_all(x: ArrayLike, /) -> UniqueAllResult:
    """(values, indices, inverse_indices, counts) of the unique elements; each NaN is one. Source: Array API 2024.12."""
    x = as_array(x)
    values, first, counts, inverse = _grouped(x, False, True, True, True)
    return UniqueAllResult(values, first, inverse.reshape(x.shape), counts)


def unique_counts(x: ArrayLike, /) -> UniqueCountsResult:
    """(values, counts) of the unique elements; each NaN is one. Source: Array API 2024.12."""
    return UniqueCountsResult(*_counted(as_array(x), False))


def unique_inverse(x: ArrayLike, /) -> UniqueInverseResult:
    """(values, inverse_indices) of the unique elements; each NaN is one. Source: Array API 2024.12."""
    x = as_array(x)
    values, inverse = _inverted(x)
    return UniqueInverseResult(values, inverse.reshape(x.shape))


def unique_values(x: ArrayLike, /) -> ndarray:
    """The unique elements, sorted; each NaN is one. Source: Array API 2024.12."""
    return _values(as_array(x), False)


def _in_table(flat: ndarray, test: ndarray) -> ndarray | None:
    """isin() of integers on the host that lie so close together that a table of all of them is cheaper than a sort;
    None for others."""
    if not isinstance(flat, _native.HostArray) or flat.dtype.kind not in "iu" or test.size + flat.size < _TABLE_PAYS:
        return None
    if flat.itemsize == 1:  # all that there are: a byte is its own place
        marked = _native.empty((256,), "bool", device=flat.device)
        marked.fill(False)
        marked[test.view("uint8")] = True
        return _native.take(marked, flat.view("uint8"), 0)
    low, high = int(test.min()), int(test.max())
    if high - low > 6 * (test.size + flat.size):
        return None
    table = _native.empty((high - low + 1,), "bool", device=flat.device)
    table.fill(False)

    def place(x: ndarray) -> ndarray:  # narrow dtypes do not hold the distance of their own limits
        return (x - low if x.itemsize == 8 else x.astype(_INT64) - low).astype(_INT64, copy=False)

    table[place(test)] = True
    near = _native.clip(flat, low, high)
    return _native.take(table, place(near), 0) & (near == flat)


def _to_search(test: ndarray) -> ndarray:
    """A vector, sorted. On the host of many elements the unique ones: a search among few does not wait for memory."""
    if isinstance(test, _native.HostArray) and test.size >= _TABLE_PAYS:
        return _values(test, True)
    return _native.sort(test, 0, False, False)


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> ndarray:
    """For each element whether it is among the test elements; invert: whether it is not.

    assume_unique and kind ("sort", "table") have no effect: the way is chosen by the values. Source: NumPy.
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"isin(): kind is {kind!r}; give None, 'sort' or 'table'")
    element, test = as_arrays(element, test_elements)
    dtype = _native.result_type(element.dtype, test.dtype)
    if test.size == 0:
        found = _native.empty(element.shape, "bool", device=element.device)
        found.fill(False)
    else:
        flat = element.astype(dtype, copy=False).ravel()
        listed = _in_table(flat, test.astype(dtype, copy=False).ravel())
        if listed is not None:
            found = listed.reshape(element.shape)
            return ~found if invert else found
        ordered = _to_search(test.astype(dtype, copy=False).ravel())
        place = _native.searchsorted_flat(ordered, flat, False)
        place = _native.minimum(place, ordered.size - 1)  # behind the last one: compared with it, and found unequal
        found = (_native.take(ordered, place, 0) == flat).reshape(element.shape)
    return ~found if invert else found


def _both(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool) -> tuple[ndarray, ndarray]:
    a, b = as_arrays(ar1, ar2)
    dtype = _native.result_type(a.dtype, b.dtype)
    a, b = (x.astype(dtype, copy=False).ravel() for x in (a, b))
    return (a, b) if assume_unique else (_values(a, True), _values(b, True))


def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False
) -> ndarray | tuple[ndarray, ndarray, ndarray]:
    """The sorted unique elements that both arrays have.

    return_indices: and the positions of each one's first occurrence in both, flattened.
    """
    if return_indices:
        return _intersection(ar1, ar2)
    joined = concatenate(_both(ar1, ar2, assume_unique))
    ordered = _native.sort(joined, 0, False, False)
    return ordered[:-1][ordered[1:] == ordered[:-1]]


def _intersection(ar1: ArrayLike, ar2: ArrayLike) -> tuple[ndarray, ndarray, ndarray]:
    first, second = (unique(x.ravel(), return_index=True) for x in as_arrays(ar1, ar2))
    joined = concatenate([first[0], second[0]])
    order = _native.argsort(joined, 0, False, True)  # stable: of two equal ones that of the first array comes first
    ordered = _native.take(joined, order, 0)
    at = _native.nonzero(ordered[1:] == ordered[:-1])[0]
    ones, others = _native.take(order, at, 0), _native.take(order, at + 1, 0) - first[0].size
    return _native.take(ordered, at, 0), _native.take(first[1], ones, 0), _native.take(second[1], others, 0)


def union1d(ar1: ArrayLike, ar2: ArrayLike) -> ndarray:
    """The sorted unique elements that either array has."""
    return _values(concatenate(_both(ar1, ar2, True)), True)


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> ndarray:
    """The sorted unique elements of the first array that are not in the second."""
    first, second = as_arrays(ar1, ar2)
    a = first.ravel() if assume_unique else _values(first, True)
    return a[isin(a, second, invert=True)]


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> ndarray:
    """The sorted unique elements that one of the arrays has, but not both."""
    joined = concatenate(_both(ar1, ar2, assume_unique))
    ordered = _native.sort(joined, 0, False, False)
    values, _, lengths, _ = _native.find_runs(ordered, None, True, False, True)
    return values[lengths == 1]
