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
