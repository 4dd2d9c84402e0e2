"""Objects whose own code changes what is being read: nothing is read after it was freed, and errors pass through.

Each of these takes apart the container that it lies in, from a method that the readers call. A reader that kept a
borrowed reference would read freed memory: run with -fsanitize=address to see it surely.
"""

import gc
import struct

import pytest
from dlbridge import _core, asdlpack, convert

FLOATS = struct.pack("6f", *range(6))


class Number:
    """An integer that runs `action` when its value is asked for."""

    def __init__(self, value, action=lambda: None):
        self.value = value
        self.action = action

    def __index__(self):
        self.action()
        return self.value

    __int__ = __index__


class Raiser:
    """An integer whose value cannot be had."""

    def __init__(self, error):
        self.error = error

    def __index__(self):
        raise self.error


class Dict:
    """An object whose __array_interface__ is the given dictionary."""

    def __init__(self, **interface):
        self.interface = {"typestr": "<f4", "version": 3, "data": bytearray(FLOATS)} | interface

    @property
    def __array_interface__(self):
        return self.interface


class CudaDict:
    """An object whose __cuda_array_interface__ is the given dictionary; nothing of it needs a driver."""

    def __init__(self, **interface):
        self.interface = {"shape": (0,), "typestr": "<f4", "version": 3, "data": (0, False)} | interface

    @property
    def __cuda_array_interface__(self):
        return self.interface


class Device:
    """A DLPack producer that runs `action` where its device is asked for."""

    def __init__(self, action):
        self.action = action

    def __dlpack__(self, **_):
        return asdlpack(bytearray(FLOATS)).__dlpack__(max_version=(1, 0))

    def __dlpack_device__(self):
        return self.action()


def raises(error):
    def action(*_):
        raise error

    return action


@pytest.fixture(params=[KeyboardInterrupt, MemoryError, ZeroDivisionError, TypeError, AttributeError])
def error(request):
    """What user code may raise anywhere; no reader has a reason to replace it."""
    made = request.param("from user code")
    yield made
    made.__traceback__ = None  # it keeps the locals of the test


def assert_passes_through(error, call):
    with pytest.raises(type(error)) as caught:
        call()
    assert caught.value is error


# --- extents and strides ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["shape", "strides"])
def test_an_extent_may_clear_the_list_that_it_lies_in(key):
    values = []
    values[:] = [Number(3, values.clear), Number(2)] if key == "shape" else [Number(8, values.clear), Number(4)]
    source = Dict(**({"shape": (3, 2)} | {key: values}))
    assert asdlpack(source).shape == (3, 2)
    assert values == []


def test_an_extent_may_drop_the_tuple_that_it_lies_in():
    source = Dict()
    source.interface["shape"] = (Number(3, lambda: (source.interface.clear(), gc.collect())), Number(2), 1)
    with pytest.raises(TypeError, match="'data' is missing"):
        asdlpack(source)


@pytest.mark.parametrize("key", ["shape", "strides", "offset"])
def test_what_an_integer_raises_passes_through(key, error):
    value = Raiser(error) if key == "offset" else (Raiser(error),)
    assert_passes_through(error, lambda: asdlpack(Dict(**({"shape": (6,)} | {key: value}))))


# --- the dictionaries -------------------------------------------------------------------------------------------------


class Flag:
    """A truth value that runs `action` when it is asked for."""

    def __init__(self, action, truth=True):
        self.action = action
        self.truth = truth

    def __bool__(self):
        self.action()
        return self.truth


class Text(str):
    """A string of its own, which only the dictionary holds."""


@pytest.mark.parametrize("key", ["shape", "strides", "address", "read only"])
def test_a_value_may_empty_the_dictionary_that_it_comes_from(key):
    store = bytearray(FLOATS)
    address = asdlpack(store).data_ptr
    source, again = Dict(), []

    def empty():
        source.interface.clear()
        gc.collect()
        again.extend((name, object()) for name in range(100))  # tuples that take the place of those that were freed

    def value(of, number):
        return Number(number, empty if of == key else lambda: None)

    source.interface.update(
        typestr=Text("<f4"),
        shape=[value("shape", 3)],
        strides=[value("strides", 4)],
        data=(value("address", address), Flag(empty if key == "read only" else lambda: None, truth=False)),
    )
    if key in ("shape", "strides"):  # what is asked for afterwards is gone
        with pytest.raises(TypeError, match="'data' is missing"):
            asdlpack(source)
    else:
        tensor = asdlpack(source)
        assert (tensor.data_ptr, tensor.readonly) == (address, False)
    assert source.interface == {}


def test_a_stream_may_empty_the_dictionary_that_it_comes_from():
    source = CudaDict()
    source.interface["stream"] = Number(8, lambda: (source.interface.clear(), gc.collect()))
    with pytest.raises(ValueError, match="stream 8 is not a CUDA stream"):
        asdlpack(source)


@pytest.mark.parametrize("fields", ["address", "flag", "stream"])
def test_what_a_value_raises_passes_through(fields, error):
    broken = {
        "address": lambda: Dict(shape=(6,), data=(Raiser(error), False)),
        "flag": lambda: Dict(shape=(6,), data=(64, Flag(raises(error)))),
        "stream": lambda: CudaDict(stream=Raiser(error)),
    }[fields]()
    assert_passes_through(error, lambda: asdlpack(broken))


@pytest.mark.parametrize("value", [None, ...], ids=["None", "absent"])
@pytest.mark.parametrize("key", ["strides", "mask", "stream"])
def test_none_is_absence_for_optional_keys(key, value):
    interface = CudaDict()
    if value is None:
        interface.interface[key] = None
    assert asdlpack(interface).shape == (0,)


