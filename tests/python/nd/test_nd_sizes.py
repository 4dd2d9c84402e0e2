"""Sizes around those at which kernels change their ways: scatters, searches, counts, unique values, matrix products."""

import itertools

import numpy as np
import pytest
from dlbridge import nd

WORDS = {
    "random": lambda words: words,
    "alike behind the first digit": lambda words: words & np.uint64(0xFF << 56),
    "with equal ones": lambda words: words >> np.uint64(52) << np.uint64(52),
    "different in the last digits": lambda words: words & np.uint64(0xFF000000_00000FFF),
}

# One block sorts up to 1,024 or 2,048 elements; above, several passes do.
SCATTERED = [1, 2, 1023, 1025, 2047, 2048, 2049, 4097, 100_000]
EXTENTS = [0, 1, 2, 3, 16, 17, 64, 200]
DTYPES = [*nd.__array_namespace_info__().dtypes(), "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("size", SCATTERED)
def test_a_scatter_keeps_the_last_value_of_each_place(size, dtype, device):
    random = np.random.default_rng(size)
    values = random.integers(0, 100, (size, 3)).astype(dtype)
    for places in (random.permutation(size), random.integers(-size, size, size)):
        want = np.zeros((size, 3), dtype)
        got = nd.asarray(want, device=device, copy=True)
        index, given = nd.asarray(places, device=device), nd.asarray(values, device=device)
        want[places], got[index] = values, given
        np.testing.assert_array_equal(got.get(), want)
        want[:, 1], got[:, 1] = 0, 0
        want[places, 1], got[index, 1] = values[:, 0], given[:, 0]
        np.testing.assert_array_equal(got.get(), want)


@pytest.mark.parametrize("dtype", ["int16", "int64", "float32", "complex128"])
@pytest.mark.parametrize("size", SCATTERED)
def test_an_accumulating_scatter_counts_every_value(size, dtype, device):
    random = np.random.default_rng(size)
    values, places = random.integers(0, 3, size).astype(dtype), random.integers(0, 1 + size // 7, size)
    want = np.zeros(size, dtype)
    got = nd.zeros(size, dtype, device=device)
    np.add.at(want, places, values)
    nd.add.at(got, nd.asarray(places, device=device), nd.asarray(values, device=device))
    np.testing.assert_array_equal(got.get(), want)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "complex128"])
