"""tvm-ffi."""

from __future__ import annotations

from typing import Any

from dlbridge import _core
from dlbridge.tests.frameworks._base import ANY_VIEW, BOOL, FLOATS, INTEGERS, ArrayType, Framework, Look, spelled


def _as_numpy(x: Any) -> Any:
    return _core.convert(x, "numpy", device="cpu")


def _read(x: Any) -> Any:
    a = _as_numpy(x)
    return (a.astype("float32") if a.dtype.kind == "V" else a).tolist()


def _write(x: Any, value: Any) -> None:
    on_host = _core.asdlpack(x).device == "cpu"
    a: Any = _core.convert(x, "numpy" if on_host else "torch")  # tvm-ffi itself has no item assignment
    a[(0,) * a.ndim] = value


_LOOK = Look(_read, "x.data_ptr()", _write)
_NUMPY = "numpy.array({values}, {dtype}).reshape({shape})"

FRAMEWORK = Framework(
    "tvm_ffi",
    "tvm_ffi",
    (
        ArrayType(
            "tvm_ffi",
            _NUMPY,
            spelled("'{}'", BOOL | INTEGERS | FLOATS),
            _LOOK,
            {layout: f"tvm_ffi.from_dlpack({view})" for layout, view in ANY_VIEW.items()},
        ),
    ),
    convert="tvm_ffi",
    takes={"dlpack": "tvm_ffi.from_dlpack(source)"},
    look=_LOOK,
    imports=("numpy",),
    distribution="apache-tvm-ffi",
)
