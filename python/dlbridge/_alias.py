"""The same memory under another dtype, shape or read-only mark, without a copy.

Some consumers cannot name a dtype, or refuse read-only memory that they would never write to. An alias is a
producer like any other, and holds what it shows, so lifetimes need no extra care.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any, cast

from dlbridge import _core

# DLPack 1.3, DLManagedTensorVersioned.flags
_READ_ONLY = 1 << 0
_SUBBYTE_PADDED = 1 << 2
_VERSION = (1, 1)  # the first with the padding flag; consumers accept any minor of major 1

_HOST_DEVICE = (1, 0)  # kDLCPU
_CARRIERS: dict[int, str] = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}

_CAPSULE_NAME = b"dltensor_versioned"  # a capsule keeps the pointer: it has to live as long as the process
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


# DLManagedTensorVersioned of dlpack.h 1.x in the struct module's native layout, which pads as C does: version, context,
# deleter, flags; then its DLTensor: data, device, ndim, dtype, shape, strides, byte offset.
_MANAGED_TENSOR = "@II P P Q P ii i BBH P P Q"


class HostAlias:
    """A DLPack producer over host memory that `owner` keeps alive.

    The managed struct lives in this object and its deleter is NULL, which DLPack allows; whoever consumes the
    capsule has to hold this object, and asdlpack() does (it is `Tensor.owner`).
    """

    def __init__(
        self,
        owner: object,
        data_ptr: int,
        dtype: str,
        shape: tuple[int, ...],
        strides_elems: tuple[int, ...],
        readonly: bool,
        padded: bool,
    ) -> None:
        self.owner = owner
        row = dtype_row(dtype)
        ndim = len(shape)
        self._dims = (ctypes.c_int64 * (2 * ndim))(*shape, *strides_elems)
        dims_ptr = ctypes.addressof(self._dims)
        flags = (_READ_ONLY if readonly else 0) | (_SUBBYTE_PADDED if padded else 0)
        element = (row["code"], row["bits"], row["lanes"])
        extents = (dims_ptr, dims_ptr + 8 * ndim) if ndim else (0, 0)
        fields = (*_VERSION, 0, 0, flags, data_ptr, *_HOST_DEVICE, ndim, *element, *extents, 0)
        self._managed = ctypes.create_string_buffer(struct.pack(_MANAGED_TENSOR, *fields))

    def __dlpack__(self, **_: object) -> object:
        return _new_capsule(ctypes.addressof(self._managed), _CAPSULE_NAME, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _HOST_DEVICE


class CudaAlias:
    """Producer of a ``__cuda_array_interface__`` over memory that `owner` keeps alive."""

    __slots__ = ("__cuda_array_interface__", "owner")

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = interface


def dtype_row(name: str) -> Any:
    """The row of the dtype table with this name; ValueError where there is none."""
    for row in _core.dtypes():
        if row["name"] == name:
            return row
    raise ValueError(f"dlbridge has no dtype {name!r}")


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a dense row-major tensor."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return tuple(strides)


def host_view(
    tensor: _core.Tensor,
    *,
    dtype: str | None = None,
    shape: tuple[int, ...] | None = None,
    readonly: bool | None = None,
    padded: bool | None = None,
) -> _core.HostTensor:
    """`tensor`'s host memory under another description, without a copy.

    What is not given stays; a `shape` makes it row-major. The caller vouches that the bytes suffice.
    """
    if shape is None:
        shape = tensor.shape
        strides = tuple(stride_bytes // tensor.itemsize for stride_bytes in tensor.strides)
    else:
        strides = row_major_strides(shape)
    alias = HostAlias(
        tensor,
        tensor.data_ptr,
        dtype or str(tensor.dtype),
        shape,
        strides,
        tensor.readonly if readonly is None else readonly,
        tensor.padded if padded is None else padded,
    )
    return cast(_core.HostTensor, _core.asdlpack(alias, protocol="dlpack"))


def as_integers(tensor: _core.Tensor) -> _core.HostTensor:
    """A host tensor's elements as the unsigned integers of the same width: every consumer can name those."""
    return host_view(tensor, dtype=_CARRIERS[tensor.itemsize], padded=False)


def as_bytes(tensor: _core.Tensor) -> _core.HostTensor:
    """The bytes of a dense row-major host tensor as a one-dimensional uint8 tensor."""
    return host_view(tensor, dtype="uint8", shape=(tensor.nbytes,), padded=False)


def without_readonly_mark(tensor: _core.Tensor) -> _core.Tensor:
    """`tensor` as if it were writable, for consumers that never write; a copy where no protocol can say that.

    A legacy DLPack capsule cannot carry the mark and so may not be made from a read-only tensor (DLPack 1.0); a
    consumer of immutable arrays that only reads legacy capsules would lose nothing by it.
    """
    if not tensor.readonly:
        return tensor
    if tensor.device.type == "cpu":
        return host_view(tensor, readonly=False)
    interface = dict(getattr(tensor, "__cuda_array_interface__", ()))
    if not interface:
        return _core.asdlpack(tensor, copy=True)
    interface["data"] = (tensor.data_ptr, False)
    return _core.asdlpack(CudaAlias(tensor, interface), protocol="cuda_array_interface")
