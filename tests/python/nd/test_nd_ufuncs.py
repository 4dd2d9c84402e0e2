"""Every ufunc with every dtype that NumPy has a loop for, type promotion, and the arguments of ufuncs."""

import itertools
import re

import numpy as np
import pytest
from dlbridge import nd
from dlbridge.nd._kernels.codegen import device_header
from nd_support import COMPLEX, FLOATS, INTS, NUMPY_DTYPES, check, host, put
from oracle.elementwise import BEYOND_NUMPY

UFUNCS = sorted({value.__name__: value for value in vars(nd).values() if isinstance(value, nd.ufunc)})
# Functions with cancellation or poles: the libraries differ by more than a few units in the last place.
# bool operands of these count as int8; NumPy refuses them.
WIDER = {("gcd", "bool"), ("lcm", "bool"), ("positive", "bool")}
LOOSE = dict.fromkeys(("tan", "arccosh", "arctanh", "arcsinh", "arccos", "arcsin", "log1p", "arctan", "tanh"), 20)
LOOSE |= dict.fromkeys(("power", "remainder", "fmod", "sinc"), 10)
LOOSE |= dict.fromkeys(("sinh", "cosh", "exp2", "expm1", "logaddexp", "logaddexp2"), 4)


def values(dtype, seed, limit=None):
    """Ordinary numbers, and the special ones of the dtype."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, 24).astype(bool)
    if dtype in INTS:
        info = np.iinfo(dtype)
        ends = [info.min, info.max, 0, 1, 2, 3]
        body = rng.integers(max(info.min, -9), 10, 18)
        return np.concatenate([np.array(ends, dtype), body.astype(dtype)])
    real = np.concatenate([rng.normal(scale=2, size=17), [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]])
    if dtype in COMPLEX:  # special parts of complex functions are compared in the tests of the kernels
        return (rng.normal(scale=2, size=24) + 1j * rng.normal(scale=2, size=24)).astype(dtype)
    return real.astype(dtype)


def oracle(name, *operands):
    with np.errstate(all="ignore"):
        if name not in BEYOND_NUMPY:
            if name == "sinc" and operands[0].dtype == "float16":  # NumPy multiplies by a pi of three digits
                return np.sinc(operands[0].astype("float32")).astype("float16")
            try:
                return getattr(np, name)(*operands)
            except TypeError:
                return None
        if any(x.dtype.kind == "c" for x in operands) and "complex64" not in getattr(nd, name).types:
            return None
        loop = np.exp(np.zeros(0, np.result_type(*operands))).dtype  # of NumPy's functions of floats alone
        return np.asarray(BEYOND_NUMPY[name].value(*[x.astype("float64") for x in operands])).astype(loop)


@pytest.mark.parametrize("name", UFUNCS)
def test_every_dtype(name, device):
    ours = getattr(nd, name)
    tested = 0
    for dtype in NUMPY_DTYPES:
        operands = [values(dtype, seed) for seed in range(ours.nin)]
        if ours.nin == 2:
            operands = [np.repeat(operands[0], 24), np.tile(operands[1], 24)]
        if name in ("left_shift", "right_shift"):
            if dtype not in INTS:
                continue
            operands[1] = operands[1] % 8
        if name == "power" and dtype in INTS:
            operands[1] = np.abs(operands[1]) % 8
        if name == "reciprocal" and dtype in INTS:
            operands[0] = np.where(operands[0] == 0, 1, operands[0]).astype(dtype)  # NumPy's 1 // 0 is the compiler's
        want = oracle(name, *operands)
        arrays = [put(x, device) for x in operands]
        if (name, dtype) in WIDER:
            continue
        if want is None:
            with pytest.raises(TypeError):
                ours(*arrays)
            continue
        tested += 1
        tolerance = None
        if want.dtype.kind in "fc":
            tolerance = {"float16": 4e-3, "float32": 4e-6, "float64": 4e-14, "complex64": 2e-5, "complex128": 2e-12}[
                want.dtype.name
            ] * LOOSE.get(name, 1)
        try:
            check(ours(*arrays), want, rtol=tolerance)
        except AssertionError as error:
            raise AssertionError(f"{name} of {dtype}: {error}") from None
    assert tested > 0


@pytest.mark.parametrize("name", [n for n in UFUNCS if "bfloat16" in getattr(nd, n).types])
def test_bfloat16(name, device):
    """As float32, rounded at the end."""
    ours = getattr(nd, name)
    rng = np.random.default_rng(3)
    operands = [put(rng.uniform(0.1, 3, 60).astype("float32"), device).astype("bfloat16") for _ in range(ours.nin)]
    want = oracle(name, *[nd.asnumpy(x.astype("float32")) for x in operands])
    got = ours(*operands)
    assert got.dtype == ("bool" if want.dtype == bool else "bfloat16")
    check(got, want, rtol=1.6e-2, dtype=False)


def test_docstrings_are_of_one_ufunc_and_true():
    """Each says what it computes, and which kinds of dtypes it refuses."""
    kinds = {"bool": "bool", "integers": "int32", "floats": "float32", "complex numbers": "complex64"}
    texts = [getattr(nd, name).__doc__.partition("\n")[0] for name in UFUNCS]
    assert len(set(texts)) == len(UFUNCS)
    for name in UFUNCS:
        ours = getattr(nd, name)
        taken, refused = (
            re.search(rf"{words} ([^\n]*)", ours.__doc__)[1] for words in ("scalars? of", "TypeError for")
        )
        for kind, dtype in kinds.items():
            operands = [nd.ones(2, dtype, device="cpu")] * ours.nin
            assert (kind in refused) != (kind in taken), (name, kind)
            if kind in refused:
                with pytest.raises(TypeError):
                    ours(*operands)
            else:
                ours(*operands)
    assert "Other names: mod" in nd.remainder.__doc__ and nd.mod is nd.remainder
    assert nd.greater.__doc__.startswith("x1 > x2") and "Other names" not in nd.greater.__doc__


def test_every_ufunc_names_the_functor_that_fused_kernels_call():
    source = device_header("functors.cuh")
    for name in UFUNCS:
        ufunc = getattr(nd, name)
        assert set(ufunc.types) - set(ufunc._fused_types) <= {"complex64", "complex128"}, name
        for dtype in ufunc._fused_types:
            functor, compute, _ = ufunc._functor(dtype)
            assert functor in ("true", "false") or f"Op::{functor}," in source or f"({functor}, " in source, name
            assert compute in ufunc.types or functor in ("kPositive", "kLogicalOr", "kLogicalAnd", "kLogicalXor"), name
    assert "complex64" in nd.exp._fused_types and "complex64" not in nd.arcsin._fused_types


def test_functors_are_those_of_the_compiled_kernels():
    """Where the sign does not matter, bool is logic, or nothing is to be done, one functor serves several dtypes."""
    assert nd.add._functor("int32") == ("kAdd", "uint32", False)
    assert nd.maximum._functor("bool") == ("kLogicalOr", "bool", False)
    assert nd.floor._functor("int16") == ("kPositive", "int16", False)
    assert nd.isnan._functor("uint8") == ("false", "uint8", False)
    assert nd.greater._functor("float16") == ("kLess", "float16", True)
    assert nd.signbit._functor("bool")[1] == "int8"
    with pytest.raises(TypeError, match=r"arctan2\(\).*dtype"):
        nd.arctan2._functor("complex64")


def test_promotion_of_dtypes():
    for one, other in itertools.product(NUMPY_DTYPES, repeat=2):
        want = np.promote_types(one, other).name
        assert nd.promote_types(one, other) == want and nd.result_type(one, np.dtype(other)) == want, (one, other)
        for casting in ("no", "safe", "same_kind", "unsafe"):
            assert nd.can_cast(one, other, casting) == np.can_cast(one, other, casting), (one, other, casting)
    for other in NUMPY_DTYPES:
        wanted = {"float64": "float64", "complex128": "complex128", "complex64": "complex64", "float32": "float32"}.get(
            other
        )
        if other in ("bool", "int8", "uint8"):
            wanted = "bfloat16"
        if wanted:
            assert nd.promote_types("bfloat16", other) == wanted, other


def test_promotion_of_three_dtypes_lets_each_integer_meet_the_float_by_itself():
    for dtypes in itertools.product(NUMPY_DTYPES, repeat=3):
        assert nd.result_type(*dtypes) == np.result_type(*dtypes).name, dtypes


COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


@pytest.mark.parametrize("name", COMPARISONS)
def test_int64_and_uint64_are_compared_by_value(name, device):
    signed = np.array([-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1], "int64")[:, None]
    unsigned = np.array([0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1], "uint64")
    ours, theirs = getattr(nd, name), getattr(np, name)
    for a, b in ((signed, unsigned), (unsigned, signed), (signed[:0], unsigned)):
        check(ours(put(a, device), put(b, device)), theirs(a, b))
        out = put(np.zeros(np.broadcast_shapes(a.shape, b.shape), "int8"), device)
        ours(put(a, device), put(b, device), out=out)
        check(out, theirs(a, b).astype("int8"))
    for array, numbers in ((signed, unsigned), (unsigned, signed.ravel())):
        for number in numbers:
            check(ours(put(array, device), number), theirs(array, number))
            check(ours(number, put(array, device)), theirs(number, array))


def test_promotion_with_python_scalars(device):
    for dtype, scalar in itertools.product(NUMPY_DTYPES, (True, 3, 2.5, 1j)):
        theirs = np.ones(2, dtype)
        ours = put(theirs, device)
        check(ours + scalar, theirs + scalar)
        check(scalar * ours, scalar * theirs)
        assert nd.result_type(ours, scalar) == np.result_type(theirs, scalar).name
    for dtype in INTS:
        too_large = np.iinfo(dtype).max + 1
        with pytest.raises(OverflowError):
            put(np.ones(2, dtype), device) + too_large


def test_numpy_scalars_take_part_with_their_dtype(device):
    x = put(np.ones(3, "float32"), device)
    for scalar in (np.float64(2), np.float32(2), np.int8(2), np.complex64(2), np.bool_(True), np.uint64(2)):
        theirs = np.ones(3, "float32") * scalar
        check(x * scalar, theirs)
        check(scalar * x, theirs)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX, "int32", "bool"])
def test_out_and_dtype(dtype, device):
    x = put(np.arange(6).reshape(2, 3).astype(dtype), device)
    out = nd.empty((2, 3), "complex128", device=device)
    assert nd.add(x, x, out=out) is out and nd.add(x, x, out) is out
    check(out, (np.arange(6).reshape(2, 3).astype(dtype) * (2 if dtype != "bool" else 1)).astype("complex128"))
    assert nd.add(x, 1, dtype="complex128").dtype == "complex128"


def test_casts_between_all_dtypes(device):
    source = np.array([0, 1, 2, 100])
    for one, other in itertools.product([*NUMPY_DTYPES, "bfloat16"], repeat=2):
        x = put(source, device).astype(one)
        got = x.astype(other)
        assert got.dtype == other
        want = source.astype("bool" if "bool" in (one, other) else "int64")
        if one == "bool":
            want = source.astype(bool)
        check(got.astype("complex128"), want.astype("complex128"))


def test_methods_of_ufuncs_refuse_what_they_lack(device):
    x = nd.ones(3, device=device)
    for call in (lambda: nd.sin.reduce(x), lambda: nd.divide.accumulate(x)):
        with pytest.raises(TypeError, match="have it"):
            call()
    with pytest.raises(ValueError, match="outer"):
        nd.sin.outer(x, x)


KEYS = [
    "[0, 1, 0, 0]",
    "[-1, 2]",
    "slice(1, None)",
    "m",
    "0",
    "[]",
    "...",
    "([0, 1, 0], [1, 1, 1])",
    "(slice(None), [0, 0])",
]


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "maximum", "power", "logical_or", "negative", "divide"]
)
@pytest.mark.parametrize("dtype", ["int32", "float64", "uint8"])
def test_at_counts_every_position_named(name, dtype, device):
    for key, value in itertools.product(KEYS, (None, 2, "v", "f")):
        shape = (3, 2) if "(" in key and "slice(1" not in key else (4,)
        results = []
        for xp in (np, nd):
            theirs = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)
            x = theirs if xp is np else put(theirs, device)
            m = np.array([True, False, True, True])
            index = eval(key, {"m": m if xp is np else put(m, device)})
            operand = value
            if value in ("v", "f"):
                picked = np.arange(2, 2 + theirs[eval(key, {"m": m})].size).reshape(theirs[eval(key, {"m": m})].shape)
                if value == "f" and name == "power":
                    picked = np.ones_like(picked)  # a float beyond an integer dtype is cast as the platform likes
                operand = picked.astype(dtype if value == "v" else "float64")
                operand = operand if xp is np else put(operand, device)
            try:
                with np.errstate(all="ignore"):
                    getattr(xp, name).at(x, index, *([] if value is None else [operand]))
                results.append(x)
            except (TypeError, ValueError, IndexError) as error:
                results.append(error)
        want, got = results
        if isinstance(want, Exception):
            assert isinstance(got, (TypeError, ValueError)) or key == "[]", (key, value, want, got)
        else:
            check(got, want)


def test_small_integers_are_computed_in_small_floats(device):
    """Each operand in the float that holds it, as NumPy's loops for floats alone take them."""
    dtypes = ["bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32"]
    for one, other in itertools.product(dtypes, repeat=2):
        x, y = np.array([1, 2, 3]).astype(one), np.array([1, 0, 5]).astype(other)
        for name in ("heaviside", "hypot", "arctan2", "copysign", "logaddexp", "logaddexp2", "nextafter"):
            check(getattr(nd, name)(put(x, device), put(y, device)), getattr(np, name)(x, y), rtol=4e-3)
        for number in (2, -1, True, 2.5):
            for name in ("hypot", "arctan2", "copysign", "divide"):
                check(getattr(nd, name)(put(x, device), number), getattr(np, name)(x, number), rtol=4e-3)
                check(getattr(nd, name)(number, put(x, device)), getattr(np, name)(number, x), rtol=4e-3)
    for dtype in dtypes:
        x = np.array([1, 0, 1]).astype(dtype)
        for name in ("fabs", "degrees", "radians", "modf", "round"):
            check(getattr(nd, name)(put(x, device)), getattr(np, name)(x), rtol=4e-3)
    with pytest.raises(TypeError, match="fabs"):
        nd.fabs(nd.ones(2, "complex64", device=device))


