"""On a GPU: copies in every direction and layout, managed and pinned memory, several GPUs."""

import dlbridge
import gpu_frameworks as gpu
import pytest
from dlbridge import CopyError, ExchangeError, _core, asdlpack
from gpu_frameworks import PRODUCERS, OnlyDLPack, needs_two_gpus, settle, to_host, torch_equal, values

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

pytestmark = gpu.needs_gpu


@pytest.fixture(params=PRODUCERS)
def producer(request):
    row = PRODUCERS[request.param]
    row.load()
    return row


# --- copies -----------------------------------------------------------------------------------------------------------

LAYOUTS = {
    "dense": lambda xp, a: a,
    "transposed": lambda xp, a: a.T,
    "sliced": lambda xp, a: a[:, ::2, 1:],
    "negative": lambda xp, a: a[::-1, :, ::-1],
    "broadcast": lambda xp, a: xp.broadcast_to(a[0], (5, *a.shape[1:])),
    "one column": lambda xp, a: a[:, :, 0],
    "0-d": lambda xp, a: a[0, 0, 0],
    "empty": lambda xp, a: a[:, :0],
}


@pytest.mark.parametrize("shape", [(2, 3, 4), (17, 64, 130)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_to_the_host(layout, shape):
    cupy = gpu.cupy()
    source = LAYOUTS[layout](cupy, cupy.asarray(values(shape)))
    tensor = asdlpack(source, device="cpu")
    assert (type(tensor), tensor.device, tensor.readonly, tensor.owner) == (dlbridge.HostTensor, "cpu", False, None)
    np.testing.assert_array_equal(np.asarray(tensor), source.get())


@pytest.mark.parametrize("shape", [(2, 3, 4), (17, 64, 130)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_to_the_gpu(layout, shape):
    cupy = gpu.cupy()
    host = LAYOUTS[layout](np, values(shape))
    tensor = asdlpack(host, device="cuda")
    assert (type(tensor), tensor.device, tensor.shape) == (dlbridge.CudaTensor, "cuda:0", host.shape)
    np.testing.assert_array_equal(cupy.from_dlpack(tensor).get(), host)


@pytest.mark.parametrize("shape", [(2, 3, 4), (17, 64, 130)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_within_the_gpu(layout, shape):
    cupy = gpu.cupy()
    source = LAYOUTS[layout](cupy, cupy.asarray(values(shape)))
    tensor = asdlpack(source, copy=True)
    assert (tensor.device, tensor.readonly) == ("cuda:0", False)
    assert tensor.size == 0 or tensor.data_ptr != source.data.ptr
    np.testing.assert_array_equal(cupy.from_dlpack(tensor).get(), source.get())


def test_no_copy_where_none_is_needed(producer):
    source = producer.make(values())
    for device in ("cuda", "cuda:0"):
        assert asdlpack(source, device=device, copy=False).data_ptr == producer.pointer(source)
    with pytest.raises(CopyError, match="copy=False"):
        asdlpack(source, device="cpu", copy=False)
    with pytest.raises(CopyError, match="copy=False"):
        asdlpack(values(), device="cuda", copy=False)


def test_dl_device_of_the_host_copies_and_says_so():
    tensor = asdlpack(gpu.cupy().asarray(values()))
    fields = _core.peek_capsule(tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
    assert (fields["device"], fields["flags"] & 2) == ((1, 0), 2)
    np.testing.assert_array_equal(np.from_dlpack(tensor, device="cpu"), values())
    with pytest.raises(BufferError, match="stream must be None"):
        tensor.__dlpack__(dl_device=(1, 0), stream=1)
    with pytest.raises(BufferError, match="copy=False"):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(4, 0))


def test_copies_say_so_in_the_capsule():
    tensor = asdlpack(gpu.cupy().asarray(values()))
    fields = _core.peek_capsule(tensor.__dlpack__(copy=True, max_version=(1, 0)))
    assert (fields["device"], fields["flags"] & 2, fields["data"] != tensor.data_ptr) == ((2, 0), 2, True)
    assert not _core.peek_capsule(tensor.__dlpack__(max_version=(1, 0)))["flags"] & 2


def test_torch_asks_for_copies_in_both_directions():
    torch = gpu.torch()
    tensor = asdlpack(gpu.cupy().asarray(values()))
    assert torch_equal(torch.from_dlpack(tensor, copy=True), values())
    assert torch_equal(torch.from_dlpack(tensor, device="cpu"), values())
    assert torch.from_dlpack(tensor, device="cpu").device.type == "cpu"


def test_copies_leave_nothing_behind():
    before = _core.live_counts()
    for _ in range(10):
        asdlpack(values(), device="cuda")
        asdlpack(asdlpack(values(), device="cuda"), device="cpu")
    settle()
    assert _core.live_counts() == before


# --- managed and pinned memory ----------------------------------------------------------------------------------------


def _managed(shape=(2, 3, 4)):
    cupy = gpu.cupy()
    host = values(shape)
    source = cupy.ndarray(shape, "float32", cupy.cuda.malloc_managed(host.nbytes))
    source[...] = cupy.asarray(host)
    return source, host


@pytest.mark.parametrize("protocol", [None, "dlpack", "cuda_array_interface"])
def test_managed_memory(protocol):
    source, host = _managed()
    tensor = asdlpack(source, protocol=protocol)
    assert (type(tensor), tensor.data_ptr) == (dlbridge.CudaTensor, source.data.ptr)
    assert (str(tensor.device), tensor.__dlpack_device__()) == ("cuda_managed:0", (13, 0))
    assert gpu.cupy().asarray(tensor).data.ptr == source.data.ptr
    np.testing.assert_array_equal(to_host(tensor), host)


def test_managed_memory_to_torch():
    source, host = _managed()
    assert torch_equal(dlbridge.convert(source, "torch", device="cuda", copy=True), host)


def test_pinned_torch_tensor():
    torch = gpu.torch()
    source = torch.arange(12, dtype=torch.float32).pin_memory()
    tensor = asdlpack(source)
    assert (type(tensor), tensor.data_ptr) == (dlbridge.HostTensor, source.data_ptr())
    assert tensor.device.type in ("cpu", "cuda_host") and tensor.device.id == 0
    np.testing.assert_array_equal(np.asarray(tensor), source.numpy())
    # By the method: PyTorch announces kDLCUDAHost and takes no stream, and the capsule may say kDLCPU.
    again = asdlpack(OnlyDLPack(source))
    assert (again.data_ptr, type(again)) == (source.data_ptr(), dlbridge.HostTensor)
    np.testing.assert_array_equal(gpu.cupy().from_dlpack(asdlpack(source, device="cuda")).get(), source.numpy())


def test_pinned_memory_by_the_cuda_array_interface():
    cupy = gpu.cupy()
    memory = cupy.cuda.alloc_pinned_memory(64)
    array = np.frombuffer(memory, "float32", 16)
    array[...] = np.arange(16)
    interface = {"shape": (16,), "typestr": "<f4", "data": (memory.ptr, False), "version": 3}
    source = type("Pinned", (), {"__cuda_array_interface__": interface})()
    tensor = asdlpack(source)
    assert (type(tensor), str(tensor.device)) == (dlbridge.HostTensor, "cuda_host")
    np.testing.assert_array_equal(np.asarray(tensor), array)


# --- several GPUs -----------------------------------------------------------------------------------------------------


@needs_two_gpus
@pytest.mark.parametrize("protocol", [None, "dlpack", "cuda_array_interface"])
@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_array_on_a_device_that_is_not_current(name, protocol):
    module = PRODUCERS[name].load()
    if name == "torch":
        source = module.arange(12, dtype=module.float32, device="cuda:1")
    else:
        with module.cuda.Device(1):
            source = module.arange(12, dtype="float32")
    tensor = asdlpack(source, protocol=protocol)
    assert (tensor.device, tensor.data_ptr) == ("cuda:1", PRODUCERS[name].pointer(source))
    np.testing.assert_array_equal(to_host(tensor), np.arange(12, dtype="float32"))
    assert gpu.torch().cuda.current_device() == 0
    assert gpu.torch().from_dlpack(tensor).device.index == 1


@needs_two_gpus
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_between_gpus(layout):
    cupy = gpu.cupy()
    source = LAYOUTS[layout](cupy, cupy.asarray(values()))
    tensor = asdlpack(source, device="cuda:1")
    assert tensor.device == "cuda:1"
    np.testing.assert_array_equal(to_host(tensor), source.get())


def test_no_such_device():
    with pytest.raises((ValueError, ExchangeError), match="does not exist"):
        asdlpack(values(), device=f"cuda:{gpu.GPU['device_count']}")
