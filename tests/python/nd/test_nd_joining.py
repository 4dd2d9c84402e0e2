"""concatenate() and stack() where a device makes the rows by one kernel: pieces of any length, stride and number."""

import numpy as np
import pytest
from dlbridge import nd

DTYPES = ["bool", "int16", "float32", "complex64", "complex128"]
LAYOUTS = {
    "dense": lambda x: x,
    "every second": lambda x: x[..., ::2],
    "reversed": lambda x: x[::-1, ..., ::-1],
    "rows with gaps": lambda x: x[:, :-1],
    "one row for all": lambda x: np.broadcast_to(x[:1], x.shape),
    "transposed": lambda x: x.swapaxes(0, -1),
}


def operands(layout, dtype, device, extents):
    """Arrays of NumPy's and of nd's, the second as the first lies."""
    sources = [np.arange(60 * n * 2).reshape(30, 2, 2 * n)[..., : 2 * n].astype(dtype) for n in extents]
    theirs = [LAYOUTS[layout](x) for x in sources]
    ours = []
    for source, x in zip(sources, theirs, strict=True):
        there = nd.asarray(source, device=device)
        offset = x.__array_interface__["data"][0] - source.__array_interface__["data"][0]
        ours.append(nd.lib.stride_tricks.as_strided(there.ravel()[offset // x.itemsize :], x.shape, x.strides))
    return theirs, ours


def check(found, wanted):
    assert (found.shape, str(found.dtype)) == (wanted.shape, str(wanted.dtype))
    assert nd.asnumpy(found).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "reversed"])
def test_pieces_of_each_part_make_the_rows(layout, dtype, device):
    for extents in ((1, 1), (1, 3, 2), (5,) * 4, (300, 2), (1,) * 16, (1,) * 17):
        theirs, ours = operands(layout, dtype, device, extents)
        axis = 0 if layout == "transposed" else -1
        check(nd.concatenate(ours, axis), np.concatenate(theirs, axis))


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_along_each_axis(dtype, device):
    for layout in ("dense", "every second", "one row for all", "transposed"):
        theirs, ours = operands(layout, dtype, device, (3,) * 3)
        for axis in range(4):
            check(nd.stack(ours, axis), np.stack(theirs, axis))


def test_parts_that_run_backwards(device):
    x = np.arange(60).reshape(20, 3)
    there = nd.asarray(x, device=device)
    check(nd.hstack([there[::-1, ::-1], there]), np.hstack([x[::-1, ::-1], x]))


def test_parts_without_elements_are_left_out(device):
    x = np.arange(12.0).reshape(4, 3)
    there = nd.asarray(x, device=device)
    check(nd.concatenate([there[:, :0], there, there[:, :0], there], 1), np.hstack([x, x]))
    check(nd.concatenate([there[:, :0], there[:, 3:]], 1), x[:, :0])


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_long_and_many_pieces(dtype, beyond, device):
    for rows, row in ((3, 1024), (4100, 1024), (40, 110_000)):  # both sides of what goes part by part
        x = np.arange(rows * (row + beyond), dtype="int64").astype(dtype).reshape(rows, row + beyond)
        there = nd.asarray(x, device=device)
        check(nd.concatenate([there[:, 1:], there, there[:, :7]], 1), np.concatenate([x[:, 1:], x, x[:, :7]], 1))


def test_parts_of_several_dtypes_and_an_out_go_part_by_part(device):
    x = np.arange(12, dtype="int32").reshape(4, 3)
    there = nd.asarray(x, device=device)
    check(nd.concatenate([there, there.astype("float32")], 1), np.concatenate([x, x.astype("float32")], 1))
    out = nd.zeros((4, 6), "int32", device=device)
    assert nd.concatenate([there, there + 1], 1, out=out) is out
    check(out, np.concatenate([x, x + 1], 1))
