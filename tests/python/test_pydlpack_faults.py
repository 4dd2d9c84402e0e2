"""What pydlpack 0.2.1 gets wrong, one test a fault: the same objects through dlbridge."""

import ctypes
import gc
import mmap
import struct

import pytest
from dlbridge import _core, asdlpack
from lifecycle_support import CPU, CUDA_HOST, Consumed, Exporter, nothing_lost


@pytest.fixture(autouse=True)
def _leak_check():
    with nothing_lost():
        yield


class Interface:
    """An object with __array_interface__ alone; `fields` replace entries."""

    def __init__(self, memory, shape, typestr="<i4", **fields):
        self.memory = memory
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        entries = {"shape": shape, "typestr": typestr, "version": 3, "data": (address, False)}
        self.__array_interface__ = entries | fields


def flags_of(tensor):
    return _core.peek_capsule(tensor.__dlpack__(max_version=(1, 0)))["flags"]


@pytest.mark.parametrize("form", ["array_interface", "buffer", "numpy"])
def test_big_endian_data_is_refused_not_misread(form):
    # pydlpack: [1, 2, 3] becomes [16777216, 33554432, 50331648]
    memory = bytearray(struct.pack(">3i", 1, 2, 3))
    if form == "array_interface":
        obj = Interface(memory, (3,), ">i4")
    elif form == "buffer":
        obj = (ctypes.c_int32.__ctype_be__ * 3).from_buffer(memory)
    else:
        obj = pytest.importorskip("numpy", reason="this form is NumPy's").frombuffer(memory, ">i4")
    with pytest.raises(BufferError, match="byte order"):
        asdlpack(obj)
    assert memoryview(asdlpack(obj, copy=True)).tolist() == [1, 2, 3]


def test_big_endian_bytes_have_no_order():
    assert str(asdlpack(Interface(bytearray(3), (3,), ">u1")).dtype) == "uint8"


@pytest.mark.parametrize("stride", [5, 6, 7, -5, 2])
def test_a_stride_that_is_no_multiple_of_the_itemsize_is_refused_not_floored(stride):
    # pydlpack: a 5-byte stride of 4-byte items becomes 1 element
    obj = Interface(bytearray(64), (2,), strides=(stride,))
    with pytest.raises(BufferError, match=f"{stride} bytes, not a multiple of the itemsize 4"):
        asdlpack(obj)


def test_such_a_stride_is_ignored_where_it_is_never_used():
    assert asdlpack(Interface(bytearray(64), (1, 4), strides=(5, 4))).strides == (16, 4)
    assert asdlpack(Interface(bytearray(64), (0, 4), strides=(5, 4))).shape == (0, 4)


def test_numpy_fields_of_records_are_refused_not_floored():
    numpy = pytest.importorskip("numpy", reason="records are NumPy's")
    records = numpy.zeros(3, dtype=[("number", "i4"), ("flag", "u1")])
    for refused in (records["number"], records):
        with pytest.raises(BufferError):
            asdlpack(refused)
    assert asdlpack(records["flag"]).strides == (5,)


@pytest.mark.parametrize("obj", [b"abcd", memoryview(b"abcd"), memoryview(bytearray(4)).toreadonly()], ids=type)
def test_read_only_memory_is_marked_read_only(obj):
    # pydlpack: bytes leave as a capsule that says nothing, and consumers write into them
    tensor = asdlpack(obj)
    assert tensor.readonly
    assert flags_of(tensor) & 1
    assert memoryview(tensor).readonly
    assert tensor.__array_interface__["data"][1] is True
    for max_version in (None, (0, 8)):
        with pytest.raises(BufferError, match="read-only"):
            tensor.__dlpack__(max_version=max_version)


def test_a_read_only_interface_is_marked_read_only():
    memory = bytearray(8)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    tensor = asdlpack(Interface(memory, (2,), data=(address, True)))
    assert tensor.readonly
    assert flags_of(tensor) & 1


def test_writable_memory_is_not_marked():
    assert flags_of(asdlpack(bytearray(4))) == 0


@pytest.mark.parametrize("device", [(CPU, 3), (CUDA_HOST, 2)], ids=["cpu", "pinned"])
def test_device_ids_are_the_memorys_own(device):
    # pydlpack: always 0. On the host 0 is right and anything else is not; for CUDA see test_cuda_fake.py:
    # test_the_device_comes_from_the_pointer.
    tensor = asdlpack(Exporter(device=device))
    assert tensor.__dlpack_device__() == (device[0], 0)


def test_a_device_that_is_not_the_hosts_keeps_its_id():
    metal = asdlpack(Exporter(device=(8, 3)))
    assert metal.__dlpack_device__() == (8, 3)
    assert str(metal.device).endswith(":3")


@pytest.mark.parametrize("export", ["versioned", "legacy"])
def test_a_buffer_is_held_until_the_last_export_is_gone(export):
    # pydlpack: PyBuffer_Release runs before the capsule is even used
    data = bytearray(b"abcd")
    held = Consumed(asdlpack(data).__dlpack__(max_version=(1, 0) if export == "versioned" else None))
    gc.collect()
    with pytest.raises(BufferError):
        data.extend(b"more")
    assert ctypes.string_at(held.struct.dl_tensor.data, 4) == b"abcd"
    held.delete()
    data.extend(b"more")


