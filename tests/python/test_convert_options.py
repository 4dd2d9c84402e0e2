"""convert(): like=, dtype=, layout=, device= and copy= together, of one array and of containers."""

import array
import sys
import types

import dlbridge
import pytest
from dlbridge import CopyError, DataError, DType, ExchangeError, asdlpack, convert

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_convert_needs_something_to_do():
    with pytest.raises(TypeError, match=r"convert\(\) needs at least one of to, like"):
        convert(X)
    with pytest.raises(TypeError, match="to or like, not both"):
        convert(X, "numpy", like=X)


@pytest.mark.parametrize("call", [lambda: convert(), lambda: convert(X, "numpy", 1), lambda: convert(X, "numpy", no=1)])
def test_wrong_arguments_are_a_type_error(call):
    with pytest.raises(TypeError, match=r"convert\(\)"):
        call()


def test_the_framework_may_be_given_by_name():
    assert isinstance(convert(tree=X, to="dlbridge"), dlbridge.Tensor)


# --- like ------------------------------------------------------------------------------------------------------------


def make(name, values):
    if name == "numpy":
        return np.asarray(values)
    if name == "dlbridge":
        return asdlpack(np.asarray(values))
    if name == "nd":
        return dlbridge.nd.asarray(np.asarray(values), device="cpu")
    if name == "buffer":
        return memoryview(np.asarray(values))
    module = pytest.importorskip(name)
    make_one = {"torch": "asarray", "tensorflow": "constant", "jax": "device_put", "pyarrow": "array"}[name]
    return getattr(module, make_one)(np.asarray(values))


@pytest.mark.parametrize("name", ["numpy", "torch", "jax", "tensorflow", "pyarrow", "nd", "dlbridge", "buffer"])
def test_like_gives_the_framework(name):
    like = make(name, [1, 2])
    result = convert(X[0], like=like)
    assert type(result).__module__ == type(like).__module__
    np.testing.assert_array_equal(np.asarray(result), X[0])


def test_like_follows_subclasses_and_tensors_that_require_grad():
    torch = pytest.importorskip("torch")
    assert type(convert(X, like=torch.nn.Parameter(torch.ones(2)))) is torch.Tensor

    class Mine(np.ndarray):
        pass

    assert type(convert(torch.ones(2), like=np.ones(3).view(Mine))) is np.ndarray


def test_dtype_like_is_the_dtype_of_that_array():
    assert convert(X, like=np.ones(2, np.int16), dtype="like").dtype == np.int16
    assert convert(X, like=np.ones(2, np.int16)).dtype == np.float32
    with pytest.raises(TypeError, match="dtype='like' needs like"):
        convert(X, "numpy", dtype="like")


@pytest.mark.parametrize("like", [3, "numpy", None, [X], b"ab", array.array("d", [1.0]), np.float32(1), object()])
def test_like_that_is_no_array_is_a_type_error(like):
    with pytest.raises(TypeError, match=r"convert\(\)"):
        convert(X, like=like)


def test_like_of_an_unknown_library_says_that_one_may_be_named():
    class Foreign:
        __array_interface__ = X.__array_interface__

    with pytest.raises(TypeError, match="Foreign is of no framework that dlbridge knows.*name it"):
        convert(X, like=Foreign())
    with pytest.raises(TypeError, match="Foreign is of no framework.*convert"):
        convert([Foreign()], dtype="int8")


def test_without_a_framework_each_array_stays_in_its_own():
    torch = pytest.importorskip("torch")
    made = convert({"n": X, "t": torch.ones(2), "d": asdlpack(X)}, dtype="float64")
    assert isinstance(made["n"], np.ndarray) and made["n"].dtype == np.float64
    assert isinstance(made["t"], torch.Tensor) and made["t"].dtype == torch.float64
    assert isinstance(made["d"], dlbridge.Tensor) and made["d"].dtype == "float64"


# --- dtype -----------------------------------------------------------------------------------------------------------

NUMBERS = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("target", NUMBERS)
@pytest.mark.parametrize("source", NUMBERS)
def test_a_cast_is_numpys_or_refused(source, target):
    values = np.array([[0, 1, 2], [3, 100, 7]]).astype(source)
    if source == "complex64" and target not in ("complex64", "bool"):
        with pytest.raises(ExchangeError, match="drops the imaginary parts"):
            convert(values, "numpy", dtype=target)
        return
    result = convert(values, "numpy", dtype=target)
    assert result.dtype == target
    np.testing.assert_array_equal(result, values.astype(target))
    assert np.shares_memory(result, values) == (source == target)


