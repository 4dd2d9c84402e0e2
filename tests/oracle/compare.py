"""Rules of comparison: equal in every bit, or within a stated number of units in the last place.

A NaN equals a NaN whatever its bits; where a result is exact, -0.0 differs from 0.0. The parts of complex numbers
are compared one by one where they are exact, and else by the error against the larger part: a rounding error of a
complex operation is relative to the number, not to each of its parts. A complex number with an infinite part is an
infinity, whatever the other part, as Annex G of the C standard has it. Where results are rounded, the infinity is the
number after the largest one. Shapes and dtypes are always equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dlbridge import nd

BITS = {2: np.int16, 4: np.int32, 8: np.int64}
SCALARS = (bool, int, float, complex, np.generic)


class Leaf:
    """An array of a result as NumPy's, with the dtype's name that its library gave it (bfloat16 lies in float32).

    `halves`: it was computed from float16 numbers in float32, and float16 is what is expected.
    """

    def __init__(self, values: np.ndarray, dtype: str, halves: bool = False) -> None:
        self.values = values
        self.dtype = dtype
        self.halves = halves

    def __repr__(self) -> str:
        return f"{self.values!r} ({self.dtype} {self.values.shape})"


def to_host(x: nd.ndarray) -> Leaf:
    """The values of an ndarray; 16-bit brain floats as float32, which holds them all."""
    if x.dtype == "bfloat16":
        words = nd.asnumpy(nd.ascontiguousarray(x).view("uint16"))
        return Leaf((words.astype(np.uint32) << 16).view(np.float32).reshape(x.shape), "bfloat16")
    values = nd.asnumpy(x)
    return Leaf(values, str(values.dtype))


def leaves(result: Any, halves: bool = False) -> Any:
    """A result with its arrays and numbers replaced by leaves: tuples and lists become tuples, other objects stay."""
    if isinstance(result, nd.ndarray):
        return to_host(result)
    if isinstance(result, (tuple, list)):
        return tuple(leaves(item, halves) for item in result)
    if isinstance(result, (np.ndarray, *SCALARS)):
        values = np.asarray(result)
        return Leaf(values, str(values.dtype), halves)
    return str(result) if isinstance(result, (nd.dtype, np.dtype)) else result


def round_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """float32 numbers rounded to the nearest bfloat16, ties to even; NaN stays."""
    values = np.asarray(values, np.float32)
    words = values.view(np.uint32)
    rounded = ((words + 0x7FFF + ((words >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(values), values, rounded).astype(np.float32)


def _ordered(values: np.ndarray) -> np.ndarray:
    """Floats as integers whose differences count the floats between; both zeros are 0."""
    words = values.view(BITS[values.dtype.itemsize]).astype(np.int64)
    least = -(1 << 63) if values.dtype.itemsize == 8 else -(1 << (8 * values.dtype.itemsize - 1))
    return np.where(words < 0, np.int64(least) - words, words)


def _near_reals(got: np.ndarray, want: np.ndarray, ulps: float, scale: int) -> np.ndarray:
    one, other = _ordered(got), _ordered(want)
    with np.errstate(over="ignore"):
        distance = np.abs(one - other)
    same_sign = (one < 0) == (other < 0)
    # Across zero the sum of both distances, which int64 holds for all that could be near.
    across = np.abs(one.astype(np.float64)) + np.abs(other.astype(np.float64))
    counted = np.where(same_sign, distance.astype(np.float64), across)
    return (counted <= ulps * scale) | (got == want)


def _near_complex(got: np.ndarray, want: np.ndarray, ulps: float, loose: bool = False) -> np.ndarray:
    part = np.empty(0, want.dtype).real.dtype
    size = np.maximum(np.abs(want.real), np.abs(want.imag))
    finite = np.isfinite(got) & np.isfinite(want)
    with np.errstate(all="ignore"):
        allowed = ulps * np.spacing(np.where(finite, size, 1).astype(part)).astype(np.float64)
        error = np.maximum(np.abs(got.real - want.real), np.abs(got.imag - want.imag))
    apart = ~np.isfinite(got)  # infinities and NaN: each part alone
    alike = np.ones(np.shape(got), bool)
    for one, other in ((got.real, want.real), (got.imag, want.imag)):
        alike &= (one == other) | (np.isnan(one) & np.isnan(other)) | (np.isfinite(one) & np.isfinite(other))
    alike |= _infinite(got) & _infinite(want)
    return np.where(finite, error <= allowed, apart & ~np.isfinite(want) & (alike | loose))


def _infinite(values: np.ndarray) -> np.ndarray:
    return np.isinf(values.real) | np.isinf(values.imag)


def _near_operands(got: np.ndarray, want: np.ndarray, ulps: float, scale: int, size: Any) -> np.ndarray:
    """Whether the error is within units of the last place that a number of the operands' size has."""
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        allowed = ulps * scale * np.spacing(np.abs(np.asarray(size)).astype(want.real.dtype)).astype(np.float64)
        return np.abs(got.astype(wide) - want.astype(wide)) <= allowed


