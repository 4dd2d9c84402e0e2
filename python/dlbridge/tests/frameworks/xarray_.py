"""xarray. A DataArray offers no protocol itself; its column of data does."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import ANY_VIEW, NUMPY_NATIVE, ArrayType, Framework, Look, spelled

_NUMPY = "numpy.array({values}, {dtype}).reshape({shape})"

FRAMEWORK = Framework(
    "xarray",
    "xarray",
    (
        ArrayType(
            "xarray",
            _NUMPY,
            spelled("'{}'", NUMPY_NATIVE),
            Look("x.ravel().tolist()", "x.ctypes.data", "x.__setitem__((0,) * x.ndim, value)"),
            {layout: f"xarray.DataArray({view}).data" for layout, view in ANY_VIEW.items()},
            ("dlpack", "array_interface", "buffer"),
        ),
    ),
    convert="xarray",
    look=Look("x.data.ravel().tolist()", "x.data.ctypes.data", "x.data.__setitem__((0,) * x.ndim, value)"),
    imports=("numpy",),
    only_devices=("cpu",),
)
