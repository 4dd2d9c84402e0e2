"""asdlpack() on the arrays of real frameworks: layouts, dtypes, and what they cannot say."""

import dlbridge
import pytest
from dlbridge import ExchangeError, HostTensor, _core, asdlpack
from dlbridge.tests.conformance._abi import IS_COPIED
from provoke import CUDA, Managed


def floats(tensor):
    return memoryview(tensor).tolist()


# --- NumPy ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda np: np.array(3.0),
        lambda np: np.zeros((0, 3)),
        lambda np: np.arange(6).reshape(2, 3).T,
        lambda np: np.arange(10)[::-3],
        lambda np: np.broadcast_to(np.arange(3), (4, 3)),
        lambda np: np.arange(24).reshape(2, 3, 4)[:, 1:, ::2],
        lambda np: np.ones((1,) * 9 + (2,)),
        lambda np: np.ones((1,) * 64),
        lambda np: np.arange(3).view(type("Sub", (np.ndarray,), {})),
        lambda np: np.arange(3).view(np.recarray),
    ],
    ids=["0-d", "empty", "transposed", "negative", "broadcast", "offset", "10-d", "64-d", "subclass", "recarray"],
)
def test_numpy_layouts(make):
    """Read and given back."""
    np = pytest.importorskip("numpy", reason="NumPy is the oracle")
    source = make(np)
    tensor = asdlpack(source)
    assert isinstance(tensor, HostTensor)
    assert (tensor.shape, tensor.size, tensor.ndim) == (source.shape, source.size, source.ndim)
    assert tensor.readonly == (not source.flags.writeable)
    assert tensor.owner is source
    if source.size:
        assert tensor.data_ptr == source.ctypes.data
        assert all(a == b for a, b, n in zip(tensor.strides, source.strides, source.shape, strict=True) if n > 1)
    assert np.array_equal(np.asarray(tensor), source)


def test_numpy_dtypes_without_a_dlpack_type():
    np = pytest.importorskip("numpy", reason="NumPy is the producer")
    refused = [">i4", ">f8", "M8[ns]", "m8[s]", "U3", "S3", "O", [("x", "f4")], "V4"]
    if np.dtype("longdouble").itemsize > 8:
        refused += ["longdouble", "clongdouble"]
    for dtype in refused:
        with pytest.raises(ExchangeError, match="NumPy dtype '"):
            asdlpack(np.zeros(2, dtype))
    with pytest.raises(ExchangeError, match="opposite byte order.*newbyteorder"):
        asdlpack(np.arange(3, dtype=">i4"))


def test_masked_arrays():
    """Refused with a mask, and read without one."""
    np = pytest.importorskip("numpy", reason="NumPy makes the masked array")
    for mask in ([0, 1, 0], [0, 0, 0]):
        with pytest.raises(ExchangeError, match="MaskedArray with a mask.*filled"):
            asdlpack(np.ma.array([1.0, 2.0, 3.0], mask=mask))
    for protocol in ("dlpack", "array_interface", "buffer"):
        with pytest.raises(ExchangeError, match="MaskedArray with a mask"):
            asdlpack(np.ma.array([1.0, 2.0], mask=[0, 1]), protocol=protocol)
    plain = np.ma.array([1.0, 2.0, 3.0])
    assert plain.mask is np.ma.nomask
    assert floats(asdlpack(plain)) == [1, 2, 3]


def test_misaligned_numpy_arrays():
    """An error by policy, a copy on request."""
    np = pytest.importorskip("numpy", reason="NumPy makes the array")
    source = np.frombuffer(bytes(range(13)), np.uint8)[1:].view(np.float32)
    assert not source.flags.aligned
    with pytest.raises(ExchangeError, match="not aligned to 4 bytes.*copy=True"):
        asdlpack(source)
    copy = asdlpack(source, copy=True)
    assert bytes(memoryview(copy)) == source.tobytes()
    assert copy.data_ptr % 64 == 0


