"""pad() on a device, where one kernel writes border and body: as NumPy, in every mode that it has."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import put

DTYPES = ("bool", "uint8", "float16", "int32", "float32", "float64", "complex64", "complex128")
LAYOUTS = {
    "dense": lambda x: x,
    "strided": lambda x: x[..., ::2],
    "reversed": lambda x: x[..., ::-1],
    "transposed": lambda x: x.T,
    "unaligned": lambda x: x[..., 1:],
    "repeated": lambda x: x[..., :1] + np.zeros(3, x.dtype) if isinstance(x, np.ndarray) else repeated(x),
}
SHAPES = [
    ((7,), (3, 1)),
    ((5, 9), 2),
    ((3, 17), ((1, 0), (2, 30))),
    ((2, 3, 5), ((0, 4), (1, 1), (9, 0))),
    ((65, 127), 1),
]


def repeated(x):
    return nd.broadcast_to(x[..., :1], (*x.shape[:-1], 3))


def numbers(shape, dtype):
    x = np.random.default_rng(1).integers(0, 90, shape)
    return (x % 2 if dtype == "bool" else x).astype(dtype)


def check(got, want):
    assert (got.dtype, got.shape) == (str(want.dtype), want.shape)
    np.testing.assert_array_equal(nd.asnumpy(got), want)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "symmetric", "reflect"])
def test_padding_is_that_of_numpy_however_arrays_lie(mode, dtype, layout, device):
    for shape, width in SHAPES:
        x = numbers(shape, dtype)
        want = LAYOUTS[layout](x)
        if layout == "transposed" and not isinstance(width, int) and len(shape) > 1:
            width = width[::-1]
        check(nd.pad(LAYOUTS[layout](put(x, device)), width, mode), np.pad(want, width, mode))


@pytest.mark.parametrize("width", [(1, 0), (0, 5), 40, 1000, (1023, 4097)])
@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "symmetric", "reflect"])
def test_borders_wider_than_the_array_repeat_it(mode, width, device):
    for n in (1, 2, 3, 16, 1023):
        x = np.arange(n, dtype="float32")
        check(nd.pad(put(x, device), width, mode), np.pad(x, width, mode))


@pytest.mark.parametrize("value", [1, -0.0, np.nan, 2.5, True, (1, 2), ((1, 2), (3, 4)), np.float32(7)])
@pytest.mark.parametrize("dtype", ["int16", "float16", "float32", "complex64"])
def test_constants_are_cast_as_where_they_are_assigned(dtype, value, device):
    x = numbers((3, 4), dtype)
    try:
        want = np.pad(x, 2, constant_values=value)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            nd.pad(put(x, device), 2, constant_values=value)
        return
    got = nd.pad(put(x, device), 2, constant_values=value)
    check(got, want)
    np.testing.assert_array_equal(np.signbit(nd.asnumpy(got).real), np.signbit(want.real))


def test_a_constant_that_the_dtype_does_not_hold_is_refused(device):
    with pytest.raises(OverflowError):
        nd.pad(nd.ones(3, "uint8", device=device), 1, constant_values=300)


def test_arrays_without_elements_are_padded_by_the_constant(device):
    for shape in ((0,), (3, 0), (0, 4)):
        check(
            nd.pad(nd.zeros(shape, device=device), 2, constant_values=3), np.pad(np.zeros(shape), 2, constant_values=3)
        )
    with pytest.raises(ValueError, match="no element"):
        nd.pad(nd.zeros(0, device=device), 1, "wrap")
    check(nd.pad(nd.zeros((2, 0), device=device), ((1, 0), (0, 0)), "edge"), np.zeros((3, 0)))


def test_arrays_of_many_dims_are_padded(device):
    x = np.arange(4.0).reshape((2,) + (1,) * 14 + (2,))
    check(
        nd.pad(put(x, device), [(1, 0)] + [(0, 0)] * 14 + [(0, 1)], "edge"),
        np.pad(x, [(1, 0)] + [(0, 0)] * 14 + [(0, 1)], "edge"),
    )
