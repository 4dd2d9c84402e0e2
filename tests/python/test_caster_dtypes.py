"""dlbridge/pybind11.h: arguments of one of several dtypes, and which of several overloads came closest
(tests/pybind/caster_module.cpp)."""

import pytest
from caster_support import matrix
from dlbridge import asdlpack, nd
from lifecycle_support import FLOAT32, Exporter

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    "make", [np.asarray, nd.asarray, asdlpack, memoryview], ids=["numpy", "nd", "Tensor", "buffer"]
)
def test_the_view_is_of_the_dtype_that_was_given(ext, dtype, make):
    a = matrix(dtype)[::-1, ::2]
    if make is nd.asarray:  # which copies nothing of NumPy's, whatever its strides
        a = matrix(dtype)
    given = make(a)
    name, (_, extents, strides) = ext.visited(given)
    assert (name, extents) == (dtype, a.shape)
    assert strides == tuple(s // a.itemsize for s in a.strides)


def test_one_signature_names_all_dtypes(ext):
    assert ext.visited.__doc__.splitlines()[0] == (
        'visited(a: typing.Annotated[typing.Any, "Tensor[int32 | float32 | float64, ..., cpu]"]) -> tuple[str, tuple]'
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
