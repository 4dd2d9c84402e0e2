"""Functions that the host computes in one pass of its own, where devices put kernels together: as NumPy, and as the
general way where the pass does not serve."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import COMPLEX, FLOATS, INTS, NUMPY_DTYPES

SIZES = (0, 1, 17, 300)
LAYOUTS = {
    "dense": lambda x: x,
    "strided": lambda x: np.repeat(x, 2)[::2],
    "reversed": lambda x: x[::-1],
    "odd": lambda x: np.frombuffer(b"-" + x.tobytes(), "u1")[1:].view(x.dtype),  # at an odd address
}


def pair(x, layout="dense"):
    """(NumPy's, ours), each with memory of its own."""
    theirs = LAYOUTS[layout](x.copy())
    ours = nd.from_dlpack(LAYOUTS[layout](x.copy())) if layout != "odd" else odd(x)
    return theirs, ours


def odd(x):
    room = nd.empty(x.nbytes + 1, "uint8", device="cpu")[1:]
    room[...] = nd.array(np.frombuffer(x.tobytes(), "u1"), device="cpu")
    return room.view(str(x.dtype))


def same(got, want):
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    assert (got.dtype, got.shape) == (str(want.dtype), want.shape)
    np.testing.assert_array_equal(nd.asnumpy(got), want)


def numbers(n, dtype, low=0, high=100):
    return np.random.default_rng(n).integers(low, high, n).astype(dtype)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip", ("clip", "wrap")])
@pytest.mark.parametrize("dtype", ["bool", *INTS])
def test_positions_are_those_of_numpy_in_every_mode(dtype, mode):
    for n, layout in [(n, layout) for n in SIZES for layout in LAYOUTS]:
        b, x = pair(numbers(n, dtype), layout)
        dims = (101, 120) if mode == "raise" else (7, 9)
        for order in "CF":
            same(nd.ravel_multi_index((x, x), dims, mode, order), np.ravel_multi_index((b, b), dims, mode, order))
            same(nd.unravel_index(x, (5, 3, 9), order), np.unravel_index(b, (5, 3, 9), order))
    if np.dtype(dtype).kind == "i" and mode != "raise":
        b, x = pair(numbers(40, dtype, -100, 100))
        same(nd.ravel_multi_index((x, x), (7, 9), mode), np.ravel_multi_index((b, b), (7, 9), mode))


def test_positions_of_one_axis_and_of_tables():
    b, x = pair(numbers(24, "int64", 0, 5).reshape(4, 6))
    same(nd.ravel_multi_index((x,), (5,)), np.ravel_multi_index((b,), (5,)))
    same(nd.ravel_multi_index((x, x[0]), (5, 5)), np.ravel_multi_index((b, b[0]), (5, 5)))
    same(nd.unravel_index(x, (5,)), np.unravel_index(b, (5,)))
    same(nd.unravel_index(x.T, (2, 3)), np.unravel_index(b.T, (2, 3)))
    large = np.array([2**62, 2**62 - 1, 5])
    same(
        nd.unravel_index(nd.asarray(large, device="cpu"), (2**31, 2**31 + 7)),
        np.unravel_index(large, (2**31, 2**31 + 7)),
    )


@pytest.mark.parametrize(
    "refused",
    [
        lambda i: nd.ravel_multi_index((i, i), (2, 9)),
        lambda i: nd.ravel_multi_index((-i, i), (9, 9)),
        lambda i: nd.ravel_multi_index((i, i), (0, 9)),
        lambda i: nd.ravel_multi_index((i, i), (2**40, 2**40)),
        lambda i: nd.ravel_multi_index((i, i), (9,)),
        lambda i: nd.ravel_multi_index((i, i), (9, 9), "other"),
        lambda i: nd.unravel_index(i, (2,)),
        lambda i: nd.unravel_index(-i, (9, 9)),
        lambda i: nd.unravel_index(i, (0, 9)),
        lambda i: nd.bincount(-i),
        lambda i: nd.bincount(i, minlength=-1),
        lambda i: nd.bincount(i, nd.zeros(3, device="cpu")),
        lambda i: nd.choose(i, [i, i]),
        lambda i: nd.put(nd.zeros(2, device="cpu"), i, i),
        lambda i: nd.put(nd.zeros(2, device="cpu"), i, nd.zeros(2, device="cpu")),
        lambda i: nd.put(nd.zeros(2, device="cpu"), i, i, "other"),
        lambda i: nd.put(nd.broadcast_to(nd.zeros(1, "int64", device="cpu"), (9,)), i, i),
        lambda i: nd.putmask(i, i > 1, nd.zeros(4, device="cpu")),
        lambda i: nd.place(i, i > 1, i[:0]),
        lambda i: nd.copyto(i, i + 1, "other", where=i > 1),
        lambda i: nd.delete(i, 4),
        lambda i: nd.delete(i, [0, -5]),
        lambda i: nd.delete(i, nd.zeros(3, "bool", device="cpu")),
        lambda i: nd.delete(i, 0, axis=1),
        lambda i: nd.insert(i, 5, 1),
        lambda i: nd.insert(i, [0, -5], 1),
        lambda i: nd.insert(i, 0, 1, axis=1),
        lambda i: nd.vecdot(i, i[:2]),
        lambda i: nd.vecdot(i, i[0]),
        lambda i: nd.vecdot(i, i, axis=1),
        lambda i: nd.frombuffer(b"12345", "int32"),
        lambda i: nd.frombuffer(b"12345678", "int32", 3),
        lambda i: nd.frombuffer(b"12345678", "int32", 1, 9),
    ],
)
def test_what_does_not_exist_is_refused_and_nothing_written(refused):
    i = nd.array([0, 1, 2, 3], device="cpu")
    with pytest.raises((ValueError, IndexError, TypeError)):
        refused(i)
    assert i.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", INTS)
def test_bincount_counts_and_sums_weights(dtype):
    for n, layout in [(n, layout) for n in SIZES for layout in LAYOUTS]:
        b, x = pair(numbers(n, dtype), layout)
        b = b.astype("int64")  # NumPy refuses uint64
        same(nd.bincount(x), np.bincount(b))
        same(nd.bincount(x, minlength=200), np.bincount(b, minlength=200))
        for weights in ("float64", "float32", "int16", "bool"):
            w, y = pair(numbers(n, weights), layout)
            same(nd.bincount(x, y), np.bincount(b, w))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_assignments_at_positions_and_by_masks(dtype, layout):
    for n in SIZES[1:]:
        m = numbers(n, "bool", 0, 2)
        mask = nd.array(m, device="cpu")
        for few in (n, 1, min(n, 5)):
            for positions in (
                numbers(2 * n, "int64", -n, n),
                numbers(n, "int64", 0, n),
                numbers(n, "uint8", 0, min(n, 99)),
            ):
                for mode in ("raise", "wrap", "clip"):
                    p = positions if mode == "raise" else positions.astype("int64") * 3 - 5
                    a, x = pair(numbers(n, dtype), layout)
                    v, y = pair(numbers(few, dtype)[::-1], layout)
                    a = a.copy()
                    np.put(a, p, v, mode)
                    nd.put(x, nd.array(p, device="cpu"), y, mode)
                    same(x, a)
            for name in ("place", "putmask"):
                a, x = pair(numbers(n, dtype), layout)
                v, y = pair(numbers(few, dtype)[::-1], layout)
                a = a.copy()
                getattr(np, name)(a, m, v)
                getattr(nd, name)(x, mask, y)
                same(x, a)
        a, x = pair(numbers(n, dtype), layout)
        v, y = pair(numbers(n, dtype)[::-1], layout)
        a = a.copy()
        np.copyto(a, v, where=m)
        nd.copyto(x, y, where=mask)
        same(x, a)


@pytest.mark.parametrize(
    ("write", "want"),
    [
        (lambda a: nd.put(a, nd.array([3, 2, 1, 0], device="cpu"), a), [0, 6, 1, 3]),
        (lambda a: nd.putmask(a, a > 2, a[::-1]), [0, 1, 1, 0]),
        (lambda a: nd.place(a, a > 2, a[::-1]), [0, 1, 6, 0]),
        (lambda a: nd.copyto(a, a[::-1], where=a > 2), [0, 1, 1, 0]),
        (lambda a: nd.put(a[::2], nd.array([1, 0], device="cpu"), a[1:3]), [6, 1, 1, 0]),
    ],
)
def test_values_are_read_before_they_are_overwritten(write, want):
    a = nd.array([3, 1, 6, 0], device="cpu")
    write(a)
    assert a.tolist() == want


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_choose_among_arrays(dtype):
    for n in SIZES:
        q, v = numbers(n, dtype), numbers(n, dtype)[::-1].copy()
        ours = [nd.array(x, device="cpu") for x in (q, v, q)]
        for kind in ("bool", "int64", "uint8"):
            k = numbers(n, kind, 0, 3 if kind != "bool" else 2)
            same(nd.choose(nd.array(k, device="cpu"), ours), np.choose(k, [q, v, q]))
        k = numbers(n, "int64", -9, 9)
        for mode in ("wrap", "clip"):
            same(nd.choose(nd.array(k, device="cpu"), ours, mode), np.choose(k, [q, v, q], mode=mode))


PLACES = [0, -1, 3, [0, 2], [], [1, 1, -1], slice(1, None, 2), slice(None, None, -3), slice(4, 1), np.array([2, 0])]


@pytest.mark.parametrize("places", [*PLACES, np.array([], int), np.array([2], "uint8"), np.array(1)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64", "complex128"])
def test_rows_are_left_out(dtype, places):
    ours = nd.array(places, device="cpu") if isinstance(places, np.ndarray) else places
    for shape, axis in [((7,), None), ((7,), 0), ((5, 4, 6), 1), ((5, 4, 6), -1), ((5, 6), None), ((4, 0), 0)]:
        a = numbers(int(np.prod(shape)), dtype).reshape(shape)
        for view in (lambda x: x, lambda x: x.T, lambda x: x[::-1]):
            if axis is not None and view(a).shape[axis] < 4:
                continue
            x = view(nd.array(a, device="cpu"))
            same(nd.delete(x, ours, axis), np.delete(view(a), places, axis))


def test_rows_are_left_out_by_a_mask():
    for n in SIZES:
        m = numbers(n, "bool", 0, 2)
        a = numbers(n, "float32")
        same(nd.delete(nd.array(a, device="cpu"), nd.array(m, device="cpu")), np.delete(a, m))
        t = numbers(3 * n, "int16").reshape(3, n)
        same(nd.delete(nd.array(t, device="cpu"), nd.array(m, device="cpu"), 1), np.delete(t, m, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_rows_are_chosen_by_a_vector_of_bools(dtype, layout):
    for n in SIZES:
        m, mask = pair(numbers(n, "bool", 0, 2), layout)
        a, x = pair(numbers(n, dtype), layout)
        same(nd.compress(mask, x), np.compress(m, a))
        same(nd.compress(mask[: n // 2], x), np.compress(m[: n // 2], a))
        same(nd.extract(mask, x), np.extract(m, a))
        t, y = pair(numbers(3 * n, dtype).reshape(3, n))
        same(nd.compress(mask, y, 1), np.compress(m, t, 1))
        same(nd.compress(mask[:2], y, 0), np.compress(m[:2], t, 0))
        out = nd.empty((3, int(m.sum())), "complex128", device="cpu")
        same(nd.compress(mask, y, 1, out), np.compress(m, t, 1).astype("complex128"))
        assert nd.compress(mask, y, 1, out) is out
    with pytest.raises(IndexError):
        nd.compress(nd.ones(5, "bool", device="cpu"), nd.zeros(4, dtype, device="cpu"))


@pytest.mark.parametrize("value", [7, -1.5, 300, True, np.array(2.5), 2**40 + 1])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "float16", "float32", "float64", "complex64"])
def test_rows_of_a_number_are_put_in(dtype, value):
    ours = nd.array(value, device="cpu") if isinstance(value, np.ndarray) else value
    for shape, axis in [((7,), None), ((7,), 0), ((5, 4, 6), 1), ((5, 4, 6), -1), ((5, 6), None)]:
        a = numbers(int(np.prod(shape)), dtype).reshape(shape)
        for places in (0, -1, 3, [0, 2], [1, 3, 1, -1]):
            want = np.insert(a, places, np.asarray(value).astype(dtype), axis)
            same(nd.insert(nd.array(a, device="cpu"), places, ours, axis), want)


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    np.inf,
    -np.inf,
    np.nan,
    1e-310,
    -5e-324,
    1.7e308,
    2.0**-1022,
    1e-45,
    3e38,
    0.1,
    1 / 3,
    65504,
    6e-8,
]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_taken_apart_and_put_together(dtype):
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(dtype)
        x = nd.array(values, device="cpu")
        for name in ("frexp", "modf"):
            got, want = getattr(nd, name)(x), getattr(np, name)(values)
            same(got, tuple(want))
            for one, other in zip(got, want, strict=True):
                assert np.signbit(nd.asnumpy(one)).tolist() == np.signbit(other).tolist()
        for kind in ("int32", "int64", "int8"):
            for k in (
                0,
                1,
                -1,
                24,
                -24,
                100,
                -100,
                127,
                -126,
                1000,
                -1000,
                2090,
                -2097,
                5000,
                -5000,
                2**31 - 1,
                -(2**31),
            ):
                if not np.iinfo(kind).min <= k <= np.iinfo(kind).max:
                    continue
                e = np.full(values.shape, k, kind)
                got, want = nd.ldexp(x, nd.array(e, device="cpu")), np.ldexp(values, e)
                same(got, want)
                assert np.signbit(nd.asnumpy(got)).tolist() == np.signbit(want).tolist()
        many = np.random.default_rng(1).standard_normal(500).astype(dtype)
        e = np.random.default_rng(2).integers(-1200, 1200, 500)
        same(nd.ldexp(nd.array(many, device="cpu"), nd.array(e, device="cpu")), np.ldexp(many, e))
        same(nd.ldexp(nd.array(many, device="cpu")[::3], nd.array(e, device="cpu")[::3]), np.ldexp(many[::3], e[::3]))


@pytest.mark.parametrize(
    "keywords", [{}, {"nan": 1}, {"posinf": 2.5, "neginf": -3}, {"nan": -1.0, "posinf": 7}], ids=str
)
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_special_values_are_replaced(dtype, keywords):
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL * 2).astype(dtype)
        if dtype in COMPLEX:
            values = values + 1j * values[::-1]
        for view in (lambda x: x, lambda x: x[::-2], lambda x: x.reshape(2, -1).T):
            a, x = view(values.copy()), view(nd.array(values, device="cpu"))
            same(nd.nan_to_num(x, **keywords), np.nan_to_num(a, **keywords))
            nd.nan_to_num(x, False, **keywords)
            same(x, np.nan_to_num(a, False, **keywords))


@pytest.mark.parametrize("dtypes", [("float64",) * 3, ("float32", "float64", "int32"), ("int64", "uint8", "bool")])
def test_interp_of_real_arrays(dtypes):
    for n, knots in [(0, 3), (1, 1), (17, 5), (300, 40)]:
        x, y = (numbers(k, t) for k, t in ((n, dtypes[0]), (knots, dtypes[2])))
        xp = np.unique(numbers(3 * knots, dtypes[1]))[:knots]
        y = y[: xp.size]
        ours = [nd.array(a, device="cpu") for a in (x, xp, y)]
        for ends in ((), (-1, None), (None, 2.5), (True, np.float64(3))):
            np.testing.assert_allclose(nd.asnumpy(nd.interp(*ours, *ends)), np.interp(x, xp, y, *ends), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex128", "bool"])
def test_products_of_vectors_and_on_axes(dtype, device):
    def array(*shape):
        return numbers(int(np.prod(shape)), dtype, -4, 5).reshape(shape) + (1j if dtype[0] == "c" else 0)

    def ours(x):
        return nd.array(x.astype(dtype), device=device)

    for one, other, axis in [
        ((5,), (5,), -1),
        ((3, 5), (3, 5), -1),
        ((3, 5), (5,), -1),
        ((2, 1, 4), (3, 4), -1),
        ((5, 3), (5, 3), 0),
    ]:
        a, b = array(*one).astype(dtype), array(*other).astype(dtype)
        np.testing.assert_allclose(nd.asnumpy(nd.vecdot(ours(a), ours(b), axis=axis)), np.vecdot(a, b, axis=axis))
    for one, other, axes in [
        ((3, 4), (5, 4), [(0, 1), (1, 0), (1, 0)]),
        ((5, 2, 3), (3, 4, 5), [(1, 2), (0, 1), (2, 0)]),
        ((3, 4, 5), (4,), [(0, 1), 0, 1]),
        ((4,), (4,), [0, (0,), ()]),
        ((4,), (2, 4), [-1, (-1, -2), -1]),
        ((2, 3, 4), (4, 3), [(-2, -1), (0, 1), (-1, 0)]),
    ]:
        a, b = array(*one).astype(dtype), array(*other).astype(dtype)
        got, want = nd.asnumpy(nd.matmul(ours(a), ours(b), axes=axes)), np.matmul(a, b, axes=axes)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want)


def test_frombuffer_shares_bytes():
    data = bytearray(range(48))
    for keywords in ({}, {"count": 3}, {"offset": 8}, {"offset": 3, "count": 2}, {"count": 0}):
        for dtype in ("uint8", "int16", "float32", "complex128"):
            if keywords in ({"offset": 8},) and dtype == "complex128":
                continue
            want = np.frombuffer(data, dtype, **keywords)
            for source in (data, bytes(data), memoryview(data)):
                got = nd.frombuffer(source, dtype, device="cpu", **keywords)
                assert (got.dtype, got.shape) == (dtype, want.shape) and nd.asnumpy(got).tobytes() == want.tobytes()
    x = nd.frombuffer(data, "int16", device="cpu", offset=2)
    x[0] = -1
    assert data[2:4] == b"\xff\xff"
    with pytest.raises(BufferError):
        data.append(1)
    assert not nd.frombuffer(bytes(data), "int16", device="cpu")._flags[2]


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("dtype", ["bool", *INTS])
def test_bits_in_bytes(dtype, bitorder):
    for n, layout in [(n, layout) for n in (*SIZES, 7, 8, 9, 64) for layout in LAYOUTS]:
        b, x = pair(numbers(n, dtype, 0, 3) * np.array(85, dtype), layout)
        same(nd.packbits(x, bitorder=bitorder), np.packbits(b, bitorder=bitorder))
        if dtype == "uint8":
            same(nd.unpackbits(x, bitorder=bitorder), np.unpackbits(b, bitorder=bitorder))
    t = numbers(24, "uint8", 0, 256).reshape(4, 6)
    same(nd.unpackbits(nd.array(t, device="cpu"), bitorder=bitorder), np.unpackbits(t, bitorder=bitorder))
    same(nd.packbits(nd.array(t, device="cpu").T, bitorder=bitorder), np.packbits(t.T, bitorder=bitorder))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_digitize_by_edges_in_either_direction(dtype):
    x = numbers(50, dtype, 0, 9)
    for edges in ([], [3], [1, 4, 6], [6, 4, 1], [2, 2, 5], [5, 2, 2], [3, 3, 3]):
        for right in (False, True):
            b = np.array(edges).astype(dtype)
            same(nd.digitize(*(nd.array(a, device="cpu") for a in (x, b)), right), np.digitize(x, b, right))
    for edges in ([1, 4, 2], [4, 1, 1, 2]):
        with pytest.raises(ValueError, match="neither"):
            nd.digitize(nd.array(x, device="cpu"), nd.array(edges, "float64", device="cpu"))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    "dtypes",
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("int32", "int32"),
        ("uint64", "uint64"),
        ("int64", "float64"),
        ("int8", "int64"),
        ("complex64", "float32"),
    ],
)
def test_products_with_parts_of_a_vector(dtypes, mode):
    for n, m in [(1, 1), (1, 2), (16, 16), (17, 1), (17, 3), (1023, 5), (1024, 32), (1030, 33), (5000, 12)]:
        a, v = numbers(n, dtypes[0], -5, 6), numbers(m, dtypes[1], -5, 6)
        for left, right in ((a, v), (v, a), (a[::-1], v)):
            x, y = (nd.array(b, device="cpu") for b in (left, right))
            same(nd.convolve(x, y, mode), np.convolve(left, right, mode))
            same(nd.correlate(x, y, mode), np.correlate(left, right, mode))
    large = np.array([2**31 - 1, 2**31 - 1, 7], "int32")
    x = nd.array(large, device="cpu")
    same(nd.convolve(x, x, mode), np.convolve(large, large, mode))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint32", "float16", "float32", "float64"])
def test_ldexp_of_any_layout(dtype):
    for n in SIZES:
        for kind in ("int8", "int32", "int64"):
            k = numbers(2 * n, kind, -20, 20)
            a = numbers(2 * n, dtype)
            x, exponents = nd.array(a, device="cpu"), nd.array(k, device="cpu")
            for view in (lambda x: x, lambda x: x[::2], lambda x: x[::-1], lambda x: x.reshape(2, -1).T):
                got, want = nd.ldexp(view(x), view(exponents)), np.ldexp(view(a), view(k))
                same(got, want)
                assert got.strides == want.strides or want.size == 0
