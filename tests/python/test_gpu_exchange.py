"""On a GPU: every framework as producer and consumer, dtypes, strides, lifetimes, attributes."""

import gc
import importlib

import dlbridge
import gpu_frameworks as gpu
import pytest
from dlbridge import CopyError, _core, asdlpack
from gpu_frameworks import CONSUMERS, PRODUCERS, Interface, settle, to_host, torch_equal, values

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

pytestmark = gpu.needs_gpu

BYTES = 1 << 20  # a size of its own, so that a pool would hand the same block out again


@pytest.fixture(params=PRODUCERS)
def producer(request):
    row = PRODUCERS[request.param]
    row.load()
    return row


@pytest.fixture(params=CONSUMERS)
def consumer(request):
    row = CONSUMERS[request.param]
    row.load()
    return row


# --- producers --------------------------------------------------------------------------------------------------------


def test_read_by_the_best_protocol(producer):
    host = values()
    source = producer.make(host)
    tensor = asdlpack(source)
    assert type(tensor) is dlbridge.CudaTensor
    assert tensor.data_ptr == producer.pointer(source) != 0
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((2, 3, 4), (48, 16, 4), "float32")
    assert (tensor.device, tensor.readonly, tensor.owner is source) == ("cuda:0", producer.immutable, True)
    np.testing.assert_array_equal(to_host(tensor), host)


@pytest.mark.parametrize("protocol", ["dlpack", "cuda_array_interface"])
def test_read_by_each_protocol(producer, protocol):
    attribute = {"dlpack": "__dlpack__", "cuda_array_interface": "__cuda_array_interface__"}[protocol]
    source = producer.make(values())
    if not hasattr(source, attribute):
        pytest.skip(f"{producer.name} has no {attribute}")
    tensor = asdlpack(source, protocol=protocol)
    assert (tensor.protocol, tensor.data_ptr, tensor.device) == (protocol, producer.pointer(source), "cuda:0")
    np.testing.assert_array_equal(to_host(tensor), values())


def _dtype_cases():
    return [
        pytest.param(row.name, dtype, id=f"{row.name}-{dtype}") for row in PRODUCERS.values() for dtype in row.dtypes
    ]


@pytest.mark.parametrize(("name", "dtype"), _dtype_cases())
def test_dtype(name, dtype):
    row = PRODUCERS[name]
    row.load()
    bits = np.arange(16, dtype=np.uint8) % 2
    if dtype in gpu.NUMPY_DTYPES:
        source = row.make(bits.astype(dtype))
    elif name == "torch":
        source = row.make(bits).to(getattr(gpu.torch(), dtype))
    else:
        source = row.make(bits.astype(getattr(gpu.module("ml_dtypes"), dtype)))
    tensor = asdlpack(source)
    assert (str(tensor.dtype), tensor.data_ptr, tensor.size) == (dtype, row.pointer(source), 16)
    back = to_host_floats(tensor)
    np.testing.assert_array_equal(back, bits.astype(back.dtype))


def to_host_floats(tensor):
    array = _core.to_numpy(asdlpack(tensor, device="cpu"))
    return array.astype("float32") if array.dtype.kind == "V" else array


def _strided(row, host):
    if row.name == "torch":
        return row.make(host).permute(2, 0, 1)[:, :, ::2]
    if row.name == "numba":
        return row.make(host)[:, :, ::2]
    return row.make(host).transpose(2, 0, 1)[:, :, ::2]


def test_strides_of_views(producer):
    if not producer.strided:
        pytest.skip(f"{producer.name} has no strided views")
    host = values()
    source = _strided(producer, host)
    expected = host[:, :, ::2] if producer.name == "numba" else host.transpose(2, 0, 1)[:, :, ::2]
    tensor = asdlpack(source)
    assert (tensor.shape, tensor.strides) == (expected.shape, expected.strides)
    assert tensor.data_ptr == producer.pointer(source)
    np.testing.assert_array_equal(to_host(tensor), expected)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (2, 0), (1,) * 12], ids=str)
