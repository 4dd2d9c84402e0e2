"""__array_struct__, and both array interfaces of a tensor."""

import ctypes as ct
import gc
import struct

import pytest
from array_interface_support import FLOATS, base, floats, read
from dlbridge import asdlpack
from dlbridge.tests.conformance._abi import new_capsule
from provoke import BFLOAT16, Managed, StructProducer, struct_behind

# --- the struct -------------------------------------------------------------------------------------------------------


def test_the_struct_and_its_capsule_are_held():
    source = StructProducer()
    tensor = asdlpack(source)
    assert tensor.protocol == "array_interface"
    assert tensor.owner is source
    gc.collect()
    assert source.destroyed == 0
    assert floats(tensor) == [0, 1, 2]
    assert not tensor.readonly
    del tensor
    assert source.destroyed == 1


@pytest.mark.parametrize(
    ("fields", "error", "match"),
    [
        ({"two": 3}, ValueError, "field 'two' is 3, not 2"),
        ({"itemsize": 0}, ValueError, "itemsize is 0"),
        ({"itemsize": -4}, ValueError, "itemsize is -4"),
        ({"nd": -1}, ValueError, "ndim is -1"),
        ({"nd": 65}, ValueError, "ndim is 65"),
        ({"null_shape": True}, ValueError, "shape is null"),
        ({"shape": (-3,)}, ValueError, "negative"),
        ({"data": None}, ValueError, "data pointer is null"),
        ({"flags": 0x501}, BufferError, "opposite byte order"),
        ({"typekind": b"O"}, BufferError, "no dtype"),
        ({"typekind": b"?"}, ValueError, "kind"),
        ({"typekind": b"V", "flags": 0xF01}, BufferError, "structured"),
        ({"strides": (5,)}, BufferError, "not a multiple of the itemsize"),
        ({"shape": (2**61,)}, OverflowError, "63 bits"),
        ({"name": b"array_struct"}, TypeError, "not a capsule with the name NULL"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_bad_struct_is_refused(fields, error, match):
    """And its capsule dies."""
    source = StructProducer(**fields)
    with pytest.raises(error, match=match):
        asdlpack(source)
    assert source.destroyed == 1


def test_writeable_and_byte_order_come_from_the_flags():
    """0x400 and 0x200; a byte has no order."""
    assert asdlpack(StructProducer(flags=0x301)).readonly
    assert asdlpack(StructProducer(flags=0x501, typekind=b"u", itemsize=1, strides=(1,))).dtype == "uint8"


def test_a_descr_without_its_flag_is_not_looked_at():
    """0x800 says that the pointer is valid; here it is poison."""
    assert floats(asdlpack(StructProducer(descr=1))) == [0, 1, 2]


def test_null_strides_are_c_order():
    source = StructProducer(shape=(2, 3), strides=())
    source.struct.strides = None
    assert asdlpack(source).strides == (12, 4)


@pytest.mark.parametrize("value", [None, 42, new_capsule(1, b"named")], ids=["None", "int", "named"])
def test_anything_but_a_nameless_capsule_is_a_type_error(value):

    class Bad:
        __array_struct__ = value

    with pytest.raises(TypeError, match="not a capsule with the name NULL"):
        asdlpack(Bad())


def test_a_refused_struct_leaves_the_dictionary_to_be_tried():
    """Two forms of one protocol."""

    class Both(StructProducer):
        @property
        def __array_interface__(self):
            return base()

    assert floats(asdlpack(Both(two=7))) == [0, 1, 2, 3, 4, 5]


# --- exporting --------------------------------------------------------------------------------------------------------


def test_the_dictionary_of_a_tensor():
    tensor = asdlpack(bytearray(b"abc"))
    assert tensor.__array_interface__ == {
        "shape": (3,),
        "typestr": "|u1",
        "data": (tensor.data_ptr, False),
        "strides": None,
        "version": 3,
    }
    assert asdlpack(b"abc").__array_interface__["data"][1] is True


def test_strides_are_given_where_they_are_not_c_order():
    tensor = read(shape=(3,), strides=(8,))
    assert tensor.__array_interface__["strides"] == (8,)


def test_the_struct_of_a_tensor():
    """The struct of an export is what NumPy's would be."""
    tensor = read(shape=(2, 3))
    capsule = tensor.__array_struct__
    array = struct_behind(capsule)
    assert (array.two, array.nd, array.typekind, array.itemsize, array.flags) == (2, 2, b"f", 4, 0x701)
    assert (array.shape[:2], array.strides[:2], array.data) == ([2, 3], [12, 4], tensor.data_ptr)
    read_only = asdlpack(b"abc").__array_struct__
    assert struct_behind(read_only).flags == 0x303  # one axis: C and F; aligned; native; not writeable
    del tensor
    gc.collect()
    assert struct.unpack("6f", ct.string_at(array.data, 24)) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("attribute", ["__array_interface__", "__array_struct__"])
def test_a_dtype_without_a_typestr_has_no_array_interface(attribute):
    """AttributeError, so that hasattr() says so and consumers go on to DLPack."""
    managed = Managed(dtype=BFLOAT16)
    tensor = asdlpack(managed.capsule())
    assert not hasattr(tensor, attribute)
    with pytest.raises(AttributeError, match="bfloat16 has no typestr.*DLPack"):
        getattr(tensor, attribute)


def test_numpy_reads_the_dictionary_and_the_struct():
    np = pytest.importorskip("numpy", reason="NumPy is the consumer")
    tensor = read(data=bytearray(FLOATS), shape=(2, 3))

    class OnlyDict:
        __array_interface__ = tensor.__array_interface__

    class OnlyStruct:
        __array_struct__ = tensor.__array_struct__

    for consumer in (OnlyDict, OnlyStruct):
        array = np.asarray(consumer())
        assert array.ctypes.data == tensor.data_ptr
        assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_numpy_struct_goes_around_a_loop():
    np = pytest.importorskip("numpy", reason="NumPy is the producer")
    source = np.arange(24, dtype=np.int16).reshape(2, 3, 4)[:, ::-1, ::2]

    class OnlyStruct:
        __array_struct__ = source.__array_struct__

    tensor = asdlpack(OnlyStruct())
    assert (tensor.data_ptr, tensor.strides) == (source.ctypes.data, source.strides)
    assert np.array_equal(np.asarray(tensor), source)
