"""pandas. A Series speaks Arrow, by way of PyArrow; its values speak NumPy's protocols."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import FLOATS, INTEGERS, NUMPY_NATIVE, ArrayType, Framework, Look, spelled

_LOOK = Look("x.to_numpy().ravel().tolist()", "x.to_numpy().ctypes.data")

FRAMEWORK = Framework(
    "pandas",
    "pandas",
    (
        ArrayType(
            "pandas",
            "pandas.Series({values}, dtype={dtype}).to_numpy()",
            spelled("'{}'", NUMPY_NATIVE),
            Look("x.tolist()", "x.ctypes.data", "", "not x.flags.writeable"),
            {"contiguous": "{x}", "zero-size": "{x}", "negative": "{x}[::-1]", "offset": "{x}[4:]"},
            ("dlpack", "array_interface", "buffer"),
            flat=True,
        ),
        ArrayType(
            "pandas Series",
            "pandas.Series({values}, dtype={dtype})",
            spelled("'{}'", INTEGERS | FLOATS),
            Look("x.tolist()", "x.to_numpy().ctypes.data"),
            {"contiguous": "{x}", "zero-size": "{x}", "offset": "{x}[4:]"},
            ("arrow",),
            flat=True,
            readonly=True,
        ),
    ),
    convert="pandas",
    look=_LOOK,
    only_devices=("cpu",),
)
