"""Functions that NumPy computes on the host where it is loaded: the same without it."""

import sys
from contextlib import nullcontext

import numpy as np
import pytest
from dlbridge import nd
from dlbridge.nd import _native

LONG = 40_000  # elements: more than a part of a convolution


def values(dtype, n):
    found = np.arange(n) * 7 % 11 - 3
    return found % 3 == 0 if dtype == "bool" else (found + (1j * found[::-1] if dtype[0] == "c" else 0)).astype(dtype)


@pytest.fixture(params=["with NumPy", "without NumPy"])
def call(request, monkeypatch):
    """Calls a function where NumPy is loaded, or where there is none."""

    def called(function):
        with monkeypatch.context() as patch:
            if request.param == "without NumPy":
                patch.setitem(sys.modules, "numpy", None)
            return function()

    return called


def same(got, want):
    assert (got.dtype, got.shape) == (str(want.dtype), want.shape)
    np.testing.assert_array_equal(nd.asnumpy(got), want)


DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_convolve_and_correlate(call, dtype, mode):
    for n, few, step in [(9, 3, 1), (300, 5, -2), (700, 24, 1), (LONG, 4, 1), (LONG, 24, 3), (24, 24, 1)]:
        a, v = values(dtype, n)[::step], values(dtype, few)
        x, w = nd.array(values(dtype, n), device="cpu")[::step], nd.array(v, device="cpu")
        for name in ("convolve", "correlate"):
            same(call(lambda name=name, x=x, w=w: getattr(nd, name)(x, w, mode)), getattr(np, name)(a, v, mode))
            same(call(lambda name=name, x=x, w=w: getattr(nd, name)(w, x, mode)), getattr(np, name)(v, a, mode))


