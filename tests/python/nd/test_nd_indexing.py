"""x[key] and x[key] = value against NumPy: keys that share memory with the array, masks, shapes of keys and values."""

from math import prod

import numpy as np
import pytest
from dlbridge import nd
from nd_support import check, host, put, rows

# --- keys and values in the memory that is written to ---------------------------------------------------------------

# Statements about x, of which NumPy's result is asked for. Each reads memory that it writes to.
OVERLAPS = """
x[x] = [7, 8, 9, 4, 5]
x[x] = x
x[x[::-1]] = x
x[x[1:4]] = x[:3]
x[x[:4].reshape(2, 2)] = [[10, 20], [30, 40]]
x[1:][x[1:] % 4] = [5, 6, 7, 8]
x[::2][x[::2] % 3] = [5, 6, 7]
x[[4, 3, 2, 1, 0]] = x
xp.put(x, x, x[::-1])
xp.put(x, x[::-1], [1, 2, 3, 4, 0], mode='wrap')
xp.put_along_axis(x, x, x[::-1], 0)
xp.take(x, x, out=x)
xp.take(x[::-1], x, out=x)
xp.take(x, x[1:], out=x[:-1])
xp.compress(x > 0, x, out=x[1:])
xp.copyto(x[1:], x[:-1])
xp.copyto(x, x[::-1], where=x > 1)
xp.putmask(x, x > 1, x[::-1])
xp.cumsum(x, out=x)
xp.cumsum(x[::-1], out=x)
xp.clip(x[::-1], 1, x, out=x)
xp.add(x[::-1], x, out=x)
xp.choose(x % 2, [x[::-1], x]).copy()
"""


@pytest.mark.parametrize("statement", OVERLAPS.strip().splitlines())
def test_a_key_or_a_value_in_the_memory_that_is_written_to_is_read_before(statement, device):
    theirs, ours = np.array([1, 2, 4, 0, 3]), nd.array([1, 2, 4, 0, 3], device=device)
    for xp, x in ((np, theirs), (nd, ours)):
        exec(statement, {"xp": xp, "x": x})
    check(ours, theirs)


def test_a_mask_that_is_a_view_of_the_array_is_read_before_it_is_written(device):
    theirs = np.array([1, 0, 1, 1], "u1")
    ours = put(theirs, device)
    ours[ours.view("bool")] = 7
    theirs[theirs.view("bool")] = 7
    check(ours, theirs)
    theirs = np.array([1, 0, 1, 1, 0, 0], "u1")
    ours = put(theirs, device)
    ours[1:][ours[:-1].view("bool")] = 5
    theirs[1:][theirs[:-1].view("bool").copy()] = 5
    check(ours, theirs)


def test_values_in_the_array_are_read_before_a_mask_writes_to_it(device):  # NumPy reads some of them after
    x = nd.array([1, 2, 4, 0, 3], device=device)
    x[x > 1] = x[:3]
    assert x.tolist() == [1, 1, 2, 0, 4]
    x = nd.array([1, 2, 4, 0, 3], device=device)
    nd.place(x, x > 1, x[:2])
    assert x.tolist() == [1, 1, 2, 0, 1]


def test_columns_of_a_matrix_that_name_its_rows_are_read_before_they_are_written(device):
    theirs = np.array([[0, 1], [2, 3], [1, 0]])
    ours = put(theirs, device)
    for x in (theirs, ours):
        x[x[:, 0]] = x[::-1]
    check(ours, theirs)


def test_positions_in_the_array_that_is_added_to_are_read_before(device):
    theirs, ours = np.array([1, 2, 0, 1]), nd.array([1, 2, 0, 1], device=device)
    np.add.at(theirs, theirs.copy(), 10)
    nd.add.at(ours, ours, 10)
    check(ours, theirs)


# --- masks and keys without elements ----------------------------------------------------------------------------------

