"""Every CuPy snippet of "Interoperability" (CuPy's user guide, Chinese, newer), with dlbridge.nd in CuPy's place.

What it has in common with the English one is in cupy_interoperability.py; here is what is new or was changed.
"""

from __future__ import annotations

import sys

import dlbridge.nd as cupy
from snippets import Script, torch_device, torch_with_cuda

script = Script("CuPy interoperability guide, newer")


@script.snippet("PyTorch: from_dlpack() of objects, both ways", "torch")
def torch_objects(torch):
    tx1 = torch.randn(1, 2, 3, 4).to(torch_device())
    cx = cupy.from_dlpack(tx1)
    tx2 = torch.from_dlpack(cx)
    assert tx1.data_ptr() == cx.data.ptr == tx2.data_ptr()


@script.snippet("DLPack: a capsule given to from_dlpack()")
def capsule_to_from_dlpack():
    cx1 = cupy.random.randn(1, 2, 3, 4).astype(cupy.float32)
    dx = cx1.toDlpack()
    cx2 = cupy.from_dlpack(dx)
    assert cx1.data.ptr == cx2.data.ptr


@script.snippet("PyTorch: RawKernels inside an autograd.Function", "torch", gpus=1)
def raw_kernel_in_autograd(torch):
    torch_with_cuda(torch)
    forward_kernel = cupy.RawKernel(
        r"""
        extern "C" __global__
        void cupy_custom_kernel_fwd(const float* x, float* y, int size) {
            int tid = blockDim.x * blockIdx.x + threadIdx.x;
            if (tid < size)
                y[tid] = log(x[tid]);
        }
        """,
        "cupy_custom_kernel_fwd",
    )
    backward_kernel = cupy.RawKernel(
        r"""
        extern "C" __global__
        void cupy_custom_kernel_bwd(const float* x, float* gy, float* gx, int size) {
            int tid = blockDim.x * blockIdx.x + threadIdx.x;
            if (tid < size)
                gx[tid] = gy[tid] / x[tid];
        }
        """,
        "cupy_custom_kernel_bwd",
    )

    class CuPyLog(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.input = x
            cupy_x = cupy.ascontiguousarray(cupy.from_dlpack(x.detach()))
            cupy_y = cupy.empty(cupy_x.shape, dtype=cupy_x.dtype)
            x_size = cupy_x.size
            bs = 128
            # The document has the two exchanged, and so works for small arrays only.
            grid, block = ((x_size + bs - 1) // bs,), (bs,)
            forward_kernel(grid, block, (cupy_x, cupy_y, x_size))
            return torch.from_dlpack(cupy_y)

        @staticmethod
        def backward(ctx, grad_y):
            cupy_input = cupy.from_dlpack(ctx.input.detach()).ravel()
            cupy_grad_y = cupy.from_dlpack(grad_y.detach()).ravel()
            cupy_grad_x = cupy.zeros(cupy_grad_y.shape, dtype=cupy_grad_y.dtype)
            gy_size = cupy_grad_y.size
            bs = 128
            grid, block = ((gy_size + bs - 1) // bs,), (bs,)
            backward_kernel(grid, block, (cupy_input, cupy_grad_y, cupy_grad_x, gy_size))
            return torch.from_dlpack(cupy_grad_x)

    x = torch.rand(1000, device="cuda", requires_grad=True)
    y = CuPyLog.apply(x)
    torch.testing.assert_close(y, torch.log(x))
    y.sum().backward()
    torch.testing.assert_close(x.grad, 1 / x.detach())


@script.snippet("Device memory: an array over a foreign pointer", gpus=1)
def unowned_memory():
    owner = cupy.zeros(256, dtype=cupy.float32)
    mem = cupy.cuda.UnownedMemory(owner.data.ptr, 1024, owner=owner)
    memptr = cupy.cuda.MemoryPointer(mem, offset=0)
    arr = cupy.ndarray((16, 16), dtype=cupy.float32, memptr=memptr)
    assert arr.nbytes <= arr.data.mem.size
    arr += 1
    assert owner.sum().item() == 256


@script.snippet("Device memory: the pointer of an array")
def pointer():
    arr = cupy.arange(10)
    print(arr.data.ptr, arr.nbytes)
    assert arr.data.ptr == arr.data_ptr and arr.nbytes == 80


@script.snippet("Streams: PyTorch's as the current one", "torch", gpus=1)
def external_stream(torch):
    torch_with_cuda(torch)
    s = torch.cuda.Stream()
    with torch.cuda.stream(s), cupy.cuda.ExternalStream(s.cuda_stream):
        one = torch.arange(10, device="cuda")
        other = cupy.arange(10)
        assert cupy.cuda.get_current_stream().ptr == s.cuda_stream
    assert one.tolist() == other.tolist()


@script.snippet("Streams: the pointer of ours", gpus=1)
def stream_pointer():
    s = cupy.cuda.Stream()
    print(s.ptr, s.device_id)
    assert s.ptr != 0 and s.device_id == 0


if __name__ == "__main__":
    sys.exit(script.main())
