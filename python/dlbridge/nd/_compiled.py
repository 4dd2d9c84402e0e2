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

_fused: dict[Callable[..., ndarray], Any] = {}  # None: no kernel can be had


def compiled(function: Callable[..., ndarray]) -> Callable[..., ndarray]:
    """The function of arrays, which fuse() can record; step by step on the host, and where no kernel can be had.

    The kernel is compiled at the first call for each combination of dtypes, and kept on disk; not while a graph is
    captured, which takes the steps.
    """

    @functools.wraps(function)
    def call(*args: Any) -> ndarray:
        if not isinstance(args[0], _native.CudaArray) or _native.get_current_stream().is_capturing():
            return function(*args)
        try:
            fused = _fused[function]
        except KeyError:
            from dlbridge.nd._kernels.fusion import fuse

            name = f"fused_{function.__name__.lstrip('_')}"
            fused = _fused[function] = fuse(function, kernel_name=name)
        if fused is not None:
            try:
                return fused(*args)
            except CudaError:  # as the steps will say, unless it was the kernel's alone
                pass
            except RuntimeError:  # no NVRTC, or one that is older than the device
                _fused[function] = None
        return function(*args)

    return call


def clear_caches() -> None:
    """Forgets what was recorded; compiled kernels stay on disk."""
    for fused in _fused.values():
        if fused is not None:
            fused.clear_cache()