def test_shapes(producer, shape):
    host = values(shape)
    if host.size == 0 and producer.name == "numba":
        source = producer.load().device_array(shape, "float32")
    else:
        source = producer.make(host)
    tensor = asdlpack(source)
    assert (tensor.shape, tensor.size, tensor.device) == (shape, host.size, "cuda:0")
    assert (tensor.data_ptr == 0) == (host.size == 0)
    assert to_host(tensor).shape == shape


def test_producers_are_released(producer):
    settle()
    before = _core.live_counts()
    for _ in range(20):
        asdlpack(producer.make(values()))
    settle()
    assert _core.live_counts() == before


# --- CuPy, which is read from its members ---------------------------------------------------------------------------


CUPY_VIEWS = {
    "dense": lambda cupy, a: a,
    "0-d": lambda cupy, a: a[1, 2, 3],
    "transposed": lambda cupy, a: a.T,
    "sliced": lambda cupy, a: a[:, 1:, ::2],
    "reversed": lambda cupy, a: a[::-1, :, ::-1],
    "broadcast": lambda cupy, a: cupy.broadcast_to(a[0], (5, 3, 4)),
    "fortran": lambda cupy, a: cupy.asfortranarray(a),
    "new axes": lambda cupy, a: a[(slice(None),) + (None,) * 9],
    "empty": lambda cupy, a: a[:0],
}


@pytest.mark.parametrize("view", CUPY_VIEWS)
@pytest.mark.parametrize("protocol", ["dlpack", "cuda_array_interface"])
def test_cupy_members_say_what_its_protocols_say(view, protocol):
    cupy = gpu.cupy()
    if (view, protocol) == ("reversed", "dlpack"):
        pytest.skip("CuPy 14.2 exports negative strides as huge positive ones; they are refused, see the next test")
    source = CUPY_VIEWS[view](cupy, cupy.asarray(values()))
    direct, ordinary = asdlpack(source), asdlpack(source, protocol=protocol)
    for name in ("shape", "dtype", "device", "data_ptr", "readonly", "size", "nbytes"):
        assert getattr(direct, name) == getattr(ordinary, name), name
    if source.size:
        extents = [i for i, extent in enumerate(direct.shape) if extent > 1]
        assert [direct.strides[i] for i in extents] == [ordinary.strides[i] for i in extents]
    np.testing.assert_array_equal(to_host(direct), source.get())


def test_cupy_negative_strides_are_read_although_its_dlpack_breaks_them():
    source = gpu.cupy().arange(6, dtype="int16")[::-1]
    if _core.peek_capsule(source.__dlpack__(max_version=(1, 0), stream=-1))["strides"] != (-1,):
        with pytest.raises(OverflowError):
            asdlpack(source, protocol="dlpack")
    assert asdlpack(source).strides == (-2,)
    np.testing.assert_array_equal(to_host(asdlpack(source)), source.get())


def test_cupy_current_stream_is_the_token():
    cupy, torch = gpu.cupy(), gpu.torch()
    source = cupy.ones(4)
    stream = torch.cuda.Stream()
    assert asdlpack(source).__cuda_array_interface__["stream"] == 1
    with gpu.cupy_stream(stream):
        assert asdlpack(source).__cuda_array_interface__["stream"] not in (0, 1, 2, None)  # which lives and waits
    with cupy.cuda.Stream.ptds:
        assert asdlpack(source).__cuda_array_interface__["stream"] not in (0, 2, None)  # good on every thread
    assert asdlpack(source).__cuda_array_interface__["stream"] == 1


def test_cupy_subclass_is_read_by_its_protocols():
    cupy = gpu.cupy()

    class Mine(cupy.ndarray):
        pass

    source = cupy.arange(4).view(Mine)
    assert type(source) is Mine
    assert asdlpack(source).protocol == "dlpack"


# --- consumers --------------------------------------------------------------------------------------------------------


def test_every_producer_to_every_consumer(producer, consumer):
    host = values()
    source = producer.make(host)
    tensor = asdlpack(source)
    if producer.immutable and consumer.of_immutable == "refused":
        with pytest.raises((TypeError, BufferError)):
            consumer.take(tensor)
        return
    result = consumer.take(tensor)
    copied = producer.immutable and consumer.of_immutable == "copied"
    assert (consumer.pointer(result) == producer.pointer(source)) is not copied
    if consumer.host is not None:
        np.testing.assert_array_equal(consumer.host(result), host)
    elif hasattr(result, "copy_to_host"):
        np.testing.assert_array_equal(result.copy_to_host(), host)
    else:
        assert tuple(result.shape) == host.shape


