"""Pickling of tensors: out of band with protocol 5 (PEP 574), any dtype of the table, read-only kept.

Those of a GPU go by the host, with a warning, and are copied to their device when they are loaded.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any, cast

from dlbridge import _core

_STRICTEST = 8  # bytes: the alignment of the widest number, and of both halves of the widest complex one

_State = tuple[Any, str, tuple[int, ...], bool, bool]
_Reduced = tuple[Callable[..., _core.Tensor], tuple[Any, ...]]


def _as_bytes(tensor: _core.Tensor) -> _core.HostTensor:
    """The bytes of a host tensor as one dimension; DataError where it is not dense in C order."""
    return cast(_core.HostTensor, _core.reinterpret(tensor, dtype="uint8", shape=(tensor.nbytes,)))


def reduce_ex(tensor: _core.Tensor, protocol: int) -> _Reduced:
    """`Tensor.__reduce_ex__`: the bytes, dtype name, shape, read-only mark and padding of a host tensor.

    Memory that is dense in C order is not copied with protocol 5; any other is copied dense first. A CUDA tensor is
    copied to the host, with a UserWarning. TypeError for another that the host cannot read.
    """
    if isinstance(tensor, _core.CudaTensor):
        return _reduce_cuda(tensor, protocol)
    if not isinstance(tensor, _core.HostTensor):
        raise TypeError(
            f"pickle: a tensor on {tensor.device} cannot be pickled: its memory is not the host's. Copy it first: "
            "asdlpack(t, device='cpu')"
        )
    try:
        octets = _as_bytes(tensor)
    except _core.DataError:  # not dense
        octets = _as_bytes(_core.asdlpack(tensor, copy=True))
    payload: Any
    if protocol >= 5:
        payload = pickle.PickleBuffer(octets)
    else:
        # The copy's type tells the reader whether it may be written to, as it does for a PickleBuffer in band.
        payload = (bytes if tensor.readonly else bytearray)(memoryview(octets))
    return rebuild, (payload, str(tensor.dtype), tensor.shape, tensor.readonly, tensor.padded)


def _reduce_cuda(tensor: _core.CudaTensor, protocol: int) -> _Reduced:
    warnings.warn(
        f"pickle: a tensor on {tensor.device} is copied to the host, and to its device again where it is loaded. Copy "
        "it yourself if that is meant: asdlpack(t, device='cpu')",
        stacklevel=2,
    )
    return reduce_by_host(tensor, protocol)


def reduce_by_host(tensor: _core.CudaTensor, protocol: int) -> _Reduced:
    """`reduce_ex()` of a CUDA tensor, without the warning."""
    _, state = reduce_ex(_core.asdlpack(tensor, device="cpu"), protocol)
    return rebuild_on, (*state[:3], tensor.readonly, tensor.padded, str(tensor.device))


def rebuild(payload: Any, dtype: str, shape: tuple[int, ...], readonly: bool, padded: bool) -> _core.Tensor:
    """The tensor over `payload`, a buffer; read-only where it was, or where the buffer is.

    DataError where the buffer's size is not that of the shape and dtype, ValueError for an unknown dtype.
    """
    return aligned(rebuild_over(_core.asdlpack(memoryview(payload).cast("B")), dtype, shape, readonly, padded))


def rebuild_on(
    payload: Any, dtype: str, shape: tuple[int, ...], readonly: bool, padded: bool, device: str
) -> _core.Tensor:
    """`rebuild()` in memory of a device. CudaError where that is not there."""
    tensor = _core.asdlpack(rebuild(payload, dtype, shape, readonly, padded), device=device)
    return _core.reinterpret(tensor, readonly=True) if readonly else tensor


def rebuild_over(
    octets: _core.Tensor, dtype: str, shape: tuple[int, ...], readonly: bool, padded: bool
) -> _core.Tensor:
    """`rebuild()` over a tensor of bytes, wherever they lie: no copy."""
    try:
        return _core.reinterpret(
            octets, dtype=dtype, shape=tuple(shape), readonly=readonly or octets.readonly, padded=padded
        )
    except _core.DataError as error:
        raise _core.DataError(
            f"pickle: {octets.nbytes} bytes were stored for a {dtype} tensor of shape {shape}: {error}. The pickle is "
            "damaged, or its out-of-band buffers are in another order"
        ) from error


def aligned(tensor: _core.Tensor) -> _core.Tensor:
    """The tensor, or a copy where its elements do not lie where a processor wants them.

    They need not in a message that was received in one piece, as Dask does: no other producer gives such memory.
    """
    if tensor.data_ptr % max(1, min(tensor.itemsize, _STRICTEST)) == 0:
        return tensor
    made = _core.asdlpack(tensor, copy=True)
    return _core.reinterpret(made, readonly=True) if tensor.readonly else made
