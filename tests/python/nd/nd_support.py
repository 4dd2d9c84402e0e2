"""What the tests of the ndarray share: inputs, and the comparison with NumPy's result."""

import math
import os

import numpy as np
from dlbridge import nd
from hypothesis import HealthCheck, settings

# How properties are tested: few examples, the same ones in every run, unless the environment asks for more.
examples = settings(
    max_examples=int(os.environ.get("DLBRIDGE_ND_EXAMPLES", "40")),
    deadline=None,
    database=None,
    derandomize="DLBRIDGE_ND_EXAMPLES" not in os.environ,
    # The fixture that differs between the runs of a test is a device's name: nothing that an example changes.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow],
)

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NUMPY_DTYPES = ["bool", *INTS, *FLOATS, *COMPLEX]  # bfloat16 is compared with float32

# Relative tolerance by dtype: a few units in the last place, for functions of the C library and of CUDA differ by some.
TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 3e-6,
    "float64": 1e-13,
    "complex64": 1e-5,
    "complex128": 1e-12,
}


def put(array, device):
    """A copy of a NumPy array on the device, with the same values and (but for gaps) the same layout."""
    return nd.array(array, device=device)


def host(x):
    """The values of an ndarray as a NumPy array; bfloat16 as float32."""
    return nd.asnumpy(x.astype("float32") if x.dtype == "bfloat16" else x)


def check(got, want, *, rtol=None, dtype=True):
    """Asserts that `got` is what NumPy gave: structure, type, dtype, shape, values."""
    if isinstance(want, (tuple, list)):
        assert isinstance(got, (tuple, list)) and len(got) == len(want), (got, want)
        for one, other in zip(got, want, strict=True):
            check(one, other, rtol=rtol, dtype=dtype)
        return
    if isinstance(want, (str, bytes)) or want is None:
        assert got == want
        return
    if isinstance(want, np.generic) and not isinstance(got, nd.ndarray):
        want = want.item()
    if isinstance(want, (bool, int, float, complex)) and not isinstance(got, nd.ndarray):
        assert type(got) is type(want) and (got == want or (math.isnan(got) and math.isnan(want)))
        return
    want = np.asarray(want)
    assert isinstance(got, nd.ndarray), f"{type(got)} instead of an ndarray"
    assert got.shape == want.shape, f"shape {got.shape}, NumPy's is {want.shape}"
    if dtype:
        assert got.dtype == want.dtype.name, f"dtype {got.dtype}, NumPy's is {want.dtype}"
    values = host(got)
    if want.dtype.kind in "fc" or values.dtype.kind in "fc":
        tolerance = TOLERANCE[str(got.dtype)] if rtol is None else rtol
        np.testing.assert_allclose(values, want, rtol=tolerance, atol=tolerance * 1e-2, equal_nan=True)
    else:
        np.testing.assert_array_equal(values, want)


def inputs():
    """The arrays that expressions of the tables name; NumPy's."""
    rng = np.random.default_rng(12345)
    nan_holes = rng.normal(size=(3, 4))
    nan_holes[0, 1] = nan_holes[2, :] = np.nan
    return {
        "a": rng.normal(size=(3, 4)),
        "b": rng.normal(size=(4,)).astype("float32"),
        "c": rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)),
        "d": np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 1.0, 4.0]]),
        "f": np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 3.5], "float32"),
        "g": np.asfortranarray(rng.integers(0, 9, size=(4, 3)).astype("int16")),
        "h": rng.normal(size=(2, 3, 4)).astype("float16"),
        "i": rng.integers(-5, 6, size=(3, 4)),
        "k": np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], "int32"),
        "m": rng.integers(0, 2, size=(3, 4)).astype(bool),
        "n": nan_holes,
        "o": np.array(2.5),
        "p": np.array([0, 2, 1, 2]),
        "r": rng.normal(size=(5, 6)),  # expressions see r[::-2, 1::2]: a copy would have lost its strides
        "s": np.sort(rng.normal(size=9)),
        "t": rng.normal(size=(2, 3, 4)).astype("float32"),
        "u": np.array([200, 7, 255, 0, 31, 16], "uint8"),
        "v": rng.normal(size=(7,)),
        "w": np.array([0.5, 0.25, 1.5, 2.0]),
        "y": np.array([[1, 2], [3, 4]], "int64"),
        "z": np.zeros((0, 3)),
    }


def on_device(arrays, device):
    """The arrays of an expression as ndarrays; "r" as a view."""
    ours = {name: put(value, device) for name, value in arrays.items()}
    ours["r"] = ours["r"][::-2, 1::2]
    return ours


def rows(table):
    """The expressions of a table, one a line."""
    return [line for line in table.splitlines() if line]


def evaluate(expression, xp, arrays):
    """The value of an expression in which `xp` is the namespace, and letters are arrays."""
    with np.errstate(all="ignore"):
        return eval(expression, {"xp": xp, "np": np, "inf": np.inf, "nan": np.nan}, arrays)


def both(expression, device, **options):
    """Asserts that an expression gives the same with the ndarray as with NumPy."""
    theirs = inputs()
    ours = on_device(theirs, device)
    theirs["r"] = theirs["r"][::-2, 1::2]
    want = evaluate(expression, np, theirs)
    check(evaluate(expression, nd, ours), want, **options)
