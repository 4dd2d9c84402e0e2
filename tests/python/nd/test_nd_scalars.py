"""Python's and NumPy's numbers as elements: assignment, comparison and arithmetic beside every dtype, as NumPy 2."""

import itertools
import operator
import warnings

import numpy as np
import pytest
from dlbridge import nd
from nd_support import COMPLEX, INTS, NUMPY_DTYPES, check, host, put

INTEGERS = [-(2**70), -(2**63) - 1, -(2**63), -300, -1, 0, 1, 300, 2**40, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70]
HUGE = [10**400, -(10**400)]
FLOATS = [0.0, -0.7, 3.7, 300.7, 1e300, -1e300, float("nan"), float("inf"), float("-inf"), 1 + 2**-11 + 2**-40]
NUMBERS = [True, False, *INTEGERS, *HUGE, *FLOATS, 1j, 2 - 3j]
SCALARS = [np.float64(3.7), np.int64(300), np.uint8(7), np.bool_(True), np.float32(0.1), np.int8(-1)]

# How a number comes to be an element of x; m is a mask of its shape.
WRITES = [
    *("x[0] = v", "x[...] = v", "x[1:] = v", "x[m] = v", "x[[0, 2]] = v", "x[m, ...] = v", "x.fill(v)"),
    *("xp.copyto(x, v)", "xp.copyto(x, v, where=m)", "xp.copyto(x, v, casting='unsafe')"),
    *("xp.put(x, [0], v)", "xp.put(x, [0, 1], [0, v])", "xp.putmask(x, m, v)", "xp.place(x, m, [v])"),
    *("x = xp.full_like(x, v)", "x = xp.full((2,), v, dtype=d)", "x = xp.full((0,), v, dtype=d)"),
    *("x = xp.array(v, dtype=d)", "x = xp.array([[v]], dtype=d)", "x = xp.asarray([0, v], dtype=d)"),
]
ERRORS = (OverflowError, ValueError, TypeError)


def run(code, xp, x, mask, number, dtype):
    """The array that `x` is after the code, or the error."""
    names = {"xp": xp, "x": x, "m": mask, "v": number, "d": dtype}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, names)
        except ERRORS as error:
            return error
    return names["x"]


def fits(number, dtype):
    return np.iinfo(dtype).min <= int(number) <= np.iinfo(dtype).max


def is_c_undefined(number, dtype):
    """Whether a cast of the number in C has no defined result."""
    if dtype not in INTS or not isinstance(number, float):
        return False
    limits = np.iinfo(dtype)
    return not limits.min <= number <= limits.max


@pytest.mark.parametrize("code", WRITES)
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_writing_a_number(dtype, code, device):
    """A Python number is converted as Python does it, a NumPy scalar is cast; what does not fit is refused."""
    for number in (*NUMBERS, *SCALARS):
        theirs, mask = np.arange(3).astype(dtype), np.array([True, False, True])
        if (code.endswith("unsafe')") or "full" in code) and is_c_undefined(number, dtype):
            continue
        if dtype == "bool" and type(number) is int and abs(number) > 1 and ("xp.f" in code or "copyto" in code):
            continue  # NumPy makes an array of the number first, and then refuses those of more than 64 bits
        if dtype in INTS and isinstance(number, np.integer) and not fits(number, dtype):
            continue  # NumPy casts or refuses it, by the dtype
        ours = put(theirs, device)
        want = run(code, np, theirs, mask, number, dtype)
        got = run(code, nd, ours, put(mask, device), number, dtype)
        if isinstance(want, Exception):
            assert isinstance(got, type(want)) and not isinstance(got, UnicodeError), (number, want, got)
        else:
            assert not isinstance(got, Exception), (number, got)
            np.testing.assert_array_equal(host(got), want, err_msg=repr(number))
            assert got.dtype == want.dtype


COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


