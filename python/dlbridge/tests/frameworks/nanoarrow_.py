"""nanoarrow. A CArray speaks Arrow's __arrow_c_array__ and nothing else."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import INTEGERS, ArrayType, Framework, Look, spelled

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
    takes={"arrow": "nanoarrow.c_array(source)"},
    look=Look(
        "nanoarrow.Array(x.child(0) if x.n_children else x).to_pylist()",
        "(x.child(0) if x.n_children else x).buffers[1]",
    ),
    only_devices=("cpu",),
)
