"""Tensor, DType and Device: attributes, equality, lifetime, and what each type must not look like."""

import copy
import ctypes as ct
import gc
import pickle
import weakref

import dlbridge
import pytest
from dlbridge import CudaTensor, Device, DType, HostTensor, Tensor, _core, asdlpack
from dlbridge.tests.conformance._abi import READ_ONLY
from provoke import (
    BFLOAT16,
    CPU,
    CUDA,
    CUDA_HOST,
    CUDA_MANAGED,
    METAL,
    ROCM_HOST,
    Managed,
    Producer,
    exchange_table,
    returning,
    table_capsule,
)


def tensor_on(device=CPU, **options):
    if device not in (CPU, CUDA_HOST, ROCM_HOST):
        options.setdefault("data", 1 << 40)
    return asdlpack(Managed(device=device, **options).capsule())


# --- attributes -------------------------------------------------------------------------------------------------------


def test_attributes():
    managed = Managed(shape=(2, 3), strides=(1, 2), flags=READ_ONLY)
    tensor = asdlpack(managed.capsule())
    assert (tensor.shape, tensor.strides) == ((2, 3), (4, 8))
    assert (tensor.ndim, tensor.size, tensor.itemsize, tensor.nbytes) == (2, 6, 4, 24)
    assert (tensor.data_ptr, tensor.readonly, tensor.protocol, tensor.owner) == (managed.address, True, "dlpack", None)
    assert (str(tensor.dtype), str(tensor.device), tensor.padded) == ("float32", "cpu", False)


@pytest.mark.parametrize(
    ("shape", "strides", "contiguous"),
    [((2, 3), (3, 1), True), ((2, 3), (1, 2), False), ((2, 1), (1, 7), True), ((0, 3), (1, 9), True), ((), (), True),
     ((3,), (-1,), False), ((3,), (0,), False)],
    ids=str,
)  # fmt: skip
def test_contiguous_is_dense_in_c_order(shape, strides, contiguous):
    assert tensor_on(shape=shape, strides=strides, byte_offset=16).is_contiguous is contiguous


def test_a_part_of_a_tensor_under_another_description():
    tensor = asdlpack(bytearray(range(12)))
    part = _core.reinterpret(tensor, dtype="uint16", shape=(2,), offset=4)
    assert part.data_ptr - tensor.data_ptr == 4 and memoryview(part).tolist() == [0x0504, 0x0706]
    assert _core.reinterpret(tensor, shape=(0,), offset=12).shape == (0,)
    for offset, count in ((9, 2), (0, 7), (13, 0), (2**63, 1)):
        with pytest.raises(ValueError, match="12 bytes are there"):
            _core.reinterpret(tensor, dtype="uint16", shape=(count,), offset=offset)
    with pytest.raises(ValueError, match="12 bytes are there"):
        _core.reinterpret(tensor, dtype="uint16", shape=(2,))


@pytest.mark.parametrize("name", ["shape", "strides", "dtype", "device", "data_ptr", "owner", "readonly", "nothing"])
def test_attributes_cannot_be_set(name):
    tensor = asdlpack(b"abc")
    with pytest.raises(AttributeError):
        setattr(tensor, name, 1)


def test_shape_and_strides_are_always_tuples():
    for shape in ((), (0,), (1,) * 20):
        tensor = tensor_on(shape=shape)
        assert type(tensor.shape) is type(tensor.strides) is tuple
        assert len(tensor.shape) == len(tensor.strides) == tensor.ndim == len(shape)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: asdlpack(b"abc"), "<dlbridge.HostTensor shape=(3,) dtype=uint8 device=cpu protocol=buffer readonly>"),
        (lambda: tensor_on(), "<dlbridge.HostTensor shape=(3,) dtype=float32 device=cpu protocol=dlpack>"),
        (
            lambda: tensor_on(CUDA, shape=(), dtype=BFLOAT16),
            "<dlbridge.CudaTensor shape=() dtype=bfloat16 device=cuda:0 protocol=dlpack>",
        ),
        (lambda: tensor_on((8, 1)), "<dlbridge.Tensor shape=(3,) dtype=float32 device=metal:1 protocol=dlpack>"),
    ],
    ids=["bytes", "cpu", "cuda", "metal"],
)
def test_repr(make, text):
    assert repr(make()) == text