ORDER = {"less", "less_equal", "greater", "greater_equal"}
PYTHON = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "logical_and": lambda x, y: bool(x) and bool(y),
    "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_xor": lambda x, y: bool(x) != bool(y),
}


@pytest.mark.parametrize("name", PYTHON)
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_comparison_with_integers_of_any_size(dtype, name, device):
    limits = np.iinfo(dtype) if dtype in INTS else None
    theirs = np.array([limits.min, 0, limits.max] if limits else [0, 1, 2]).astype(dtype)
    ours = put(theirs, device)
    for number in (*INTEGERS, 300.5, True):
        if number == 300.5 and dtype in COMPLEX and name in ORDER:
            continue
        # Python's own answers: NumPy refuses ints past 64 bits beside bool, and as a truth.
        exact = getattr(theirs, "real" if name in ORDER else "T").tolist()
        check(getattr(nd, name)(ours, number), np.array([PYTHON[name](x, number) for x in exact]))
        check(getattr(nd, name)(number, ours), np.array([PYTHON[name](number, x) for x in exact]))
    out = nd.zeros((2, 3), "int8", device=device)
    assert nd.equal(ours, 2**70, out=out) is out and not bool(out.any())
    assert nd.not_equal(ours, 2**70, out=out) is out and bool(out.all())


def test_comparison_of_numpy_scalars():
    for name, one, other in itertools.product(COMPARISONS, (np.uint8(5), np.int64(-1)), (300, -300, 2**70)):
        assert bool(getattr(nd, name)(one, other)) == bool(getattr(np, name)(one, other))
        assert bool(getattr(nd, name)(other, one)) == bool(getattr(np, name)(other, one))


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_comparison_with_what_is_no_number(dtype, device):
    theirs = np.arange(6).reshape(2, 3).astype(dtype)
    ours = put(theirs, device)
    for other in (None, "a", b"a"):
        check(ours == other, np.zeros((2, 3), bool))
        check(ours != other, np.ones((2, 3), bool))
        check(other == ours, np.zeros((2, 3), bool))
    with pytest.raises(TypeError):
        ours < None  # noqa: B015


ARITHMETIC = ["add", "subtract", "multiply", "floor_divide", "maximum", "minimum", "bitwise_and", "left_shift", "fmod"]


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", INTS)
def test_arithmetic_with_integers_out_of_bounds(dtype, name, device):
    theirs = np.array([1, 2, 3], dtype)
    for number in (*INTEGERS, *HUGE):
        if name == "left_shift" and not 0 <= number < 8:
            continue
        ours = put(theirs, device)
        fits = np.iinfo(dtype).min <= number <= np.iinfo(dtype).max
        if not fits:
            for operands in ((ours, number), (number, ours)):
                with pytest.raises(OverflowError, match="out of bounds"):
                    getattr(nd, name)(*operands)
        elif name not in ("floor_divide", "fmod") or number:
            check(getattr(nd, name)(ours, number), getattr(np, name)(theirs, number))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_python_integers_past_the_floats(dtype, device):
    x = put(np.ones(2, dtype), device)
    for call in (lambda n: x + n, lambda n: x == n, lambda n: x.fill(n), lambda n: nd.full(2, n, dtype)):
        for number in HUGE:
            with pytest.raises(OverflowError):
                call(number)
    check(x == 2**1023, np.zeros(2, bool))


def test_a_python_float_is_rounded_once():
    """To float16 by way of float32 it would be rounded twice."""
    for number in (
        1 + 2**-11 + 2**-40,
        1 + 2**-11,
        2049 + 2**-30,
        5.960464477539063e-08 * 0.5 * (1 + 2**-50),
        65519.999,
    ):
        check(nd.array(number, "float16", device="cpu"), np.float16(number))
        check(nd.zeros(1, "float16", device="cpu") + number, np.zeros(1, "float16") + number)


