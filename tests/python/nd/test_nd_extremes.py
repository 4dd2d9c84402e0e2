"""Extremes, their places, any and all, wherever in a row or a column lies what decides."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import put

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]
# Around what is in one vector, in several, in a block that is searched, and in one that is fetched.
LENGTHS = [1, 2, 13, 15, 16, 17, 33, 64, 65, 127, 128, 129, 255, 257, 300, 513, 1025]
LONG = 2 * 16384 + 77
WIDTHS = [1, 3, 13, 15, 16, 17, 63, 64, 65, 130, 1040]

# What an array is stored as, and the view of that which is the array.
LAYOUTS = {
    "dense": (lambda x: x, lambda y: y),
    "reversed": (lambda x: x[..., ::-1], lambda y: y[..., ::-1]),
    "every other": (lambda x: np.repeat(x, 2, axis=-1), lambda y: y[..., ::2]),
    "stepped": (lambda x: np.repeat(x, 3, axis=-1), lambda y: y[..., ::3]),
    "odd address": (lambda x: np.concatenate([x[..., :1], x], axis=-1), lambda y: y[..., 1:]),
    "reversed columns": (lambda x: x[::-1], lambda y: y[::-1]),
    "column-major": (lambda x: x.T, lambda y: y.T),
}


def laid_out(x, layout, device):
    store, view = LAYOUTS[layout]
    stored = np.ascontiguousarray(store(x))
    return view(put(stored, device)), view(stored)


def odd(dtype, name):
    """What is not decided by the rest: the extreme, a NaN, what any() or all() looks for."""
    if dtype == "bool":
        return name in ("max", "argmax", "any")
    if name in ("any", "all"):
        return 3 if name == "any" else 0
    if dtype.startswith("complex"):  # the real parts are equal: the imaginary ones decide
        return complex(60, 1000 if "max" in name else -1000)
    info = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
    return info.max if "max" in name else info.min


def usual(dtype, name, shape):
    if dtype == "bool" or name in ("any", "all"):
        return np.full(shape, not odd(dtype, name), dtype)
    if dtype.startswith("complex"):
        return (60 + 1j * (np.arange(np.prod(shape)) % 7)).astype(dtype).reshape(shape)
    return (np.arange(np.prod(shape)) % 7 + 60).astype(dtype).reshape(shape)


def same(got, want, what):
    got = nd.asnumpy(got)
    assert got.dtype == want.dtype, what
    assert got.shape == want.shape, what
    assert np.array_equal(got, want, equal_nan=want.dtype.kind in "fc"), what


def places(n):
    """One place, and two that are equal: near the ends, in the middle and where vectors meet."""
    some = sorted({p for p in (0, 1, 7, 15, 16, n // 2, n - 17, n - 16, n - 2, n - 1) if 0 <= p < n})
    return [(p,) for p in some] + [(some[-1], some[k]) for k in range(0, len(some), 3)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "any", "all"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_element_decides(dtype, name, layout, device):
    planted = [odd(dtype, name)]
    if dtype.startswith("float") and name not in ("any", "all"):
        planted += [np.nan, -np.inf if "max" in name else np.inf]  # the last: an extreme of nothing
    if dtype.startswith("complex") and name not in ("any", "all"):
        planted += [complex(np.nan, 0), complex(0, np.nan), complex(61, -5), complex(59, 5), complex(-np.inf, -np.inf)]
    lengths = LENGTHS if device == "cpu" else [17, 257]
    for n in lengths:
        for value in planted:
            for at in places(n):
                x = usual(dtype, name, (2, n))
                x[1, list(at)] = value
                ours, theirs = laid_out(x, layout, device)
                for axis in (1, 0, None):
                    same(getattr(ours, name)(axis=axis), getattr(theirs, name)(axis=axis), (n, value, at, axis))


@pytest.mark.parametrize("name", ["max", "argmin", "any", "all"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "float32", "float64", "complex64", "complex128"])
def test_columns_of_every_width(dtype, name, device):
    for width in WIDTHS if device == "cpu" else [13, 130]:
        for n in (1, 7, 9, 128, 129, 300):
            for k in (0, width // 2, width - 1):
                x = usual(dtype, name, (n, width))
                x[[n // 2, n - 1], k] = odd(dtype, name)
                if dtype.startswith(("float", "complex")):
                    x[n // 3, k // 2] = np.nan
                for layout in ("dense", "reversed", "every other", "stepped", "reversed columns"):
                    ours, theirs = laid_out(x, layout, device)
                    same(getattr(ours, name)(axis=0), getattr(theirs, name)(axis=0), (width, n, k, layout))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "any", "all"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_long_rows(dtype, name, device):
    for at in ((0,), (16383,), (16384,), (LONG - 1,), (LONG - 1, 16385, 20000)):
        for value in [odd(dtype, name)] + [np.nan] * (dtype == "float32" and name not in ("any", "all")):
            x = usual(dtype, name, LONG)
            x[list(at)] = value
            for layout in ("dense", "reversed", "stepped"):
                ours, theirs = laid_out(x, layout, device)
                same(getattr(ours, name)(), getattr(theirs, name)(), (at, value, layout))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zeros_of_both_signs_are_equal(dtype, name, device):
    for n in (2, 17, 64, 300, 1025):
        for at in range(0, n, max(1, n // 9)):
            x = np.full((n, 2), 0.0, dtype)
            x[at:, 0] = -0.0
            x[:at, 1] = -0.0
            for axis in (0, None):
                same(getattr(put(x, device), name)(axis=axis), getattr(x, name)(axis=axis), (n, at, axis))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinities_of_both_signs_are_no_nan(dtype, device):
    for n in (16, 64, 300, 5000):
        x = np.arange(n).astype(dtype)
        x[n // 3], x[n // 2] = np.inf, -np.inf
        for name in ("max", "min", "argmax", "argmin"):
            same(getattr(put(x, device), name)(), getattr(x, name)(), (n, name))


REPEATED = ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean", "var", "std"]


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "float64", "complex128"])
def test_broadcast_axes(dtype, name, device):
    row = ((np.arange(37) * 5) % 3 - (dtype not in ("bool",))).astype(dtype)
    for times in (1, 2, 3, 7, 64, 1000):
        if name == "prod" and times > 7:
            row = np.sign(row.real).astype(dtype) if dtype != "bool" else row
        for view in (
            lambda xp, x, k=times: xp.broadcast_to(x, (k, 37)),
            lambda xp, x, k=times: xp.broadcast_to(x[:, None], (37, k)),
            lambda xp, x, k=times: xp.broadcast_to(x[:, None, None], (37, k, 2)),
            lambda xp, x, k=times: xp.broadcast_to(x[None, :, None], (2, 37, k)),
            lambda xp, x, k=times: xp.broadcast_to(x[3], (5, k)),
        ):
            theirs, ours = view(np, row), view(nd, put(row, device))
            for axis in (0, 1, None):
                got, want = nd.asnumpy(getattr(ours, name)(axis=axis)), getattr(theirs, name)(axis=axis)
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=str((times, theirs.shape, axis)))


@pytest.mark.parametrize("correction", [0, 1])
def test_variances_of_broadcast_axes_count_every_element(correction, device):
    x = np.array([1.0, 4.0, 9.0])
    got = nd.var(nd.broadcast_to(put(x, device), (5, 3)), correction=correction)
    assert float(got) == pytest.approx(np.var(np.broadcast_to(x, (5, 3)), ddof=correction))
