"""Elements by their positions: taken, written, chosen."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, broadcast_shapes, count_up, into, normalize_axis, shape_of
from dlbridge.nd._dtypes import BY_NAME, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Shape

ndarray = _native.ndarray
_INT64 = BY_NAME["int64"]


def take(
    a: ArrayLike, indices: ArrayLike, /, axis: int | None = None, out: ndarray | None = None, mode: str = "raise"
) -> ndarray:
    """The elements at positions along an axis, of the flattened array by default.

    mode: "raise" refuses positions out of bounds (on the host; on a device they are clamped, so that nothing waits),
    "wrap" counts them round and round, "clip" sets them to the nearest. Source: Array API 2024.12, NumPy.
    """
    a = as_array(a, indices if isinstance(indices, ndarray) else None)
    positions = as_array(indices, a)
    if positions.size == 0 and not isinstance(indices, ndarray):
        positions = positions.astype(_INT64)
    if kind_of(positions.dtype) not in "iub":
        raise TypeError(f"take(): indices are {positions.dtype}; they must be integers")
    if axis is None:
        a, axis = a.ravel(), 0
    axis = normalize_axis(axis, a.ndim, "take")
    extent = a.shape[axis]
    if mode == "wrap":
        positions = positions % extent
    elif mode == "clip":
        positions = _native.clip(positions, 0, extent - 1)
    elif mode != "raise":
        raise ValueError(f"take(): mode {mode!r} is unknown; give 'raise', 'wrap' or 'clip'")
    return into(out, _native.take(a, positions, axis), "take")


def _along(a: ndarray, indices: ndarray, axis: int, operation: str) -> tuple[Any, ...]:
    """The index tuple of an axis's positions beside the own positions of all other axes."""
    if indices.ndim != a.ndim:
        raise ValueError(
            f"{operation}(): indices have {indices.ndim} dimensions, the array {a.ndim}; they must be equal"
        )
    if kind_of(indices.dtype) not in "iu":
        raise IndexError(f"{operation}(): indices are {indices.dtype}; they must be integers")
    own = []
    for position, extent in enumerate(a.shape):
        if position == axis:
            own.append(indices)
        else:
            line = count_up(extent, a.device)
            own.append(line.reshape([-1 if p == position else 1 for p in range(a.ndim)]))
    return tuple(own)


def take_along_axis(arr: ArrayLike, indices: ArrayLike, /, axis: int | None = -1) -> ndarray:
    """For each position of `indices` the element of its row along the axis; the other axes broadcast.

    Source: Array API 2024.12.
    """
    a, positions = as_arrays(arr, indices)
    if axis is None:
        a, axis = a.ravel(), 0
    return a[_along(a, positions, normalize_axis(axis, a.ndim, "take_along_axis"), "take_along_axis")]


def put_along_axis(arr: ndarray, indices: ArrayLike, values: ArrayLike, axis: int | None = -1) -> None:
    """Writes values to the positions that take_along_axis() would read, in place."""
    target = arr.ravel() if axis is None else arr
    if axis is None and not _native.shares_memory(target, arr) and arr.size:
        raise ValueError("put_along_axis(): with axis None the array must be dense in C order, so that it can be flat")
    axis = 0 if axis is None else normalize_axis(axis, arr.ndim, "put_along_axis")
    target[_along(target, as_array(indices, arr), axis, "put_along_axis")] = values


def put(a: ndarray, ind: ArrayLike, v: ArrayLike, mode: str = "raise") -> None:
    """Writes values (over and over) to positions of the flattened array, in place; mode as of take()."""
    positions, values = as_array(ind, a).ravel(), as_array(v, a).ravel()
    if mode == "wrap":
        positions = positions % a.size
    elif mode == "clip":
        positions = _native.clip(positions, 0, a.size - 1)
    elif mode != "raise":
        raise ValueError(f"put(): mode {mode!r} is unknown; give 'raise', 'wrap' or 'clip'")
    if positions.size == 0 or values.size == 0:
        return
    if values.size != positions.size:
        from dlbridge.nd._joining import resize

        values = resize(values, positions.size)
    if mode == "raise":  # a negative position counts from the end of the flat array, not of an axis
        positions = _native.where(positions < 0, positions + a.size, positions)
    a[unravel_index(positions, a.shape)] = values


def place(arr: ndarray, mask: ArrayLike, vals: ArrayLike) -> None:
    """Writes values (over and over) to the elements where the mask is true, in place."""
    from dlbridge.nd._joining import resize

    chosen = as_array(mask, arr).astype("bool", copy=False).reshape(arr.shape)
    count = int(chosen.sum())
    values = as_array(vals, arr)
    if count == 0:
        return
    if values.size == 0:
        raise ValueError("place(): there is no value to place")
    arr[chosen] = resize(values, count)


def putmask(a: ndarray, mask: ArrayLike, values: ArrayLike) -> None:
    """Writes to the elements where the mask is true the values at their own positions (over and over), in place."""
    from dlbridge.nd._joining import resize

    values = as_array(values, a)
    if values.shape != a.shape:
        values = resize(values, a.shape)
    _native.copyto(a, _native.where(as_array(mask, a), values, a).astype(a.dtype, copy=False))


