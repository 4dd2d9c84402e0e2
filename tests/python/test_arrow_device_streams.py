"""Arrow's device streams: read as streams are, on their device; what is damaged is an error and no leak."""

import numpy as np
import pytest
from arrow_support import Chunks, DeviceArray, DeviceChunks, Stream, capsule, release
from dlbridge import asdlpack, columns, convert, inspect

CPU, CUDA, HOST, METAL = 1, 2, 3, 8


def chunks(maker, arrays, device_type=CPU, device_id=-1, schema=None, **options):
    placed = [maker.on_device(array, device_type, device_id) for array in arrays]
    return maker.stream(schema or maker.schema(name=b"price"), placed, device_type=device_type, **options)


@pytest.mark.parametrize("device_type", [CPU, HOST], ids=["cpu", "pinned"])
def test_one_chunk_is_shared_and_empty_ones_do_not_count(maker, device_type):
    arrays = [maker.array(0, (None, None)), maker.array(4), maker.array(0, (None, None))]
    address = arrays[1].buffers[1]
    source = DeviceChunks(chunks(maker, arrays, device_type))
    t = asdlpack(source)
    assert (t.data_ptr, t.readonly, t.protocol, t.owner) == (address, True, "arrow", source)
    assert str(t.device) == ("cpu" if device_type == CPU else "cuda_host")
    assert np.asarray(t).tolist() == [0, 1, 2, 3]


def test_several_chunks_are_joined_on_request_only(maker):
    with pytest.raises(BufferError, match="column 'price' is in 2 chunks"):
        asdlpack(DeviceChunks(chunks(maker, [maker.array(4), maker.array(2)])))
    joined = asdlpack(DeviceChunks(chunks(maker, [maker.array(4), maker.array(2)])), copy=True)
    assert np.asarray(joined).tolist() == [0, 1, 2, 3, 0, 1]


def test_a_stream_of_no_arrays_is_empty_on_its_device(maker):
    t = asdlpack(DeviceChunks(chunks(maker, [])))
    assert (t.shape, str(t.dtype), str(t.device)) == ((0,), "int64", "cpu")


def test_tables_are_read_by_columns(maker):
    schema = maker.schema(b"+s", children=[maker.schema(b"l", b"a"), maker.schema(b"l", b"b")])
    batch = maker.array(2, (None,), children=[maker.array(4), maker.array(4)])
    got = columns(DeviceChunks(chunks(maker, [batch], schema=schema)))
    assert {name: np.asarray(t).tolist() for name, t in got.items()} == {"a": [0, 1], "b": [0, 1]}


def test_the_stream_of_the_device_goes_before_that_of_the_host(maker):
    class Both(DeviceChunks):
        def __arrow_c_stream__(self, requested_schema=None):
            raise AssertionError("the host's stream was asked for")

    assert np.asarray(asdlpack(Both(chunks(maker, [maker.array(3)])))).tolist() == [0, 1, 2]


def test_it_is_a_column_in_a_container_and_a_line_of_inspect(maker):
    class Sized(DeviceChunks):
        def __len__(self):
            return 3

    made = convert({"x": Sized(chunks(maker, [maker.array(3)]))}, "numpy")
    assert made["x"].tolist() == [0, 1, 2]
    assert inspect(Sized(chunks(maker, []))).offers["arrow"].on_type


@pytest.mark.parametrize(("fails_at", "function"), [(0, "get_schema"), (1, "get_next"), (2, "get_next")])
def test_a_stream_that_fails_midway_says_why(maker, fails_at, function):
    schema, arrays = maker.schema(), [maker.array(4), maker.array(4)]
    placed = [maker.on_device(array, CPU, -1) for array in arrays]
    stream = maker.stream(schema, placed, fails_at=fails_at, device_type=CPU)
    with pytest.raises(BufferError, match=rf"{function}\(\) failed with 5 .*the disk is on fire"):
        asdlpack(DeviceChunks(stream))
    for unused in (schema, *placed):  # the stream gave them to nobody
        release(unused)


def without(field):
    def edit(maker):
        stream = chunks(maker, [])
        setattr(stream, field, type(getattr(stream, field))())
        return stream

    return edit


