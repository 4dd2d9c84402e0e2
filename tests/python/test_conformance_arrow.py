"""How the conformance kit reads Arrow's structs, and what it finds in the libraries that are installed."""

import ctypes
import datetime

import pytest
from arrow_support import Array, Schema, metadata, struct_of
from dlbridge.tests.conformance import _arrow_abi, _arrow_format, libraries
from dlbridge.tests.conformance._check import Failed

pytestmark = pytest.mark.no_sanitizer  # libraries die of malformed structs, in processes of their own


def elements(given):
    schema, array = given
    return _arrow_format.read(struct_of(schema, Schema), struct_of(array, Array))


def test_metadata_is_read_as_it_was_packed():
    block = metadata(ext="acme.money", other=b"\xff")
    kept = ctypes.create_string_buffer(block, len(block))
    pairs = [(b"ARROW:extension:name", b"acme.money"), (b"other", b"\xff")]
    assert _arrow_abi.read_metadata(ctypes.addressof(kept)) == pairs


@pytest.mark.parametrize("format", ["", "x", "ii", "w:", "w:x", "+w:", "+w:-1", "d:1", "tss", "tsx:", "+u:1", "+ud"])
def test_other_formats_are_no_formats(format):
    assert _arrow_format.layout_of(format) is None


DAY = datetime.date(1970, 1, 3)
TYPES = {
    "bools": ([True, None, False], "bool_", ()),
    "float16": ([1.5, None, -2.0], "float16", ()),
    "strings": (["a", None, "", "a longer string"], "string", ()),
    "large binary": ([b"a", None, b""], "large_binary", ()),
    "views": (["a", None, "twelve bytes", "longer than twelve bytes"], "string_view", ()),
    "fixed binary": ([b"ab", None, b"cd"], "binary", (2,)),
    "lists": ([[1, None], None, [], [2]], "list_", ("int8",)),
    "list views": ([[1, None], None, [], [2]], "list_view", ("int8",)),
    "nulls": ([None, None], "null", ()),
}


@pytest.mark.parametrize("cut", [0, 1], ids=["whole", "slice"])
@pytest.mark.parametrize("name", TYPES)
def test_elements_are_read(name, cut):
    pa = pytest.importorskip("pyarrow")
    values, type, arguments = TYPES[name]
    arguments = [getattr(pa, a)() if isinstance(a, str) else a for a in arguments]
    given = pa.array(values, getattr(pa, type)(*arguments))[cut:].__arrow_c_array__()
    assert elements(given) == values[cut:]


NESTED = {
    "fixed lists": ([[1, 2], None, [3, 4]], lambda pa: pa.list_(pa.int8(), 2), [[1, 2], None, [3, 4]]),
    "structs": (
        [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}],
        lambda pa: pa.struct([("x", pa.int8()), ("y", pa.string())]),
        [(1, "a"), None, (None, "b")],
    ),
    "maps": ([[("k", 1)], None, []], lambda pa: pa.map_(pa.string(), pa.int8()), [[("k", 1)], None, []]),
    "dictionaries": (["x", None, "x"], lambda pa: pa.dictionary(pa.int8(), pa.string()), ["x", None, "x"]),
    "days": ([DAY, None], lambda pa: pa.date32(), [2, None]),
    "decimals": ([1, None], lambda pa: pa.decimal128(9, 2), [100, None]),
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_elements_are_read(name):
    pa = pytest.importorskip("pyarrow")
    values, type, wanted = NESTED[name]
    given = pa.array(values, type(pa)).__arrow_c_array__()
    assert elements(given) == wanted


def test_what_is_not_there_is_not_read():
    pa = pytest.importorskip("pyarrow")
    schema, array = pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)).__arrow_c_array__()
    found = struct_of(array, Array)
    found.length = 3
    with pytest.raises(Failed, match="child 0 of the base of 6 elements or more, got 4"):
        _arrow_format.read(struct_of(schema, Schema), found)


# What a specification demands and a library breaks, as docs/conformance.md has it.
BROKEN = {
    "polars": {
        "arrow.stream.n-buffers[int32-5-C]",
        "arrow.array.values[int32-3x0-C]",
        "arrow.stream.values[int32-3x0-C]",
    },
}


@pytest.mark.parametrize("name", ["pyarrow", "polars", "pandas", "duckdb", "nanoarrow"])
def test_libraries_break_what_is_known(name):
    pytest.importorskip(name)
    pytest.importorskip("pyarrow", reason="the adapters make their columns with it")
    for report in libraries.check(name, protocols=["arrow"]):
        found = {result.id for result in report.failures} - BROKEN.get(name, set())
        if "pyarrow_tensor" not in report.subject:
            assert report.having("passed"), report.text()
        assert not found, report.text()
