"""Corners that random programs and the differential have found: small dtypes, nothing at all, numbers of NumPy's."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import NUMPY_DTYPES, check, host, put

OF_NOTHING = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="before 2.3 NumPy has other rules"
)
SMALL = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint64"]


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize(
    "name", ["fabs", "modf", "degrees", "radians", "rad2deg", "deg2rad", "spacing", "round", "angle"]
)
def test_small_integers_are_computed_in_small_floats(name, dtype, device):
    x = np.array([0, 1, 3, 100]).astype(dtype)
    check(getattr(nd, name)(put(x, device)), getattr(np, name)(x), rtol=2e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_spacing_of_both_zeros(dtype, device):
    x = np.array([0.0, -0.0, -1.0, np.inf, np.nan], dtype)
    with np.errstate(all="ignore"):
        check(nd.spacing(put(x, device)), np.spacing(x), rtol=0)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_spacing_of_any_bits_is_the_same_dense_and_strided(dtype, step, device):
    bits = np.random.default_rng(5).integers(0, 1 << 32, 2049, dtype=np.uint32).repeat(np.dtype(dtype).itemsize // 4)
    limits = [np.finfo(dtype).max, -np.finfo(dtype).max, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal]
    x = np.concatenate([bits.view(dtype), np.array(limits, dtype)])
    with np.errstate(all="ignore"):
        check(nd.spacing(put(x, device)[::step]), np.spacing(x[::step]), rtol=0)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8"])
def test_bits_of_every_byte_are_counted(dtype, device):
    x = np.arange(256, dtype="uint8").view("int8").astype(dtype)
    want = np.array([bin(abs(int(value))).count("1") for value in x], "uint8")
    check(nd.bitwise_count(put(x, device)), want)


@pytest.mark.parametrize("dtype", SMALL)
def test_small_integers_of_two_operands(dtype, device):
    x, y = np.array([0, 1, 3, 5]).astype(dtype), np.array([1, 1, 2, 3], "int8")
    check(nd.logaddexp2(put(x, device), put(y, device)), np.logaddexp2(x, y), rtol=4e-3)
    check(nd.ldexp(put(x, device), put(y, device)), np.ldexp(x, y))


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_exponents_of_any_size_round_once(dtype, kind, device):
    least = np.finfo(dtype).smallest_subnormal
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, least, 3 * least, 5 * least, 1, -0.75, np.finfo(dtype).max], dtype)
    limits = np.iinfo(kind)
    for k in (0, 1, -1, -2, -3, 11, -24, 40, -60, 1100, -2098, 2049, 70000, limits.max, limits.min):
        if limits.min <= k <= limits.max:
            with np.errstate(all="ignore"):
                want = np.ldexp(x, np.full(x.shape, max(-5000, min(k, 5000)), "int32"))
            check(nd.ldexp(put(x, device), put(np.full(x.shape, k, kind), device)), want, rtol=0)


@pytest.mark.parametrize("name", ["fabs", "modf", "degrees", "radians", "spacing"])
def test_functions_of_reals_refuse_complex_numbers(name, device):
    with pytest.raises(TypeError, match="not defined for complex64"):
        getattr(nd, name)(put(np.array([1 + 2j], "complex64"), device))


@pytest.mark.parametrize("name", ["quantile", "percentile"])
def test_complex_numbers_have_no_quantiles(name, device):
    with pytest.raises(TypeError, match="order"):
        getattr(nd, name)(put(np.array([1 + 2j, 3]), device), 0.5)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_lcm_wraps_as_its_dtype_does(dtype, device):
    info = np.iinfo(dtype)
    some = np.array([info.min, info.max, info.max - 1, 0, 1, 6, 100, 77], dtype)
    x, y = np.repeat(some, len(some)), np.tile(some, len(some))
    check(nd.lcm(put(x, device), put(y, device)), np.lcm(x, y))


def test_powers_of_zero_with_complex_exponents(device):
    exponents = np.array([2 + 1j, 0.5 - 3j, 2, 0, 1j, -1, -2 + 1j, complex(np.inf, 1), complex(np.nan, 1)])
    for zero in (0j, complex(-0.0, 0)):
        base = np.full(exponents.shape, zero)
        with np.errstate(all="ignore"):
            check(nd.power(put(base, device), put(exponents, device)), np.power(base, exponents))


@OF_NOTHING
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("order", [1, -1, np.inf, -np.inf, "fro"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_norms_of_nothing(shape, order, axis, device):
    x = np.zeros(shape)
    if order == "fro" and axis is not None:
        return
    try:
        want = np.linalg.norm(x, order, axis)
    except ValueError:
        with pytest.raises(ValueError, match="empty axis"):
            nd.linalg.norm(put(x, device), order, axis)
        return
    check(nd.linalg.norm(put(x, device), order, axis), np.asarray(want))


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_comparisons_with_scalars_of_numpy_on_the_left(dtype, device):
    x = np.array([0, 1, 2]).astype(dtype)
    scalar = np.ones(1, dtype)[0]
    ours = put(x, device)
    for got, want in (
        (scalar == ours, scalar == x),
        (scalar != ours, scalar != x),
        (scalar < ours, scalar < x),
        (scalar <= ours, scalar <= x),
        (scalar > ours, scalar > x),
        (scalar >= ours, scalar >= x),
    ):
        check(got, want)
    with pytest.raises(TypeError, match="Unsupported type"):
        np.ones(3, dtype) < ours  # noqa: B015


def test_scalars_of_numpy_keep_their_dtype_in_comparisons(device):
    x = put(np.array([1, 2, 255], "uint8"), device)
    check(np.int64(-1) < x, np.array([True, True, True]))
    check(np.float64(1.5) <= x, np.array([False, True, True]))


@pytest.mark.parametrize("shape", [(0, 2), (2, 0, 3), (0,)])
def test_views_of_nothing(shape, device):
    x = put(np.zeros(shape, "complex64"), device)
    assert x.imag.shape == x.real.shape == shape and x.imag.dtype == "float32"
    x.imag = 1
    if len(shape) > 1:
        for offset in (-1, 0, 1, 2):
            assert nd.diagonal(x, offset).shape == np.diagonal(np.zeros(shape), offset).shape


@pytest.mark.parametrize("name", ["max", "min", "ptp", "argmax"])
@pytest.mark.parametrize(("shape", "axis"), [((0, 0), 0), ((0, 0), 1), ((3, 0), 1), ((0, 3), 1), ((2, 0, 0), 2)])
def test_extremes_of_nothing_are_refused_where_numpy_refuses_them(name, shape, axis, device):
    try:
        want = getattr(np, name)(np.zeros(shape), axis=axis)
    except ValueError:
        with pytest.raises(ValueError, match="empty axis"):
            getattr(nd, name)(put(np.zeros(shape), device), axis=axis)
    else:
        check(getattr(nd, name)(put(np.zeros(shape), device), axis=axis), want)


@OF_NOTHING
@pytest.mark.parametrize(
    ("shape", "key"),
    [
        ((3, 0), (slice(0, 0), [0])),
        ((0, 3), ([0],)),
        ((0, 5, 3), ([[0], [0]], [False, True, True, True, True], slice(0, 0))),
        ((3, 0), ([], [0])),
        ((3, 0), (slice(None), [])),
        ((0, 3), (slice(None), [1, 2])),
    ],
)
def test_positions_on_an_axis_of_nothing(shape, key, device):
    theirs = np.zeros(shape)
    key = tuple(np.array(k, bool if k and isinstance(k[0], bool) else int) if isinstance(k, list) else k for k in key)
    ours_key = tuple(put(k, device) if isinstance(k, np.ndarray) else k for k in key)
    ours = put(theirs, device)
    try:
        want = theirs[key]
    except IndexError:
        with pytest.raises(IndexError):
            ours[ours_key]
        with pytest.raises(IndexError):
            ours[ours_key] = 1
    else:
        check(ours[ours_key], want)
        ours[ours_key] = 1


def test_one_element_without_a_dimension(device):
    x = put(np.array(3, "int64"), device)
    nd.put(x, [-1, 0], [5, 7])
    check(x, np.array(7))
    check(nd.asfortranarray(x), np.asfortranarray(np.array(7)))
    check(nd.ascontiguousarray(x), np.ascontiguousarray(np.array(7)))


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize(
    ("dtype", "wide"), [("float16", "float32"), ("float32", "float64"), ("complex64", "complex128")]
)
def test_what_a_wider_output_takes_is_not_rounded_to_the_elements_dtype(name, dtype, wide, device):
    values = np.asarray([[0.1, -3.7, 2.3], [1e3, 7.7, 0.01]], dtype)
    spread = wide if name in ("sum", "mean", "nanmean") else np.zeros((), wide).real.dtype
    out = put(np.zeros(3, spread), device)
    getattr(nd, name)(put(values, device), axis=0, out=out)
    want = getattr(np, name)(values.astype(wide), axis=0)
    np.testing.assert_allclose(host(out), want, rtol=4 * np.finfo(wide).eps)


@pytest.mark.parametrize("name", ["mean", "var", "nanmean", "nanvar", "nanstd", "ptp"])
@pytest.mark.parametrize("out", [[1.0], 1.0, np.zeros(())])
def test_what_is_no_array_takes_no_result(name, out, device):
    with pytest.raises(TypeError, match="nd"):
        getattr(nd, name)(put(np.ones(3), device), out=out)


def test_the_mean_of_integers_is_float64s_whatever_takes_it(device):
    values = np.asarray([2**24 + 1, 2**24 + 3, 2**24 + 5], np.int32)
    out = put(np.zeros((), np.float32), device)
    nd.mean(put(values, device), out=out)
    assert float(out) == np.float32(values.mean())


def test_ptp_into_a_wider_output_does_not_wrap_around(device):
    values = np.asarray([[-100, 5], [100, 7]], np.int8)
    out = put(np.zeros(2, np.int64), device)
    assert nd.ptp(put(values, device), axis=0, out=out) is out
    assert out.tolist() == np.ptp(values, axis=0, out=np.zeros(2, np.int64)).tolist() == [200, 2]


def test_ptp_refuses_an_output_of_another_shape(device):
    with pytest.raises(ValueError, match="shape"):
        nd.ptp(put(np.zeros((1, 5)), device), axis=-1, out=put(np.zeros((2, 3)), device))


def test_squeeze_gives_the_array_itself_where_no_axis_is_dropped(device):
    x = nd.zeros((2, 3), device=device)
    assert x.squeeze() is x
    assert nd.squeeze(x) is x
    assert x[None].squeeze() is not x


def test_trimseq_gives_a_vector_without_zeros_at_its_end_itself():
    x = nd.array([1.0, 0.0, 2.0], device="cpu")
    assert nd.polynomial.polyutils.trimseq(x) is x
    for zeros in (1, 3, 7, 8, 20):
        for begin in ([], [3, 0], [5]):
            given = [0, *begin, *[0] * zeros]
            check(nd.polynomial.polyutils.trimseq(nd.array(given)), np.polynomial.polyutils.trimseq(np.array(given)))


SEQUENCES = [
    *([1, 2, 3], [1.5, -0.0, float("inf")], [[1, 2], [3, -4]], [[[1.0], [2.0]]], range(5), [range(3), range(3, 6)]),
    *([1, 2.5], [2.5, 1], [True, 2], [1, True], [1, 2**63], [2**63], [1, 2j], [[1, 2], (3, 4)], (), [[], []], range(0)),
    *([-(2**63), 2**63 - 1], [float("nan"), 1.0], [np.int8(1), 2], [1, np.float32(2)]),
]


@pytest.mark.parametrize("values", SEQUENCES, ids=str)
def test_numbers_of_one_kind_and_of_several_become_the_array_of_numpy(values, device):
    check(nd.array(values, device=device), np.array(values))
    for dtype in ("float64", "float32", "complex64"):
        if not isinstance(values, list) or not any(isinstance(x, complex) for x in values) or dtype == "complex64":
            check(nd.array(values, dtype, device=device), np.array(values, dtype))


@pytest.mark.parametrize("values", [[1, [2]], [[1, 2], [3]], [[1.0], 2.0], [1.0, [2.0]], [[1], [[2]]]], ids=str)
def test_sequences_of_several_lengths_are_refused(values):
    with pytest.raises(ValueError, match="different lengths"):
        nd.array(values)


@pytest.mark.parametrize("values", [[300], [1, -1, 256], [[255], [2**62]]], ids=str)
def test_integers_that_the_dtype_does_not_hold_are_refused(values):
    with pytest.raises(OverflowError):
        nd.array(values, "uint8")


def test_flips_of_too_few_dimensions_say_so(device):
    for flip, dims in ((nd.flipud, 0), (nd.fliplr, 1), (nd.fliplr, 0)):
        with pytest.raises(ValueError, match="axis"):
            flip(put(np.ones((3,) * dims), device))


def test_einsum_of_one_array_gives_a_view_and_never_the_array_itself(device):
    x = put(np.arange(6.0).reshape(2, 3), device)
    for subscripts in ("ij", "ij->ij", "ij->ji", "...->..."):
        result = nd.einsum(subscripts, x)
        assert result is not x and nd.shares_memory(result, x)
        check(result, np.einsum(subscripts, np.arange(6.0).reshape(2, 3)))


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "complex64"])
def test_an_array_is_equal_to_itself_unless_it_holds_nan(dtype, device):
    x = nd.ones(5, dtype=dtype, device=device)
    assert bool(nd.array_equal(x, x)) and nd.array_equal(x, x).shape == ()
    if dtype in ("float32", "complex64"):
        x[2] = float("nan")
        assert not bool(nd.array_equal(x, x)) and bool(nd.array_equal(x, x, equal_nan=True))


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
@pytest.mark.parametrize("name", ["unique", "unique_values", "unique_counts", "unique_inverse", "unique_all"])
def test_unique_elements_of_nothing_are_no_view_of_it(name, dtype, device):
    nothing = nd.broadcast_to(nd.zeros((1,), dtype, device=device), (2, 0, 2))
    found = getattr(nd, name)(nothing)
    for part in found if isinstance(found, tuple) else (found,):
        assert part.size == 0 and part.flags.writeable and part.dtype in (dtype, "int64")
