"""User kernels on a real device: what a host compiler in NVRTC's place cannot show."""

import pytest
from dlbridge import nd

np = pytest.importorskip("numpy", reason="the oracle of the kernels")
pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def compiler(tmp_path, monkeypatch):
    from dlbridge.nd._kernels import nvrtc

    monkeypatch.setenv("DLBRIDGE_CACHE_DIR", str(tmp_path))
    try:
        nvrtc.compiler()
    except RuntimeError as error:
        pytest.skip(f"no NVRTC: {str(error).splitlines()[0]}")


def on_device(array):
    return nd.array(array, device="cuda")


LOG = r"""
extern "C" __global__
void log_forward(const float* x, float* y, int size) {
  int tid = blockDim.x * blockIdx.x + threadIdx.x;
  if (tid < size) y[tid] = log(x[tid]);
}
"""


def test_grid_and_block_swapped_run_within_the_limits_and_are_named_beyond():
    kernel = nd.RawKernel(LOG, "log_forward")
    x = on_device(np.random.default_rng(1).random(1000, "f4") + 1)
    y = nd.empty(x.shape, dtype=x.dtype)
    kernel((128,), ((1000 + 127) // 128,), (x, y, 1000))
    np.testing.assert_allclose(nd.asnumpy(y), np.log(nd.asnumpy(x)), rtol=1e-6)
    size = 128 * 1024 + 1
    with pytest.raises(ValueError, match=r"block dimension x is 1025.*1024 at most.*swapped"):
        kernel((128,), ((size + 127) // 128,), (x, y, size))
    assert kernel.num_regs > 0 and kernel.max_threads_per_block >= 256 and kernel.binary_version >= 70


def test_torch_tensors_and_autograd():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    kernel = nd.RawKernel(LOG, "log_forward")

    class Log(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.input = x
            y = torch.empty_like(x)
            kernel(((x.numel() + 127) // 128,), (128,), (x.detach(), y, x.numel()))
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad / ctx.input

    x = (torch.rand(10000, device="cuda") + 1).requires_grad_()
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            stream.wait_stream(torch.cuda.default_stream())
            y = Log.apply(x)
            assert torch.allclose(y, x.log())
            (gradient,) = torch.autograd.grad(y.sum(), x)
            assert torch.allclose(gradient, 1 / x)
        torch.cuda.synchronize()


def test_shared_memory_templates_and_globals():
    module = nd.RawModule(
        code=r"""
        extern "C" __device__ float factor = 3;
        template <class T> __global__ void sum(const T* x, T* out, int n) {
          extern __shared__ char raw[];
          T* part = reinterpret_cast<T*>(raw);
          T total = 0;
          for (int i = threadIdx.x; i < n; i += blockDim.x) total += x[i];
          part[threadIdx.x] = total;
          __syncthreads();
          for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
            __syncthreads();
          }
          if (threadIdx.x == 0) out[0] = part[0] * T(factor);
        }
        """,
        name_expressions=("sum<double>", "sum<int>"),
    )
    x, out = on_device(np.arange(5000.0)), nd.zeros(1)
    kernel = module.get_function("sum<double>")
    kernel.max_dynamic_shared_size_bytes = 64 * 1024
    kernel((1,), (256,), (x, out, 5000), shared_mem=60 * 1024)
    assert float(out[0]) == 3 * 4999 * 2500
    assert module.get_global("factor").mem.size == 4
    with pytest.raises(TypeError, match="8 bytes|4"):
        kernel((1,), (256,), (x, out, np.int64(5000)), shared_mem=2048)


def test_cooperative_launch():
    code = r"""
    #include <cooperative_groups.h>
    extern "C" __global__ void f(int* x, int* y) {
      x[blockIdx.x] = blockIdx.x + 1;
      cooperative_groups::this_grid().sync();
      y[blockIdx.x] = x[(blockIdx.x + 1) % gridDim.x];
    }"""
    x, y = nd.zeros(8, "int32"), nd.zeros(8, "int32")
    kernel = nd.RawKernel(code, "f", enable_cooperative_groups=True)
    try:
        kernel((8,), (1,), (x, y))
    except RuntimeError as error:
        if "cannot open source file" in str(error):
            pytest.skip("CUDA's headers are not installed")
        raise
    assert y.tolist() == [2, 3, 4, 5, 6, 7, 8, 1]


def test_launches_are_captured():
    kernel = nd.RawKernel('extern "C" __global__ void f(int* x) { x[threadIdx.x] += 1; }', "f")
    x = nd.zeros(32, "int32")
    stream = nd.cuda.Stream(non_blocking=True)
    with stream:
        kernel((1,), (32,), (x,))
        stream.begin_capture()
        kernel((1,), (32,), (x,))
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch(stream)
    assert nd.asnumpy(x).tolist() == [4] * 32


@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "float32", "float64", "complex64"])
def test_elementwise_and_reduction(dtype):
    rng = np.random.default_rng(3)
    base = rng.integers(1, 5, (37, 64, 50)).astype(dtype)
    x = on_device(base)
    kernel = nd.ElementwiseKernel("T x, T y", "T z", "z = x * y + T(1)", f"axpy_{dtype}")
    for a, b, a_host, b_host in (
        (x, x, base, base),
        (x, x[0], base, base[0]),
        (x[:, :, :1], x, base[:, :, :1], base),
        (x.T, x.T, base.T, base.T),
        (x[::2, ::-1], x[::2], base[::2, ::-1], base[::2]),
        (x.ravel()[1:], x.ravel()[:-1], base.ravel()[1:], base.ravel()[:-1]),
    ):
        np.testing.assert_array_equal(nd.asnumpy(kernel(a, b)), (a_host * b_host + 1).astype(dtype))
    if dtype in ("int8", "float16"):
        return
    total = nd.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", f"total_{dtype}")
    for axis in (None, 0, 1, 2, (0, 2), (0, 1)):
        np.testing.assert_allclose(nd.asnumpy(total(x, axis=axis)), base.sum(axis=axis), rtol=1e-5)
    tall = rng.integers(0, 3, (300_000, 8)).astype(dtype)
    np.testing.assert_allclose(nd.asnumpy(total(on_device(tall), axis=0)), tall.sum(0), rtol=1e-5)
    np.testing.assert_allclose(nd.asnumpy(total(on_device(tall.T.copy()), axis=1)), tall.sum(0), rtol=1e-5)


def test_fused_functions_agree_with_the_function_itself():
    def function(x, y, alpha):
        z = nd.where(x > y, nd.exp(-x) * alpha, nd.tanh(y) ** 2) // 0.1
        return z, (z % 3).sum(axis=0), nd.hypot(x, y) / x.max()

    rng = np.random.default_rng(5)
    x, y = on_device(rng.random((200, 300), "f4") + 1), on_device(rng.random(300, "f4") + 1)
    for got, want in zip(nd.fuse(function)(x, y, 2.5), function(x, y, 2.5), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(nd.asnumpy(got), nd.asnumpy(want), rtol=2e-5)


def test_indices_past_32_bits():
    n = 2**31 + 5
    free, _ = nd.cuda.Device().mem_info
    if free < 4 * n:
        pytest.skip("the device has no room for 2^32 bytes")
    kernel = nd.ElementwiseKernel("T x", "T y", "y = x + T(i % 7)", "long_loop")
    x = nd.zeros(n, "int8")
    y = kernel(x, x)
    ends = nd.asnumpy(y[-3:])
    assert ends.tolist() == [(n - 3 + k) % 7 for k in range(3)]
    assert int(nd.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", "long_sum")(x)) == sum(
        k * ((n - k - 1) // 7 + 1) for k in range(7)
    )
