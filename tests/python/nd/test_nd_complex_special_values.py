"""Complex functions at infinity, NaN and zeros of both signs: C99's annex G, as the C library has it."""

import itertools

import numpy as np
import pytest
from dlbridge import nd
from nd_support import host, put

PARTS = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
POINTS = [complex(x, y) for x, y in itertools.product(PARTS, repeat=2)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["exp2", "log", "log2", "log10", "arccosh", "tanh", "tan"])
def test_special_values_are_those_of_the_c_standard(name, dtype, device):
    points = POINTS
    with np.errstate(all="ignore"):
        if name in ("log2", "log10"):  # multiples of log, whose zeros keep their signs
            scale = {"log2": np.log(2.0), "log10": np.log(10.0)}[name]
            want = [complex(z.real / scale, z.imag / scale) for z in map(complex, np.log(np.array(points)))]
        else:
            want = getattr(np, name)(np.array(points))
    got = getattr(nd, name)(nd.asarray(np.array(points, dtype), device=device)).get()
    for point, one, other in zip(points, got.astype("complex128"), np.array(want), strict=True):
        for part, wanted in ((one.real, other.real), (one.imag, other.imag)):
            np.testing.assert_allclose(part, wanted, rtol=1e-5 if dtype == "complex64" else 1e-13, err_msg=str(point))
            if not np.isnan(wanted):
                assert np.signbit(part) == np.signbit(wanted), point


@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "log10"])
def test_functions_of_the_smallest_complex_numbers_keep_their_digits(name, device):
    info = np.finfo("float32")
    small = [p * m for p in (info.tiny, info.smallest_subnormal) for m in (1, 3, 1e5)]
    parts = [0.0, -0.0, *small, *(-p for p in small)]
    points = np.array([complex(x, y) for x, y in itertools.product(parts, repeat=2) if x or y], "complex64")
    got = host(getattr(nd, name)(put(points, device)))
    np.testing.assert_allclose(got, getattr(np, name, np.log)(points.astype("complex128")), rtol=3e-7)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["log", "log2", "log10"])
def test_logarithms_of_the_largest_complex_numbers_are_finite(name, dtype, device):
    most = float(np.finfo(dtype).max)
    points = np.array(
        [complex(x, y) for x, y in itertools.product((0, most, -most, most / 3), repeat=2) if x or y], dtype
    )
    got = host(getattr(nd, name)(put(points, device)))
    scale = {"log": 1.0, "log2": np.log(2.0), "log10": np.log(10.0)}[name]
    np.testing.assert_allclose(got, np.log(points / 4) / scale + np.log(4.0) / scale, rtol=1e-6)


def test_powers_of_infinities_are_those_of_the_c_library(device):
    bases = [complex(x, y) for x, y in itertools.product((-np.inf, np.inf, np.nan, 2.0), repeat=2)]
    pairs = list(itertools.product(bases, (-4 + 1j, 2.5 - 0.5j)))
    base, exponent = (np.array(x, "complex128") for x in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        want = np.power(base, exponent)
    got = host(nd.power(put(base, device), put(exponent, device)))
    for one, other in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(one, other, rtol=1e-12)