def test_complex_division_by_zeros_of_either_sign(device):
    parts = [0.0, -0.0, 1.0, -2.0, np.inf]
    a = np.array([complex(x, y) for x in parts for y in parts])
    for zero in (0.0, -0.0, complex(-0.0, -0.0), complex(0.0, -0.0)):
        with np.errstate(all="ignore"):
            check(put(a, device) / zero, a / zero)
            check(put(a, device) / put(np.array([zero], complex), device), a / np.array([zero], complex))


def test_axis_errors_are_numpys(device):
    x = nd.ones((2, 3), device=device)
    for call in (lambda: x.sum(axis=2), lambda: nd.concat([x, x], axis=5), lambda: x.swapaxes(0, 7)):
        with pytest.raises(np.exceptions.AxisError) as caught:
            call()
        assert isinstance(caught.value, (nd.AxisError, IndexError, ValueError)) and isinstance(
            caught.value, nd.AxisError
        )
        assert "axis" in str(caught.value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_whole_numbers_to_whole_powers_are_whole(dtype, device):
    most = {"float16": 2**11, "float32": 2**21, "float64": 2**50}[dtype]
    pairs = [(b, e) for b in range(-40, 41) for e in range(1, 30) if 0 < abs(b) ** e < most]
    base, exponent = (np.array(x, dtype) for x in zip(*pairs, strict=True))
    got = nd.power(put(base, device), put(exponent, device))
    assert host(got).tolist() == [float(b**e) for b, e in pairs]
    assert [host(put(base, device) ** e)[0] for e in range(1, 4)] == [float(pairs[0][0] ** e) for e in range(1, 4)]


OUTPUTS = ["xp.sum(x, out=y)", "x.prod(out=y)", "xp.add.reduce(x, out=y)", "xp.cumsum(x, out=z)"]


@pytest.mark.parametrize("code", OUTPUTS)
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float16", "int8"])
@pytest.mark.parametrize("into", ["float32", "float64", "complex128"])
def test_numbers_are_added_up_in_the_dtype_of_out_where_that_holds_more(code, dtype, into, device):
    values = np.array([100, 27, 9] if dtype in ("int8", "float16") else [2**63 - 1, 7, 2], dtype)
    results = []
    for xp, make in ((np, lambda a: a), (nd, lambda a: put(a, device))):
        names = {"xp": xp, "x": make(values), "y": make(np.zeros((), into)), "z": make(np.zeros(3, into))}
        eval(code, names)
        results.append(names["z" if "cumsum" in code else "y"])
    check(results[1], results[0])


@pytest.mark.parametrize("name", UFUNCS)
def test_what_an_element_becomes_on_the_host_does_not_depend_on_its_place(name):
    """Alone, among others, in arrays with gaps, beside a repeated one: the loops differ, the bits do not."""
    ufunc = getattr(nd, name)
    parts = [0.0, -2.0, 1.5, 3e38, -np.inf, np.nan]
    special = [complex(a, b) for a in parts for b in parts]
    for dtype in NUMPY_DTYPES:
        pool = np.array(special, dtype) if dtype in COMPLEX else values(dtype, 1)
        operands = [nd.asarray(np.random.default_rng(seed).choice(pool, 203)) for seed in range(ufunc.nin)]
        try:
            together = ufunc(*operands)
        except TypeError:
            continue
        wanted = host(together)
        for i in (0, 63, 64, 150, 202):
            alone = [x[i : i + 1] for x in operands]
            check(ufunc(*alone), wanted[i : i + 1], rtol=0)
            if ufunc.nin == 2:
                check(ufunc(operands[0], alone[1])[i : i + 1], wanted[i : i + 1], rtol=0)
        gapped = [nd.zeros(406, dtype=x.dtype) for x in (*operands, together)]
        for wide, x in zip(gapped[:-1], operands, strict=True):
            wide[::2] = x
        ufunc(*(wide[::2] for wide in gapped[:-1]), out=gapped[-1][::2])
        check(gapped[-1][::2], wanted, rtol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "log"])
