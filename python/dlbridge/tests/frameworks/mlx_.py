"""MLX. Its arrays own their memory, so what it takes is copied."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import BOOL, INTEGERS, ArrayType, Framework, Look, spelled

_DTYPES = spelled("mlx.core.{}", INTEGERS | {"float16", "float32", "complex64"}) | dict.fromkeys(BOOL, "mlx.core.bool_")
_READ = "x.tolist()"

FRAMEWORK = Framework(
    "mlx",
    "mlx.core",
    (
        ArrayType(
            "mlx",
            "mlx.core.array({values}, {dtype}).reshape({shape})",
            _DTYPES,
            Look(_READ),
            protocols=("dlpack", "buffer"),
        ),
    ),
    convert="mlx",
    takes={"buffer": "mlx.core.array(memoryview(source))"},
    look=Look(_READ),
    own_copy=lambda tensor: "its arrays own their memory",
    only_devices=("cpu",),
)
