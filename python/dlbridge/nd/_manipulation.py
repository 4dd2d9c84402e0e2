"""The same elements under another shape or order of axes: views wherever strides can say it."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, broadcast_shapes, normalize_axes, normalize_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis, Shape

ndarray = _native.ndarray


def shape(a: ArrayLike) -> tuple[int, ...]:
    """The extents of `a`."""
    return as_array(a).shape


def _ndim(a: Any) -> int:
    own = getattr(a, "ndim", None)
    if isinstance(own, int):
        return own
    return as_array(a).ndim if isinstance(a, (list, tuple)) else 0


def _size(a: ArrayLike, axis: int | None) -> int:
    a = as_array(a)
    return a.size if axis is None else a.shape[normalize_axis(axis, a.ndim, "size")]


ndim, size = _native.ndim, _native.size


def reshape(a: ArrayLike, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> ndarray:
    """`a` with another shape, in which one extent may be -1; a view where strides allow.

    order: "C", "F" or "A", in which elements are read and placed. copy: True always, False never (ValueError where it
    is needed), None where needed. ValueError where the sizes differ. Source: Array API 2024.12.
    """
    return as_array(a).reshape(shape, order=order, copy=copy)


def ravel(a: ArrayLike, order: str = "C") -> ndarray:
    """The elements of `a` in one dimension; a view where strides allow. order: "C", "F", "A" or "K"."""
    return as_array(a).ravel(order)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> ndarray:
    """A view with the axes in another order, reversed by default. ValueError unless they are a permutation."""
    a = as_array(a)
    if axes is None:
        return a.transpose()
    order = normalize_axes(tuple(axes), a.ndim, "transpose")
    if len(order) != a.ndim:
        raise ValueError(f"transpose(): axes {tuple(axes)} are {len(order)}; the array has {a.ndim}. Name each once")
    return a.transpose(order)


def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> ndarray:
    """A view with the axes in the order `axes`. ValueError unless it is a permutation. Source: Array API 2024.12."""
    return transpose(x, axes)


def matrix_transpose(x: ArrayLike, /) -> ndarray:
    """A view with the last two axes exchanged. ValueError for fewer than two. Source: Array API 2024.12."""
    x = as_array(x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose(): the array has {x.ndim} dimension(s); a matrix has two or more")
    return x.swapaxes(-1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> ndarray:
    """A view with two axes exchanged."""
    return as_array(a).swapaxes(axis1, axis2)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int], /) -> ndarray:
    """A view with the `source` axes at the `destination` positions, the others in their order.

    ValueError where the two differ in number or name an axis twice. Source: Array API 2024.12.
    """
    a = as_array(a)
    source = source if isinstance(source, int) else _axes_of(source)
    destination = destination if isinstance(destination, int) else _axes_of(destination)
    return a.transpose(_moved(a.ndim, source, destination))


def _axes_of(axes: Any) -> int | tuple[int, ...]:
    return tuple(axes) if isinstance(axes, (list, tuple)) else index(axes)


@lru_cache(maxsize=256)
def _moved(ndim: int, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> tuple[int, ...]:
    sources = normalize_axes(source, ndim, "moveaxis")
    destinations = normalize_axes(destination, ndim, "moveaxis")
    if len(sources) != len(destinations):
        raise ValueError(
            f"moveaxis(): {len(sources)} axes cannot go to {len(destinations)} positions; the counts must match"
        )
    order = [axis for axis in range(ndim) if axis not in sources]
    for position, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(position, axis)
    return tuple(order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> ndarray:
    """A view with `axis` moved in front of the axis `start`; moveaxis() says the same more plainly."""
    a = as_array(a)
    axis = normalize_axis(axis, a.ndim, "rollaxis")
    position = index(start) + (a.ndim if index(start) < 0 else 0)
    if not 0 <= position <= a.ndim:
        normalize_axis(start, a.ndim + 1, "rollaxis")
    order = list(range(a.ndim))
    order.insert(position - 1 if axis < position else position, order.pop(axis))
    return a.transpose(order)


def expand_dims(a: ArrayLike, /, axis: int | Sequence[int] = 0) -> ndarray:
    """A view with axes of extent 1 at the positions `axis` of the result. Source: Array API 2024.12."""
    a = as_array(a)
    if not isinstance(axis, (tuple, list)):
        return a[(slice(None),) * normalize_axis(axis, a.ndim + 1, "expand_dims") + (None,)]
    n = len(axis)
    axes = normalize_axes(axis, a.ndim + n, "expand_dims")
    return a[tuple(None if position in axes else slice(None) for position in range(a.ndim + n))]


def squeeze(a: ArrayLike, /, axis: Axis = None) -> ndarray:
    """A view without axes of extent 1: all of them, or those named. ValueError where one named has another extent."""
    return as_array(a).squeeze(axis)


def _each(function: Callable[[ndarray], ndarray], arys: tuple[ArrayLike, ...]) -> Any:
    """What a function gives for an array, or a tuple for several."""
    return function(as_array(arys[0])) if len(arys) == 1 else tuple(function(as_array(a)) for a in arys)


def _atleast_1d(a: ndarray) -> ndarray:
    return a if a.ndim else a.reshape((1,))


def atleast_1d(*arys: ArrayLike) -> Any:
    """Each array with one dimension or more, as a view; a tuple for several."""
    return _each(_atleast_1d, arys)


def _atleast_2d(a: ndarray) -> ndarray:
    return a if a.ndim >= 2 else a.reshape((1, a.size))


def atleast_2d(*arys: ArrayLike) -> Any:
    """Each array with two dimensions or more (new ones in front), as a view; a tuple for several."""
    return _each(_atleast_2d, arys)


def _atleast_3d(a: ndarray) -> ndarray:
    if a.ndim >= 3:
        return a
    return a[:, :, None] if a.ndim == 2 else a.reshape((1, a.size, 1))


def atleast_3d(*arys: ArrayLike) -> Any:
    """Each array with three dimensions or more, as a view; a tuple for several. Source: NumPy."""
    return _each(_atleast_3d, arys)


def broadcast_to(x: ArrayLike, /, shape: Shape) -> ndarray:
    """A read-only view of `x` with a shape that it broadcasts to; ValueError for another. Source: Array API 2024.12."""
    return _native.broadcast_to(as_array(x), (shape,) if isinstance(shape, int) else tuple(shape))


class broadcast:
    """What arrays broadcast to, and the arrays as views of that shape in `values`. Source: NumPy, CuPy."""

    def __init__(self, *arrays: ArrayLike) -> None:
        self.values = broadcast_arrays(*arrays)
        self.shape: tuple[int, ...] = self.values[0].shape if self.values else ()
        self.nd = self.ndim = len(self.shape)
        self.size = prod(self.shape)
        self.numiter = len(self.values)


def broadcast_arrays(*arrays: ArrayLike) -> tuple[ndarray, ...]:
    """Read-only views of the arrays with the shape that they broadcast to. Source: Array API 2024.12."""
    operands = [as_array(a) for a in arrays]
    target = broadcast_shapes(*[a.shape for a in operands])
    return tuple(_native.broadcast_to(a, target) for a in operands)


_REVERSED = slice(None, None, -1)
_SECOND_REVERSED = (slice(None), _REVERSED)


def flip(m: ArrayLike, /, axis: Axis = None) -> ndarray:
    """A view with the order of elements reversed along axes, all by default. Source: Array API 2024.12."""
    m = as_array(m)
    if axis is None:
        return m[(_REVERSED,) * m.ndim]
    if isinstance(axis, int):
        return m[(slice(None),) * normalize_axis(axis, m.ndim, "flip") + (_REVERSED,)]
    axes = normalize_axes(axis, m.ndim, "flip")
    return m[tuple(_REVERSED if a in axes else slice(None) for a in range(m.ndim))]


def _reversed(m: ArrayLike, key: Any, axis: int) -> ndarray:
    """flip() along an axis by a key that is made; flip() itself says what is wrong where there is no such axis."""
    x = m if isinstance(m, ndarray) else as_array(m)
    try:
        return x[key]
    except IndexError:
        return flip(x, axis)


def fliplr(m: ArrayLike) -> ndarray:
    """A view with the columns (axis 1) reversed."""
    return _reversed(m, _SECOND_REVERSED, 1)


def flipud(m: ArrayLike) -> ndarray:
    """A view with the rows (axis 0) reversed."""
    return _reversed(m, _REVERSED, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> ndarray:
    """A view turned k times by 90 degrees in the plane of two axes, from the first towards the second."""
    m = as_array(m)
    first, second = normalize_axes(axes, m.ndim, "rot90")
    turns = index(k) % 4
    if turns == 0:
        return m[...]
    if turns == 2:
        return flip(m, (first, second))
    if turns == 1:
        return flip(m, second).swapaxes(first, second)
    return flip(m.swapaxes(first, second), second)


def roll(a: ArrayLike, /, shift: int | Sequence[int] | ndarray, axis: Axis = None) -> ndarray:
    """A copy with elements shifted along axes, those that leave at the end coming in at the start.

    axis None shifts the flattened array. One shift serves all axes, or there are as many; shifts in an array are waited
    for. Source: Array API 2024.12.
    """
    a = as_array(a)
    if hasattr(shift, "tolist"):
        shift = shift.tolist()
    if axis is None:
        step = sum(map(index, shift if isinstance(shift, (tuple, list)) else (shift,)))
        return _native.roll(a.ravel(), (step % (a.size or 1),)).reshape(a.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    if len(shifts) not in (1, len(axes)) and len(axes) != 1:
        raise ValueError(f"roll(): {len(shifts)} shifts for {len(axes)} axes; give one for all, or one for each")
    shifts = shifts * (len(axes) if len(shifts) == 1 else 1)
    axes = tuple(axes) * (len(shifts) if len(axes) == 1 else 1)
    steps = [0] * a.ndim
    for step, one_axis in zip(shifts, axes, strict=True):
        position = normalize_axis(one_axis, a.ndim, "roll")
        steps[position] = (steps[position] + index(step)) % (a.shape[position] or 1)
    return _native.roll(a, steps)


def _sections(ary: ndarray, indices_or_sections: Any, axis: int) -> list[ndarray]:
    extent = ary.shape[axis]
    if isinstance(indices_or_sections, ndarray):
        indices_or_sections = indices_or_sections.tolist()
    if hasattr(indices_or_sections, "__iter__"):
        cuts = [0, *[index(cut) for cut in indices_or_sections], extent]
    else:
        sections = index(indices_or_sections)
        if sections <= 0:
            raise ValueError(f"split(): {sections} sections; give 1 or more")
        each, extra = divmod(extent, sections)
        cuts = [0]
        for number in range(sections):
            cuts.append(cuts[-1] + each + (number < extra))
    before = (slice(None),) * axis
    last = len(cuts) - 2
    return [
        ary[(*before, slice(start, stop if number < last else None))]
        for number, (start, stop) in enumerate(pairwise(cuts))
    ]


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Views of parts along an axis: a number of nearly equal ones, or cut at the given positions."""
    ary = as_array(ary)
    return _sections(ary, indices_or_sections, normalize_axis(axis, ary.ndim, "array_split"))


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """array_split(), with ValueError where equal parts are asked for and cannot be had."""
    ary = as_array(ary)
    axis = normalize_axis(axis, ary.ndim, "split")
    if not hasattr(indices_or_sections, "__iter__"):
        sections = index(indices_or_sections)
        if sections <= 0 or ary.shape[axis] % sections:
            raise ValueError(
                f"split(): {ary.shape[axis]} elements cannot be split in {sections} equal parts. Use array_split()"
            )
    return _sections(ary, indices_or_sections, axis)


def _need_dims(ary: ArrayLike, ndim: int, operation: str) -> ndarray:
    ary = as_array(ary)
    if ary.ndim < ndim:
        raise ValueError(f"{operation}(): the array has {ary.ndim} dimension(s); it needs {ndim} or more")
    return ary


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[ndarray]:
    """split() along axis 1, or along axis 0 of a vector."""
    ary = _need_dims(ary, 1, "hsplit")
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[ndarray]:
    """split() along axis 0."""
    return split(_need_dims(ary, 2, "vsplit"), indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[ndarray]:
    """split() along axis 2."""
    return split(_need_dims(ary, 3, "dsplit"), indices_or_sections, 2)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """Views of the parts along an axis, without that axis. Source: Array API 2024.12."""
    x = as_array(x)
    if x.ndim == 0:
        raise ValueError("unstack(): the array is 0-d and cannot be unstacked")
    moved = moveaxis(x, axis, 0)
    return tuple(moved[number] for number in range(moved.shape[0]))