def test_exp_and_log_err_by_less_than_a_unit_of_the_last_place_on_the_host(name, dtype):
    """Against the wider float of the C library, from the smallest subnormal to the largest number."""
    info = np.finfo(dtype)
    ends = [info.smallest_subnormal, info.tiny, info.max]
    with np.errstate(all="ignore"):
        least, most = np.log(np.array([ends[0], ends[2]], dtype))
        rng = np.random.default_rng(4)
        spread = rng.uniform(least, most, 20_000)
        x = np.concatenate([spread, rng.normal(size=20_000)]) if name == "exp" else np.exp(spread.astype(np.longdouble))
        x = x.astype(dtype) if name == "exp" else np.concatenate([x, rng.uniform(0.5, 2, 20_000), ends]).astype(dtype)
        wanted = getattr(np, name)(x.astype(np.longdouble))
        unit = np.spacing(np.abs(wanted.astype(dtype)))
    error = np.abs(host(getattr(nd, name)(nd.asarray(x, device="cpu"))) - wanted) / unit
    assert float(error.max()) < 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exp_and_log_of_numbers_without_an_ordinary_result_are_those_of_c_on_the_host(dtype):
    info = np.finfo(dtype)
    inf, nan = np.inf, np.nan
    limit = float(np.log(info.max))
    cases = {
        "exp": [(0.0, 1), (-0.0, 1), (inf, inf), (-inf, 0), (nan, nan), (limit * 1.01, inf), (-limit * 1.2, 0)],
        "log": [(0.0, -inf), (-0.0, -inf), (inf, inf), (-inf, nan), (nan, nan), (-1.0, nan), (-info.tiny, nan), (1, 0)],
    }
    for name, table in cases.items():
        x, wanted = np.array(table, dtype).T
        check(getattr(nd, name)(nd.asarray(np.resize(x, 203))), np.resize(wanted, 203), rtol=0)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32"])
