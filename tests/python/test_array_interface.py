"""__array_interface__: reading the dictionary."""

import ctypes as ct
import gc
import struct

import pytest
import stable_ids
from array_interface_support import FLOATS, Dict, base, floats, read
from dlbridge import DataError, ExchangeError, _core, asdlpack, nd


class DictWithBuffer(bytearray):
    """Its own buffer is what `data` None refers to."""

    interface: dict

    @property
    def __array_interface__(self):
        return self.interface


# --- the dictionary ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3, 4, 99])
def test_future_versions_are_not_rejected(version):
    assert floats(read(version=version)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("version", [0, 1, -3])
def test_old_versions_are(version):
    """Version 1 had other keys."""
    with pytest.raises(DataError, match=f"'version' is {version}; version 2 and later can be read"):
        read(version=version)


@pytest.mark.parametrize("key", ["shape", "typestr", "version"])
def test_a_missing_key_is_named(key):
    with pytest.raises(DataError, match=f"__array_interface__: '{key}' is missing"):
        read(**{key: ...})


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"shape": 6}, TypeError, "'shape' is int"),
        ({"shape": ("6",)}, TypeError, "'shape' is str"),
        ({"shape": (6.0,)}, TypeError, "'shape' is float"),
        ({"shape": (-1,)}, ValueError, "extents must not be negative"),
        ({"shape": (2**64,)}, OverflowError, "does not fit in 64 bits"),
        ({"shape": (2**61,)}, OverflowError, "does not fit in 63 bits"),
        ({"shape": (1,) * 65}, ValueError, "at most 64 dimensions"),
        ({"strides": 4}, TypeError, "'strides' is int"),
        ({"strides": (4, 4)}, ValueError, "'strides' has 2 entries and 'shape' 1"),
        ({"strides": (2**62,)}, OverflowError, "does not fit in 63 bits"),
        ({"typestr": 4}, ValueError, "'typestr' is missing or not a str"),
        ({"typestr": "f4"}, ValueError, "typestr 'f4'"),
        ({"typestr": "<z4"}, ValueError, "typestr '<z4'"),
        ({"typestr": "<f"}, ValueError, "typestr '<f'"),
        ({"typestr": "<f99999999999999999999"}, ValueError, "typestr"),
        ({"version": "3"}, ValueError, "'version' is missing or not an integer"),
        ({"data": 5}, TypeError, "'data' is int"),
        ({"data": (1, 2, 3)}, TypeError, "'data' is tuple"),
        ({"data": ("1", False)}, TypeError, "'data.0.' is str"),
        ({"data": (-4, False)}, ValueError, "negative or wider"),
        ({"data": (2**64, False)}, ValueError, "negative or wider"),
        ({"data": (True, False)}, TypeError, "'data.0.' is bool"),
        ({"data": (0, False)}, ValueError, "data pointer is null"),
        ({"data": (2, False)}, BufferError, "aligned to 4 bytes"),
        ({"offset": -4}, ValueError, "'offset' is -4"),
        ({"offset": 100}, ValueError, "behind the end"),
        ({"offset": "4"}, TypeError, "'offset' is str; it must be an integer"),
        ({"offset": 2**70}, OverflowError, "'offset' does not fit in 64 bits"),
        ({"offset": 4}, ValueError, "the memory has 24 bytes"),
        ({"shape": (7,)}, ValueError, "the memory has 24 bytes"),
        ({"strides": (-4,)}, ValueError, "from byte -20"),
        ({"data": memoryview(bytes(48))[::2]}, BufferError, "not contiguous"),
    ],
    ids=stable_ids.of_field,
)
def test_a_bad_dictionary_names_the_field(changes, error, match):
    """As the CUDA Array Interface does."""
    with pytest.raises(error, match=match):
        read(**changes)


def test_anything_but_a_dict_is_a_type_error():
    class NoDict:
        __array_interface__ = (1, 2)

    with pytest.raises(TypeError, match="__array_interface__: it is tuple, not a dict"):
        asdlpack(NoDict())


def test_a_property_that_raises_keeps_its_error():
    class Raises:
        @property
        def __array_interface__(self):
            raise RuntimeError("from the property")

    with pytest.raises(RuntimeError, match="from the property"):
        asdlpack(Raises())


