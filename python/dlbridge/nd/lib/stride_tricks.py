"""Views with strides of one's own choice, and of windows that slide over an array."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, normalize_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis

ndarray = _native.ndarray


def _read_only(x: ndarray) -> ndarray:
    return _native.broadcast_to(x, x.shape)


def as_strided(
    x: ArrayLike,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> ndarray:
    """A view of the memory of `x` from its first element on, with this shape and these strides in bytes.

    Elements may overlap: what is written to one is then seen in several. writeable: False gives a read-only view. subok
    has no effect. Raises ValueError where an element would lie outside of the memory that `x` is part of.
    Source: NumPy.
    """
    a = as_array(x)
    view = _native.as_strided(a, a.shape if shape is None else shape, a.strides if strides is None else strides)
    return view if writeable else _read_only(view)


def sliding_window_view(
    x: ArrayLike, window_shape: Any, axis: Axis = None, *, subok: bool = False, writeable: bool = False
) -> ndarray:
    """A view of the windows that slide over `x`: the axes of their positions, then those within a window.

    window_shape: extents of the window, one for each of `axis`, or for each axis of `x` without it; an axis may be
    named more than once. writeable: windows overlap, so that the view is read-only by default. subok has no effect.
    Raises ValueError for a window that is larger than the array or has a negative extent. Source: NumPy.
    """
    a = as_array(x)
    window = tuple(map(index, window_shape)) if hasattr(window_shape, "__iter__") else (index(window_shape),)
    if axis is None:
        axes = tuple(range(a.ndim))
    else:
        given = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = tuple(normalize_axis(k, a.ndim, "sliding_window_view") for k in given)
    if len(axes) != len(window):
        of = "the array has" if axis is None else "axis names"
        raise ValueError(
            f"sliding_window_view(): the window has {len(window)} extents, and {of} {len(axes)} axes; give one extent "
            "for each"
        )
    places = list(a.shape)
    for k, extent in zip(axes, window, strict=True):
        if not 0 <= extent <= places[k]:
            raise ValueError(
                f"sliding_window_view(): a window of {extent} in axis {k} of {a.shape[k]} elements; give 0 up to what "
                "is there"
            )
        places[k] -= extent - 1
    view = _native.as_strided(a, (*places, *window), a.strides + tuple(a.strides[k] for k in axes))
    return view if writeable else _read_only(view)


__all__ = ["as_strided", "sliding_window_view"]
