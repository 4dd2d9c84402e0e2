"""The GPU frameworks that the tests exchange with: how each makes, reads and points at an array. Not a test itself."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from dlbridge import _core

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take three quarters of the GPU

GPU = _core.cuda_info()
needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not GPU["available"], reason=f"no GPU: {GPU['reason']}")]
needs_two_gpus = pytest.mark.skipif(GPU["device_count"] < 2, reason="needs two GPUs")


def module(name: str) -> Any:
    """Imports a framework, or skips the test by its name."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:
        return pytest.skip(f"{name} cannot be imported: {error}")


def torch() -> Any:
    found = module("torch")
    if not found.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return found


def cupy() -> Any:
    return module("cupy")


def numba_cuda() -> Any:
    found = module("numba.cuda")
    if not found.is_available():
        pytest.skip("numba.cuda sees no GPU")
    return found


def jax() -> Any:
    found = module("jax")
    try:
        found.devices("cuda")
    except RuntimeError as error:
        pytest.skip(f"jax sees no GPU: {error}")
    return found


def cuda_core() -> Any:
    """The module that has StridedMemoryView, which moved when cuda.core left its experimental phase."""
    for name in ("cuda.core.utils", "cuda.core.experimental.utils"):
        try:
            found = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(found, "StridedMemoryView"):
            return found
    return pytest.skip("cuda.core.utils.StridedMemoryView is not there")


class CudaStream:
    """A stream by the protocol of cuda.core, __cuda_stream__."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def cupy_stream(stream: Any) -> Any:
    """A context manager that makes a torch stream CuPy's current one, too."""
    streams = cupy().cuda
    if hasattr(streams.Stream, "from_external"):
        return streams.Stream.from_external(CudaStream(stream.cuda_stream))
    return streams.ExternalStream(stream.cuda_stream)


def cai_pointer(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])


def jax_pointer(array: Any) -> int:
    return int(array.unsafe_buffer_pointer())


def torch_pointer(array: Any) -> int:
    return int(array.data_ptr())


def torch_host(array: Any) -> Any:
    return array.detach().cpu().numpy()


def jax_host(array: Any) -> Any:
    return importlib.import_module("numpy").asarray(array)


@dataclass(frozen=True)
class Producer:
    """`make` turns a dense NumPy array into one on the current GPU; `strided` says that it has views with strides,
    `immutable` that nobody may write to it."""

    name: str
    load: Callable[[], Any]
    make: Callable[[Any], Any]
    pointer: Callable[[Any], int]
    host: Callable[[Any], Any]
    dtypes: tuple[str, ...]
    strided: bool = True
    immutable: bool = False


_INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
NUMPY_DTYPES = ("bool", *_INTEGERS, "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128")
_JAX = ("bool", *_INTEGERS, "float16", "float32", "complex64", "bfloat16", "float8_e4m3fn", "float8_e5m2")

PRODUCERS = {
    row.name: row
    for row in (
        Producer(
            "torch",
            torch,
            lambda a: torch().from_numpy(a).cuda(),
            torch_pointer,
            torch_host,
            (*NUMPY_DTYPES, "bfloat16", "float8_e4m3fn", "float8_e5m2"),
        ),
        Producer("cupy", cupy, lambda a: cupy().asarray(a), cai_pointer, lambda a: a.get(), NUMPY_DTYPES),
        Producer(
            "numba",
            numba_cuda,
            lambda a: numba_cuda().to_device(a),
            cai_pointer,
            lambda a: a.copy_to_host(),
            NUMPY_DTYPES,
        ),
        Producer(
            "jax",
            jax,
            lambda a: jax().device_put(a, jax().devices("cuda")[0]).block_until_ready(),
            jax_pointer,
            jax_host,
            _JAX,
            strided=False,
            immutable=True,
        ),
    )
}


@dataclass(frozen=True)
class Consumer:
    """`take` turns a dlbridge tensor on the GPU into the framework's own object over the same memory.

    `of_immutable` says what becomes of memory that nobody may write to: DLPack's flag says so to whoever asks for it.
    """

    name: str
    load: Callable[[], Any]
    take: Callable[[Any], Any]
    pointer: Callable[[Any], int]
    host: Callable[[Any], Any] | None
    strided: bool = True
    of_immutable: str = "shared"