def mismatches(
    got: np.ndarray, want: np.ndarray, ulps: float, scale: int = 1, loose: bool = False, size: Any = None
) -> np.ndarray:
    """Where two arrays of one dtype and shape differ by the rule; `ulps` 0 asks for every bit (but NaN's).

    `size` is that of the operands, where a result is a difference of larger numbers.
    """
    if want.dtype.kind not in "fc":
        return got != want
    if loose and not ulps:
        return (got != want) & ~(np.isnan(got) & np.isnan(want))
    if want.dtype.kind == "c":
        if ulps:
            near = _near_complex(got, want, ulps, loose)
            return ~near if size is None else ~(near | _near_operands(got, want, ulps, scale, size))
        return mismatches(got.real, want.real, 0) | mismatches(got.imag, want.imag, 0)
    got, want = np.ascontiguousarray(got), np.ascontiguousarray(want)
    nans = np.isnan(got) & np.isnan(want)
    if ulps:
        either = np.isnan(got) | np.isnan(want)
        near = _near_reals(got, want, ulps, scale)
        if size is not None:
            near |= _near_operands(got, want, ulps, scale, size)
        return ~nans & (either | ~near)
    return ~nans & ((got != want) | (np.signbit(got) != np.signbit(want)))


def difference(got: Any, want: Any, ulps: float = 0, loose: bool = False, size: Any = None) -> str | None:
    """Says in one line how a result differs from the expected one, both made of leaves; None where it does not.

    `loose` is for operations that choose among equal elements: -0.0 is 0.0, and a NaN in any part of a complex number
    makes it NaN; and for powers, where it depends on the last bit before the overflow what is infinite and what NaN.
    """
    if isinstance(want, tuple):
        if not isinstance(got, tuple) or len(got) != len(want):
            return f"{got!r:.200} instead of {len(want)} results"
        for position, (one, other) in enumerate(zip(got, want, strict=True)):
            if (found := difference(one, other, ulps, loose, size)) is not None:
                return f"result {position}: {found}"
        return None
    if not isinstance(want, Leaf) or not isinstance(got, Leaf):
        same = type(got) is type(want) and got == want
        return None if same else f"{got!r:.200} instead of {want!r:.200}"
    return _difference_of_arrays(got, want, ulps, loose, size)


def _difference_of_arrays(got: Leaf, want: Leaf, ulps: float, loose: bool, size: Any) -> str | None:
    if got.values.shape != want.values.shape:
        return f"shape {got.values.shape} instead of {want.values.shape}"
    expected, scale = want.values, 1
    if got.dtype == "bfloat16" and want.dtype in ("float32", "bfloat16"):
        expected, scale = round_to_bfloat16(expected), 1 << 16
    elif got.dtype == "float16" and want.dtype == "float32" and want.halves:
        with np.errstate(over="ignore"):
            expected = expected.astype(np.float16)
    elif got.dtype != want.dtype:
        return f"dtype {got.dtype} instead of {want.dtype}"
    wrong = mismatches(got.values, expected, ulps, scale, loose, size)
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    where = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))[: got.values.ndim]
    return (
        f"{count} of {wrong.size} elements differ, first at {where}: {got.values[where]!r} instead of "
        f"{expected[where]!r} ({got.dtype}, {'exact' if not ulps else f'{ulps:g} ulps'})"
    )
