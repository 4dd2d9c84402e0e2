"""Matrices and grids that follow from positions: identities, diagonals, triangles, coordinates."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, count_up, is_scalar, one_device, shape_of
from dlbridge.nd._dtypes import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray
_INT64 = BY_NAME["int64"]


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """A view of the diagonals of the planes of two axes, last axis of the result; offset > 0 lies above the main one.

    ValueError for fewer than two dimensions or equal axes. Unlike NumPy's the view can be written to.
    """
    return as_array(a).diagonal(offset, axis1, axis2)


def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """The sum of the diagonals of two axes, the first two by default; dtypes as for sum()."""
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype, out=out)


def diag(v: ArrayLike, k: int = 0) -> ndarray:
    """The k-th diagonal of a matrix (a copy), or a matrix with the vector `v` on it. ValueError for other ranks."""
    v = as_array(v)
    if v.ndim == 2:
        return diagonal(v, k).copy()
    if v.ndim != 1:
        raise ValueError(f"diag(): the array has {v.ndim} dimensions; give a vector or a matrix")
    n = v.shape[0] + abs(index(k))
    x = _native.empty((n, n), v.dtype, device=v.device)
    x.fill(0)
    diagonal(x, k)[...] = v
    return x


def diagflat(v: ArrayLike, k: int = 0) -> ndarray:
    """A matrix with the flattened values of `v` on its k-th diagonal."""
    return diag(as_array(v).ravel(), k)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: DeviceLike = None,
) -> ndarray:
    """A matrix with ones on the k-th diagonal and zeros elsewhere; float64 by default. Source: Array API 2024.12."""
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    x = _native.empty(shape, BY_NAME["float64"] if dtype is None else dtype, device=device, order=order)
    x.fill(0)
    k = index(k)
    if -x.shape[0] < k < x.shape[1]:  # it may be past 64 bits
        diagonal(x, k).fill(1)
    return x


def identity(n: int, dtype: DTypeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """The identity matrix of n rows; float64 by default."""
    return eye(n, dtype=dtype, device=device)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float, *, device: DeviceLike = None) -> ndarray:
    """A matrix with ones on and below the k-th diagonal, zeros above; N rows, M columns (N by default)."""
    one = _native.array(1, dtype, device=device)
    shape = max(index(N), 0), max(index(N if M is None else M), 0)
    return _native.triangle(_native.broadcast_to(one, shape), k, True)


def tril(m: ArrayLike, /, k: int = 0) -> ndarray:
    """`m` with zeros above the k-th diagonal of its last two axes; a copy. A vector is each row of a square."""
    return _native.triangle(as_array(m), k, True)


def triu(m: ArrayLike, /, k: int = 0) -> ndarray:
    """`m` with zeros below the k-th diagonal of its last two axes; a copy. A vector is each row of a square."""
    return _native.triangle(as_array(m), k, False)


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> ndarray:
    """The matrix of the powers of a vector, N columns (its length by default), the highest power first."""
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError(f"vander(): x has {x.ndim} dimensions; give a vector")
    n = x.shape[0] if N is None else index(N)
    dtype = _native.result_type(x.dtype, "int64")
    matrix = _native.empty((x.shape[0], n), dtype, device=x.device)
    powers = matrix if increasing else matrix[:, ::-1]
    powers[:, :1] = 1
    if n > 1:
        column = x.astype(dtype, copy=False)[:, None]
        powers[:, 1:] = _native.broadcast_to(column, (x.shape[0], n - 1)).cumprod(axis=1)
    return matrix


def meshgrid(*arrays: ArrayLike, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[ndarray, ...]:
    """Coordinate arrays of the grid that vectors span, one a vector.

    indexing: "xy" puts the second vector along axis 0, "ij" the first. sparse: extents of 1 but along the own axis.
    copy: False gives views that broadcast. ValueError for another indexing or arrays that are no vectors.
    Source: Array API 2024.12, NumPy.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing is {indexing!r}; give 'xy' or 'ij'")
    vectors = [as_array(a) for a in arrays]
    if any(v.ndim > 1 for v in vectors):
        raise ValueError("meshgrid(): the arrays must have one dimension each")
    n = len(vectors)
    axes = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else range(n)  # of each vector
    shape = tuple(vectors[axis].size for axis in axes)  # the exchange of two is its own inverse
    grids = []
    for axis, v in zip(axes, vectors, strict=True):
        grid = v.reshape([-1 if a == axis else 1 for a in range(n)])
        grids.append(grid if sparse else _native.broadcast_to(grid, shape))
    return tuple(g.copy() for g in grids) if copy else tuple(grids)


def indices(dimensions: Shape, dtype: DTypeLike = int, sparse: bool = False, *, device: DeviceLike = None) -> Any:
    """The coordinates of every element of a shape: one array with an axis in front, or with sparse a tuple."""
    shape = shape_of(dimensions, "indices")
    last = len(shape) - 1
    if sparse:
        return tuple(
            count_up(n, device, dtype).reshape((1,) * axis + (n,) + (1,) * (last - axis))
            for axis, n in enumerate(shape)
        )
    x = _native.empty((len(shape), *shape), dtype, device=device)
    for axis, n in enumerate(shape):  # axes in front need not be there to broadcast
        grid = count_up(n, device, dtype)
        x[axis] = grid if axis == last else grid.reshape((n,) + (1,) * (last - axis))
    return x


