"""dlbridge.nd, this package's own ndarray: a producer and a consumer like any other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dlbridge.tests._cases import values_of
from dlbridge.tests.frameworks._base import ANY_VIEW, BFLOAT16, NUMPY_NATIVE, ArrayType, Framework, Look, spelled


def _delayed(dlbridge: ModuleType, device: str, hold: Callable[[int], None]) -> tuple[Any, Any]:
    """An array of nd's remembers the stream that writes it: it may be handed over anywhere."""
    nd = dlbridge.nd
    stream = nd.cuda.Stream(non_blocking=True)
    with stream:
        values = nd.array(values_of("float32", 12), dtype="float32", device=device).reshape(3, 4)
        x = nd.empty_like(values)
        x[...] = values
        x.fill(0)
        stream.synchronize()  # the kernels are loaded, the memory is there
        hold(stream.ptr)
        x[...] = values
    return x, contextlib.nullcontext()


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
            delayed=_delayed,
        ),
    ),
    convert="nd",
    takes={"dlpack": "dlbridge.nd.from_dlpack(source)"},
    look=_LOOK,
    devices={"cuda": "dlbridge.nd.cuda.is_available()"},
)
