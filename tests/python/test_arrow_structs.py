"""Arrow's structs, sound and damaged: what is read, what is refused and why, and that each is released once."""

import ctypes
import struct

import numpy as np
import pytest
from arrow_support import (
    RELEASE,
    Array,
    Chunks,
    Column,
    OnDevice,
    Schema,
    capsule,
    fixed_shape,
    metadata,
    release,
)
from dlbridge import asdlpack, columns
from dlbridge._core import arrow_type

HUGE = 2**62


def lists(maker, size=2, format=None, **child):
    """The structs of four int64 numbers in fixed-size lists."""
    schema = maker.schema(format or b"+w:%d" % size, children=[maker.schema(b"l", b"item")])
    return schema, maker.array(2, (None,), children=[maker.array(4, **child)])


# --- what is read ----------------------------------------------------------------------------------------------------


NUMBERS = {
    "int8": (b"c", "int8", "=4b"),
    "uint8": (b"C", "uint8", "=4B"),
    "int16": (b"s", "int16", "=4h"),
    "uint16": (b"S", "uint16", "=4H"),
    "int32": (b"i", "int32", "=4i"),
    "uint32": (b"I", "uint32", "=4I"),
    "int64": (b"l", "int64", "=4q"),
    "uint64": (b"L", "uint64", "=4Q"),
    "float16": (b"e", "float16", "=4e"),
    "float32": (b"f", "float32", "=4f"),
    "float64": (b"g", "float64", "=4d"),
    "date32[day]": (b"tdD", "int32", "=4i"),
    "date64[ms]": (b"tdm", "int64", "=4q"),
    "time32[s]": (b"tts", "int32", "=4i"),
    "time32[ms]": (b"ttm", "int32", "=4i"),
    "time64[us]": (b"ttu", "int64", "=4q"),
    "time64[ns]": (b"ttn", "int64", "=4q"),
    "timestamp[s]": (b"tss:", "int64", "=4q"),
    "timestamp[us, Europe/Paris]": (b"tsu:Europe/Paris", "int64", "=4q"),
    "duration[ns]": (b"tDn", "int64", "=4q"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_every_format_of_numbers_and_times_is_shared(maker, name):
    format, dtype, code = NUMBERS[name]
    array = maker.array(4, (None, struct.pack(code, 1, 2, 3, 4)))
    column = Column(maker.schema(format), array)
    address = array.buffers[1]
    t = asdlpack(column)
    assert (t.shape, str(t.dtype), t.data_ptr, t.readonly, t.protocol) == ((4,), dtype, address, True, "arrow")
    assert np.asarray(t).tolist() == [1, 2, 3, 4]
    assert t.owner is column


@pytest.mark.parametrize("name", NUMBERS)
def test_the_type_says_what_the_dtype_does_not(maker, name):
    column = Column(maker.schema(NUMBERS[name][0]), maker.array())
    assert arrow_type(column) == name


def test_an_offset_is_followed(maker):
    array = maker.array(2, (None, struct.pack("=4q", 0, 1, 2, 3)), offset=1)
    column = Column(maker.schema(), array)
    address = array.buffers[1]
    t = asdlpack(column)
    assert np.asarray(t).tolist() == [1, 2]
    assert t.data_ptr == address + 8


def test_fixed_size_lists_are_axes_whatever_the_offsets(maker):
    values = maker.array(6, (None, struct.pack("=7q", *range(7))), offset=1)
    schema = maker.schema(b"+w:2", children=[maker.schema(b"l", b"item")])
    t = asdlpack(Column(schema, maker.array(2, (None,), children=[values], offset=1)))
    assert np.asarray(t).tolist() == [[3, 4], [5, 6]]


def test_lists_of_lists_nest(maker):
    inner = maker.schema(b"+w:2", b"item", children=[maker.schema(b"l", b"item")])
    arrays = maker.array(4, (None,), children=[maker.array(8)])
    t = asdlpack(Column(maker.schema(b"+w:2", children=[inner]), maker.array(2, (None,), children=[arrays])))
    assert np.asarray(t).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


TENSORS = {
    "plain": ({"shape": [2, 3]}, (1, 2, 3), [[[0, 1, 2], [3, 4, 5]]]),
    "names": ({"shape": [2, 3], "dim_names": ["x", "y\\\\"]}, (1, 2, 3), None),
    "permuted": ({"shape": [2, 3], "permutation": [1, 0]}, (1, 3, 2), [[[0, 3], [1, 4], [2, 5]]]),
    "no axes of its own": ({"shape": [6, 1, 1]}, (1, 6, 1, 1), None),
    "nulls for names": ({"shape": [6], "dim_names": None, "permutation": None}, (1, 6), None),
}


@pytest.mark.parametrize("name", TENSORS)
def test_fixed_shape_tensors_have_the_axes_of_their_metadata(maker, name):
    json, shape, values = TENSORS[name]
    schema = maker.schema(b"+w:6", block=fixed_shape(**json), children=[maker.schema(b"l", b"item")])
    t = asdlpack(Column(schema, maker.array(1, (None,), children=[maker.array(6)])))
    assert t.shape == shape
    if values is not None:
        assert np.asarray(t).tolist() == values


def test_an_unknown_extension_is_what_it_is_stored_as(maker):
    column = Column(maker.schema(b"l", block=metadata(ext="acme.money", other="x")), maker.array())
    assert str(asdlpack(column).dtype) == "int64"
    again = Column(maker.schema(b"l", block=metadata(ext="acme.money")), maker.array())
    assert arrow_type(again) == "acme.money (stored as int64)"


def test_an_empty_column_needs_no_memory(maker):
    t = asdlpack(Column(maker.schema(b"g"), maker.array(0, (None, None))))
    assert (t.shape, t.data_ptr, str(t.dtype)) == ((0,), 0, "float64")


# --- what is refused -------------------------------------------------------------------------------------------------


TYPES = {
    "null": b"n",
    "string": b"u",
    "large_string": b"U",
    "string_view": b"vu",
    "binary": b"z",
    "fixed_size_binary": b"w:16",
    "decimal(10,2)": b"d:10,2",
    "interval[month]": b"tiM",
    "list": b"+l",
    "large_list": b"+L",
    "list_view": b"+vl",
    "map": b"+m",
    "struct": b"+s",
    "dense_union": b"+ud:0,1",
    "run_end_encoded": b"+r",
}


@pytest.mark.parametrize("name", TYPES)
def test_what_is_no_array_of_numbers_is_refused_by_its_name(maker, name):
    with pytest.raises(TypeError) as caught:
        asdlpack(Column(maker.schema(TYPES[name]), maker.array()))
    assert f"Arrow type {name} " in str(caught.value)
    assert "first" in str(caught.value) or "dlbridge.columns(table)" in str(caught.value) or ":" in str(caught.value)


def test_a_dictionary_is_refused_by_the_name_of_its_values(maker):
    schema = maker.schema(b"i", dictionary=maker.schema(b"u"))
    with pytest.raises(TypeError, match=r"dictionary<string>.*Decode"):
        asdlpack(Column(schema, maker.array()))


def damaged_lists(size, **fields):
    return lambda m: lists(m, size, **fields)


def with_block(block, format=b"+w:6"):
    def make(m):
        schema = m.schema(format, block=block, children=[m.schema(b"l", b"item")])
        return schema, m.array(1, (None,), children=[m.array(6)])

    return make


def edited(edit):
    """The structs of four numbers after an edit of the two."""

    def make(m):
        schema, array = m.schema(), m.array()
        edit(schema, array)
        return schema, array

    return make


DAMAGED = {
    "an unknown format": (lambda m: (m.schema(b"q!"), m.array()), ValueError, "'q!'"),
    "no format": (lambda m: (m.schema(None), m.array()), ValueError, "no format"),
    "an empty format": (lambda m: (m.schema(b""), m.array()), ValueError, "format ''"),
    "numbers with children": (
        lambda m: (m.schema(children=[m.schema()]), m.array()),
        ValueError,
        "has 1 children; it must have 0",
    ),
    "an array with children": (
        lambda m: (m.schema(), m.array(children=[m.array()])),
        ValueError,
        "and 1 children",
    ),
    "a list without children": (lambda m: (m.schema(b"+w:2"), m.array(2, (None,))), ValueError, "it must have 1"),
    "a list of 0 children, said to be 1": (
        lambda m: (m.schema(b"+w:2", n_children=1), m.array(2, (None,))),
        ValueError,
        "null address",
    ),
    "a list array with a null list of children": (
        lambda m: (m.schema(b"+w:2", children=[m.schema()]), m.array(2, (None,), n_children=1)),
        ValueError,
        "child is null",
    ),
    "a negative list size": (damaged_lists(2, format=b"+w:-2"), ValueError, "no list size"),
    "a list size beyond 31 bits": (damaged_lists(2, format=b"+w:4294967296"), ValueError, "no list size"),
    "a list size of no digits": (damaged_lists(2, format=b"+w:"), ValueError, "no list size"),
    "lists that reach past the end": (damaged_lists(3), ValueError, "length 4"),
    "lists with an offset past the end": (
        lambda m: (
            m.schema(b"+w:2", children=[m.schema()]),
            m.array(2, (None,), children=[m.array(4)], offset=1),
        ),
        ValueError,
        "length 4",
    ),
    "a negative length": (edited(lambda s, a: setattr(a, "length", -1)), ValueError, "length -1"),
    "a negative offset": (edited(lambda s, a: setattr(a, "offset", -1)), ValueError, "offset -1"),
    "an offset beyond the address space": (edited(lambda s, a: setattr(a, "offset", HUGE)), OverflowError, "offset"),
    "a length beyond the address space": (
        edited(lambda s, a: setattr(a, "length", HUGE)),
        OverflowError,
        "address space",
    ),
    "an offset that wraps around": (edited(lambda s, a: setattr(a, "offset", 2**63 - 1)), OverflowError, "offset"),
    "one buffer": (edited(lambda s, a: setattr(a, "n_buffers", 1)), ValueError, "1 buffers"),
    "three buffers": (edited(lambda s, a: setattr(a, "n_buffers", 3)), ValueError, "3 buffers"),
    "no list of buffers": (
        edited(lambda s, a: setattr(a, "buffers", ctypes.POINTER(ctypes.c_void_p)())),
        ValueError,
        "buffers is null",
    ),
    "no data": (lambda m: (m.schema(), m.array(4, (None, None))), ValueError, "null"),
    "null_count below -1": (edited(lambda s, a: setattr(a, "null_count", -2)), ValueError, "null_count -2"),
    "more nulls than rows": (edited(lambda s, a: setattr(a, "null_count", 5)), ValueError, "null_count 5"),
    "nulls without a bitmap": (edited(lambda s, a: setattr(a, "null_count", 1)), ValueError, "no validity bitmap"),
    "a released child of the schema": (
        lambda m: with_released_child(m),
        ValueError,
        "released",
    ),
    "lists longer than the address space": (
        lambda m: (m.schema(b"+w:2147483647", children=[m.schema()]), m.array(HUGE, (None,), children=[m.array(4)])),
        OverflowError,
        "63 bits",
    ),
    "a tensor of another size": (with_block(fixed_shape([2, 2])), ValueError, "another number of elements"),
    "a tensor with an extent that overflows": (with_block(fixed_shape([2**62, 2**62])), ValueError, "another number"),
    "a tensor with a negative extent": (with_block(fixed_shape([-6])), ValueError, "not JSON"),
    "a tensor without a shape": (
        with_block(metadata(ext="arrow.fixed_shape_tensor", json="{}")),
        ValueError,
        "not JSON",
    ),
    "a tensor without metadata": (with_block(metadata(ext="arrow.fixed_shape_tensor")), ValueError, "not JSON"),
    "a tensor with broken JSON": (
        with_block(metadata(ext="arrow.fixed_shape_tensor", json='{"shape":[2,3')),
        ValueError,
        "not JSON",
    ),
    "a permutation of another length": (with_block(fixed_shape([2, 3], permutation=[0])), ValueError, "not JSON"),
    "a permutation that repeats": (with_block(fixed_shape([2, 3], permutation=[0, 0])), ValueError, "not JSON"),
    "a permutation out of range": (with_block(fixed_shape([2, 3], permutation=[0, 2])), ValueError, "not JSON"),
    "metadata of a negative count": (with_block(struct.pack("=i", -1)), ValueError, "metadata"),
    "metadata of a negative length": (with_block(struct.pack("=ii", 1, -5)), ValueError, "metadata"),
}


def with_released_child(maker):
    schema, array = lists(maker)
    release(schema.children[0].contents)
    return schema, array


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_struct_is_an_error_and_no_leak(maker, name):
    make, error, says = DAMAGED[name]
    with pytest.raises(error, match=says):
        asdlpack(Column(*make(maker)))


def test_a_list_nested_deeper_than_a_tensor_has_axes(maker):
    schema, array = maker.schema(), maker.array(1)
    for _ in range(70):
        schema, array = maker.schema(b"+w:1", children=[schema]), maker.array(1, (None,), children=[array])
    with pytest.raises(BufferError, match="nested deeper"):
        asdlpack(Column(schema, array))


# --- capsules and streams --------------------------------------------------------------------------------------------


def test_a_capsule_is_good_for_one_import(maker):
    column = Column(maker.schema(), maker.array())
    first = asdlpack(column)
    with pytest.raises(ValueError, match="released already"):
        asdlpack(column)
    assert np.asarray(first).tolist() == [0, 1, 2, 3]


BAD_PAIRS = {
    "None": None,
    "a list": [],
    "one item": (1,),
    "no capsules": (1, 2),
    "a capsule of another name": (
        capsule(Array(), b"dltensor"),
        capsule(Array(), b"dltensor"),
    ),
}


@pytest.mark.parametrize("name", BAD_PAIRS)
def test_anything_but_a_pair_of_capsules_is_a_type_error(name):
    class Bad:
        def __arrow_c_array__(self, requested_schema=None):
            return BAD_PAIRS[name]

    with pytest.raises(TypeError, match="__arrow_c_array__"):
        asdlpack(Bad())


def test_an_error_of_the_producer_is_kept():
    class Bad:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ConnectionError("no route")

    with pytest.raises(ConnectionError, match="no route"):
        asdlpack(Bad())


def test_one_chunk_of_a_stream_is_shared_and_empty_ones_do_not_count(maker):
    arrays = [maker.array(0, (None, None)), maker.array(4), maker.array(0, (None, None))]
    address = arrays[1].buffers[1]
    t = asdlpack(Chunks(maker.stream(maker.schema(), arrays)))
    assert t.data_ptr == address
    assert np.asarray(t).tolist() == [0, 1, 2, 3]


def test_several_chunks_are_joined_on_request_only(maker):
    def chunks():
        return Chunks(maker.stream(maker.schema(name=b"price"), [maker.array(4), maker.array(2)]))

    for copy in (None, False):
        with pytest.raises(BufferError, match="column 'price' is in 2 chunks.*copy=True") as caught:
            asdlpack(chunks(), copy=copy)
        assert isinstance(caught.value, ValueError)
    t = asdlpack(chunks(), copy=True)
    assert np.asarray(t).tolist() == [0, 1, 2, 3, 0, 1]
    assert not t.readonly


def test_a_stream_of_no_arrays_is_an_empty_column(maker):
    t = asdlpack(Chunks(maker.stream(maker.schema(b"f"), [])))
    assert (t.shape, str(t.dtype)) == ((0,), "float32")


@pytest.mark.parametrize(("fails_at", "function"), [(0, "get_schema"), (1, "get_next"), (2, "get_next")])
def test_a_stream_that_fails_midway_says_why(maker, fails_at, function):
    schema, arrays = maker.schema(), [maker.array(4), maker.array(4)]
    stream = maker.stream(schema, arrays, fails_at=fails_at)
    with pytest.raises(BufferError, match=rf"{function}\(\) failed with 5 .*the disk is on fire"):
        asdlpack(Chunks(stream))
    for unused in (schema, *arrays):  # the stream gave them to nobody
        release(unused)


def test_a_stream_that_fails_without_a_word(maker):
    schema = maker.schema()
    with pytest.raises(BufferError, match="gives no reason"):
        asdlpack(Chunks(maker.stream(schema, [], fails_at=1, says=None)))


def test_a_stream_of_what_cannot_be_taken_is_not_run(maker):
    array = maker.array(4)
    with pytest.raises(TypeError, match="string"):
        asdlpack(Chunks(maker.stream(maker.schema(b"u"), [array])))
    assert array.release
    release(array)


def test_a_stream_without_functions_is_refused(maker):
    stream = maker.stream(maker.schema(), [])
    schema = next(s for s in maker.kept if isinstance(s, Schema))
    stream.get_next = type(stream.get_next)()
    with pytest.raises(ValueError, match="no get_next"):
        asdlpack(Chunks(stream))
    release(schema)


# --- devices ---------------------------------------------------------------------------------------------------------


def test_a_device_array_on_the_cpu_is_host_memory(maker):
    t = asdlpack(OnDevice(maker, maker.schema(), maker.array(), 1, -1))
    assert (str(t.device), np.asarray(t).tolist()) == ("cpu", [0, 1, 2, 3])


@pytest.mark.parametrize("device_type", [4, 10, 0, -1])
def test_other_devices_than_the_cpu_and_cuda_are_refused(maker, device_type):
    with pytest.raises(BufferError, match="CPU or of CUDA"):
        asdlpack(OnDevice(maker, maker.schema(), maker.array(), device_type))


def test_a_bitmap_in_device_memory_is_not_looked_at(maker):
    array = maker.array(4, (b"\xff", struct.pack("=4q", *range(4))), null_count=-1)
    with pytest.raises(BufferError, match="bitmap in device memory"):
        asdlpack(OnDevice(maker, maker.schema(), array, 2))


# --- tables ----------------------------------------------------------------------------------------------------------


def table(maker, names=(b"a", b"b"), **fields):
    schema = maker.schema(b"+s", children=[maker.schema(b"l", name) for name in names])
    return schema, maker.array(2, (None,), children=[maker.array(4) for _ in names], **fields)


def test_columns_are_moved_out_of_their_batch(maker):
    schema, array = table(maker)
    addresses = [array.children[i].contents.buffers[1] for i in range(2)]
    got = columns(Column(schema, array))
    assert [t.data_ptr for t in got.values()] == addresses
    assert maker.released.count("Array") == 1  # the batch: its columns stand on their own
    del got["a"]
    assert maker.released.count("Array") == 2
    assert np.asarray(got["b"]).tolist() == [0, 1]


def test_the_offset_of_a_batch_is_that_of_its_columns(maker):
    got = columns(Column(*table(maker, offset=2)))
    assert {name: np.asarray(t).tolist() for name, t in got.items()} == {"a": [2, 3], "b": [2, 3]}


BAD_TABLES = {
    "an offset past the end": (lambda m: table(m, offset=3), ValueError, "column 'a'"),
    "one column too few": (
        lambda m: (table_schema(m), m.array(2, (None,), children=[m.array()])),
        ValueError,
        "children",
    ),
    "a name twice": (lambda m: table(m, (b"x", b"x")), ValueError, "two columns named 'x'"),
    "rows that are null": (
        lambda m: (table_schema(m), m.array(2, (b"\x01",), children=[m.array(), m.array()], null_count=1)),
        BufferError,
        "null as a whole",
    ),
    "one column": (lambda m: (m.schema(), m.array()), TypeError, "asdlpack"),
    "a column of strings": (lambda m: strings(m), TypeError, "column 'b'.*string"),
}


def table_schema(maker):
    return maker.schema(b"+s", children=[maker.schema(b"l", b"a"), maker.schema(b"l", b"b")])


def strings(maker):
    schema, array = table(maker)
    schema.children[1].contents.format = b"u"
    return schema, array


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_an_error_and_no_leak(maker, name):
    make, error, says = BAD_TABLES[name]
    with pytest.raises(error, match=says):
        columns(Column(*make(maker)))


def test_columns_of_an_object_without_arrow_is_a_type_error():
    with pytest.raises(TypeError, match="neither __arrow_c_stream__ nor __arrow_c_array__"):
        columns(np.ones(3))


def test_release_is_a_callback_of_the_specification():
    assert not RELEASE()  # null is falsy: the tests above count on it
