"""PyTorch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from dlbridge.tests.frameworks._base import NUMPY_NATIVE, SLICED, ArrayType, Framework, Look, spelled


def _delayed(torch: ModuleType, device: str) -> Any:
    """Values that arrive after some 10 ms, on a stream of their own: a consumer that does not wait sees zeros."""
    x = torch.zeros((3, 4), device=device)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(20_000_000)
        x.copy_(torch.tensor([n if n % 3 else -n for n in range(1, 13)], device=device).reshape(3, 4))
    return x


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
    devices={"cuda": "torch.cuda.is_available()"},
)
