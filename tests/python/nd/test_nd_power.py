"""Powers of floats on the host, a vector at a time: right to 0.6 units of the last place, C's pow() at the edges."""

import math

import numpy as np
import pytest
from dlbridge import nd

FLOATS = ("float16", "float32", "float64")
LIMITS = [math.inf, math.nan, 1e-310, 1e-38, 1e308]
EDGES = [sign * x for x in (0.0, 1, 2, 0.5, 3, *LIMITS) for sign in (1, -1)]
SAMPLES = {
    "ordinary": lambda r, n: (r.uniform(0, 10, n), r.uniform(-5, 5, n)),
    "of all exponents": lambda r, n: (np.exp(r.uniform(-80, 80, n)), r.uniform(-1, 1, n)),
    "near 1": lambda r, n: (1 + r.uniform(-1e-3, 1e-3, n), r.uniform(-6e4, 6e4, n)),
    "nearer 1": lambda r, n: (1 + r.uniform(-1e-6, 1e-6, n), r.uniform(-6e7, 6e7, n)),
    "large": lambda r, n: (r.uniform(0.5, 2, n), r.uniform(-100, 100, n)),
    "negative": lambda r, n: (-r.uniform(0, 10, n), r.integers(-9, 9, n)),
}


def on_host(x):
    return nd.asarray(x, device="cpu")


def power(x, y):
    return np.asarray(nd.power(on_host(x), on_host(y)))


def same(got, want):
    return (got == want) & (np.signbit(got) == np.signbit(want)) | (np.isnan(got) & np.isnan(want))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_power_errs_by_six_tenths_of_a_unit_at_most(sample, dtype):
    x, y = (part.astype(dtype) for part in SAMPLES[sample](np.random.default_rng(3), 20_000))
    wide = np.longdouble if dtype == "float64" else np.float64
    want = np.power(x.astype(wide), y.astype(wide))
    unit = np.abs(np.spacing(want.astype(dtype)))
    assert (np.abs(power(x, y) - want) <= 0.6 * unit).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_at_the_edges_are_those_of_c(dtype):
    def powers(x, y):
        with np.errstate(all="ignore"):
            return np.array([math_pow(float(a), float(b)) for a, b in zip(x, y, strict=True)]).astype(dtype)

    with np.errstate(all="ignore"):
        x, y = (part.ravel().astype(dtype) for part in np.meshgrid(EDGES, EDGES))
    assert same(power(x, y), powers(x, y)).all()
    for exponent in (2, -1, 0.5, 0, 1, 3, -2):  # one for all: some of them are an instruction
        assert same(np.asarray(on_host(x) ** exponent), powers(x, [exponent] * x.size)).all(), exponent


def math_pow(x, y):
    """C's pow(): Python's raises where that is infinite or not a number."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 and y % 2 == 1 else math.inf if x == 0 else math.nan


@pytest.mark.parametrize("dtype", FLOATS)
def test_whole_numbers_to_whole_powers_are_whole(dtype):
    x, y = (part.ravel() for part in np.meshgrid(np.arange(-40.0, 41), np.arange(0.0, 12)))
    want = np.array([int(a) ** int(b) for a, b in zip(x, y, strict=True)], object)
    fits = np.abs(want) < 2 ** (np.finfo(dtype).nmant + 1)
    assert (power(x.astype(dtype), y.astype(dtype))[fits] == want[fits].astype(float)).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 511, 513, 1100])
def test_what_a_power_is_does_not_depend_on_its_place(n, dtype):
    r = np.random.default_rng(n)
    x, y = r.uniform(0, 10, n).astype(dtype), r.uniform(-3, 3, n).astype(dtype)
    x[:: max(n // 3, 1)] = 0  # these go to C
    want = np.concatenate([power(a, b) for a, b in zip(x[:, None], y[:, None], strict=True)])
    wide = np.zeros((n, 3), dtype)
    wide[:, 1] = x
    assert same(power(x, y), want).all()
    assert same(power(wide[:, 1], y), want).all()
    assert same(power(x[::-1], y[::-1])[::-1], want).all()
    out = on_host(x.copy())
    nd.power(out, on_host(y), out=out)
    assert same(np.asarray(out), want).all()
    for left, right in ((x[:1], y), (x, y[-1:])):
        whole = np.broadcast_arrays(left, right)
        assert same(power(left, right), power(*(part.copy() for part in whole))).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_squares_of_integers_wrap(dtype):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(2).integers(limits.min, limits.max, 300, dtype=dtype, endpoint=True)
    for exponent in (0, 1, 2, 3):
        np.testing.assert_array_equal(np.asarray(on_host(x) ** exponent), x**exponent, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("n", [15, 256, 257, 1000])  # a block, one more, and several
@pytest.mark.parametrize("step", [1, 2, -3])
def test_powers_of_integers_wrap_wherever_they_lie(dtype, n, step):
    x = np.random.default_rng(n).integers(0, 2**63, n * abs(step)).astype(dtype)[::step]
    for exponent in (0, 1, 3, 4, 7, 13, 64, 126):
        want = x ** np.asarray(exponent, dtype)
        np.testing.assert_array_equal(np.asarray(on_host(x) ** exponent), want)
        out = on_host(np.zeros((n, 2), dtype))[:, 1]
        np.testing.assert_array_equal(np.asarray(nd.power(on_host(x), exponent, out=out)), want)
        place = on_host(x.copy())
        place **= exponent
        np.testing.assert_array_equal(np.asarray(place), want)
