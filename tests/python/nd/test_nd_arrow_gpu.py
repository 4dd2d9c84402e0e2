"""On a GPU: Arrow's device arrays and streams, made by hand over memory of dlbridge.nd and of CuPy, and taken by hand.

Order is shown as in tests/python/test_gpu_streams.py: by gates, and each with its negative control.
"""

import contextlib
import ctypes
import types

import gpu_frameworks as gpu
import pytest
from arrow_support import (
    DeviceArray,
    DeviceChunks,
    OnDevice,
    Schema,
    capsule,
    fixed_shape,
    move,
    release,
    struct_of,
)
from dlbridge import CudaTensor, asdlpack, columns, convert, inspect, nd
from dlbridge.tests import _gate
from dlbridge.tests._gate import Gate

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

pytestmark = gpu.needs_gpu

CUDA = 2
SIZE = 5000  # more than a block of a kernel does
FORMATS = {
    "int8": b"c",
    "uint8": b"C",
    "int16": b"s",
    "uint16": b"S",
    "int32": b"i",
    "uint32": b"I",
    "int64": b"l",
    "uint64": b"L",
    "float16": b"e",
    "float32": b"f",
    "float64": b"g",
}


@pytest.fixture(scope="module", params=["nd", "cupy"])
def xp(request):
    """Whose memory it is: both have the same names for arrays, streams and events."""
    return nd if request.param == "nd" else gpu.cupy()


def counted(xp, dtype="float32", size=SIZE):
    """Numbers from 0 on, which are there: who gives no event says so."""
    values = np.arange(size).astype(dtype)
    made = xp.asarray(values, device="cuda") if xp is nd else xp.asarray(values)
    made.get()
    return made


def placed(maker, pointer, length, event=None, **fields):
    """An ArrowDeviceArray of one column over device memory, with the handle of an event where there is one."""
    array = maker.array(length, (None, None), **fields)
    array.buffers[1] = pointer
    where = None if event is None else ctypes.addressof(maker.keep(ctypes.c_void_p(event.ptr)))
    return maker.on_device(array, CUDA, 0, where)


def column(maker, device_array, schema=None):
    """The producer of a column of float32, or of what the schema says."""
    return Given(capsule(schema or maker.schema(b"f")), capsule(device_array))


class Given:
    def __init__(self, *capsules):
        self.capsules = capsules

    def __arrow_c_device_array__(self, requested_schema=None, **arguments):
        return self.capsules


# --- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_column_in_device_memory_is_shared(maker, xp, dtype):
    x = counted(xp, dtype)
    source = column(maker, placed(maker, gpu.cai_pointer(x), SIZE), maker.schema(FORMATS[dtype]))
    t = asdlpack(source)
    assert (type(t), str(t.device), t.protocol, t.readonly) == (CudaTensor, "cuda:0", "arrow", True)
    assert (t.data_ptr, t.shape, str(t.dtype), t.owner) == (gpu.cai_pointer(x), (SIZE,), dtype, source)
    np.testing.assert_array_equal(gpu.to_host(t), x.get())
    assert maker.released.count("Array") == 0
    del t
    assert maker.released.count("Array") == 1


def test_offsets_lists_and_extension_types_say_where_and_how_wide(maker, xp):
    x = counted(xp, size=24)
    pointer = gpu.cai_pointer(x)
    part = asdlpack(column(maker, placed(maker, pointer, 6, offset=4)))
    assert part.data_ptr == pointer + 16
    np.testing.assert_array_equal(gpu.to_host(part), np.arange(4, 10, dtype=np.float32))

    schemas = (
        maker.schema(b"+w:6", children=[maker.schema(b"f", b"item")]),
        maker.schema(b"+w:6", block=fixed_shape([2, 3]), children=[maker.schema(b"f", b"item")]),
    )
    for schema, shape in zip(schemas, ((4, 6), (4, 2, 3)), strict=True):
        items = maker.array(24, (None, None))
        items.buffers[1] = pointer
        rows = maker.on_device(maker.array(4, (None,), children=[items]), CUDA, 0)
        t = asdlpack(column(maker, rows, schema))
        assert (t.shape, t.data_ptr) == (shape, pointer)
        np.testing.assert_array_equal(gpu.to_host(t), np.arange(24, dtype=np.float32).reshape(shape))


def test_a_column_goes_to_any_framework_and_to_the_host(maker, xp):
    x = counted(xp)
    source = lambda: column(maker, placed(maker, gpu.cai_pointer(x), SIZE))  # noqa: E731
    np.testing.assert_array_equal(convert(source(), "numpy", device="cpu"), x.get())
    taken = convert(source(), "nd")
    assert gpu.cai_pointer(taken) == gpu.cai_pointer(x)
    assert float((taken * 2).sum()) == float(x.get().sum(dtype=np.float64) * 2)
    assert inspect(source()).offers["arrow"].descriptor.data_ptr == gpu.cai_pointer(x)