def _convert(name: str) -> Callable[[Any], Any]:
    return lambda tensor: _core.convert(tensor, name)


def _view(function: str) -> Callable[[Any], Any]:
    def take(tensor: Any) -> Any:
        view = cuda_core().StridedMemoryView
        # -1: cuda.core asks for no synchronisation; the memory is what is compared here.
        return getattr(view, function)(tensor, -1) if hasattr(view, function) else view(tensor, -1)

    return take


def _view_pointer(view: Any) -> int:
    return int(view.ptr)


CONSUMERS = {
    row.name: row
    for row in (
        Consumer("torch from_dlpack", torch, lambda t: torch().from_dlpack(t), torch_pointer, torch_host),
        Consumer("torch exchange API", torch, _convert("torch"), torch_pointer, torch_host, of_immutable="copied"),
        Consumer(
            "torch CAI",
            torch,
            lambda t: torch().as_tensor(t, device="cuda"),
            torch_pointer,
            torch_host,
            of_immutable="refused",
        ),
        Consumer("cupy from_dlpack", cupy, lambda t: cupy().from_dlpack(t), cai_pointer, lambda a: a.get()),
        Consumer("cupy CAI", cupy, lambda t: cupy().asarray(t), cai_pointer, lambda a: a.get()),
        Consumer("cupy convert", cupy, _convert("cupy"), cai_pointer, lambda a: a.get(), of_immutable="copied"),
        Consumer("numba CAI", numba_cuda, lambda t: numba_cuda().as_cuda_array(t), cai_pointer, None),
        Consumer(  # asks for a legacy capsule, which has no flags
            "jax from_dlpack",
            jax,
            lambda t: jax().dlpack.from_dlpack(t),
            jax_pointer,
            jax_host,
            strided=False,
            of_immutable="refused",
        ),
        Consumer("jax convert", jax, _convert("jax"), jax_pointer, jax_host, strided=False),
        Consumer("cuda.core DLPack", cuda_core, _view("from_dlpack"), _view_pointer, None),
        Consumer("cuda.core CAI", cuda_core, _view("from_cuda_array_interface"), _view_pointer, None),
        Consumer(
            "tvm_ffi exchange API",
            lambda: module("tvm_ffi"),
            lambda t: module("tvm_ffi").from_dlpack(t),
            torch_pointer,
            None,
        ),
    )
}


# --- small helpers of the tests ---------------------------------------------------------------------------------------


def values(shape: tuple[int, ...] = (2, 3, 4), dtype: str = "float32") -> Any:
    np = importlib.import_module("numpy")
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def to_host(tensor: Any) -> Any:
    """What the tensor holds, by our own copy to the host."""
    return importlib.import_module("numpy").asarray(_core.asdlpack(tensor, device="cpu"))


def torch_equal(tensor: Any, expected: Any) -> bool:
    return bool(importlib.import_module("numpy").array_equal(torch_host(tensor), expected))


def settle() -> None:
    """Waits until what was dropped is gone."""
    gc.collect()
    if "torch" in sys.modules:
        importlib.import_module("torch").cuda.synchronize()


class Interface:
    """A producer of the CUDA Array Interface alone, over another object's memory."""

    def __init__(self, base: Any, **changes: Any) -> None:
        self.base = base
        self.__cuda_array_interface__ = {**base.__cuda_array_interface__, **changes}


class OnlyArrow:
    """A producer of Arrow's device interface alone."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __arrow_c_device_array__(self, requested_schema: object = None, **arguments: Any) -> object:
        return self.tensor.__arrow_c_device_array__(requested_schema, **arguments)


class OnlyDLPack:
    """A producer of DLPack alone."""

    def __init__(self, base: Any) -> None:
        self.base = base

    def __dlpack__(self, **arguments: Any) -> object:
        return self.base.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.base.__dlpack_device__()
