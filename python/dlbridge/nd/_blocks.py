"""Nested lists of arrays as one array."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array
from dlbridge.nd._joining import concatenate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ndarray = _native.ndarray


def block(arrays: Any) -> ndarray:
    """An array of nested lists of blocks: the innermost lists are joined along the last axis, those around them along
    the one before, and so on. ValueError for lists of different depth. Source: NumPy."""

    def depth_of(item: Any) -> int:
        if not isinstance(item, list):
            return 0
        depths = {depth_of(part) for part in item}
        if len(depths) != 1:
            raise ValueError("block(): lists are empty or of different depth. Nest all blocks equally deep")
        return depths.pop() + 1

    depth = depth_of(arrays)
    found: list[ndarray] = []

    def converted(item: Any) -> Any:
        if isinstance(item, list):
            return [converted(part) for part in item]
        found.append(as_array(item))
        return found[-1]

    nested = converted(arrays)
    ndim = max(depth, *(x.ndim for x in found), 0)

    def widened(item: Any) -> Any:
        if isinstance(item, list):
            return [widened(part) for part in item]
        return item.reshape((1,) * (ndim - item.ndim) + item.shape)

    def join(item: Any, axis: int) -> ndarray:
        return concatenate([join(part, axis + 1) for part in item], axis) if isinstance(item, list) else item

    if depth == 0:
        return found[0].copy()
    wide = widened(nested)
    if all(isinstance(x, _native.HostArray) for x in found) and sum(x.size for x in found) >= _COPIED_ONCE:
        shape = _extents(wide, ndim - depth)
        if shape is not None:
            in_fortran = all(x._flags[1] for x in found) and not all(x._flags[0] for x in found)
            out = _native.empty(shape, _native.result_type(*found), device="cpu", order="F" if in_fortran else "C")
            _fill_blocks(out, wide, ndim - depth)
            return out
    return join(wide, ndim - depth)


_COPIED_ONCE = 4096  # elements of blocks on the host, from which on none is joined to be joined again


def _extents(item: Any, axis: int) -> Any:
    """The shape of nested lists of arrays, the outer ones along `axis`; None where they do not fit."""
    if not isinstance(item, list):
        return item.shape
    shapes = [_extents(part, axis + 1) for part in item]
    sides = {None if s is None else (s[:axis], s[axis + 1 :]) for s in shapes}
    if len(sides) != 1 or None in sides:
        return None
    return (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])


def _fill_blocks(out: ndarray, item: Any, axis: int) -> None:
    if not isinstance(item, list):
        out[...] = item
        return
    start = 0
    for part in item:
        n = _extents(part, axis + 1)[axis]
        _fill_blocks(out[(*(slice(None),) * axis, slice(start, start + n))], part, axis + 1)
        start += n
