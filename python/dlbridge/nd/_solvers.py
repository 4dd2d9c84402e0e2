"""Linear equations and inverses: by LAPACK on the host, on CUDA devices by cuSOLVER, cuBLAS and a kernel of our own."""

from __future__ import annotations

from math import prod
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, normalize_axes
from dlbridge.nd._by_svd import pseudo_inverse
from dlbridge.nd._decompositions import default_rtol
from dlbridge.nd._host import COMPUTED
from dlbridge.nd._lapack import call, check_matrices, linalg_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray


def inv(a: ArrayLike) -> ndarray:
    """The inverses of square matrices.

    LinAlgError where a matrix is singular or not square, RuntimeError for large CUDA arrays without cuSOLVER. Source:
    Array API 2024.12, NumPy.
    """
    return call("inv", a)


def solve(a: ArrayLike, b: ArrayLike) -> ndarray:
    """The x for which a @ x is b: of a vector `b` (M,), or of matrices (..., M, K); what is stacked broadcasts.

    LinAlgError where a matrix is singular or not square, ValueError where the shapes do not fit, RuntimeError for large
    CUDA arrays without cuSOLVER. Source: Array API 2024.12, NumPy 2.
    """
    x, y = as_arrays(a, b)
    check_matrices("solve", x)
    columns = y[:, None] if y.ndim == 1 else y
    if y.ndim == 0 or columns.shape[-2] != x.shape[-1]:
        raise ValueError(
            f"solve(): b of shape {y.shape} does not fit matrices of shape {x.shape}; it must be ({x.shape[-1]},) or "
            f"(..., {x.shape[-1]}, K)"
        )
    _native.common_shape("solve()", x.shape[:-2], columns.shape[:-2])
    if columns.ndim < x.ndim:  # NumPy 1 takes one dimension less for stacked vectors
        columns = columns.reshape((1,) * (x.ndim - columns.ndim) + columns.shape)
    found: ndarray = call("solve", x, columns)
    return found[..., 0] if y.ndim == 1 else found


def _is_exact(x: ndarray) -> bool:
    """Whether the host computes it in the dtype that it has."""
    return isinstance(x, _native.HostArray) and x.dtype.name in COMPUTED


def _is_number(bound: Any) -> bool:
    return isinstance(bound, (int, float)) and bound >= 0


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """The x for which the norm of b - a @ x is least, as (x, residuals, rank, singular values) of one matrix (M, N).

    b: (M,) or (M, K). residuals: the squared norms, of shape (0,) where the rank is below N or M is not above N.
    rcond: singular values below it times the largest count as 0; max(M, N) times the eps of the dtype by default.
    Raises LinAlgError for other shapes and for nan or inf, RuntimeError for CUDA arrays without cuSOLVER. Source:
    NumPy.
    """
    x, y = as_arrays(a, b)
    if x.ndim == 2 and (y.ndim not in (1, 2) or x.shape[0] != y.shape[0]):
        raise linalg_error(
            f"lstsq(): b of shape {y.shape} does not fit a matrix of shape {x.shape}; it must have as many rows, and "
            "one or two dimensions"
        )
    bound = default_rtol(x) if rcond is None and x.ndim == 2 else rcond
    if x.ndim == 2 and y.ndim == 1:
        found, *others = call("lstsq", x, y[:, None], rcond=bound)
        return found.reshape(-1), *others
    return call("lstsq", x, y, rcond=bound)


def pinv(a: ArrayLike, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> ndarray:
    """The pseudo-inverses of matrices (..., M, N), of shape (..., N, M): inverses of what a matrix does not send to 0.

    rcond: singular values below it times the largest count as 0; a number, or one for each matrix; `rtol` by default.
    hermitian: the matrices are, which is faster.
    rtol: the same as `rcond`; max(M, N) times the eps of the dtype by default.
    Raises ValueError for both, LinAlgError for fewer than two dimensions and for nan or inf, RuntimeError for CUDA
    arrays without cuSOLVER. Source: Array API 2024.12; NumPy's default is 1e-15.
    """
    x = as_array(a)
    check_matrices("pinv", x, hermitian)
    if rcond is not None and rtol is not None:
        raise ValueError("pinv(): rcond and rtol are both given; give one of them")
    given = rtol if rcond is None else rcond
    if given is None:
        given = default_rtol(x)
    if not hermitian and x.size and _is_exact(x) and _is_number(given):
        u, s, vh = call("svd", x, operation="pinv", full_matrices=False)
        return pseudo_inverse(u, s, vh, given)
    bound = as_array(given, x)
    on_host = isinstance(x, _native.HostArray) or x.size == 0
    return call("pinv", x, rcond=bound.get() if on_host else bound, hermitian=hermitian)


def matrix_power(a: ArrayLike, n: int) -> ndarray:
    """The product of a square matrix with itself, n times; n 0 is the identity, a negative n a power of the inverse.

    LinAlgError where a matrix is not square, or n is negative and it is singular; RuntimeError for large CUDA arrays
    without cuSOLVER and negative n. Source: Array API 2024.12, NumPy.
    """
    from dlbridge.nd._grids import eye

    x = as_array(a)
    times = index(n)
    check_matrices("matrix_power", x)
    if times < 0:
        x, times = call("inv", x, operation="matrix_power"), -times
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


def tensorinv(a: ArrayLike, ind: int = 2) -> ndarray:
    """The inverse under tensordot(inverse, a, ind): the first `ind` axes and the others are rows and columns.

    ValueError for ind below 1, LinAlgError where these are not equally many or the matrix is singular,
    RuntimeError for large CUDA arrays without cuSOLVER. Source: NumPy.
    """
    x, split = as_array(a), index(ind)
    if split < 1:
        raise ValueError(f"tensorinv(): ind is {ind}; it must be 1 or more")
    front, back = x.shape[:split], x.shape[split:]
    matrix = x.reshape((prod(front), prod(back)))
    return call("inv", matrix, operation="tensorinv").reshape((*back, *front))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> ndarray:
    """The x for which tensordot(a, x, x.ndim) is b: the first axes of `a` are those of `b`, the others those of x.

    axes: those of `a` that are moved to its end first. LinAlgError where a is no square matrix of these axes or is
    singular, RuntimeError for large CUDA arrays without cuSOLVER. Source: NumPy.
    """
    x, y = as_arrays(a, b)
    if axes is not None:
        last = normalize_axes(axes, x.ndim, "tensorsolve")
        x = x.transpose([*(axis for axis in range(x.ndim) if axis not in last), *last])
    back = x.shape[y.ndim :]
    n = prod(back)
    if x.size != n * n or y.size != n:
        raise linalg_error(
            f"tensorsolve(): a of shape {x.shape} is not square for b of shape {y.shape}: its first {y.ndim} axes and "
            "the others must have as many elements"
        )
    found: ndarray = call("solve", x.reshape((n, n)), y.reshape((n, 1)), operation="tensorsolve")
    return found.reshape(back)
