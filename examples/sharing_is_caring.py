"""Every snippet of the notebook "Sharing is Caring" with dlbridge.nd for CuPy.

tfdlpack is obsolete: tf.experimental.dlpack takes its place. Without a GPU what can be shared on the host is, with
smaller arrays.
"""

from __future__ import annotations

import sys

import dlbridge.nd as cp
from snippets import Script, tensorflow_on, torch_device, torch_with_cuda

script = Script("Sharing is Caring")
SHAPE = (10_000, 10_000) if cp.cuda.is_available() else (100, 100)


@script.snippet("ours <-> PyTorch", "torch")
def pytorch(torch):
    gpu_arr = cp.random.rand(*SHAPE)
    print("our array's pointer: ", gpu_arr.data.ptr)
    torch_arr = torch.as_tensor(gpu_arr, device=torch_device())
    print("PyTorch's pointer: ", torch_arr.data_ptr())
    cupy_arr = cp.asarray(torch_arr)
    print("our array's pointer: ", cupy_arr.data.ptr)
    assert gpu_arr.data.ptr == torch_arr.data_ptr() == cupy_arr.data.ptr


@script.snippet("Numba CUDA <-> PyTorch, by way of ours", "numpy", "numba.cuda", "torch", gpus=1)
def numba_pytorch(np, cuda, torch):
    torch_with_cuda(torch)
    cpu_arr = np.random.rand(*SHAPE)
    numba_gpu_arr = cuda.to_device(cpu_arr)
    torch_arr_numba = torch.as_tensor(numba_gpu_arr, device="cuda")
    numba_arr_from_torch = cuda.to_device(torch_arr_numba)
    ours = cp.asarray(numba_arr_from_torch)
    assert ours.data.ptr == torch_arr_numba.data_ptr()
    assert bool(cp.allclose(ours[0], cp.asarray(cpu_arr[0])))


@script.snippet("ours <-> TensorFlow", "tensorflow")
def tensorflow(tf):
    tensorflow_on(tf)
    gpu_arr = cp.random.rand(*SHAPE)
    dlpack_arr = gpu_arr.toDlpack()
    tf_tensor = tf.experimental.dlpack.from_dlpack(dlpack_arr)
    print(tf_tensor.device)
    dlpack_capsule = tf.experimental.dlpack.to_dlpack(tf_tensor)
    cupy_arr = cp.fromDlpack(dlpack_capsule)
    assert cupy_arr.data.ptr == gpu_arr.data.ptr


@script.snippet("Numba CUDA <-> TensorFlow", "numpy", "numba.cuda", "tensorflow", gpus=1)
def numba_tensorflow(np, cuda, tf):
    tensorflow_on(tf)
    cpu_arr = np.random.rand(*SHAPE)
    numba_gpu_arr = cuda.to_device(cpu_arr)
    dlpack_arr = cp.asarray(numba_gpu_arr).toDlpack()
    tf_tensor = tf.experimental.dlpack.from_dlpack(dlpack_arr)
    print(tf_tensor.device)
    dlpack_capsule = tf.experimental.dlpack.to_dlpack(tf_tensor)
    numba_arr = cuda.to_device(cp.fromDlpack(dlpack_capsule))
    assert numba_arr.device_ctypes_pointer.value == numba_gpu_arr.device_ctypes_pointer.value


@script.snippet("PyTorch <-> TensorFlow, by way of ours", "torch", "tensorflow")
def pytorch_tensorflow(torch, tf):
    tensorflow_on(tf)
    gpu_arr = torch.rand(*SHAPE).to(torch_device())
    ours = cp.from_dlpack(gpu_arr)
    tf_tensor = tf.experimental.dlpack.from_dlpack(ours.toDlpack())
    print(tf_tensor.device)
    torch_arr = torch.from_dlpack(cp.fromDlpack(tf.experimental.dlpack.to_dlpack(tf_tensor)))
    assert torch_arr.data_ptr() == gpu_arr.data_ptr()


if __name__ == "__main__":
    sys.exit(script.main())
