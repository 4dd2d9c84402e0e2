"""Forms of calls that NumPy's users know: outputs in tuples, reduceat, and what is refused as NumPy refuses it."""

import numpy as np
import pytest
from dlbridge import nd
from dlbridge.nd import _abstract
from nd_support import check, put

# --- ufuncs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or"])
@pytest.mark.parametrize("axis, indices", [(0, [0]), (1, [0, 2]), (2, [0, 2, 1, 3]), (-1, [3, 3, 0]), (0, [])])
def test_reduceat_reduces_from_each_index_to_the_next(name, axis, indices, device):
    x = np.arange(24.0).reshape(2, 3, 4) % 5
    if not indices:
        indices = np.zeros(0, "int64")
    given = put(indices, device) if isinstance(indices, np.ndarray) else indices
    check(getattr(nd, name).reduceat(put(x, device), given, axis), getattr(np, name).reduceat(x, indices, axis))
    check(np.add.reduceat(put(x, device), given, axis), np.add.reduceat(x, indices, axis))


def test_reduceat_takes_dtype_and_out(device):
    x = put(np.arange(6, dtype="int8"), device)
    out = nd.zeros(2, "float32", device=device)
    assert nd.add.reduceat(x, [0, 3], dtype="float64").dtype == "float64"
    assert nd.add.reduceat(x, [0, 3], out=out) is out and out.tolist() == [3, 12]


@pytest.mark.parametrize(
    "call, error",
    [
        ("nd.add.reduceat(x, [0, 6])", IndexError),
        ("nd.add.reduceat(x, [-1])", IndexError),
        ("nd.add.reduceat(x, [[0]])", ValueError),
        ("nd.add.reduceat(x, [0.5])", TypeError),
        ("nd.add.reduceat(x, [0], axis=1)", nd.AxisError),
        ("nd.subtract.reduceat(x, [0])", TypeError),
        ("nd.dot(x, x, out=nd.zeros((), 'float32', device=x.device))", ValueError),
        ("nd.dot(y, y, out=nd.zeros((3, 3), device=x.device).T)", ValueError),
        ("nd.divmod(x, 2, out=x)", ValueError),
        ("nd.divmod(x, 2, x, None, out=(x, x))", ValueError),
        ("nd.divmod(x, 2, x, 5)", TypeError),
        ("nd.repeat(x, x.astype('uint64'))", TypeError),
        ("nd.repeat(x, x * 1.0)", TypeError),
        ("nd.repeat(x, x.reshape(1, 6))", ValueError),
        ("nd.zeros((), device=x.device).sort()", nd.AxisError),
        ("nd.i0(x * 1j)", TypeError),
        ("nd.frexp(x * 1j)", TypeError),
    ],
)
def test_calls_that_numpy_refuses_are_refused(call, error, device):
    x = put(np.arange(6), device)
    with pytest.raises(error):
        eval(call, {"nd": nd, "x": x, "y": nd.ones((3, 3), device=device)})


def test_nothing_of_divmod_is_written_where_one_output_does_not_fit(device):
    x, good = put(np.arange(1, 7), device), nd.zeros(6, "int64", device=device)
    with pytest.raises(ValueError, match="out has shape"):
        nd.divmod(x, 2, out=(good, nd.zeros(5, "int64", device=device)))
    assert good.tolist() == [0] * 6
    assert nd.divmod(x, 2, x)[0] is x and x.tolist() == [0, 1, 1, 2, 2, 3]  # over an operand


def test_at_writes_values_of_other_libraries_as_an_assignment_does(device):
    for name in ("add", "maximum", "multiply"):
        x, want = nd.ones((2, 3), device=device), np.ones((2, 3))
        getattr(nd, name).at(x, ([1, 1],), np.array([2.0, 3.0, 4.0]))
        getattr(np, name).at(want, ([1, 1],), np.array([2.0, 3.0, 4.0]))
        check(x, want)


