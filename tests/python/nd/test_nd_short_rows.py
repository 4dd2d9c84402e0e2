"""Rows shorter than the blocks that the host computes in, and what functions give outside of what they are made for."""

import numpy as np
import pytest
from dlbridge import nd

ROWS = (1, 2, 7, 8, 9, 13, 15, 16, 17, 31, 63, 64, 65, 72, 100, 128, 129)
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")
LAYOUTS = {
    "gapped": lambda x, n: x[:, 1 : n + 1],
    "strided": lambda x, n: x[:, : 2 * n : 2],
    "reversed": lambda x, n: x[:, n:0:-1],
    "transposed": lambda x, n: x[:, :n].T,
    "row": lambda x, n: x[0, :n],
    "column": lambda x, n: x[:, :1],
    "number": lambda x, n: x[1, 2],
}


def numbers(dtype, shape, seed=0):
    return np.random.default_rng(seed).integers(1, 9, shape).astype(dtype)


def pairs(dtype, n, device):
    """Operands of n columns in each layout beside a gapped one: NumPy's and ours."""
    x, y = numbers(dtype, (41, 2 * n + 3)), numbers(dtype, (41, 2 * n + 3), 1)
    ours = nd.array(x, device=device), nd.array(y, device=device)
    for name, view in LAYOUTS.items():
        first = LAYOUTS["transposed" if name == "transposed" else "gapped"]
        yield [first(x, n), view(y, n)], [first(ours[0], n), view(ours[1], n)]


def same(got, want):
    assert got.dtype == str(want.dtype)
    np.testing.assert_array_equal(nd.asnumpy(got), want)


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_function_of_short_rows_is_that_of_lines(dtype, n, device):
    """The same bits, wherever an element lies: those of a row as those of a line with all of them."""
    names = ["logical_or", "multiply", "equal"]
    names += [] if dtype == "bool" else ["subtract", "power", "divide"]
    names += ["maximum"] if dtype != "complex64" else []
    names += ["arctan2", "hypot", "copysign", "nextafter", "exp", "tanh", "sinc"] if dtype.startswith("float") else []
    names += ["left_shift", "right_shift", "bitwise_count"] if dtype in ("uint8", "int32", "int64") else []
    for theirs, ours in pairs(dtype, n, device):
        lines = [nd.array(x.ravel(), device=device) for x in np.broadcast_arrays(*theirs)]
        for name in names:
            function = getattr(nd, name)
            line = nd.asnumpy(function(*lines[: function.nin])).reshape(theirs[0].shape)
            got = nd.asnumpy(function(*ours[: function.nin]))
            assert got.dtype == line.dtype and got.tobytes() == line.tobytes(), name


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_short_rows_are_cast_and_written_in_place(dtype, n, device):
    for view in (LAYOUTS["gapped"], LAYOUTS["strided"], LAYOUTS["reversed"]):
        x = numbers(dtype, (41, 2 * n + 3))
        ours = nd.array(x, device=device)
        for other in DTYPES:
            if dtype != "complex64" or other == "complex64":
                same(view(ours, n).astype(other), view(x, n).astype(other))
        if dtype == "bool":
            continue
        for width in (np.float64, np.int64):
            if np.can_cast(width, dtype, "same_kind"):
                added = np.arange(n).astype(width)
                view(x, n)[...] += added
                view(ours, n)[...] = view(ours, n) + nd.array(added, device=device)
                same(ours, x)
        view(x, n)[...] *= view(x, n)
        part = view(ours, n)
        part *= part
        same(ours, x)


EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    2.0,
    np.inf,
    -np.inf,
    np.nan,
    88.0,
    -88.0,
    89.5,
    -104.5,
    128.0,
    -149.5,
    -150.0,
    151.0,
]
EDGES += [710.4, -710.4, 711.5, 1023.5, 1024.0, -745.1, -746.5, -1074.5, -1075.0, -1076.0, 1e30, -1e30, 3e38, 5e-324]
FUNCTIONS = (
    "arcsin arccos arctan arctanh arccosh arcsinh sinh cosh tanh sin cos tan exp exp2 expm1 log log2 log10 log1p"
)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", [*FUNCTIONS.split(), "cbrt"])
def test_arguments_outside_of_a_range_change_none_beside_them(name, dtype, device):
    """What the function of C gives for each, and where ordinary numbers lie beside it, their own values."""
    with np.errstate(all="ignore"):
        edges = np.array(EDGES, "float64").astype(dtype)
        plain = np.random.default_rng(0).uniform(0.1, 0.9, 600).astype(dtype) + (name == "arccosh")
        among = np.insert(plain, np.arange(len(edges)) * 19, edges)
        want = getattr(np, name)(among.astype("float64" if dtype != "float64" else "longdouble")).astype(dtype)
    got = nd.asnumpy(getattr(nd, name)(nd.array(among, device=device)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)
    alone = nd.asnumpy(getattr(nd, name)(nd.array(plain, device=device)))
    beside = np.delete(got, np.flatnonzero(np.isin(np.arange(among.size), np.arange(len(edges)) * 20)))
    np.testing.assert_array_equal(alone, beside)


def test_float16_has_the_neighbours_and_signs_of_its_bits(device):
    every = np.arange(1 << 16, dtype="uint16").view("float16")
    for other in (0.0, -0.0, 1.0, -np.inf, np.inf, np.nan, 6e-8, -65504.0):
        x, y = every, np.full(every.size, other, "float16")
        ours = nd.array(x, device=device), nd.array(y, device=device)
        with np.errstate(all="ignore"):
            want = np.where(x == y, y, np.nextafter(x, y))  # NumPy gives the first of two equal zeros
        got = nd.asnumpy(nd.nextafter(*ours))
        is_number = ~np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), ~is_number)
        np.testing.assert_array_equal(got.view("uint16")[is_number], want.view("uint16")[is_number])
        np.testing.assert_array_equal(nd.asnumpy(nd.signbit(ours[0])), np.signbit(x))  # that of a NaN, too
        for a, b in ((0, 1), (1, 0)):
            got = nd.asnumpy(nd.copysign(ours[a], ours[b]))
            want = np.copysign((x, y)[a], (x, y)[b])
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [5, 16, 31, 200])
def test_bools_of_any_byte_are_counted_squared_and_clipped_as_0_and_1(n, device):
    given = np.random.default_rng(n).choice(np.array([0, 1, 2, 255], "uint8"), (3, 40, n))
    bools = given.astype(bool)
    ours = [nd.array(part, device=device).view("bool") for part in given]
    same(nd.bitwise_count(ours[0]), np.bitwise_count(bools[0]))
    same(nd.bitwise_count(ours[0][:, ::-2]), np.bitwise_count(bools[0][:, ::-2]))
    same(nd.square(ours[0]), np.square(bools[0]))
    same(nd.clip(*ours), np.clip(*bools))
    same(nd.clip(*(x[:, ::2] for x in ours)), np.clip(*(x[:, ::2] for x in bools)))


OUTSIDE = {
    "arccosh": (0.5, -5, -np.inf), "arccos": (2, -1.0001, np.inf), "arcsin": (2, -1.0001, np.inf), "arctanh": (2, -3),
    "arcsinh": (np.inf, -np.inf), "cosh": (800, -np.inf), "sinh": (800, -np.inf), "tanh": (np.inf, -np.inf),
    "exp2": (2000, -2000), "expm1": (800, -np.inf), "log1p": (-2, -1e30), "log2": (-1, -1e-30), "log10": (-1, -np.inf),
    "sin": (np.inf, -np.inf), "cos": (np.inf, -np.inf), "tan": (np.inf, -np.inf),
}  # fmt: skip
NANS = {"float32": (0x7FC00123, 0xFFC00000, 0x7F800001), "float64": (0x7FF8000000000123, 0xFFF8000000000000)}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bits_of_a_result_do_not_hang_on_the_place(name, dtype):
    """Behind ordinary numbers, and where one of the first is such a number, too: NaN's sign, and what it carries."""
    bits = "uint32" if dtype == "float32" else "uint64"
    for value in (*np.array(OUTSIDE[name], dtype), *np.array(NANS[dtype], bits).view(dtype)):
        x = np.full(1000, 2.0 if name == "arccosh" else 0.5, dtype)
        x[700:] = value
        behind = nd.asnumpy(getattr(nd, name)(nd.array(x, device="cpu"))).view(bits)
        x[3] = value
        beside = nd.asnumpy(getattr(nd, name)(nd.array(x, device="cpu"))).view(bits)
        assert {*behind[700:], *beside[700:], beside[3]} == {behind[700]}, value
