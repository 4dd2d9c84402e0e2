"""Copies on the host, element for element: every size of element, axes in every order, steps, and what the kernels have
routes of their own for (short rows, tiles and their edges, blocks and their rests)."""

import itertools

import numpy as np
import pytest
from dlbridge import nd

DTYPES = ("uint8", "float16", "float32", "complex64", "complex128")
SHAPES = ((8, 8), (64, 64), (9, 77), (70, 130), (129, 257), (300, 2), (3, 300), (4, 5, 40), (33, 3, 2), (21, 40, 9))
STEPS = (2, 3, 4, 5, -1, -2)
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 33, 63, 64, 65, 127, 129, 200)  # bytes and elements of a row


def made(dtype, *shape):
    return np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype)


def check(ours, theirs):
    assert ours.shape == theirs.shape
    assert np.asarray(ours).tobytes() == theirs.tobytes()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_axes_in_another_order(dtype, shape):
    x = made(dtype, *shape)
    for axes in itertools.permutations(range(len(shape))):
        theirs, ours = x.transpose(axes), nd.array(x, device="cpu").transpose(axes)
        check(nd.ascontiguousarray(ours), theirs)
        check(nd.ascontiguousarray(ours[1:, :-1]), theirs[1:, :-1])
        check(ours.copy(order="F"), theirs)
        target = nd.zeros(theirs.shape, dtype, device="cpu")
        target.T[...] = ours.T
        check(target, theirs)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_every_width(dtype, width):
    x = made(dtype, 21, width + 3)
    y = nd.array(x, device="cpu")
    check(nd.ascontiguousarray(y[:, 1 : width + 1]), x[:, 1 : width + 1])
    check(nd.ascontiguousarray(y[:, width - 1 :: -1]), x[:, width - 1 :: -1])
    check(nd.ascontiguousarray(nd.broadcast_to(y[:1], y.shape)), np.broadcast_to(x[:1], x.shape))
    check(nd.repeat(y, width, axis=1), np.repeat(x, width, axis=1))
    check(nd.tile(y, (3, 2)), np.tile(x, (3, 2)))
    y[:, :width] = nd.array(x[:, 3:], device="cpu")
    x[:, :width] = x[:, 3:].copy()
    check(y, x)


