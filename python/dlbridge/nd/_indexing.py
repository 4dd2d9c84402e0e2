"""Elements by their positions: taken, written, chosen."""

from __future__ import annotations

from math import prod

from dlbridge.nd import _native
from dlbridge.nd._arguments import (
    as_array,
    as_arrays,
    as_operands,
    as_positions,
    as_values,
    broadcast_shapes,
    count_up,
    into,
    is_scalar,
    normalize_axes,
    normalize_axis,
    order_of,
    shape_of,
)
from dlbridge.nd._dtypes import BY_NAME, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Shape

ndarray = _native.ndarray
_resize = _native.late("_joining", "resize")
_INT64 = BY_NAME["int64"]


put = _native.put
take = _native.take


def _within(positions: ndarray, extent: int, mode: str, operation: str) -> ndarray:
    """The positions that "wrap" or "clip" make of those out of bounds."""
    if mode == "wrap":
        return positions % extent
    if mode == "clip":
        return _native.clip(positions, 0, extent - 1)
    if mode != "raise":
        raise ValueError(f"{operation}(): mode {mode!r} is unknown; give 'raise', 'wrap' or 'clip'")
    return positions


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


def _over_and_over(values: ndarray, n: int) -> ndarray:
    """The first `n` of the values, which begin again behind the last one."""
    flat = values.ravel()
    return flat[:n] if flat.size >= n else _resize(flat, n)


def _put_apart(a: ndarray, positions: ndarray, values: ndarray, mode: str) -> None:
    """put() where no view of the array is flat. The extension calls."""
    positions, values = positions.ravel().astype(_INT64, copy=False), values.ravel()
    positions = _within(positions, a.size, mode, "put")
    if mode == "raise":  # a negative position counts from the end of the flat array, not of an axis
        if isinstance(a, _native.HostArray):
            low, high = int(positions.min()), int(positions.max())
            if low < -a.size or high >= a.size:
                raise IndexError(
                    f"put(): index {low if low < -a.size else high} is out of bounds for {a.size} elements"
                )
        positions = _native.clip(positions, -a.size, a.size - 1)
        positions = _native.where(positions < 0, positions + a.size, positions)
    a[_unraveled(positions, a.shape)] = values


def place(arr: ndarray, mask: ArrayLike, vals: ArrayLike) -> None:
    """Writes values (over and over) to the elements where the mask is true, in place."""
    if _native.place_on_host(arr, mask, vals):
        return
    chosen = as_array(mask, arr).astype("bool", copy=False).reshape(arr.shape)
    count = int(chosen.sum())
    values = as_values(vals, arr)
    if count == 0:
        return
    if values.size == 0:
        raise ValueError("place(): there is no value to place")
    arr[chosen] = _over_and_over(values, count)


def putmask(a: ndarray, mask: ArrayLike, values: ArrayLike) -> None:
    """Writes to the elements where the mask is true the values at their own positions (over and over), in place."""
    if _native.put_masked_on_host(a, mask, values):
        return
    values = as_values(values, a)
    if not _native.can_cast(values.dtype, a.dtype):
        raise TypeError(f"putmask(): {values.dtype} cannot be cast safely to {a.dtype}. Cast the values: astype()")
    values = values.astype(a.dtype, copy=False)
    if values.shape != a.shape:
        values = _resize(values, a.shape)
    _native.where(as_array(mask, a), values, a, out=a)


