"""nd.fft against numpy.fft: dtypes, shapes, layouts, norms, axes, odd lengths, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest
from dlbridge import nd
from nd_support import check, put

pytestmark = pytest.mark.usefixtures("arrays_there")

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2"]
OF_REAL = {"rfft", "ihfft", "rfftn", "rfft2"}
DTYPES = ["bool", "int32", "uint8", "float16", "float32", "float64", "complex64", "complex128"]
RTOL = {"float16": 1e-3, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-11, "complex128": 1e-11}


def values(shape, dtype):
    rng = np.random.default_rng(7)
    x = rng.uniform(0.5, 3.5, shape)
    return (x + 1j * rng.uniform(0.5, 2.5, shape) if dtype.startswith("complex") else x).astype(dtype)


def close(got, want):
    """As NumPy's; sums cancel, so that the error is one of the largest element."""
    assert isinstance(got, nd.ndarray) and got.shape == want.shape and got.dtype == want.dtype.name
    tolerance = RTOL[want.dtype.name]
    scale = float(np.max(np.abs(want), initial=1.0))
    np.testing.assert_allclose(nd.asnumpy(got), want, rtol=tolerance, atol=tolerance * scale)


def compare(name, x, **keywords):
    before = x.copy()
    close(getattr(nd.fft, name)(nd.asarray(x), **keywords), getattr(np.fft, name)(x, **keywords))
    np.testing.assert_array_equal(x, before)


# --- against NumPy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (3, 5), (2, 3, 4), (0, 4)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE + SEVERAL)
def test_every_dtype_and_shape_as_numpy(name, dtype, shape):
    if (dtype.startswith("complex") and name in OF_REAL) or (0 in shape and name in SEVERAL):
        pytest.skip("refused: see test_is_refused")
    if shape == (1,) and name in ("irfft", "hfft", "irfftn"):
        pytest.skip("one element alone is half of none: see test_is_refused")
    x = values(shape, dtype)
    if dtype == "float16":  # NumPy rounds the factor to 16 bits
        want = getattr(np.fft, name)(x.astype("float32"))  # of which float16 stays only where there is one axis
        close(getattr(nd.fft, name)(nd.asarray(x)), want.astype(getattr(np.fft, name)(x).dtype))
        return
    compare(name, x)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 3, 6, 9, 10])
@pytest.mark.parametrize("name", ONE)
def test_lengths_axes_and_norms(name, n, norm):
    x = values((6, 5, 4), "float64" if name in OF_REAL else "complex128")
    for axis in (0, 1, -1):
        compare(name, x, n=n, axis=axis, norm=norm)


WHERE = [
    {"axes": (0,)},
    {"axes": (-1, 0)},
    {"axes": (0, 1, 2)},
    {"axes": (2, 1), "s": (3, 5)},
    {"axes": [1, 0], "s": [7, -1]},
    {"axes": (0, 1, 0)},
    {"axes": (1, 1), "s": (3, 6)},
]


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("where", WHERE, ids=str)
@pytest.mark.parametrize("name", SEVERAL + TWO)
def test_axes_and_lengths_of_several(name, where, norm):
    compare(name, values((4, 5, 6), "float32" if name in OF_REAL else "complex64"), norm=norm, **where)


@pytest.mark.parametrize("name", TWO)
def test_the_last_two_axes(name):
    compare(name, values((3, 4, 5), "float64"))


def test_lengths_without_axes_are_those_of_the_last_ones():
    x = values((3, 4, 5), "float64")
    close(nd.fft.fftn(nd.asarray(x), s=(6, 3)), np.fft.fftn(x, s=(6, 3), axes=(1, 2)))


