"""PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from dlbridge.tests._cases import values_of
from dlbridge.tests.frameworks._base import NUMPY_NATIVE, SLICED, ArrayType, Framework, Look, spelled


def _delayed(torch: ModuleType, device: str, hold: Callable[[int], None]) -> tuple[Any, Any]:
    """PyTorch: a tensor is handed over on the stream that writes it."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        values = torch.tensor(values_of("float32", 12), device=device).reshape(3, 4)
        x = torch.ones_like(values).copy_(values).zero_()
        torch.cuda.synchronize()  # the kernels are loaded, the memory is there
        hold(stream.cuda_stream)
        x.copy_(values)
    return x, torch.cuda.stream(stream)


_LOOK = Look(
    "(x.double() if x.is_floating_point() else x).flatten().tolist()",
    "x.data_ptr()",
    "x.__setitem__((0,) * x.ndim, value)",
)

FRAMEWORK = Framework(
    "torch",
    "torch",
    (
        ArrayType(
            "torch",
            "torch.tensor({values}, dtype={dtype}, device={device}).reshape({shape})",
            spelled("torch.{}", NUMPY_NATIVE | {"bfloat16", "float8_e4m3fn", "float8_e5m2"}),
            _LOOK,
            SLICED,
            ("dlpack",),
            ("cpu", "cuda"),
            delayed=_delayed,
        ),
    ),
    convert="torch",
    takes={"dlpack": "torch.from_dlpack(source)", "cuda_array_interface": "torch.as_tensor(source, device='cuda')"},
    look=_LOOK,
    unordered={"cuda_array_interface": "PyTorch does not look at the stream that the interface names"},
    devices={"cuda": "torch.cuda.is_available()"},
)
