"""Elementwise functions that are made of others; the kernels' own are in _native."""

from __future__ import annotations

from itertools import accumulate
from operator import index, mul

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_operands, check_out, into
from dlbridge.nd._compiled import compiled
from dlbridge.nd._dtypes import BY_NAME, can_cast, finfo, iinfo, is_inexact, kind_of, loop_float, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike

ndarray = _native.ndarray
_FLOAT64 = BY_NAME["float64"]
_PI = 3.141592653589793

# --- casts and parts -------------------------------------------------------------------------------------------------


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None) -> ndarray:
    """`x` with another dtype: floats are truncated to integers, complex numbers lose their imaginary part.

    copy: False returns `x` itself where it has that dtype. Source: Array API 2024.12.
    """
    x = as_array(x)
    return (x if device is None else _native.to_device(x, device)).astype(dtype, copy=copy)


def real(val: ArrayLike, /) -> ndarray:
    """The real part: a view of a complex array, any other array itself. Source: Array API 2024.12."""
    return as_array(val).real


def imag(val: ArrayLike, /) -> ndarray:
    """The imaginary part: a view of a complex array, zeros for any other. Source: Array API 2024.12."""
    return as_array(val).imag


def angle(z: ArrayLike, deg: bool = False) -> ndarray:
    """The angle of complex numbers in the plane, in radians or degrees."""
    z = as_array(z)
    if kind_of(z.dtype) == "b":  # none is negative; a stand-in, while fuse() records, is no array
        if isinstance(z, ndarray):
            return _native.zeros(z.shape, "float64", device=z.device)
        z = z.astype("int64")
    radians: ndarray = _native.arctan2(z.imag if kind_of(z.dtype) == "c" else 0, z.real)
    return radians * (180 / _PI) if deg else radians


def real_if_close(a: ArrayLike, tol: float = 100) -> ndarray:
    """The real part where all imaginary parts are within `tol` (of eps where above 1) of 0, else the array. Waits."""
    if not isinstance(a, ndarray):
        a = as_array(a)
    if _native.isrealobj(a):
        return a
    from dlbridge.nd._dtypes import finfo

    limit = tol * finfo(a.dtype).eps if tol > 1 else tol
    return a.real if bool((_native.absolute(a.imag) < limit).all()) else a


# --- rounding, clipping ---------------------------------------------------------------------------------------------


def round(a: ArrayLike, /, decimals: int = 0, out: ndarray | None = None) -> ndarray:
    """Rounded to this many decimals, halves to even; integers stay as they are. Source: Array API 2024.12, NumPy."""
    is_whole = type(decimals) is int and decimals == 0
    if is_whole and out is None and isinstance(a, ndarray) and (kind := a.dtype.kind) in "fiu":
        return _native.rint(a) if kind == "f" else a.copy("K")
    return into(out, _rounded(as_array(a), index(decimals)), "round")


def _rounded(x: ndarray, decimals: int) -> ndarray:
    kind = kind_of(x.dtype)
    if kind == "f" and decimals == 0:
        return _native.rint(x)
    if kind == "b":
        return _rounded(x.astype("float16"), decimals)  # as NumPy
    if kind in "iu":
        if decimals >= 0:
            return x.copy("K")
        step: int = 10**-decimals
        return (_native.rint(x / step) * step).astype(x.dtype)
    scale = 10.0 ** abs(decimals)
    found = _native.round_at(x, scale, decimals > 0)
    if found is not None:
        return found
    scaled = x * scale if decimals > 0 else x / scale
    _native.rint(scaled, out=scaled)
    return _native.divide(scaled, scale, out=scaled) if decimals > 0 else _native.multiply(scaled, scale, out=scaled)


around = round


def fix(x: ArrayLike, out: ndarray | None = None) -> ndarray:
    """Rounded towards zero."""
    return _native.trunc(as_array(x), out=out)


