"""Products of vectors, matrices and tensors, and what is read off the diagonals. They run on every device."""

from __future__ import annotations

from math import prod
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_arrays, axes_error, into, normalize_axes, normalize_axis
from dlbridge.nd._dtypes import can_cast, resolve
from dlbridge.nd._grids import diagonal as _diagonal
from dlbridge.nd._lapack import linalg_error
from dlbridge.nd._manipulation import broadcast_arrays, moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, SupportsIndex

    from dlbridge.nd._arguments import ArrayLike, DTypeLike

ndarray = _native.ndarray

# --- products -------------------------------------------------------------------------------------------------------


def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    out: ndarray | None = None,
    *,
    casting: str = "same_kind",
    dtype: DTypeLike | None = None,
    axes: Sequence[Any] | None = None,
) -> ndarray:
    """The matrix product of the last two axes, the others broadcasting; a vector counts as a row or column.

    dtype: of the computation. casting: what operands may be cast to it, and the product to the dtype of `out`.
    axes: where the matrices of x1, x2 and the product lie, a tuple for each: [(-2, -1), (-2, -1), (-2, -1)] by default.
    ValueError for 0-d arrays or inner extents that differ, TypeError where casting forbids it, AxisError for axes that
    there are not. Source: Array API 2024.12, NumPy.
    """
    a, b = as_arrays(x1, x2)
    if casting == "same_kind" and dtype is None and axes is None:
        return _native.matmul(a, b, out)
    if casting == "same_kind" and dtype is None and out is None:
        product = _native.matmul_on_axes(a, b, axes)
        if product is not None:
            return product
    wanted = _native.result_type(a.dtype, b.dtype) if dtype is None else resolve(dtype)
    if a.dtype is b.dtype is wanted and out is None and axes is None and can_cast(wanted, wanted, casting):
        return _native.matmul(a, b)
    to = wanted if out is None else out.dtype
    for source, target in ((a.dtype, wanted), (b.dtype, wanted), (wanted, to)):
        if not can_cast(source, target, casting):
            raise TypeError(f"matmul(): cannot cast {source} to {target} (casting={casting!r}). Give casting='unsafe'")
    a, b = a.astype(wanted, copy=False), b.astype(wanted, copy=False)
    if axes is None:
        return into(out, _native.matmul(a, b), "matmul", casting)
    ranks = [min(a.ndim, 2), min(b.ndim, 2)]
    ranks.append(sum(ranks) - 2)
    entries = _axes_of_cores(axes, ranks)
    product = _native.matmul(*(moveaxis(x, e, _LAST[len(e)]) for x, e in zip((a, b), entries[:2], strict=True)))
    return into(out, moveaxis(product, _LAST[ranks[2]], entries[2]), "matmul", casting)


_LAST = ((), (-1,), (-2, -1))  # the axes of a scalar, of a vector, of a matrix


def _axes_of_cores(axes: Sequence[Any], ranks: Sequence[int]) -> list[tuple[int, ...]]:
    """matmul()'s axes= as tuples of as many axes as each operand and the product have of their own."""
    if not isinstance(axes, (list, tuple)) or len(axes) != 3:
        raise ValueError(f"matmul(): axes is {axes!r}; give a list of three tuples: of x1, of x2 and of the product")
    entries = [tuple(entry) if isinstance(entry, (list, tuple)) else (index(entry),) for entry in axes]
    for entry, rank in zip(entries, ranks, strict=True):
        if len(entry) != rank:
            raise axes_error(f"matmul(): axes is {axes!r}; its tuples must have {', '.join(map(str, ranks))} axes")
    return entries


def _check_target(out: Any, dtype: Any, operation: str) -> None:
    """out= of dot() is written as it is: of the dtype of the product, and dense in C order. Source: NumPy."""
    if isinstance(out, ndarray) and (out.dtype != dtype or not out._flags[0]):
        order = "in C order" if out._flags[0] else "not in C order"
        raise ValueError(
            f"{operation}(): out is {out.dtype}, {order}; it must be {dtype}, in C order. Copy it into place"
        )