def test_tensors_are_not_made_directly():
    for type_ in (Tensor, HostTensor, CudaTensor, type("Sub", (HostTensor,), {})):
        with pytest.raises(TypeError, match="cannot be made directly.*Use asdlpack"):
            type_()


@pytest.mark.parametrize("type_", [Tensor, HostTensor, CudaTensor])
def test_the_types_are_immutable(type_):
    with pytest.raises(TypeError):
        type_.shape = None


# --- what each type looks like ----------------------------------------------------------------------------------------

HOST_ONLY = ["__array_interface__", "__array_struct__"]
CUDA_ONLY = ["__cuda_array_interface__"]


@pytest.mark.parametrize(
    ("device", "has", "lacks"),
    [
        (CPU, HOST_ONLY, CUDA_ONLY),
        (CUDA_HOST, HOST_ONLY, CUDA_ONLY),
        (ROCM_HOST, HOST_ONLY, CUDA_ONLY),
        (CUDA, CUDA_ONLY, HOST_ONLY),
        (CUDA_MANAGED, CUDA_ONLY, HOST_ONLY),
        (METAL, [], HOST_ONLY + CUDA_ONLY),
        ((10, 0), [], HOST_ONLY + CUDA_ONLY),
    ],
    ids=["cpu", "cuda_host", "rocm_host", "cuda", "cuda_managed", "metal", "rocm"],
)
def test_a_tensor_has_the_protocols_of_its_device_only(device, has, lacks):
    """For hasattr(), which NumPy, mpi4py and torch ask."""
    tensor = tensor_on(device)
    assert [name for name in has if not hasattr(tensor, name)] == []
    assert [name for name in lacks if hasattr(tensor, name)] == []
    assert [name for name in lacks if hasattr(type(tensor), name)] == []
    assert all(hasattr(tensor, name) for name in ("__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__"))
    if has == HOST_ONLY:
        memoryview(tensor)
    else:
        with pytest.raises(TypeError):
            memoryview(tensor)


def test_a_tensor_is_neither_number_nor_sequence():
    tensor = asdlpack(b"abc")
    for name in ("__len__", "__getitem__", "__iter__", "__index__", "__float__", "__call__", "__dict__"):
        assert not hasattr(tensor, name)


def test_exports_may_be_taken_many_times():
    tensor = asdlpack(bytearray(8))
    held = [
        export()
        for _ in range(200)
        for export in (
            tensor.__dlpack__,
            lambda: tensor.__dlpack__(max_version=(1, 0)),
            lambda: memoryview(tensor),
            lambda: tensor.__array_interface__,
            lambda: tensor.__array_struct__,
        )
    ]
    assert len(held) == 1000


# --- __array__ --------------------------------------------------------------------------------------------------------


def test_array_shares_the_memory():
    np = pytest.importorskip("numpy", reason="NumPy makes the array")
    source = bytearray(b"abc")
    tensor = asdlpack(source)
    for array in (tensor.__array__(), np.asarray(tensor), np.array(tensor, copy=False)):
        assert array.ctypes.data == tensor.data_ptr
        assert array.dtype == np.uint8
        assert array.flags.writeable
    assert not asdlpack(b"abc").__array__().flags.writeable


def test_array_with_dtype_and_copy():
    np = pytest.importorskip("numpy", reason="NumPy makes the array")
    tensor = asdlpack(bytearray(b"abc"))
    assert tensor.__array__(np.float64).tolist() == [97, 98, 99]
    assert tensor.__array__(dtype="uint8").ctypes.data == tensor.data_ptr
    assert tensor.__array__(copy=True).ctypes.data != tensor.data_ptr
    assert tensor.__array__(copy=False).ctypes.data == tensor.data_ptr
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        with pytest.raises(ValueError, match="copy"):
            tensor.__array__(np.float64, copy=False)