def test_a_stream_and_a_table_of_device_memory(maker, xp):
    x, y = counted(xp), counted(xp, "int64")
    arrays = [placed(maker, gpu.cai_pointer(x), SIZE), maker.on_device(maker.array(0, (None, None)), CUDA, 0)]
    t = asdlpack(DeviceChunks(maker.stream(maker.schema(b"f"), arrays, device_type=CUDA)))
    np.testing.assert_array_equal(gpu.to_host(t), x.get())

    inner = []
    for array in (x, y):
        inner.append(maker.array(SIZE, (None, None)))
        inner[-1].buffers[1] = gpu.cai_pointer(array)
    batch = maker.on_device(maker.array(SIZE, (None,), children=inner), CUDA, 0)
    schema = maker.schema(b"+s", children=[maker.schema(b"f", b"x"), maker.schema(b"l", b"y")])
    table = columns(DeviceChunks(maker.stream(schema, [batch], device_type=CUDA)))
    assert {name: t.data_ptr for name, t in table.items()} == {"x": gpu.cai_pointer(x), "y": gpu.cai_pointer(y)}
    np.testing.assert_array_equal(gpu.to_host(table["y"]), y.get())


def test_what_only_the_host_could_read_is_refused_untouched(maker, xp):
    """None of it may be looked at: a bitmap in device memory would end the process on a GPU."""
    bits = counted(xp, "uint8", 64)
    pointer = gpu.cai_pointer(bits)
    nulls = maker.array(8, (None, None), null_count=-1)
    nulls.buffers[0] = nulls.buffers[1] = pointer
    with pytest.raises(BufferError, match="bitmap in device memory"):
        asdlpack(column(maker, maker.on_device(nulls, CUDA, 0)))
    with pytest.raises(BufferError, match="device memory"):
        asdlpack(column(maker, placed(maker, pointer, 64), maker.schema(b"b")), copy=True)
    with pytest.raises(BufferError, match="device memory"):
        asdlpack(column(maker, placed(maker, pointer, 8)), nulls="mask")
    with pytest.raises(BufferError, match="device memory"):
        arrays = [placed(maker, pointer, 4), placed(maker, pointer, 4)]
        asdlpack(DeviceChunks(maker.stream(maker.schema(b"f"), arrays, device_type=CUDA)), copy=True)


def handle(stream):
    return ctypes.c_void_p(stream.ptr)


def driver(name, *arguments):
    with _gate._context():
        _gate._driver(name, *arguments)


# --- order -----------------------------------------------------------------------------------------------------------