@pytest.mark.parametrize("dtype", [d for d in NUMPY_DTYPES if d not in COMPLEX])
def test_clip_by_integers_out_of_bounds(dtype, device):
    theirs = np.array([0, 1, 2, 100]).astype(dtype)
    ours = put(theirs, device)
    bounds = [None, -300, -1, 0, 1, 2, 255, 256, 300, 2**40, 2**70]
    for low, high in itertools.product(bounds, repeat=2):
        if (low is None and high is None) or (dtype == "bool" and 2**70 in (low, high)):
            continue
        try:
            want = np.clip(theirs, low, high)
        except OverflowError:
            with pytest.raises(OverflowError):
                nd.clip(ours, low, high)
        else:
            check(nd.clip(ours, low, high), want)
            check(ours.clip(low, high), want)


def test_putmask_keeps_the_values_of_wide_integers(device):
    x = nd.zeros(2, "uint64", device=device)
    nd.putmask(x, nd.array([True, False], device=device), [2**62 + 1, 5])
    assert x.tolist() == [2**62 + 1, 0]


CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe"]


@pytest.mark.parametrize("casting", [*CASTINGS, "wrong"])
def test_casting(casting, device):
    """astype, copyto and ufuncs allow what NumPy's do."""
    for one, other in itertools.product(
        ["bool", "uint8", "int8", "int64", "float16", "float64", "complex64"], repeat=2
    ):
        for code in (
            "x.astype(other, casting=c)",
            "xp.copyto(xp.zeros(2, other, **on), x, casting=c)",
            "xp.add(x, x, out=xp.zeros(2, other, **on), casting=c)",
            "xp.add(x, xp.ones(2, other, **on), casting=c)",
            "xp.multiply(x, x, dtype=other, casting=c)",
            "xp.multiply(x, 1, dtype=other, casting=c)",
            "xp.equal(x, xp.ones(2, other, **on), casting=c)",
        ):
            results = []
            for xp, x, on in ((np, np.ones(2, one), {}), (nd, put(np.ones(2, one), device), {"device": device})):
                try:
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        results.append(eval(code, {"xp": xp, "x": x, "other": other, "c": casting, "on": on}))
                except ERRORS as error:
                    results.append(error)
            want, got = results
            if isinstance(want, Exception):
                assert isinstance(got, TypeError if isinstance(want, TypeError) else ValueError), (
                    code,
                    one,
                    other,
                    got,
                )
            else:
                check(got, want)


@pytest.mark.parametrize("casting", CASTINGS)
def test_casting_of_python_numbers(casting, device):
    for dtype, number in itertools.product(NUMPY_DTYPES, (True, 3, 3.7, 1j)):
        allowed = True
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.copyto(np.zeros(2, dtype), number, casting=casting)
        except TypeError:
            allowed = False
        x = nd.zeros(2, dtype, device=device)
        if allowed or (casting == "equiv" and type(number) is complex and dtype == "complex128"):
            nd.copyto(x, number, casting=casting)
        else:
            with pytest.raises(TypeError, match="cannot cast"):
                nd.copyto(x, number, casting=casting)


class Hostile:
    """A scalar by its attributes; what it is asked for fails."""

    shape = ()
    dtype = np.dtype("float32")

    def __init__(self, error, where):
        self.error, self.where = error, where

    def __getattribute__(self, name):
        where = object.__getattribute__(self, "where")
        if name == where:
            raise object.__getattribute__(self, "error")
        return object.__getattribute__(self, name)

    def item(self):
        class Number:
            def __float__(self):
                raise KeyboardInterrupt

        if self.where == "item()":
            raise self.error
        return Number()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
@pytest.mark.parametrize("where", ["shape", "dtype", "item", "item()"])
def test_errors_of_scalars_pass_through(where, error, device):
    x = nd.ones(3, device=device)
    for call in (
        lambda v: x + v,
        lambda v: nd.add(x, v),
        lambda v: nd.array([v]),
        lambda v: x.fill(v),
        lambda v: x.__setitem__(0, v),
        lambda v: nd.where(x > 0, x, v),
    ):
        with pytest.raises(error):
            call(Hostile(error("user"), where))
    with pytest.raises(KeyboardInterrupt):
        x + Hostile(None, "")