def dot(a: ArrayLike, b: ArrayLike, out: ndarray | None = None) -> ndarray:
    """Over the last axis of `a` and the second to last (of a vector: only) axis of `b`, summed products.

    out: of the dtype of the product, in C order; ValueError for another. Source: NumPy.
    """
    if out is None:
        product = _native.matrix_dot(a, b)
        if product is not None:
            return product
    x, y = as_arrays(a, b)
    if out is not None:
        _check_target(out, _native.result_type(x.dtype, y.dtype), "dot")
    if 0 < x.ndim <= 2 and 0 < y.ndim <= 2:
        return _native.matmul(x, y, out)
    if x.ndim == 0 or y.ndim == 0:
        return _native.multiply(x, y, out=out)
    return into(out, tensordot(x, y, ((-1,), (-1 if y.ndim == 1 else -2,))), "dot")


def vdot(a: ArrayLike, b: ArrayLike) -> ndarray:
    """The summed products of the flattened arrays, the first conjugated."""
    x, y = as_arrays(a, b)
    if not x.ndim == y.ndim == 1:
        x, y = x.ravel(), y.ravel()
    if x.size != y.size:
        raise ValueError(f"vdot(): {x.size} and {y.size} elements; they must be equal")
    return _native.vecdot(x, y)


def inner(a: ArrayLike, b: ArrayLike) -> ndarray:
    """Over the last axes of both, summed products, for every pair of rows."""
    x, y = as_arrays(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return _native.multiply(x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        return _native.matmul(x, y.T)
    return tensordot(x, y, ((-1,), (-1,)))


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


def _vecdot(x1: ArrayLike, x2: ArrayLike, axis: SupportsIndex) -> ndarray:
    """vecdot() of other operands than arrays, and along a given axis."""
    a, b = as_arrays(x1, x2)
    low = min(a.ndim, b.ndim)
    position = index(axis)
    if low and not -low <= position < low:
        normalize_axis(position, low, "vecdot")
    if low and position != -1:
        a, b = (moveaxis(x, position, -1) for x in (a, b))
    return _native.vecdot(a, b)


vecdot = _native.vecdot


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
    rows, columns, summed = (prod(e) for e in ([a.shape[x] for x in free_a], [b.shape[x] for x in free_b], extents))
    left = a.transpose([*free_a, *over_a]).reshape((rows, summed))
    right = b.transpose([*over_b, *free_b]).reshape((summed, columns))
    return _native.matmul(left, right).reshape([*(a.shape[x] for x in free_a), *(b.shape[x] for x in free_b)])


def multi_dot(arrays: Sequence[ArrayLike], *, out: ndarray | None = None) -> ndarray:
    """The product of several matrices, in the order of multiplications that costs least.

    The first and the last may be vectors, a row and a column. ValueError for fewer than two arrays, LinAlgError for
    others that are no matrices. Source: NumPy.
    """
    operands = as_arrays(*arrays)
    if len(operands) < 2:
        raise ValueError(f"multi_dot(): {len(operands)} arrays; a product needs two")
    first, last = operands[0].ndim == 1, operands[-1].ndim == 1
    if first:
        operands[0] = operands[0][None, :]
    if last:
        operands[-1] = operands[-1][:, None]
    if any(a.ndim != 2 for a in operands):
        raise linalg_error("multi_dot(): only the first and the last array may be vectors, the others are matrices")
    result = _cheapest_product(operands)
    if first or last:
        result = result[tuple([0] if first else []) + ((Ellipsis, 0) if last else ())]
    return into(out, result, "multi_dot")


def _cheapest_product(operands: list[ndarray]) -> ndarray:
    """Matrix chain: best[i, j] is the least cost of the product of i…j, and where its last multiplication splits it."""
    n = len(operands)
    sizes = [operands[0].shape[0], *[a.shape[1] for a in operands]]
    if n == 3:  # most calls: there are two ways
        (x, y, z), (i, j, k, m) = operands, sizes
        if j * m * (k + i) <= i * k * (j + m):
            return _native.matmul(x, _native.matmul(y, z))
        return _native.matmul(_native.matmul(x, y), z)
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


# --- diagonals ------------------------------------------------------------------------------------------------------


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> ndarray:
    """A view of the diagonals of the last two axes. Source: Array API 2024.12."""
    return _diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> ndarray:
    """The sum of the diagonals of the last two axes. Source: Array API 2024.12."""
    return _diagonal(x, offset, -2, -1).sum(axis=-1, dtype=dtype)
