"""What _lapack.py has on the host, for matrices on a device: of float32, float64 and the complex dtypes of these.

Small ones are worked off by a kernel of our own where there is one: the libraries' routines take several launches, and
more for what has to be transposed and filled before and after them.
"""

from __future__ import annotations

from array import array

from dlbridge.nd import _native
from dlbridge.nd._by_svd import adjoint, least_squares, pseudo_inverse
from dlbridge.nd._cusolver import (
    FILL,
    GENERIC,
    GESVDJ,
    GESVDJ_BATCHED,
    JACOBI_UP_TO,
    LETTERS,
    MAKE_Q,
    OF_GESVDJ,
    OF_SYEVJ,
    SYEVJ_BATCHED,
    TYPES,
    Failed,
    checked,
    columns_of,
    factored,
    geqrf_batched,
    is_batched,
    new,
    parts,
    pointers_of,
    potrf_batched,
    rows_of,
    solved,
    solver_of,
    stacked,
    succeeded,
    taken,
    turned,
)
from dlbridge.nd._dtypes import kind_of, real_dtype
from dlbridge.nd._grids import tril, triu
from dlbridge.nd._indexing import take_along_axis
from dlbridge.nd._manipulation import matrix_transpose, roll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ndarray = _native.ndarray


def _adjoint_rows(columns: ndarray, kept: tuple[int, ...]) -> ndarray:
    """Their conjugates as rows_of() gives them: of what the library found for transposed matrices."""
    rows = rows_of(columns, kept)
    return _native.conjugate(rows) if kind_of(rows.dtype) == "c" else rows


# Up to how many rows the kernel for small matrices takes less time than the libraries: of few matrices, and of more
# than _MANY; complex ones have half as many. By benchmarks/results/small_matrices-h100-py3.12.md.
PAYS = {"cholesky": (48, 16), "det": (32, 8), "inv": (24, 8), "slogdet": (32, 8), "solve": (48, 16)}
_MANY = 512


