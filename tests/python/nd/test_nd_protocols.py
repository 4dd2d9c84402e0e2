"""Producer and consumer: every protocol both ways without a copy, NumPy's dispatch, pickling, the host's copies."""

import copy
import pickle
import sys

import dlbridge
import numpy as np
import pytest
from dlbridge import nd

SWAPPED = np.arange(6, dtype=np.dtype("float32").newbyteorder()).reshape(2, 3)


def odd():
    """Numbers at odd addresses."""
    return np.frombuffer(b" " + np.arange(6, dtype="float32").tobytes(), "V25")[:1].view("i1")[1:].view("float32")


@pytest.mark.parametrize("theirs", [SWAPPED, odd()], ids=["swapped", "odd"])
def test_what_is_copied_anyway_may_lie_in_the_other_byte_order_or_at_odd_addresses(theirs, device):
    if device == "cpu":
        with pytest.raises(dlbridge.ExchangeError):
            nd.asarray(theirs, device=device)  # it would share, and nothing is copied unasked
    else:
        np.testing.assert_array_equal(nd.asnumpy(nd.asarray(theirs, device=device)), theirs)
        with pytest.raises(dlbridge.ExchangeError):
            nd.asarray(theirs, device=device, copy=False)
    for taken, expected in ((theirs, theirs), ([theirs, theirs], [theirs, theirs])):
        np.testing.assert_array_equal(nd.asnumpy(nd.array(taken, device=device)), expected)
    np.testing.assert_array_equal(nd.asnumpy(nd.asarray([theirs], device=device)), [theirs])


# --- on the host -----------------------------------------------------------------------------------------------------


def sample(**options):
    return nd.arange(6, dtype="float32", device="cpu", **options).reshape(2, 3)


def test_numpy_shares_the_memory():
    x = sample()
    for view in (np.asarray(x), np.from_dlpack(x), np.array(memoryview(x), copy=False), np.array(x, copy=False)):
        view[0, 0] += 1
    assert x[0, 0].item() == 4.0
    theirs = np.arange(4.0)
    ours = nd.asarray(theirs, device="cpu")
    ours *= 2
    assert theirs[3] == 6.0 and ours.data_ptr == theirs.ctypes.data
    assert nd.array(theirs, device="cpu").data_ptr != theirs.ctypes.data
    assert nd.asarray(theirs[::-1], device="cpu").tolist() == [6.0, 4.0, 2.0, 0.0]
    view = np.asarray(x[:, ::-2].T)
    assert view.strides == x[:, ::-2].T.strides and view.tolist() == [[2.0, 5.0], [4.0, 3.0]]


def test_torch_shares_the_memory():
    torch = pytest.importorskip("torch")
    x = sample()
    for view in (torch.from_dlpack(x), dlbridge.convert(x, "torch"), torch.asarray(x)):
        view += 1
    assert x.tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    theirs = torch.arange(3)
    ours = nd.from_dlpack(theirs)
    ours += 1
    assert theirs.tolist() == [1, 2, 3] and ours.data_ptr == theirs.data_ptr()
    assert nd.asarray(theirs).data_ptr == theirs.data_ptr() or nd.cuda.is_available()
    assert nd.zeros(2, torch.float16, device="cpu").dtype == torch.float16
    assert nd.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).dtype == "bfloat16"


def test_jax_shares_the_memory():
    jax = pytest.importorskip("jax")
    x = nd.ones(64, "float32", device="cpu")
    theirs = jax.dlpack.from_dlpack(x)
    assert float(theirs.sum()) == 64.0 and theirs.unsafe_buffer_pointer() == x.data_ptr
    back = nd.from_dlpack(jax.numpy.arange(4.0))
    assert back.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_buffers_and_capsules():
    x = sample()
    view = memoryview(x)
    assert (view.shape, view.strides, view.format, view.readonly) == ((2, 3), (12, 4), "f", False)
    data = bytearray(b"\1\2\3\4")
    ours = nd.asarray(data, device="cpu")
    ours += 1
    assert data == b"\2\3\4\5" and ours.dtype == "uint8"
    with pytest.raises(BufferError):
        data.append(1)
    del ours
    data.append(1)
    assert nd.fromDlpack(x.toDlpack()).data_ptr == x.data_ptr
    assert nd.from_dlpack(x.__dlpack__(max_version=(1, 0))).data_ptr == x.data_ptr
    assert isinstance(x, dlbridge.Tensor) and isinstance(x, dlbridge.HostTensor)
    assert dlbridge.asdlpack(x) is x
    assert not hasattr(x, "__cuda_array_interface__")