def test_the_ends_of_rows_are_computed_once(device, dtype):
    """A row's last elements are part of a block that begins before them, unless the result is written over them."""
    names = ["logical_and", "logical_or", "logical_xor", "greater", "maximum"]
    names += [] if dtype == "float32" else ["bitwise_xor"]
    for n in (63, 64, 65, 72, 127, 128, 130):
        a, b = (np.arange(3 * 150).reshape(3, 150) * k % 5 % 3 for k in (7, 4))
        a, b = (x.astype(dtype)[:, :n] for x in (a, b))
        x, y = (nd.array(np.ascontiguousarray(z), device=device) for z in (a, b))
        room = nd.zeros((3, 150), dtype=dtype, device=device)
        for name in names:
            ours, theirs = getattr(nd, name), getattr(np, name)
            check(ours(x, y), theirs(a, b))
            check(ours(x, y[:, :1]), theirs(a, b[:, :1]))
            for swapped in (False, True):  # in place, as the first and as the second operand
                part = room[:, :n]
                part[...] = y if swapped else x
                got = ours(x, part, out=part) if swapped else ours(part, y, out=part)
                check(got, theirs(a, b).astype(dtype))


@pytest.mark.parametrize(("dtype", "wider"), [("float32", "float64"), ("float64", "longdouble")])
def test_lengths_are_good_to_two_units_of_the_last_place_also_where_squares_overflow_or_vanish(dtype, wider):
    limits = np.finfo(dtype)
    r = np.random.default_rng(5)
    n = 20_000
    exponents = r.integers(limits.minexp - limits.nmant, limits.maxexp, n)
    x = np.ldexp(1 + r.random(n), exponents).astype(dtype)
    others = np.clip(exponents + r.integers(-30, 30, n), limits.minexp - limits.nmant, limits.maxexp - 1)
    y = (np.ldexp(1 + r.random(n), others) * r.choice([-1, 1], n)).astype(dtype)
    exact = np.hypot(x.astype(wider), y.astype(wider))
    fits, overflows = exact <= limits.max, exact > exact.dtype.type(limits.max) * 1.01
    assert fits.sum() > n // 2 and overflows.any()
    z = np.empty(n, np.result_type(dtype, 1j))
    z.real, z.imag = x, y
    for ours in (nd.hypot(nd.asarray(x, device="cpu"), nd.asarray(y, device="cpu")), abs(nd.asarray(z, device="cpu"))):
        ours = np.asarray(ours)
        assert ours.dtype == dtype
        off = np.abs(ours[fits].astype(wider) - exact[fits]) / np.spacing(exact[fits].astype(dtype)).astype(wider)
        assert off.max() < 2
        assert np.isinf(ours[overflows]).all()