def _by_kernel(name: str, x: ndarray, *b: ndarray) -> Any:
    """What the kernel for small matrices gives; None where it is not for these, or not faster."""
    n = x.shape[-1]
    most = PAYS[name][x.size > _MANY * n * n]
    if n > (most // 2 if kind_of(x.dtype) == "c" else most):
        return None
    return _native.small_matrices(name, x, *b)


def _lower_factors(x: ndarray) -> tuple[ndarray, ndarray]:
    factors, dtype = columns_of(x), x.dtype.name  # L takes less than half of U's time, and more than two transpositions
    batch, n, _ = factors.shape
    info = new(x, (batch,), "int32")
    with solver_of(x) as solver:
        if is_batched(batch, n):
            pointers = pointers_of(factors)
            potrf_batched[LETTERS[dtype]](solver.handle, FILL["L"], n, pointers.data_ptr, n, info.data_ptr, batch)
        else:
            kind = TYPES[dtype]
            solver.run("Xpotrf", [(FILL["L"], n, kind, a, n, kind) for a in parts(factors)], info)
    return tril(turned(factors, x.shape[:-2])), info  # in C order, as its mask is


def cholesky(x: ndarray) -> ndarray:
    lower, info = _by_kernel("cholesky", x) or _lower_factors(x)
    checked(info)
    return lower


def inverse(x: ndarray) -> tuple[ndarray, ndarray]:
    """(inverses, info): those of singular matrices hold anything, and their info is not 0."""
    return _by_kernel("inv", x) or _inverse(x)


def _inverse(x: ndarray) -> tuple[ndarray, ndarray]:
    matrices = taken(x)
    found = new(x, matrices.shape)
    pivots, info, pointers = factored(matrices)
    found.fill(0)
    found.reshape((found.shape[0], -1))[:, :: x.shape[-1] + 1] = 1
    solved(matrices, found, pivots, pointers, transposed=False)
    return found.reshape(x.shape), info


def inv(x: ndarray) -> ndarray:
    found, info = inverse(x)
    checked(info)
    return found


def solve(x: ndarray, b: ndarray) -> ndarray:
    found, info = _by_kernel("solve", x, b) or _solutions(x, b)
    checked(info)
    return found


def _solutions(x: ndarray, b: ndarray) -> tuple[ndarray, ndarray]:
    kept = _native.common_shape("solve()", x.shape[:-2], b.shape[:-2])
    matrices = taken(_native.broadcast_to(x, (*kept, *x.shape[-2:])))
    right = columns_of(_native.broadcast_to(b, (*kept, *b.shape[-2:])))
    pivots, info, pointers = factored(matrices)
    solved(matrices, right, pivots, pointers, transposed=True)
    found = right.reshape((*kept, right.shape[2], 1)) if right.shape[1] == 1 else rows_of(right, kept)
    return found, info


def _signed_diagonal(x: ndarray) -> ndarray:
    """The diagonals of U, with the other sign where rows were exchanged: determinants are their products."""
    factors = taken(x)
    pivots, _, _ = factored(factors)
    n = x.shape[-1]
    in_place = new(pivots, (n,))
    _native.range_fill(in_place, 1, 1)
    diagonal = factors.diagonal(0, 1, 2)
    return _native.where(pivots == in_place, diagonal, -diagonal).reshape((*x.shape[:-2], n))


def det(x: ndarray) -> ndarray:
    small = _by_kernel("det", x)
    return _signed_diagonal(x).prod(axis=-1) if small is None else small


def slogdet(x: ndarray) -> tuple[ndarray, ndarray]:
    return _by_kernel("slogdet", x) or _slogdet(x)


def _slogdet(x: ndarray) -> tuple[ndarray, ndarray]:
    diagonal = _signed_diagonal(x)
    size = _native.absolute(diagonal)
    return _native.sign(diagonal).prod(axis=-1), _native.log(size).sum(axis=-1)


_JACOBI_OF_MANY = 48  # rows: up to there 625 real matrices take .44 to .94 of the other routine's time (H200), 8 more
_JACOBI_OF_ONE = 40  # rows: of one matrix of float32 it takes .72 of that time there, of complex64 .90


def _jacobi_up_to(batch: int, dtype: str) -> int:
    """The rows of Hermitian matrices up to which Jacobi's method finds their eigenvalues sooner."""
    if batch >= _MANY and dtype in ("float32", "float64"):
        return _JACOBI_OF_MANY
    return _JACOBI_OF_ONE if batch == 1 and dtype in ("float32", "complex64") else JACOBI_UP_TO


def _hermitian(x: ndarray, UPLO: str, vectors: bool) -> tuple[ndarray, ndarray, ndarray]:
    """(values, conjugate vectors column by column, info) of Hermitian matrices: the transposed one is the conjugate."""
    matrices, dtype = taken(x), x.dtype.name
    batch, n, _ = matrices.shape
    values = new(x, (batch, n), real_dtype(x.dtype))
    info = new(x, (batch,), "int32")
    triangle = FILL["L" if UPLO == "U" else "U"]
    with solver_of(x) as solver:
        if n <= _jacobi_up_to(batch, dtype):
            call = int(vectors), triangle, n, matrices.data_ptr, n, values.data_ptr
            solver.run_of_dtype(SYEVJ_BATCHED, dtype, [call], info, solver.with_one(OF_SYEVJ), batch)
        else:
            kind, kind_of_values = TYPES[dtype], TYPES[values.dtype.name]
            calls = [
                (int(vectors), triangle, n, kind, a, n, kind_of_values, w, kind)
                for a, w in zip(parts(matrices), parts(values), strict=True)
            ]
            if is_batched(batch, n) and GENERIC["XsyevBatched"][1].exists():
                solver.run("XsyevBatched", calls[:1], info, (batch,))
            else:
                solver.run("Xsyevd", calls, info)
    return values.reshape((*x.shape[:-2], n)), matrices, info


def eigh(x: ndarray, UPLO: str = "L") -> tuple[ndarray, ndarray]:
    values, columns, info = _hermitian(x, UPLO, True)
    vectors = _adjoint_rows(columns, x.shape[:-2])
    checked(info)
    return values, vectors


def eigvalsh(x: ndarray, UPLO: str = "L") -> ndarray:
    values, _, info = _hermitian(x, UPLO, False)
    checked(info)
    return values


def _finite(x: ndarray) -> None:
    if not _native.get_current_stream().is_capturing() and not bool(_native.isfinite(x).all()):
        raise Failed


def _general(x: ndarray, vectors: bool) -> tuple[ndarray, ndarray]:
    if not GENERIC["Xgeev"][1].exists():
        raise NotImplementedError(
            "eigenvalues of matrices that are not Hermitian need cuSOLVER of CUDA 12.8 or later on a device. Install "
            "it (pip install nvidia-cusolver), or move the array to the host: x.to_device('cpu')"
        )
    _finite(x)
    columns = columns_of(x)
    batch, n, _ = columns.shape
    # Of real matrices, real and imaginary parts apart; vectors of a conjugate pair are the parts of its first one.
    real = kind_of(x.dtype) == "f"
    values = new(x, (batch, 2, n) if real else (batch, n))
    found = new(x, (batch, n, n) if vectors else (batch, 1, 1))
    kind, info = TYPES[x.dtype.name], new(x, (batch,), "int32")
    calls = [
        (0, int(vectors), n, kind, a, n, kind, w, kind, None, n, kind, v, n, kind)
        for a, w, v in zip(parts(columns), parts(values), parts(found), strict=True)
    ]
    with solver_of(x) as solver:
        solver.run("Xgeev", calls, info)
    checked(info)
    if real:
        imaginary = values[:, 1]
        found = _unpacked(found, imaginary) if vectors else found
        values = _joined(values[:, 0], imaginary)
    return values.reshape((*x.shape[:-2], n)), found


def _joined(real: ndarray, imaginary: ndarray) -> ndarray:
    found = new(real, real.shape, _native.result_type(real.dtype, 1j))
    found.real[...] = real
    found.imag[...] = imaginary
    return found


def _unpacked(columns: ndarray, imaginary: ndarray) -> ndarray:
    """Eigenvectors (batch, N, M) of a real matrix, of which those of conjugate pairs share two columns."""
    first, second = imaginary[..., None] > 0, imaginary[..., None] < 0
    real = _native.where(second, roll(columns, 1, 1), columns)
    other = _native.where(first, roll(columns, -1, 1), _native.where(second, -columns, 0))
    return _joined(real, other.astype(columns.dtype, copy=False))


def eig(x: ndarray) -> tuple[ndarray, ndarray]:
    values, columns = _general(x, True)
    return values, rows_of(columns, x.shape[:-2])


def eigvals(x: ndarray) -> ndarray:
    return _general(x, False)[0]


def qr(x: ndarray, mode: str) -> Any:
    (m, n), kept = x.shape[-2:], x.shape[:-2]
    k = min(m, n)
    columns = columns_of(x)
    batch = columns.shape[0]
    tau, info = new(x, (batch, k)), new(x, (batch,), "int32")
    many = 2 * batch > k  # a step for each column of all matrices, not two calls for each matrix
    with solver_of(x) as solver:
        if many:
            status, matrices, taus = array("i", [0]), pointers_of(columns), pointers_of(tau)
            geqrf_batched[LETTERS[x.dtype.name]](
                solver.cublas, m, n, matrices.data_ptr, m, taus.data_ptr, status, batch
            )
        else:
            kind = TYPES[x.dtype.name]
            calls = [(m, n, kind, a, m, kind, t, kind) for a, t in zip(parts(columns), parts(tau), strict=True)]
            solver.run("Xgeqrf", calls, info)
        if mode == "raw":
            return columns.reshape((*kept, n, m)), tau.reshape((*kept, k))
        wide = m if mode == "complete" and m > n else k
        r = triu(turned(columns[:, :, :wide], kept))
        if mode == "r":
            return r
        if many:
            q = _applied(columns, tau, wide)
        else:
            q = columns[:, :wide]  # which R has been read from
            if wide > n:
                q = new(x, (batch, wide, m))
                q.fill(0)
                q[:, :n] = columns
            of_q = [(m, wide, k, a, m, t) for a, t in zip(parts(q), parts(tau), strict=True)]
            solver.run_of_dtype(MAKE_Q, x.dtype.name, of_q, info)
    return rows_of(q, kept), r


def _applied(columns: ndarray, tau: ndarray, wide: int) -> ndarray:
    """Q (batch, wide, M), column by column, of reflectors that lie below the diagonal of `columns`: all at a time."""
    batch, _, m = columns.shape
    k = tau.shape[1]
    reflectors = triu(columns[:, :k], 1)
    reflectors.reshape((batch, -1))[:, :: m + 1] = 1
    conjugates = _native.conjugate(reflectors) if kind_of(tau.dtype) == "c" else reflectors
    q = new(columns, (batch, wide, m))
    q.fill(0)
    q.reshape((batch, -1))[:, :: m + 1] = 1
    for j in reversed(range(k)):
        part = q[:, j:, j:]
        along = _native.matmul(part, conjugates[:, j, j:, None]) * tau[:, j, None, None]
        part -= along * reflectors[:, j, None, j:]
    return q


def svd(x: ndarray, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        return _svd_of_hermitian(x, compute_uv)
    (m, n), found = x.shape[-2:], None
    if min(m, n) <= JACOBI_UP_TO < max(m, n) and max(m, n) >= 2 * min(m, n) and not (full_matrices and compute_uv):
        found = _svd_of_triangle(x, compute_uv)
    elif max(m, n) <= (_JACOBI_SVD_UP_TO if compute_uv else JACOBI_UP_TO):
        found = _svd_by_jacobi(x, full_matrices, compute_uv)
    if found is not None:
        return found
    _finite(x)
    return _svd_by_rotations(x, full_matrices, compute_uv)


# Rows or columns: beyond, the method that is slower for small ones is no slower. Of values alone it is faster sooner.
_JACOBI_SVD_UP_TO = 1024


def _svd_of_triangle(x: ndarray, compute_uv: bool) -> Any:
    """Of long matrices: that of R, which is small, where x or its adjoint is Q R. None as of _svd_by_jacobi()."""
    wide = x.shape[-2] < x.shape[-1]
    tall = adjoint(x) if wide else x
    if not compute_uv:
        return _svd_by_jacobi(qr(tall, "r"), False, False)
    q, r = qr(tall, "reduced")
    found = _svd_by_jacobi(r, False, True)
    if found is None:
        return None
    u, s, vh = found
    u = _native.matmul(q, u)
    return (adjoint(vh), s, adjoint(u)) if wide else (u, s, vh)


def _svd_by_jacobi(x: ndarray, full_matrices: bool, compute_uv: bool) -> Any:
    """None where a matrix has not converged, or is not finite: then the routine gets zeros, so that nobody has to wait
    for the answer first. The left vectors of the transposed matrix are the right ones of this."""
    (m, n), kept = x.shape[-2:], x.shape[:-2]
    finite = _native.isfinite(x)
    matrices, dtype, k = stacked(_native.where(finite, x, False)), x.dtype.name, min(m, n)
    batch, small = matrices.shape[0], max(m, n) <= JACOBI_UP_TO
    s, info = new(x, (batch, k), real_dtype(x.dtype)), new(x, (batch,), "int32")
    u = new(x, (batch, n if full_matrices or small else k, n))
    v = new(x, (batch, m if full_matrices or small else k, m))
    with solver_of(x) as solver:
        parameters = solver.with_one(OF_GESVDJ)
        if small:
            call = int(compute_uv), n, m, matrices.data_ptr, n, s.data_ptr, u.data_ptr, n, v.data_ptr, m
            solver.run_of_dtype(GESVDJ_BATCHED, dtype, [call], info, parameters, batch)
        else:
            places = zip(parts(matrices), parts(s), parts(u), parts(v), strict=True)
            calls = [
                (int(compute_uv), int(not full_matrices), n, m, a, n, s_, u_, n, v_, m) for a, s_, u_, v_ in places
            ]
            solver.run_of_dtype(GESVDJ, dtype, calls, info, parameters)
    found: Any = s.reshape((*kept, k))
    if compute_uv:
        if not full_matrices and small:
            u, v = u[:, :k].copy("C"), v[:, :k]
        found = _adjoint_rows(v, kept), found, u.reshape((*kept, *u.shape[1:]))
    return found if succeeded(info >= finite.all()) else None


def _svd_by_rotations(x: ndarray, full_matrices: bool, compute_uv: bool) -> Any:
    (m, n), kept = x.shape[-2:], x.shape[:-2]
    wide = m < n  # the routine wants no more columns than rows: the adjoint has them, and is what C order holds
    if wide:
        m, n = n, m
        columns = taken(_native.conjugate(x))
    else:
        columns = columns_of(x)
    batch, kind = columns.shape[0], TYPES[x.dtype.name]
    s = new(x, (batch, n), real_dtype(x.dtype))
    u = new(x, (batch, m if full_matrices else n, m) if compute_uv else (batch, 1, 1))
    v = new(x, (batch, n, n) if compute_uv else (batch, 1, 1))
    jobs = (ord("A" if full_matrices else "S") if compute_uv else ord("N"),) * 2
    info, kind_of_s = new(x, (batch,), "int32"), TYPES[s.dtype.name]
    calls = [
        (*jobs, m, n, kind, a, m, kind_of_s, s_, kind, u_, m, kind, v_, n, kind)
        for a, s_, u_, v_ in zip(parts(columns), parts(s), parts(u), parts(v), strict=True)
    ]
    with solver_of(x) as solver:
        solver.run("Xgesvd", calls, info)
    checked(info)
    values = s.reshape((*kept, n))
    if not compute_uv:
        return values
    if wide:  # U and Vh of the adjoint, adjoint
        left, right = _native.conjugate(v), _native.conjugate(u)
        return left.reshape((*kept, *left.shape[1:])), values, right.reshape((*kept, *right.shape[1:]))
    return rows_of(u, kept), values, rows_of(v, kept)


def _svd_of_hermitian(x: ndarray, compute_uv: bool) -> Any:
    if not compute_uv:
        return _native.sort(_native.absolute(eigvalsh(x)), -1, False, False)[..., ::-1].copy()
    values, vectors = eigh(x)
    size = _native.absolute(values)
    order = size.argsort(axis=-1)[..., ::-1]
    sign = take_along_axis(_native.where(values < 0, -1.0, 1.0).astype(x.dtype), order, -1)
    u = take_along_axis(vectors, order[..., None, :], -1)
    return u, take_along_axis(size, order, -1), _native.conjugate(matrix_transpose(u * sign[..., None, :]))


def pinv(x: ndarray, rcond: ndarray, hermitian: bool) -> ndarray:
    u, s, vh = svd(x, False, True, hermitian)
    return pseudo_inverse(u, s, vh, rcond.astype(s.dtype)[..., None])


def lstsq(x: ndarray, b: ndarray, rcond: float) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    u, s, vh = svd(x, False)
    return least_squares(x, b, u, s, vh, rcond)


FUNCTIONS = {
    function.__name__: function
    for function in (cholesky, det, eig, eigh, eigvals, eigvalsh, inv, lstsq, pinv, qr, slogdet, solve, svd)
}
