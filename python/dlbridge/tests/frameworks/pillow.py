"""Pillow. It makes fresh bytes at every access of __array_interface__, so that there is no pointer to compare."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import ArrayType, Framework, Look

FRAMEWORK = Framework(
    "pillow",
    "PIL.Image",
    (
        ArrayType(
            "pillow",
            "PIL.Image.frombytes('L', {shape}[::-1], bytes({values}))",
            {"uint8": ""},
            Look("list(x.tobytes())"),
            {"contiguous": "{x}"},
            ("array_interface",),
            readonly=True,
        ),
    ),
    distribution="pillow",
)