class _Grid:
    """What `mgrid[…]` and `ogrid[…]` are: slices in, coordinates out; a complex step is a number of points."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name = name
        self._sparse = sparse

    def __repr__(self) -> str:
        return f"<dlbridge.nd.{self._name}>"

    @staticmethod
    def _points(part: slice, device: DeviceLike = None, places: ndarray | None = None) -> ndarray:
        """device: of what is counted between numbers. places: those of a number of points between bounds in arrays,
        where they do not lie in a line."""
        from dlbridge.nd._ranges import arange, linspace

        start = 0 if part.start is None else part.start
        step = 1 if part.step is None else part.step
        if isinstance(step, complex):
            n = int(abs(step))
            if isinstance(start, ndarray) or isinstance(part.stop, ndarray):
                between = part.stop - start
                counted = count_up(n, between.device) if places is None else places
                found: ndarray = counted * (between / (n - 1) if n > 1 else 1) + start
                return found
            points: ndarray = linspace(start, part.stop, n, device=device)
            return points
        return arange(start, part.stop, step, device=device)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return self._points(key)
        bounds = [bound for part in key for bound in (part.start, part.stop) if isinstance(bound, ndarray)]
        device = one_device(bounds, self._name) if bounds else None
        vectors = [self._points(part, device) for part in key]
        dtype = _native.result_type(*[v.dtype for v in vectors])
        n = len(vectors)
        along = [tuple(slice(None) if a == axis else None for a in range(n)) for axis in range(n)]
        if self._sparse:
            return tuple(v.astype(dtype, copy=False)[axes] for v, axes in zip(vectors, along, strict=True))
        extents = [int(abs(part.step)) if v.ndim > 1 else v.size for v, part in zip(vectors, key, strict=True)]
        x = _native.empty((n, *extents), dtype, device=one_device(vectors, self._name))
        for axis, (v, part) in enumerate(zip(vectors, key, strict=True)):
            x[axis] = (
                v[along[axis]]
                if v.ndim == 1
                else self._points(part, device, count_up(extents[axis], v.device)[along[axis]])
            )
        return x


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


def _fill_positions(n: int, m: int | None, k: int, lower: bool, device: DeviceLike) -> tuple[ndarray, ...]:
    mask = tri(n, m, k if lower else k - 1, bool, device=device)
    return _native.nonzero(mask if lower else ~mask)


def tril_indices(n: int, k: int = 0, m: int | None = None, *, device: DeviceLike = None) -> tuple[ndarray, ...]:
    """The positions on and below the k-th diagonal of an (n, m) matrix, as two index arrays."""
    return _fill_positions(n, m, k, True, device)


def triu_indices(n: int, k: int = 0, m: int | None = None, *, device: DeviceLike = None) -> tuple[ndarray, ...]:
    """The positions on and above the k-th diagonal of an (n, m) matrix, as two index arrays."""
    return _fill_positions(n, m, k, False, device)


def diag_indices(n: int, ndim: int = 2, *, device: DeviceLike = None) -> tuple[ndarray, ...]:
    """The positions of the main diagonal of an array of ndim axes of n, as index arrays."""
    return (count_up(max(index(n), 0), device),) * ndim


def fill_diagonal(a: ndarray, val: ArrayLike, wrap: bool = False) -> None:
    """Writes `val` to the main diagonal, in place; for more than two axes, which must be equally long, that of all.

    val: a number, or values that begin again when they end. wrap: the diagonal of a tall matrix begins again below
    itself, with a row between. Source: NumPy.
    """
    if not isinstance(a, ndarray) or a.ndim < 2:
        raise ValueError("fill_diagonal(): a must be an ndarray of two or more dimensions")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(
            f"fill_diagonal(): the extents of shape {a.shape} differ; with over two axes they must be equal"
        )
    if wrap and a.ndim == 2 and a.shape[0] > a.shape[1]:
        a.flat[:: a.shape[1] + 1] = val
        return
    line = a.diagonal() if a.ndim == 2 else _native.as_strided(a, (min(a.shape),), (sum(a.strides),), 0)
    if is_scalar(val):
        line[...] = val
    else:
        line.flat = val


def _square_matrix(arr: ndarray, operation: str) -> None:
    if arr.ndim != 2:
        raise ValueError(f"{operation}(): the array has {arr.ndim} axes; give a matrix")


def diag_indices_from(arr: ndarray) -> tuple[ndarray, ...]:
    """The indices of the main diagonal of an array of at least two axes of one extent."""
    if arr.ndim < 2 or len(set(arr.shape)) > 1:
        raise ValueError(f"diag_indices_from(): the shape is {arr.shape}; give two or more axes of one extent")
    return diag_indices(arr.shape[0], arr.ndim, device=arr.device)


def tril_indices_from(arr: ndarray, k: int = 0) -> tuple[ndarray, ...]:
    """The indices of the elements of a matrix on and below its k-th diagonal."""
    _square_matrix(arr, "tril_indices_from")
    return tril_indices(arr.shape[0], k, arr.shape[1], device=arr.device)


def triu_indices_from(arr: ndarray, k: int = 0) -> tuple[ndarray, ...]:
    """The indices of the elements of a matrix on and above its k-th diagonal."""
    _square_matrix(arr, "triu_indices_from")
    return triu_indices(arr.shape[0], k, arr.shape[1], device=arr.device)


def mask_indices(n: int, mask_func: Callable[[ndarray, int], ndarray], k: int = 0) -> tuple[ndarray, ...]:
    """The indices where mask_func(a matrix of n x n ones, k), tril() for one, is not 0."""
    ones = _native.empty((n, n), "int64")
    ones.fill(1)
    return _native.nonzero(_native.not_equal(mask_func(ones, k), 0))
