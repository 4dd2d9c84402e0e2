"""MPI's datatypes of dtypes and layouts, and back."""

from __future__ import annotations

import functools
from typing import Any

from dlbridge import _core
from dlbridge._reach import reach

# The names in mpi4py's MPI. What a library lacks is DATATYPE_NULL there: FLOAT16_T in some, BFLOAT16_T in all so far.
_NAMES = {
    "bool": "C_BOOL",
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}_T" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "FLOAT16_T",
    "bfloat16": "BFLOAT16_T",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}
_OWN = "dlbridge."  # what the names of our datatypes begin with


@functools.cache
def mpi() -> Any:
    """mpi4py's module, whose import starts MPI. ImportError where mpi4py, or a library for it, is not there."""
    from mpi4py import MPI

    return MPI


def native(dtype: str) -> Any:
    """The library's own datatype, with which its own reductions work; None where it has none."""
    found = getattr(mpi(), _NAMES.get(dtype, ""), None)
    return None if found is None or found == mpi().DATATYPE_NULL else found


@functools.cache
def element(dtype: str, itemsize: int) -> Any:
    """The datatype of an element, our own where the library has none."""
    found = native(dtype)
    if found is None:
        found = mpi().BYTE.Create_contiguous(itemsize).Commit()
        found.Set_name(_OWN + dtype)
    return found


def dtype_of(datatype: Any) -> str:
    """The dtype of what `element()` gave. KeyError for another."""
    name: str = datatype.Get_name()
    if name.startswith(_OWN):
        return name.removeprefix(_OWN)
    for dtype in _NAMES:
        if datatype == native(dtype):
            return dtype
    raise KeyError(name)


def strided(tensor: _core.Tensor) -> tuple[Any, int, int]:
    """The datatype of a whole array as it lies, to be freed, and the bytes from its first element that it reaches."""
    datatype, made = element(str(tensor.dtype), tensor.itemsize), []
    for extent, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        datatype = datatype.Create_hvector(extent, 1, stride)
        made.append(datatype)
    low, high = reach(tensor.itemsize, tensor.shape, tensor.strides)
    shifted = datatype.Create_hindexed([1], [-low])  # MPI counts from the lowest byte
    whole = shifted.Create_resized(0, high - low).Commit()
    for one in (*made, shifted):
        one.Free()  # what is made of them lives
    return whole, low, high