# --- devices and streams ----------------------------------------------------------------------------------------------


def test_what_a_device_raises_passes_through(error):
    assert_passes_through(error, lambda: asdlpack(Device(raises(error))))
    assert_passes_through(error, lambda: asdlpack(Device(lambda: (Raiser(error), 0))))
    assert_passes_through(error, lambda: asdlpack(Device(lambda: (1, Raiser(error)))))
    tensor = asdlpack(bytearray(8))
    assert_passes_through(error, lambda: tensor.__dlpack__(dl_device=(Raiser(error), 0)))
    assert_passes_through(error, lambda: tensor.__dlpack__(copy=Flag(raises(error))))
    assert_passes_through(error, lambda: asdlpack(tensor, device=(1, Raiser(error))))
    assert_passes_through(error, lambda: asdlpack(tensor, copy=Flag(raises(error))))


def test_no_device_method_means_the_host():
    class Plain:
        def __dlpack__(self, **_):
            return asdlpack(bytearray(FLOATS)).__dlpack__(max_version=(1, 0))

    assert asdlpack(Plain()).device == "cpu"


def test_a_device_that_names_other_things_than_integers_is_a_type_error():
    for pair in [("1", 0), (1, 0.0), (2**40, 0), (2**80, 0), (1,), [1, 0]]:
        with pytest.raises(TypeError, match=r"__dlpack_device__\(\) is not a pair of integers"):
            asdlpack(Device(lambda pair=pair: pair))


class Stream:
    def __init__(self, pair):
        self.pair = pair

    def __cuda_stream__(self):
        return self.pair() if callable(self.pair) else self.pair


def test_what_a_stream_raises_passes_through(error):
    tensor = asdlpack(bytearray(8))
    for stream in (Stream(raises(error)), Stream((0, Raiser(error)))):
        assert_passes_through(error, lambda stream=stream: tensor.__dlpack__(stream=stream))
        assert_passes_through(error, lambda stream=stream: asdlpack(tensor, stream=stream))


def test_a_stream_may_drop_the_pair_that_it_lies_in():
    stream = Stream(None)
    stream.pair = (0, Number(8, lambda: (setattr(stream, "pair", None), gc.collect())))
    with pytest.raises(BufferError, match="where there are no streams"):
        asdlpack(bytearray(8)).__dlpack__(stream=stream)


# --- the types of objects ---------------------------------------------------------------------------------------------


def test_types_found_out_inside_one_another_keep_their_own_route():
    """What a type is, is remembered in a small table: another of the same place is found out while one is."""
    tensors, read = [asdlpack(bytearray(3))], []  # emptied in the end: the table keeps types

    class Meta(type):
        def __getattribute__(cls, name):
            if name == "__dlpack__":
                read.append(asdlpack(tensors[0]))
            return super().__getattribute__(name)

    kept = []
    for _ in range(2000):  # enough that one of them has the tensor type's place
        kept.append(Meta("Outer", (bytearray,), {"__slots__": ()}))
        assert asdlpack(kept[-1](b"abc")).protocol == "buffer"
        assert asdlpack(tensors[0]) is tensors[0]
    assert all(found is tensors[0] for found in read)
    tensors.clear()
    read.clear()


def test_a_collection_during_a_read_may_read_other_types():
    """Making the tensor may start the garbage collector, and that finalisers that read arrays of other types."""
    numpy = pytest.importorskip("numpy", reason="needs two kinds of arrays")
    others = [type("Bytes", (bytearray,), {"__slots__": ()})(8) for _ in range(1500)]

    class Cycle:
        def __init__(self):
            self.self = self

        def __del__(self):
            for other in others:
                asdlpack(other)

    class Fresh(numpy.ndarray):
        __slots__ = ()

    values = [numpy.zeros(4).view(Fresh) for _ in range(400)]
    threshold = gc.get_threshold()
    kept = []
    asdlpack(values[0])
    gc.disable()
    gc.set_threshold(1, 1000, 1000)
    try:
        for k, value in enumerate(values):
            if k % 20 == 0:
                Cycle()
                gc.enable()
            kept.append(asdlpack(value))
            gc.disable()
    finally:
        gc.enable()
        gc.set_threshold(*threshold)
    assert {tensor.protocol for tensor in kept} == {"array_interface"}


def test_metaclasses_and_modules_are_not_asked(monkeypatch, error):
    """What a type is, is found out without running code: its errors could go nowhere."""
    import sys

    class Meta(type):
        def __getattribute__(cls, name):
            if name.startswith(("__dlpack", "__array")):
                raise error
            return super().__getattribute__(name)

    class Bytes(bytearray, metaclass=Meta):
        __slots__ = ()

    assert asdlpack(Bytes(b"abc")).size == 3

    class Module:
        def __getattr__(self, name):
            raise error

    monkeypatch.setitem(sys.modules, "cupy", Module())

    class New(bytearray):
        pass

    assert asdlpack(New(b"abc")).size == 3


# --- what Python code parses ------------------------------------------------------------------------------------------


def test_what_a_shape_raises_passes_through_a_view_under_another_description(error):
    tensor = asdlpack(bytearray(8))
    assert_passes_through(error, lambda: _core.reinterpret(tensor, shape=(Raiser(error),)))
    values = []
    values[:] = [Number(2, values.clear), Number(4)]
    assert _core.reinterpret(tensor, shape=values).shape == (2, 4)


def test_what_a_producer_raises_passes_through_convert(error):
    source = Device(raises(error))
    assert_passes_through(error, lambda: convert(source, "buffer"))