LAYOUTS = {
    "columns": np.asfortranarray,
    "every other": lambda x: x[::2, ::2],
    "reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ONE + SEVERAL)
def test_layouts(name, layout):
    x = LAYOUTS[layout](values((6, 8), "float64"))
    x.flags.writeable = False
    compare(name, x)


@pytest.mark.parametrize("axes", [(1,), (0, 1), (1, 2), (0, 2), (2, 0, 1)], ids=str)
@pytest.mark.parametrize("layout", ["transposed", "broadcast"])
@pytest.mark.parametrize("name", SEVERAL)
def test_axes_of_what_lies_otherwise_times_a_factor(name, layout, axes):
    x = LAYOUTS[layout](values((4, 3, 5), "float64" if name in OF_REAL else "complex128"))
    compare(name, x, axes=axes, norm="ortho")


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("size", [2, 9, 1 << 15, (1 << 15) + 1, (1 << 16) + 2])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_vectors_of_real_numbers_short_and_long(name, size, norm):
    compare(name, values((size,), "float64"), norm=norm)


@pytest.mark.parametrize("name", ONE + SEVERAL)
def test_bfloat16_by_way_of_float32(name):
    x = values((3, 8), "float32").round(1)
    ours = nd.asarray(x).astype("bfloat16")
    want = getattr(nd.fft, name)(ours.astype("float32"))
    got = getattr(nd.fft, name)(ours)
    rounded = want.dtype == "float32" and name in ONE  # of several axes the steps before the last are complex64
    want = want.astype("bfloat16") if rounded else want
    assert got.dtype == want.dtype
    assert got.tolist() == want.tolist()


def test_without_an_axis_nothing_is_transformed():
    for x in (nd.asarray(2.5), nd.asarray([1.0, 2.0])):
        for function in (nd.fft.fftn, nd.fft.ifftn):
            assert function(x, axes=()) is x and function(x, axes=(), out=nd.zeros(x.shape)).tolist() == x.tolist()


def test_sequences_and_nan_are_taken():
    check(nd.fft.fft([1, 2, 3], axis=0), np.fft.fft([1, 2, 3]))
    assert np.isnan(nd.asnumpy(nd.fft.fft(nd.asarray([1.0, np.nan, np.inf])))).all()


# --- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE + SEVERAL + TWO)
def test_out_is_written_and_returned(name):
    x = nd.asarray(values((3, 8), "float64"))
    want = getattr(nd.fft, name)(x)
    out = nd.zeros(want.shape, want.dtype)
    assert getattr(nd.fft, name)(x, out=out) is out and out.tolist() == want.tolist()


def test_out_that_is_the_operand():
    x = nd.asarray(values((3, 8), "complex128"))
    want = nd.fft.fft(x).tolist()
    assert nd.fft.fft(x, out=x).tolist() == want


@pytest.mark.parametrize(("size", "dtype"), [(4, "complex128"), (8, "float64"), (8, "int32")])
def test_out_that_does_not_fit_is_left_alone(size, dtype):
    out = nd.zeros(size, dtype)
    before = out.tolist()
    with pytest.raises((ValueError, TypeError)):
        nd.fft.fft(nd.ones(8), out=out)
    assert out.tolist() == before


def test_results_are_views_of_nothing_and_can_be_written():
    x = nd.asarray(values(8, "complex128"))
    y = nd.fft.fft(x)
    y += 1
    assert not nd.may_share_memory(x, y) and not y.readonly and isinstance(y, nd.ndarray)


def test_numpys_functions_dispatch_here():
    x = nd.ones((2, 4))
    for name in (*ONE, *SEVERAL, *TWO, "fftshift", "ifftshift"):
        assert isinstance(getattr(np.fft, name)(x), nd.ndarray), name


# --- frequencies, on every device ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name, n, device):
    for d in (1.0, 0.1, 3):
        got = getattr(nd.fft, name)(n, d=d, device=device)
        check(got, getattr(np.fft, name)(n, d))
        assert got.device.type == device
    single = getattr(nd.fft, name)(n, dtype="float32", device=device)
    check(single, getattr(np.fft, name)(n).astype("float32"))


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 2), [1]], ids=str)
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name, axes, device):
    for shape in ((4, 3, 2), (5, 1, 7), (0, 2, 3)):
        x = np.arange(np.prod(shape), dtype="int16").reshape(shape)
        check(getattr(nd.fft, name)(put(x, device), axes=axes), getattr(np.fft, name)(x, axes=axes))


def test_a_shift_of_a_number_is_a_copy(device):
    x = nd.asarray(3, device=device)
    assert nd.fft.fftshift(x).tolist() == 3 and not nd.may_share_memory(nd.fft.fftshift(x), x)


# --- what is refused -------------------------------------------------------------------------------------------------