def lying(stream_type, array_type, array_id=-1):
    def make(maker):
        placed = [maker.on_device(maker.array(2), array_type, array_id)]
        return maker.stream(maker.schema(), placed, device_type=stream_type)

    return make


DAMAGED = {
    "no get_schema": (without("get_schema"), ValueError, "no get_schema or no get_next"),
    "no get_next": (without("get_next"), ValueError, "no get_schema or no get_next"),
    "a device that nobody has": (lambda m: chunks(m, [], METAL), BufferError, "CPU or of CUDA, got metal"),
    "device 0": (lambda m: chunks(m, [], 0), BufferError, "CPU or of CUDA"),
    "an array on another kind of device": (lying(CPU, CUDA, 0), ValueError, "device_type 1, and an array .* on cuda:0"),
    "an array of pinned memory in a stream of the CPU": (lying(CPU, HOST), ValueError, "on cuda_host"),
    "a GPU of a negative number": (lying(CUDA, CUDA, -1), ValueError, "device_id -1, which no GPU has"),
    "a GPU of a number beyond 31 bits": (lying(CUDA, CUDA, 2**32), ValueError, "device_id 4294967296"),
    "a lying array": (
        lambda m: chunks(m, [m.array(4, null_count=5)]),
        ValueError,
        "null_count 5",
    ),
    "a bitmap in device memory": (
        lambda m: chunks(m, [m.array(4, (b"\xff", b"\0" * 32), null_count=-1)], CUDA, 0),
        BufferError,
        "bitmap in device memory",
    ),
    "several chunks in device memory": (
        lambda m: chunks(m, [m.array(4), m.array(4)], CUDA, 0),
        BufferError,
        "lies in device memory",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_stream_is_an_error_and_no_leak(maker, name):
    make, error, says = DAMAGED[name]
    before = len(maker.structs)
    stream = make(maker)
    with pytest.raises(error, match=says):
        asdlpack(DeviceChunks(stream), copy=True if "chunks" in name else None)
    for made in maker.structs[before:]:  # what the stream did not come to give
        if made.parent is None and not made.is_moved:
            release(made.struct)


def test_chunks_on_two_gpus_are_refused(maker):
    placed = [maker.on_device(maker.array(2), CUDA, i) for i in (0, 1)]
    stream = maker.stream(maker.schema(), placed, device_type=CUDA)
    with pytest.raises(BufferError, match="on cuda:0 and on cuda:1, and a tensor is on one device"):
        asdlpack(DeviceChunks(stream))


def test_a_stream_of_what_cannot_be_taken_is_not_run(maker):
    array = maker.on_device(maker.array(4), CPU, -1)
    with pytest.raises(TypeError, match="string"):
        asdlpack(DeviceChunks(maker.stream(maker.schema(b"u"), [array], device_type=CPU)))
    assert array.array.release
    release(array)


BAD = {
    "None": lambda _: None,
    "the host's stream": lambda m: m.keep(capsule(m.stream(m.schema(), []))),
    "an array": lambda m: capsule(m.keep(DeviceArray())),
    "an empty struct": lambda m: capsule(m.keep(Stream()), b"arrow_device_array_stream"),
}


@pytest.mark.parametrize("name", BAD)
def test_anything_but_its_capsule_is_refused(maker, name):
    class Bad:
        def __arrow_c_device_stream__(self, requested_schema=None, **kwargs):
            return given

    given = BAD[name](maker)
    error, says = (ValueError, "released already") if "empty" in name else (TypeError, "__arrow_c_device_stream__")
    with pytest.raises(error, match=says):
        asdlpack(Bad())
    for made in maker.structs:
        if made.parent is None and not made.is_moved:
            release(made.struct)


def test_a_capsule_is_good_for_one_import(maker):
    source = DeviceChunks(chunks(maker, [maker.array(2)]))
    first = asdlpack(source)
    with pytest.raises(ValueError, match="released already"):
        asdlpack(source)
    assert np.asarray(first).tolist() == [0, 1]


def test_a_stream_of_the_host_is_none_of_the_device(maker):
    stream = maker.stream(maker.schema(), [maker.array(2)])
    assert np.asarray(asdlpack(Chunks(stream))).tolist() == [0, 1]