@pytest.mark.parametrize("device", [CUDA, METAL], ids=["cuda", "metal"])
def test_array_of_a_device_tensor_names_the_remedy(device):
    pytest.importorskip("numpy", reason="NumPy calls __array__")
    import numpy as np

    tensor = tensor_on(device)
    with pytest.raises(TypeError, match=r"NumPy reads host memory only.*device='cpu'"):
        tensor.__array__()
    with pytest.raises(TypeError, match="NumPy reads host memory only"):
        np.asarray(tensor)


def test_array_of_bfloat16_is_numpys_only_way_to_it():
    pytest.importorskip("ml_dtypes", reason="ml_dtypes has the dtype")
    np = pytest.importorskip("numpy", reason="NumPy makes the array")
    array = np.asarray(tensor_on(dtype=BFLOAT16))
    assert str(array.dtype) == "bfloat16"


# --- DType ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", _core.dtypes(), ids=lambda row: row["name"])
def test_dtype(row):
    managed = Managed((ct.c_uint8 * 64)(), dtype=(row["code"], row["bits"], row["lanes"]))
    dtype = asdlpack(managed.capsule()).dtype
    assert isinstance(dtype, DType)
    assert str(dtype) == dtype.name == row["name"]
    assert repr(dtype) == f"dlbridge.DType('{row['name']}')"
    assert {name: getattr(dtype, name) for name in ("code", "bits", "lanes", "itemsize")} == {
        name: row[name] for name in ("code", "bits", "lanes", "itemsize")
    }
    assert dtype == row["name"] and row["name"] == dtype
    assert DType(row["name"]) is DType(dtype) and hash(dtype) == hash(DType(row["name"]))
    assert dtype not in ("other", None, 5, object(), (row["code"], row["bits"], row["lanes"]))
    assert pickle.loads(pickle.dumps(dtype)) == dtype
    assert copy.deepcopy(dtype) == dtype
    assert asdlpack(managed.capsule()).dtype == dtype


def test_dtype_equals_numpys():
    np = pytest.importorskip("numpy", reason="NumPy has the dtypes")
    for name in ("bool", "int8", "uint64", "float16", "float32", "complex128"):
        dtype = asdlpack(np.zeros(1, name)).dtype
        assert dtype == np.dtype(name)
        assert np.dtype(name) == dtype
        assert dtype == np.dtype(name).type
        assert dtype != np.dtype("S1")
    assert asdlpack(np.zeros(1, "i4")).dtype != np.dtype(">i4")
    assert asdlpack(np.zeros(1, "q")).dtype == asdlpack(np.zeros(1, "l")).dtype == np.int64


