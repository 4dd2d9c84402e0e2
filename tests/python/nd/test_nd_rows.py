"""Rows left out, put in and repeated, of arrays of any layout."""

import numpy as np
import pytest
from dlbridge import nd


def same(got, want):
    assert (got.dtype, got.shape) == (str(want.dtype), want.shape)
    np.testing.assert_array_equal(nd.asnumpy(got), want)


def numbers(n, dtype):
    return np.random.default_rng(n).integers(0, 100, n).astype(dtype)


CUTS = [1, slice(0, 2), slice(None, None, 2), [1], [0, -1], np.array([0, 2]), np.array([3])]


@pytest.mark.parametrize("places", CUTS, ids=str)
def test_rows_of_any_layout_are_left_out_and_lie_as_numpys(places):
    ours = nd.array(places, device="cpu") if isinstance(places, np.ndarray) else places
    long = numbers(4 * 5 * 80, "int32").reshape(4, 5, 80)
    for view in (lambda x: x.T, lambda x: x.transpose(1, 0, 2), lambda x: x[::-1, 1:, ::2], lambda x: x[:, :4, :4]):
        a, x = view(long), view(nd.array(long, device="cpu"))
        for axis in range(3):
            got, want = nd.delete(x, ours, axis), np.delete(a, places, axis)
            same(got, want)
            assert got.strides == want.strides
            m = np.arange(a.shape[axis]) % 3 == 1
            got, want = nd.delete(x, nd.array(m, device="cpu"), axis), np.delete(a, m, axis)
            same(got, want)
            assert got.strides == want.strides
    for view in (lambda x: x[::2], lambda x: x[::-3], lambda x: x[0:1].repeat(9)):
        a = numbers(200, "int16")
        m = np.arange(view(a).size) % 3 == 0
        same(nd.delete(view(nd.array(a, device="cpu")), nd.array(m, device="cpu")), np.delete(view(a), m))


@pytest.mark.parametrize("places", [0, -1, [1, 3], [2, 2, 0], list(range(20))], ids=str)
def test_numbers_are_put_into_rows_of_any_layout(places):
    long = numbers(40 * 3 * 22, "float32").reshape(40, 3, 22)
    for view in (lambda x: x.T, lambda x: x[::2, :, ::-1], lambda x: x.transpose(2, 0, 1)):
        a, x = view(long), view(nd.array(long, device="cpu"))
        for axis in range(3):
            if a.shape[axis] > 3 or places in (0, -1):
                got, want = nd.insert(x, places, 7, axis), np.insert(a, places, 7, axis)
                same(got, want)
                assert got.strides == want.strides


@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64", "complex128"])
def test_each_part_is_repeated_as_often_as_its_count_says(dtype, device):
    for n in (0, 1, 5, 300):
        a = numbers(2 * n, dtype)
        for c in (np.arange(n) % 5, np.zeros(n, "int64"), np.arange(n)[::-1] % 30, (np.arange(2 * n) % 7)[::2]):
            counts = nd.array(c, device=device)
            x = nd.array(a, device=device)
            same(nd.repeat(x[:n], counts), np.repeat(a[:n], c))
            same(nd.repeat(x[::-2], counts.astype("int8")), np.repeat(a[::-2], c))
            same(nd.repeat(x.reshape(2, n), counts, 1), np.repeat(a.reshape(2, n), c, 1))
    for bad in ([1, -1, 2], [2**62, 2**62, 2**62]):
        with pytest.raises((ValueError, OverflowError), match="repeat"):
            nd.repeat(nd.zeros(3, dtype, device="cpu"), nd.array(bad, device="cpu"))
