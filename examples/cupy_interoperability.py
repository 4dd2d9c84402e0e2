"""Every CuPy snippet of "Interoperability" (CuPy's user guide, English), with dlbridge.nd in CuPy's place."""

from __future__ import annotations

import sys

import dlbridge.nd as cupy
from snippets import Script, Skip, needs_mpi_for_devices, tensorflow_on, torch_device, torch_with_cuda

script = Script("CuPy interoperability guide")


@script.snippet("NumPy: __array_ufunc__ and __array_function__", "numpy")
def numpy_functions(numpy):
    arr = cupy.random.randn(1, 2, 3, 4).astype(cupy.float32)
    result = numpy.sum(arr)
    print(type(result))
    assert isinstance(result, cupy.ndarray)
    assert isinstance(numpy.exp(arr), cupy.ndarray)


@script.snippet("Numba: a kernel on our arrays", "numba.cuda", gpus=1)
def numba_kernel(cuda):
    @cuda.jit
    def add(x, y, out):
        start = cuda.grid(1)
        stride = cuda.gridsize(1)
        for i in range(start, x.shape[0], stride):
            out[i] = x[i] + y[i]

    a = cupy.arange(10)
    b = a * 2
    out = cupy.zeros_like(a)
    print(out)
    try:
        add[1, 32](a, b, out)
    except AttributeError as error:  # numba-cuda reaches for what newer NumPys have not
        raise Skip(f"this Numba does not fit this NumPy: {error}") from None
    print(out)
    assert out.tolist() == [3 * i for i in range(10)]


@script.snippet("Numba: asarray() of a device array", "numpy", "numba.cuda", gpus=1)
def numba_array(numpy, cuda):
    x = numpy.arange(10)
    x_numba = cuda.to_device(x)
    x_cupy = cupy.asarray(x_numba)
    assert x_cupy.data.ptr == x_numba.device_ctypes_pointer.value
    assert x_cupy.tolist() == x.tolist()


@script.snippet("mpi4py: Allreduce", "mpi4py.MPI")
def mpi(MPI):
    comm = MPI.COMM_WORLD
    size = comm.Get_size()
    sendbuf = cupy.arange(10, dtype="i")
    recvbuf = cupy.empty_like(sendbuf)
    if cupy.cuda.is_available():
        needs_mpi_for_devices(MPI)
        cupy.cuda.get_current_stream().synchronize()  # MPI knows no streams
    comm.Allreduce(sendbuf, recvbuf)
    assert cupy.allclose(recvbuf, sendbuf * size)


@script.snippet("PyTorch: asarray() of a tensor", "torch")
def torch_to_ours(torch):
    a = torch.rand((4, 4), device=torch_device())
    before = a.clone()
    b = cupy.asarray(a)
    b *= b
    print(b)
    assert a.data_ptr() == b.data.ptr
    assert torch.allclose(a, before * before)


@script.snippet("PyTorch: as_tensor() of our array", "torch", gpus=1)
def ours_to_torch(torch):
    torch_with_cuda(torch)
    a = cupy.arange(10)
    b = torch.as_tensor(a, device="cuda")
    b += 3
    print(b, a)
    assert a.__cuda_array_interface__["data"][0] == b.__cuda_array_interface__["data"][0]
    assert a.tolist() == list(range(3, 13))


@script.snippet("PyTorch: DLPack capsules", "torch.utils.dlpack")
def torch_capsules(dlpack):
    import torch

    tx1 = torch.randn(1, 2, 3, 4).to(torch_device())
    dx = dlpack.to_dlpack(tx1)
    cx = cupy.fromDlpack(dx)
    tx2 = dlpack.from_dlpack(cx.toDlpack())
    assert tx1.data_ptr() == cx.data.ptr == tx2.data_ptr()
    assert torch.equal(tx1, tx2)


@script.snippet("pytorch-pfn-extras: PyTorch's memory pool and stream", "torch", gpus=1)
def torch_pool_and_stream(torch):
    torch_with_cuda(torch)
    before = torch.cuda.memory_allocated()
    cupy.cuda.use_torch_allocator()  # ppe.cuda.use_torch_mempool_in_cupy()
    try:
        arr = cupy.arange(10)
        assert torch.cuda.memory_allocated() == before + 512
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), cupy.cuda.ExternalStream(stream.cuda_stream):  # ppe.cuda.stream(stream)
            assert cupy.cuda.get_current_stream().ptr == torch.cuda.current_stream().cuda_stream
            arr += 1
        assert arr.tolist() == list(range(1, 11))
    finally:
        cupy.cuda.reset_allocator()


@script.snippet("RMM: its pool as our allocator", "rmm", gpus=1)
def rmm_pool(rmm):
    try:
        cupy.cuda.set_allocator(cupy.cuda.rmm_allocator)  # rmm.rmm_cupy_allocator then, which made CuPy's objects
        assert cupy.arange(10).sum().item() == 45
        rmm.reinitialize(pool_allocator=True)
        cupy.cuda.set_allocator(cupy.cuda.rmm_allocator)
        assert cupy.ones(1000).sum().item() == 1000
    finally:
        cupy.cuda.reset_allocator()


@script.snippet("DLPack: to a capsule and back")
def capsules():
    cx1 = cupy.random.randn(1, 2, 3, 4).astype(cupy.float32)
    dx = cx1.toDlpack()
    cx2 = cupy.fromDlpack(dx)
    assert cx1.data.ptr == cx2.data.ptr and cupy.array_equal(cx1, cx2)


@script.snippet("TensorFlow: a tensor as our array", "tensorflow")
def tensorflow_to_ours(tf):
    with tf.device(tensorflow_on(tf)):
        a = tf.random.uniform((10,))
    print(a.device)
    cap = tf.experimental.dlpack.to_dlpack(a)
    b = cupy.fromDlpack(cap)
    before = b.copy()
    b *= 3
    print(b, a)
    assert cupy.allclose(b, before * 3)
    assert a.numpy().tolist() == b.tolist()  # the tensor's memory


@script.snippet("TensorFlow: our array as a tensor", "tensorflow")
def ours_to_tensorflow(tf):
    tensorflow_on(tf)
    a = cupy.arange(10)
    cap = a.toDlpack()
    b = tf.experimental.dlpack.from_dlpack(cap)
    print(b.device, b, a)
    assert b.numpy().tolist() == a.tolist()


if __name__ == "__main__":
    sys.exit(script.main())