def test_dtype_equals_torchs():
    torch = pytest.importorskip("torch", reason="torch has the dtypes")
    assert asdlpack(torch.zeros(1)).dtype == torch.float32
    assert asdlpack(torch.zeros(1, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert asdlpack(torch.zeros(1)).dtype != torch.float64


# --- Device -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "text", "kind"),
    [
        (CPU, "cpu", "cpu"),
        (CUDA, "cuda:0", "cuda"),
        ((2, 3), "cuda:3", "cuda"),
        (CUDA_HOST, "cuda_host", "cuda_host"),
        ((13, 1), "cuda_managed:1", "cuda_managed"),
        (METAL, "metal:0", "metal"),
        ((10, 2), "rocm:2", "rocm"),
    ],
    ids=str,
)
def test_device(pair, text, kind):
    """The names of DLPack's pairs."""
    device = tensor_on(pair).device
    assert isinstance(device, Device)
    assert (str(device), repr(device), device.type, device.id) == (text, f"dlbridge.Device('{text}')", kind, pair[1])
    assert device == text and text == device
    assert device == pair
    assert device == tensor_on(pair).device
    assert device not in ("tpu", None, 1, "cuda:9")
    assert hash(device) == hash(text)
    assert pickle.loads(pickle.dumps(device)) == device


# --- lifetime ---------------------------------------------------------------------------------------------------------


def test_weak_references():
    tensor = asdlpack(b"abc")
    gone = []
    reference = weakref.ref(tensor, gone.append)
    assert reference() is tensor
    del tensor
    assert reference() is None
    assert gone == [reference]


class Cyclic:
    """Can refer back to its tensor."""


def producer_of(protocol):
    if protocol == "dlpack":
        managed = Managed()
        return type("Speaks", (Producer, Cyclic), {})(lambda **_: managed.capsule())
    if protocol == "exchange":
        table = table_capsule(exchange_table(from_object=returning(Managed())))
        return type("Table", (Cyclic,), {"__dlpack_c_exchange_api__": table})()
    if protocol == "array_interface":
        source = Cyclic()
        source.__array_interface__ = {"shape": (3,), "typestr": "|u1", "data": bytearray(3), "version": 3}
        return source
    if protocol == "cuda_array_interface":
        source = Cyclic()
        source.__cuda_array_interface__ = {"shape": (0,), "typestr": "|u1", "data": (0, False), "version": 3}
        return source
    return type("Buffer", (bytearray, Cyclic), {})(b"abc")


PROTOCOLS = ["dlpack", "exchange", "array_interface", "cuda_array_interface", "buffer"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cycle_of_owner_and_tensor_is_collected(protocol):
    source = producer_of(protocol)
    source.tensor = asdlpack(source)
    assert source.tensor.owner is source
    reference = weakref.ref(source)
    before = _core.live_counts()["tensors"]
    del source
    gc.collect()
    assert reference() is None
    assert _core.live_counts()["tensors"] == before - 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_finaliser_in_a_cycle_may_look_at_the_tensor(protocol):
    """It sees a live tensor or an empty one, and no freed memory."""
    source = producer_of(protocol)
    source.tensor = asdlpack(source)
    seen = []

    class Finaliser:
        def __init__(self, tensor):
            self.tensor = tensor

        def __del__(self):
            seen.append((repr(self.tensor), self.tensor.size, self.tensor.data_ptr, self.tensor.owner is not None))

    source.last = Finaliser(source.tensor)
    source.last.cycle = source.last
    del source
    gc.collect()
    assert len(seen) == 1


def test_an_export_keeps_a_cycle_alive():
    """A capsule is outside of the cycle."""
    source = producer_of("buffer")
    source.tensor = asdlpack(source)
    reference = weakref.ref(source)
    capsule = source.tensor.__dlpack__()
    del source
    gc.collect()
    assert reference() is not None
    del capsule
    gc.collect()
    assert reference() is None


def test_many_tensors_live_and_die():
    """More than the freelist holds."""
    source = bytearray(8)
    for _ in range(3):
        tensors = [asdlpack(source) for _ in range(1000)]
        assert len({id(tensor) for tensor in tensors}) == 1000
        del tensors
    source.append(1)


def test_deep_shapes_are_released():
    for _ in range(100):
        tensor = tensor_on(shape=(1,) * 64)
        assert tensor.ndim == 64
        assert asdlpack(tensor.__dlpack__(max_version=(1, 0))).shape == tensor.shape


def test_the_owner_outlives_its_last_name():
    class Source(bytearray):
        pass

    source = Source(b"abc")
    reference = weakref.ref(source)
    tensor = asdlpack(source)
    del source
    gc.collect()
    assert bytes(memoryview(tensor)) == b"abc"
    del tensor
    assert reference() is None


def test_classes_are_exported_by_name():
    assert dlbridge.Tensor.__module__ == "dlbridge"
    assert [t.__name__ for t in (Tensor, HostTensor, CudaTensor)] == ["Tensor", "HostTensor", "CudaTensor"]
    assert issubclass(HostTensor, Tensor) and issubclass(CudaTensor, Tensor)
