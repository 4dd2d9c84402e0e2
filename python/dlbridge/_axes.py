"""What the axes of an array are, where its framework says so: for convert(layout='CHW')."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _pillow(image: Any) -> str:
    return "HWC" if len(image.getbands()) > 1 else "HW"


def _gpu_mat(matrix: Any) -> str:
    return "HWC" if matrix.channels() > 1 else "HW"


def _dali(tensor: Any) -> str:
    return str(tensor.layout())


def _xarray(array: Any) -> str:
    return "".join(array.dims) if all(isinstance(dim, str) and len(dim) == 1 for dim in array.dims) else ""


_SOURCES: tuple[tuple[str, tuple[str, ...], Callable[[Any], str]], ...] = (
    ("PIL.Image", ("Image",), _pillow),
    ("cv2", ("cuda_GpuMat",), _gpu_mat),
    ("nvidia.dali.tensors", ("TensorCPU", "TensorGPU"), _dali),
    ("xarray", ("DataArray",), _xarray),
)


def axes_of(array: object) -> str:
    """A letter for each axis, such as 'HWC'; empty where the framework says none. It imports nothing."""
    for module, names, axes in _SOURCES:
        loaded = sys.modules.get(module)
        if any(isinstance(array, getattr(loaded, name, ())) for name in names):
            return axes(array)
    return ""
