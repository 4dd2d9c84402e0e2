"""Columns of the libraries that speak Arrow: shared without a copy where the layout allows it."""

import datetime
import gc

import numpy as np
import pytest
from dlbridge import asdlpack, columns, convert, inspect

pa = pytest.importorskip("pyarrow")


def lib(name):
    return pytest.importorskip(name)


def address_of(array):
    """Of the values of a pyarrow array."""
    return array.buffers()[-1].address + array.offset * array.type.bit_width // 8


def polars_series(array):
    return lib("polars").Series("x", array)


def pandas_series(array):
    return lib("pandas").Series(array, name="x", copy=False)


def nanoarrow_array(array):
    return lib("nanoarrow").c_array(pa.array(array))


SHARED = {
    "polars": polars_series,
    "pandas": pandas_series,
    "pandas of arrow": lambda a: lib("pandas").Series(a, dtype=f"{pa.from_numpy_dtype(a.dtype)}[pyarrow]"),
    "nanoarrow c_array": nanoarrow_array,
    "nanoarrow Array": lambda a: lib("nanoarrow").Array(pa.array(a)),
    "pyarrow Array": lambda a: pa.array(a),
    "pyarrow ChunkedArray": lambda a: pa.chunked_array([pa.array(a)]),
    "pyarrow FixedSizeList": lambda a: pa.FixedSizeListArray.from_arrays(pa.array(a), 2),
    "pyarrow FixedShapeTensor": lambda a: pa.FixedShapeTensorArray.from_numpy_ndarray(a.reshape(-1, 1, 2)),
}


def values_of(column):
    """Where the values of a library's column lie, by its own means."""
    module = type(column).__module__
    if module.startswith("polars"):
        return column.to_numpy(allow_copy=False).ctypes.data
    if module.startswith("pandas"):
        array = pa.array(column)
        return address_of(array.chunk(0) if isinstance(array, pa.ChunkedArray) else array)
    if module.startswith("nanoarrow"):
        return address_of(pa.array(column))
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return address_of(array.values if hasattr(array, "values") else array)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("name", SHARED)
def test_columns_without_nulls_share_their_memory(name, dtype):
    column = SHARED[name](np.arange(12, dtype=dtype))
    t = asdlpack(column)
    assert t.data_ptr == values_of(column)
    assert (str(t.dtype), t.owner is column) == (dtype, True)
    assert t.readonly or t.protocol == "dlpack"  # old releases of pyarrow give legacy capsules, which cannot say so
    assert np.asarray(t).ravel().tolist() == list(range(12))
    assert inspect(column).offers["arrow"].descriptor.data_ptr == t.data_ptr


def test_the_tensor_keeps_the_memory_alive():
    pl = lib("polars")
    t = asdlpack(pl.Series(range(1000)) + 1)
    gc.collect()
    assert np.asarray(t).tolist() == list(range(1, 1001))


def test_slices_keep_their_offset():
    pl = lib("polars")
    column = pl.Series(np.arange(10.0))
    assert np.asarray(asdlpack(column[3:7])).tolist() == [3, 4, 5, 6]
    assert np.asarray(asdlpack(column.slice(8))).tolist() == [8, 9]


def test_polars_arrays_are_axes():
    pl = lib("polars")
    column = pl.Series(np.arange(24).reshape(2, 3, 4))
    t = asdlpack(column)
    assert (t.shape, np.asarray(t).tolist()) == ((2, 3, 4), np.arange(24).reshape(2, 3, 4).tolist())
    assert t.data_ptr == column.to_numpy(allow_copy=False).ctypes.data


