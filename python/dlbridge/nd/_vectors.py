"""Products of vectors in stacks."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_arrays, normalize_axis
from dlbridge.nd._manipulation import moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """Matrices (..., M, N) by vectors (..., N): (..., M). Source: NumPy."""
    a, b = as_arrays(x1, x2)
    return _native.matmul(a, b[..., None])[..., 0]


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """Vectors (..., N), conjugated, by matrices (..., N, M): (..., M). Source: NumPy."""
    a, b = as_arrays(x1, x2)
    return _native.matmul(a.conj()[..., None, :], b)[..., 0, :]


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> ndarray:
    """The cross product of vectors of three elements, which lie along axes `axisa` and `axisb`; of the result along
    `axisc`. axis: all three. ValueError for other extents. Source: NumPy 2."""
    from dlbridge.nd._products import cross as along_last

    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    x, y = as_arrays(a, b)
    x = moveaxis(x, normalize_axis(axisa, x.ndim, "cross"), -1)
    y = moveaxis(y, normalize_axis(axisb, y.ndim, "cross"), -1)
    return moveaxis(along_last(x, y), -1, axisc)
