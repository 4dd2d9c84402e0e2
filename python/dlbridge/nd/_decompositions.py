"""Decompositions of matrices, and what is read off them: by LAPACK on the host, by cuSOLVER on CUDA devices."""

from __future__ import annotations

from functools import cache

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array
from dlbridge.nd._by_svd import adjoint
from dlbridge.nd._dtypes import finfo
from dlbridge.nd._host import computed_in, inexact
from dlbridge.nd._lapack import call, check_matrices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike
    from dlbridge.nd._lapack import EighResult, EigResult, SlogdetResult

ndarray = _native.ndarray


def cholesky(a: ArrayLike, /, *, upper: bool = False) -> ndarray:
    """The lower triangular L of matrices that are L times its conjugate transpose; only their lower triangle is read.

    upper: give the upper triangular one, that of the upper triangle.
    Raises LinAlgError where a matrix is not square or not positive definite, RuntimeError for large CUDA arrays without
    cuSOLVER. Source: Array API 2024.12, NumPy.
    """
    x = as_array(a)
    if not upper:
        return call("cholesky", x)
    check_matrices("cholesky", x)
    return adjoint(call("cholesky", adjoint(x)))


def det(a: ArrayLike) -> ndarray:
    """The determinants of square matrices. LinAlgError for others, RuntimeError for large CUDA arrays without cuSOLVER.

    Source: Array API 2024.12, NumPy.
    """
    return call("det", a)


def slogdet(a: ArrayLike) -> SlogdetResult:
    """The determinants of square matrices as (sign, logabsdet): sign times exp(logabsdet), without overflow.

    The sign of a complex one has the absolute value 1; of a singular matrix it is 0, and logabsdet -inf. Errors as for
    det(). Source: Array API 2024.12, NumPy.
    """
    return call("slogdet", a)


def eig(a: ArrayLike) -> EigResult:
    """(eigenvalues, eigenvectors) of square matrices, complex, in no order; eigenvectors are columns.

    Raises LinAlgError where a matrix is not square or not finite, RuntimeError for CUDA arrays without cuSOLVER.
    Source: Array API 2025.12; NumPy's are real where all eigenvalues are.
    """
    return call("eig", a)


def eigvals(a: ArrayLike) -> ndarray:
    """The eigenvalues of square matrices, complex, in no order. Errors as for eig(). Source: Array API 2025.12."""
    return call("eigvals", a)


def _triangle(operation: str, uplo: Any) -> str:
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise ValueError(f"{operation}(): UPLO is {uplo!r}; give 'L' for the lower triangle or 'U' for the upper one")
    return uplo.upper()


def eigh(a: ArrayLike, UPLO: str = "L") -> EighResult:
    """(eigenvalues, eigenvectors) of symmetric or Hermitian matrices: real, ascending; eigenvectors are columns.

    UPLO: the triangle that is read, "L" or "U".
    Raises LinAlgError where a matrix is not square, RuntimeError for CUDA arrays without cuSOLVER. Source: Array API
    2024.12, NumPy.
    """
    return call("eigh", a, UPLO=_triangle("eigh", UPLO))


def eigvalsh(a: ArrayLike, UPLO: str = "L") -> ndarray:
    """The eigenvalues of symmetric or Hermitian matrices: real, ascending. Arguments and errors as for eigh()."""
    return call("eigvalsh", a, UPLO=_triangle("eigvalsh", UPLO))


def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """(Q, R) of matrices (..., M, N): Q with orthonormal columns, R upper triangular, Q @ R the matrix; K = min(M, N).

    mode: "reduced" gives Q (..., M, K) and R (..., K, N), "complete" (..., M, M) and (..., M, N), "r" R alone, "raw"
    LAPACK's reflectors (h, tau).
    Raises ValueError for another mode, LinAlgError for fewer than two dimensions, RuntimeError for CUDA arrays without
    cuSOLVER. Source: Array API 2024.12, NumPy.
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"qr(): mode is {mode!r}; give 'reduced', 'complete', 'r' or 'raw'")
    found = call("qr", a, mode=mode)
    return tuple(found) if mode == "raw" else found


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """(U, S, Vh) of matrices (..., M, N): singular values S, descending, and U @ diag(S) @ Vh the matrix.

    full_matrices: U (..., M, M) and Vh (..., N, N) rather than (..., M, K) and (..., K, N) with K = min(M, N).
    compute_uv: False gives S alone.
    hermitian: the matrices are, which is faster.
    Raises LinAlgError for fewer than two dimensions and for nan or inf, RuntimeError for CUDA arrays without cuSOLVER.
    Source: Array API 2024.12, NumPy.
    """
    if hermitian:
        check_matrices("svd", as_array(a))
    return call("svd", a, full_matrices=full_matrices, compute_uv=compute_uv, hermitian=hermitian)


def svdvals(x: ArrayLike, /) -> ndarray:
    """The singular values of matrices, descending. Errors as for svd(). Source: Array API 2024.12."""
    return call("svdvals", x)


def matrix_rank(A: ArrayLike, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> ndarray:
    """How many singular values of each matrix exceed `tol`, as int64; of a vector, whether it has any nonzero element.

    tol: a number, or one for each matrix; `rtol` times the largest singular value by default.
    hermitian: the matrices are, and their eigenvalues serve.
    rtol: likewise; max(M, N) times the eps of the dtype by default.
    Raises ValueError for both tolerances, LinAlgError for nan or inf, RuntimeError for CUDA arrays without cuSOLVER.
    Source: Array API 2024.12, NumPy.
    """
    x = as_array(A)
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank(): tol and rtol are both given; give one of them")
    if x.ndim < 2:
        return (x != 0).any().astype("int64")
    wide = x.astype(computed_in(inexact(x)), copy=False)
    if hermitian:
        values = _native.absolute(call("eigvalsh", wide, operation="matrix_rank"))
    else:
        values = call("svdvals", wide, operation="matrix_rank")
    if values.shape[-1] == 0:
        return _native.reduce("sum", values, -1, "int64", False, None, 0.0)
    if tol is not None:
        bound = as_array(tol, x)[..., None]
    else:
        relative = default_rtol(wide) if rtol is None else as_array(rtol, x)[..., None]
        bound = values.max(axis=-1, keepdims=True) * relative
    return (values > bound).sum(axis=-1)


def default_rtol(x: ndarray) -> float:
    """The size, beside the largest, of singular values that stand for 0. Source: Array API 2024.12."""
    return max(x.shape[-2:]) * _eps(computed_in(inexact(x)).name)


@cache  # what finfo() says of a dtype takes ten microseconds
def _eps(dtype: str) -> float:
    return finfo(dtype).eps