def test_an_mmap_cannot_be_closed_under_an_export():
    # pydlpack's own test closes it, and would read unmapped memory
    memory = mmap.mmap(-1, 4096)
    memory[:4] = b"abcd"
    held = Consumed(asdlpack(memory).__dlpack__(max_version=(1, 0)))
    with pytest.raises(BufferError):
        memory.close()
    assert ctypes.string_at(held.struct.dl_tensor.data, 4) == b"abcd"
    held.delete()
    memory.close()


def test_fresh_bytes_behind_an_interface_are_held():
    class Fresh:  # as Pillow: `data` is made anew at each access, and nobody else keeps it
        @property
        def __array_interface__(self):
            return {"shape": (4,), "typestr": "|u1", "version": 3, "data": bytes([1, 2, 3]) + bytes([4])}

    tensor = asdlpack(Fresh())
    junk = [bytes([9] * 4) for _ in range(100)]
    assert memoryview(tensor).tolist() == [1, 2, 3, 4]
    assert tensor.readonly
    assert len(junk) == 100


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_the_source_capsule_may_die_while_its_memory_is_in_use(legacy):
    # pydlpack: the capsule's destructor frees the struct that the new capsule points into
    exporter = Exporter(legacy=legacy)
    capsule = exporter.capsule()
    tensor = asdlpack(capsule)
    del capsule
    gc.collect()
    assert exporter.deleted == []
    held = Consumed(tensor.__dlpack__(max_version=(1, 0)))
    del tensor
    assert exporter.deleted == []
    assert list((ctypes.c_int32 * 6).from_address(held.struct.dl_tensor.data)) == [0, 1, 2, 3, 4, 5]
    held.delete()
    exporter.assert_all_deleted_once()


def test_the_exported_struct_is_not_the_producers():
    exporter = Exporter()
    tensor = asdlpack(exporter)
    held = Consumed(tensor.__dlpack__(max_version=(1, 0)))
    assert held.address not in exporter._alive
    assert ctypes.addressof(held.struct.dl_tensor.shape.contents) != ctypes.addressof(
        exporter._alive[next(iter(exporter._alive))][1]
    )
    held.delete()


def test_masks_are_refused_not_ignored():
    mask = Interface(bytearray(4), (4,), "|b1")
    with pytest.raises(BufferError, match="mask"):
        asdlpack(Interface(bytearray(16), (4,), mask=mask))
    assert asdlpack(Interface(bytearray(16), (4,), mask=None)).shape == (4,)


def test_masked_numpy_arrays_are_refused_not_unmasked():
    numpy = pytest.importorskip("numpy", reason="masked arrays are NumPy's")
    with pytest.raises(BufferError, match="mask"):
        asdlpack(numpy.ma.array([1, 2, 3], mask=[False, True, False]))
    assert asdlpack(numpy.ma.array([1, 2, 3])).shape == (3,)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({}, "dltensor"), ({"max_version": (0, 8)}, "dltensor"), ({"max_version": (1, 0)}, "dltensor_versioned")],
    ids=["none", "0.8", "1.0"],
)
def test_versioned_capsules_are_made_where_they_are_asked_for(arguments, name):
    assert _core.peek_capsule(asdlpack(bytearray(4)).__dlpack__(**arguments))["name"] == name


def test_versioned_capsules_are_read():
    exporter = Exporter(legacy=False, flags=1)
    tensor = asdlpack(exporter)
    assert tensor.readonly
    assert exporter.calls == [{"max_version": (1, 3)}]


def test_a_struct_of_another_major_version_is_refused():
    exporter = Exporter(major=2)
    capsule = exporter.capsule()
    with pytest.raises(BufferError, match=r"2\.0.*1\.3"):
        asdlpack(capsule)
    exporter.assert_all_deleted_once()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"dl_device": (2, 0), "copy": False}, BufferError),
        ({"stream": 1}, BufferError),
        ({"dl_device": (99, 0)}, BufferError),
        ({"max_version": 1}, TypeError),
        ({"dl_device": "cpu"}, TypeError),
        ({"nothing": 1}, TypeError),
    ],
    ids=["dl_device without copy", "stream on the host", "unknown device", "max_version", "dl_device", "keyword"],
)
def test_arguments_are_obeyed_or_refused_not_ignored(arguments, error):
    with pytest.raises(error):
        asdlpack(bytearray(4)).__dlpack__(**arguments)


def test_copy_true_copies():
    data = bytearray(b"abcd")
    copied = Consumed(asdlpack(data).__dlpack__(copy=True, max_version=(1, 0)))
    data.extend(b"more")  # nothing holds it
    assert ctypes.string_at(copied.struct.dl_tensor.data, 4) == b"abcd"
    assert copied.struct.flags & 2
    copied.delete()


def test_assertions_do_not_check_input():
    # pydlpack checks with `assert`, which python -O removes
    from child_process import run_python

    code = """
import ctypes
from dlbridge import asdlpack
class Bad:
    __array_interface__ = {"shape": (2, -3), "typestr": "<i4", "version": 3, "data": (64, False)}
try:
    asdlpack(Bad())
except ValueError:
    print("refused")
"""
    assert run_python(code, PYTHONOPTIMIZE="2").stdout == "refused\n"
