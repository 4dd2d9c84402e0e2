"""nulls=: what becomes of the nulls of an Arrow column."""

import struct

import numpy as np
import pytest
from arrow_support import Column, Maker
from dlbridge import asdlpack, columns

pa = pytest.importorskip("pyarrow")


def lib(name):
    return pytest.importorskip(name)


COLUMNS = {
    "pyarrow": lambda type: pa.array([1, None, 3, None], type),
    "polars": lambda type: lib("polars").Series("x", pa.array([1, None, 3, None], type)),
    "pandas": lambda type: lib("pandas").Series(pa.array([1, None, 3, None], type), dtype=f"{type}[pyarrow]"),
    "nanoarrow": lambda type: lib("nanoarrow").c_array(pa.array([1, None, 3, None], type)),
    "sliced": lambda type: pa.array([None, 1, None, 3, None], type)[1:],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_nulls_are_refused_with_their_count_and_the_ways_out(name):
    with pytest.raises(BufferError, match=r"has 2 nulls.*Fill or drop.*nulls='nan'.*nulls='mask'"):
        asdlpack(COLUMNS[name](pa.int64()), protocol="arrow")


def test_the_column_is_named():
    with pytest.raises(BufferError, match="column 'price' of Arrow type int64 has 1 null,"):
        asdlpack(lib("polars").Series("price", [1, None]))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("type", ["float", "double", "halffloat"])
def test_nan_is_written_into_a_copy_of_floats(name, type):
    column = COLUMNS[name](pa.type_for_alias(type))
    t = asdlpack(column, nulls="nan")
    assert not t.readonly
    assert np.array_equal(np.asarray(t), np.array([1, np.nan, 3, np.nan], t.dtype.__numpy_dtype__), equal_nan=True)
    with pytest.raises(BufferError, match="copy"):
        asdlpack(column, nulls="nan", copy=False)


def test_nan_shares_what_has_no_nulls():
    array = pa.array([1.0, 2.0])
    t = asdlpack(array, nulls="nan", copy=False)
    assert t.data_ptr == array.buffers()[1].address
    assert str(asdlpack(pa.array([1, 2]), nulls="nan").dtype) == "int64"


def test_integers_have_no_nan():
    with pytest.raises(ValueError, match=r"has 1 null, and only floats have a NaN.*float64.*nulls='mask'"):
        asdlpack(pa.array([1, None]), nulls="nan")


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("type", ["int8", "int64", "double"])
def test_a_mask_is_true_where_a_null_is(name, type):
    column = COLUMNS[name](pa.type_for_alias(type))
    values, mask = asdlpack(column, nulls="mask", copy=False)
    assert (values.readonly, mask.readonly, str(mask.dtype)) == (True, False, "bool")
    assert np.asarray(mask).tolist() == [False, True, False, True]
    assert np.asarray(values)[[0, 2]].tolist() == [1, 3]


def test_a_mask_shares_the_values():
    array = pa.array([1, None, 3])
    values, _ = asdlpack(array, nulls="mask")
    assert values.data_ptr == array.buffers()[1].address
    copied, mask = asdlpack(array, nulls="mask", copy=True)
    assert copied.data_ptr != array.buffers()[1].address
    assert np.asarray(mask).tolist() == [False, True, False]


def test_without_nulls_the_mask_is_false():
    _, mask = asdlpack(pa.array([1, 2]), nulls="mask")
    assert np.asarray(mask).tolist() == [False, False]


def test_a_mask_of_chunks_and_bools_is_joined():
    column = pa.chunked_array([[True, None], [None, False, True]])
    values, mask = asdlpack(column, nulls="mask", copy=True)
    assert np.asarray(mask).tolist() == [False, True, True, False, False]
    assert np.asarray(values)[[0, 3, 4]].tolist() == [True, False, True]
    floats = asdlpack(pa.chunked_array([[1.0, None], [None, 2.0]]), nulls="nan", copy=True)
    assert np.array_equal(np.asarray(floats), [1, np.nan, np.nan, 2], equal_nan=True)


def test_a_null_list_masks_all_its_elements():
    column = pa.array([[1, 2], None, [None, 6]], pa.list_(pa.float64(), 2))
    _, mask = asdlpack(column, nulls="mask")
    assert np.asarray(mask).tolist() == [[False, False], [True, True], [True, False]]
    nan = np.asarray(asdlpack(column[1:], nulls="nan"))
    assert np.array_equal(nan, [[np.nan, np.nan], [np.nan, 6]], equal_nan=True)
    with pytest.raises(BufferError, match="nulls"):
        asdlpack(column, protocol="arrow")


def test_a_permuted_tensor_has_a_permuted_mask():
    storage = pa.array([[1, None, 3, 4, 5, 6]], pa.list_(pa.int32(), 6))
    column = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0]), storage)
    values, mask = asdlpack(column, nulls="mask")
    assert values.shape == mask.shape == (1, 3, 2)
    assert np.argwhere(np.asarray(mask)).tolist() == [[0, 1, 0]]


def test_columns_take_nulls_too():
    table = pa.table({"a": [1.0, None], "b": [1, 2]})
    got = columns(table, nulls="nan")
    assert np.array_equal(np.asarray(got["a"]), [1, np.nan], equal_nan=True)
    assert got["b"].readonly
    values, mask = columns(table, nulls="mask")["a"]
    assert np.asarray(mask).tolist() == [False, True]
    assert values.readonly


UNKNOWN = {
    "no null": (b"\xff\x03", 10, []),
    "bits behind the end do not count": (b"\x0f\x00", 4, []),
    "a null": (b"\xfd\x03", 10, [1]),
    "a null in the last byte": (b"\xff\x02", 10, [8]),
    "many words": (b"\xff" * 15 + b"\x7f" + b"\xff", 130, [127]),
}


@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_null_count_is_counted(name, offset):
    bits, length, nulls = UNKNOWN[name]
    shifted = (int.from_bytes(bits, "little") << offset).to_bytes(len(bits) + 1, "little")
    maker = Maker()
    data = struct.pack(f"={length + offset}q", *range(length + offset))
    array = maker.array(length, (shifted, data), offset=offset, null_count=-1)
    values, mask = asdlpack(Column(maker.schema(), array), nulls="mask")
    assert np.flatnonzero(np.asarray(mask)).tolist() == nulls
    assert np.asarray(values)[0] == offset


def test_a_bitmap_with_a_count_of_zero_is_not_read():
    maker = Maker()
    array = maker.array(4, (b"\x00", struct.pack("=4q", *range(4))), null_count=0)
    assert asdlpack(Column(maker.schema(), array)).shape == (4,)


@pytest.mark.parametrize(("nulls", "error"), [("drop", ValueError), (1, TypeError), ("", ValueError)])
def test_other_words_are_refused(nulls, error):
    for call in (asdlpack, columns):
        with pytest.raises(error, match="'refuse', 'nan' or 'mask'"):
            call(pa.array([1]), nulls=nulls)


def test_nulls_are_arrows_alone():
    with pytest.raises(TypeError, match="does not speak protocol='arrow'"):
        asdlpack(np.ones(3), nulls="nan")
    with pytest.raises(ValueError, match="knows no nulls"):
        asdlpack(pa.array([1]), nulls="mask", protocol="dlpack")
    assert asdlpack(np.ones(3), nulls="refuse").protocol == "array_interface"
