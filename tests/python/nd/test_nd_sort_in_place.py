"""x.sort() and x.partition(): rows where they lie, block by block, as NumPy has them."""

import numpy as np
import pytest
from dlbridge import nd

DTYPES = ("bool", "uint8", "int16", "float16", "int32", "float32", "float64", "uint64", "complex64", "complex128")
LAYOUTS = {
    "dense": lambda x: x,
    "strided": lambda x: x[:, ::2],
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, ::-1],
    "many dims": lambda x: x.reshape(-1, 5, x.shape[1])[:, :3],
}


def values(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 250, shape).astype(dtype)
    if x.dtype.kind in "fc":
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.05] = -0.0
    return x


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 8), (255, 700), (40, 5000)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_sorted_where_they_lie(dtype, shape, layout, axis, device):
    x = values(dtype, shape)
    whole = nd.array(x, device=device)
    LAYOUTS[layout](whole).sort(axis=axis)
    LAYOUTS[layout](x).sort(axis=axis)
    np.testing.assert_array_equal(nd.asnumpy(whole), x)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d[0] != "c"])
def test_partition_in_place_puts_the_kth_where_it_stands_sorted(dtype, device):
    x = values(dtype, (7, 900))
    ours = nd.array(x, device=device)
    ours.partition(400)
    got, want = nd.asnumpy(ours), np.sort(x)
    np.testing.assert_array_equal(got[:, 400], want[:, 400])
    np.testing.assert_array_equal(np.sort(got), want)
    with pytest.raises(nd.AxisError, match="axis"):
        ours.partition(1, axis=2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_rows_in_order_stay_and_nan_behind_them_is_no_order(dtype, device):
    x = np.sort(values(dtype, (3, 300)))
    x[1] = x[1, ::-1].copy()
    for row in range(3):
        ours = nd.array(x[row], device=device)
        ours.sort()
        np.testing.assert_array_equal(nd.asnumpy(ours), np.sort(x[row]))


@pytest.mark.parametrize("width", [3, 7, 17, 40, 63])
@pytest.mark.parametrize("kind", ["values", "few", "in order", "last row falls", "all bits", "low bits decide"])
def test_positions_of_many_short_rows_are_in_order_and_equals_keep_theirs(kind, width, device):
    rng, rows = np.random.default_rng(3), 700
    wide = rng.integers(-(2**62), 2**62, (rows, width))
    if kind == "in order" or kind == "last row falls":
        wide.sort(axis=1)
        if kind == "last row falls":
            wide[-1] = wide[-1, ::-1].copy()
    elif kind == "low bits decide":
        wide = np.where(rng.random(wide.shape) < 0.8, 7 + rng.integers(0, 3, wide.shape), wide)
    for dtype in ("int64", "uint64", "float64", "int32", "float32", "uint8"):
        x = rng.integers(0, 5, wide.shape) if kind == "few" else wide if kind != "values" else wide % 1000
        x = x.astype(dtype)
        got = nd.argsort(nd.array(x, device=device), axis=1, stable=True)
        np.testing.assert_array_equal(nd.asnumpy(got), np.argsort(x, axis=1, kind="stable"), dtype)


def test_a_view_without_its_odd_bytes_is_sorted_as_truth_values(device):
    x = np.array([3, 0, 255, 0, 1], np.uint8)
    ours = nd.array(x, device=device).view("bool")
    ours.sort()
    assert nd.asnumpy(ours.view("uint8")).tolist() == [0, 0, 1, 1, 1]
    assert nd.asnumpy(nd.sort(ours, descending=True)).tolist() == [True, True, True, False, False]


def test_what_is_read_only_is_not_sorted(device):
    with pytest.raises(ValueError, match="read-only"):
        nd.broadcast_to(nd.arange(3, device=device), (4, 3)).sort()
    with pytest.raises(ValueError, match="kind"):
        nd.arange(3, device=device).sort(kind="bogo")