# --- the four kinds of data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("readonly", [False, True])
def test_a_data_tuple_ignores_the_offset(readonly):
    memory = (ct.c_float * 6)(*range(6))
    source = Dict(**base(data=(ct.addressof(memory), readonly), offset=8))
    source.keep = memory
    tensor = asdlpack(source)
    assert tensor.data_ptr == ct.addressof(memory)
    assert tensor.readonly == readonly
    assert tensor.owner is source


@pytest.mark.parametrize(("kind", "readonly"), [(bytes, True), (bytearray, False), (memoryview, True)], ids=str)
def test_a_data_buffer_is_held_and_offset(kind, readonly):
    """Read-only as the buffer is."""
    tensor = read(data=kind(FLOATS), offset=8, shape=(4,))
    assert floats(tensor) == [2, 3, 4, 5]
    assert tensor.readonly == readonly


@pytest.mark.parametrize("data", [None, ...], ids=["None", "absent"])
@pytest.mark.parametrize(("offset", "shape"), [(0, (6,)), (4, (5,)), (24, (0,))], ids=str)
def test_data_none_is_the_buffer_of_the_object_itself(offset, shape, data):
    source = DictWithBuffer(FLOATS)
    source.interface = base(data=data, offset=offset, shape=shape)
    tensor = asdlpack(source, protocol="array_interface")
    assert floats(tensor) == list(range(offset // 4, 6))
    with pytest.raises(BufferError):
        source.extend(b"x")  # locked while the tensor lives
    del tensor
    source.extend(b"x")


@pytest.mark.parametrize("data", [None, ...], ids=["None", "absent"])
def test_data_none_or_absent_without_a_buffer_is_a_type_error(data):
    with pytest.raises(TypeError, match="the object's own buffer, and .*Dict has none"):
        read(data=data)


def test_fresh_bytes_at_every_access_are_held():
    """Pillow makes them so, and nobody else keeps them."""

    class Image:
        accesses = 0

        @property
        def __array_interface__(self):
            type(self).accesses += 1
            return base(data=struct.pack("6f", *range(6)))

    tensor = asdlpack(Image())
    gc.collect()
    garbage = [bytes([255]) * 24 for _ in range(100)]
    assert floats(tensor) == [0, 1, 2, 3, 4, 5]
    assert Image.accesses == 1
    del garbage


def test_a_mapped_buffer_cannot_be_closed_under_the_tensor():
    """The Py_buffer is held."""
    view = memoryview(bytearray(FLOATS))
    tensor = read(data=view)
    with pytest.raises(BufferError):
        view.release()
    del tensor
    view.release()


def test_pillow_is_read():
    pil = pytest.importorskip("PIL.Image", reason="Pillow makes the image")
    image = pil.new("RGB", (3, 2), (1, 2, 3))
    tensor = asdlpack(image, protocol="array_interface")
    assert (tensor.shape, tensor.dtype) == ((2, 3, 3), "uint8")
    assert floats(tensor) == [[[1, 2, 3]] * 3] * 2


# --- dtype, strides, mask, descr --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [r for r in _core.dtypes() if r["typestr"]], ids=lambda row: row["name"])
@pytest.mark.parametrize("order", ["<", "=", "|"])
def test_every_typestr_is_read_and_written(row, order):
    """`|` means no byte order, yet wider numbers carry it in the wild."""
    memory = (ct.c_double * 6)()
    tensor = read(data=(ct.addressof(memory), False), typestr=order + row["typestr"][1:], shape=(3,))
    assert (tensor.dtype, tensor.itemsize) == (row["name"], row["itemsize"])
    assert tensor.__array_interface__["typestr"] == row["typestr"]


@pytest.mark.parametrize("typestr", [">u1", ">i1", ">b1"])
def test_one_byte_has_no_order(typestr):
    assert read(typestr=typestr, data=bytes(6)).itemsize == 1


@pytest.mark.parametrize("typestr", [">f4", ">i2", ">c8", ">u8"])
def test_the_other_byte_order_is_refused(typestr):
    """pydlpack reads [1, 2, 3] as [16777216, ...]."""
    with pytest.raises(ExchangeError, match=f"typestr '{typestr}' is in the opposite byte order.*newbyteorder"):
        read(typestr=typestr, shape=(1,))


@pytest.mark.parametrize(
    "typestr", ["<f16", "<c32", "<M8[ns]", "<m8[us]", "<M8", "|O8", "|S4", "<U4", "|t3", "<i16", "<f1", "<V2", "|V1"]
)
def test_what_dlpack_cannot_carry_is_refused_by_name(typestr):
    """`<f1`, `<V1` and `<V2` are what ml_dtypes gives; they are ambiguous."""
    with pytest.raises(ExchangeError, match=r"typestr '" + typestr.replace("[", r"\[")):
        read(typestr=typestr, shape=(1,))


@pytest.mark.parametrize("descr", [[("", "<f4")], [("x", "<f4")], None], ids=str)
def test_descr_says_nothing_about_a_plain_typestr(descr):
    """It matters for `V` only."""
    assert floats(read(descr=descr)) == [0, 1, 2, 3, 4, 5]


def test_structured_data_is_refused():
    """`V` with a descr."""
    with pytest.raises(ExchangeError, match="raw or structured"):
        read(typestr="|V8", descr=[("x", "<f4"), ("y", "<f4")], shape=(3,))


@pytest.mark.parametrize("strides", [None, ..., (4,)], ids=["None", "absent", "given"])
def test_absent_strides_are_c_order(strides):
    """As on a GPU."""
    assert read(strides=strides).strides == (4,)


def test_byte_strides_not_divisible_by_itemsize_are_refused():
    """pydlpack makes 1 of a 5-byte stride."""
    with pytest.raises(ExchangeError, match="stride of axis 0 is 5 bytes, not a multiple of the itemsize 4"):
        read(shape=(3,), strides=(5,))


def test_they_are_ignored_on_axes_of_extent_one():
    assert floats(read(shape=(1, 3), strides=(5, 4))) == [[0, 1, 2]]


@pytest.mark.parametrize("shape", [(1,), (2, 3), ()], ids=str)
def test_a_mask_is_refused(shape):
    with pytest.raises(ExchangeError, match="'mask' is set.*Fill the masked elements"):
        read(shape=shape, mask=object())


def test_a_mask_of_none_is_none():
    assert floats(read(mask=None)) == [0, 1, 2, 3, 4, 5]


def test_bool_bytes_are_checked_and_normalised():
    """Pillow's mode "1" holds 0 and 255."""
    with pytest.raises(ExchangeError, match="bytes other than 0 and 1.*copy=True"):
        read(typestr="|b1", data=bytes([0, 255, 1]), shape=(3,))
    copy = asdlpack(Dict(**base(typestr="|b1", data=bytes([0, 255, 1]), shape=(3,))), copy=True)
    assert bytes(memoryview(copy).cast("B")) == b"\x00\x01\x01"
    assert floats(read(typestr="|b1", data=bytes([0, 1, 1]), shape=(3,))) == [False, True, True]


def test_pillow_mode_1():
    pil = pytest.importorskip("PIL.Image", reason="Pillow makes the image")
    image = pil.new("1", (3, 1), 1)
    with pytest.raises(ExchangeError, match="bytes other than 0 and 1"):
        asdlpack(image, protocol="array_interface")
    assert floats(asdlpack(image, copy=True)) == [[True, True, True]]


def test_an_empty_array_may_have_a_null_address():
    tensor = read(data=(0, False), shape=(0, 3))
    assert (tensor.shape, tensor.data_ptr) == ((0, 3), 0)


def test_numpy_takes_the_dictionary_of_an_empty_tensor_alone():
    np = pytest.importorskip("numpy")

    class Alone:
        __array_interface__ = nd.empty((0, 3), "float32", device="cpu").__array_interface__

    taken = np.asarray(Alone())
    assert taken.shape == (0, 3) and taken.dtype == "float32" and asdlpack(Alone()).shape == (0, 3)


def test_a_subclass_of_dict_and_a_list_shape_are_taken():
    class MyDict(dict):
        pass

    source = Dict()
    source.interface = MyDict(base(shape=[6]))
    assert floats(asdlpack(source)) == [0, 1, 2, 3, 4, 5]