@pytest.mark.parametrize("write", ["x @= y", "xp.matmul(x, y, out=x)", "xp.matmul(x, y, out=o)"])
@pytest.mark.parametrize(
    ("one", "other"),
    [((2, 2), (2, 2)), ((3, 2, 2), (2, 2)), ((2, 2), (3, 2, 2)), ((2, 2), (2,)), ((2, 1), (1, 2)), ((1, 2), (2, 1))],
)
def test_matrix_product_in_place(one, other, write, device):
    """The result must have the target's shape, and a dtype that can be cast to the target's (same_kind)."""
    for left, right, out in itertools.product(["int8", "int64", "float32", "float64"], repeat=3):
        results = []
        for xp in (np, nd):
            with warnings.catch_warnings():
                arrays = [np.ones(one, left), np.full(other, 2.5, right), np.zeros(one, out)]
            x, y, o = arrays if xp is np else [put(a, device) for a in arrays]
            names = {"xp": xp, "x": x, "y": y, "o": o}
            try:
                exec(write, names)
                results.append(names["o" if "=o" in write else "x"])
            except (TypeError, ValueError) as error:
                results.append(error)
        want, got = results
        if isinstance(want, Exception):
            assert isinstance(got, (TypeError, ValueError)), (left, right, out, want, got)
        elif want.shape != np.matmul(arrays[0], arrays[1]).shape:  # NumPy repeats the result into a larger output
            assert isinstance(got, ValueError) and "shape" in str(got)
        else:
            check(got, want)
        if isinstance(want, Exception) and one == other and "=o" not in write:
            assert isinstance(got, TypeError) and "same_kind" in str(got)


def test_order_in_lower_case(device):
    x = put(np.arange(6).reshape(2, 3), device)
    for order in "cfka":
        for call in (
            lambda o: x.copy(o),
            lambda o: x.astype("f4", order=o),
            lambda o: x.reshape(3, 2, order=o),
            lambda o: x.ravel(o),
            lambda o: x.flatten(o),
            lambda o: nd.array(x, order=o),
            lambda o: nd.asarray(x, order=o),
            lambda o: nd.copy(x, o),
            lambda o: nd.empty_like(x, order=o),
            lambda o: nd.zeros_like(x, order=o),
            lambda o: nd.ravel(x, o),
            lambda o: nd.reshape(x, (3, 2), order=o),
        ):
            assert call(order).strides == call(order.upper()).strides
        if order in "cf":
            assert (
                nd.unravel_index(5, (2, 3), order)[0].tolist() == nd.unravel_index(5, (2, 3), order.upper())[0].tolist()
            )
            for make in (nd.zeros, nd.ones, nd.empty, lambda s, order: nd.full(s, 1.0, order=order)):
                assert make((2, 3), order=order).strides == make((2, 3), order=order.upper()).strides
        if order != "k":
            assert x.get(order=order).strides == x.get(order=order.upper()).strides
            assert x.tobytes(order) == x.tobytes(order.upper()) and nd.asnumpy(x, order=order).shape == (2, 3)
    for wrong in ("X", "", "CF", 1):
        with pytest.raises(ValueError, match="order"):
            x.copy(wrong)


def test_an_order_that_needs_a_copy_is_refused_without_one(device):
    x = put(np.arange(6).reshape(2, 3), device)
    for make in (nd.array, nd.asarray):
        with pytest.raises(ValueError, match="copy=False"):
            make(x, order="F", copy=False)
        assert make(x, order="C", copy=False) is x and make(x.T, order="F", copy=False).data_ptr == x.data_ptr
        assert make(x, order="F", copy=None).flags.f_contiguous
