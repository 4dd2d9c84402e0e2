"""Division of integers on the host, in vectors of floats: right for every pair of operands, as C's division is."""

import numpy as np
import pytest
from dlbridge import nd

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FUNCTIONS = ("floor_divide", "remainder", "fmod")


def on_host(x):
    return nd.asarray(x, device="cpu")


def check(x, y):
    """All functions of division of x and y, which broadcast, against NumPy's."""
    with np.errstate(all="ignore"):
        for name in FUNCTIONS:
            got, want = getattr(nd, name)(on_host(x), on_host(y)), getattr(np, name)(x, y)
            assert got.dtype.name == want.dtype.name, name
            np.testing.assert_array_equal(np.asarray(got), want, name)
        for got, want in zip(nd.divmod(on_host(x), on_host(y)), np.divmod(x, y), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want, "divmod")


def edges(dtype):
    """Numbers about 0, about each power of 2, and about the ends."""
    limits = np.iinfo(dtype)
    powers = [sign * 2**k + d for k in range(limits.bits) for d in (-1, 0, 1) for sign in (1, -1)]
    near_ends = [limits.min + d for d in range(3)] + [limits.max - d for d in range(3)]
    return np.array(sorted({x for x in powers + near_ends if limits.min <= x <= limits.max}), dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_pair_of_bytes_is_divided_right(dtype):
    every = np.arange(256).astype(dtype)
    check(*(part.ravel() for part in np.meshgrid(every, every)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_about_powers_of_two_are_divided_right(dtype):
    x, y = np.meshgrid(edges(dtype), edges(dtype))
    check(x.ravel(), y.ravel())
    check(x[:, 0], y)  # rows by one number, and one number by rows
    for number in edges(dtype)[::5]:
        check(x[0], np.full(x.shape[1], number))
        check(np.full(x.shape[1], number), x[0])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_that_are_almost_whole_are_rounded_down(dtype):
    random = np.random.default_rng(5)
    bits = np.iinfo(dtype).bits
    divisors = random.integers(1, 1 << min(bits // 2, 25), 5000).astype(dtype)
    quotients = random.integers(0, 1 << min(bits // 2 - 1, 25), 5000).astype(dtype)
    with np.errstate(all="ignore"):
        for beside in (-1, 0, 1):
            x = (divisors * quotients + np.asarray(beside).astype(dtype)).astype(dtype)
            check(x, divisors)
            if dtype.startswith("int"):
                check(-x, divisors)
                check(x, -divisors)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_a_block_with_one_large_number_is_divided_right(dtype):
    for size in (2**51 - 1, 2**51, 2**51 + 1, 2**52, 2**53 + 1, 2**63 - 1):
        for place in (0, 255, 256, 700, 767):
            x = np.arange(1, 769).astype(dtype)
            y = (np.arange(768) % 13 + 1).astype(dtype)
            x[place] = size
            check(x, y)
            check(y, x)
            if dtype == "int64":
                check(-x, y)
                check(-y, -x)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_goes_by_blocks_however_operands_lie(dtype):
    random = np.random.default_rng(6)
    values = random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (2, 3000), dtype)
    for n in (1, 15, 16, 17, 255, 256, 257, 511, 513, 1000):
        check(values[0, :n], values[1, :n])
        check(values[0, : 2 * n : 2], values[1, n - 1 :: -1] if n > 1 else values[1, :1])
    with np.errstate(all="ignore"):
        got, want = nd.array(values[0], device="cpu"), values[0].copy()
        got //= on_host(values[1])
        want //= values[1]
        np.testing.assert_array_equal(np.asarray(got), want)
        nd.remainder(on_host(values[1]), got, out=got)
        np.testing.assert_array_equal(np.asarray(got), np.remainder(values[1], want))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_divmod_is_the_operator_too(dtype):
    x, y = np.arange(40).astype(dtype), np.arange(1, 41)[::-1].astype(dtype)
    for left, right in ((x, y), (x, 7), (7, y), (x, np.int16(3)), (x, y.astype("int64")), (x[:, None], y)):
        got = divmod(*(on_host(part) if isinstance(part, np.ndarray) else part for part in (left, right)))
        for part, want in zip(got, divmod(left, right), strict=True):
            assert part.dtype.name == want.dtype.name
            np.testing.assert_array_equal(np.asarray(part), want)
