"""Every snippet of "Basics of CuPy", with dlbridge.nd in CuPy's place."""

from __future__ import annotations

import sys

import dlbridge.nd as cp
import numpy as np
from snippets import Script

script = Script("Basics of CuPy")


@script.snippet("basics of ndarray: the norm on both sides")
def norms():
    x_gpu = cp.array([1, 2, 3])
    l2_gpu = cp.linalg.norm(x_gpu)
    l2_cpu = np.linalg.norm(np.array([1, 2, 3]))
    assert abs(float(l2_gpu) - l2_cpu) < 1e-15


@script.snippet("current device: arrays on two GPUs", gpus=2)
def two_devices():
    x_on_gpu0 = cp.array([1, 2, 3, 4, 5])
    with cp.cuda.Device(1):
        x_on_gpu1 = cp.array([1, 2, 3, 4, 5])
    assert (x_on_gpu0.device.id, x_on_gpu1.device.id) == (0, 1)
    assert repr(x_on_gpu1.device) == "<CUDA Device 1>"


@script.snippet("current device: the device of an array", gpus=1)
def device_of_an_array():
    with cp.cuda.Device(0):
        x = cp.array([1, 2, 3, 4, 5])
    print(repr(x.device))
    assert repr(x.device) == "<CUDA Device 0>"


@script.snippet("data transfer: to the current device")
def to_the_device():
    x_cpu = np.array([1, 2, 3])
    x_gpu = cp.asarray(x_cpu)
    assert cp.asarray(x_gpu) is x_gpu
    assert cp.array(x_gpu, copy=True) is not x_gpu
    assert x_gpu.tolist() == [1, 2, 3]


@script.snippet("data transfer: between two GPUs", gpus=2)
def between_devices():
    with cp.cuda.Device(0):
        x_gpu_0 = cp.ndarray([1, 2, 3])  # an uninitialised array of shape (1, 2, 3)
        x_gpu_0[...] = 7
    with cp.cuda.Device(1):
        x_gpu_1 = cp.asarray(x_gpu_0, device="cuda")
    assert x_gpu_1.device.id == 1 and float(x_gpu_1.sum()) == 42


@script.snippet("data transfer: an uninitialised array")
def uninitialised():
    assert cp.ndarray([1, 2, 3]).shape == (1, 2, 3)


@script.snippet("data transfer: to the host")
def to_the_host():
    x_gpu = cp.array([1, 2, 3])
    for x_cpu in (cp.asnumpy(x_gpu), x_gpu.get()):
        assert isinstance(x_cpu, np.ndarray) and x_cpu.tolist() == [1, 2, 3]


@script.snippet("streams: the current one", gpus=1)
def current_stream():
    null = cp.cuda.get_current_stream()
    assert null.ptr == 0
    with cp.cuda.Stream() as stream:
        assert cp.cuda.get_current_stream().ptr == stream.ptr
    assert cp.cuda.get_current_stream().ptr == 0


@script.snippet("agnostic code: softplus of either array")
def softplus_of_both():
    def softplus(x):
        xp = cp.get_array_module(x)
        print("Using:", xp.__name__)
        return xp.maximum(0, x) + xp.log1p(xp.exp(-abs(x)))

    values = [-2.0, 0.0, 3.0]
    of_ours, of_numpys = softplus(cp.array(values)), softplus(np.array(values))
    assert isinstance(of_ours, cp.ndarray) and isinstance(of_numpys, np.ndarray)
    np.testing.assert_allclose(cp.asnumpy(of_ours), of_numpys, rtol=1e-14)


@script.snippet("agnostic code: both sides in one expression")
def mixed_operands():
    x_cpu = np.array([1, 2, 3])
    y_cpu = np.array([4, 5, 6])
    assert (x_cpu + y_cpu).tolist() == [5, 7, 9]
    x_gpu = cp.asarray(x_cpu)
    try:
        x_gpu + y_cpu
    except TypeError as error:
        print(f"TypeError: {error}")
        assert str(error) == "Unsupported type <class 'numpy.ndarray'>"
    else:
        raise AssertionError("an array of NumPy was added silently")
    assert (cp.asnumpy(x_gpu) + y_cpu).tolist() == [5, 7, 9]
    assert (cp.asnumpy(x_gpu) + cp.asnumpy(y_cpu)).tolist() == [5, 7, 9]
    assert (x_gpu + cp.asarray(y_cpu)).tolist() == [5, 7, 9]
    assert (cp.asarray(x_gpu) + cp.asarray(y_cpu)).tolist() == [5, 7, 9]


if __name__ == "__main__":
    sys.exit(script.main())