def copyto(dst: ndarray, src: ArrayLike, casting: str = "same_kind", where: ArrayLike | bool = True) -> None:
    """Writes `src`, which broadcasts, to `dst`, only where `where` is true. TypeError where casting forbids it, and
    OverflowError for Python integers that the dtype of `dst` cannot hold."""
    if where is not True and casting == "same_kind" and _native.put_masked_on_host(dst, where, src):
        return
    if not isinstance(dst, ndarray):
        raise TypeError(f"copyto(): dst is of type {type(dst).__name__}; it must be a dlbridge.nd.ndarray")
    if not issubclass(type(dst), ndarray):  # a stand-in, while fuse() records
        stand_in: Any = dst
        stand_in._copy_from(src, casting, where)
        return
    source = src if is_scalar(src) else as_array(src, dst)
    if where is True:
        _native.copyto(dst, source, casting)
        return
    if isinstance(source, ndarray) and source.ndim > dst.ndim:
        surplus = source.ndim - dst.ndim
        if prod(source.shape[:surplus]) == 1:  # leading axes that dst has not, of one element
            source = source.reshape(source.shape[surplus:])
    mask = as_array(where, dst)
    if hasattr(where, "dtype") and mask.dtype != "bool":  # Python's numbers and lists count as truth values
        raise TypeError(f"copyto(): where is {mask.dtype}; it must be bool. Compare with 0 first")
    if casting != "same_kind" or getattr(source, "dtype", None) != dst.dtype:
        cast = _native.empty(getattr(source, "shape", ()), dst.dtype, device=dst.device)
        _native.copyto(cast, source, casting)
        source = cast
    _native.where(mask, source, dst, out=dst)


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """The parts along an axis (of the flattened array by default) where a boolean vector is true."""
    found = _native.compress_on_host(condition, a, axis)
    if found is not None:
        return into(out, found, "compress")
    chosen, a = as_arrays(condition, a)
    if chosen.ndim != 1:
        raise ValueError(f"compress(): the condition has {chosen.ndim} dimensions; give a vector")
    if axis is None:
        a, axis = a.ravel(), 0
    axis = normalize_axis(axis, a.ndim, "compress")
    if chosen.size > a.shape[axis] and bool(chosen[a.shape[axis] :].any()):
        raise IndexError(f"compress(): {chosen.size} conditions, true ones past the {a.shape[axis]} of axis {axis}")
    return into(out, _native.take(a, _native.nonzero(chosen)[0], axis), "compress")


def choose(a: ArrayLike, choices: Sequence[ArrayLike], mode: str = "raise") -> ndarray:
    """For each position the element of the choice which `a` names. "raise" refuses bad numbers, and waits for it."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose(): mode {mode!r} is unknown; give 'raise', 'wrap' or 'clip'")
    chosen = _native.choose_on_host(a, choices)  # where it serves, no number was beyond the choices
    if chosen is not None:
        return chosen
    like = next((x for x in (a, *choices) if isinstance(x, ndarray)), None)
    numbers = as_array(a, like)
    options = as_operands(*choices, numbers.astype("bool"))[:-1]  # a bool names the device and promotes nothing
    n = len(options)
    if n < 2 or kind_of(numbers.dtype) != "b":
        if mode == "raise" and numbers.size and (int(numbers.min()) < 0 or int(numbers.max()) >= n):
            raise ValueError(f"choose(): a names a choice beyond the {n} that there are. Use mode='clip' or 'wrap'")
        if mode != "raise":
            numbers = _within(numbers, n, mode, "choose")
    return select([numbers == number for number in range(n - 1)], options[:-1], options[-1])


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> ndarray:
    """For each position the element of the first choice whose condition is true, else the default."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"select(): {len(condlist)} conditions for {len(choicelist)} choices; the counts must match")
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


def unravel_index(indices: ArrayLike, shape: Shape, order: str | None = "C") -> tuple[ndarray, ...]:
    """Positions of the flattened array as positions of each axis; order "C" or "F".

    ValueError for a position that does not exist, for which the host waits.
    """
    parts = _native.unravel_on_host(indices, shape) if order == "C" else None
    if parts is not None:
        return parts
    order = "C" if order is None else order_of(order, "unravel_index", "CF")
    extents = shape_of(shape, "unravel_index")
    positions = as_positions(indices, None, "unravel_index")
    if not extents and positions.ndim:
        raise ValueError("unravel_index(): an empty shape has one position, 0, on no axis")
    size = 1
    for extent in extents:
        size *= extent
    if positions.size:
        low, high = int(positions.min()), int(positions.max())
        if low < 0 or high >= size:
            raise ValueError(f"unravel_index(): index {low if low < 0 else high} is out of bounds for {size} elements")
    return _unraveled(positions, extents, order)