@pytest.mark.parametrize("name", ["add", "subtract", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64", "complex64"])
def test_at_takes_values_of_any_form_that_the_dtype_holds(name, dtype, device):
    places = np.array([3, 1, 3, -1, 0, 3])
    some = np.arange(6).astype(dtype)
    for values in (2, True, some, some[:1], np.array(2, dtype), some.astype("int8"), np.int8(3)):
        want = np.arange(9).astype(dtype)
        got = put(want, device)
        ours = put(values, device) if isinstance(values, np.ndarray) and values.ndim else values
        getattr(np, name).at(want, places, values)
        getattr(nd, name).at(got, put(places, device), ours)
        check(got, want)


@pytest.mark.parametrize("name", ["multiply", "bitwise_xor", "left_shift", "floor_divide", "logical_and"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float64", "complex128"])
def test_at_takes_values_for_one_place_one_after_the_other(name, dtype, device):
    random = np.random.default_rng(1)
    places, values = random.integers(0, 40, (500, 2)), random.integers(0, 3, 500).astype(dtype)
    want = random.integers(0, 50, (40, 40)).astype(dtype)
    got = put(want, device)
    with np.errstate(all="ignore"):
        try:
            getattr(np, name).at(want, tuple(places.T), values)
        except TypeError:
            pytest.skip("NumPy has none of these")
    getattr(nd, name).at(got, tuple(put(places, device).T), put(values, device))
    check(got, want)


# --- dtypes -----------------------------------------------------------------------------------------------------------

NUMBERS = """
0 255 256 2**16 2**32 2**64-1 -1 -128 -129 -2**31-1 -2**63 True 1.2 1e5 -1e39 2.5j 1e39+0j np.inf np.nan
np.int64(7) np.float64(1e300) np.bool_(True) [1,2] [[0.5]]"""


@pytest.mark.parametrize("value", NUMBERS.split())
def test_min_scalar_type_as_numpys(value):
    number = eval(value)
    assert nd.min_scalar_type(number) == np.min_scalar_type(number)


def test_min_scalar_type_of_arrays_is_their_dtype(device):
    for dtype in ("int8", "float32", "complex128", "bool"):
        assert nd.min_scalar_type(nd.ones((), dtype, device=device)) == nd.min_scalar_type(np.ones(2, dtype)) == dtype
    with pytest.raises(OverflowError, match="no dtype holds"):
        nd.min_scalar_type(2**64)


# --- scans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod", "cumulative_sum", "cumulative_prod"])
def test_scans_of_integers_go_into_every_dtype(name, dtype, device):
    x = np.array([[1, -1, 40], [-7, 7, 9]], "int16")
    out, want = nd.zeros((2, 3), dtype, device=device), np.zeros((2, 3), dtype)
    getattr(np, name)(x, axis=1, out=want)
    assert getattr(nd, name)(put(x, device), axis=1, out=out) is out
    check(out, want)


def test_scans_of_floats_and_of_complex_numbers_lose_nothing(device):
    for x, dtype in ((np.ones(3) / 2, "int32"), (np.ones(3) * 1j, "float64")):
        out = nd.zeros(3, dtype, device=device)
        for name in ("cumsum", "nancumprod", "cumulative_sum"):
            with pytest.raises(TypeError, match="cannot cast"):
                getattr(nd, name)(put(x, device), axis=0, out=out)
        assert out.tolist() == [0, 0, 0]


def test_cumulative_sum_writes_its_first_term_to_out(device):
    x, out, want = np.arange(6.0).reshape(2, 3), nd.zeros((2, 4), device=device), np.zeros((2, 4))
    np.cumulative_sum(x, axis=1, out=want, include_initial=True)
    assert nd.cumulative_sum(put(x, device), axis=1, out=out, include_initial=True) is out
    check(out, want)
    with pytest.raises(ValueError, match="out has shape"):
        nd.cumulative_sum(put(x, device), axis=1, out=out)


def test_gradient_along_no_axis_is_an_empty_tuple(device):
    assert nd.gradient(nd.ones((2, 3), device=device), axis=()) == nd.gradient(nd.ones((), device=device)) == ()
    with pytest.raises(TypeError, match="bool"):
        nd.gradient(nd.ones(3, "bool", device=device))


# --- matmul -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left, right, axes",
    [
        ((2, 5, 3, 2, 3, 4), (3, 5, 1, 1, 1, 4), [(1, 2), (0, 1), (0, 1)]),
        ((3, 2, 4, 4), (4, 4, 3, 2), [(0, 1), (-1, -2), (-2, -1)]),
        ((3, 2, 4, 4), (2, 3, 4, 4), [(0, 1), (0, 1), (1, 2)]),
        ((4, 2), (4,), [(1, 0), (0,), (0,)]),
        ((4,), (3, 4), [(0,), (1, 0), (-1,)]),
        ((4,), (4,), [(0,), (0,), ()]),
    ],
)
def test_matmul_finds_the_matrices_on_any_axes(left, right, axes, device):
    x, y = (np.arange(float(np.prod(shape))).reshape(shape) for shape in (left, right))
    want = np.matmul(x, y, axes=axes)
    check(nd.matmul(put(x, device), put(y, device), axes=axes), want)
    out = nd.zeros(want.shape, device=device)
    assert nd.matmul(put(x, device), put(y, device), axes=axes, out=out) is out
    check(np.matmul(put(x, device), put(y, device), axes=axes), want)
    check(out, want)


def test_matmul_casts_what_it_is_told_to(device):
    x = np.arange(6).reshape(2, 3) - 3.5
    a = put(x, device)
    check(nd.matmul(a, a.T, dtype="float32"), np.matmul(x, x.T, dtype="float32"))
    check(nd.matmul(a, a.T, dtype="int64", casting="unsafe"), np.matmul(x, x.T, dtype="int64", casting="unsafe"))
    for dtype in ("bool", "int32", "float32"):
        out = nd.zeros((2, 2), dtype, device=device)
        assert nd.matmul(a, a.T, out, casting="unsafe") is out
        check(out, np.matmul(x, x.T, out=np.zeros((2, 2), dtype), casting="unsafe"))


@pytest.mark.parametrize(
    "call, error",
    [
        ("xp.matmul(x, x, axes=[0, 0, ()])", nd.AxisError),
        ("xp.matmul(x, x, axes=[(0, 1), (0, 1), (0,)])", nd.AxisError),
        ("xp.matmul(x, x, axes=[(0, 1), (0, 2), (0, 1)])", nd.AxisError),
        ("xp.matmul(x, x, axes=[(0, 0), (0, 1), (0, 1)])", ValueError),
        ("xp.matmul(x, x, axes=[(0, 1), (0, 1)])", ValueError),
        ("xp.matmul(x, x, axes=3)", (ValueError, TypeError)),
        ("xp.matmul(x, x, dtype='int32')", TypeError),
        ("xp.matmul(x, x.astype('float32'), casting='no')", TypeError),
        ("xp.matmul(x, x, x.astype('float32'), casting='safe')", TypeError),
        ("xp.matmul(x, x, x[:1], casting='unsafe')", ValueError),
        ("xp.matmul(x, x, casting='any')", ValueError),
    ],
)
def test_matmul_refuses_what_numpy_refuses(call, error, device):
    for xp, x in ((np, np.ones((3, 3))), (nd, nd.ones((3, 3), device=device))):
        with pytest.raises(np.exceptions.AxisError if xp is np and error is nd.AxisError else error):
            eval(call, {"xp": xp, "x": x})


# --- functions --------------------------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.5, 1024.0, 3e-5, 1e-7, 2.0**-24, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_frexp_of_all_kinds_of_numbers(dtype, device):
    info = np.finfo(dtype)
    ends = [info.max, info.tiny, info.smallest_subnormal, info.tiny / 4, -info.tiny * 0.75]
    x = np.array([*SPECIAL, *ends]).astype(dtype)
    mantissa, exponent = nd.frexp(put(x, device))
    check(mantissa, np.frexp(x)[0])
    check(exponent, np.frexp(x)[1])
    check(nd.ldexp(mantissa, exponent), x)


def test_frexp_of_bfloat16(device):
    x = nd.asarray([1.0, -3.5, 0.0, 1e-40], "bfloat16", device=device)
    mantissa, exponent = nd.frexp(x)
    assert mantissa.dtype == "bfloat16" and exponent.tolist()[:3] == [1, 2, 0]
    assert bool((nd.ldexp(mantissa, exponent) == x).all())


def test_i0_is_accurate_from_end_to_end(device):
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-30, 30, 601), np.linspace(30, 705, 300)])
    np.testing.assert_allclose(nd.asnumpy(nd.i0(put(x, device))), special.i0(x), rtol=4e-15)
    assert nd.i0(put(np.float32([np.inf, -np.inf, 1]), device)).tolist()[:2] == [np.inf] * 2
    assert nd.i0(put(np.int8([1]), device)).dtype == "float64" and nd.i0(put(np.float32(1), device)).dtype == "float32"


