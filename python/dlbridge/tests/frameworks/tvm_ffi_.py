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


class _FirstElement:
    """A producer of the first element alone: whatever the strides, PyTorch takes it without a copy."""

    def __init__(self, tensor: Any) -> None:
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, "shape": (1,), "strides": None}
        self.owner = tensor


def _write(x: Any, value: Any) -> None:
    tensor = _core.asdlpack(x)  # tvm-ffi itself has no item assignment
    if tensor.device == "cpu":
        a = _as_numpy(x)
        a[(0,) * a.ndim] = value
        return
    reversed_axes = any(stride < 0 for stride in tensor.strides)
    on_device: Any = _core.convert(_FirstElement(tensor) if reversed_axes else tensor, "torch")
    on_device[(0,) * on_device.ndim] = value


_LOOK = Look(_read, "x.data_ptr()", _write)
# tvm-ffi asks nobody on which stream the data is ready: its user orders the stream that it works on, if need be.
_STREAM = "(tvm_ffi.get_raw_stream(tvm_ffi.device('cuda', source.device.id)) or 1)"
_TAKE = f"tvm_ffi.from_dlpack(dlbridge.asdlpack(source, stream={_STREAM} if source.device.type == 'cuda' else None))"
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
    takes={"dlpack": _TAKE},
    look=_LOOK,
    imports=("numpy", "dlbridge"),
    distribution="apache-tvm-ffi",
)
