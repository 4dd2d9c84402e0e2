"""Every snippet of pydlpack's README, run by dlbridge: install_as_dlpack() gives `import dlpack` to existing code.

Where the README uses CuPy, dlbridge.nd takes its place.
"""

from __future__ import annotations

import sys

import dlbridge
import dlbridge.nd as cupy
from snippets import Script, torch_device

script = Script("pydlpack's README")


@script.snippet("bytes to PyTorch", "torch")
def bytes_to_torch(torch):
    dlbridge.install_as_dlpack()
    from dlpack import asdlpack

    dl = asdlpack(b"Hello!")
    tensor = torch.from_dlpack(dl)
    print(tensor)
    assert tensor.tolist() == [72, 101, 108, 108, 111, 33]


@script.snippet("a Numba CUDA array to PyTorch, JAX and ours", "numpy", "numba.cuda", "torch", "jax", gpus=1)
def numba_to_all(numpy, cuda, torch, jax):
    dlbridge.install_as_dlpack()
    from dlpack import asdlpack

    arr = cuda.to_device(numpy.array([[1, 2], [3, 4]]))
    dl = asdlpack(arr)
    print(torch.from_dlpack(dl), cupy.from_dlpack(dl))
    assert torch.from_dlpack(dl).data_ptr() == cupy.from_dlpack(dl).data.ptr
    if torch_device() in {device.platform.replace("gpu", "cuda") for device in jax.devices()}:
        print(jax.numpy.from_dlpack(dl))


@script.snippet("one of our arrays to PyTorch and back, through asdlpack()", "torch")
def ours_to_all(torch):
    x = cupy.array([[1, 2], [3, 4]])
    dl = dlbridge.asdlpack(x)
    assert torch.from_dlpack(dl).data_ptr() == cupy.from_dlpack(dl).data.ptr == x.data.ptr


@script.snippet("dlpack.tests.run()")
def self_test():
    dlbridge.install_as_dlpack()
    import dlpack.tests

    results = dlpack.tests.run(only=["stdlib", "numpy", "nd"])  # run() takes all that is installed
    assert results.exit_code == 0


if __name__ == "__main__":
    sys.exit(script.main())