def test_the_number_of_dimensions_of_anything():
    for value in (None, "abc", {1}, {"a": 1}, 5, [1, 2], [[1]], np.ones((2, 2)), np.float32(1)):
        assert nd.ndim(value) == np.ndim(value)


def test_lexsort_of_a_vector_of_keys_sorts_one_element(device):
    assert nd.lexsort(put(np.array([2.0, 1.0]), device)).tolist() == 0
    with pytest.raises(nd.AxisError):
        nd.lexsort(put(np.array([2.0, 1.0]), device), axis=1)


@pytest.mark.parametrize("keys", [([1, 2], [1, 2, 3]), ([1, 2, 3], [1, 2]), ([[1, 2]], [1, 2])])
def test_keys_of_lexsort_have_one_shape(keys, device):
    with pytest.raises(ValueError, match="of one shape"):
        nd.lexsort([put(np.array(key), device) for key in keys])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("bins", [10, (4, 6)])
@pytest.mark.parametrize("range", [None, [(0, 50), (10, 100)]])
def test_edges_of_histograms_of_several_variables_have_numpys_dtypes(dtype, bins, range, device):
    x = (np.random.default_rng(3).random((100, 2)) * 100).astype(dtype)
    counts, edges = nd.histogramdd(put(x, device), bins, range)
    want, want_edges = np.histogramdd(x, bins, range)
    for mine, theirs in zip((counts, *edges), (want, *want_edges), strict=True):
        check(mine, theirs)