TIMES = {
    "datetime": ([datetime.datetime(2026, 1, 2)], "timestamp[us]", "int64"),
    "date": ([datetime.date(2026, 1, 2)], "date32[day]", "int32"),
    "duration": ([datetime.timedelta(days=1)], "duration[us]", "int64"),
    "time": ([datetime.time(1)], "time64[ns]", "int64"),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_polars_are_integers_with_a_named_unit(name):
    pl = lib("polars")
    values, type_name, dtype = TIMES[name]
    column = pl.Series(values)
    t = asdlpack(column)
    assert str(t.dtype) == dtype
    assert np.asarray(t).tolist() == column.to_physical().to_list()
    assert inspect(column).arrow_type == type_name


def test_the_permutation_of_a_tensor_column_is_a_view():
    storage = pa.array([list(range(6)), list(range(6, 12))], pa.list_(pa.int32(), 6))
    column = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0]), storage)
    t = asdlpack(column, protocol="arrow")
    assert t.shape == (2, 3, 2)
    assert np.array_equal(np.asarray(t), column.to_numpy_ndarray())
    assert t.data_ptr == address_of(storage.values)
    joined = asdlpack(pa.chunked_array([column, column]), copy=True)
    assert np.array_equal(np.asarray(joined), np.concatenate([column.to_numpy_ndarray()] * 2))


# --- what needs a copy -----------------------------------------------------------------------------------------------

BOOLS = {
    "polars": lambda: lib("polars").Series([True, False, True] * 5)[1:],
    "pyarrow": lambda: pa.array([True, False, True] * 5)[1:],
    "pandas": lambda: lib("pandas").Series([True, False, True] * 5, dtype="boolean")[1:],
    "nanoarrow": lambda: lib("nanoarrow").c_array(pa.array([True, False, True] * 5)[1:]),
}


@pytest.mark.parametrize("name", BOOLS)
def test_bools_are_unpacked_on_request_only(name):
    column = BOOLS[name]()
    for copy in (None, False):
        with pytest.raises(BufferError, match="packed to bits.*copy=True") as caught:
            asdlpack(column, protocol="arrow", copy=copy)
        assert isinstance(caught.value, ValueError)
    t = asdlpack(column, copy=True)
    assert (str(t.dtype), t.readonly) == ("bool", False)
    assert np.asarray(t).tolist() == ([True, False, True] * 5)[1:]


@pytest.mark.parametrize("name", ["polars", "pyarrow"])
def test_chunks_are_joined_on_request_only(name):
    if name == "polars":
        pl = lib("polars")
        column = pl.concat([pl.Series([1, 2]), pl.Series([3])], rechunk=False)
    else:
        column = pa.chunked_array([[1, 2], [], [3]])
    with pytest.raises(BufferError, match="in 2 chunks.*copy=True, or join the chunks"):
        asdlpack(column)
    assert np.asarray(asdlpack(column, copy=True)).tolist() == [1, 2, 3]


def test_copy_true_gives_writable_memory_of_its_own():
    pl = lib("polars")
    column = pl.Series([1.0, 2.0])
    t = asdlpack(column, copy=True)
    assert t.data_ptr != values_of(column)
    np.asarray(t)[0] = 7
    assert column.to_list() == [1, 2]


