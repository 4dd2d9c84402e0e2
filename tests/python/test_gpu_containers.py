"""On a GPU: containers, casts, adapt(), packed numbers and Arrow's device arrays, against NumPy."""

import dlbridge
import gpu_frameworks as gpu
import pytest
from dlbridge import adapt, asdlpack, convert

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

pytestmark = gpu.needs_gpu


def on_gpu(array):
    return isinstance(asdlpack(array), (dlbridge.CudaTensor, dlbridge.nd.CudaArray))


def batch(size=3000):
    """Longer than what one block of a kernel does."""
    x = np.arange(size, dtype=np.float32).reshape(2, -1)
    return {"image": x, "label": [np.arange(size), "cat", x.T[::2]], "empty": np.zeros((0, 3), np.int8)}


def assert_same(seen, expected):
    flat = lambda tree: [tree["image"], tree["label"][0], tree["label"][2], tree["empty"]]  # noqa: E731
    assert seen["label"][1] == "cat"
    for got, wanted in zip(flat(seen), flat(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)


@pytest.mark.parametrize("name", ["torch", "cupy", "jax", "nd"])
def test_a_container_goes_to_the_gpu_and_back(name):
    if name != "nd":
        getattr(gpu, name)()
    there = convert(batch(), name, device="cuda")
    for array in (there["image"], there["label"][0], there["label"][2]):
        assert on_gpu(array)
    assert_same(convert(there, "numpy", device="cpu"), batch())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "complex64"])
def test_a_cast_is_made_where_the_data_is(dtype):
    torch = gpu.torch()
    x = torch.arange(-600, 600, device="cuda", dtype=torch.float32).reshape(30, 40)
    wanted = x.to(getattr(torch, dtype))
    got = convert(x.T, "torch", dtype=dtype)
    assert got.is_cuda and got.dtype == wanted.dtype
    assert torch.equal(got, wanted.T)


def test_like_an_array_on_the_gpu():
    torch = gpu.torch()
    weights = torch.ones(3, dtype=torch.float64, device="cuda")
    got = convert({"a": np.arange(4)}, like=weights, dtype="like")["a"]
    assert got.device == weights.device and got.dtype == torch.float64 and got.tolist() == [0, 1, 2, 3]


def test_the_layout_of_an_image_on_the_gpu():
    torch = gpu.torch()
    image = np.random.default_rng(0).integers(0, 255, (64, 80, 3), np.uint8)
    got = convert(image, "torch", device="cuda", layout="HWC->NCHW", dtype="float32")
    assert got.is_cuda and got.shape == (1, 3, 64, 80)
    np.testing.assert_array_equal(got.cpu().numpy()[0], image.transpose(2, 0, 1).astype(np.float32))
    assert torch.equal(convert(image, "torch", device="cuda").cpu(), torch.from_numpy(image))


def test_results_of_adapt_come_back_to_the_callers_gpu():
    torch = gpu.torch()
    x = torch.arange(6, device="cuda", dtype=torch.float32)
    got = adapt("numpy", device="cpu")(lambda a: {"twice": a * 2})(x)["twice"]
    assert isinstance(got, torch.Tensor) and got.device == x.device
    assert torch.equal(got, 2 * x)


def test_adapt_between_frameworks_on_one_gpu_shares_memory():
    torch, cupy = gpu.torch(), gpu.cupy()
    x = torch.arange(6, device="cuda", dtype=torch.float32)
    seen = []

    @adapt("cupy")
    def double(a):
        assert isinstance(a, cupy.ndarray)
        seen.append(gpu.cai_pointer(a))
        return a * 2

    assert torch.equal(double(x), 2 * x)
    assert seen == [x.data_ptr()]


def test_numpys_functions_need_device_cpu_for_arrays_on_a_gpu():
    x = gpu.torch().ones(3, device="cuda")
    with pytest.raises(dlbridge.ExchangeError):
        adapt("numpy")(np.sum)(x)


@pytest.mark.parametrize("signed", [True, False])
def test_four_bit_numbers_are_packed_where_they_are(signed):
    x = np.random.default_rng(0).integers(-8 if signed else 0, 8, (100, 300)).astype("int8" if signed else "uint8")
    there = dlbridge.nd.asarray(x, device="cuda")
    packed = dlbridge.pack_int4(there)
    assert on_gpu(packed)
    np.testing.assert_array_equal(gpu.to_host(packed), np.asarray(dlbridge.pack_int4(x)))
    back = dlbridge.unpack_int4(packed, signed=signed)
    assert on_gpu(back)
    np.testing.assert_array_equal(gpu.to_host(back), x)


def test_four_bit_floats_are_packed_where_they_are():
    bits = np.random.default_rng(0).integers(0, 16, (10, 300), np.uint8)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    host = bits.view(ml_dtypes.float4_e2m1fn)
    packed = dlbridge.pack_float4(asdlpack(host, device="cuda"))
    assert on_gpu(packed)
    np.testing.assert_array_equal(gpu.to_host(dlbridge.unpack_float4(packed)).view(np.uint8), bits)


@pytest.mark.parametrize("shape", [(5000,), (100, 4, 3), (0,)])
@pytest.mark.parametrize("dtype", ["int8", "float16", "int64", "float64"])
def test_arrow_device_arrays_share_memory(shape, dtype):
    x = dlbridge.nd.asarray(np.arange(np.prod(shape)).reshape(shape).astype(dtype), device="cuda")
    got = asdlpack(gpu.OnlyArrow(x))
    assert on_gpu(got) and got.readonly and got.shape == shape and got.dtype == dtype
    assert got.data_ptr == asdlpack(x).data_ptr or 0 in shape
    np.testing.assert_array_equal(gpu.to_host(got), x.get())


def test_arrow_device_arrays_of_other_libraries_carry_on_what_they_got():
    device = gpu.module("nanoarrow.device")
    x = dlbridge.nd.arange(5000, dtype="float32", device="cuda")
    held = device.c_device_array(gpu.OnlyArrow(x))
    got = asdlpack(held)
    assert on_gpu(got) and got.data_ptr == asdlpack(x).data_ptr
    np.testing.assert_array_equal(gpu.to_host(got), x.get())
