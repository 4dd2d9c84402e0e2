"""JAX. Its slices are copies, so its arrays are always dense."""

from __future__ import annotations

import importlib
from typing import Any

from dlbridge import _core
from dlbridge.tests.frameworks._base import NUMPY_NATIVE, ArrayType, Framework, Look, spelled

_LOOK = Look(
    "numpy.asarray(x).astype(x.dtype if x.dtype.kind != 'V' else 'float32').ravel().tolist()",
    "x.unsafe_buffer_pointer()",
)


def _narrows(tensor: _core.Tensor) -> str:
    jax: Any = importlib.import_module("jax")
    wide = tensor.dtype.bits in (64, 128) and tensor.dtype != "complex64"
    return "jax narrows 64-bit types while jax_enable_x64 is off" if wide and not jax.config.jax_enable_x64 else ""


FRAMEWORK = Framework(
    "jax",
    "jax",
    (
        ArrayType(
            "jax",
            # array() copies: device_put() alone may share the memory of NumPy, and in 0.4.30 has no may_alias yet
            "jax.device_put(jax.numpy.array("
            "numpy.array({values}, {dtype}).reshape({shape})), jax.devices({device})[0])",
            {
                **spelled("'{}'", NUMPY_NATIVE),
                **spelled("jax.numpy.{}", ("bfloat16", "float8_e4m3fn", "float8_e5m2")),
            },
            _LOOK,
            devices=("cpu", "cuda"),
        ),
    ),
    convert="jax",
    takes={"dlpack": "jax.dlpack.from_dlpack(source)"},
    look=_LOOK,
    imports=("numpy", "jax.numpy"),
    devices={"cuda": "jax.devices('cuda')"},
    context="(jax.enable_x64 if hasattr(jax, 'enable_x64') else jax.experimental.enable_x64)(True)",
    own_copy=_narrows,
)
