"""Which allocator arrays use, adapters for those of other libraries, and page-locked host arrays."""

from __future__ import annotations

import threading
from typing import Any

from dlbridge.nd import _native


def get_default_memory_pool() -> Any:
    """The MemoryPool that arrays use where no other allocator was set."""
    return _native._default_pool


def get_default_pinned_memory_pool() -> Any:
    """The MemoryPool of alloc_pinned_memory() and empty_pinned()."""
    return _native._default_pinned_pool


# ---- which allocator

_thread = threading.local()


def get_allocator() -> Any:
    """What the calling thread's arrays take their memory from: what was given to using_allocator() or set_allocator(),
    else the malloc of the default pool."""
    entered = getattr(_thread, "entered", None)
    if entered:
        return entered[-1][0]
    installed = _native.installed_allocator()
    return installed[0] if installed is not None else _native._default_pool.malloc


class using_allocator:
    """`with using_allocator(f):` sets an allocator for the calling thread; see set_allocator()."""

    def __init__(self, allocator: Any = None) -> None:
        self._pair = (allocator, _native.resolve_allocator(allocator))

    def __enter__(self) -> using_allocator:
        entered = _thread.__dict__.setdefault("entered", [])
        entered.append(self._pair)
        _native.set_thread_allocator(self._pair[1])
        return self

    def __exit__(self, *_: object) -> None:
        entered = _thread.entered
        entered.pop()
        _native.set_thread_allocator(entered[-1][1] if entered else None)


# ---- allocators of other libraries


def rmm_allocator(size: int) -> Any:
    """Memory of RMM's current device resource, for `set_allocator(nd.cuda.rmm_allocator)`.

    It is allocated and given back in the order of the current stream, whatever stream used it in between.
    """
    import rmm

    buffer = rmm.DeviceBuffer(size=size, stream=_rmm_stream(_native.get_current_stream()))
    memory = _native.UnownedMemory(buffer.ptr, buffer.size, buffer, _native.current_device())
    return _native.MemoryPointer(memory, 0)


def _rmm_stream(stream: Any) -> Any:
    """RMM's name for a stream of ours."""
    from rmm.pylibrmm import stream as streams

    if stream.ptr == 0:
        return streams.DEFAULT_STREAM
    try:
        return streams.Stream(stream)
    except TypeError:  # older ones take the streams of CuPy and Numba only
        raise ImportError(
            "rmm_allocator(): this RMM takes no stream with __cuda_stream__. Update rmm, or use the default stream"
        ) from None


_torch_allocator: Any = None


def use_torch_allocator() -> None:
    """From here on arrays take device memory from PyTorch's caching allocator, so that both share one pool.

    What `torch.cuda.memory_allocated()` and `torch.cuda.empty_cache()` say holds for the arrays, too.
    """
    global _torch_allocator
    if _torch_allocator is None:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError(
                "use_torch_allocator(): this PyTorch has no CUDA. Install one that has, or keep the default MemoryPool"
            )
        torch.cuda.init()  # type: ignore[no-untyped-call, unused-ignore]  # PyTorch may be absent, or untyped there
        _torch_allocator = _native.PythonFunctionAllocator(
            torch.cuda.caching_allocator_alloc, _free_in_torch, with_stream=True
        )
    _native.set_allocator(_torch_allocator.malloc)


def _free_in_torch(pointer: int, device: int) -> None:
    import torch

    torch.cuda.caching_allocator_delete(pointer)  # type: ignore[no-untyped-call, unused-ignore]


# ---- page-locked host memory


def alloc_pinned_memory(size: int) -> Any:
    """Page-locked host memory, as a buffer of at least `size` bytes: copies to and from a device run by themselves."""
    return _native.PinnedMemory(size)


def empty_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    """A NumPy array in page-locked memory, uninitialised.

    The memory goes back to a pool with the last array that uses it: keep one until running copies have ended.
    """
    import numpy as np

    kind = np.dtype(_numpy_dtype(dtype))
    dims = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    count = 1
    for extent in dims:
        count *= extent
    if count < 0:
        raise ValueError(f"empty_pinned(): shape is {dims}; no extent may be negative")
    return np.ndarray(dims, kind, buffer=_native.PinnedMemory(count * kind.itemsize), order=order)


def zeros_pinned(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """A NumPy array of zeros in page-locked memory."""
    array = empty_pinned(shape, dtype, order)
    array.fill(0)
    return array


def empty_like_pinned(a: Any, dtype: Any = None, order: str = "K") -> Any:
    """As empty_pinned(), with the shape and the dtype of an array."""
    fortran = order == "F" or (order in "KA" and _is_fortran(a))
    return empty_pinned(a.shape, a.dtype if dtype is None else dtype, "F" if fortran else "C")


def zeros_like_pinned(a: Any, dtype: Any = None, order: str = "K") -> Any:
    """As zeros_pinned(), with the shape and the dtype of an array."""
    array = empty_like_pinned(a, dtype, order)
    array.fill(0)
    return array


def _is_fortran(a: Any) -> bool:
    flags = getattr(a, "flags", None)
    return flags is not None and bool(flags["F_CONTIGUOUS"]) and not bool(flags["C_CONTIGUOUS"])


def _numpy_dtype(dtype: Any) -> Any:
    """NumPy's spelling of any dtype; ours print as NumPy's names."""
    return str(dtype) if type(dtype).__module__.partition(".")[0] == "dlbridge" else dtype
