"""Devices, streams, events, graphs and memory of CUDA. Nothing here touches the driver before it is used."""

from __future__ import annotations

from dlbridge.nd._native import BaseMemory as BaseMemory
from dlbridge.nd._native import BaseStream as BaseStream
from dlbridge.nd._native import (
    Event,
    ExternalStream,
    Graph,
    ManagedMemory,
    Memory,
    MemoryAsyncPool,
    MemoryPointer,
    MemoryPool,
    PinnedMemory,
    PythonFunctionAllocator,
    Stream,
    UnownedMemory,
    alloc,
    get_current_stream,
    get_elapsed_time,
    malloc_async,
    malloc_managed,
    reset_allocator,
    set_allocator,
)
from dlbridge.nd._native import cuda_is_available as is_available
from dlbridge.nd._native import device_count as device_count

from . import nvtx, runtime
from ._device import Device, can_access_peer, enable_peer_access
from ._memory import (
    alloc_pinned_memory,
    empty_like_pinned,
    empty_pinned,
    get_allocator,
    get_default_memory_pool,
    get_default_pinned_memory_pool,
    rmm_allocator,
    use_torch_allocator,
    using_allocator,
    zeros_like_pinned,
    zeros_pinned,
)
from ._timing import benchmark, profile

__all__ = [
    "Device",
    "Event",
    "ExternalStream",
    "Graph",
    "ManagedMemory",
    "Memory",
    "MemoryAsyncPool",
    "MemoryPointer",
    "MemoryPool",
    "PinnedMemory",
    "PythonFunctionAllocator",
    "Stream",
    "UnownedMemory",
    "alloc",
    "alloc_pinned_memory",
    "benchmark",
    "can_access_peer",
    "device_count",
    "empty_like_pinned",
    "empty_pinned",
    "enable_peer_access",
    "get_allocator",
    "get_current_stream",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "get_elapsed_time",
    "is_available",
    "malloc_async",
    "malloc_managed",
    "nvtx",
    "profile",
    "reset_allocator",
    "rmm_allocator",
    "runtime",
    "set_allocator",
    "use_torch_allocator",
    "using_allocator",
    "zeros_like_pinned",
    "zeros_pinned",
]
