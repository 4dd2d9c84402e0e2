"""pandas. A Series offers no protocol itself; its values do."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import NUMPY_NATIVE, ArrayType, Framework, Look, spelled

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
    ),
    convert="pandas",
    look=_LOOK,
    only_devices=("cpu",),
)
