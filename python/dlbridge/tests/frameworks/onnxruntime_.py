"""ONNX Runtime. An OrtValue is an input: sessions do not write to it."""

from __future__ import annotations

from typing import Any

from dlbridge import _core
from dlbridge.tests.frameworks._base import BOOL, FLOATS, INTEGERS, ArrayType, Framework, Look, spelled


def _read(value: Any) -> Any:
    if value.element_type() == 16:  # bfloat16: numpy() does not know it
        return _core.convert(value, "numpy").astype("float32").tolist()
    return value.numpy().tolist()


_LOOK = Look(_read, "x.data_ptr()")

FRAMEWORK = Framework(
    "onnxruntime",
    "onnxruntime",
    (
        ArrayType(
            "onnxruntime",
            # From shape and type: such a value owns its memory, unlike one over a NumPy array.
            "(lambda value, a: (value.update_inplace(a), value)[1])("
            "onnxruntime.OrtValue.ortvalue_from_shape_and_type({shape}, {dtype}), "
            "numpy.array({values}, {dtype}).reshape({shape}))",
            spelled("numpy.{}", BOOL | INTEGERS | FLOATS),
            _LOOK,
            arrives={"bool": "uint8"},  # its capsules cannot be told from those of uint8
        ),
    ),
    convert="onnxruntime",
    takes={"dlpack": "onnxruntime.OrtValue.from_dlpack(source)"},
    look=_LOOK,
    imports=("numpy",),
    only_devices=("cpu",),
)