@pytest.mark.parametrize("spelled", ["int16", "i2", np.int16, np.dtype("i2"), DType("int16"), "int"])
def test_a_dtype_is_spelled_as_anywhere(spelled):
    assert convert(X, "numpy", dtype=spelled).dtype == np.dtype("int64" if spelled == "int" else "int16")


def test_a_dtype_of_torch_is_one_too():
    torch = pytest.importorskip("torch")
    assert convert(X, "torch", dtype=torch.bfloat16).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", ["no such", 3, ">i4", object()])
def test_what_is_no_dtype_is_a_type_error(dtype):
    with pytest.raises(TypeError):
        convert(X, "numpy", dtype=dtype)


def test_copy_false_refuses_a_cast_but_not_the_same_dtype():
    assert np.shares_memory(convert(X, "numpy", dtype="float32", copy=False), X)
    with pytest.raises(CopyError, match="the array is float32 and dtype asks for int8.*copy=False"):
        convert(X, "numpy", dtype="int8", copy=False)
    with pytest.raises(CopyError, match=r'tree\["a"\]: the array is float32'):
        convert({"a": X}, "numpy", dtype="int8", copy=False)


def test_a_cast_is_of_its_own_and_writable():
    source = X.copy()
    source.flags.writeable = False
    result = convert(source, "numpy", dtype="float64")
    assert result.flags.writeable and not np.shares_memory(result, source)


@pytest.mark.parametrize(
    "source", [X[:, ::-1], X.T, X[:, ::2], np.float32(3) * np.ones(()), np.zeros((0, 3), np.float32)]
)
def test_a_cast_takes_any_layout(source):
    np.testing.assert_array_equal(convert(source, "numpy", dtype="int32"), source.astype("int32"))


def test_a_dtype_that_the_ndarray_has_not_is_refused_unless_it_is_there_already():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = X.astype(ml_dtypes.float8_e4m3fn)
    assert np.shares_memory(convert(source, "numpy", dtype="float8_e4m3fn"), source)
    with pytest.raises(ExchangeError, match="a cast from float8_e4m3fn to float32 is none of dlbridge.nd's"):
        convert(source, "numpy", dtype="float32")


def test_other_byte_order_is_turned_and_cast_under_copy_true():
    big = np.array([1, 2], ">i4")
    assert convert(big, "numpy", dtype="float32", copy=True).tolist() == [1.0, 2.0]
    assert convert({"x": big}, "numpy", copy=True)["x"].tolist() == [1, 2]


# --- layout ----------------------------------------------------------------------------------------------------------

IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("layout", "axes"),
    [("HWC->CHW", (2, 0, 1)), ("CHW->HWC", (1, 2, 0)), ("HWC->HWC", (0, 1, 2)), ("abc->cba", (2, 1, 0))],
)
def test_a_layout_is_a_view(layout, axes):
    result = convert(IMAGE, "numpy", layout=layout, copy=False)
    assert np.shares_memory(result, IMAGE)
    np.testing.assert_array_equal(result, IMAGE.transpose(axes))


def test_a_new_letter_is_an_axis_of_extent_1():
    result = convert(IMAGE, "numpy", layout="HWC->NCHW")
    assert np.shares_memory(result, IMAGE)
    np.testing.assert_array_equal(result, IMAGE.transpose(2, 0, 1)[None])


def test_batches_have_layouts_too():
    batch = {"images": np.stack([IMAGE, IMAGE])}
    assert convert(batch, "numpy", layout="NHWC->NCHW")["images"].shape == (2, 4, 2, 3)
    with pytest.raises(DataError, match=r'tree\["b"\]: layout=.NHWC->NCHW. is of 4 axes, and the array has 1'):
        convert(batch | {"b": np.ones(3)}, "numpy", layout="NHWC->NCHW")


def test_a_framework_without_such_strides_gets_a_copy():
    tf = pytest.importorskip("tensorflow")
    result = convert(IMAGE, "tensorflow", layout="HWC->CHW")
    np.testing.assert_array_equal(result.numpy(), IMAGE.transpose(2, 0, 1))
    with pytest.raises(CopyError, match="tensorflow needs a copy"):
        convert(IMAGE, tf, layout="HWC->CHW", copy=False)


