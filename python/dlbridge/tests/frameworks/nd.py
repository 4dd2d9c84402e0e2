"""dlbridge.nd, this package's own ndarray: a producer and a consumer like any other."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import ANY_VIEW, BFLOAT16, NUMPY_NATIVE, ArrayType, Framework, Look, spelled

_LOOK = Look("x.tolist()", "x.data_ptr", "x.__setitem__((0,) * x.ndim, value)", "x.readonly")

FRAMEWORK = Framework(
    "nd",
    "dlbridge.nd",
    (
        ArrayType(
            "nd",
            "dlbridge.nd.array({values}, dtype={dtype}, device={device}).reshape({shape})",
            spelled("'{}'", NUMPY_NATIVE | BFLOAT16),
            _LOOK,
            ANY_VIEW,
            ("dlpack",),
            ("cpu", "cuda"),
        ),
    ),
    convert="nd",
    takes={"dlpack": "dlbridge.nd.from_dlpack(source)"},
    look=_LOOK,
    devices={"cuda": "dlbridge.nd.cuda.is_available()"},
)
