"""OpenVINO: tensors that share the memory of a NumPy array."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import BOOL, FLOATS, INTEGERS, ArrayType, Framework, Look, spelled

_LOOK = Look("x.data.ravel().tolist()", "x.data.ctypes.data", "x.data.__setitem__((0,) * x.data.ndim, value)")

FRAMEWORK = Framework(
    "openvino",
    "openvino",
    (
        ArrayType(
            "openvino",
            "openvino.Tensor(numpy.array({values}, {dtype}).reshape({shape})).data",
            spelled("'{}'", BOOL | INTEGERS | FLOATS),
            Look("x.ravel().tolist()", "x.ctypes.data", "x.__setitem__((0,) * x.ndim, value)"),
            protocols=("dlpack", "array_interface", "buffer"),
        ),
    ),
    convert="openvino",
    look=_LOOK,
    imports=("numpy",),
    only_devices=("cpu",),
)
