"""Numba: NumPy arrays on the host, device arrays on CUDA."""

from __future__ import annotations

import importlib
from typing import Any

from dlbridge.tests.frameworks._base import NUMPY_NATIVE, SLICED, ArrayType, Framework, Look, spelled


def _write(x: Any, value: Any) -> None:
    if hasattr(x, "copy_to_device"):  # without a kernel: numba would have to compile one for an item assignment
        import numpy

        x.reshape(x.size)[:1].copy_to_device(numpy.array([value], x.dtype))
        # A view forgets the stream of its array, on which `x` is read next.
        importlib.import_module("numba.cuda").synchronize()
    else:
        x[(0,) * x.ndim] = value


_DEVICE = Look("x.copy_to_host().ravel().tolist()", "x.__cuda_array_interface__['data'][0]")

FRAMEWORK = Framework(
    "numba",
    "numba",
    (
        ArrayType(
            "numba cuda",
            "numba.cuda.to_device(numpy.array({values}, {dtype}).reshape({shape}))",
            spelled("'{}'", NUMPY_NATIVE),
            _DEVICE,
            SLICED,
            ("cuda_array_interface",),
            ("cuda",),
        ),
    ),
    convert="numba",
    takes={"cuda_array_interface": "numba.cuda.as_cuda_array(source)"},
    look=Look(
        "(x.copy_to_host() if hasattr(x, 'copy_to_host') else x).ravel().tolist()",
        "x.ctypes.data if hasattr(x, 'ctypes') else x.__cuda_array_interface__['data'][0]",
        _write,
    ),
    imports=("numpy", "numba.cuda"),
    devices={"cuda": "numba.cuda.is_available()"},
)