REFUSED = [
    ("fft(v, n=0)", ValueError, "n is 0"),
    ("fft(v, n=-1)", ValueError, "n is -1"),
    ("fft(v, n=2.5)", TypeError, ""),
    ("fft(v, axis=1)", np.exceptions.AxisError, "axis 1"),
    ("fft(v, axis=-2)", IndexError, "axis -2"),
    ("fft(v, axis=0.5)", TypeError, ""),
    ("fft(nd.asarray(1.0))", IndexError, "0-d"),
    ("fft(v, norm='max')", ValueError, "'ortho'"),
    ("fft(nd.zeros(0))", ValueError, "0 data points"),
    ("irfft(nd.ones(1))", ValueError, "0 data points"),
    ("hfft(nd.ones(1))", ValueError, "0 data points"),
    ("fftn(nd.zeros((2, 0)))", ValueError, "axis 1"),
    ("fftn(m, s=(2,), axes=(0, 1))", ValueError, "1 lengths for 2 axes"),
    ("fftn(m, s=(2, 0))", ValueError, "0 data points"),
    ("fftn(m, s=(2, 2, 2))", IndexError, "axis -3"),
    ("fftn(m, axes=(0, 2))", IndexError, "axis 2"),
    ("fftn(m, axes=0)", TypeError, ""),
    ("fft2(v)", IndexError, "axis -2"),
    ("rfftn(nd.asarray(1.0))", IndexError, "no axis"),
    ("irfftn(m, norm='')", ValueError, "norm"),
    ("rfft(c)", TypeError, "complex128"),
    ("rfft2(nd.ones((2, 2), 'complex64'))", TypeError, "rfft2(): the array is complex64"),
    ("rfftn(c)", TypeError, "complex128"),
    ("ihfft(c)", TypeError, "complex128"),
    ("fft(np.ones(3))", TypeError, "numpy.ndarray"),
    ("fft('abc')", TypeError, "str"),
    ("fftfreq(0)", ValueError, "n is 0"),
    ("fftfreq(2.0)", TypeError, ""),
    ("fftfreq(4, dtype='int32')", ValueError, "real floats"),
    ("rfftfreq(4, dtype='complex64')", ValueError, "real floats"),
    ("fftshift(v, axes=3)", IndexError, "axis 3"),
    ("ifftshift(v, axes=(0, 0))", ValueError, "twice"),
]


@pytest.mark.parametrize(("call", "exception", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_is_refused(call, exception, message):
    scope = {"nd": nd, "np": np, "v": nd.ones(4), "m": nd.ones((2, 3)), "c": nd.ones(4, "complex128")}
    with pytest.raises(exception) as caught:
        eval(f"nd.fft.{call}", scope)
    assert message in str(caught.value)


def run(code):
    subprocess.run([sys.executable, "-c", f"import sys\n{code}"], check=True)


def test_without_scipy_numpy_transforms():
    run(
        "sys.modules['scipy'] = sys.modules['scipy.fft'] = None\n"
        "from dlbridge import nd\n"
        "assert nd.fft.fft(nd.ones(4, 'float32', device='cpu')).tolist() == [4, 0, 0, 0]\n"
        "assert nd.fft.irfftn(nd.ones((2, 3), 'complex64', device='cpu')).dtype == 'float32'"
    )


def test_without_numpy_the_error_says_so():
    run(
        "sys.modules['numpy'] = sys.modules['scipy'] = None\n"
        "from dlbridge import nd\n"
        "assert nd.fft.fftfreq(4, device='cpu').tolist() == [0, 0.25, -0.5, -0.25]\n"
        "try: nd.fft.rfft(nd.ones(4, device='cpu'))\n"
        "except ImportError as error: assert 'rfft(): NumPy' in str(error) and 'pip install numpy' in str(error)\n"
        "else: raise AssertionError"
    )


def test_the_namespace_opens_no_library():
    run(
        "from dlbridge import nd\n"
        "assert nd.fft.rfftfreq(4, device='cpu').shape == (3,) and 'fft' in nd.__all__\n"
        "assert not {'numpy', 'scipy'} & set(sys.modules)"
    )


VIEWS = {
    "transposed": lambda x: x.transpose(2, 0, 1),
    "parts": lambda x: x[1:, ::2, 1:],
    "backwards": lambda x: x[:, ::-1],
    "one element later": lambda x: x.reshape(-1)[1:106].reshape(3, 5, 7),
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
@pytest.mark.parametrize("name", ONE)
def test_views_along_each_axis_as_numpy(name, view, axis):
    x = values((4, 6, 8), "float32" if name in OF_REAL else "complex64")
    here = nd.asarray(x)
    close(
        getattr(nd.fft, name)(view(here), axis=axis),
        getattr(np.fft, name)(view(x), axis=axis).astype("float32" if name in ("irfft", "hfft") else "complex64"),
    )
    np.testing.assert_array_equal(nd.asnumpy(here), x)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes_in_any_order_as_numpy(name, norm, axes):
    compare(name, values((4, 6, 8), "float64" if name in OF_REAL else "complex128"), axes=axes, norm=norm)