def test_strided_views_to_every_consumer(consumer):
    if not consumer.strided:
        pytest.skip(f"{consumer.name} takes dense arrays")
    torch = gpu.torch()
    source = torch.arange(24, dtype=torch.float32, device="cuda").reshape(2, 3, 4).permute(2, 0, 1)
    result = consumer.take(asdlpack(source))
    assert consumer.pointer(result) == source.data_ptr()
    if consumer.host is not None:
        np.testing.assert_array_equal(consumer.host(result), gpu.torch_host(source))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)], ids=str)
def test_unusual_shapes_to_every_consumer(consumer, shape):
    torch = gpu.torch()
    result = consumer.take(asdlpack(torch.zeros(shape, device="cuda")))
    assert tuple(result.shape) == shape


def test_consumers_write_to_the_same_memory():
    torch, cupy = gpu.torch(), gpu.cupy()
    source = cupy.zeros(8, "float32")
    torch.from_dlpack(asdlpack(source)).fill_(3)
    torch.cuda.synchronize()
    np.testing.assert_array_equal(source.get(), np.full(8, 3, "float32"))


def test_cuda_core_buffer_as_producer():
    core = importlib.import_module("cuda.core") if _has("cuda.core.Buffer") else None
    if core is None:
        pytest.skip("cuda.core.Buffer is not there")
    device = core.Device(0)
    device.set_current()
    buffer = device.allocate(64, stream=device.default_stream)
    tensor = asdlpack(buffer)
    assert (tensor.data_ptr, tensor.nbytes, tensor.device) == (int(buffer.handle), 64, "cuda:0")
    before = asdlpack(buffer, copy=True)
    assert before.data_ptr != tensor.data_ptr


def _has(dotted):
    name, _, attribute = dotted.rpartition(".")
    try:
        return hasattr(importlib.import_module(name), attribute)
    except ImportError:
        return False


def test_cuda_core_view_reports_the_layout():
    view = gpu.cuda_core().StridedMemoryView
    source = gpu.cupy().asarray(values()).T
    make = getattr(view, "from_dlpack", view)
    result = make(asdlpack(source), -1)
    assert (result.ptr, tuple(result.shape), result.device_id) == (source.data.ptr, (4, 3, 2), 0)
    assert tuple(result.strides) == (1, 4, 12)
    assert result.is_device_accessible


# --- lifetimes --------------------------------------------------------------------------------------------------------


def _pool(name):
    """(make a block with value v, its pointer) of a framework whose pool hands a freed block out again."""
    if name == "cupy":
        cupy = gpu.cupy()
        return lambda v: cupy.full(BYTES, v, "uint8"), lambda a: a.data.ptr
    torch = gpu.torch()
    return lambda v: torch.full((BYTES,), v, dtype=torch.uint8, device="cuda"), gpu.torch_pointer


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_pool_memory_is_not_reused_while_a_view_lives(name, consumer):
    make, pointer_of = _pool(name)
    source = make(7)
    pointer = pointer_of(source)
    result = consumer.take(asdlpack(source))
    del source
    gc.collect()
    others = [make(9) for _ in range(8)]
    assert pointer not in map(pointer_of, others)
    settle()
    if consumer.host is not None:
        assert (consumer.host(result) == 7).all()
    if consumer.name.startswith("cuda.core"):
        return  # a view of cuda.core's holds no reference to what it was made from by a CUDA array interface
    others = None
    del result
    settle()
    # The control: the pool does hand the block out again once nothing holds it.
    if not consumer.name.startswith("jax"):  # which gives memory back from a thread of its own, later
        assert pointer in [pointer_of(block) for block in [make(1) for _ in range(16)]]


def test_tensor_keeps_the_producer_alone(producer):
    host = values((64, 64))
    source = producer.make(host)
    tensor = asdlpack(source)
    del source
    others = [producer.make(host + 1) for _ in range(8)]
    np.testing.assert_array_equal(to_host(tensor), host)
    del others


