"""Comparisons of whole arrays, and questions about kinds of numbers."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, as_operands, is_scalar
from dlbridge.nd._dtypes import BY_NAME, float_for, is_inexact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray


def isclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """Where |a - b| <= atol + rtol * |b|; infinities are close where equal, NaNs where equal_nan. Source: NumPy."""
    x, y = as_operands(*[float(value) if isinstance(value, int) else value for value in (a, b)])
    found = _native.isclose_at_once(x, y, rtol, atol, bool(equal_nan))
    if found is not None:
        return found
    if not is_inexact(x) or not is_inexact(y):
        x, y = (v if is_inexact(v) else v.astype(float_for(v.dtype)) for v in (x, y))
        return isclose(x, y, rtol, atol, equal_nan)
    near = _native.absolute(x - y) <= atol + rtol * _native.absolute(y)
    close: ndarray = (near & _native.isfinite(y)) | (x == y)
    if equal_nan:
        close |= _native.isnan(x) & _native.isnan(y)
    return close


def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """Whether isclose() holds everywhere, as a 0-d array: only taking bool() of it waits. Source: CuPy."""
    return isclose(a, b, rtol, atol, equal_nan).all()


def _bool_array(value: bool, like: ndarray) -> ndarray:
    return (_native.ones if value else _native.zeros)((), BY_NAME["bool"], device=like.device)


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> ndarray:
    """Whether two arrays have one shape and equal elements, as a 0-d array: only taking bool() of it waits."""
    x, y = as_arrays(a1, a2)
    if x.shape != y.shape:
        return _bool_array(False, x)
    if x is y and not is_inexact(x):
        return _bool_array(True, x)
    same: ndarray = x == y
    if equal_nan and is_inexact(x) and is_inexact(y):
        same |= _native.isnan(x) & _native.isnan(y)
    return same.all()


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> ndarray:
    """Whether two arrays broadcast to one shape and have equal elements then, as a 0-d array."""
    x, y = as_arrays(a1, a2)
    if any(n != m and 1 not in (n, m) for n, m in zip(reversed(x.shape), reversed(y.shape), strict=False)):
        return _bool_array(False, x)
    return (x == y).all()


def isscalar(element: Any) -> bool:
    """Whether it is a Python or NumPy scalar; a 0-d array is not one."""
    return is_scalar(element) or isinstance(element, (str, bytes))


iscomplexobj, isrealobj = _native.iscomplexobj, _native.isrealobj


def _imaginary_is_zero(a: ndarray, wanted: bool) -> ndarray:
    """Where it is, or is not."""
    if a.dtype.kind == "c":
        imaginary = a.imag
        return imaginary == 0 if wanted else imaginary != 0
    return (_native.ones if wanted else _native.zeros)(a.shape, BY_NAME["bool"], device=a.device)


def iscomplex(x: ArrayLike) -> ndarray:
    """Where the imaginary part is not zero."""
    return _imaginary_is_zero(as_array(x), False)


def isreal(x: ArrayLike) -> ndarray:
    """Where the imaginary part is zero."""
    return _imaginary_is_zero(as_array(x), True)


def isfortran(a: ndarray) -> bool:
    """Whether the array is dense in Fortran order and not in C order."""
    flags = a.flags
    return flags.f_contiguous and not flags.c_contiguous


_MOST_WORK = 10**7  # trials, about a tenth of a second


def shares_memory(a: ArrayLike, b: ArrayLike, max_work: int | None = None) -> bool:
    """Whether two arrays have an element in common, exactly: x[::2] and x[1::2] have none.

    max_work: how many positions are tried for it, ten million by default (real arrays need a few). RuntimeError where
    they do not tell; may_share_memory() compares the ranges of addresses alone. Source: NumPy.
    """
    trials = _MOST_WORK if max_work is None else index(max_work)
    found = _native.shares_memory(as_array(a), as_array(b), trials)
    if found is None:
        raise RuntimeError(
            f"shares_memory(): {trials} trials do not tell whether strides this involved meet. Give a larger "
            "max_work, or use may_share_memory()"
        )
    return found


def may_share_memory(a: ArrayLike, b: ArrayLike, max_work: int | None = None) -> bool:
    """Whether two arrays may have an element in common: whether the ranges of their addresses overlap.

    max_work: how many positions are tried to find out exactly, none by default. Source: NumPy.
    """
    return _native.shares_memory(as_array(a), as_array(b), 0 if max_work is None else index(max_work)) is not False
