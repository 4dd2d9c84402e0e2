"""Reading buffers: the exporters of the standard library, broken ones, and how long the view is held."""

import array
import ctypes as ct
import mmap

import pytest
from dlbridge import ExchangeError, asdlpack
from provoke import BufferExporter

# --- exporters of the standard library --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "readonly"),
    [(b"abc", True), (bytearray(b"abc"), False), (memoryview(b"abc"), True), (memoryview(bytearray(b"abc")), False)],
    ids=["bytes", "bytearray", "memoryview of bytes", "memoryview of bytearray"],
)
def test_read_only_is_taken_from_the_view(source, readonly):
    """No writable view is asked for, and `readonly` is kept to the end."""
    tensor = asdlpack(source)
    assert (tensor.shape, tensor.strides, tensor.dtype, tensor.protocol) == ((3,), (1,), "uint8", "buffer")
    assert tensor.readonly == readonly
    assert memoryview(tensor).readonly == readonly
    assert bytes(memoryview(tensor)) == b"abc"
    assert tensor.owner is source


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_array_array(code):
    source = array.array(code, [1, 2, 3])
    tensor = asdlpack(source)
    kind = "float" if code in "fd" else "int" if code.islower() else "uint"
    assert tensor.dtype == f"{kind}{8 * source.itemsize}"
    assert (tensor.data_ptr, tensor.size) == source.buffer_info()
    memoryview(tensor)[1] = 9
    assert source[1] == 9


def test_array_of_characters_is_refused():
    """Formats `u` and `w`."""
    with pytest.raises(ExchangeError, match="buffer format '[uw]'"):
        asdlpack(array.array("u", "abc"))


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (ct.c_int8, "int8"),
        (ct.c_uint16, "uint16"),
        (ct.c_int, "int32"),
        (ct.c_long, f"int{8 * ct.sizeof(ct.c_long)}"),
        (ct.c_ulonglong, "uint64"),
        (ct.c_float, "float32"),
        (ct.c_double, "float64"),
        (ct.c_bool, "bool"),
        (ct.c_char, "uint8"),
        (ct.c_size_t, "uint64"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_ctypes_arrays(type_, name):
    """Their formats always begin with `<`; multi-dimensional ones are nested types."""
    source = ((type_ * 3) * 2)()
    tensor = asdlpack(source)
    assert (tensor.shape, tensor.dtype) == ((2, 3), name)
    assert tensor.data_ptr == ct.addressof(source)
    assert tensor.strides == (3 * ct.sizeof(type_), ct.sizeof(type_))
    assert not tensor.readonly


def test_ctypes_scalars_are_0d():
    tensor = asdlpack(ct.c_double(2.5))
    assert (tensor.shape, tensor.dtype) == ((), "float64")
    assert memoryview(tensor).tolist() == 2.5


class Point(ct.Structure):
    _fields_ = [("x", ct.c_int), ("y", ct.c_float)]


@pytest.mark.parametrize(
    "source",
    [
        (ct.c_int32.__ctype_be__ * 3)(1, 2, 3),
        (Point * 2)(),
        (ct.c_longdouble * 2)(),
        (ct.POINTER(ct.c_int) * 2)(),
        (ct.c_void_p * 2)(),
        (ct.c_wchar * 2)(),
        (ct.py_object * 1)(None),
    ],
    ids=["big-endian", "structure", "longdouble", "pointer", "void pointer", "wide character", "object"],
)
def test_ctypes_arrays_without_a_dtype_are_refused(source):
    with pytest.raises(ExchangeError, match="buffer format"):
        asdlpack(source)


def test_memoryview_of_many_shapes():
    source = bytearray(range(24))
    view = memoryview(source).cast("h", (2, 2, 3))
    tensor = asdlpack(view)
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((2, 2, 3), (12, 6, 2), "int16")
    assert memoryview(tensor).tolist() == view.tolist()


@pytest.mark.parametrize("cut", [slice(None, None, 2), slice(None, None, -1), slice(5, 1, -2), slice(2, 2)], ids=str)
def test_strided_and_reversed_views(cut):
    """Data points at element 0."""
    source = bytearray(range(10))
    tensor = asdlpack(memoryview(source)[cut])
    assert memoryview(tensor).tolist() == list(source[cut])


@pytest.mark.parametrize(
    "access", [mmap.ACCESS_READ, mmap.ACCESS_WRITE, mmap.ACCESS_COPY], ids=["read", "write", "copy"]
)
def test_mmap_keeps_read_only(access, tmp_path):
    """Writing through a lost flag is a segmentation fault."""
    path = tmp_path / "data"
    path.write_bytes(b"Hello!")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0, access=access) as mapped:
        tensor = asdlpack(mapped)
        assert tensor.readonly == (access == mmap.ACCESS_READ)
        assert bytes(memoryview(tensor)) == b"Hello!"
        del tensor


def test_numpy_memmap(tmp_path):
    np = pytest.importorskip("numpy", reason="numpy.memmap is the exporter")
    path = tmp_path / "data"
    np.arange(6, dtype=np.int16).tofile(path)
    source = np.memmap(path, dtype=np.int16, mode="r", shape=(2, 3))
    tensor = asdlpack(source)
    assert (tensor.readonly, tensor.data_ptr, tensor.dtype) == (True, source.ctypes.data, "int16")
    assert asdlpack(source, protocol="buffer").shape == (2, 3)
    writable = np.memmap(path, dtype=np.int16, mode="r+", shape=(6,))
    assert not asdlpack(writable).readonly