def test_unconsumed_capsules_release_the_memory():
    cupy = gpu.cupy()
    make, pointer_of = _pool("cupy")
    source = make(1)
    pointer, before = pointer_of(source), _core.live_counts()
    capsules = [asdlpack(source).__dlpack__(max_version=(1, 0)), asdlpack(source).__dlpack__()]
    del source
    assert pointer not in [pointer_of(make(2)) for _ in range(4)]
    del capsules
    assert _core.live_counts() == before
    assert pointer in [pointer_of(block) for block in [make(3) for _ in range(8)]]
    cupy.cuda.Device().synchronize()


# --- read-only, attributes --------------------------------------------------------------------------------------------


def test_readonly_mark_travels():
    base = gpu.cupy().arange(8, dtype="float32")
    tensor = asdlpack(Interface(base, data=(base.data.ptr, True)))
    assert tensor.readonly
    assert tensor.__cuda_array_interface__["data"] == (base.data.ptr, True)
    assert _core.peek_capsule(tensor.__dlpack__(max_version=(1, 0)))["flags"] & 1
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()


def test_readonly_to_a_writing_consumer_is_copied_or_refused():
    torch = gpu.torch()
    base = gpu.cupy().arange(8, dtype="float32")
    source = Interface(base, data=(base.data.ptr, True))
    assert torch_equal(dlbridge.convert(source, "torch"), base.get())
    assert dlbridge.convert(source, "torch").data_ptr() != base.data.ptr
    with pytest.raises(CopyError):
        dlbridge.convert(source, "torch", copy=False)
    assert torch.cuda.is_available()


def test_jax_arrays_are_readonly_by_their_cuda_array_interface():
    array = PRODUCERS["jax"].make(values()) if gpu.jax() else None
    if not hasattr(array, "__cuda_array_interface__"):
        pytest.skip("this jax has no __cuda_array_interface__")
    assert asdlpack(array, protocol="cuda_array_interface").readonly == array.__cuda_array_interface__["data"][1]


def test_a_cuda_tensor_does_not_look_like_a_host_array(producer):
    tensor = asdlpack(producer.make(values()))
    for name in ("__array_interface__", "__array_struct__"):
        assert not hasattr(tensor, name)
    assert hasattr(tensor, "__cuda_array_interface__")
    with pytest.raises(TypeError):
        memoryview(tensor)
    with pytest.raises(TypeError, match="device='cpu'"):
        np.asarray(tensor)
    assert not hasattr(asdlpack(tensor, device="cpu"), "__cuda_array_interface__")


def test_bfloat16_has_no_cuda_array_interface():
    torch = gpu.torch()
    tensor = asdlpack(torch.ones(3, dtype=torch.bfloat16, device="cuda"))
    assert not hasattr(tensor, "__cuda_array_interface__")
    assert torch.from_dlpack(tensor).dtype is torch.bfloat16


def test_mpi4py_takes_the_tensor_for_device_memory():
    mpi4py = gpu.module("mpi4py")
    mpi4py.rc.initialize = False
    mpi = gpu.module("mpi4py.MPI")
    frombuffer = getattr(mpi, "buffer", getattr(mpi, "memory", None)).frombuffer
    source = gpu.cupy().arange(6, dtype="float32")
    taken = frombuffer(asdlpack(source))
    assert (taken.address, taken.nbytes) == (source.data.ptr, 24)


def test_torch_refusals_on_the_gpu():
    torch = gpu.torch()
    for source, remedy in (
        (torch.ones(3, device="cuda", requires_grad=True), "detach"),
        (torch.ones(3, device="cuda", dtype=torch.complex64).conj(), "resolve_conj"),
        (torch.ones(3, device="cuda", dtype=torch.complex64).conj().imag, "resolve_neg"),
    ):
        with pytest.raises(BufferError, match=remedy):
            asdlpack(source)


def test_cuda_array_interface_of_host_memory_is_refused():
    host = np.ones(4, "float32")
    interface = {"shape": (4,), "typestr": "<f4", "data": (host.ctypes.data, False), "version": 3}
    with pytest.raises(ValueError, match="not CUDA memory"):
        asdlpack(type("Bad", (), {"__cuda_array_interface__": interface})())