EMPTY_KEYS = """
a[[[]]]
a[[[], []]]
a[[]]
a[[], 1]
a[1, []]
a[:, []]
a[[[]], [[]]]
a[np.zeros((0,), bool)]
a[:, np.zeros((0,), bool)]
a[np.zeros((0, 4), bool)]
a[np.zeros((0, 0), bool)]
a[np.zeros((3, 0), bool)]
z[np.zeros((0,), bool)]
z[[]]
z.T[[1]]
z.T[np.zeros((0,), bool)]
z.T[[True, False, True]]
z[:, [0, 2]]
v[np.zeros(7, bool)]
v[[False] * 7]
v[np.array([], int)]
"""


@pytest.mark.parametrize("expression", rows(EMPTY_KEYS))
def test_keys_without_elements_select_nothing(expression, device):
    arrays = {"a": np.arange(12.0).reshape(3, 4), "z": np.zeros((0, 3)), "v": np.arange(7)}
    want = eval(expression, {"np": np}, arrays)
    check(eval(expression, {"np": np}, {name: put(x, device) for name, x in arrays.items()}), want)


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 3), (0, 5), (1,), (3, 4, 1)])
def test_a_mask_of_another_extent_that_is_not_0_is_refused(shape, device):
    x = nd.zeros((3, 4), device=device)
    with pytest.raises(IndexError):
        np.zeros((3, 4))[np.zeros(shape, bool)]
    with pytest.raises(IndexError):
        x[nd.zeros(shape, bool, device=device)]


# --- shapes of what is assigned ---------------------------------------------------------------------------------------

ASSIGNMENTS = """
x[0] = ones(1, 4)
x[0] = ones(1, 1, 4)
x[:, 1] = ones(1, 1, 3)
x[...] = ones(1, 3, 4)
x[[0, 2]] = ones(1, 1, 2, 4)
x[:2] = ones(1, 1, 1, 4)
x[()] = ones(1, 1, 1)
xp.copyto(x[0], ones(1, 4))
xp.copyto(x, ones(1, 1, 4), where=x > 1)
xp.copyto(x[0], ones(1, 1, 4).astype("int8"), where=x[0] > 1)
xp.copyto(x[0], ones(1, 1, 1).astype("complex128"), "unsafe", where=x[0] > 1)
"""


@pytest.mark.parametrize("statement", ASSIGNMENTS.strip().splitlines())
def test_leading_extents_of_1_are_dropped_in_assignments(statement, device):
    theirs = np.arange(12.0).reshape(3, 4)
    ours = put(theirs, device)
    exec(statement, {"xp": np, "x": theirs, "ones": lambda *shape: np.ones(shape)})
    exec(statement, {"xp": nd, "x": ours, "ones": lambda *shape: nd.ones(shape, device=device)})
    check(ours, theirs)


@pytest.mark.parametrize("shape", [(2, 4), (2, 1, 4), (1, 3)])
def test_other_extents_that_do_not_fit_are_refused(shape, device):
    with pytest.raises(ValueError):
        nd.zeros((3, 4), device=device)[0] = nd.ones(shape, device=device)


def test_an_output_of_fewer_dimensions_than_the_result_is_refused(device):
    with pytest.raises(ValueError):
        nd.add(nd.ones((1, 3), device=device), 1, out=nd.zeros((3,), device=device))


def test_the_index_array_keeps_its_values_and_the_host_sees_the_write(device):
    index = nd.array([2, 0, 1], device=device)
    x = nd.zeros(3, device=device)
    x[index] = nd.arange(3, device=device)
    assert host(x).tolist() == [1, 2, 0] and host(index).tolist() == [2, 0, 1]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4)])
def test_positions_of_axes_and_of_the_flat_array_are_new_arrays(shape, order, device):
    flat = nd.arange(6, device=device) % prod(shape)
    parts = nd.unravel_index(flat, shape, order)
    back = nd.ravel_multi_index(parts, shape, order=order)
    assert back.tolist() == flat.tolist()
    assert not any(nd.shares_memory(part, x) for part in parts for x in (flat, back))


