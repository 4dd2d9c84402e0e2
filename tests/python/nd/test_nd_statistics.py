"""Moments far from 0, infinities, order statistics: against exact arithmetic, or NumPy where it is exact."""

from fractions import Fraction

import numpy as np
import pytest
from dlbridge import nd
from nd_support import check, host, put

# --- variance ---------------------------------------------------------------------------------------------------------


def exact_variance(values, ddof=0):
    numbers = [Fraction(v) for v in np.asarray(values).ravel().tolist()]
    mean = sum(numbers) / len(numbers)
    return float(sum((x - mean) ** 2 for x in numbers) / (len(numbers) - ddof))


@pytest.mark.parametrize("n", [2, 3, 15, 16, 17, 100, 1000, 5000])
@pytest.mark.parametrize("where", ["0 f8", "1e8 f8", "1e15 f8", "-1e15 f8", "1e5 f4", "1e7 f4"])
def test_the_variance_does_not_depend_on_where_the_data_lies(where, n, device):
    offset, dtype = float(where.split()[0]), where.split()[1]
    values = (offset + np.random.default_rng(n).normal(size=n) * 3).astype(dtype)
    want = exact_variance(values)
    rtol = 1e-12 if dtype == "f8" else 1e-5
    x = put(values, device)
    np.testing.assert_allclose(float(x.var()), want, rtol)
    np.testing.assert_allclose(float(x.std()), want**0.5, rtol)
    np.testing.assert_allclose(float(x.var(ddof=1)), exact_variance(values, 1), rtol)
    columns = put(np.stack([values, values[::-1], np.full(n, values[0])], 1), device)
    np.testing.assert_allclose(host(columns.var(axis=0)), [want, want, 0], rtol)
    np.testing.assert_allclose(host(columns.T.var(axis=1)), [want, want, 0], rtol)
    np.testing.assert_allclose(host(put(values[::2], device).var()), exact_variance(values[::2]), rtol)


def test_the_variance_of_complex_numbers_far_from_0(device):
    rng = np.random.default_rng(0)
    values = 1e15 + rng.normal(size=300) + 1j * (rng.normal(size=300) - 1e14)
    want = exact_variance(values.real) + exact_variance(values.imag)
    np.testing.assert_allclose(float(put(values, device).var()), want, 1e-12)


@pytest.mark.parametrize("n", [1, 2, 20, 600])
@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_the_variance_of_what_is_not_finite_is_no_number(odd, place, n, device):
    values = np.arange(float(n))
    values[0 if place == "first" else -1] = odd
    assert np.isnan(float(put(values, device).var()))
    assert np.isnan(float(put(values.astype("f2"), device).std()))
    assert np.isnan(host(put(values[:, None] * [1, 1], device).var(axis=0))).all()


@pytest.mark.parametrize("name", ["mean", "var", "std", "sum", "prod"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32"])
def test_columns_that_are_cast_first(name, dtype, device):
    """Around the rows and the columns that are cast at a time; `dtype=` makes a cast of floats, too."""
    asked = {"sum": "float64", "prod": "complex128"}.get(name, "float64")
    for rows, width in [(1, 3), (13, 40), (31, 127), (32, 128), (33, 129), (130, 257)]:
        x = (np.random.default_rng(rows).integers(0, 3, (rows, width)) % 5).astype(dtype)
        for turned in (False, True):
            stored, axis = (np.asfortranarray(x.T), 1) if turned else (x, 0)
            ours = getattr(put(stored, device), name)(axis=axis, dtype=asked)
            np.testing.assert_allclose(host(ours), getattr(stored, name)(axis=axis, dtype=asked), 1e-12)
            ours = getattr(put(stored, device)[::-1, ::2], name)(axis=axis, dtype=asked)
            np.testing.assert_allclose(host(ours), getattr(stored[::-1, ::2], name)(axis=axis, dtype=asked), 1e-12)


def test_an_outlier_leaves_the_variance_of_the_rest_exact(device):
    values = np.full(1000, 3.0)
    for place in (0, 500, 999):
        values[:] = 3
        values[place] = 1e12
        np.testing.assert_allclose(float(put(values, device).var()), exact_variance(values), 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_the_spread_of_numbers_whose_squares_are_infinite_is_infinite(dtype, device):
    large = np.finfo(dtype).max / 64
    x = np.array([large, -large] * 20, dtype)
    with np.errstate(over="ignore"):
        assert np.isinf(x.std())
    assert np.isinf(host(put(x, device).std())) and np.isinf(host(put(x.reshape(8, 5), device).var(0))).all()


@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_more_elements_than_a_16_bit_float_counts(name, dtype, device):
    values = np.tile(np.array([1, 2, 3, np.nan]), 20000)
    got = getattr(nd, name)(put(values, device).astype(dtype))
    assert got.dtype == dtype
    check(got.astype("float64"), getattr(np, name)(values), rtol=5e-3)