@pytest.mark.parametrize("value", [..., object(), object, None, "abc"], ids=lambda value: type(value).__name__)
def test_objects_that_are_no_numbers_equal_no_element(value, device):
    x = put(np.arange(3), device)
    for equal, unequal in ((x == value, x != value), (value == x, value != x)):
        assert equal.tolist() == [False] * 3 and unequal.tolist() == [True] * 3


def test_objects_that_compare_themselves_are_asked(device):
    class Two:
        def __eq__(self, other):
            return other == 2

    class NotTwo:
        def __ne__(self, other):
            return other != 2

    class Odd:
        def __eq__(self, other):
            return 5

    x = put(np.arange(3), device)
    assert (x == Two()).tolist() == [False, False, True]
    assert (x != Two()).tolist() == (np.arange(3) != Two()).tolist() == [True, True, False]
    assert (x != NotTwo()).tolist() == [True, True, False]
    assert (x != Odd()) is False  # as Python has it where no array answers


@pytest.mark.parametrize("shape, strides", [((2, 3, 4), (8, 0, 8)), ((2, 0, 4), (8, 128, 1024)), ((2, 3), (24, 8))])
def test_new_arrays_take_strides_that_stay_within_them(shape, strides, device):
    x = nd.ndarray(shape, strides=strides, device=device)
    assert x.strides == strides and x.shape == shape and x.dtype == "float64"


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("shape", [None, 5, (4, 3), (2, 3, 4)])
@pytest.mark.parametrize("source", ["a", "a.T", "a[::2]", "t.T", "t.swapaxes(0, 1)"])
def test_empty_like_lies_as_numpys_does(source, shape, order, device):
    arrays = {"a": np.zeros((4, 3)), "t": np.zeros((2, 3, 4))}
    ours = {name: put(x, device) for name, x in arrays.items()}
    want = np.empty_like(eval(source, {}, arrays), order=order, shape=shape)
    got = nd.empty_like(eval(source, {}, ours), order=order, shape=shape)
    assert got.strides == want.strides


def test_windows_and_strided_views_are_read_only_as_numpys(device):
    tricks, x = nd.lib.stride_tricks, put(np.arange(4.0), device)
    assert not tricks.sliding_window_view(x, 2).flags.writeable
    assert not tricks.as_strided(x, (2,), (8,), writeable=False).flags.writeable
    tricks.sliding_window_view(x, 2, writeable=True)[0, 1] = 9
    tricks.as_strided(x, (2,), (16,))[1] = 7
    assert x.tolist() == [0, 9, 7, 3]


def test_abstract_dtypes_are_numpys():
    for name in _abstract.NAMES:
        assert getattr(nd, name) is getattr(np, name)
    with pytest.raises(TypeError, match="none of the ndarray's"):
        nd.issubdtype("abc", nd.floating)


def test_a_covariance_without_freedom_warns(device):
    with pytest.warns(RuntimeWarning, match="degrees of freedom"):
        nd.cov(put(np.arange(6.0).reshape(2, 3), device), ddof=3)


def test_copies_are_there_when_a_blocking_call_returns(device):
    x = np.arange(5.0)
    for make in (nd.array, nd.asarray, nd.asanyarray):
        check(make(put(x, device), blocking=True), x)
    check(nd.array(x, blocking=True, device=device), x)


def test_an_ndarray_is_generic_in_annotations():
    assert str(nd.ndarray[int, float]) == "dlbridge.nd.ndarray[int, float]"


def test_methods_take_the_keywords_of_numpys(device):
    values = np.array([1.26, -2.5, 3.0])
    x = nd.asarray(values, device=device)
    check(x.round(decimals=1), values.round(decimals=1))
    with pytest.raises(TypeError):
        x.round(0.0)
    check(x.clip(min=0, max=2), values.clip(min=0, max=2))
    check(x.clip(min=nd.zeros_like(x), max=x), values.clip(min=np.zeros(3), max=values))
    ordered = np.sort(values)
    found = nd.asarray(ordered, device=device).searchsorted(v=x, side="right", sorter=None)
    check(found, ordered.searchsorted(v=values, side="right", sorter=None))
    assert x.searchsorted.__name__ == "searchsorted" and nd.searchsorted(a=x, v=x).shape == (3,)
