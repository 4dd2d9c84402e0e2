"""Comparisons of whole arrays, and questions about kinds of numbers."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, is_scalar
from dlbridge.nd._dtypes import BY_NAME, float_for, is_inexact, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray


def isclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """Where |a - b| <= atol + rtol * |b|; infinities are close where equal, NaNs where equal_nan. Source: NumPy."""
    x, y = as_arrays(a, b)
    if not is_inexact(y):
        y = y.astype(float_for(y.dtype))
    if not is_inexact(x):
        x = x.astype(float_for(x.dtype))
    near = _native.absolute(x - y) <= atol + rtol * _native.absolute(y)
    close: ndarray = _native.where(_native.isfinite(y), near, x == y)
    if equal_nan:
        close |= _native.isnan(x) & _native.isnan(y)
    return close


def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """Whether isclose() holds everywhere, as an array of no dimension: only bool() of it waits. Source: CuPy."""
    return isclose(a, b, rtol, atol, equal_nan).all()


def _bool_array(value: bool, like: ndarray) -> ndarray:
    return _native.array(value, BY_NAME["bool"], device=like.device)


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> ndarray:
    """Whether two arrays have one shape and equal elements, as an array of no dimension: only bool() of it waits."""
    x, y = as_arrays(a1, a2)
    if x.shape != y.shape:
        return _bool_array(False, x)
    same: ndarray = x == y
    if equal_nan and is_inexact(x) and is_inexact(y):
        same |= _native.isnan(x) & _native.isnan(y)
    return same.all()


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> ndarray:
    """Whether two arrays broadcast to one shape and have equal elements then, as an array of no dimension."""
    x, y = as_arrays(a1, a2)
    if any(n != m and 1 not in (n, m) for n, m in zip(reversed(x.shape), reversed(y.shape), strict=False)):
        return _bool_array(False, x)
    return (x == y).all()


def isscalar(element: Any) -> bool:
    """Whether it is a Python or NumPy scalar; an array of no dimension is none."""
    return is_scalar(element) or isinstance(element, (str, bytes))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return kind_of(as_array(x).dtype) == "c"


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def iscomplex(x: ArrayLike) -> ndarray:
    """Where the imaginary part is not zero."""
    return as_array(x).imag != 0


def isreal(x: ArrayLike) -> ndarray:
    """Where the imaginary part is zero."""
    return as_array(x).imag == 0


def isfortran(a: ndarray) -> bool:
    """Whether the array is dense in Fortran order and not in C order."""
    c_contiguous, f_contiguous, *_ = a._flags
    return bool(f_contiguous and not c_contiguous)


def shares_memory(a: ndarray, b: ndarray, max_work: Any = None) -> bool:
    """Whether two arrays have an element in common; decided by the ranges of their addresses and strides."""
    return _native.shares_memory(as_array(a), as_array(b))


may_share_memory = shares_memory