@pytest.mark.parametrize("n", [20, 690, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_windows_by_vectors(dtype, n, device):
    """Windows of a vector are no matrix that lies in memory, and are multiplied where they lie."""
    a, v = values(dtype, 700), values(dtype, n)
    if dtype == "float16":
        a, v = a % 4, v % 2  # so that no sum is rounded
    windows = np.lib.stride_tricks.sliding_window_view(a, n)
    x, w = nd.array(a, device=device), nd.array(v, device=device)
    ours = nd.lib.stride_tricks.as_strided(x, windows.shape, x.strides * 2)
    same(nd.matmul(ours, w), windows @ v)
    same(nd.matmul(w, ours.T), v @ windows.T)
    same(nd.matmul(ours, ours.T), windows @ windows.T)


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_bits(call, axis, bitorder):
    bytes_ = values("uint8", 60).reshape(4, 15)
    bools = np.broadcast_to(bytes_[:, None, ::-1] > 4, (4, 3, 15))[:, ::2]
    for a in (bytes_, bytes_.T, bools, bools.astype("i4"), bytes_[:0]):
        same(call(lambda: nd.packbits(nd.array(a, device="cpu"), axis, bitorder)), np.packbits(a, axis, bitorder))  # noqa: B023
    for count in (None, 5, -5, 900):
        x = nd.array(bytes_, device="cpu").T
        same(
            call(lambda: nd.unpackbits(x, axis, count, bitorder)),  # noqa: B023
            np.unpackbits(bytes_.T, axis, count, bitorder),
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_bytes_in_the_opposite_order(call, dtype):
    a = values(dtype, 60).reshape(4, 15)
    x = nd.array(a, device="cpu")
    same(call(lambda: x[:, ::-2].byteswap()), a[:, ::-2].byteswap())
    call(lambda: x[1:].byteswap(inplace=True))
    same(x[1:], a[1:].byteswap())
    same(x[:1], a[:1])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "uint64"])
def test_bitwise_count(call, dtype):
    a = values(dtype, 60).reshape(4, 15)
    want = np.array([[bin(abs(int(v))).count("1") for v in row] for row in a[:, ::-2]], "uint8")
    x, out = nd.array(a, device="cpu")[:, ::-2], nd.zeros((4, 8), dtype="uint8", device="cpu")
    same(call(lambda: nd.bitwise_count(x)), want)
    call(lambda: nd.bitwise_count(x, out))
    same(out, want)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128", "int8"])
def test_numbers_in_place_of_nan(call, dtype):
    a = values(dtype, 60).reshape(4, 15)
    if dtype != "int8":
        a[0, :4] = np.nan, np.inf, -np.inf, -0.0
    for x in (a, a[:, ::-2], a[0, 0]):
        ours = nd.array(x, device="cpu")
        same(call(lambda: nd.nan_to_num(ours)), np.asarray(np.nan_to_num(x)))  # noqa: B023
        same(call(lambda: nd.nan_to_num(ours, nan=2.0, posinf=3.0)), np.asarray(np.nan_to_num(x, True, 2.0, 3.0)))  # noqa: B023


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_extremes_without_nan(dtype):
    """Where no element is NaN the extremes are those of all; one NaN in one row is left out of that."""
    a = values(dtype, 60).reshape(4, 15)
    for place in (None, (2, 3), (2, slice(None))):
        if place is not None:
            a[place] = np.nan
        x = nd.array(a, device="cpu")
        for name in ("nanmin", "nanmax"):
            for axis in (None, 0, 1):
                with (
                    np.errstate(all="ignore"),
                    pytest.warns(RuntimeWarning) if place == (2, slice(None)) and axis == 1 else nullcontext(),
                ):
                    same(getattr(nd, name)(x, axis), np.asarray(getattr(np, name)(a, axis)))


def test_what_numpy_lacks_is_computed_without_it():
    x = nd.array([1.0, 2.0], dtype="bfloat16", device="cpu")
    assert _native.by_numpy("packbits", x) is None
    assert _native.by_numpy("no_such_function", nd.array([1], device="cpu")) is None
    assert x.byteswap().byteswap().tolist() == [1.0, 2.0]


def test_numpy_warns_of_nothing_and_keeps_its_settings():
    x, large = nd.array([1.0, 2.0], device="cpu"), nd.full(2, 5000, "int32", device="cpu")
    with np.errstate(all="raise", under="warn"):
        before = np.geterr()
        assert nd.ldexp(x, large).tolist() == [float("inf")] * 2
        with pytest.raises(TypeError, match="no_such_keyword"):
            _native.by_numpy("ldexp", x, large, no_such_keyword=1)
        assert np.geterr() == before


FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int16", "int32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_frexp_and_ldexp(call, dtype):
    least = np.finfo(dtype).smallest_subnormal
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, least, 3 * least, 1, -0.75, np.finfo(dtype).max], dtype)
    for a in (special, np.tile(special, 30).reshape(20, 15).T[::2], special[:0]):
        x = nd.array(a, device="cpu")
        mantissa, exponent = call(lambda x=x: nd.frexp(x))
        wanted = np.frexp(a)
        same(mantissa, wanted[0])
        finite = np.isfinite(a)  # of the others NumPy says what C's function leaves there
        np.testing.assert_array_equal(np.asarray(exponent)[finite], wanted[1][finite])
        with np.errstate(all="ignore"):
            for k in (0, 3, -4):
                same(
                    call(lambda x=x, k=k: nd.ldexp(x, nd.full(x.shape, k, "int32", device="cpu"))),
                    np.ldexp(a, np.full(a.shape, k)),
                )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_lcm_and_divmod(call, dtype):
    """From some thousand elements on by NumPy; a divisor of 0 gives 0, and no warning."""
    limits = np.iinfo(dtype)
    few = np.array([0, 1, 2, 6, 7, 12, limits.max, limits.min, limits.min + 1], dtype)
    pairs = np.array([(a, b) for a in few for b in few], dtype)
    for n in (len(pairs), 9000):
        a, b = np.resize(pairs[:, 0], n), np.resize(pairs[:, 1], n)
        x, y = nd.array(a, device="cpu"), nd.array(b, device="cpu")
        with np.errstate(all="ignore"):
            same(call(lambda x=x, y=y: nd.lcm(x, y)), np.lcm(a, b))
            for got, want in zip(call(lambda x=x, y=y: nd.divmod(x, y)), np.divmod(a, b), strict=True):
                same(got, want)