@pytest.mark.parametrize("shape", [(511, 17), (512, 64), (513, 48), (16, 1040), (1055, 31), (96, 544)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_tiles_and_those_at_the_edges_are_turned(dtype, shape):
    x = made(dtype, shape[0] + 1, shape[1] + 1)
    y = nd.array(x, device="cpu")
    for part in (slice(1, None), slice(None, -1)):
        check(nd.ascontiguousarray(y[part, part].T), x[part, part].T)
        target = nd.zeros((shape[1] + 2, shape[0] + 2), dtype, device="cpu")
        target[1:-1, 1:-1] = y[part, part].T
        expected = np.zeros(target.shape, dtype)
        expected[1:-1, 1:-1] = x[part, part].T
        check(target, expected)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_row_is_repeated_as_often_as_there_are_rows(dtype, width):
    x = made(dtype, 2, width)
    y = nd.array(x, device="cpu")
    for rows in (15, 16, 17, 31, 64, 65, 255, 256, 257, 640, 5000):
        repeated, theirs = nd.broadcast_to(y[1:], (rows, width)), np.broadcast_to(x[1:], (rows, width))
        check(nd.array(repeated, copy=True), theirs)
        check(nd.hstack([repeated, repeated[:, :1]]), np.hstack([theirs, theirs[:, :1]]))
        check(nd.repeat(y, rows, axis=0), np.repeat(x, rows, axis=0))


@pytest.mark.parametrize("shape", [(15, 9), (16, 1), (400, 13), (1000, 33), (3, 2100)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_inside_others_are_copied_block_by_block(dtype, shape):
    x = made(dtype, *shape)
    y = nd.array(x, device="cpu")
    for times in (2, 3, 7):
        check(nd.repeat(y, times, axis=0), np.repeat(x, times, axis=0))
    three = np.arange(3 * x.size).reshape(shape[0], 3, shape[1]).astype(dtype)
    ours = nd.array(three, device="cpu").transpose(1, 0, 2)
    check(nd.ascontiguousarray(ours[:, ::-1]), three.transpose(1, 0, 2)[:, ::-1])


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_apart(dtype, step):
    for n in (1, 3, 63, 64, 65, 1000):
        x = made(dtype, n * abs(step))
        y = nd.array(x, device="cpu")
        check(nd.ascontiguousarray(y[::step]), x[::step])
        check(nd.add(y[::step], y[::step]), np.add(x[::step], x[::step]))
        check(y[::step].astype("complex128"), x[::step].astype("complex128"))
        target = nd.zeros(x.shape, dtype, device="cpu")
        target[::step] = y[:n]
        expected = np.zeros_like(x)
        expected[::step] = x[:n]
        check(target, expected)


@pytest.mark.parametrize("signed", ["int8", "int16", "int32", "int64"])
def test_casts_that_keep_the_bits(signed):
    x = (-made(signed, 9, 77)).T
    y = nd.array(x, device="cpu")
    check(nd.ascontiguousarray(y.astype(f"u{signed}")), x.astype(f"u{signed}"))
    check(nd.ascontiguousarray(y).astype(f"u{signed}").astype(signed), x)


# --- functions that join parts on the host ----------------------------------------------------------------------------

LAID_OUT = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "turned": lambda x: x.transpose(1, 2, 0),
    "a vector apart": lambda x: x.reshape(-1)[::3],
}
POSITIONS = (0, -1, [0, 1], [1, 1, -1], slice(1, 3), slice(None, None, 2), slice(3, 0, -1), [], np.array([0, 2]))


@pytest.mark.parametrize("layout", LAID_OUT)
def test_parts_are_left_out_and_put_in(layout):
    base = made("float32", 4, 5, 6)
    x, y = LAID_OUT[layout](base), LAID_OUT[layout](nd.array(base, device="cpu"))
    for axis in (None, *range(x.ndim)):
        for where in POSITIONS:
            ours = nd.array(where, device="cpu") if isinstance(where, np.ndarray) else where
            check(nd.delete(y, ours, axis), np.delete(x, where, axis))
            if where is not POSITIONS[-2]:  # NumPy takes an empty list for floats
                check(nd.insert(y, ours, 7, axis), np.insert(x, where, 7, axis))
        n = x.size if axis is None else x.shape[axis]
        check(nd.insert(y, n, 7, axis), np.insert(x, n, 7, axis))
        many = list(range(n))[: n - 1]
        check(nd.delete(y, many, axis), np.delete(x, many, axis))
        with pytest.raises(IndexError):
            nd.delete(y, n, axis)
        with pytest.raises(IndexError):
            nd.insert(y, n + 1, 7, axis)
    row = made("float32", 3)
    check(nd.insert(y, [1, 2, 2], nd.array(row, device="cpu"), -1), np.insert(x, [1, 2, 2], row, -1))


@pytest.mark.parametrize("layout", LAID_OUT)
def test_results_lie_as_numpys_do(layout):
    base = made("float32", 4, 5, 6)
    x, y = LAID_OUT[layout](base), LAID_OUT[layout](nd.array(base, device="cpu"))
    for axis in range(x.ndim):
        for f in (
            lambda xp, a: xp.concatenate([a, a], axis),  # noqa: B023
            lambda xp, a: xp.roll(a, 2, axis),  # noqa: B023
            lambda xp, a: xp.delete(a, 1, axis),  # noqa: B023
            lambda xp, a: xp.insert(a, [1, 2], 0, axis),  # noqa: B023
            lambda xp, a: xp.pad(a, 1 + axis, "edge"),  # noqa: B023
        ):
            ours, theirs = f(nd, y), f(np, x)
            check(ours, theirs)
            assert ours.strides == theirs.strides


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "complex64"])
def test_a_line_goes_on_through_its_edges(mode, dtype):
    for n, width in itertools.product((1, 2, 3, 7), (0, 1, 2, 5, 20)):
        x = (made("int64", n, 3) ** 2).astype(dtype)
        widths = ((width, width + 1), (0, width))
        check(
            nd.pad(nd.array(x, device="cpu"), widths, mode, reflect_type="odd"),
            np.pad(x, widths, mode, reflect_type="odd"),
        )


def test_the_diagonal_takes_a_number_or_values():
    for value in (2, [1, 2], np.float32(3)):
        x, y = np.zeros((4, 3), np.float32), nd.zeros((4, 3), "float32", device="cpu")
        np.fill_diagonal(x, value)
        nd.fill_diagonal(y, value)
        check(y, x)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_indices_that_count_from_the_end(dtype):
    x = made(dtype, 500)
    index = np.arange(1000) % 37 - 18
    for step in (1, 2):
        a, b = x[::step], nd.array(x, device="cpu")[::step]
        at = nd.array(index, device="cpu")
        check(b[at], a[index])
        check(nd.take(b, at[::3]), np.take(a, index[::3]))
        ours, theirs = b.copy(), a.copy()
        np.add.at(theirs, index, theirs.dtype.type(1))
        nd.add.at(ours, at, 1)
        check(ours, theirs)


def test_bools_become_numbers():
    for n in (5, 64, 1000):
        x = np.arange(2 * n) % 3 == 0
        for dtype in ("uint8", "int64", "float16", "float32", "float64", "complex64", "complex128"):
            check(nd.array(x, device="cpu").astype(dtype), x.astype(dtype))
            check(nd.array(x, device="cpu")[::2].astype(dtype), x[::2].astype(dtype))


def test_blocks_are_copied_once():
    a, i = made("float64", 50, 60), made("int64", 50, 60)
    f = np.asfortranarray(a)
    for nested in (
        [[a, a], [a, a]],
        [[f, f], [f, f]],
        [[a, i], [i, a]],
        [a, i],
        [[[a, a]], [[i, a]]],
        [[a[None], a], [a, a]],
        [[a[:20], a[:20, :3]], [a[:, :4], a[:, :59]]],
    ):
        theirs = np.block(nested)
        ours = nd.block(_mapped(nested, lambda x: nd.array(x, device="cpu")))
        check(ours, theirs)
        assert ours.dtype == theirs.dtype.name and ours.strides == theirs.strides
    for wrong in ([[a, a], [a[:3]]], [[a, a[:3]], [a, a]]):
        with pytest.raises(ValueError, match="must be equal"):
            nd.block(_mapped(wrong, lambda x: nd.array(x, device="cpu")))


def _mapped(nested, f):
    return [_mapped(x, f) for x in nested] if isinstance(nested, list) else f(nested)


def test_put_in_every_mode():
    at = np.arange(-20, 30, 3)
    for mode in ("clip", "wrap"):
        x, y = np.zeros((3, 4)), nd.zeros((3, 4), device="cpu")
        np.put(x, at, [1, 2, 3], mode)
        nd.put(y, nd.array(at, device="cpu"), [1, 2, 3], mode)
        check(y, x)
    with pytest.raises(TypeError, match="must be integers"):
        nd.put(y, nd.array([0.5], device="cpu"), 1)


def test_rows_of_a_triangle():
    for n, m, k in itertools.product((0, 1, 3, 10), (None, 0, 1, 5, 70), (-200, -3, 0, 2, 99)):
        for dtype in ("float64", "bool"):
            ours = nd.tri(n, m, k, dtype, device="cpu")
            check(ours, np.tri(n, m, k, dtype))
            assert ours.flags.c_contiguous


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_element_many_times(dtype, width):
    column = made(dtype, 9, 1)
    ours, theirs = nd.broadcast_to(nd.array(column, device="cpu"), (9, width)), np.broadcast_to(column, (9, width))
    check(ours.copy(), theirs)
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("order", ["C", "F", "A", "K", None])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tobytes_in_every_order(dtype, order):
    x = made(dtype, 4, 5, 6)
    views = (x, x.T, x[::2, :, 1:], x.transpose(1, 0, 2), x[:, ::-1], x[0, 0, 0], x[:0], np.asfortranarray(x[1]))
    for view in views:
        assert nd.asarray(view, device="cpu").tobytes(order) == view.tobytes(order or "C")


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("rate", [0.02, 0.5, 0.97, 1])
def test_masks_of_short_and_long_runs(itemsize, rate):
    dtype = {1: "uint8", 2: "float16", 4: "float32", 8: "complex64", 16: "complex128"}[itemsize]
    random = np.random.default_rng(itemsize)
    for n in (1, 15, 16, 17, 31, 33, 500, 5000):
        x, mask = made(dtype, n), random.random(n) <= rate
        ours, where = nd.array(x, device="cpu"), nd.array(mask, device="cpu")
        check(ours[where], x[mask])
        check(nd.nonzero(where)[0], np.nonzero(mask)[0])
        more = made(dtype, int(mask.sum())) if mask.any() else x[:0]
        ours[where] = nd.array(more, device="cpu")
        x[mask] = more
        check(ours, x)
        ours[where] += 1
        x[mask] += 1
        check(ours, x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float64", "complex128"])
def test_vectors_of_few_elements_that_lie_apart_are_copied(dtype):
    for n in (0, 1, 2, 63, 64, 65):
        a = (np.arange(3 * n) % 7).astype(dtype)
        x = nd.array(a, device="cpu")
        for ours, theirs in ((x[::3], a[::3]), (x[::-3], a[::-3]), (x.reshape(n, 3)[:, 1], a.reshape(n, 3)[:, 1])):
            for got in (ours.copy(), ours.ravel(), ours.flatten(), nd.ascontiguousarray(ours)):
                np.testing.assert_array_equal(nd.asnumpy(got), theirs)
    bytes_of_bools = nd.array(np.arange(0, 40, dtype="uint8"), device="cpu").view("bool")
    assert bytes_of_bools[::2].copy().view("uint8").tolist() == [0] + [1] * 19


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "float64", "complex128"])
def test_small_matrices_are_copied_in_every_order(dtype):
    for rows in (1, 2, 5, 8, 13, 31, 77):
        for columns in (1, 2, 5, 8, 13, 31):
            values = (np.arange(4 * rows * columns) % 7).reshape(2 * rows, 2 * columns).astype(dtype)
            layouts = [
                values[:rows, :columns],
                values[::2, ::2],
                values[rows - 1 :: -1, ::-2],
                values[:columns, :rows].T if columns <= 2 * rows and rows <= 2 * columns else values[::2, 1::2],
                np.broadcast_to(values[0, :columns], (rows, columns)),
                np.broadcast_to(values[:rows, :1], (rows, columns)),
            ]
            for want in layouts:
                x = nd.asarray(want, device="cpu")
                for order in "CFAK":
                    got = np.asarray(x.copy(order))
                    np.testing.assert_array_equal(got, want)
                    flags, wanted = got.flags, want.copy(order).flags
                    assert flags.c_contiguous == wanted.c_contiguous and flags.f_contiguous == wanted.f_contiguous
                np.testing.assert_array_equal(np.asarray(x.ravel()), want.ravel())
                assert x.tobytes() == want.tobytes()