def clip(
    a: ArrayLike,
    /,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    out: ndarray | None = None,
    *,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
) -> ndarray:
    """Elements below `min` set to it, above `max` to that; either may be left out. NaN stays NaN.

    a_min, a_max: NumPy's older names. Source: Array API 2024.12.
    """
    if (
        a_min is a_max is out is None
        and isinstance(a, ndarray)
        and isinstance(min, ndarray)
        and isinstance(max, ndarray)
    ):  # no bounds to look at
        return _native.clip(a, min, max)
    low, high = min if a_min is None else a_min, max if a_max is None else a_max
    x = as_array(a)
    if kind_of(x.dtype) in "iu":  # a bound past the dtype's own bounds nothing (NEP 50 would refuse it)
        limits = iinfo(x.dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is None and high is None:
        return into(out, x.copy("K"), "clip")
    if high is None:
        return _native.maximum(x, low, out=out)
    if low is None:
        return _native.minimum(x, high, out=out)
    return into(out, _native.clip(x, low, high), "clip")


def nan_to_num(
    x: ArrayLike, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> ndarray:
    """NaN replaced by `nan`, infinities by the largest and smallest numbers of the dtype or what is given.

    copy: False writes to `x` itself.
    """
    x = as_array(x)
    if not is_inexact(x):
        return x.copy() if copy else x
    limits = finfo(x.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    found = _native.replace_specials(x, nan, high, low)
    if found is not None:
        return found if copy else into(x, found, "nan_to_num")
    result = x.copy("C") if copy else x
    for part in (result.real, result.imag) if kind_of(x.dtype) == "c" else (result,):
        fixed = _native.where(_native.isnan(part), nan, part)
        fixed = _native.where(fixed == float("inf"), high, fixed)
        part[...] = _native.where(fixed == float("-inf"), low, fixed)
    return result


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _as_reals(x: ArrayLike, operation: str) -> ndarray:
    """The array in the dtype that a function of real floats computes it in. TypeError for complex numbers."""
    a = as_array(x)
    if kind_of(a.dtype) == "c":
        raise TypeError(f"{operation}(): it is not defined for {a.dtype}. Give its real and imaginary parts, or abs(x)")
    return a.astype(loop_float(a.dtype), copy=False)


def divmod(
    x1: ArrayLike,
    x2: ArrayLike,
    out1: ndarray | None = None,
    out2: ndarray | None = None,
    /,
    *,
    out: tuple[ndarray | None, ndarray | None] | None = None,
) -> tuple[ndarray, ndarray]:
    """(floor_divide(x1, x2), remainder(x1, x2)). out: two arrays to write to, each of which may be None."""
    results: Any
    left: Any = x1
    # A stand-in, while fuse() records, is no instance of a subclass: it records both functions.
    if issubclass(type(x1), ndarray) and (issubclass(type(x2), ndarray) or type(x2) in _NUMBERS):
        results = left.__divmod__(x2)
    else:
        results = _native.floor_divide(x1, x2), _native.remainder(x1, x2)
    if out is None and out1 is None and out2 is None:
        return results
    if out is not None and (not isinstance(out, tuple) or len(out) != 2 or out1 is not None or out2 is not None):
        raise ValueError("divmod(): out must be a tuple of two arrays or None, and stand alone")
    return _into_each(out or (out1, out2), results, "divmod")


_NUMBERS = frozenset((bool, int, float))


def _into_each(outs: tuple[Any, ...], results: tuple[ndarray, ...], operation: str) -> Any:
    """Results, each in its array of `outs` where that is one: nothing is written unless all of them can be."""
    for target, result in zip(outs, results, strict=True):
        if target is not None:
            check_out(target, result, operation)
    return tuple(into(target, result, operation) for target, result in zip(outs, results, strict=True))


def frexp(x: ArrayLike, /) -> tuple[ndarray, ndarray]:
    """(mantissa, exponent), int32, with x = mantissa * 2**exponent and the mantissa from 0.5 to below 1; 0, infinities
    and NaN have the exponent 0. Source: NumPy."""
    parts = _native.frexp_of_floats(x)
    if parts is not None:
        return parts
    x = _as_reals(x, "frexp")
    parts = _native.frexp_of_floats(x)  # of integers, which are floats now
    if parts is not None:
        return parts
    bits, mantissa_bits, bias = _LAYOUT_OF_FLOATS[x.dtype.name]
    ones = (1 << (bits - 1 - mantissa_bits)) - 1
    raised = x * float(1 << mantissa_bits)  # subnormals have an exponent then
    words = x.view(f"int{bits}")
    small = ((words >> mantissa_bits) & ones) == 0
    words = _native.where(small, raised.view(f"int{bits}"), words)
    exponent = ((words >> mantissa_bits) & ones).astype("int32") - (bias - 1) - small.astype("int32") * mantissa_bits
    fraction = (words & ~(ones << mantissa_bits)) | ((bias - 1) << mantissa_bits)
    plain = _native.isfinite(x) & (x != 0)
    return _native.where(plain, fraction.view(x.dtype), x), _native.where(plain, exponent, 0).astype("int32")


# The bits of a float, those of its mantissa, and the bias of its exponent.
_LAYOUT_OF_FLOATS = {
    "float16": (16, 10, 15),
    "bfloat16": (16, 7, 127),
    "float32": (32, 23, 127),
    "float64": (64, 52, 1023),
}


def i0(x: ArrayLike) -> ndarray:
    """The modified Bessel function of the first kind and order 0: its power series up to 20, whose terms are all
    positive, and the asymptotic one from there (Abramowitz, Stegun 9.6.12, 9.7.1)."""
    x = as_array(x)
    if kind_of(x.dtype) != "c" and not isinstance(x, _native.HostArray):
        return _i0(x)
    x = _as_reals(x if is_inexact(x) else x.astype("float64"), "i0")
    wide = _native.absolute(x).astype("float64", copy=False)
    result = _native.empty_like(wide)
    flat, out = wide.ravel("K"), result.ravel("K")
    for first in range(0, wide.size, _I0_BLOCK):  # so many stay in the cache from term to term
        part, target = flat[first : first + _I0_BLOCK], out[first : first + _I0_BLOCK]
        target[...] = _i0_near(part)
        is_far = part > _I0_LIMIT
        if bool(is_far.any()):
            target[is_far] = _i0_far(part[is_far])
    return result.astype(x.dtype, copy=False)


_I0_LIMIT, _I0_BLOCK = 20.0, 16384


@compiled
def _i0(x: ndarray) -> ndarray:
    wide = _native.absolute(x.astype("float64"))
    found = _native.where(wide <= _I0_LIMIT, _i0_near(wide), _i0_far(wide))
    return found.astype(x.dtype) if is_inexact(x) else found


def _i0_near(x: ndarray) -> ndarray:
    near = _native.minimum(x, _I0_LIMIT)
    return _polynomial(near * near * 0.25, _I0_NEAR)


def _i0_far(x: ndarray) -> ndarray:
    far = _native.maximum(x, _I0_LIMIT)
    tail = _polynomial(0.125 / far, _I0_FAR)
    half = _native.exp(far * 0.5)  # twice: the whole overflows before its time
    return _native.where(_native.isinf(x), x, half * tail / _native.sqrt(far * 6.283185307179586) * half)


def _polynomial(x: ndarray, factors: tuple[float, ...]) -> ndarray:
    """Of these factors, that of the highest power last."""
    total = x * factors[-1]
    for factor in factors[-2:0:-1]:
        total += factor
        total *= x
    total += factors[0]
    return total


# Products of the ratios from term to term.
_I0_NEAR = tuple(accumulate((1 / (k * k) for k in range(1, 41)), mul, initial=1.0))
_I0_FAR = tuple(accumulate(((2 * k - 1) ** 2 / k for k in range(1, 25)), mul, initial=1.0))


def modf(x: ArrayLike, /) -> tuple[ndarray, ndarray]:
    """(fractional part, whole part), both with the sign of `x`."""
    parts = _native.modf_of_floats(x)
    if parts is not None:
        return parts
    x = _as_reals(x, "modf")
    parts = _native.modf_of_floats(x)  # of integers, which are floats now
    if parts is not None:
        return parts
    whole: ndarray = _native.trunc(x)
    fraction = _native.where(_native.isinf(x), 0.0, x - whole)
    return _native.copysign(fraction, x), whole


def _is_real(x: Any) -> bool:
    return isinstance(x, ndarray) and x.dtype.kind != "c"


def float_power(x1: ArrayLike, x2: ArrayLike, /, *, dtype: DTypeLike | None = None) -> ndarray:
    """Powers computed in float64 or complex128; dtype: which of the two."""
    if dtype is None and _is_real(x1) and (type(x2) in _NUMBERS or _is_real(x2)):
        return _native.power(x1, x2, dtype=_FLOAT64)
    operands = [x1, x2] if isinstance(x1, ndarray) and isinstance(x2, ndarray) else as_operands(x1, x2)
    wide = _native.result_type(*operands, _FLOAT64)
    if dtype is not None:
        asked = resolve(dtype)
        if asked.name not in ("float64", "complex128") or not can_cast(wide, asked, "same_kind"):
            raise TypeError(f"float_power(): dtype is {asked}, and the powers are {wide}. Give that, or complex128")
        wide = asked
    return _native.power(*operands, dtype=wide)


_FARTHEST = 5000  # from the smallest number to infinity, and further


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """x1 * 2**x2. The exponent is split in two, so that no power of two overflows before its time."""
    scaled = _native.ldexp_of_integers(x1, x2)
    if scaled is not None:
        return scaled
    x, exponent = as_operands(x1, x2)
    x = _as_reals(x, "ldexp")
    if kind_of(exponent.dtype) == "u":  # which NumPy has not
        largest = exponent if exponent.dtype != "uint64" else _native.minimum(exponent, _FARTHEST)
        exponent = largest.astype("int64")
    scaled = _native.ldexp_of_integers(x, exponent)
    if scaled is None and kind_of(exponent.dtype) in "bi":
        scaled = _native.by_numpy("ldexp", x, exponent)
    if scaled is not None:
        return scaled
    half = exponent // 2
    return x * _native.exp2(half.astype(x.dtype)) * _native.exp2((exponent - half).astype(x.dtype))


def spacing(x: ArrayLike, /) -> ndarray:
    """The distance to the next number away from zero."""
    found = _native.spacing_on_host(x)
    if found is not None:
        return found
    a = _as_reals(x, "spacing")
    found = _native.spacing_on_host(a)
    if found is not None:
        return found
    away = _native.copysign(float("inf"), a + 0.0)  # the zeros have one spacing
    return _native.nextafter(a, away) - a


def _sign_of_infinity(x: ndarray, sign: float) -> ndarray:
    """Where `x` is that infinity."""
    if kind_of(x.dtype) == "c":
        raise TypeError(f"isposinf(): {x.dtype} has infinities without a sign. Test its real and imaginary parts")
    return _native.equal(x, sign * float("inf")) if is_inexact(x) else _native.not_equal(x, x)


def isposinf(x: ArrayLike, /) -> ndarray:
    """Where `x` is positive infinity. TypeError for complex numbers."""
    return _sign_of_infinity(as_array(x), 1.0)


def isneginf(x: ArrayLike, /) -> ndarray:
    """Where `x` is negative infinity. TypeError for complex numbers."""
    return _sign_of_infinity(as_array(x), -1.0)