def copyto(dst: ndarray, src: ArrayLike, casting: str = "same_kind", where: ArrayLike | bool = True) -> None:
    """Writes `src`, which broadcasts, to `dst`, only where `where` is true. TypeError where casting forbids it."""
    from dlbridge.nd._dtypes import can_cast

    if not isinstance(dst, ndarray):
        raise TypeError(f"copyto(): dst is of type {type(dst).__name__}; it must be a dlbridge.nd.ndarray")
    source = as_array(src, dst)
    if isinstance(src, ndarray) and not can_cast(source.dtype, dst.dtype, casting):
        raise TypeError(f"copyto(): {source.dtype} cannot be cast to {dst.dtype} with casting={casting!r}")
    if where is True:
        _native.copyto(dst, source)
    else:
        _native.copyto(dst, _native.where(as_array(where, dst), source.astype(dst.dtype, copy=False), dst))


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """The parts along an axis (of the flattened array by default) where a boolean vector is true."""
    chosen, a = as_arrays(condition, a)
    if chosen.ndim != 1:
        raise ValueError(f"compress(): the condition has {chosen.ndim} dimensions; give a vector")
    if axis is None:
        a, axis = a.ravel(), 0
    axis = normalize_axis(axis, a.ndim, "compress")
    if chosen.size > a.shape[axis]:
        raise IndexError(f"compress(): the condition has {chosen.size} elements, axis {axis} has {a.shape[axis]}")
    return into(out, _native.take(a, _native.nonzero(chosen)[0], axis), "compress")


def choose(a: ArrayLike, choices: Sequence[ArrayLike], mode: str = "raise") -> ndarray:
    """For each position the element of the choice which `a` names. "raise" refuses bad numbers, and waits for it."""
    numbers, *options = as_arrays(a, *choices)
    n = len(options)
    if mode == "raise" and numbers.size and (int(numbers.min()) < 0 or int(numbers.max()) >= n):
        raise ValueError(f"choose(): a names a choice out of the {n} that there are. Use mode='clip' or 'wrap'")
    numbers = numbers % n if mode == "wrap" else _native.clip(numbers, 0, n - 1)
    return select([numbers == number for number in range(n - 1)], options[:-1], options[-1])


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> ndarray:
    """For each position the element of the first choice whose condition is true, else the default."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"select(): {len(condlist)} conditions for {len(choicelist)} choices; give as many")
    if not condlist:
        if isinstance(default, ndarray):
            return default
        raise ValueError("select(): no condition; give at least one")
    like = next((x for x in (*condlist, *choicelist) if isinstance(x, ndarray)), None)
    result: Any = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = _native.where(as_array(condition, like), choice, result)
    return as_array(result, like)


def ix_(*args: ArrayLike) -> tuple[ndarray, ...]:
    """Index arrays that take the rows, columns, … named by vectors: a[ix_([0, 2], [1])]; bools mean positions."""
    n = len(args)
    out = []
    for position, arg in enumerate(as_arrays(*args)):
        if arg.ndim != 1:
            raise ValueError(f"ix_(): argument {position} has {arg.ndim} dimensions; give vectors")
        if arg.size == 0:
            arg = arg.astype(_INT64)
        elif kind_of(arg.dtype) == "b":
            arg = _native.nonzero(arg)[0]
        out.append(arg.reshape([-1 if p == position else 1 for p in range(n)]))
    return tuple(out)


def unravel_index(indices: ArrayLike, shape: Shape, order: str = "C") -> tuple[ndarray, ...]:
    """Positions of the flattened array as positions of each axis; order "C" or "F"."""
    if order not in ("C", "F"):
        raise ValueError(f"unravel_index(): order {order!r} is unknown; give 'C' or 'F'")
    extents = shape_of(shape, "unravel_index")
    rest = as_array(indices).astype(_INT64, copy=False)
    parts = []
    for extent in reversed(extents) if order == "C" else extents:
        parts.append(rest % extent)
        rest = rest // extent
    return tuple(reversed(parts)) if order == "C" else tuple(parts)


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Shape, mode: str = "raise", order: str = "C") -> ndarray:
    """Positions of each axis as positions of the flattened array; mode as of take(), which is waited for with
    "raise"."""
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index(): order {order!r} is unknown; give 'C' or 'F'")
    extents = shape_of(dims, "ravel_multi_index")
    parts = as_arrays(*multi_index)
    if len(parts) != len(extents):
        raise ValueError(f"ravel_multi_index(): {len(parts)} index arrays for {len(extents)} axes; give as many")
    broadcast_shapes(*[part.shape for part in parts])
    flat: Any = 0
    pairs = list(zip(parts, extents, strict=True))
    for part, extent in pairs if order == "C" else reversed(pairs):
        if mode == "raise" and part.size and (int(part.min()) < 0 or int(part.max()) >= extent):
            raise ValueError(f"ravel_multi_index(): an index is out of bounds for an extent of {extent}")
        part = part % extent if mode == "wrap" else _native.clip(part, 0, extent - 1)
        flat = flat * extent + part
    return as_array(flat)


def apply_along_axis(func1d: Any, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> ndarray:
    """`func1d` of every vector along an axis, as one array: a call of Python for each."""
    from itertools import product

    from dlbridge.nd._joining import stack
    from dlbridge.nd._manipulation import moveaxis

    a = as_array(arr)
    axis = normalize_axis(axis, a.ndim, "apply_along_axis")
    rows = moveaxis(a, axis, -1)
    outer = rows.shape[:-1]
    results = [as_array(func1d(rows[where], *args, **kwargs), a) for where in product(*map(range, outer))]
    if not results:
        raise ValueError("apply_along_axis(): there is no vector to apply the function to")
    made = stack(results).reshape(outer + results[0].shape)
    inner = results[0].ndim
    return moveaxis(made, tuple(range(-inner, 0)), tuple(range(axis, axis + inner))) if inner else made
