"""Every ufunc with every dtype that NumPy has a loop for, type promotion, and the arguments of ufuncs."""

import itertools

import numpy as np
import pytest
from dlbridge import nd
from nd_support import COMPLEX, FLOATS, INTS, NUMPY_DTYPES, check, put

UFUNCS = sorted({value.__name__: value for value in vars(nd).values() if isinstance(value, nd.ufunc)})
EXTRA = {  # ufuncs that NumPy lacks: what they compute
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(__import__("math").erf, otypes="d"),
}
# Functions with cancellation or poles: the libraries differ by more than a few units in the last place.
# bool operands of these count as int8; NumPy refuses them.
WIDER = {("gcd", "bool"), ("positive", "bool")}
REAL_ONLY = {"exp2", "rsqrt", "cbrt"}
LOOSE = dict.fromkeys(("tan", "arccosh", "arctanh", "arcsinh", "arccos", "arcsin", "log1p", "arctan", "tanh"), 20)
LOOSE |= dict.fromkeys(("power", "remainder", "fmod", "erf"), 10)
LOOSE |= dict.fromkeys(("sinh", "cosh", "exp2", "expm1", "logaddexp"), 4)


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
    function = EXTRA.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        try:
            want = function(*operands)
        except TypeError:
            return None
    if name in EXTRA and operands[0].dtype.kind == "f":
        return np.asarray(want).astype(operands[0].dtype)
    return want


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
        if (name, dtype) in {("erf", d) for d in INTS} | {("erf", "bool")}:
            continue
        want = oracle(name, *operands)
        arrays = [put(x, device) for x in operands]
        if (name, dtype) in WIDER or (name in REAL_ONLY and dtype in COMPLEX):
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


@pytest.mark.parametrize("name", [n for n in UFUNCS if "bfloat16" in getattr(nd, n).types and n not in EXTRA])
def test_bfloat16(name, device):
    """As float32, rounded at the end."""
    ours = getattr(nd, name)
    rng = np.random.default_rng(3)
    operands = [put(rng.uniform(0.1, 3, 60).astype("float32"), device).astype("bfloat16") for _ in range(ours.nin)]
    want = oracle(name, *[nd.asnumpy(x.astype("float32")) for x in operands])
    got = ours(*operands)
    assert got.dtype == ("bool" if want.dtype == bool else "bfloat16")
    check(got, want, rtol=1.6e-2, dtype=False)


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
    for call in (lambda: nd.sin.reduce(x), lambda: nd.divide.accumulate(x), lambda: nd.multiply.at(x, [0], 2)):
        with pytest.raises(TypeError, match="it is had for"):
            call()
    with pytest.raises(ValueError, match="outer"):
        nd.sin.outer(x, x)
