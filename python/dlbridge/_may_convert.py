"""Implicit conversion of an extension function's argument, where the function asks for it (dlbridge/pybind11.h)."""

from __future__ import annotations

import importlib
from typing import Any, Literal

from dlbridge import _core


def _numpy_dtype(numpy: Any, name: str) -> Any:
    try:
        return numpy.dtype(name)
    except TypeError:  # bfloat16 and its kin: ml_dtypes registers them
        return numpy.dtype(getattr(importlib.import_module("ml_dtypes"), name))


def _cast_on_host(tensor: _core.Tensor, dtype: str, order: Literal["C", "F", "K"]) -> _core.Tensor:
    """A dense copy of another dtype, by NumPy's "same_kind" rule: float64 to float32 passes, float to int does not."""
    numpy = importlib.import_module("numpy")
    array = numpy.asarray(_core.to_numpy(tensor))
    target = _numpy_dtype(numpy, dtype)
    if not numpy.can_cast(array.dtype, target, casting="same_kind"):
        raise TypeError(
            f"{tensor.dtype} is not cast to {dtype} without being asked, by NumPy's 'same_kind' rule. Cast it first: "
            f"a.astype('{dtype}')"
        )
    return _core.asdlpack(array.astype(target, order=order))


def copied(source: Any) -> _core.Tensor:
    """A copy of what cannot be read as it is: numbers of the other byte order, or at a misaligned address."""
    return _core.asdlpack(source, copy=True)


def adapt(tensor: _core.Tensor, dtype: str | None, device: str | None, order: str) -> _core.Tensor:
    """A copy of `tensor` with the dtype, on the device and in the order ("C", "F" or "A", any) that are asked for.

    What cannot be converted stays as it is: the caller checks the result as it has checked the original.
    Raises TypeError where NumPy's "same_kind" rule forbids the cast.
    """
    moved = tensor
    if device is not None and tensor.device.type != device:
        moved = _core.asdlpack(tensor, device=device)
    recast = dtype is not None and moved.dtype != dtype
    if isinstance(moved, _core.HostTensor) and (recast or order == "F"):
        return _cast_on_host(moved, dtype or str(moved.dtype), "K" if order == "A" else "F" if order == "F" else "C")
    return moved if moved is not tensor else _core.asdlpack(tensor, copy=True)