@pytest.mark.parametrize("size", [1, 2, 1025, 5000])
def test_an_extreme_at_positions_sees_every_value(size, dtype, name, device):
    random = np.random.default_rng(size)
    values, places = random.integers(0, 100, size).astype(dtype), random.integers(-size, size, size)
    values[size // 2] = np.nan if values.dtype.kind in "fc" else 1
    want = random.integers(0, 100, size).astype(dtype)
    got = nd.array(want, device=device)
    getattr(np, name).at(want, places, values)
    getattr(nd, name).at(got, nd.asarray(places, device=device), nd.asarray(values, device=device))
    np.testing.assert_array_equal(got.get(), want)


ROWS = [1, 2, 23, 24, 25, 511, 512, 513, 3000]  # short rows are compared with as a whole on the host


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("row", ROWS)
def test_searches_in_rows_of_every_length(row, dtype, device):
    random = np.random.default_rng(row)
    knots, values = (random.integers(0, 100, n).astype(dtype) for n in (row, 700))
    if knots.dtype.kind in "fc":
        knots[row // 2 :: 7] = values[::9] = np.nan
    knots.sort()
    for side, count in itertools.product(("left", "right"), (1, 16, 17, 700)):
        got = nd.searchsorted(nd.asarray(knots, device=device), nd.asarray(values[:count], device=device), side)
        np.testing.assert_array_equal(got.get(), np.searchsorted(knots, values[:count], side))


ROWS = {  # of 100 elements and more; those of a part of their range share a bucket of a host's search
    "even": lambda random: np.linspace(-3, 1000, 100),
    "even and long": lambda random: np.linspace(0, 1, 2048),
    "random": lambda random: random.standard_normal(300),
    "eight alike": lambda random: np.repeat(np.arange(40.0), 8),
    "nine alike": lambda random: np.repeat(np.arange(40.0), 9),
    "one value": lambda random: np.full(100, 7.0),
    "with what is no number": lambda random: np.r_[
        random.standard_normal(90), [np.nan] * 3, [np.inf, -np.inf] * 2, 0.0, -0.0
    ],
    "the whole range": lambda random: np.r_[np.linspace(-1, 1, 98), [1.7e308, -1.7e308]],
    "far apart": lambda random: np.r_[0, 2.0 ** np.arange(-1074, 1023, 16)],
    "nothing finite": lambda random: np.r_[[np.inf, -np.inf] * 50],
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "uint64"])
@pytest.mark.parametrize("row", ROWS)
def test_many_values_go_into_rows_of_any_spread_as_numpy_puts_them(row, dtype, device):
    random = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        knots = ROWS[row](random)
        if dtype.startswith(("int", "uint")):
            knots = np.nan_to_num(knots, nan=0, posinf=2.0**31 - 200, neginf=-(2.0**31)).clip(-(2.0**31), 2.0**31 - 200)
            if dtype.endswith("64"):
                knots = knots * 2.0**32  # int64 to its ends
        knots = np.sort(knots.astype(dtype))
        near = np.nextafter(knots, knots[::-1]) if dtype.startswith("float") else knots + np.array(1, dtype)
    values = random.permutation(np.r_[knots, near, random.choice(knots, 6000)])
    if dtype.startswith("float"):
        values[::97] = [*[np.nan, np.inf, -np.inf, -0.0] * len(values)][: len(values[::97])]
    for step, side in itertools.product((1, -2), ("left", "right")):
        ours = nd.asarray(knots, device=device), nd.asarray(values, device=device)[::step]
        got = nd.searchsorted(*ours, side)
        np.testing.assert_array_equal(got.get(), np.searchsorted(knots, values[::step], side))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint64"])
@pytest.mark.parametrize("size", [16, 40, 300, 2048, 3000])
def test_a_row_that_is_not_sorted_gives_places_within_it(size, dtype, device):
    random = np.random.default_rng(size)
    values = nd.asarray(random.integers(0, 1000, 9000).astype(dtype), device=device)
    for row in (
        random.integers(0, 1000, size),
        np.r_[0, random.integers(0, 1000, size - 2), 1000],
        np.arange(size, 0, -1),
    ):
        for side in ("left", "right"):
            got = nd.searchsorted(nd.asarray(row.astype(dtype), device=device), values, side).get()
            assert got.min() >= 0 and got.max() <= size


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8"])
@pytest.mark.parametrize("count", [3, 4, 600])
def test_places_of_single_bytes_are_those_of_each(count, dtype, device):
    random = np.random.default_rng(count)
    row = np.sort(random.integers(0, 120, 100).astype(dtype))
    values = random.integers(0, 256, 2 * count).astype("uint8").view(dtype)[::2]  # bools of every byte
    for side in ("left", "right"):
        got = nd.searchsorted(nd.asarray(row, device=device), nd.asarray(values, device=device), side=side)
        np.testing.assert_array_equal(
            got.get(), np.searchsorted(row, values.astype("int16") != 0 if dtype == "bool" else values, side)
        )


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("bins", [1, 10, 23, 24, 100, 600, [-3, 0, 0, 2, 50], list(range(-20, 30))])
def test_histograms_count_what_lies_in_each_bin(bins, dtype, device):
    random = np.random.default_rng(3)
    x, weights = random.integers(0, 60, 3000).astype(dtype), random.integers(0, 5, 3000).astype("float64")
    for w in (None, weights, weights.astype("int32")):
        given = None if w is None else nd.asarray(w, device=device)
        counts, edges = nd.histogram(nd.asarray(x, device=device), bins, weights=given)
        wanted, marks = np.histogram(x, bins, weights=w)
        assert (counts.dtype, edges.dtype) == (wanted.dtype, marks.dtype)
        np.testing.assert_array_equal(counts.get(), wanted)
        np.testing.assert_allclose(edges.get(), marks, rtol=1e-6)


@pytest.mark.parametrize("bins", [10, [-3, 0, 0, 2, 50]])
def test_histograms_of_many_elements_are_those_of_their_parts(bins, device):
    x = np.random.default_rng(3).integers(0, 51, 100_003).astype("float32")
    np.testing.assert_array_equal(nd.histogram(nd.asarray(x, device=device), bins)[0].get(), np.histogram(x, bins)[0])


def test_nothing_that_is_no_number_falls_in_a_bin(device):
    x = np.array([np.nan, 1, 2, np.inf, -np.inf, 3, np.nan])
    got = nd.histogram(nd.asarray(x, device=device), [1, 2, 3])
    np.testing.assert_array_equal(got[0].get(), np.histogram(x, [1, 2, 3])[0])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("size", [0, 1, 1999, 3000])
def test_members_and_counts_of_integers_close_together(size, dtype, device):
    random, limits = np.random.default_rng(size), np.iinfo(dtype)
    x = random.integers(0, 100, size).astype(dtype)
    if size:
        got = nd.bincount(nd.asarray(x, device=device))
        np.testing.assert_array_equal(got.get(), np.bincount(x.astype("int64")))
    x[::7], x[1::7] = limits.min, limits.max
    for test in (x[:5], random.integers(0, 100, 50).astype(dtype), np.array([limits.min, limits.max] * 20, dtype)):
        for invert in (False, True):
            got = nd.isin(nd.asarray(x, device=device), nd.asarray(test, device=device), invert=invert)
            np.testing.assert_array_equal(got.get(), np.isin(x, test, invert=invert))


@pytest.mark.parametrize("counts", [[0, 0, 0], [0, 3, 0], [2, 0, 5], [0, 0, 1], [4, 0, 0]])
def test_repeats_of_nothing_between_others(counts, device):
    x = np.arange(6).reshape(2, 3)
    got = nd.repeat(nd.asarray(x, device=device), nd.asarray(counts, device=device), axis=1)
    np.testing.assert_array_equal(got.get(), np.repeat(x, counts, axis=1))


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("size", [*SCATTERED, 8191, 8192, 8193, 16385])
def test_unique_values_with_their_positions(size, dtype, device):
    x = np.random.default_rng(size).integers(-90, 90, (size, 1)).astype(dtype)
    got = nd.unique_all(nd.asarray(x, device=device))
    values, indices, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for one, want in zip(got, (values, indices, inverse.reshape(x.shape), counts), strict=True):
        np.testing.assert_array_equal(one.get(), want)
    counted, inverted = nd.unique_counts(nd.asarray(x, device=device)), nd.unique_inverse(nd.asarray(x, device=device))
    np.testing.assert_array_equal(counted.counts.get(), counts)
    np.testing.assert_array_equal(inverted.inverse_indices.get(), inverse.reshape(x.shape))


@pytest.mark.parametrize(
    "make", [nd.zeros, lambda n, **on: nd.zeros_like(nd.empty(n, **on)), nd.ones], ids=["zeros", "like", "ones"]
)
@pytest.mark.parametrize("size", [1, 4095, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float64"])
def test_memory_that_was_used_before_is_filled(dtype, size, make, device):
    before = nd.full(size, 77, dtype=dtype, device=device)
    del before  # its memory is the next array's
    x = make(size, dtype=dtype, device=device)
    assert bool((x == (1 if make is nd.ones else 0)).all())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1 << 10, 1 << 10), ((1 << 10) + 1, 1 << 10)])
