"""Functions that are lines between points: their values, and the areas below them."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays
from dlbridge.nd._compiled import compiled
from dlbridge.nd._dtypes import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray


def _in_one_period(at: ndarray, knots: ndarray, values: ndarray, period: float) -> tuple[ndarray, ndarray, ndarray]:
    """The operands of interp() modulo a period, with the last knot before the first one and that behind the last."""
    from dlbridge.nd._joining import concatenate

    if not period > 0:
        raise ValueError(f"interp(): period is {period}; it must not be 0")
    at, knots = _native.remainder(at, period), _native.remainder(knots, period)
    order = _native.argsort(knots, 0, False, True)
    knots, values = _native.take(knots, order, 0), _native.take(values, order, 0)
    knots = concatenate([knots[-1:] - period, knots, knots[:1] + period])
    return at, knots, concatenate([values[-1:], values, values[:1]])


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> ndarray:
    """The piecewise linear function through the points (xp, fp), xp increasing, at `x`; constant outside.

    period: the function repeats with it; `left` and `right` have no effect, and xp may have any order. Source: NumPy.
    """
    if period is None:
        found = _native.interpolate_on_host(x, xp, fp, left, right)
        if found is not None:
            return found
    at, knots, values = as_arrays(x, xp, fp)
    if knots.ndim != 1 or knots.shape != values.shape or knots.size == 0:
        raise ValueError(
            f"interp(): xp of shape {knots.shape} and fp of {values.shape}; give two vectors of one length > 0"
        )
    at, knots = at.astype("float64", copy=False), knots.astype("float64", copy=False)
    if period is not None:
        at, knots, values = _in_one_period(at, knots, values, abs(period))
        left = right = None
    values = values.astype("complex128" if kind_of(values.dtype) == "c" else "float64", copy=False)
    found = _native.interpolate_on_host(at, knots, values, left, right)
    if found is not None:
        return found
    below, above = values[0] if left is None else left, values[-1] if right is None else right
    bounds = knots[0], knots[-1], values[-1], below, above
    if knots.size == 1:
        return _bounded(at, _native.where(at == at, values[0], at), *bounds)
    from dlbridge.nd._searching import searchsorted

    low = _native.clip(searchsorted(knots, at, "right") - 1, 0, knots.size - 2)
    ends = _native.take(knots, low, 0), _native.take(knots, low + 1, 0)
    y0, y1 = _native.take(values, low, 0), _native.take(values, low + 1, 0)
    if kind_of(values.dtype) != "c":
        return _interpolated(at, *ends, y0, y1, *bounds)
    inner = _native.empty(at.shape, values.dtype, device=at.device)
    inner.real = _between(at, *ends, y0.real, y1.real)  # an infinite part leaves the other as it is
    inner.imag = _between(at, *ends, y0.imag, y1.imag)
    return _bounded(at, _native.where(_native.isnan(at), at, inner), *bounds)


def _between(at: ndarray, x0: ndarray, x1: ndarray, y0: ndarray, y1: ndarray) -> ndarray:
    """On the lines from (x0, y0) to (x1, y1)."""
    slope = (y1 - y0) / (x1 - x0)
    inner = slope * (at - x0) + y0
    # Beside infinities: from the other end, a level line, the knot itself.
    inner = _native.where(_native.isnan(inner), slope * (at - x1) + y1, inner)
    inner = _native.where(_native.isnan(inner) & (y0 == y1), y0, inner)
    return _native.where(at == x0, y0, inner)


def _bounded(at: ndarray, inner: ndarray, first: ndarray, last: ndarray, top: ndarray, below: Any, above: Any) -> Any:
    inner = _native.where(at == last, top, inner)
    inner = _native.where(at < first, below, inner)
    return _native.where(at > last, above, inner)


@compiled
def _interpolated(at: ndarray, x0: ndarray, x1: ndarray, y0: ndarray, y1: ndarray, *bounds: Any) -> ndarray:
    inner = _native.where(_native.isnan(at), at, _between(at, x0, x1, y0, y1))
    return _bounded(at, inner, *bounds)


_diff = _native.late("_statistics", "diff")


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: float = 1.0, axis: int = -1) -> ndarray:
    """The integral along an axis by the trapezoidal rule, at the points `x` or spaced by dx."""
    y = as_array(y)
    spacing: Any = dx
    moved = y.swapaxes(axis, -1)
    if x is not None:
        points = as_array(x, y)
        spacing = _diff(points if points.ndim == 1 else points.swapaxes(axis, -1))
    areas: ndarray = (moved[..., 1:] + moved[..., :-1]) * (spacing / 2.0)
    return areas.sum(axis=-1)
