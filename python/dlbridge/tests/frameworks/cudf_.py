"""cuDF: Series over CUDA memory. From its documentation: it was not installed where this was written."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import INTEGERS, ArrayType, Framework, Look, spelled

_LOOK = Look("x.to_numpy().ravel().tolist()")

FRAMEWORK = Framework(
    "cudf",
    "cudf",
    (
        ArrayType(
            "cudf",
            "cudf.Series({values}, dtype={dtype}).values",
            spelled("'{}'", INTEGERS | {"float32", "float64"}),
            Look("x.get().tolist()", "x.data.ptr"),
            {"contiguous": "{x}", "offset": "{x}[4:]"},
            ("dlpack", "cuda_array_interface"),
            ("cuda",),
            flat=True,
        ),
    ),
    convert="cudf",
    takes={"dlpack": "cudf.from_dlpack(source.__dlpack__(stream=1))"},
    look=_LOOK,
    devices={"cuda": "True"},
    own_copy=lambda tensor: "a DataFrame holds one buffer a column",
    only_devices=("cuda",),
)
