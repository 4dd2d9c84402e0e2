"""CuPy."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from dlbridge.tests._cases import values_of
from dlbridge.tests.frameworks._base import ANY_VIEW, NUMPY_NATIVE, ArrayType, Framework, Look, spelled


def _delayed(cupy: ModuleType, device: str, hold: Callable[[int], None]) -> tuple[Any, Any]:
    """CuPy: an array is handed over on the stream that writes it."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        values = cupy.asarray(values_of("float32", 12), "float32").reshape(3, 4)
        x = cupy.empty_like(values)
        x[...] = values
        x.fill(0)
        cupy.cuda.Device().synchronize()  # the kernels are loaded, the memory is there
        hold(stream.ptr)
        x[...] = values
    return x, stream


_LOOK = Look("x.get().ravel().tolist()", "x.data.ptr", "x.__setitem__((0,) * x.ndim, value)")

FRAMEWORK = Framework(
    "cupy",
    "cupy",
    (
        ArrayType(
            "cupy",
            "cupy.array({values}, {dtype}).reshape({shape})",
            spelled("'{}'", NUMPY_NATIVE),
            _LOOK,
            ANY_VIEW,
            ("dlpack", "cuda_array_interface"),
            ("cuda",),
            delayed=_delayed,
        ),
    ),
    convert="cupy",
    takes={"dlpack": "cupy.from_dlpack(source)", "cuda_array_interface": "cupy.asarray(source)"},
    look=_LOOK,
    devices={"cuda": "cupy.cuda.is_available()"},
    only_devices=("cuda",),
)
