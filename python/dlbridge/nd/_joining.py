"""Several arrays as one, and one array repeated, extended or shortened."""

from __future__ import annotations

from operator import index, mul

from dlbridge.nd import _native
from dlbridge.nd._arguments import (
    as_array,
    as_arrays,
    as_positions,
    count_up,
    normalize_axes,
    normalize_axis,
    shape_of,
)
from dlbridge.nd._dtypes import BY_NAME, is_inexact, kind_of
from dlbridge.nd._manipulation import atleast_3d, moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DTypeLike, Shape

ndarray = _native.ndarray
_INT64 = BY_NAME["int64"]


def concatenate(
    arrays: Sequence[ArrayLike],
    /,
    axis: int | None = 0,
    out: ndarray | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> ndarray:
    """The arrays one after the other along an axis; None joins them flattened.

    The dtype is what theirs promote to, unless dtype or out says otherwise; casting: what may be cast to it. ValueError
    for no array, other extents than along the axis that differ, or arrays on several devices. Source: Array API
    2024.12.
    """
    return _native.concatenate(arrays, axis, out, dtype, casting)


concat = concatenate


def stack(
    arrays: Sequence[ArrayLike],
    /,
    axis: int = 0,
    out: ndarray | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> ndarray:
    """The arrays, which have one shape, along a new axis at that position of the result. Source: Array API 2024.12."""
    return _native.stack(arrays, axis, out, dtype, casting)


def _many(tup: Sequence[ArrayLike], ndim: int, view: Any) -> Sequence[ndarray]:
    """The arrays, those of fewer dimensions by what `view` makes of them."""
    given: Any = tup if isinstance(tup, (list, tuple)) else tuple(tup)
    for a in given:
        if not isinstance(a, ndarray) or a.ndim < ndim:
            return [a if a.ndim >= ndim else view(a) for a in as_arrays(*given)]
    return given


def hstack(tup: Sequence[ArrayLike], *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> ndarray:
    """concatenate() along axis 1, or along axis 0 of vectors."""
    arrays = _many(tup, 1, lambda a: a.reshape(1))
    return _native.concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, None, dtype, casting)


def vstack(tup: Sequence[ArrayLike], *, dtype: DTypeLike | None = None, casting: str = "same_kind") -> ndarray:
    """concatenate() along axis 0; vectors are rows."""
    return _native.concatenate(_many(tup, 2, lambda a: a.reshape(1, a.size)), 0, None, dtype, casting)


row_stack = vstack


def dstack(tup: Sequence[ArrayLike]) -> ndarray:
    """concatenate() along axis 2, of arrays that atleast_3d() made fit."""
    return _native.concatenate(_many(tup, 3, atleast_3d), 2)


def column_stack(tup: Sequence[ArrayLike]) -> ndarray:
    """concatenate() along axis 1; vectors are columns."""
    return _native.concatenate(_many(tup, 2, lambda a: a.reshape(a.size, 1)), 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> ndarray:
    """concatenate() of two arrays, flattened by default."""
    return _native.concatenate((arr, values), axis)


def repeat(a: ArrayLike, repeats: Any, /, axis: int | None = None) -> ndarray:
    """Each element repeated along an axis, of the flattened array by default.

    repeats: one number for all, or one for each position (a sequence or an integer array; reading an array on a device
    waits for it). ValueError for negative numbers or another length. Source: Array API 2024.12.
    """
    a = as_array(a)
    repeated = _native.repeat_by(a, repeats, axis)
    if repeated is not None:
        return repeated
    if isinstance(repeats, (list, tuple, ndarray)):
        given = as_array(repeats, a)
        if given.ndim > 1:
            raise ValueError(f"repeat(): repeats have shape {given.shape}; give a number, or a vector of them")
        if given.size and not _native.can_cast(given.dtype, _INT64):
            raise TypeError(f"repeat(): repeats are {given.dtype}; give integers that int64 holds")
        counts = given.astype(_INT64, copy=False).ravel()
        if counts.size != 1:
            if axis is None:
                a, axis = a.ravel(), 0
            axis = normalize_axis(axis, a.ndim, "repeat")
            if counts.size != a.shape[axis]:
                raise ValueError(
                    f"repeat(): {counts.size} repeats for {a.shape[axis]} elements of axis {axis}; give one for each, "
                    "or one for all"
                )
            repeated = _native.repeat_by(a, counts, axis)
            return _native.take(a, _repeated_positions(counts), axis) if repeated is None else repeated
        repeats = counts.item()
    times = index(repeats)
    if times < 0:
        raise ValueError(f"repeat(): repeats {times} is negative; it is a number of times")
    return _native.repeat_by(a, times, axis)


def _repeated_positions(counts: ndarray) -> ndarray:
    """Position i counts[i] times, for each i, on a device."""
    if counts.size == 0:
        return counts
    if int(counts.min()) < 0:
        raise ValueError(f"repeat(): repeats {int(counts.min())} is negative; it is a number of times")
    ends = counts.cumsum()
    return _native.searchsorted_flat(ends, count_up(int(ends[-1]), counts.device), True)


def tile(A: ArrayLike, reps: Any, /) -> ndarray:
    """The whole array repeated `reps` times along each axis; a number counts for the last. Source: Array API
    2024.12."""
    a = as_array(A)
    counts = tuple(index(r) for r in reps) if hasattr(reps, "__iter__") else (index(reps),)
    if counts and min(counts) < 0:
        raise ValueError(f"tile(): reps {counts} has a negative number")
    ndim = max(a.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - a.ndim) + a.shape
    between = a.reshape([part for n in shape for part in (1, n)])
    wide = _native.broadcast_to(between, tuple([part for n, c in zip(shape, counts, strict=True) for part in (c, n)]))
    return wide.reshape(tuple(map(mul, shape, counts)), copy=True)


def resize(a: ArrayLike, new_shape: Shape) -> ndarray:
    """The elements of `a`, over and over, in another shape; zeros where `a` has none."""
    a = as_array(a)
    shape = shape_of(new_shape, "resize")
    total = 1
    for n in shape:
        total *= n
    if a.size == 0 or total == 0:
        x = _native.empty(shape, a.dtype, device=a.device)
        x.fill(0)
        return x
    times = -(-total // a.size)
    over = _native.broadcast_to(a.ravel(), (times, a.size))
    if times * a.size == total:
        return over.reshape(shape, copy=True)
    return over.reshape((times * a.size,), copy=True)[:total].reshape(shape)


def _in_a_line(a: ndarray) -> ndarray:
    """Flattened; a vector on the host as it is, whatever its steps."""
    return a if a.ndim == 1 and isinstance(a, _native.HostArray) else a.ravel()


_FEW = 16  # positions that insert() takes by joining what lies between them: others are masked


def _between(a: ndarray, axis: int, cuts: list[int]) -> list[ndarray]:
    """The parts of an axis before, between and behind positions in ascending order."""
    head = (slice(None),) * axis
    starts, stops = [0, *cuts], [*cuts, a.shape[axis]]
    return [a[(*head, slice(start, stop))] for start, stop in zip(starts, stops, strict=True)]


def _joined(a: ndarray, axis: int, parts: list[ndarray]) -> ndarray:
    """Parts along an axis, joined in C order; in Fortran's where `a` lies so."""
    n = sum(part.shape[axis] for part in parts)
    in_c, in_fortran = a._flags[:2]
    order = "F" if in_fortran and not in_c else "C"
    out = _native.empty((*a.shape[:axis], n, *a.shape[axis + 1 :]), a.dtype, device=a.device, order=order)
    return _native.concatenate(parts, axis, out)


def delete(arr: ArrayLike, obj: Any, axis: int | None = None) -> ndarray:
    """A copy without some positions of an axis (of the flattened array by default): an integer, a slice, a sequence, a
    mask of as many elements.

    IndexError for a position that does not exist. Source: NumPy.
    """
    kept_rows = _native.delete_on_host(arr, obj, axis)
    if kept_rows is not None:
        return kept_rows
    a = as_array(arr)
    if axis is None:
        a, axis = a.ravel(), 0
    axis = normalize_axis(axis, a.ndim, "delete")
    extent = a.shape[axis]
    kept = _native.empty((extent,), "bool", device=a.device)
    kept.fill(True)
    if isinstance(obj, slice):
        kept[obj] = False
    else:
        gone = as_array(obj, a)
        if gone.size == 0 and not isinstance(obj, ndarray):
            gone = gone.astype(_INT64)
        if gone.dtype == "bool":
            if gone.shape != kept.shape:
                raise ValueError(f"delete(): a mask of shape {gone.shape} for the {extent} elements of axis {axis}")
        elif is_inexact(gone):
            raise IndexError(f"delete(): indices are {gone.dtype}; they must be integers or a mask")
        elif gone.size and not isinstance(obj, ndarray):
            low, high = int(gone.min()), int(gone.max())
            if low < -extent or high >= extent:
                wrong = low if low < -extent else high
                raise IndexError(f"delete(): index {wrong} is out of bounds for axis {axis} with size {extent}")
        kept[gone] = False
    return a[(slice(None),) * axis + (kept,)]


# --- pad ------------------------------------------------------------------------------------------------------------


def _insert_few(a: ndarray, axis: int, positions: list[int], new: ndarray) -> ndarray:
    """insert(): the parts between the positions and what goes there, joined. All of `new` goes to a single position."""
    head = (slice(None),) * axis
    order = sorted(range(len(positions)), key=positions.__getitem__)
    added = [new] if len(positions) == 1 else [new[(*head, slice(k, k + 1))] for k in order]
    first, *rest = _between(a, axis, [positions[k] for k in order])
    return _joined(a, axis, [first, *(x for pair in zip(added, rest, strict=True) for x in pair)])


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> ndarray:
    """A copy with values put in before the given positions of an axis, or of the flattened array.

    obj: an integer, a slice, or a sequence or array of integers or bools. values: broadcast, and cast to the array's
    dtype. IndexError for positions out of bounds. Source: NumPy.
    """
    widened = _native.insert_on_host(arr, obj, values, axis)
    if widened is not None:
        return widened
    a = as_array(arr)
    if axis is None:
        a, axis = _in_a_line(a), 0
    axis = normalize_axis(axis, a.ndim, "insert")
    n = a.shape[axis]
    new = as_array(values, a).astype(a.dtype, copy=False)
    new = new.reshape((1,) * (a.ndim - new.ndim) + new.shape)
    if isinstance(obj, slice):
        places = list(range(*obj.indices(n)))
    else:
        given = as_array(obj, a)
        if kind_of(given.dtype) == "b":
            places = _native.nonzero(given)[0].tolist()
        else:
            places = as_positions(given, a, "insert").ravel().tolist() if given.size else []
        if given.ndim == 0:
            new = moveaxis(new, 0, axis)
        elif given.ndim > 1:
            raise ValueError(f"insert(): the positions have {given.ndim} axes; give an integer or a vector")
    for place in places:
        if not -n <= place <= n:
            raise IndexError(f"insert(): position {place} is out of bounds for axis {axis} with {n} elements")
    counted = [place + n if place < 0 else place for place in places]
    if len(counted) == 1:
        targets = [counted[0] + k for k in range(new.shape[axis])]
    else:
        order = sorted(range(len(counted)), key=counted.__getitem__)
        targets = [0] * len(counted)
        for before, k in enumerate(order):
            targets[k] = counted[k] + before
    if isinstance(a, _native.HostArray) and 0 < len(counted) <= _FEW:
        new = _native.broadcast_to(new, (*a.shape[:axis], len(targets), *a.shape[axis + 1 :]))
        return _insert_few(a, axis, counted, new)
    head = (slice(None),) * axis
    result = _native.empty((*a.shape[:axis], n + len(targets), *a.shape[axis + 1 :]), a.dtype, device=a.device)
    kept = _native.empty((n + len(targets),), "bool", device=a.device)
    kept.fill(True)
    if targets:
        at = _native.array(targets, "int64", device=a.device)
        kept[at] = False
        result[(*head, at)] = new
    result[(*head, kept)] = a
    return result


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> ndarray:
    """The array without the zeros in front ("f"), behind ("b") or on both sides, along all axes or the given ones.

    The host waits for the extent of what is left. Source: NumPy.
    """
    a = as_array(filt)
    sides = trim.lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros(): trim is {trim!r}; give 'f', 'b' or 'fb'")
    key = [slice(None)] * a.ndim
    for k in normalize_axes(axis, a.ndim, "trim_zeros"):
        others = tuple(other for other in range(a.ndim) if other != k)
        kept = _native.not_equal(a, 0).any(axis=others)
        if not bool(kept.any()):
            key[k] = slice(0, 0)
            continue
        begin = int(kept.argmax()) if "f" in sides else None
        key[k] = slice(begin, a.shape[k] - int(kept[::-1].argmax()) if "b" in sides else None)
    return a[tuple(key)]
