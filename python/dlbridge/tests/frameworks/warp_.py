"""NVIDIA Warp, on the CPU and on CUDA."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import BOOL, FLOATS, INTEGERS, ArrayType, Framework, Look, spelled

_LOOK = Look("x.numpy().ravel().tolist()", "x.ptr or 0")

FRAMEWORK = Framework(
    "warp",
    "warp",
    (
        ArrayType(
            "warp",
            "warp.array(numpy.array({values}, '{dtype}').reshape({shape}), dtype=warp.{dtype}, device={device})",
            spelled("{}", BOOL | INTEGERS | FLOATS),
            _LOOK,
            {"contiguous": "{x}", "zero-size": "{x}", "strided": "{x}[:, ::2]", "offset": "{x}[4:]"},
            devices=("cpu", "cuda"),
        ),
    ),
    convert="warp",
    takes={"dlpack": "warp.from_dlpack(source)"},
    look=_LOOK,
    imports=("numpy",),
    setup="warp.init()",
    devices={"cuda": "warp.is_cuda_available()"},
    distribution="warp-lang",
)