@pytest.mark.parametrize("places", [1, 2, 100, 5000, 300_000])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_of_the_values_for_one_place_the_last_one_stays(dtype, places, device):
    rng = np.random.default_rng(places)
    for n in (1, 31, 1023, 1024, 1025, 70_001):
        anywhere = rng.integers(0, places, n)
        for positions in (anywhere, np.sort(anywhere), np.where(rng.random(n) < 0.5, places - 1, anywhere)):
            values = rng.integers(0, 250, (n, 3)).astype(dtype)
            elements, rows = np.zeros(places, dtype), np.zeros((places, 3), dtype)
            x, y, p, v = (put(a, device) for a in (elements, rows, positions, values))
            elements[positions], rows[positions] = values[:, 0], values
            x[p], y[p] = v[:, 0], v
            np.testing.assert_array_equal(host(x), elements)
            np.testing.assert_array_equal(host(y), rows)
            nd.put(x, p, v[::-1, 0].copy(), mode="clip")
            np.put(elements, positions, values[::-1, 0], mode="clip")
            np.testing.assert_array_equal(host(x), elements)


# --- one index array beside another axis -----------------------------------------------------------------------------

PLANES = {
    "C": lambda xp, x: x,
    "Fortran": lambda xp, x: x.T.copy().T,
    "strided": lambda xp, x: xp.repeat(x, 2, -1)[:, ::2],
    "reversed": lambda xp, x: x[:, ::-1],
    "broadcast": lambda xp, x: xp.broadcast_to(x[:1] if len(x) else x, x.shape),
}


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("layout", PLANES)
@pytest.mark.parametrize("count", [3, 12, 13, 1023, 1025, 2049])
@pytest.mark.parametrize("shape", [(7, 13), (3, 7), (129, 9), (5, 131)])
def test_rows_and_columns_are_taken_and_written_like_numpys(shape, count, layout, dtype):
    rng = np.random.default_rng(count)
    plain = rng.integers(-90, 90, shape).astype(dtype)
    x, y = PLANES[layout](np, plain), PLANES[layout](nd, nd.array(plain, device="cpu"))
    for axis in (0, 1):
        i = rng.integers(-shape[axis], shape[axis], count)
        j = nd.array(i, device="cpu")
        key, other = ((i,), (j,)) if axis == 0 else ((slice(None), i), (slice(None), j))
        check(y[other], x[key])
        check(nd.take(y, j * 3, axis, mode="wrap"), np.take(x, i * 3, axis, mode="wrap"))
        check(nd.take(y, j * 3, axis, mode="clip"), np.take(x, i * 3, axis, mode="clip"))
        values = rng.integers(-90, 90, x[key].shape).astype(dtype)
        for value in (values, values[:1, :1], values[:, :1], values[:1], values.T.copy().T):
            written, ours = x.copy(), y.copy()
            written[key] = value
            ours[other] = nd.array(value, device="cpu")
            check(ours, written)


@pytest.mark.parametrize("rows", [3, 4, 5, 1023, 1025])
@pytest.mark.parametrize("columns", [1, 5, 1024, 1037])
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
def test_rows_and_columns_that_cross_are_taken_and_written_like_numpys(dtype, columns, rows):
    x = np.arange(2 * 40 * 66).reshape(2, 40, 66).astype(dtype)
    i, j = np.arange(rows) * 7 % 80 - 40, np.arange(2 * columns)[::2] * 5 % 33
    ours_i, ours_j = nd.array(i, device="cpu"), nd.array(np.arange(2 * columns), device="cpu")[::2] * 5 % 33
    for key, ours_key in (
        ((i[:, None], j), (ours_i[:, None], ours_j)),
        ((i, j[:, None]), (ours_i, ours_j[:, None])),
        ((slice(None), i[:, None], j), (slice(None), ours_i[:, None], ours_j)),
    ):
        theirs = x if len(key) == 3 else x[1]
        y = nd.array(theirs, device="cpu")
        for step in (1, 2):
            assert np.asarray(y[..., ::step][ours_key]).tobytes() == theirs[..., ::step][key].tobytes()
        expected = theirs.copy()
        values = np.arange(expected[key].size).reshape(expected[key].shape).astype(dtype)
        expected[key] = values
        y[ours_key] = nd.array(values, device="cpu")
        assert np.asarray(y).tobytes() == expected.tobytes()


