"""Products and norms. Factorisations and solvers are not part of the ndarray: share it with a library that has them."""

from __future__ import annotations

from math import inf
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, into, normalize_axes, normalize_axis
from dlbridge.nd._dtypes import float_for, is_inexact, kind_of
from dlbridge.nd._grids import diagonal as _diagonal
from dlbridge.nd._manipulation import broadcast_arrays, matrix_transpose, moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis, DTypeLike

ndarray = _native.ndarray

__all__ = [
    "LinAlgError",
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

_ABSENT = frozenset(
    {"cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matrix_rank", "pinv", "qr"}
    | {"slogdet", "solve", "svd", "svdvals", "tensorinv", "tensorsolve"}
)


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise AttributeError(
            f"dlbridge.nd.linalg has no {name}: factorisations are not part of the ndarray. Share the array with a "
            "library that has it, without a copy: dlbridge.convert(x, 'torch'), and its result: nd.from_dlpack(y)"
        )
    raise AttributeError(f"module 'dlbridge.nd.linalg' has no attribute {name!r}")


class LinAlgError(ValueError):
    """A matrix that an operation cannot work with."""


# --- products -------------------------------------------------------------------------------------------------------


def matmul(x1: ArrayLike, x2: ArrayLike, /, out: ndarray | None = None) -> ndarray:
    """The matrix product of the last two axes, the others broadcasting; a vector counts as a row or column.

    ValueError for 0-d arrays or inner extents that differ. Source: Array API 2024.12.
    """
    a, b = as_arrays(x1, x2)
    return _native.matmul(a, b, out)


def dot(a: ArrayLike, b: ArrayLike, out: ndarray | None = None) -> ndarray:
    """Over the last axis of `a` and the second to last (of a vector: only) axis of `b`, summed products. Source:
    NumPy."""
    x, y = as_arrays(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return _native.multiply(x, y, out=out)
    if x.ndim <= 2 and y.ndim <= 2:
        return _native.matmul(x, y, out)
    return into(out, tensordot(x, y, ((-1,), (-1 if y.ndim == 1 else -2,))), "dot")


def vdot(a: ArrayLike, b: ArrayLike) -> ndarray:
    """The summed products of the flattened arrays, the first conjugated."""
    x, y = as_arrays(a, b)
    return vecdot(x.ravel(), y.ravel())


def inner(a: ArrayLike, b: ArrayLike) -> ndarray:
    """Over the last axes of both, summed products, for every pair of rows."""
    x, y = as_arrays(a, b)
    return _native.multiply(x, y) if x.ndim == 0 or y.ndim == 0 else tensordot(x, y, ((-1,), (-1,)))


def outer(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """The products of all pairs of elements of two flattened arrays, one row per element of the first."""
    a, b = as_arrays(x1, x2)
    return _native.multiply(a.reshape((a.size, 1)), b.ravel())


def kron(a: ArrayLike, b: ArrayLike) -> ndarray:
    """The Kronecker product: each element of `a` times the whole of `b`."""
    x, y = as_arrays(a, b)
    n = max(x.ndim, y.ndim)
    left, right = ((1,) * (n - z.ndim) + z.shape for z in (x, y))
    product = x.reshape([part for extent in left for part in (extent, 1)]) * y.reshape(
        [part for extent in right for part in (1, extent)]
    )
    return product.reshape(tuple(p * q for p, q in zip(left, right, strict=True)))


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> ndarray:
    """The summed products along an axis, the first argument conjugated; other axes broadcast. Source: Array API
    2024.12."""
    a, b = as_arrays(x1, x2)
    low = min(a.ndim, b.ndim)
    if low == 0:
        raise ValueError("vecdot(): an array is 0-d; a vector has one or more dimensions")
    position = index(axis)
    if not -low <= position < low:
        normalize_axis(position, low, "vecdot")
    if position != -1:
        a, b = moveaxis(a, position, -1), moveaxis(b, position, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot(): {a.shape[-1]} and {b.shape[-1]} elements along axis {axis}; they must be equal")
    if kind_of(a.dtype) == "c":
        a = _native.conjugate(a)
    return _native.matmul(a[..., None, :], b[..., :, None])[..., 0, 0]


def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: Any = 2) -> ndarray:
    """The products summed over pairs of axes: the last `axes` of the first with the first of the second, or two
    sequences of axes, one each. ValueError where the extents differ. Source: Array API 2024.12.
    """
    a, b = as_arrays(x1, x2)
    if isinstance(axes, (tuple, list)):
        first, second = axes
        over_a = normalize_axes(first, a.ndim, "tensordot")
        over_b = normalize_axes(second, b.ndim, "tensordot")
    else:
        n = index(axes)
        if not 0 <= n <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot(): {n} axes of arrays of {a.ndim} and {b.ndim} dimensions")
        over_a, over_b = tuple(range(a.ndim - n, a.ndim)), tuple(range(n))
    extents = tuple(a.shape[axis] for axis in over_a)
    if extents != tuple(b.shape[axis] for axis in over_b):
        raise ValueError(
            f"tensordot(): axes {over_a} of shape {a.shape} and {over_b} of {b.shape} must have equal extents"
        )
    free_a = [axis for axis in range(a.ndim) if axis not in over_a]
    free_b = [axis for axis in range(b.ndim) if axis not in over_b]
    rows, columns, summed = (_product(e) for e in ([a.shape[x] for x in free_a], [b.shape[x] for x in free_b], extents))
    left = a.transpose([*free_a, *over_a]).reshape((rows, summed))
    right = b.transpose([*over_b, *free_b]).reshape((summed, columns))
    return _native.matmul(left, right).reshape([*(a.shape[x] for x in free_a), *(b.shape[x] for x in free_b)])


def _product(extents: Sequence[int]) -> int:
    total = 1
    for extent in extents:
        total *= extent
    return total


def multi_dot(arrays: Sequence[ArrayLike]) -> ndarray:
    """The product of several matrices, in the order of multiplications that costs least."""
    operands = as_arrays(*arrays)
    if len(operands) < 2:
        raise ValueError(f"multi_dot(): {len(operands)} arrays; a product needs two")
    first, last = operands[0].ndim == 1, operands[-1].ndim == 1
    if first:
        operands[0] = operands[0][None, :]
    if last:
        operands[-1] = operands[-1][:, None]
    if any(a.ndim != 2 for a in operands):
        raise LinAlgError("multi_dot(): only the first and the last array may be vectors, the others are matrices")
    result = _cheapest_product(operands)
    return result[tuple([0] if first else []) + ((Ellipsis, 0) if last else ())]


def _cheapest_product(operands: list[ndarray]) -> ndarray:
    """Matrix chain: best[i, j] is the least cost of the product of i…j, and where its last multiplication splits it."""
    n = len(operands)
    sizes = [operands[0].shape[0], *(a.shape[1] for a in operands)]
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(n)}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def build(i: int, j: int) -> ndarray:
        if i == j:
            return operands[i]
        k = best[i, j][1]
        return _native.matmul(build(i, k), build(k + 1, j))

    return build(0, n - 1)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> ndarray:
    """The cross product of vectors of 3 elements along an axis; other axes broadcast. ValueError for other lengths.

    Source: Array API 2024.12.
    """
    a, b = as_arrays(x1, x2)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(f"cross(): vectors of {a.shape[-1]} and {b.shape[-1]} elements; they need 3")
    a, b = broadcast_arrays(a, b)
    out = _native.empty(a.shape, _native.result_type(a.dtype, b.dtype), device=a.device)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return moveaxis(out, -1, axis)


def matrix_power(a: ArrayLike, n: int) -> ndarray:
    """The product of a square matrix with itself, n times; n 0 is the identity. ValueError for a negative n."""
    from dlbridge.nd._grids import eye

    x = as_array(a)
    times = index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"matrix_power(): shape {x.shape} is not that of square matrices")
    if times < 0:
        raise ValueError(
            f"matrix_power(): n is {times}; negative powers need an inverse, which the ndarray does not have"
        )
    if times == 0:
        unit = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return _native.broadcast_to(unit, x.shape).copy()
    result: ndarray | None = None
    while times:
        if times & 1:
            result = x if result is None else _native.matmul(result, x)
        times >>= 1
        if times:
            x = _native.matmul(x, x)
    assert result is not None  # times was positive
    return result.copy() if result is a else result


# --- diagonals ------------------------------------------------------------------------------------------------------


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> ndarray:
    """A view of the diagonals of the last two axes. Source: Array API 2024.12."""
    return _diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> ndarray:
    """The sum of the diagonals of the last two axes. Source: Array API 2024.12."""
    return _diagonal(x, offset, -2, -1).sum(axis=-1, dtype=dtype)


# --- norms ----------------------------------------------------------------------------------------------------------

_REDUCTIONS: dict[Any, str] = {1: "norm1", 2: "norm2", inf: "norm_inf", -inf: "norm_minus_inf"}


def _inexact(x: ArrayLike) -> ndarray:
    a = as_array(x)
    return a if is_inexact(a) else a.astype(float_for(a.dtype))


def _vector_norm(x: ndarray, ord: float, axis: Axis, keepdims: bool) -> ndarray:
    if ord in _REDUCTIONS and x.size:
        return _native.reduce(_REDUCTIONS[ord], x, axis, None, keepdims, None, 0.0)
    magnitudes = _native.absolute(x)
    if ord in _REDUCTIONS:  # of nothing: 0, but there is no smallest
        return _native.reduce("min" if ord < 0 else "sum", magnitudes, axis, None, keepdims, None, 0.0)
    if ord == 0:
        return (magnitudes != 0).sum(axis=axis, keepdims=keepdims).astype(magnitudes.dtype)
    return (magnitudes**ord).sum(axis=axis, keepdims=keepdims) ** (1.0 / ord)


def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> ndarray:
    """The norm over axes: the root of the sum of squares, or another `ord`: 1, inf, -inf, 0, any number.

    Source: Array API 2024.12.
    """
    if isinstance(ord, str):
        raise ValueError(f"vector_norm(): ord is {ord!r}; give a number")
    return _vector_norm(_inexact(x), ord, axis, keepdims)


def _matrix_norm(x: ndarray, ord: Any, axes: tuple[int, int], keepdims: bool) -> ndarray:
    if ord in ("fro", "f", None):
        return _native.reduce("norm2", x, axes, None, keepdims, None, 0.0)
    if ord in (2, -2, "nuc"):
        raise LinAlgError(
            f"norm(): ord={ord!r} of a matrix needs its singular values, which the ndarray does not compute. Use "
            "'fro', 1, -1, inf or -inf"
        )
    if ord not in (1, -1, inf, -inf):
        raise ValueError(f"norm(): ord {ord!r} is not a norm of matrices; give 'fro', 1, -1, inf or -inf")
    summed, other = axes if abs(ord) == 1 else axes[::-1]
    sums = _native.reduce("norm1", x, summed, None, True, None, 0.0)
    largest = "max" if x.size else "sum"  # of nothing: 0
    found = _native.reduce(largest if ord > 0 else "min", sums, other, None, True, None, 0.0)
    return found if keepdims else found.squeeze(axes)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> ndarray:
    """The norm of the matrices of the last two axes: "fro", 1, -1, inf or -inf; not those of singular values.

    Source: Array API 2024.12.
    """
    a = _inexact(x)
    if a.ndim < 2:
        raise ValueError(f"matrix_norm(): the array has {a.ndim} dimension(s); a matrix has two")
    return _matrix_norm(a, ord, (a.ndim - 2, a.ndim - 1), keepdims)


def norm(x: ArrayLike, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> ndarray:
    """The norm of a vector (one axis) or matrix (two axes); of all elements by default. ord: see vector_norm() and
    matrix_norm(). ValueError for more than two axes with an ord. Source: NumPy.
    """
    a = _inexact(x)
    if axis is None and ord is None:
        return _vector_norm(a, 2, None, keepdims)
    axes = normalize_axes(axis, a.ndim, "norm")
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"norm(): ord {ord!r} is not a norm of vectors; give a number")
        return _vector_norm(a, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"norm(): {len(axes)} axes; a vector has one, a matrix two. Name them with axis=")
    return _matrix_norm(a, ord, (axes[0], axes[1]), keepdims)
