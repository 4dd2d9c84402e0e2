"""RMM: device buffers, as a producer. From its documentation: it was not installed where this was written."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import ArrayType, Framework, Look

FRAMEWORK = Framework(
    "rmm",
    "rmm",
    (
        ArrayType(
            "rmm DeviceBuffer",
            "rmm.DeviceBuffer.to_device(bytes({values}))",
            {"uint8": ""},
            Look("list(x.tobytes())", "x.ptr"),
            {"contiguous": "{x}"},
            ("cuda_array_interface",),
            ("cuda",),
            flat=True,
        ),
    ),
    devices={"cuda": "True"},
)