def test_numpy_scalars():
    np = pytest.importorskip("numpy", reason="NumPy makes the scalar")
    scalar = np.float32(2.5)
    tensor = asdlpack(scalar)
    assert (tensor.shape, tensor.dtype, memoryview(tensor).tolist()) == ((), "float32", 2.5)
    assert asdlpack(scalar, protocol="buffer").readonly


def test_a_subclass_with_a_buffer():
    class Sub(bytearray):
        pass

    assert bytes(memoryview(asdlpack(Sub(b"abc")))) == b"abc"


def test_empty_exporters():
    for source in (b"", bytearray(), array.array("d"), (ct.c_int * 0)()):
        tensor = asdlpack(source)
        assert (tensor.size, tensor.data_ptr, memoryview(tensor).nbytes) == (0, 0, 0)


# --- the view is held -------------------------------------------------------------------------------------------------


def hold(tensor, how):
    return {
        "tensor": lambda: tensor,
        "legacy capsule": lambda: tensor.__dlpack__(),
        "versioned capsule": lambda: tensor.__dlpack__(max_version=(1, 0)),
        "memoryview": lambda: memoryview(tensor),
        "array struct": lambda: tensor.__array_struct__,
        "imported again": lambda: asdlpack(tensor.__dlpack__()),
    }[how]()


HOLDERS = ["tensor", "legacy capsule", "versioned capsule", "memoryview", "array struct", "imported again"]


@pytest.mark.parametrize("how", HOLDERS)
@pytest.mark.parametrize("kind", ["bytearray", "array", "mmap", "memoryview"])
def test_an_export_locks_the_memory(kind, how):
    """Resizing or closing raises BufferError in the owner, until the last export dies."""
    if kind == "mmap":
        source, disturb = (m := mmap.mmap(-1, 64)), m.close
    elif kind == "memoryview":
        source, disturb = (m := memoryview(bytearray(64))), m.release
    else:
        source = bytearray(64) if kind == "bytearray" else array.array("i", range(16))
        disturb = source.pop
    held = hold(asdlpack(source), how)
    with pytest.raises(BufferError):
        disturb()
    del held
    disturb()


def test_the_view_is_released_once():
    """Counted by the exporter itself."""
    exporter = BufferExporter()
    tensor = asdlpack(exporter.object)
    capsules = [tensor.__dlpack__(), tensor.__dlpack__(max_version=(1, 0)), tensor.__array_struct__]
    assert exporter.live == 1
    del tensor
    assert exporter.live == 1
    del capsules
    assert exporter.live == 0


@pytest.mark.parametrize(
    ("fields", "error", "match"),
    [
        ({"format": b">f"}, BufferError, "opposite byte order"),
        ({"format": b"T{f:x:}"}, BufferError, "one plain number"),
        ({"itemsize": 8}, BufferError, "itemsize is 8"),
        ({"format": None, "itemsize": 0}, BufferError, "itemsize is 0"),
        ({"suboffsets": (0,)}, BufferError, "suboffsets"),
        ({"shape": (2, 3), "suboffsets": (-1, 8)}, BufferError, "suboffsets"),
        ({"strides": (5,)}, BufferError, "not a multiple of the itemsize 4"),
        ({"strides": (6,)}, BufferError, "not a multiple of the itemsize 4"),
        ({"shape": (-3,)}, ValueError, "negative"),
        ({"shape": (2**61,)}, OverflowError, "63 bits"),
        ({"strides": (2**62,)}, OverflowError, "63 bits"),
        ({"ndim": -1}, ValueError, "ndim is -1"),
        ({"ndim": 65}, ValueError, "ndim is 65"),
        ({"shape": None, "ndim": 2}, ValueError, "shape"),
        ({"buf": None}, ValueError, "data pointer is null"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_bad_view_is_refused_and_released(fields, error, match):
    """Whatever an exporter puts into its Py_buffer."""
    exporter = BufferExporter(**fields)
    with pytest.raises(error, match=match):
        asdlpack(exporter.object)
    assert exporter.live == 0


def test_negative_suboffsets_mean_none():
    tensor = asdlpack(BufferExporter(suboffsets=(-1,)).object)
    assert memoryview(tensor).tolist() == [0, 1, 2]


def test_suboffsets_of_the_interpreters_own_exporter():
    """CPython's test module makes PIL-style buffers."""
    testbuffer = pytest.importorskip("_testbuffer", reason="CPython's own test module makes the suboffsets")
    source = testbuffer.ndarray(list(range(6)), shape=[2, 3], format="i", flags=testbuffer.ND_PIL)
    with pytest.raises(ExchangeError, match="suboffsets.*bytes.memoryview"):
        asdlpack(source)
    plain = testbuffer.ndarray(list(range(6)), shape=[2, 3], format="i", flags=testbuffer.ND_WRITABLE)
    assert memoryview(asdlpack(plain)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_odd_stride_on_an_axis_of_extent_one():
    tensor = asdlpack(BufferExporter(shape=(1, 3), strides=(5, 4)).object)
    assert memoryview(tensor).tolist() == [[0, 1, 2]]


def test_no_shape_means_the_length():
    """An exporter that fills less than was asked for."""
    tensor = asdlpack(BufferExporter(shape=None).object)
    assert (tensor.shape, tensor.strides) == ((3,), (4,))


def test_an_exporter_that_raises_keeps_its_error():
    released = memoryview(b"abc")
    released.release()
    with pytest.raises(ValueError, match="released"):
        asdlpack(released)