def test_numpy_field_views():
    """A field of a packed record has strides that no element count says."""
    np = pytest.importorskip("numpy", reason="NumPy makes the array")
    source = np.zeros(4, np.dtype([("a", "u1"), ("b", "<f4")]))
    with pytest.raises(ExchangeError, match="5 bytes, not a multiple of the itemsize 4"):
        asdlpack(source["b"])
    assert asdlpack(source["a"]).strides == (5,)
    assert asdlpack(source[:1]["a"]).size == 1


# --- ml_dtypes --------------------------------------------------------------------------------------------------------

ONLY_DLPACK = [r["name"] for r in _core.dtypes() if not r["typestr"] and r["lanes"] == 1 and r["name"] != "complex32"]


@pytest.mark.parametrize("name", ONLY_DLPACK)
def test_ml_dtypes_are_read_by_their_dtype_object(name):
    """Their typestrs (`<V2`, `<f1`) are ambiguous, their types are not."""
    np = pytest.importorskip("numpy", reason="NumPy holds the array")
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes has the dtype")
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"this ml_dtypes has no {name}")
    source = np.array([0, 1, -1, 2]).astype(getattr(ml_dtypes, name))
    tensor = asdlpack(source)
    assert (tensor.dtype, tensor.itemsize, tensor.data_ptr) == (name, source.itemsize, source.ctypes.data)
    assert tensor.dtype == source.dtype
    assert tensor.padded == (tensor.dtype.bits < 8)
    back = dlbridge.convert(tensor, "numpy")
    assert back.dtype == source.dtype
    assert back.tobytes() == source.tobytes()


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_sub_byte_integers_are_refused_by_name(name):
    """DLPack has no dtype of these bits that any consumer reads."""
    np = pytest.importorskip("numpy", reason="NumPy holds the array")
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes has the dtype")
    with pytest.raises(ExchangeError, match=f"NumPy dtype '{name}' has no DLPack type"):
        asdlpack(np.zeros(3, getattr(ml_dtypes, name)))


# --- torch ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch makes the tensor")


def test_torch_states_that_dlpack_cannot_say(torch):
    """The exchange API lets them pass, we do not."""
    cases = [
        (torch.zeros(2, requires_grad=True), r"requires grad.*x.detach\(\)"),
        (torch.zeros(2, requires_grad=True) * 2, r"requires grad.*x.detach\(\)"),
        (torch.zeros(2, dtype=torch.complex64).conj(), r"conj bit.*x.resolve_conj\(\)"),
        (torch.zeros(2, dtype=torch.complex64).conj().imag, r"neg bit.*x.resolve_neg\(\)"),
    ]
    for source, match in cases:
        for protocol in (None, "dlpack"):
            with pytest.raises(ExchangeError, match=match):
                asdlpack(source, protocol=protocol)
    for source in (cases[0][0].detach(), cases[2][0].resolve_conj(), cases[3][0].resolve_neg()):
        assert asdlpack(source).size == 2


def test_torch_layouts(torch):
    base = torch.arange(24).reshape(2, 3, 4)
    for source in (base.permute(2, 0, 1), base[:, 1:], base[0, 0, :1].expand(5), base[..., 0], base[:0], base[0, 0, 0]):
        tensor = asdlpack(source)
        assert tensor.shape == tuple(source.shape)
        assert tensor.size == source.numel()
        if source.numel():
            assert tensor.data_ptr == source.data_ptr()
        assert torch.equal(torch.from_dlpack(tensor), source)


@pytest.mark.filterwarnings("ignore:torch.quantize")
@pytest.mark.parametrize("layout", ["to_sparse", "quantized", "meta"])
def test_torch_layouts_without_an_address_are_refused(torch, layout):
    source = {
        "to_sparse": lambda: torch.eye(2).to_sparse(),
        "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8),
        "meta": lambda: torch.ones(2, device="meta"),
    }[layout]()
    with pytest.raises(BufferError):
        asdlpack(source)