def test_what_leaves_nan_out_of_few_elements_and_of_more(shape, dtype, device):
    x = np.random.default_rng(9).normal(size=shape).astype(dtype)
    x[x > 1] = np.nan
    there = nd.asarray(x, device=device)
    for axis in (None, 0, 1):
        for name, tolerance in (("nanmean", 3e-3), ("nanvar", 3e-3), ("nanargmax", 0), ("nanargmin", 0)):
            wide = x if name.startswith("nanarg") else x.astype("float64")
            want = getattr(np, name)(wide, axis=axis)
            got = getattr(nd, name)(there, axis=axis).get()
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=f"{name} {axis}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_products_of_small_extents_in_every_layout(dtype, device):
    """Factors of -1, 0 and 1 (bool: True): every order of summation gives the same sum, exactly, in every dtype."""
    random = np.random.default_rng(5)
    factors = {}
    for rows, columns in itertools.product(EXTENTS, repeat=2):
        plain = random.integers(-1, 2, (rows, columns)).astype("float64")
        if dtype == "bool" or dtype.startswith("u"):
            plain = abs(plain)
        if dtype.startswith("complex"):
            plain = plain + 1j * random.integers(-1, 2, (rows, columns))
        lying = nd.asarray(plain, device=device).astype(dtype)
        factors[rows, columns] = plain, lying, nd.asarray(plain.T.copy(), device=device).astype(dtype).T
    for m, k, n in itertools.product(EXTENTS, repeat=3):
        (left, *lefts), (right, *rights) = factors[m, k], factors[k, n]
        want = left @ right
        for a, b in itertools.product(lefts, rights):
            got = (a @ b).astype("complex128").get()
            np.testing.assert_array_equal(got, want != 0 if dtype == "bool" else want, err_msg=f"{m}, {k}, {n}")


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("rows", [1, 127, 129, 300, 70_000])
def test_counts_are_whole_for_all_numbers_of_rows_and_columns(rows, dtype, device):
    """Narrow integers count a part of the rows, and columns are taken by fives of hundreds, or by sixties."""
    for columns in [1, 63, 64, 65, 511, 513, 700] if rows < 1000 else [3, 65]:
        values = np.random.default_rng(columns).integers(0, 9, (rows, columns)).astype(dtype)
        values[:, columns // 2] = 1
        for layout in (values, np.asfortranarray(values), values[::-1, ::-1]):
            x = nd.asarray(layout, device=device)
            for function in ("any", "all", "count_nonzero"):
                for axis in (0, 1, None):
                    got = getattr(nd, function)(x, axis=axis)
                    np.testing.assert_array_equal(nd.asnumpy(got), getattr(np, function)(layout, axis=axis))


@pytest.mark.parametrize("order", ["ascending", "shuffled", "descending"])
@pytest.mark.parametrize("knots", [1, 2, 3, 40, 3000])
def test_interp_of_numbers_in_any_order_is_numpys(knots, order, device):
    random = np.random.default_rng(knots)
    xp, fp = np.sort(random.normal(size=knots)), random.normal(size=knots)
    for count in (0, 1, 63, 64, 65, 128, 5000):
        few = np.resize(np.append(xp, [np.nan, -np.inf, np.inf, -0.0]), count // 2)  # knots, and what has none
        x = np.sort(np.concatenate([random.normal(scale=2, size=count - len(few)), few]))
        x = {"ascending": x, "shuffled": random.permutation(x), "descending": x[::-1]}[order]
        for ends in ({}, {"left": -7}, {"right": np.nan, "left": 0.5}):
            got = nd.interp(*(nd.asarray(a, device=device) for a in (x, xp, fp)), **ends)
            want = np.where(np.isnan(x), np.nan, np.interp(x, xp, fp, **ends))  # NumPy's NaN is lost at a single knot
            np.testing.assert_allclose(nd.asnumpy(got), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["uint64", "int64"])
@pytest.mark.parametrize("size", [127, 128, 1000, (1 << 14) - 1, (1 << 14) + 1, (1 << 22) + 1])
@pytest.mark.parametrize("kind", WORDS)
def test_words_far_apart_are_put_in_order_and_equal_ones_keep_theirs(kind, size, dtype, device):
    if size > 1 << 20 and (kind not in ("random", "with equal ones") or dtype == "int64"):
        pytest.skip("one of each way is enough")
    words = WORDS[kind](np.random.default_rng(size).integers(0, (1 << 64) - 1, size, "uint64", True)).astype(dtype)
    got = nd.argsort(nd.asarray(words, device=device), stable=True)
    np.testing.assert_array_equal(got.get(), np.argsort(words, kind="stable"))


@pytest.mark.parametrize("shape", [(512, 512), (512, 513), (3, 1, 90_000), (64, 64, 65), (5, 0, 3)])
@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
def test_arrays_are_rolled_along_several_axes(device, shape, dtype):
    x = np.random.default_rng(5).integers(0, 200, shape).astype(dtype)
    steps, axes = (shape[0] // 2, -1, 7)[: len(shape)], tuple(range(len(shape)))
    for ours, theirs in ((nd.asarray(x, device=device), x), (nd.asarray(x, device=device).T, x.T)):
        np.testing.assert_array_equal(nd.asnumpy(nd.roll(ours, steps, axes)), np.roll(theirs, steps, axes))
        for name in ("fftshift", "ifftshift"):
            got, want = getattr(nd.fft, name)(ours), getattr(np.fft, name)(theirs)
            np.testing.assert_array_equal(nd.asnumpy(got), want)