def test_read_only_stays_read_only_in_a_view():
    source = IMAGE.copy()
    source.flags.writeable = False
    assert not convert(source, "numpy", layout="HWC->CHW").flags.writeable


def test_layout_dtype_and_copy_together():
    result = convert(IMAGE, "numpy", layout="HWC->CHW", dtype="float32", copy=True)
    np.testing.assert_array_equal(result, IMAGE.transpose(2, 0, 1).astype("float32"))


@pytest.mark.parametrize(
    ("mode", "layout", "axes"),
    [
        ("RGB", "CHW", (2, 0, 1)),
        ("RGB", "HWC", (0, 1, 2)),
        ("LA", "NCHW", (None, 2, 0, 1)),
        ("L", "WH", (1, 0)),
        ("L", "CHW", (None, 0, 1)),
    ],
)
def test_an_image_whose_axes_are_known_needs_no_left_side(mode, layout, axes):
    image = pytest.importorskip("PIL.Image").new(mode, (4, 3), "red" if mode == "RGB" else 7)
    image.putpixel((1, 2), 255)
    expected = np.asarray(image).transpose([axis for axis in axes if axis is not None])
    result = convert({"x": image}, "numpy", layout=layout)["x"]
    assert result.shape == tuple(1 if axis is None else np.asarray(image).shape[axis] for axis in axes)
    np.testing.assert_array_equal(result, expected.reshape(result.shape))


class Named:
    """As an array of a framework that says what its axes are: by `dims`, by `layout()` or by `channels()`."""

    def __init__(self, array, dims):
        self.array, self.dims = array, dims

    def layout(self):
        return "".join(self.dims)

    def channels(self):
        return self.array.shape[2]

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def stand_in(monkeypatch, module, name):
    made = types.ModuleType(module)
    setattr(made, name, Named)
    monkeypatch.setitem(sys.modules, module, made)


@pytest.mark.parametrize(
    ("module", "name"), [("nvidia.dali.tensors", "TensorCPU"), ("cv2", "cuda_GpuMat"), ("xarray", "DataArray")]
)
def test_each_framework_that_names_its_axes_is_asked(monkeypatch, module, name):
    stand_in(monkeypatch, module, name)
    result = convert(Named(IMAGE, ("H", "W", "C")), "numpy", layout="CHW")
    assert np.shares_memory(result, IMAGE)
    np.testing.assert_array_equal(result, IMAGE.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("dims", "why"),
    [
        (("y", "x", "c"), "axis 'y' of 'yxc' is lost"),
        (("row", "column", "c"), "neither does an array of type .*Named"),
        (("H", "W", "W"), "'W' stands twice"),
        (("H", "W", "1"), "'1' is no letter"),
        (("H", "W"), "is of 2 axes, and the array has 3"),
    ],
)
def test_axes_that_the_array_names_and_that_do_not_fit_are_a_value_error(monkeypatch, dims, why):
    stand_in(monkeypatch, "xarray", "DataArray")
    with pytest.raises(ValueError, match=why):
        convert(Named(IMAGE, dims), "numpy", layout="CHW")


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        ("CHW", "does not say what the axes are now, and neither does an array of type numpy.ndarray"),
        ("", "names no axes"),
        ("HWC->", "names no axes"),
        ("->", "names no axes"),
        ("HWC->HW", "axis 'C' of 'HWC' is lost"),
        ("HHC->CHH", "'H' stands twice"),
        ("H C->CH ", "' ' is no letter"),
        ("HWC->CHW->HWC", "'C' stands twice"),
        ("H" * 70 + "->H", "names no axes|stands twice"),
    ],
)
def test_a_layout_that_is_none_is_a_value_error(layout, why):
    with pytest.raises(ValueError, match=why):
        convert(IMAGE, "numpy", layout=layout)


def test_a_layout_is_a_string():
    with pytest.raises(TypeError, match="layout is of type tuple"):
        convert(IMAGE, "numpy", layout=(2, 0, 1))


def test_nothing_of_views_and_casts_outlives_the_result():
    source = IMAGE.copy()
    before = sys.getrefcount(source)
    for _ in range(10):
        convert({"a": source}, "numpy", layout="HWC->CHW")
        convert([source], "torch" if "torch" in sys.modules else "numpy", dtype="float32", layout="HWC->NCHW")
    assert sys.getrefcount(source) == before
