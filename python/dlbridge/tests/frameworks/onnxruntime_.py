"""ONNX Runtime. An OrtValue is an input: sessions do not write to it."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from dlbridge import _core
from dlbridge.tests.frameworks._base import FLOATS, INTEGERS, ArrayType, Framework, Look, spelled

_NOT_NUMPYS = range(16, 21)  # ONNX's numbers of bfloat16 and the float8 types, which numpy() gives as integers, or not


def _read(value: Any) -> Any:
    if value.element_type() in _NOT_NUMPYS:
        return _core.convert(value, "numpy").astype("float32").tolist()
    return value.numpy().tolist()


def _bool_arrives_as() -> str:
    """Until 1.31 the capsules of bool could not be told from those of uint8."""
    try:
        version = importlib.metadata.version("onnxruntime")
    except importlib.metadata.PackageNotFoundError:
        return "bool"
    return "uint8" if [int(part) for part in version.split(".")[:2]] < [1, 32] else "bool"


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
            spelled("numpy.{}", INTEGERS | FLOATS) | {"bool": "numpy.bool_"},
            _LOOK,
            arrives={"bool": _bool_arrives_as()},
        ),
    ),
    convert="onnxruntime",
    takes={"dlpack": "onnxruntime.OrtValue.from_dlpack(source)"},
    look=_LOOK,
    imports=("numpy",),
    only_devices=("cpu",),
)
