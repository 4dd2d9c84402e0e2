"""TensorFlow. Its tensors are dense and immutable."""

from __future__ import annotations

from typing import Any

from dlbridge import _core
from dlbridge.tests.frameworks._base import NUMPY_NATIVE, ArrayType, Framework, Look, spelled


def _pointer(x: Any) -> int:
    import tensorflow

    fields = _core.peek_capsule(tensorflow.experimental.dlpack.to_dlpack(x))
    return int(fields["data"] + fields["byte_offset"])


_LOOK = Look(
    "(x.numpy().astype('float32') if x.dtype == tensorflow.bfloat16 else x.numpy()).ravel().tolist()", _pointer
)

FRAMEWORK = Framework(
    "tensorflow",
    "tensorflow",
    (
        ArrayType(
            "tensorflow",
            # identity: constant() keeps scalars in a cache, where they outlive their last reference.
            "tensorflow.identity(tensorflow.constant({values}, {dtype}, {shape}))",
            spelled("tensorflow.{}", NUMPY_NATIVE | {"bfloat16"}),
            _LOOK,
            protocols=("dlpack", "buffer"),
        ),
    ),
    convert="tensorflow",
    takes={"dlpack": "tensorflow.experimental.dlpack.from_dlpack(source.__dlpack__())"},  # a capsule, not an object
    look=_LOOK,
    distribution="tensorflow-cpu",
)