def test_torch_subclasses_and_parameters(torch):
    class Sub(torch.Tensor):
        pass

    source = torch.ones(3).as_subclass(Sub)
    assert asdlpack(source).data_ptr == source.data_ptr()
    negated = torch.zeros(3, dtype=torch.complex64).conj().imag.as_subclass(Sub)
    with pytest.raises(ExchangeError, match="neg bit"):
        asdlpack(negated)  # PyTorch's own __dlpack__ lets it pass
    parameter = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(BufferError):
        asdlpack(parameter)
    assert asdlpack(parameter.detach()).size == 3


def test_torch_dtypes(torch):
    """bfloat16 and float8 come by DLPack, and say what they are."""
    names = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "bool", "uint16", "complex32", "float4_e2m1fn_x2"]
    for name in names:
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        tensor = asdlpack(torch.zeros(4, dtype=torch.uint8).view(dtype))
        assert tensor.dtype == name
        assert tensor.dtype == dtype
        assert tensor.nbytes == 4


def test_torch_two_lane_float4_is_kept_exactly(torch):
    """bits 4, lanes 2."""
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no float4")
    tensor = asdlpack(torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2))
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes, tensor.itemsize) == (17, 4, 2, 1)
    peek = _core.peek_capsule(tensor.__dlpack__(max_version=(1, 0)))
    assert peek["shape"] == (4,)


# --- other frameworks -------------------------------------------------------------------------------------------------


def test_jax_arrays():
    """Their buffer is taken: JAX ignores max_version, and its capsules cannot say read-only."""
    jax = pytest.importorskip("jax", reason="JAX makes the array")

    source = jax.device_put(jax.numpy.arange(6, dtype="float32").reshape(2, 3), jax.devices("cpu")[0])
    tensor = asdlpack(source)
    assert floats(tensor) == [[0, 1, 2], [3, 4, 5]]
    assert tensor.owner is source


@pytest.mark.filterwarnings("ignore:Exporting an unversioned DLPack capsule")
def test_pyarrow_arrays_and_buffers():
    pa = pytest.importorskip("pyarrow", reason="pyarrow makes the array")
    assert floats(asdlpack(pa.array([1, 2, 3], pa.int32()))) == [1, 2, 3]
    buffer = asdlpack(pa.py_buffer(b"abc"))
    assert (buffer.protocol, bytes(memoryview(buffer))) == ("buffer", b"abc")
    with pytest.raises(Exception, match=r"(?i)null"):
        asdlpack(pa.array([1, None]))


def test_the_copied_flag_of_a_producer_is_readable():
    managed = Managed(flags=IS_COPIED, device=CUDA, data=1 << 40)
    assert asdlpack(managed.capsule()).device == "cuda:0"


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16"])
@pytest.mark.parametrize(
    "door",
    [
        asdlpack,
        lambda x: asdlpack(x, protocol="dlpack"),
        lambda x: asdlpack(x, device="cpu"),
        lambda x: asdlpack(dlbridge.convert(x, "numpy")),
        lambda x: dlbridge.nd.asarray(x, device="cpu"),
    ],
    ids=["asdlpack", "asdlpack by dlpack", "asdlpack with a device", "convert", "nd.asarray"],
)
def test_jax_arrays_are_read_only_through_every_door(door, dtype):
    """They are immutable, which JAX's legacy capsules cannot say. Arguments of extensions: test_caster.py."""
    jax = pytest.importorskip("jax", reason="JAX makes the array")
    pytest.importorskip("ml_dtypes", reason="NumPy has bfloat16 from ml_dtypes")
    source = jax.device_put(jax.numpy.ones((2, 3), dtype=dtype), jax.devices("cpu")[0])
    tensor = door(source)
    assert tensor.readonly
    assert tensor.data_ptr == source.unsafe_buffer_pointer()
    assert asdlpack(source, copy=True).readonly is False
