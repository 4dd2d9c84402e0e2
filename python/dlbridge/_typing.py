"""What `asdlpack` reads, as a type checker sees it: an array of any library, a buffer, a capsule.

Signatures of C++ extensions print it for `dlbridge::Arg`, and so do the stubs that are made of them; functions in
Python may say it, too. Checkers refuse str, list and numbers. `isinstance(x, dlbridge.AnyArray)` is true of what offers
one of the protocols. A type says nothing of dtype, shape or memory: the call does.
"""

from __future__ import annotations

import sys
from datetime import datetime_CAPI
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from typing_extensions import Buffer, CapsuleType
elif sys.version_info >= (3, 12):
    from collections.abc import Buffer
else:
    from array import array

    Buffer = bytes | bytearray | memoryview | array
if not TYPE_CHECKING:
    CapsuleType = type(datetime_CAPI)  # as types.CapsuleType of Python 3.13


@runtime_checkable
class SupportsDLPack(Protocol):
    """Has DLPack: the arrays of NumPy, PyTorch, JAX, CuPy, `dlbridge.nd` and most others."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


@runtime_checkable
class SupportsArrayInterface(Protocol):
    """Has NumPy's array interface as a dictionary, as Pillow's images have."""

    @property
    def __array_interface__(self) -> Any: ...


@runtime_checkable
class SupportsArrayStruct(Protocol):
    """Has NumPy's array interface as a struct."""

    @property
    def __array_struct__(self) -> Any: ...


@runtime_checkable
class SupportsCudaArrayInterface(Protocol):
    """Has the CUDA Array Interface, as Numba's device arrays have."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


@runtime_checkable
class SupportsArrowArray(Protocol):
    """Has Arrow's PyCapsule interface: the columns of PyArrow, Polars, nanoarrow."""

    def __arrow_c_array__(self, *args: Any, **kwargs: Any) -> Any: ...


@runtime_checkable
class SupportsArrowDeviceArray(Protocol):
    """Has Arrow's PyCapsule interface for memory of any device."""

    def __arrow_c_device_array__(self, *args: Any, **kwargs: Any) -> Any: ...


@runtime_checkable
class SupportsArrowStream(Protocol):
    """Has Arrow's PyCapsule interface for chunks: Polars' and pandas' series, PyArrow's chunked arrays."""

    def __arrow_c_stream__(self, *args: Any, **kwargs: Any) -> Any: ...


AnyArray: TypeAlias = (
    SupportsDLPack
    | SupportsArrayInterface
    | SupportsArrayStruct
    | SupportsCudaArrayInterface
    | SupportsArrowArray
    | SupportsArrowDeviceArray
    | SupportsArrowStream
    | Buffer
    | CapsuleType
)
