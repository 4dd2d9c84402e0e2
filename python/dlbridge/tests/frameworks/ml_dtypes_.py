"""NumPy arrays of the types in ml_dtypes."""

from __future__ import annotations

from dlbridge.tests.frameworks import numpy_
from dlbridge.tests.frameworks._base import ArrayType, Framework, spelled

_DTYPES = spelled("ml_dtypes.{}", ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"))

FRAMEWORK = Framework(
    "ml_dtypes",
    "ml_dtypes",
    # NumPy itself cannot export them by DLPack or as a buffer.
    (ArrayType("ml_dtypes", numpy_.MAKE, _DTYPES, numpy_.LOOK, numpy_.VIEWS, ("array_interface",)),),
    imports=("numpy",),
)
