"""Factories and importers of known libraries of Arrow data, as those in `adapters`.

A factory ``f(spec)`` makes a column of the numbers that are asked for. The others, ``f()``, make a table of many types.
"""

from __future__ import annotations

import datetime
from typing import Any

from dlbridge.tests.conformance._check import Unsupported
from dlbridge.tests.conformance._spec import ARROW_DTYPES, Spec
from dlbridge.tests.conformance.adapters import load, numpy_array


def pyarrow_array(spec: Spec) -> Any:
    """A pyarrow.Array; a ChunkedArray where chunks are asked for."""
    pa = load("pyarrow")
    np = load("numpy")
    if len(spec.shape) != 1 or spec.dtype not in ARROW_DTYPES or spec.readonly or spec.device != "cpu":
        raise Unsupported("a pyarrow.Array is one-dimensional, read-only, on the host")
    if spec.layout == "C":
        return pa.array(numpy_array(Spec(spec.shape, spec.dtype)))
    values = spec.values
    if spec.dtype == "float16":
        values = [None if value is None else np.float16(value) for value in values]
    type = getattr(pa, {"float16": "float16", "bool": "bool_"}.get(spec.dtype, spec.dtype))()
    if spec.layout == "offset":
        return pa.array([values[-1], *values], type)[1:]
    if spec.layout == "nulls":
        return pa.array(values, type)
    if spec.layout == "chunks":
        return pa.chunked_array([values[:2], values[2:]], type)
    raise Unsupported(spec.layout)


def _flat(spec: Spec) -> Any:
    column = pyarrow_array(spec)
    if spec.layout == "chunks":
        raise Unsupported("the library joins chunks")
    return column


def pyarrow_table() -> Any:
    """Most types that there are, with nulls, in two chunks, the second of which is a slice."""
    pa = load("pyarrow")
    day = datetime.datetime(2026, 1, 2, 3, 4)
    columns = {
        "text": pa.array(["a", None, "a longer text", ""]),
        "large": pa.array([b"1", None, b"", b"234"], pa.large_binary()),
        "view": pa.array(["a", None, "longer than twelve bytes", ""], pa.string_view()),
        "fixed": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
        "time": pa.array([day, None, day, day], pa.timestamp("us", "Europe/Paris")),
        "day": pa.array([day.date(), None, day.date(), None]),
        "decimal": pa.array([1, None, 2, 3], pa.decimal128(9, 2)),
        "nothing": pa.nulls(4),
        "list": pa.array([[1, None], None, [], [2]]),
        "pair": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int8(), 2)),
        "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": 2, "y": None}, {"x": 3, "y": "b"}]),
        "map": pa.array([[("k", 1)], None, [], [("l", None)]], pa.map_(pa.string(), pa.int8())),
        "words": pa.array(["x", None, "y", "x"]).dictionary_encode(),
    }
    table = pa.table(columns, metadata={"of": "the table"})
    return pa.concat_tables([table, table.slice(1)])


def polars_series(spec: Spec) -> Any:
    pl, pa, np = load("polars"), load("pyarrow"), load("numpy")
    if spec.layout == "C" and len(spec.shape) > 1 and spec.size:
        return pl.Series("x", np.ascontiguousarray(numpy_array(spec)))
    column = pyarrow_array(spec)
    if spec.layout == "chunks":
        return pl.concat([pl.Series("x", column.chunk(i)) for i in range(2)], rechunk=False)
    if spec.layout == "offset":
        return pl.Series("x", pa.concat_arrays([column[:1], column]))[1:]
    return pl.Series("x", column)


def polars_frame() -> Any:
    pl = load("polars")
    table = pyarrow_table().drop_columns(["fixed", "map", "pair"])
    return pl.from_arrow(table, rechunk=False)


def pandas_series(spec: Spec) -> Any:
    pd = load("pandas")
    if spec.layout == "C":
        return pd.Series(_flat(spec).to_numpy(zero_copy_only=False), name="x")
    return pd.Series(_flat(spec), dtype=pd.ArrowDtype(_flat(spec).type), name="x")


def pandas_frame() -> Any:
    return pyarrow_table().drop_columns(["map"]).to_pandas()


def duckdb_relation(spec: Spec) -> Any:
    duckdb, pa = load("duckdb"), load("pyarrow")
    if spec.dtype == "float16":
        raise Unsupported("DuckDB has no float16")
    return duckdb.from_arrow(pa.table({"x": _flat(spec)}))


def duckdb_query() -> Any:
    duckdb = load("duckdb")
    return duckdb.from_arrow(pyarrow_table().drop_columns(["view"]))


def nanoarrow_array(spec: Spec) -> Any:
    na = load("nanoarrow")
    column = pyarrow_array(spec)
    return na.Array(column)


def nanoarrow_table() -> Any:
    na = load("nanoarrow")
    return na.Array(pyarrow_table().drop_columns(["view"]).combine_chunks())


def dlbridge_ndarray(spec: Spec) -> Any:
    import dlbridge.nd as nd

    if spec.layout not in ("C", "F", "strided", "reversed", "offset") or spec.readonly:
        raise Unsupported(spec.layout)
    return nd.asarray(numpy_array(spec), device="cpu")


# --- importers --------------------------------------------------------------------------------------------------------


def pyarrow_from_arrow(x: Any) -> Any:
    pa = load("pyarrow")
    return pa.chunked_array(x) if hasattr(x, "__arrow_c_stream__") else pa.array(x)


def polars_from_arrow(x: Any) -> Any:
    return load("polars").Series(x)


def pandas_from_arrow(x: Any) -> Any:
    return load("pandas").Series.from_arrow(x)


def nanoarrow_from_arrow(x: Any) -> Any:
    return load("nanoarrow").Array(x)


class _Rows:
    """What a query gave: the rows of its one column."""

    def __init__(self, rows: list[tuple[Any]]) -> None:
        self._rows = rows

    def tolist(self) -> list[Any]:
        return [value for (value,) in self._rows]


def duckdb_from_arrow(x: Any) -> Any:
    return _Rows(load("duckdb").sql("from x").fetchall())


def dlbridge_columns(x: Any) -> Any:
    from dlbridge import columns

    (column,) = columns(x).values()
    return column
