"""Coefficients of series, from the lowest power up: checked and trimmed."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays
from dlbridge.nd._dtypes import kind_of
from dlbridge.nd._host import inexact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray

__all__ = ["as_series", "trimcoef", "trimseq"]


def as_series(alist: Any, trim: bool = True) -> list[ndarray]:
    """Vectors of one floating dtype: of an array its rows, of a sequence its parts.

    trim: without zeros at their ends. ValueError for bools, more axes, and vectors without elements. Source: NumPy.
    """
    parts = list(alist) if isinstance(alist, ndarray) else as_arrays(*alist)
    vectors = [part.reshape((1,)) if part.ndim == 0 else part for part in parts]
    if not vectors or not all(x.ndim == 1 and x.size and kind_of(x.dtype) != "b" for x in vectors):
        _refuse(vectors)
    if trim:
        vectors = [trimseq(x) for x in vectors]
    dtype = inexact(*vectors)
    return [x.astype(dtype) for x in vectors]


def _refuse(vectors: list[ndarray]) -> None:
    if any(x.ndim != 1 for x in vectors) or not vectors:
        raise ValueError("as_series(): the coefficients have two axes or more; give one vector or several")
    if any(x.size == 0 for x in vectors):
        raise ValueError("as_series(): a vector has no coefficient; give one or more")
    if any(kind_of(x.dtype) == "b" for x in vectors):
        raise ValueError("as_series(): coefficients are bool; give numbers: astype('float64')")


_FEW = 8  # zeros at the end that are looked at one by one


def trimseq(seq: ArrayLike) -> ndarray:
    """A vector without the zeros at its end, at least its first element: a view, or the array itself where there are
    none on the host. The host waits. Source: NumPy."""
    x = as_array(seq)
    if x.ndim != 1:
        if x.ndim == 0:
            raise TypeError("trimseq(): a number has no end; give a vector")
        raise ValueError(f"trimseq(): the shape is {x.shape}; give a vector")
    if isinstance(x, _native.HostArray):
        if x.size and x.item(-1):
            return x
        for end in range(x.size - 1, max(0, x.size - _FEW), -1):
            if x.item(end - 1):
                return x[:end]
    kept = _native.nonzero(x)[0]
    return x[: max(1, int(kept[-1]) + 1 if kept.size else 1)] if x.size else x


def trimcoef(c: ArrayLike, tol: float = 0) -> ndarray:
    """A vector without the coefficients at its end whose size is at most `tol`; one zero of nothing else.

    ValueError for a negative tol. The host waits. Source: NumPy.
    """
    if not tol >= 0:
        raise ValueError(f"trimcoef(): tol is {tol}; it must not be negative")
    (x,) = as_series([as_array(c)], trim=False)
    kept = _native.nonzero(_native.absolute(x) > tol)[0]
    return x[: int(kept[-1]) + 1].copy() if kept.size else x[:1] * 0
