"""Functions of elements that lie side by side, which a device computes in one pass: as NumPy, however operands lie."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import put

SPECIAL = [0.0, -0.0, 1, -1.5, np.inf, -np.inf, np.nan, 1e-310, -5e-324, 1.7e308, 1e-45, 3e38, 0.1, 1 / 3, 65504, 6e-8]
# What one thread or block takes in vectors, and its neighbours.
SIZES = (0, 1, 3, 4, 15, 16, 17, 31, 33, 255, 1025, 4097, 8191, 8193)
DTYPES = ("float16", "float32", "float64")
LAYOUTS = {
    "dense": lambda x: x,
    "unaligned": lambda x: x[1:],
    "strided": lambda x: x[::3],
    "reversed": lambda x: x[::-1],
    "transposed": lambda x: x[: x.size // 3 * 3].reshape(3, -1).T,
    "one": lambda x: x[:1].reshape(()) if x.size else x,
}


def numbers(n, dtype):
    x = np.random.default_rng(n).standard_normal(n) * 9
    x[: len(SPECIAL)] = SPECIAL[:n]
    with np.errstate(all="ignore"):
        return x.astype(dtype) if np.dtype(dtype).kind in "fc" else np.nan_to_num(x, posinf=7, neginf=0).astype(dtype)


def check(got, want):
    want = np.asarray(want)
    assert (got.dtype, got.shape) == (str(want.dtype), want.shape)
    np.testing.assert_array_equal(nd.asnumpy(got), want)
    if want.dtype.kind == "f":
        there = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(nd.asnumpy(got))[there], np.signbit(want)[there])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["frexp", "modf"])
def test_floats_are_taken_apart_however_they_lie(name, dtype, layout, device):
    for n in SIZES:
        x = numbers(n, dtype)
        got = getattr(nd, name)(LAYOUTS[layout](put(x, device)))
        for part, want in zip(got, getattr(np, name)(LAYOUTS[layout](x)), strict=True):
            check(part, want)


@pytest.mark.parametrize("name", ["frexp", "modf"])
def test_the_parts_of_floats_lie_as_these_do(name, device):
    x = put(np.arange(12.0).reshape(3, 4), device).T
    assert [part.strides for part in getattr(nd, name)(x)][1] == tuple(
        s // 8 * (4 if name == "frexp" else 8) for s in x.strides
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64", *DTYPES])
def test_divmod_gives_both_results_however_operands_lie(dtype, device):
    with np.errstate(all="ignore"):
        for layout in LAYOUTS.values():
            for n in SIZES:
                x, y = layout(numbers(n, dtype)), layout(numbers(n, dtype)[::-1].copy())
                got = nd.divmod(layout(put(numbers(n, dtype), device)), layout(put(numbers(n, dtype)[::-1], device)))
                for part, want in zip(got, np.divmod(x, y), strict=True):
                    check(part, want)
        x, y = numbers(40, dtype), numbers(7, dtype)
        got = nd.divmod(put(x, device)[:, None], put(y, device))
        for part, want in zip(got, np.divmod(x[:, None], y), strict=True):
            check(part, want)


def near(x, dtype):
    """x, and what is beside it: a unit, a hundred thousandth, much."""
    with np.errstate(all="ignore"):
        y = x.copy()
        y[1::4] = np.nextafter(y[1::4].real, 9).astype(dtype)
        y[2::4] *= np.asarray(1 + 1e-5).astype(dtype)
        y[3::4] += np.asarray(1).astype(dtype)
        return y


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_isclose_is_that_of_numpy_however_operands_lie(dtype, layout, device):
    with np.errstate(all="ignore"):
        for n in SIZES:
            x = numbers(n, dtype)
            y = near(x, dtype)
            for keywords in ({}, {"equal_nan": True}, {"rtol": 0.1, "atol": 0}, {"rtol": 0, "atol": -1}, {"rtol": 1}):
                got = nd.isclose(LAYOUTS[layout](put(x, device)), LAYOUTS[layout](put(y, device)), **keywords)
                check(got, np.isclose(LAYOUTS[layout](x), LAYOUTS[layout](y), **keywords))


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
def test_isclose_broadcasts_and_takes_scalars(dtype, device):
    with np.errstate(all="ignore"):
        x = numbers(48, dtype).reshape(3, 16)
        y = near(x.reshape(-1), dtype).reshape(3, 16)
        a, b = put(x, device), put(y, device)
        if np.dtype(dtype).kind == "f":
            check(nd.isclose(a.T, b.T), np.isclose(x.T, y.T))
            check(nd.isclose(a[:, :1], b), np.isclose(x[:, :1], y))
            check(nd.isclose(a, b[1, 3:4]), np.isclose(x, y[1, 3:4]))
        check(nd.isclose(a, 1.0), np.isclose(x, 1.0))
        check(nd.isclose(1.0, b), np.isclose(1.0, y))
        check(nd.isclose(a[0, 7:], b[0, 7:], equal_nan=True), np.isclose(x[0, 7:], y[0, 7:], equal_nan=True))
        assert bool(nd.allclose(a[1], a[1])) and not bool(nd.allclose(a, b))
        tolerances = np.full(16, 0.5)
        check(nd.isclose(a[1], b[1], atol=put(tolerances, device)), np.isclose(x[1], y[1], atol=tolerances))


def test_isclose_of_two_dtypes_is_that_of_numpy(device):
    for first, second in (("float32", "float64"), ("float64", "float32"), ("int32", "float32"), ("int64", "int8")):
        x, y = numbers(40, first), numbers(40, second)
        with np.errstate(all="ignore"):
            check(nd.isclose(put(x, device), put(y, device), atol=-1), np.isclose(x, y, atol=-1))
            check(nd.isclose(put(x, device), put(y, device)), np.isclose(x, y))


def test_operands_of_isclose_that_do_not_broadcast_are_refused(device):
    with pytest.raises(ValueError, match="broadcast"):
        nd.isclose(nd.ones(3, device=device), nd.ones(4, device=device))
    with pytest.raises(ValueError, match="broadcast"):
        nd.divmod(nd.ones(3, device=device), nd.ones(4, device=device))


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "uint16"])
def test_bits_go_into_bytes_however_elements_lie(dtype, bitorder, device):
    for layout in LAYOUTS.values():
        for n in SIZES:
            x = np.random.default_rng(n).integers(0, 3, n).astype(dtype) * np.asarray(85).astype(dtype)
            got, want = layout(put(x, device)), layout(x)
            check(nd.packbits(got, bitorder=bitorder), np.packbits(want, bitorder=bitorder))
            if dtype == "uint8":
                check(nd.unpackbits(got, bitorder=bitorder), np.unpackbits(want, bitorder=bitorder))
    x = np.random.default_rng(1).integers(0, 2, (5, 24, 11)).astype(dtype)
    for axis in (0, 1, 2):
        packed = np.packbits(x, axis, bitorder)
        check(nd.packbits(put(x, device), axis, bitorder), packed)
        for count in (None, 7, 30, -2):
            check(
                nd.unpackbits(put(packed, device), axis, count, bitorder), np.unpackbits(packed, axis, count, bitorder)
            )


@pytest.mark.parametrize("shape", [(16,), (2, 13), (77, 13), (9, 1), (3, 4, 5), (40, 17), (6, 31), (6, 32), (5, 2, 33)])
def test_bits_along_an_axis_are_those_of_numpy_and_lie_as_they_do(shape):
    values = np.random.default_rng(7).integers(0, 256, shape).astype("uint8")
    for x in (values, np.asfortranarray(values), np.repeat(values, 2, -1)[..., ::2], values[::-1]):
        for axis in range(-x.ndim, x.ndim):
            for order in ("big", "little"):
                for of_dtype in (x, x.astype("int64"), x > 99):
                    lies_alike(
                        nd.packbits(nd.asarray(of_dtype, device="cpu"), axis, order), np.packbits(of_dtype, axis, order)
                    )
                for count in (None, 0, 1, 7, 8, 9, 30, 400, -1, -8):
                    got = nd.unpackbits(nd.asarray(x, device="cpu"), axis, count, order)
                    lies_alike(got, np.unpackbits(x, axis, count, order))


def lies_alike(got, want):
    check(got, want)
    flags = np.asarray(got).flags
    assert (flags.c_contiguous, flags.f_contiguous) == (want.flags.c_contiguous, want.flags.f_contiguous)


def test_bits_of_an_empty_axis_are_zeros(device):
    for shape in ((0, 4), (4, 0)):
        bits = nd.unpackbits(nd.zeros(shape, "uint8", device=device), shape.index(0), 9)
        assert bits.sum() == 0 and bits.size == 36


def test_bits_along_an_axis_are_refused_clearly(device):
    x = nd.zeros((2, 3), "uint8", device=device)
    with pytest.raises(ValueError, match=r"unpackbits\(\): count is -25, and there are 24 bits"):
        nd.unpackbits(x, 1, -25)
    with pytest.raises(IndexError, match=r"packbits\(\): axis 2"):
        nd.packbits(x, 2)
    with pytest.raises(IndexError, match=r"unpackbits\(\): axis -3"):
        nd.unpackbits(x, -3)
    with pytest.raises(ValueError, match="bitorder"):
        nd.packbits(x, 0, "middle")
    with pytest.raises(TypeError, match=r"unpackbits\(\): the array is int8"):
        nd.unpackbits(x.astype("int8"), 0)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
@pytest.mark.parametrize("repeated", [(True, False), (False, True), (True, True)], ids=["first", "second", "both"])
def test_of_two_operands_each_may_be_one_element_for_all(repeated, dtype, device):
    n = 1025
    theirs = [numbers(n, dtype)[20:] + (3 if k else 0) for k in range(2)]
    theirs[1][theirs[1] == 0] = 3
    ours = [put(x, device) for x in theirs]
    for k in range(2):
        if repeated[k]:
            theirs[k] = np.broadcast_to(theirs[k][:1], theirs[k].shape)
            ours[k] = nd.broadcast_to(ours[k][:1], ours[k].shape)
    with np.errstate(all="ignore"):
        for got, want in zip(nd.divmod(*ours), np.divmod(*theirs), strict=True):
            check(got, want)
        check(nd.isclose(*ours), np.isclose(*theirs))