class Race:
    """A producer's and a consumer's stream, which do not wait for one another, and an array between them.

    The driver's copies alone work on it: they are no kernels that would have to be loaded behind a closed gate.
    """

    def __init__(self, xp):
        self.xp = xp
        self.producer, self.consumer = (xp.cuda.Stream(non_blocking=True) for _ in range(2))
        self.array, self.new, self.old, self.out = (counted(xp) for _ in range(4))
        for array, value in ((self.new, 7), (self.old, 0)):
            array.fill(value)
            array.get()
        self.pointer = gpu.cai_pointer(self.array)

    def copy(self, to, pointer, stream):
        nbytes = ctypes.c_size_t(4 * SIZE)
        driver("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_uint64(pointer), nbytes, handle(stream))

    @contextlib.contextmanager
    def filled(self, *, ordered):
        """What the block takes beside the closed gate is what the gate lets through, or else what was there before."""
        self.copy(self.pointer, gpu.cai_pointer(self.old), self.producer)
        self.producer.synchronize()
        with Gate(limit_s=20) as gate:
            gate.hold(self.producer.ptr)
            self.copy(self.pointer, gpu.cai_pointer(self.new), self.producer)
            event = self.xp.cuda.Event(disable_timing=True)
            event.record(self.producer)
            yield event
            assert gate.is_closed(), "the host was made to wait"
            if not ordered:
                assert self.seen() == [0]
                assert gate.is_closed()
            gate.open()
            assert self.seen() == ([7] if ordered else [0])
            self.producer.synchronize()

    def take(self, pointer):
        """Copies what is there by then to where seen() looks, on the consumer's stream."""
        self.copy(gpu.cai_pointer(self.out), pointer, self.consumer)

    def seen(self):
        self.consumer.synchronize()
        return np.unique(self.out.get()).tolist()


@pytest.fixture(scope="module")
def race(xp):
    return Race(xp)


READERS = {
    "array": lambda maker, made: asdlpack(column(maker, made)),
    "stream": lambda maker, made: asdlpack(DeviceChunks(maker.stream(maker.schema(b"f"), [made], device_type=CUDA))),
    "table": lambda maker, made: columns(
        DeviceChunks(
            maker.stream(
                maker.schema(b"+s", children=[maker.schema(b"f", b"x")]), [as_batch(maker, made)], device_type=CUDA
            )
        )
    )["x"],
}


def as_batch(maker, made):
    """The column as the only one of a batch, with its event."""
    inner = maker.array(made.array.length, (None, None))
    inner.buffers[1] = made.array.buffers[1]
    release(made)
    return maker.on_device(maker.array(inner.length, (None,), children=[inner]), CUDA, 0, made.sync_event)


@pytest.mark.parametrize("ordered", [True, False], ids=["event", "none"])
@pytest.mark.parametrize("reader", READERS)
def test_the_event_of_a_producer_is_waited_for_on_the_device(maker, race, reader, ordered):
    with race.filled(ordered=ordered) as event:
        made = placed(maker, race.pointer, SIZE, event if ordered else None)
        tensor = asdlpack(READERS[reader](maker, made), stream=race.consumer.ptr)
        race.take(tensor.data_ptr)


def test_a_copy_to_the_host_is_behind_the_event(maker, race):
    with Gate(limit_s=20) as gate:
        gate.hold(race.producer.ptr)
        race.copy(race.pointer, gpu.cai_pointer(race.new), race.producer)
        event = race.xp.cuda.Event(disable_timing=True)
        event.record(race.producer)
        gate.open_within(0.05)  # the host waits by design
        host = asdlpack(column(maker, placed(maker, race.pointer, SIZE, event)), device="cpu")
        assert not gate.is_closed()
    assert np.unique(np.asarray(host)).tolist() == [7]


# --- what is given ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def exported(array):
    """The structs as a consumer has them that has taken them over, and has to release."""
    first, second = asdlpack(array).__arrow_c_device_array__()
    schema, taken = move(struct_of(first, Schema)), move(struct_of(second, DeviceArray))
    yield schema, taken
    release(taken)
    release(schema)


@pytest.mark.parametrize("shape", [(SIZE,), (100, 50), (10, 20, 25)], ids=str)
def test_an_export_is_the_memory_with_its_device(xp, shape):
    x = counted(xp).reshape(shape)
    with exported(x) as (schema, taken):
        values = taken.array if len(shape) == 1 else taken.array.children[0].contents
        assert (taken.device_type, taken.device_id, taken.array.length) == (CUDA, 0, shape[0])
        assert schema.format == (b"f" if len(shape) == 1 else b"+w:%d" % (SIZE // shape[0]))
        assert (values.buffers[0], values.buffers[1]) == (None, gpu.cai_pointer(x))


@pytest.mark.parametrize("ordered", [True, False], ids=["event", "none"])
def test_an_export_has_an_event_that_happens_when_the_data_is_ready(race, ordered):
    entries = {"shape": (SIZE,), "typestr": "<f4", "data": (race.pointer, False), "version": 3}
    with race.filled(ordered=ordered):
        entries["stream"] = race.producer.ptr
        with exported(types.SimpleNamespace(__cuda_array_interface__=entries)) as (_, taken):
            assert taken.sync_event
            if ordered:
                event = ctypes.c_void_p.from_address(taken.sync_event)
                driver("cuStreamWaitEvent", handle(race.consumer), event, ctypes.c_uint(0))
            race.take(taken.array.buffers[1])


def test_an_export_keeps_the_memory_until_it_is_released(xp):
    x = counted(xp)
    pointer, wanted = gpu.cai_pointer(x), x.get()
    with exported(x) as (_, taken):
        del x
        others = [counted(xp, size=SIZE) * 0 for _ in range(4)]  # would get the memory if it were free
        assert pointer not in [gpu.cai_pointer(other) for other in others]
        raw = {"shape": (SIZE,), "typestr": "<f4", "data": (taken.array.buffers[1], True), "version": 3}
        seen = gpu.to_host(types.SimpleNamespace(__cuda_array_interface__=raw))
        np.testing.assert_array_equal(seen, wanted)


def test_an_export_comes_back_as_it_went(maker, xp):
    x = counted(xp).reshape(10, 500)
    back = asdlpack(Given(*asdlpack(x).__arrow_c_device_array__()))
    assert (back.shape, back.data_ptr, back.readonly) == (x.shape, gpu.cai_pointer(x), True)
    again = asdlpack(OnDevice(maker, maker.schema(b"f"), maker.array(0, (None, None)), CUDA))
    assert (again.shape, str(again.device)) == ((0,), "cuda:0")