def test_readonly_memory_stays_readonly():
    ours = nd.asarray(b"abc", device="cpu")
    assert not ours.flags.writeable and ours.readonly
    for write in (lambda: ours.fill(0), lambda: ours.__setitem__(0, 1), lambda: ours.__iadd__(1)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert ours.copy().flags.writeable and (ours + 1).flags.writeable
    assert not np.asarray(ours).flags.writeable


def test_from_dlpack_copy_and_device():
    theirs = np.arange(3.0)
    assert nd.from_dlpack(theirs, copy=False).data_ptr == theirs.ctypes.data
    assert nd.from_dlpack(theirs, copy=True).data_ptr != theirs.ctypes.data
    x = nd.from_dlpack(theirs)
    assert nd.from_dlpack(x) is x or nd.from_dlpack(x).data_ptr == x.data_ptr
    assert x.to_device("cpu") is x and x.to_device(x.device) is x


def test_memory_outlives_its_owners():
    x = nd.asarray(np.full(3, 7.0), device="cpu")
    view = np.asarray(x[1:])
    del x
    assert view.tolist() == [7.0, 7.0]
    y = nd.ones(3, device="cpu")
    part = y[1:]
    del y
    assert nd.asarray(np.asarray(part), device="cpu").tolist() == [1.0, 1.0]


def test_ml_dtypes_and_bfloat16(device):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = nd.asarray(np.arange(3).astype(ml_dtypes.bfloat16), device=device)
    assert x.dtype == "bfloat16" and x.tolist() == [0.0, 1.0, 2.0]
    assert nd.asnumpy(x).dtype == ml_dtypes.bfloat16
    assert "dtype=bfloat16" in repr(x) and "1." in repr(x)


# --- both -----------------------------------------------------------------------------------------------------------


def test_convert_and_the_runners_row(device):
    x = nd.arange(4, device=device)
    assert dlbridge.convert(x, "nd") is x or dlbridge.convert(x, "nd").data_ptr == x.data_ptr
    assert isinstance(dlbridge.convert(np.arange(3), "nd"), nd.ndarray)
    assert isinstance(dlbridge.convert(np.arange(3), nd), nd.ndarray)
    assert dlbridge.inspect(x).todict()


def test_asnumpy_get_and_set(device):
    x = nd.arange(6, device=device).reshape(2, 3)
    copied = x.get()
    copied[0, 0] = 99
    assert x[0, 0].item() == 0 and copied.flags.c_contiguous
    assert x.get(order="F").flags.f_contiguous and x.T.get(order="A").flags.f_contiguous
    out = np.empty((2, 3), "int64")
    assert x.get(out=out) is out and out.tolist() == x.tolist()
    assert nd.asnumpy(x, out=out) is out and nd.asnumpy([1, 2]).tolist() == [1, 2]
    fortran, gaps = np.zeros((2, 3), "int64", order="F"), np.zeros((4, 6), "int64")
    assert x.get(out=fortran).tolist() == x.tolist()
    out[...] = 0
    assert x.T.get(out=out.T).shape == (3, 2) and out.tolist() == x.tolist()
    assert x.get(out=gaps[::2, ::2]).tolist() == x.tolist() and gaps[1].tolist() == [0] * 6 and not gaps[:, 1].any()
    x.set(np.ones((2, 3), "int8"))
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert nd.asnumpy(np.ones(2)).tolist() == [1.0, 1.0]


def test_asnumpy_reads_what_has_dlpack_alone(device):
    class OfDLPackAlone:
        def __init__(self, array):
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    x = nd.arange(3, device=device)
    got = nd.asnumpy(OfDLPackAlone(x))
    assert got.dtype == "int64" and got.tolist() == [0, 1, 2]
    assert nd.asnumpy([None, 1]).tolist() == [None, 1]  # NumPy's own objects stay


@pytest.mark.parametrize("dtype", ["bool", "int16", "bfloat16", "float16", "float64", "complex64"])
def test_pickle_and_copy(dtype, device):
    x = nd.arange(6, device=device).reshape(2, 3).astype(dtype)[:, ::2]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert (y.dtype, y.shape, str(y.device), y.tolist()) == (x.dtype, x.shape, str(x.device), x.tolist())
        y.fill(1)
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and pickle.loads(data, buffers=buffers).tolist() == x.tolist()
    for y in (copy.copy(x), copy.deepcopy([x])[0]):
        assert y.tolist() == x.tolist() and not nd.shares_memory(x, y)
    empty = pickle.loads(pickle.dumps(nd.zeros((0, 2), dtype, device=device)))
    assert empty.shape == (0, 2) and empty.dtype == dtype


def test_numpy_functions_dispatch_here(device):
    x = nd.arange(6.0, device=device).reshape(2, 3)
    results = [np.sum(x), np.mean(x, axis=0), np.exp(x), np.add(x, 1), np.concatenate([x, x]), np.linalg.norm(x)]
    results += [np.where(x > 1, x, 0), np.zeros_like(x), np.float32(2) * x, np.reshape(x, 6), np.transpose(x)]
    results += [np.add.reduce(x), np.multiply.outer(x, x), np.add.accumulate(x), np.sort(x)]
    results += [np.unique(x), np.stack([x, x]), np.clip(x, 1, 2), np.std(x), np.tensordot(x, x), np.einsum("ij->i", x)]
    for result in results:
        assert isinstance(result, nd.ndarray) and str(result.device) == str(x.device)
    assert isinstance(np.zeros(3, like=x), nd.ndarray)
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6 and np.result_type(x) == "float64"
    assert np.add(x, x, out=x) is x and x[1, 2].item() == 10.0
    with pytest.raises(TypeError, match="where"):
        np.add(x, 1, where=False)
    with pytest.raises(TypeError):
        np.datetime_as_string(x)
    with pytest.raises(TypeError):
        np.spacing(x, where=False)
    mantissa, exponent = np.frexp(x)
    assert isinstance(mantissa, nd.ndarray) and isinstance(exponent, nd.ndarray)


def test_get_array_module(device):
    x = nd.ones(2, device=device)
    assert nd.get_array_module(x, 1) is nd and nd.get_array_module(np.ones(2)) is np and nd.get_array_module() is np
    assert x.__array_namespace__() is nd and x.__array_namespace__(api_version="2024.12") is nd


def test_dtypes_are_understood_by_numpy(device):
    x = nd.zeros(2, "float32", device=device)
    assert np.zeros(2, x.dtype).dtype == np.float32 and np.dtype(x.dtype) == np.float32
    assert x.dtype == np.float32 and x.dtype == np.dtype("f4") and np.float32 == x.dtype
    assert (x.dtype.kind, x.dtype.char, x.dtype.str, x.dtype.type) == ("f", "f", "<f4", np.float32)
    assert isinstance(nd.float32(1.5), np.float32) and nd.int8 == "int8" and x.dtype is nd.float32
    for name in ("float32", "f4", "<f4", "f", np.float32, np.dtype("f4"), nd.float32):
        assert nd.zeros(1, name, device=device).dtype == "float32"
    for kind, name in ((int, "int64"), (float, "float64"), (bool, "bool"), (complex, "complex128"), ("i", "int32")):
        assert nd.zeros(1, kind, device=device).dtype == name


def test_device_attribute(device):
    x = nd.zeros(2, device=device)
    name = "cpu" if device == "cpu" else f"cuda:{x.device.id}"
    assert str(x.device) == name and x.device == name and nd.zeros(2, device=x.device).device == x.device
    assert nd.zeros_like(x).device == x.device and (x + 1).device == x.device
    assert type(x) is (nd.HostArray if device == "cpu" else nd.CudaArray)


@pytest.mark.gpu
def test_cuda_protocols():
    x = nd.arange(6, dtype="float32").reshape(2, 3)
    cai = x.__cuda_array_interface__
    assert cai["data"][0] == x.data_ptr == x.data.ptr and cai["shape"] == (2, 3) and "strides" in cai
    assert not hasattr(x, "__array_interface__")
    with pytest.raises(TypeError):
        memoryview(x)
    with pytest.raises(TypeError, match=r"get|asnumpy|cpu"):
        np.asarray(x)
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    for theirs in (torch.as_tensor(x, device="cuda"), torch.from_dlpack(x), dlbridge.convert(x, "torch")):
        assert theirs.data_ptr() == x.data_ptr
        theirs += 1
    assert x.tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    a = torch.ones(3, device="cuda")
    assert nd.asarray(a).data_ptr == a.data_ptr() == nd.from_dlpack(a).data_ptr
    assert repr(x.device) == f"<CUDA Device {x.device.id}>"


def test_numpy_is_not_needed_for_printing(device, monkeypatch):
    from dlbridge.nd import _printing

    monkeypatch.setattr(_printing, "_numpy", lambda: None)
    assert str(nd.arange(3, device=device)) == "[0 1 2]"
    assert repr(nd.ones((2, 2), "float32", device=device)) == "array([[1.0, 1.0],\n       [1.0, 1.0]], dtype=float32)"
    assert repr(nd.arange(2000, device=device)) == "array([   0,    1,    2, ..., 1997, 1998, 1999], shape=(2000,))"
    assert repr(nd.array(2.5, device=device)) == "array(2.5)" and str(nd.array(True, device=device)) == "True"
    assert repr(nd.zeros((0, 2), device=device)) == "array([], shape=(0, 2), dtype=float64)"


def test_reference_counts_are_stable(device):
    x = nd.ones(4, device=device)
    before = sys.getrefcount(x)
    for _ in range(50):
        x += 1
        _ = x + x, x.T, x[1:], x.sum(), nd.add(x, x, out=x), x.__dlpack__(), repr(x), x.flags, x.device
    del _
    assert sys.getrefcount(x) == before


class Holder:
    """An object as CuPy takes it: its array, without a protocol."""

    def __init__(self, array):
        self.array = array

    def __cupy_get_ndarray__(self):
        if isinstance(self.array, Exception):
            raise self.array
        return self.array


def test_objects_that_hold_an_array_as_cupys_friends_do_are_read(device):
    x = nd.arange(4, device=device)
    assert nd.asarray(Holder(x), device=device) is x
    copied = nd.array(Holder(x), device=device)
    assert copied.data_ptr != x.data_ptr and copied.tolist() == [0, 1, 2, 3]
    assert nd.asarray([Holder(x), Holder(x)]).tolist() == [[0, 1, 2, 3]] * 2
    y = nd.zeros(4, "int64", device=device)
    y[...] = Holder(x)
    assert y.tolist() == [0, 1, 2, 3] and y[Holder(x[:2])].tolist() == [0, 1]
    assert y[[Holder(x)]].tolist() == y[[x]].tolist() and y[Holder(x[1:3]),].tolist() == [1, 2]
    theirs = np.arange(3.0)
    assert nd.asarray(Holder(theirs), device="cpu").data_ptr == theirs.ctypes.data
    looped = Holder(None)
    looped.array = looped
    for held, error in ((None, dlbridge.ProtocolError), (KeyError("gone"), KeyError), (looped, dlbridge.ProtocolError)):
        with pytest.raises(error):
            nd.asarray(held if held is looped else Holder(held))
    with pytest.raises(dlbridge.ProtocolError):
        nd.asarray(object())
