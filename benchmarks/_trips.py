"""The round trips of benchmarks/memory.py: object in, tensor, something out of it, all dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from _peers import Environment
from _timing import Call

Trip = tuple[str, object, Call]  # label, the producer (its reference count must not move), the call


def _bare(e: Environment) -> Iterator[Trip]:
    asdlpack = e.dlbridge.asdlpack
    data = bytearray(b"Hello, bytes!")
    yield "asdlpack(bytearray)", data, lambda: asdlpack(data)
    yield "memoryview(asdlpack(bytearray))", data, lambda: memoryview(asdlpack(data))
    # Nobody takes the capsule: its destructor has to call the deleter.
    yield "capsule dropped unconsumed", data, lambda: asdlpack(data).__dlpack__()
    yield (
        "versioned capsule dropped unconsumed",
        data,
        lambda: asdlpack(data).__dlpack__(max_version=(1, 0)),
    )
    yield (
        "capsule read back by asdlpack",
        data,
        lambda: asdlpack(asdlpack(data).__dlpack__(max_version=(1, 0))),
    )
    yield "asdlpack(bytes, copy=True)", None, lambda: asdlpack(b"Hello, bytes!", copy=True)
    yield "attributes", data, lambda: _attributes(asdlpack(data))
    yield "refusal", data, _refusal(asdlpack)


def _attributes(tensor: Any) -> None:
    _ = tensor.shape, tensor.strides, tensor.dtype, tensor.device, tensor.owner, repr(tensor)


def _refusal(asdlpack: Callable[[object], object]) -> Call:
    class Broken:
        """An array interface whose last key is the wrong one: everything before it was acquired."""

        __array_interface__: ClassVar = {"version": 3, "shape": (2,), "typestr": "<q9", "data": (0, False)}

    broken = Broken()

    def call() -> None:
        try:
            asdlpack(broken)
        except (TypeError, ValueError, BufferError):
            return
        raise AssertionError("the broken array interface was accepted")

    return call


def _numpy(e: Environment) -> Iterator[Trip]:
    asdlpack = e.dlbridge.asdlpack
    x = e.numpy.arange(12, dtype="float32").reshape(3, 4)
    deep = e.numpy.zeros((1,) * 12, dtype="float64")  # more dimensions than a tensor holds inline
    yield "asdlpack(numpy)", x, lambda: asdlpack(x)
    yield "asdlpack(numpy, 12 dimensions)", deep, lambda: asdlpack(deep)
    yield "numpy.from_dlpack(asdlpack(numpy))", x, lambda: e.numpy.from_dlpack(asdlpack(x))
    yield "numpy.asarray(asdlpack(numpy))", x, lambda: e.numpy.asarray(asdlpack(x))
    yield "asdlpack(numpy, copy=True)", x, lambda: asdlpack(x, copy=True)


def _torch(e: Environment) -> Iterator[Trip]:
    asdlpack, convert = e.dlbridge.asdlpack, e.dlbridge.convert
    from_dlpack = e.torch.from_dlpack
    t = e.torch.ones(3, 4)
    yield "asdlpack(torch)", t, lambda: asdlpack(t)
    yield "torch.from_dlpack(asdlpack(torch))", t, lambda: from_dlpack(asdlpack(t))
    if e.get("numpy") is not None:
        x = e.numpy.ones((3, 4), dtype="float32")
        yield 'convert(numpy, "torch")', x, lambda: convert(x, "torch")
        yield 'convert(torch, "numpy")', t, lambda: convert(t, "numpy")


def _gpu(e: Environment) -> Iterator[Trip]:
    asdlpack = e.dlbridge.asdlpack
    t = e.torch_cuda.ones(3, 4, device="cuda")
    yield "asdlpack(torch CUDA)", t, lambda: asdlpack(t)
    yield (
        "torch.from_dlpack(asdlpack(torch CUDA))",
        t,
        lambda: e.torch_cuda.from_dlpack(asdlpack(t)),
    )
    if e.get("cupy") is not None:
        c = e.cupy.ones((3, 4), dtype="float32")
        yield "asdlpack(cupy)", c, lambda: asdlpack(c)
        yield "cupy.asarray(asdlpack(cupy))", c, lambda: e.cupy.asarray(asdlpack(c))


def trips(e: Environment) -> Iterator[Trip]:
    """All the round trips that this environment allows."""
    yield from _bare(e)
    if e.get("numpy") is not None:
        yield from _numpy(e)
    if e.get("torch") is not None:
        yield from _torch(e)
    if e.get("torch_cuda") is not None:
        yield from _gpu(e)