REFUSED = {
    "strings": (lambda pl: pl.Series("s", ["a"]), "string"),
    "lists": (lambda pl: pl.Series([[1], [1, 2]]), "list"),
    "categories": (lambda pl: pl.Series(["a"], dtype=pl.Categorical), "dictionary<string"),
    "decimals": (lambda pl: pl.Series([1], dtype=pl.Decimal(10, 2)), r"decimal\(10,2\)"),
    "structs": (lambda pl: pl.Series([{"a": 1}]), "dlbridge.columns"),
    "a frame": (lambda pl: pl.DataFrame({"a": [1]}), "dlbridge.columns"),
    "objects of nothing": (lambda pl: pl.Series([None]), "null"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_are_no_numbers_are_refused_by_name(name):
    make, says = REFUSED[name]
    with pytest.raises(TypeError, match=says):
        asdlpack(make(lib("polars")))


# --- tables ----------------------------------------------------------------------------------------------------------

DATA = {"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]}
TABLES = {
    "polars": lambda: lib("polars").DataFrame(DATA),
    "pandas": lambda: lib("pandas").DataFrame(DATA),
    "pyarrow Table": lambda: pa.table(DATA),
    "pyarrow RecordBatch": lambda: pa.record_batch(DATA),
    "pyarrow reader": lambda: pa.table(DATA).to_reader(),
    "duckdb": lambda: lib("duckdb").sql("select * from (values (1::bigint, 0.5::double), (2, 1.5), (3, 2.5)) t(a, b)"),
    "nanoarrow stream": lambda: lib("nanoarrow").ArrayStream(pa.table(DATA)),
    "a slice": lambda: lib("polars").DataFrame({"a": [0, 1, 2, 3], "b": [0.0, 0.5, 1.5, 2.5]})[1:],
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_of_a_table_are_tensors_by_name(name):
    got = columns(TABLES[name]())
    gc.collect()  # a column holds its memory alone
    assert {key: np.asarray(t).tolist() for key, t in got.items()} == DATA
    assert all(t.readonly and t.protocol == "arrow" for t in got.values())


def test_columns_share_the_memory_of_the_table():
    frame = lib("polars").DataFrame(DATA)
    assert {name: t.data_ptr for name, t in columns(frame).items()} == {name: values_of(frame[name]) for name in DATA}


def test_a_duckdb_query_may_call_python_while_it_is_read():
    duckdb = lib("duckdb")
    connection = duckdb.connect()
    connection.create_function("twice", lambda x: 2 * x, ["BIGINT"], "BIGINT")
    got = columns(connection.sql("select twice(i) as y from range(5000) t(i)"), copy=True)
    assert np.asarray(got["y"]).tolist() == list(range(0, 10000, 2))


def test_a_column_of_a_table_is_named_in_its_error():
    with pytest.raises(TypeError, match="column 'name'.*string"):
        columns(pa.table({"a": [1], "name": ["x"]}))
    with pytest.raises(BufferError, match="column 'b'.*has 1 null"):
        columns(pa.table({"a": [1], "b": pa.array([None], pa.int32())}))
    with pytest.raises(BufferError, match="column 'flag'.*packed"):
        columns(pa.table({"flag": [True]}))


def test_an_empty_table_has_empty_columns():
    got = columns(pa.table({"a": pa.array([], pa.int16())}))
    assert got["a"].shape == (0,)
    assert columns(pa.table({})) == {}


# --- through the rest of dlbridge ------------------------------------------------------------------------------------


def test_convert_takes_a_column_to_any_framework():
    pl = lib("polars")
    column = pl.Series([1.0, 2.0])
    array = convert(column, "numpy")
    assert array.ctypes.data == values_of(column)
    assert not array.flags.writeable
    torch = lib("torch")
    assert torch.equal(convert(column, "torch"), torch.tensor([1.0, 2.0], dtype=torch.float64))


def test_a_series_in_a_container_is_an_array_and_a_frame_is_none():
    pl = lib("polars")
    frame = pl.DataFrame({"a": [1]})
    got = convert({"x": pl.Series([1.0]), "frame": frame}, "numpy")
    assert isinstance(got["x"], np.ndarray)
    assert got["frame"] is frame


def test_an_interrupt_in_a_series_is_not_swallowed(monkeypatch):
    pl = lib("polars")

    def interrupted(self, requested_schema=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(pl.Series, "__arrow_c_stream__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asdlpack(pl.Series([1.0]))


def test_a_series_that_raises_says_so(monkeypatch):
    pl = lib("polars")

    def broken(self, requested_schema=None):
        raise OSError("gone")

    monkeypatch.setattr(pl.Series, "__arrow_c_stream__", broken)
    with pytest.raises(OSError, match="gone"):
        asdlpack(pl.Series([1.0]))


def test_a_numpy_array_goes_by_its_own_protocols_as_before():
    assert asdlpack(np.ones(3)).protocol == "array_interface"
    assert asdlpack(pa.array([1.0])).protocol == "dlpack"
