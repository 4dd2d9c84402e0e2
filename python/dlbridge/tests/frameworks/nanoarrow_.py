"""nanoarrow. A CArray speaks Arrow's __arrow_c_array__ and nothing else."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import INTEGERS, ArrayType, Framework, Look, spelled

_VALUES = "(nanoarrow.c_array(x).child(0) if nanoarrow.c_array(x).n_children else nanoarrow.c_array(x))"

FRAMEWORK = Framework(
    "nanoarrow",
    "nanoarrow",
    (
        ArrayType(
            "nanoarrow CArray",
            "nanoarrow.c_array({values}, nanoarrow.{dtype}())",
            spelled("{}", INTEGERS) | {"float32": "float32", "float64": "float64"},
            Look("nanoarrow.Array(x).to_pylist()", "x.buffers[1] + x.offset * x.view().buffer(1).itemsize"),
            {"contiguous": "{x}", "zero-size": "{x}", "offset": "{x}[4:]"},
            ("arrow",),
            flat=True,
            readonly=True,
        ),
    ),
    convert="nanoarrow",
    takes={"arrow": "nanoarrow.c_array(source)"},
    look=Look(f"nanoarrow.Array({_VALUES}).to_pylist()", f"{_VALUES}.buffers[1]"),
    only_devices=("cpu",),
)