@pytest.mark.parametrize("wrong", [-(2**63), -(2**63) + 9, -11, 10, 11, 2**63 - 10, 2**63 - 1])
@pytest.mark.parametrize("place", [0, 1, 500, 999])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_an_index_out_of_bounds_is_found_wherever_it_stands(step, place, wrong):
    x, i = nd.arange(10, device="cpu"), np.arange(1000 * abs(step)) % 20 - 10
    i[::step][place] = wrong
    with pytest.raises(IndexError, match="out of bounds"):
        x[nd.array(i, device="cpu")[::step]]
    i[::step][place] = -10
    assert np.asarray(x[nd.array(i, device="cpu")[::step]]).tolist() == np.arange(10)[i[::step]].tolist()


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (3, 16), (40, 64), (40, 65), (255, 3), (257, 7), (600, 17), (600, 140)])
@pytest.mark.parametrize("share", [0, 1, 50, 99, 100])
def test_rows_chosen_and_dropped_by_a_mask_are_numpys(share, shape, axis, dtype):
    rng = np.random.default_rng(share)
    x = rng.integers(-90, 90, shape).astype(dtype)
    mask = rng.integers(0, 100, shape[axis]) < share
    y, chosen = nd.array(x, device="cpu"), nd.array(mask, device="cpu")
    check(nd.compress(chosen, y, axis), np.compress(mask, x, axis))
    check(nd.delete(y, chosen, axis), np.delete(x, mask, axis))
    check(nd.compress(nd.array(x.ravel() > 0, device="cpu"), y), np.compress(x.ravel() > 0, x))


@pytest.mark.parametrize("most", [1, 2, 4, 5, 6, 40])
@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000])
def test_counts_of_repeats_small_and_large_are_numpys(n, most):
    rng = np.random.default_rng(n)
    counts, x = rng.integers(0, most + 1, n), rng.normal(size=n)
    check(nd.repeat(nd.array(x, device="cpu"), nd.array(counts, device="cpu")), np.repeat(x, counts))


@pytest.mark.parametrize(
    "key", [slice(None), slice(1, None, 2), slice(None, None, -3), slice(4, 4), slice(2, 5), [1, 0]]
)
@pytest.mark.parametrize(
    "values", ["x[:3]", "x[3:4]", "x[::-1]", "x[2:, None]", "x.reshape(2, 5)[:, 1:3]", "7", "[5, 6, 7]"]
)
@pytest.mark.parametrize("shape", [(10,), (2, 5)])
def test_values_written_to_flat_begin_again_behind_the_last(shape, values, key, device):
    theirs, ours = np.arange(10.0), nd.arange(10.0, device=device)
    theirs.reshape(shape).flat[key] = np.array(eval(values, {"x": theirs}))  # NumPy reads what it has written
    ours.reshape(shape).flat[key] = eval(values, {"x": ours})
    check(ours, theirs)


WRITABLE_PLANES = {name: made for name, made in PLANES.items() if name != "broadcast"}


