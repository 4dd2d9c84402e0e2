"""Functions of many steps as one kernel each, on a device and where NVRTC is there."""

from __future__ import annotations

import functools

from dlbridge import CudaError
from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ndarray = _native.ndarray

_kernels: dict[Any, Any] = {}  # what was made for a key; None: no kernel can be had


def _by_kernel(key: Any, make: Callable[[], Any], *args: Any, **keywords: Any) -> ndarray | None:
    """What the kernel gives that `make` makes at the first call; None where none can be had: then there are steps."""
    try:
        kernel = _kernels[key]
    except KeyError:
        kernel = _kernels[key] = make()
    if kernel is None:
        return None
    try:
        result: ndarray = kernel(*args, **keywords)
    except CudaError:  # as the steps will say, unless it was the kernel's alone
        return None
    except RuntimeError:  # no NVRTC, or one that is older than the device
        _kernels[key] = None
        return None
    return result


def _takes(x: Any) -> bool:
    """Whether a kernel is for it: an array on a device, and no graph is captured, in which nothing is compiled."""
    return isinstance(x, _native.CudaArray) and not _native.get_current_stream().is_capturing()


def compiled(function: Callable[..., ndarray]) -> Callable[..., ndarray]:
    """The function of arrays, which fuse() can record; step by step on the host, and where no kernel can be had.

    The kernel is compiled at the first call for each combination of dtypes, and kept on disk; not while a graph is
    captured, which takes the steps.
    """

    def make() -> Any:
        from dlbridge.nd._kernels.fusion import fuse

        return fuse(function, kernel_name=f"fused_{function.__name__.lstrip('_')}")

    @functools.wraps(function)
    def call(*args: Any) -> ndarray:
        found = _by_kernel(function, make, *args) if _takes(args[0]) else None
        return function(*args) if found is None else found

    return call


def reduction(
    inputs: str, output: str, value: str, joined: str, result: str, identity: str, name: str, **options: Any
) -> Callable[..., ndarray | None]:
    """A ReductionKernel, called as one; what it gives is None where compiled() would take the steps."""

    def make() -> Any:
        from dlbridge.nd._kernels.reduction import ReductionKernel

        return ReductionKernel(inputs, output, value, joined, result, identity, name, **options)

    def call(x: ndarray, *args: Any, **keywords: Any) -> ndarray | None:
        return _by_kernel(name, make, x, *args, **keywords) if _takes(x) else None

    return call


def clear_caches() -> None:
    """Forgets what was recorded; compiled kernels stay on disk."""
    for kernel in _kernels.values():
        if hasattr(kernel, "clear_cache"):
            kernel.clear_cache()
