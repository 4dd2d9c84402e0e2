"""Fused kernels against the operations one by one: operands where these would differ, and how results compare."""

from __future__ import annotations

import numpy as np
from dlbridge import nd

FLOATS = {"float16": (6e-8, 65504.0), "bfloat16": (1e-40, 3e38), "float32": (1e-45, 3e38), "float64": (5e-324, 1e308)}
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTS, *FLOATS, *COMPLEX)
NAMES = sorted({value.__name__ for value in vars(nd).values() if isinstance(value, nd.ufunc)})

# Made of the elementary functions of a library: fused and compiled kernels need not have the same release of it. All
# others are alike to the last bit.
LIBRARY = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
    "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "cbrt", "erf", "expit", "rsqrt", "arctan2", "hypot", "logaddexp",
    "logaddexp2", "power", "sinc",
}  # fmt: skip
COMPLEX_LIBRARY = LIBRARY | {"sqrt", "absolute", "sign"}  # the last two by hypot


def is_exact(name: str, dtype: str) -> bool:
    whole = dtype == "bool" or dtype in INTS
    return name not in (COMPLEX_LIBRARY if dtype in COMPLEX else LIBRARY) or (whole and name == "power")


def special(dtype: str) -> np.ndarray:
    """Zeros of both signs, the ends of the range, infinities, NaN; bfloat16's as float32."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTS:
        ends = np.iinfo(dtype)
        return np.array([ends.min, ends.max, ends.max - 1, 0, 1, 2, 3, 7, ends.min + 1, ends.max // 3], dtype)
    if dtype in FLOATS:
        least, most = FLOATS[dtype]
        values = [0.0, 1.0, 0.1, 2.5, 3.0, 7.7, 1234.5, least, most, np.inf]
        with np.errstate(over="ignore"):
            return np.array([*values, *(-v for v in values), np.nan], "float32" if dtype == "bfloat16" else dtype)
    parts = (0.0, -0.0, 1.5, -0.7, 3e38 if dtype == "complex64" else 1e308, -np.inf, np.nan)
    return np.array([complex(a, b) for a in parts for b in parts], dtype)


def operands(name: str, dtype: str) -> list[np.ndarray]:
    """Every pair of the special values, beside one another."""
    values = special(dtype)
    first, second = np.repeat(values, len(values)), np.tile(values, len(values))
    if name == "where":
        return [first != first[::-1], first, second]
    return [first, second, second[::-1]][: getattr(nd, name).nin]


def assert_same_values(got: np.ndarray, want: np.ndarray, message: str, ulps: int = 0) -> None:
    """Bits, but those of a NaN; as many units in the last place apart as `ulps` says."""
    assert got.dtype == want.dtype, message
    if got.dtype.kind == "c":
        part = "f4" if got.dtype == "c8" else "f8"
        got, want = got.view(part), want.view(part)
    if ulps == 0 or got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=message)
    else:
        np.testing.assert_allclose(got, want, rtol=ulps * np.finfo(got.dtype).eps, err_msg=message)
    if got.dtype.kind == "f":
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known], err_msg=message)
