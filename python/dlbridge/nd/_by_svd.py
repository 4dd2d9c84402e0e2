"""What a singular value decomposition gives on every device: pseudo-inverses and least squares."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._dtypes import kind_of
from dlbridge.nd._manipulation import matrix_transpose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ndarray = _native.ndarray


def adjoint(x: ndarray) -> ndarray:
    """The conjugate transpose of each matrix; of real ones a view."""
    turned = matrix_transpose(x)
    return _native.conjugate(turned) if kind_of(x.dtype) == "c" else turned


def _inverted(s: ndarray, relative: Any) -> tuple[ndarray, ndarray]:
    """(1 / s, or 0 where s is small beside the largest; where it is not)."""
    counts = s > s.max(axis=-1, keepdims=True) * relative
    return _native.where(counts, 1 / _native.where(counts, s, 1).astype(s.dtype), 0).astype(s.dtype), counts


def pseudo_inverse(u: ndarray, s: ndarray, vh: ndarray, relative: Any) -> ndarray:
    """relative: a number, or one for each matrix, with an axis behind it."""
    inverse, _ = _inverted(s, relative)
    return _native.matmul(adjoint(vh), inverse.astype(u.dtype, copy=False)[..., :, None] * adjoint(u))


def least_squares(
    x: ndarray, b: ndarray, u: ndarray, s: ndarray, vh: ndarray, relative: float
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """lstsq() of a matrix and its decomposition, of columns `b`."""
    m, n = x.shape
    inverse, counts = _inverted(s, relative)
    found = _native.matmul(adjoint(vh), inverse.astype(x.dtype, copy=False)[:, None] * _native.matmul(adjoint(u), b))
    rank = counts.sum(axis=-1).astype("int32")
    if m > n and rank.item() == n:
        rest = _native.absolute(b - _native.matmul(x, found))
        residuals = (rest * rest).sum(axis=0)
    else:
        residuals = _native.empty((0,), s.dtype, device=s.device)
    return found, residuals, rank, s
