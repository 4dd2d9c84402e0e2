"""Pickling of tensors: in band and out of band, every dtype, read-only kept, devices refused."""

import copy
import pickle

import dlbridge
import pytest
from dlbridge import DataError, asdlpack
from lifecycle_support import host_array

np = pytest.importorskip("numpy", reason="NumPy makes the arrays")

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
NATIVE = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128"]


def roundtrip(tensor, protocol=pickle.HIGHEST_PROTOCOL, **options):
    return pickle.loads(pickle.dumps(tensor, protocol, **options))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", NATIVE)
def test_roundtrip(dtype, protocol):
    source = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = roundtrip(asdlpack(source), protocol)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(np.asarray(tensor), source)
    assert not tensor.readonly


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_read_only_is_kept(protocol):
    tensor = roundtrip(asdlpack(b"abc"), protocol)
    assert tensor.readonly
    assert bytes(memoryview(tensor)) == b"abc"


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_that_only_dlpack_can_say(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes makes the arrays")
    source = np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype))
    tensor = roundtrip(asdlpack(source))
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(dlbridge.convert(tensor, "numpy"), source)


@pytest.mark.parametrize(
    "view",
    [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: np.broadcast_to(a[0], (4, 4))],
    ids=["transposed", "negative", "strided", "broadcast"],
)
def test_other_layouts_become_dense(view):
    source = view(np.arange(16.0).reshape(4, 4))
    tensor = roundtrip(asdlpack(source))
    np.testing.assert_array_equal(np.asarray(tensor), source)
    assert tensor.readonly == (not source.flags.writeable)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_scalars_and_empty(shape):
    tensor = roundtrip(asdlpack(np.ones(shape, np.int32)))
    assert tensor.shape == shape
    assert tensor.dtype == "int32"


def test_out_of_band_copies_nothing():
    source = np.arange(1000.0)
    buffers = []
    data = pickle.dumps(asdlpack(source), 5, buffer_callback=buffers.append)
    assert len(data) < 300
    tensor = pickle.loads(data, buffers=buffers)
    assert tensor.data_ptr == source.ctypes.data
    tensor = pickle.loads(data, buffers=[bytearray(source.tobytes())])
    np.testing.assert_array_equal(np.asarray(tensor), source)
    assert not tensor.readonly
    assert pickle.loads(data, buffers=[source.tobytes()]).readonly


def test_out_of_band_buffer_of_the_wrong_size():
    buffers = []
    data = pickle.dumps(asdlpack(np.arange(4.0)), 5, buffer_callback=buffers.append)
    with pytest.raises(DataError, match="32"):
        pickle.loads(data, buffers=[b"short"])


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("make", [asdlpack, host_array], ids=["Tensor", "nd"])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "uint16"])
def test_elements_at_odd_addresses_are_copied_to_even_ones(dtype, make, readonly):
    source = np.arange(4).astype(dtype)
    buffers = []
    data = pickle.dumps(make(source), 5, buffer_callback=buffers.append)
    message = memoryview(bytearray(b"x" + source.tobytes()))
    found = pickle.loads(data, buffers=[message.toreadonly()[1:] if readonly else message[1:]])
    assert found.data_ptr % min(8, found.itemsize) == 0
    assert found.readonly == readonly
    np.testing.assert_array_equal(np.asarray(found), source)
    del buffers


def test_deepcopy_has_memory_of_its_own():
    tensor = asdlpack(bytearray(b"abc"))
    twin = copy.deepcopy(tensor)
    assert twin.data_ptr != tensor.data_ptr
    assert bytes(memoryview(twin)) == b"abc"


def test_nothing_leaks():
    before = dlbridge._core.live_counts()
    for _ in range(50):
        roundtrip(asdlpack(np.arange(3.0)))
    assert dlbridge._core.live_counts() == before


@pytest.mark.gpu
def test_a_cuda_tensor_goes_by_the_host_and_says_so():
    torch = pytest.importorskip("torch", reason="torch makes the CUDA tensor")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    source = torch.arange(6, device="cuda").reshape(2, 3).T
    with pytest.warns(UserWarning, match="copied to the host"):
        tensor = roundtrip(asdlpack(source))
    assert tensor.device == "cuda:0"
    assert torch.equal(torch.from_dlpack(tensor), source)