def _unraveled(positions: ndarray, extents: tuple[int, ...], order: str = "C") -> tuple[ndarray, ...]:
    """Of positions that there are: what is left for the last axis is below its extent."""
    if not extents:
        return ()
    parts: list[ndarray] = []
    for extent in reversed(extents[1:]) if order == "C" else extents[:-1]:
        parts.append(positions % extent)
        positions = positions // extent
    parts.append(positions if parts else positions.copy())
    return tuple(reversed(parts)) if order == "C" else tuple(parts)


def ravel_multi_index(
    multi_index: Sequence[ArrayLike], dims: Shape, mode: str | Sequence[str] = "raise", order: str | None = "C"
) -> ndarray:
    """Positions of each axis as positions of the flattened array; mode as for take(), for which the host waits with
    "raise", or one for each axis."""
    places = _native.ravel_on_host(multi_index, dims, mode) if order == "C" else None
    if places is not None:
        return places
    order = "C" if order is None else order_of(order, "ravel_multi_index", "CF")
    extents = shape_of(dims, "ravel_multi_index")
    like = next((part for part in multi_index if isinstance(part, ndarray)), None)
    parts = [as_positions(part, like, "ravel_multi_index") for part in multi_index]
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    if len(parts) != len(extents) or len(modes) != len(extents):
        raise ValueError(
            f"ravel_multi_index(): {len(parts)} index arrays, {len(modes)} modes for {len(extents)} axes; "
            "the counts must match"
        )
    if prod(extents) >= 1 << 63:
        raise ValueError(
            f"ravel_multi_index(): dims {extents} have more positions than int64 counts. Give smaller ones"
        )
    broadcast_shapes(*[part.shape for part in parts])
    flat = None
    rows = list(zip(parts, extents, modes, strict=True))
    for part, extent, how in rows if order == "C" else reversed(rows):
        if how == "raise" and part.size and (int(part.min()) < 0 or int(part.max()) >= extent):
            raise ValueError(f"ravel_multi_index(): an index is out of bounds for an extent of {extent}")
        part = _within(part, extent, how, "ravel_multi_index")
        flat = part.copy() if flat is None else flat * extent + part
    return as_array(0 if flat is None else flat, like)


def apply_along_axis(func1d: Any, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> ndarray:
    """`func1d` of every vector along an axis, as one array: one Python call for each."""
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


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> ndarray:
    """What the function of a condition gives for the elements where it holds; the last one where several hold.

    condlist: bool arrays of the shape of `x`, or one. funclist: functions or numbers, one for each condition, and one
    more for where none holds (0 without).
    args, kw: go to the functions. The host waits for how many elements each takes. Source: NumPy.
    """
    a = as_array(x)
    single = (isinstance(condlist, ndarray) and condlist.ndim <= a.ndim) or is_scalar(condlist)
    conditions = [as_array(c, a).astype("bool", copy=False) for c in ([condlist] if single else condlist)]
    if len(funclist) == len(conditions) + 1:
        anywhere = conditions[0]
        for condition in conditions[1:]:
            anywhere = _native.logical_or(anywhere, condition)
        conditions.append(_native.logical_not(anywhere))
    elif len(funclist) != len(conditions):
        n = len(conditions)
        raise ValueError(f"piecewise(): {len(funclist)} functions for {n} conditions. Give {n} or {n + 1}")
    result = _native.empty(a.shape, a.dtype, device=a.device)
    result.fill(0)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            result[condition] = function
            continue
        chosen = a[condition]
        if chosen.size:
            result[condition] = function(chosen, *args, **kw)
    return result


def apply_over_axes(func: Callable[[ndarray, int], ndarray], a: ArrayLike, axes: int | Sequence[int]) -> ndarray:
    """func(array, axis) for one axis after the other; a result that has lost the axis gets it back. Source: NumPy."""
    x = as_array(a)
    ndim = x.ndim
    for axis in normalize_axes(axes, ndim, "apply_over_axes"):
        found = func(x, axis)
        if found.ndim != ndim:
            found = found.reshape((*found.shape[:axis], 1, *found.shape[axis:]))
        if found.ndim != ndim:
            raise ValueError(f"apply_over_axes(): the function gave {found.ndim} axes for an array of {ndim}")
        x = found
    return x
