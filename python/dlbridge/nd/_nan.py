"""Reductions that leave NaN out."""

from __future__ import annotations

from math import prod

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, into, normalize_axis
from dlbridge.nd._compiled import reduction
from dlbridge.nd._dtypes import is_inexact, kind_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis, DTypeLike

ndarray = _native.ndarray


# --- on a device: one pass each, of real numbers that are few -------------------------------------------------------

_FEW = 1 << 20  # elements, of which launches take most of the time
_COPIED = 4096  # places: 32 KiB, for which a copy takes no longer than for one

_MOMENT = """
template <class V> struct Moment { V sum; long long count; };
template <class V> DLBRIDGE_FN Moment<V> moment_of(V x, V y) { return x == x ? Moment<V>{y, 1} : Moment<V>{V(0), 0}; }
"""
_JOINED_MOMENTS = "Moment<V>{a.sum + b.sum, a.count + b.count}"
_EXTREME = """
struct Extreme { V value; long long at; };
DLBRIDGE_FN Extreme extreme_of(V x, long long i) { return x == x ? Extreme{x, i} : Extreme{V(0), -1}; }
DLBRIDGE_FN Extreme extreme_join(const Extreme& a, const Extreme& b) {
  if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
  if (a.value == b.value) return a.at < b.at ? a : b;
  return b.value > a.value ? b : a;
}
"""
_VALUES = {"float16": "float", "bfloat16": "float", "float32": "float", "float64": "double"}


def _reductions(value: str) -> dict[str, Any]:
    """Those that compute in one C++ type. means: of the elements; variances: from their means, with ddof; argmax and
    argmin: the position along an axis, whose elements are `inner` others apart, or -1."""
    moment = {"reduce_type": "Moment<V>", "preamble": f"typedef {value} V;{_MOMENT}"}
    extreme = {"reduce_type": "Extreme", "preamble": f"typedef {value} V;{_EXTREME}"}

    def arg_extreme(sign: str, name: str) -> Any:
        return reduction(
            "T x, int64 inner", "int64 y", f"extreme_of({sign}V(x), i)", "extreme_join(a, b)",
            "y = a.at < 0 ? -1 : a.at / inner % n", "Extreme{V(0), -1}", f"{name}_{value}", **extreme
        )  # fmt: skip

    return {
        "means": reduction(
            "T x", "T y", "moment_of(V(x), V(x))", _JOINED_MOMENTS, "y = T(a.sum / V(a.count))", "Moment<V>{V(0), 0}",
            f"nanmean_{value}", **moment
        ),
        "variances": reduction(
            "T x, T c, float64 ddof", "T y", "moment_of(V(x), (V(x) - V(c)) * (V(x) - V(c)))", _JOINED_MOMENTS,
            "y = T(double(a.count) > ddof ? a.sum / V(double(a.count) - ddof) : V(0) / V(0))", "Moment<V>{V(0), 0}",
            f"nanvar_{value}", **moment
        ),
        "argmax": arg_extreme("", "nanargmax"),
        "argmin": arg_extreme("-", "nanargmin"),
    }  # fmt: skip


_REDUCTIONS = {value: _reductions(value) for value in ("float", "double")}


def _in_one_pass(name: str, a: ndarray, *args: Any, axis: Axis, keepdims: bool) -> ndarray | None:
    """What one of the reductions gives; None where the steps are to be taken."""
    value = _VALUES.get(a.dtype.name)
    if value is None or not isinstance(a, _native.CudaArray) or not 0 < a.size <= _FEW:
        return None
    found: ndarray | None = _REDUCTIONS[value][name](a, *args, axis=axis, keepdims=keepdims)
    return found


# --- the functions ----------------------------------------------------------------------------------------------------


def _replaced(a: ndarray, value: Any) -> ndarray:
    if not is_inexact(a):
        return a
    found = _native.replace_nan(a, value)
    return _native.where(_native.isnan(a), value, a) if found is None else found


