"""CuPy."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from dlbridge.tests.frameworks._base import ANY_VIEW, NUMPY_NATIVE, ArrayType, Framework, Look, spelled

_LATE = (
    'extern "C" __global__ void late(float* x) { long long t = clock64(); while (clock64() - t < 20000000) {} '
    "int i = threadIdx.x; x[i] = (i + 1) % 3 ? i + 1 : -(i + 1); }"
)


def _delayed(cupy: ModuleType, device: str) -> Any:
    """Values that arrive after some 10 ms, on a stream of their own: a consumer that does not wait sees zeros."""
    x = cupy.zeros((3, 4), "float32")
    late = cupy.RawKernel(_LATE, "late")
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True):
        late((1,), (12,), (x,))
    return x


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
