"""Polars. A Series speaks Arrow; its bool is packed to bits, which no tensor shares."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import FLOATS, INTEGERS, ArrayType, Framework, Look, spelled

_DTYPES = {
    name: text.replace("uint", "UInt").replace("int", "Int").replace("float", "Float")
    for name, text in spelled("polars.{}", INTEGERS | FLOATS).items()
}

FRAMEWORK = Framework(
    "polars",
    "polars",
    (
        ArrayType(
            "polars Series",
            "polars.Series({values}, dtype={dtype})",
            _DTYPES,
            Look("x.to_list()", "x.to_numpy(allow_copy=False).ctypes.data"),
            {"contiguous": "{x}", "zero-size": "{x}", "offset": "{x}[4:]"},
            ("arrow",),
            flat=True,
            readonly=True,
        ),
    ),
    convert="polars",
    takes={"arrow": "polars.Series(source) if source.ndim == 1 else polars.Series(source).ext.storage()"},
    look=Look("x.to_numpy().ravel().tolist()", "x.to_numpy(allow_copy=False).ctypes.data"),
    imports=("numpy",),
    only_devices=("cpu",),
)