def nansum(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """sum() with NaN counted as 0."""
    return _replaced(as_array(a), 0).sum(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def nanprod(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """prod() with NaN counted as 1."""
    return _replaced(as_array(a), 1).prod(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def nancumsum(
    a: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """cumsum() with NaN counted as 0."""
    return _replaced(as_array(a), 0).cumsum(axis=axis, dtype=dtype, out=out)


def nancumprod(
    a: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """cumprod() with NaN counted as 1."""
    return _replaced(as_array(a), 1).cumprod(axis=axis, dtype=dtype, out=out)


def _extreme(a: ArrayLike, name: str, worst: float, axis: Axis, out: ndarray | None, keepdims: bool) -> ndarray:
    a = as_array(a)
    if not is_inexact(a):
        return _native.reduce(name, a, axis, None, keepdims, out, 0.0)
    if isinstance(a, _native.HostArray) and a.size:  # an extreme is NaN where one of the elements is: often none
        found = _native.reduce(name, a, axis, None, keepdims, None, 0.0)
        if not _native.isnan(found).any():
            return into(out, found, f"nan{name}")
    found = _native.reduce(name, _replaced(a, worst), axis, None, keepdims, None, 0.0)
    missing = _native.isnan(a)
    return into(out, _native.where(missing.all(axis=axis, keepdims=keepdims), float("nan"), found), f"nan{name}")


def nanmax(a: ArrayLike, /, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """max() of what is not NaN; NaN where there is nothing else."""
    return _extreme(a, "max", float("-inf"), axis, out, keepdims)


def nanmin(a: ArrayLike, /, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """min() of what is not NaN; NaN where there is nothing else."""
    return _extreme(a, "min", float("inf"), axis, out, keepdims)


def _arg_extreme(
    a: ArrayLike, name: str, worst: float, axis: int | None, keepdims: bool, out: ndarray | None
) -> ndarray:
    a = as_array(a)
    if not is_inexact(a):
        return _native.reduce(name, a, axis, None, keepdims, out, 0.0)
    inner = 1 if axis is None else prod(a.shape[normalize_axis(axis, a.ndim, f"nan{name}") + 1 :])
    found = _in_one_pass(name, a, inner, axis=axis, keepdims=keepdims)
    if found is not None:
        # Few are copied as they are: no kernel has to find the least of them first.
        if int((found.to_device("cpu") if found.size <= _COPIED else found).min()) < 0:
            _refuse(name, axis)
        return into(out, found, f"nan{name}")
    # A NaN must not win against an infinity that stands behind it: those that are no candidates come last.
    candidates = a == _native.reduce(name[3:], _replaced(a, worst), axis, None, True, None, 0.0)
    if not bool(candidates.any(axis=axis).all()):
        _refuse(name, axis)
    return _native.reduce("argmax", candidates, axis, None, keepdims, out, 0.0)


def _refuse(name: str, axis: int | None) -> None:
    raise ValueError(f"nan{name}(): a slice along axis {axis} is all NaN and has no extreme")


def nanargmax(
    a: ArrayLike, /, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False
) -> ndarray:
    """argmax() of what is not NaN; ValueError where there is nothing else, for which the host waits."""
    return _arg_extreme(a, "argmax", float("-inf"), axis, keepdims, out)


def nanargmin(
    a: ArrayLike, /, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False
) -> ndarray:
    """argmin() of what is not NaN; ValueError where there is nothing else, for which the host waits."""
    return _arg_extreme(a, "argmin", float("inf"), axis, keepdims, out)


def _counts(a: ndarray, axis: Axis, dtype: Any) -> ndarray:
    present = _native.equal(a, a)
    return present.sum(axis=axis, keepdims=True).astype(dtype)


def _shaped(result: ndarray, a: ndarray, axis: Axis, keepdims: bool) -> ndarray:
    if keepdims:
        return result
    return result.reshape(()) if axis is None else result.squeeze(axis)


def _moment_dtype(a: ndarray, dtype: DTypeLike | None, out: ndarray | None) -> DTypeLike | None:
    """What mean() and var() compute in, too: a result that is wider than the elements is not rounded to theirs."""
    if dtype is not None or not is_inexact(a):
        return dtype
    return _native.result_type(a, out) if isinstance(out, ndarray) and is_inexact(out) else a.dtype


def _summed_in(dtype: DTypeLike) -> DTypeLike:
    """float32 for the 16-bit floats, which hold no count past 65,504 (float16) or 256 (bfloat16)."""
    return "float32" if resolve(dtype).name in ("float16", "bfloat16") else dtype


def _narrowed(result: ndarray, dtype: DTypeLike) -> ndarray:
    """A result that was computed in what _summed_in() said."""
    return result if _summed_in(dtype) is dtype else result.astype(dtype, copy=False)


def nanmean(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """mean() of what is not NaN; NaN where there is nothing else."""
    a = as_array(a)
    if not is_inexact(a):
        return a.mean(axis=axis, dtype=dtype, out=out, keepdims=keepdims)
    stored = _moment_dtype(a, dtype, out)
    if stored is a.dtype:
        found = _in_one_pass("means", a, axis=axis, keepdims=keepdims)
        if found is not None:
            return into(out, found, "nanmean")
    total = _replaced(a, 0).sum(axis=axis, dtype=_summed_in(stored), keepdims=True)
    result = total / _counts(a, axis, _real_of(total))
    return into(out, _shaped(_narrowed(result, stored), a, axis, keepdims), "nanmean")


def _real_of(x: ndarray) -> Any:
    from dlbridge.nd._dtypes import real_dtype

    return real_dtype(x.dtype)


def nanvar(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> ndarray:
    """var() of what is not NaN; NaN where no more than ddof elements are left."""
    a = as_array(a)
    if not is_inexact(a):
        return a.var(axis=axis, dtype=dtype, out=out, correction=ddof, keepdims=keepdims)
    stored = _moment_dtype(a, dtype, out)
    a = a.astype(_summed_in(stored), copy=False)
    centre = nanmean(a, axis, keepdims=True)
    found = _in_one_pass("variances", a, centre, float(ddof), axis=axis, keepdims=keepdims)
    if found is not None:
        return into(out, _narrowed(found, stored), "nanvar")
    distance = _native.where(_native.isnan(a), 0, a - centre)  # an infinity's distance is NaN, and counts
    squares = _native.square(distance) if kind_of(a.dtype) != "c" else _native.square(_native.absolute(distance))
    total = squares.sum(axis=axis, keepdims=True)
    freedom = _counts(a, axis, total.dtype) - ddof
    result = _native.where(freedom > 0, total / freedom, float("nan"))
    return into(out, _shaped(_narrowed(result, stored), a, axis, keepdims), "nanvar")


def nanstd(
    a: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> ndarray:
    """std() of what is not NaN; NaN where no more than ddof elements are left."""
    a = as_array(a)
    squared = nanvar(a, axis, _moment_dtype(a, dtype, out), None, ddof, keepdims)
    return into(out, _native.sqrt(squared), "nanstd")