@pytest.mark.parametrize("layout", WRITABLE_PLANES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float64", "complex128"])
@pytest.mark.parametrize("key", [3, -1, slice(1, 9, 3), slice(None, None, -1), "places", "none"])
def test_flat_walks_in_c_order_whatever_the_layout(key, dtype, layout, device):
    plain = np.arange(12).reshape(3, 4).astype(dtype)
    theirs, ours = PLANES[layout](np, plain.copy()), PLANES[layout](nd, nd.array(plain, device=device))
    if isinstance(key, str):
        positions = np.array([5, -1, 0] if key == "places" else [], "int64")
        key, their_key = nd.array(positions, device=device), positions
    else:
        their_key = key
    check(ours.flat[key], np.asarray(theirs.flat[their_key]))
    theirs.flat[their_key], ours.flat[key] = 1, 1
    check(ours, theirs)
    if not isinstance(key, int):
        theirs.flat[their_key], ours.flat[key] = [1, 0], [1, 0]
        check(ours, theirs)
    assert list(ours.flat) == list(theirs.flat)


@pytest.mark.parametrize("key", [12, -13, [1, 12], "x"])
@pytest.mark.parametrize("layout", WRITABLE_PLANES)
def test_flat_refuses_places_that_there_are_not(layout, key, device):
    x = PLANES[layout](nd, nd.zeros((3, 4), device=device))
    if isinstance(key, list) and device != "cpu":
        pytest.skip("a device takes the nearest place")
    with pytest.raises(IndexError):
        x.flat[key] = 1
    assert not x.any()


def test_flat_takes_values_from_itself_as_they_were(device):
    x = nd.arange(6, device=device)
    x.reshape(2, 3).flat[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x.flat[x] = x + 10
    assert x.tolist() == [10, 11, 12, 13, 14, 4]


def test_flat_of_a_read_only_array_is_not_written():
    x = nd.broadcast_to(nd.zeros(3, device="cpu"), (2, 3))
    with pytest.raises(ValueError, match="read-only"):
        x.flat[0] = 1


@pytest.mark.parametrize("n", [1, 5, 1000])
@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
def test_a_vector_by_positions_is_read_and_written_in_any_layout(dtype, step, n, device):
    plain = (np.arange(n) % 7).astype(dtype)
    theirs, ours = plain.copy()[::step], nd.array(plain, device=device)[::step]
    places = np.random.default_rng(3).integers(-len(theirs), len(theirs), n)
    at = nd.array(places, device=device)
    check(ours[at], theirs[places])
    for value in (1, plain[:1], plain[places % n]):
        theirs[places] = value
        ours[at] = nd.array(value, device=device) if isinstance(value, np.ndarray) else value
        check(ours, theirs)  # the last value stays
    theirs[places] = theirs[places[::-1]]
    ours[at] = ours[at[::-1]]
    check(ours, theirs)


@pytest.mark.parametrize("layout", PLANES)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 2), (40, 13)])
@pytest.mark.parametrize("times", [0, 1, 2, 5])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_rows_are_repeated_whatever_their_layout(axis, times, shape, layout, device):
    plain = np.arange(float(shape[0] * shape[1])).reshape(shape)
    x, y = PLANES[layout](np, plain), PLANES[layout](nd, nd.array(plain, device=device))
    check(nd.repeat(y, times, axis), np.repeat(x, times, axis))
    assert nd.repeat(y, times, axis).flags.c_contiguous


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(5,), (64,), (4095,), (4097,), (3, 7), (17, 64), (3, 41, 67), (131, 129)])
def test_a_mask_of_all_elements_reads_and_writes_in_c_order(shape, dtype, device):
    random = np.random.default_rng(8)
    values = random.integers(0, 200, shape).astype(dtype)
    x, strided = put(values, device), put(np.repeat(values, 2, -1), device)[..., ::2]
    for share in (0, 0.02, 0.5, 0.98, 1):
        mask = random.random(shape) < share
        for array in (x, strided):
            for at in (put(mask, device), put(np.asfortranarray(mask), device)):
                check(array[at], values[mask])
        written, want = put(values, device), values.copy()
        new = random.integers(0, 200, mask.sum()).astype(dtype)
        written[put(mask, device)] = put(new, device)
        want[mask] = new
        check(written, want)
        written[put(mask, device)] = put(np.arange(1).astype(dtype), device)
        want[mask] = 0
        check(written, want)
        if mask.sum() > 1:
            with pytest.raises(ValueError):
                written[put(mask, device)] = put(np.zeros(mask.sum() + 1, dtype), device)
            check(written, want)


def test_a_mask_that_is_the_array_itself_is_read_before_it_is_written(device):
    mask = nd.array([True, False, True, True], device=device)
    mask[mask] = nd.array([False, True, False], device=device)
    assert mask.tolist() == [False, False, True, False]

    values = np.random.default_rng(9).random(10_000) < 0.5
    x, want, new = put(values, device), values.copy(), np.zeros(int(values[:-1].sum()), bool)
    want[1:][values[:-1]] = new
    x[1:][x[:-1]] = put(new, device)
    check(x, want)
