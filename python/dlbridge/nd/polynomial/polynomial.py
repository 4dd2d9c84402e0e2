"""Matrices of power series, whose coefficients stand from the lowest power up."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array
from dlbridge.nd._dtypes import is_inexact
from dlbridge.nd._grids import eye
from dlbridge.nd._joining import stack
from dlbridge.nd._manipulation import moveaxis
from dlbridge.nd.polynomial.polyutils import as_series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray

__all__ = ["polycompanion", "polyvander"]


def polyvander(x: ArrayLike, deg: int) -> ndarray:
    """The powers from 0 to `deg` of points, along a new last axis. Source: NumPy."""
    points = as_array(x)
    if index(deg) < 0:
        raise ValueError(f"polyvander(): deg is {deg}; give 0 or more")
    points = points if is_inexact(points) else points.astype("float64")
    points = points.reshape((1,)) if points.ndim == 0 else points
    powers = [_native.add(_native.multiply(points, 0), 1)]
    for _ in range(index(deg)):
        powers.append(powers[-1] * points)
    return moveaxis(stack(powers), 0, -1)  # laid out as NumPy does it


def polycompanion(c: ArrayLike) -> ndarray:
    """The companion matrix of a series, whose eigenvalues are its roots. ValueError below degree 1. Source: NumPy."""
    (series,) = as_series([as_array(c)])
    if series.size < 2:
        raise ValueError("polycompanion(): the series has one coefficient; give two coefficients or more")
    n = series.size - 1
    matrix = eye(n, k=-1, dtype=series.dtype, device=series.device)
    matrix[:, -1] -= series[:-1] / series[-1:]
    return matrix
