"""dlbridge/pybind11.h: arguments of one of several dtypes, and which of several overloads came closest
(tests/pybind/caster_module.cpp)."""

import pytest
from caster_support import matrix
from dlbridge import asdlpack
from lifecycle_support import FLOAT32, Exporter, host_array

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    "make", [np.asarray, host_array, asdlpack, memoryview], ids=["numpy", "nd", "Tensor", "buffer"]
)
def test_the_view_is_of_the_dtype_that_was_given(ext, dtype, make):
    a = matrix(dtype)[::-1, ::2]
    if make is host_array:  # which copies nothing of NumPy's, whatever its strides
        a = matrix(dtype)
    given = make(a)
    name, (_, extents, strides) = ext.visited(given)
    assert (name, extents) == (dtype, a.shape)
    assert strides == tuple(s // a.itemsize for s in a.strides)


def test_one_signature_names_all_dtypes(ext):
    assert ext.visited.__doc__.splitlines()[0] == (
        'visited(a: typing.Annotated[dlbridge.AnyArray, "Tensor[int32 | float32 | float64, ..., cpu]"]) '
        "-> tuple[str, tuple]"
    )


def test_one_error_names_what_is_allowed(ext):
    with pytest.raises(TypeError) as error:
        ext.visited(matrix("int64"))
    text = str(error.value)
    assert text.startswith("visited(): argument 'a': expected dtype ") and text.count("expected") == 1
    assert set(text.partition("dtype ")[2].partition(",")[0].split(" or ")) == {"float32", "float64", "int32"}
    assert "got (3, 4) [numpy.ndarray, int64" in text
    with pytest.raises(TypeError, match=r"^visited_row\(\): argument 'a': expected rank 1, got \(3, 4\)"):
        ext.visited_row(matrix())
    assert ext.visited_row(b"123") == sum(b"123")


def test_two_arguments_of_several_dtypes(ext):
    for first in ("float32", "float64"):
        for second in ("float32", "int32"):
            a, b = np.ones(3, first), np.arange(3, dtype=second)
            ext.visited_twice(a, b)
            assert a.tolist() == [1, 2, 3]
    frozen = np.ones(3, "float32")
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="argument 'a': expected writable memory"):
        ext.visited_twice(frozen, frozen)


def test_conversion_changes_the_layout_and_keeps_the_dtype(ext):
    a = np.arange(6.0)
    assert ext.visited_dense(a[::2]) == 6
    assert ext.visited_dense(a.astype("float32")[::-1]) == 15
    with pytest.raises(TypeError, match="expected dtype float32 or float64, got"):
        ext.visited_dense(np.arange(6))


def test_a_capsule_of_another_dtype_is_not_consumed(ext):
    producer = Exporter((2,), dtype=(0, 64, 1))
    capsule = producer.capsule()
    with pytest.raises(TypeError, match=r"expected dtype .*got \(2,\) \[PyCapsule"):
        ext.visited(capsule)
    assert asdlpack(capsule).dtype == "int64"
    producer.assert_all_deleted_once()


# --- 16 bits and bytes ----------------------------------------------------------------------------------------------


def torch_tensor(values, dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.tensor(values, dtype=getattr(torch, dtype))


def ml_array(values, dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    return np.array(values, getattr(ml_dtypes, dtype))


def numpy_half(values, dtype):
    return np.array(values, dtype)


HALVES = {
    "float16, numpy": (numpy_half, "float16", "twice_half"),
    "float16, torch": (torch_tensor, "float16", "twice_half"),
    "float16 as the compiler's, numpy": (numpy_half, "float16", "twice_own_half"),
    "bfloat16, torch": (torch_tensor, "bfloat16", "twice_bfloat"),
    "bfloat16, ml_dtypes": (ml_array, "bfloat16", "twice_bfloat"),
}


@pytest.mark.parametrize(("make", "dtype", "function"), HALVES.values(), ids=list(HALVES))
def test_16_bits_go_in_and_out_as_what_they_are(ext, make, dtype, function):
    given = make([1.5, -2, 0], dtype)
    result = getattr(ext, function)(given)
    assert type(result) is type(given) and result.dtype == given.dtype
    assert [float(x) for x in result] == [3, -4, 0]
    with pytest.raises(TypeError, match=rf"expected dtype {dtype}, got \(3,\) \[numpy.ndarray, float32"):
        getattr(ext, function)(ROW)


@pytest.mark.parametrize(
    ("make", "dtype"), [(numpy_half, "float16"), (ml_array, "bfloat16")], ids=["float16", "bfloat16"]
)
def test_floats_are_rounded_as_their_libraries_do(ext, make, dtype):
    values = np.frombuffer(np.random.default_rng(7).bytes(40_000), "float32").copy()
    values[:6] = [np.inf, -np.inf, np.nan, -0.0, 65519.996, 65520]
    out = make(np.zeros(len(values), "float32"), dtype)
    ext.round_half(values, out)
    with np.errstate(all="ignore"):
        expected = values.astype(out.dtype)
    np.testing.assert_array_equal(out.astype("float32"), expected.astype("float32"))


def test_bytes_are_uint8(ext):
    assert ext.bytes_of(b"\x00\x7f\xff") == [0, 127, 255]
    annotated = 'typing.Annotated[dlbridge.AnyArray, "Tensor[uint8, (*,), cpu]"]'
    assert ext.bytes_of.__doc__.startswith(f"bytes_of(a: {annotated})")
    with pytest.raises(TypeError, match="expected dtype uint8, got"):
        ext.bytes_of(np.zeros(2, "int8"))


def test_one_signature_names_16_bit_dtypes(ext):
    assert '"Tensor[float16 | bfloat16, (*,), cpu, writable]"' in ext.round_half.__doc__


# --- overloads ------------------------------------------------------------------------------------------------------


def closest(call):
    """The lines of the error, and those of them that are named the closest."""
    with pytest.raises(TypeError) as error:
        call()
    lines = str(error.value).splitlines()
    return lines, [line for line in lines if line.startswith("    closest: ")]


ROW, WIDE = np.ones(3, "float32"), np.ones(3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((matrix("float64"),), "'a': expected dtype float32, got (3, 4)"),  # of the matrix: the row breaks two rules
        ((matrix().T,), "'a': expected C-contiguous"),
        ((np.ones(3, "int32"),), "'a': expected dtype float32"),
        ((ROW, WIDE), "'b': expected dtype float32, got (3,)"),  # the first array was taken
        ((ROW, "text"), "'b': str has none of"),
    ],
    ids=["dtype", "layout", "both dtypes", "second argument", "no array"],
)
def test_the_closest_overload_is_named(ext, arguments, expected):
    lines, named = closest(lambda: ext.nearest(*arguments))
    assert lines[0] == "nearest(): no overload takes these arguments:"
    assert len(named) == 1 and expected in named[0], lines


def test_no_overload_is_named_where_none_is_closer(ext):
    lines, named = closest(lambda: ext.two(np.ones(2, "int32")))
    assert (len(lines), named) == (3, [])
    lines, named = closest(lambda: ext.two([1]))
    assert (len(lines), named) == (3, [])


def test_a_capsule_is_left_to_the_overload_that_takes_it(ext):
    producer = Exporter((2, 2), dtype=FLOAT32)
    capsule = producer.capsule()
    with pytest.raises(TypeError, match="no overload"):
        ext.nearest(capsule, ROW)
    assert ext.nearest(capsule) == "matrix"
    producer.assert_all_deleted_once()
