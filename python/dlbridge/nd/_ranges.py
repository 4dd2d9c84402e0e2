"""Evenly spaced values."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_operands, count_up, normalize_axis
from dlbridge.nd._dtypes import BY_NAME, iinfo, kind_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import DeviceLike, DTypeLike

ndarray = _native.ndarray
_FLOAT64, _INT64 = BY_NAME["float64"], BY_NAME["int64"]
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float | None = 1,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """Evenly spaced values: start, start + step, … below stop; arange(n) counts from 0.

    int64 for integers, float64 for floats, unless dtype says otherwise: the first two values, truncated to an integer
    dtype, tell the step. ValueError for step 0, OverflowError where they do not fit. Source: Array API 2024.12,
    NumPy.
    """
    if stop is None:
        start, stop = 0, start
    if step is None:
        step = 1
    plain: ndarray | None = _native.arange(start, stop, step, dtype, device)
    if plain is not None:
        return plain
    if dtype is not None and kind_of(resolve(dtype)) == "c":
        return arange(start, stop, step, device=device).astype(dtype)
    start, stop, step = (value if isinstance(value, (int, float)) else _number(value) for value in (start, stop, step))
    if step == 0:
        raise ValueError("arange(): step is 0, so that stop is never reached. Give another step")
    found = _dtype_of_range(start, stop, step) if dtype is None else resolve(dtype)
    kind = kind_of(found)
    n = _length(start, stop, step, exact=kind in "iu")
    if kind not in "iuf":
        if kind == "b" and n > 2:
            raise TypeError(f"arange(): a range of {n} values does not fit in bool. Give another dtype")
        return arange(start, stop, step, device=device).astype(found)
    x = _native.empty((n,), found, device=device)
    if n and kind == "f":
        _native.range_fill(x, float(start), float(step))
    elif n:
        first = _integer(start, found)
        _native.range_fill(x, first, _integer(start + step, found) - first if n > 1 else 0)
    return x


def _number(value: Any) -> Any:
    """A NumPy scalar or a 0-d array as a Python number."""
    number = value.item() if getattr(value, "shape", None) == () else value
    return number if isinstance(number, (int, float, complex)) else index(number)


def _dtype_of_range(*values: float) -> Any:
    """What NumPy makes of Python numbers: int64, but float64 where one is a float or fits in uint64 only."""
    if not all(isinstance(value, int) for value in values):
        return _FLOAT64
    for value in values:
        if not -(2**63) <= value < 2**64:
            raise OverflowError(f"arange(): Python integer {value} is out of bounds for 64 bits. Give floats")
    return _INT64 if max(values) < 2**63 else _FLOAT64


def _integer(value: float, dtype: Any) -> int:
    """The first two values of a range of integers are truncated, and tell the step; NumPy's way."""
    number, limits = int(value), iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise OverflowError(f"arange(): Python integer {number} is out of bounds for {dtype}. Give another dtype")
    return number


def _length(start: Any, stop: Any, step: Any, exact: bool) -> int:
    from math import ceil, isfinite

    if exact and all(isinstance(v, int) for v in (start, stop, step)):
        return max(0, -((start - stop) // step))  # of integers, which hold values that a quotient of floats drops
    quotient = (stop - start) / step
    if not isfinite(quotient):
        raise ValueError(f"arange(): from {start} to {stop} by {step} there is no finite number of values")
    n: int = ceil(quotient)
    return max(0, n)


def linspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike = None,
) -> Any:
    """`num` evenly spaced values from start to stop; endpoint: whether stop is the last one.

    start and stop are scalars, or arrays that broadcast: then the values run along the new `axis` of the result.
    retstep: also return the spacing. ValueError for a negative num. Source: Array API 2024.12, NumPy.
    """
    n = index(num)
    if n < 0:
        raise ValueError(f"linspace(): num is {n}; it is a number of values, 0 or more")
    steps = n - 1 if endpoint else n
    if any(isinstance(end, (list, tuple)) or hasattr(end, "dtype") for end in (start, stop)):
        return _linspace_of_arrays(start, stop, n, steps, endpoint, retstep, dtype, axis)
    made = BY_NAME["complex128"] if isinstance(start, complex) or isinstance(stop, complex) else _FLOAT64
    final = made if dtype is None else resolve(dtype)
    step: Any = (stop - start) / steps if steps > 0 else float("nan")
    if step == 0 and start != stop:  # subnormals: a step between them would round to 0
        x = count_up(n, device, made) / steps * (stop - start) + start
        if endpoint:
            x[-1] = stop
    elif made is _FLOAT64:
        x = _native.empty((n,), final if final.name in _FLOATS else _FLOAT64, device=device)
        if n:
            last = float(stop) if endpoint and n > 1 else None
            _native.range_fill(x, float(start), float(step) if steps > 0 else 0.0, last)
    else:
        x = count_up(n, device, _FLOAT64) * (step if steps > 0 else 0) + start
        if endpoint and n > 1:
            x[-1] = stop
    if x.dtype != final:
        x = _rounded_down(x, final)
    return (x, step) if retstep else x


def _rounded_down(x: ndarray, final: Any) -> ndarray:
    if final.name not in _FLOATS and not final.name.startswith("complex") and final.name != "bool":
        x = _native.floor(x)
    return x.astype(final)


def _linspace_of_arrays(
    start: Any, stop: Any, n: int, steps: int, endpoint: bool, retstep: bool, dtype: DTypeLike | None, axis: int
) -> Any:
    from dlbridge.nd._manipulation import moveaxis

    first, last = (_native.multiply(a, 1.0) for a in as_operands(start, stop))
    difference = last - first
    counts = count_up(n, first.device, _FLOAT64).reshape((n,) + (1,) * difference.ndim)
    step = difference / steps if steps > 0 else difference * float("nan")
    counts = counts.astype(difference.dtype)
    x = counts * (step if steps > 0 else 0)
    if steps > 0:
        x = _native.where(step == 0, counts / steps * difference, x)  # subnormals, as of scalars
    x = x + first
    if endpoint and n > 1:
        x[-1] = last
    if dtype is not None:
        x = _rounded_down(x, resolve(dtype))
    x = moveaxis(x, 0, normalize_axis(axis, x.ndim, "linspace"))
    return (x, step) if retstep else x


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """`num` values from base**start to base**stop whose logarithms are evenly spaced.

    start and stop may be arrays, as for linspace(): then the values run along `axis` of the result. Source: NumPy.
    """
    exponents = linspace(start, stop, num, endpoint, axis=axis, device=device)
    x = _native.power(base, exponents, exponents if isinstance(base, (int, float)) else None)
    return x if dtype is None else x.astype(dtype)


def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """`num` values from start to stop, each a fixed multiple of the one before. ValueError for 0 or mixed signs."""
    import math

    if start == 0 or stop == 0 or (start < 0) != (stop < 0):
        raise ValueError(
            f"geomspace(): from {start} to {stop} there is no geometric sequence; give two of one sign, not 0"
        )
    sign = math.copysign(1.0, start)
    x = logspace(math.log10(abs(start)), math.log10(abs(stop)), num, endpoint, device=device) * sign
    if x.size > 0:
        x[0] = start
        if endpoint and x.size > 1:
            x[-1] = stop
    return x if dtype is None else x.astype(dtype)
