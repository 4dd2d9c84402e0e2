"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from math import inf

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, normalize_axes
from dlbridge.nd._dtypes import float_for, is_inexact
from dlbridge.nd._host import COMPUTED, by_library, computed_in, inexact
from dlbridge.nd._lapack import call, check_matrices, linalg_error
from dlbridge.nd._manipulation import expand_dims, moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis

ndarray = _native.ndarray

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


_MATRIX_ORDS = ("fro", "f", None, 1, -1, inf, -inf, 2, -2, "nuc")
_GIVE = "'fro', 'nuc', 1, -1, 2, -2, inf or -inf"


def _norm_of_singular_values(x: ndarray, ord: Any, axes: tuple[int, int], keepdims: bool, operation: str) -> ndarray:
    values = call("svdvals", moveaxis(x, axes, (-2, -1)), operation=operation)
    largest = "max" if values.size else "sum"  # of nothing: 0
    reduction = "sum" if ord == "nuc" else largest if ord == 2 else "min"
    found = _native.reduce(reduction, values, -1, None, False, None, 0.0)
    return expand_dims(found, axes) if keepdims else found


def _matrix_norm(x: ndarray, ord: Any, axes: tuple[int, int], keepdims: bool, operation: str) -> ndarray:
    if ord in ("fro", "f", None):
        return _native.reduce("norm2", x, axes, None, keepdims, None, 0.0)
    if ord not in _MATRIX_ORDS:
        raise ValueError(f"{operation}(): ord {ord!r} is not a norm of matrices; give {_GIVE}")
    if ord in (2, -2, "nuc"):
        return _norm_of_singular_values(x, ord, axes, keepdims, operation)
    summed, other = axes if abs(ord) == 1 else axes[::-1]
    sums = _native.reduce("norm1", x, summed, None, True, None, 0.0)
    largest = "max" if x.size else "sum"  # of nothing: 0
    found = _native.reduce(largest if ord > 0 else "min", sums, other, None, True, None, 0.0)
    return found if keepdims else found.squeeze(axes)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> ndarray:
    """The norm of the matrices of the last two axes: "fro" (the root of the sum of squares), 1 and -1 (the
    largest and smallest sum of a column), inf and -inf (of a row), or by singular values: 2 and -2 (the largest and
    the smallest), "nuc" (their sum).

    Source: Array API 2024.12.
    """
    a = _inexact(x)
    if a.ndim < 2:
        raise ValueError(f"matrix_norm(): the array has {a.ndim} dimension(s); a matrix has two")
    return _matrix_norm(a, ord, (a.ndim - 2, a.ndim - 1), keepdims, "matrix_norm")


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
    return _matrix_norm(a, ord, (axes[0], axes[1]), keepdims, "norm")


def cond(x: ArrayLike, p: Any = None) -> ndarray:
    """The condition numbers of matrices: the norm `p` of each times that of its inverse, inf where it has none.

    p: None and 2 give the largest singular value over the smallest, -2 the reverse; otherwise an `ord` of
    matrix_norm(), of square matrices.
    Raises LinAlgError for matrices with no element or with nan in them, RuntimeError for CUDA arrays without cuSOLVER.
    Source: NumPy.
    """
    a = as_array(x)
    if p not in _MATRIX_ORDS:
        raise ValueError(f"cond(): p {p!r} is not a norm of matrices; give None, {_GIVE}")
    check_matrices("cond", a, p not in (None, 2, -2))
    if not a.shape[-1] or not a.shape[-2]:
        raise linalg_error(f"cond(): shape {a.shape}; cond is not defined on empty arrays. Leave them out")
    if not isinstance(a, _native.HostArray):
        return _cond(a, p)
    found = _cond(a, p) if inexact(a).name in COMPUTED else None
    return call("cond", a, p=p) if found is None else found


def _cond(x: ndarray, p: Any) -> Any:
    """None for matrices of the host of which one is singular."""
    axes = (x.ndim - 2, x.ndim - 1)
    x = x.astype(computed_in(inexact(x)), copy=False)
    if p not in (None, 2, -2) and not isinstance(x, _native.HostArray):
        from dlbridge.nd._device_linalg import inverse as invert

        found, info = by_library(invert, [x])  # what it holds of singular matrices means nothing
        size = norm(x, p, axes)  # nan where an element is
        ratio = size * norm(found, p, axes)
        singular = _native.logical_or(info.reshape(x.shape[:-2]), _native.isnan(ratio))
        return _native.where(_native.less(_native.isnan(size), singular), inf, ratio)
    if p in (None, 2, -2):
        s = call("svdvals", x, operation="cond")
        ratio = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        inverse = _native.lapack("inv", x)
        if inverse is None:
            return None
        ratio = norm(x, p, axes) * norm(inverse, p, axes)
    if isinstance(ratio, _native.HostArray) and ratio.size == 1 and ratio.item() == ratio.item():
        return ratio
    undefined = _native.logical_and(_native.isnan(ratio), _native.logical_not(_native.isnan(x).any(axis=axes)))
    return _native.where(undefined, inf, ratio)
