"""Sizes around those at which kernels change their ways: scatters, unique values, matrix products."""

import itertools

import numpy as np
import pytest
from dlbridge import nd

# One block sorts up to 1,024 or 2,048 elements; above, several passes do.
SCATTERED = [1, 2, 1023, 1025, 2047, 2048, 2049, 4097, 100_000]
EXTENTS = [0, 1, 2, 3, 16, 17, 64, 200]
DTYPES = [*nd.__array_namespace_info__().dtypes(), "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("size", SCATTERED)
def test_a_scatter_keeps_the_last_value_of_each_place(size, dtype, device):
    random = np.random.default_rng(size)
    values = random.integers(0, 100, (size, 3)).astype(dtype)
    for places in (random.permutation(size), random.integers(-size, size, size)):
        want = np.zeros((size, 3), dtype)
        got = nd.asarray(want, device=device, copy=True)
        index, given = nd.asarray(places, device=device), nd.asarray(values, device=device)
        want[places], got[index] = values, given
        np.testing.assert_array_equal(got.get(), want)
        want[:, 1], got[:, 1] = 0, 0
        want[places, 1], got[index, 1] = values[:, 0], given[:, 0]
        np.testing.assert_array_equal(got.get(), want)


@pytest.mark.parametrize("dtype", ["int16", "int64", "float32", "complex128"])
@pytest.mark.parametrize("size", SCATTERED)
def test_an_accumulating_scatter_counts_every_value(size, dtype, device):
    random = np.random.default_rng(size)
    values, places = random.integers(0, 3, size).astype(dtype), random.integers(0, 1 + size // 7, size)
    want = np.zeros(size, dtype)
    got = nd.zeros(size, dtype, device=device)
    np.add.at(want, places, values)
    nd.add.at(got, nd.asarray(places, device=device), nd.asarray(values, device=device))
    np.testing.assert_array_equal(got.get(), want)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("size", SCATTERED)
def test_unique_values_with_their_positions(size, dtype, device):
    x = np.random.default_rng(size).integers(-90, 90, (size, 1)).astype(dtype)
    got = nd.unique_all(nd.asarray(x, device=device))
    values, indices, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for one, want in zip(got, (values, indices, inverse.reshape(x.shape), counts), strict=True):
        np.testing.assert_array_equal(one.get(), want)
    counted, inverted = nd.unique_counts(nd.asarray(x, device=device)), nd.unique_inverse(nd.asarray(x, device=device))
    np.testing.assert_array_equal(counted.counts.get(), counts)
    np.testing.assert_array_equal(inverted.inverse_indices.get(), inverse.reshape(x.shape))


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_products_of_small_extents_in_every_layout(dtype, device):
    """Factors of -1, 0 and 1 (bool: True): every order of summation gives the same sum, exactly, in every dtype."""
    random = np.random.default_rng(5)
    factors = {}
    for rows, columns in itertools.product(EXTENTS, repeat=2):
        plain = random.integers(-1, 2, (rows, columns)).astype("float64")
        if dtype == "bool" or dtype.startswith("u"):
            plain = abs(plain)
        if dtype.startswith("complex"):
            plain = plain + 1j * random.integers(-1, 2, (rows, columns))
        lying = nd.asarray(plain, device=device).astype(dtype)
        factors[rows, columns] = plain, lying, nd.asarray(plain.T.copy(), device=device).astype(dtype).T
    for m, k, n in itertools.product(EXTENTS, repeat=3):
        (left, *lefts), (right, *rights) = factors[m, k], factors[k, n]
        want = left @ right
        for a, b in itertools.product(lefts, rights):
            got = (a @ b).astype("complex128").get()
            np.testing.assert_array_equal(got, want != 0 if dtype == "bool" else want, err_msg=f"{m}, {k}, {n}")
