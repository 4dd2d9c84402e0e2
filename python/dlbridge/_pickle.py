"""Pickling of host tensors: out of band with protocol 5 (PEP 574), any dtype of the table, read-only kept."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, cast

from dlbridge import _core

_State = tuple[Any, str, tuple[int, ...], bool, bool]


def _as_bytes(tensor: _core.Tensor) -> _core.HostTensor:
    """The bytes of a host tensor as one dimension; DataError where it is not dense in C order."""
    return cast(_core.HostTensor, _core.reinterpret(tensor, dtype="uint8", shape=(tensor.nbytes,)))


def reduce_ex(tensor: _core.Tensor, protocol: int) -> tuple[Callable[..., _core.Tensor], _State]:
    """`Tensor.__reduce_ex__`: the bytes, dtype name, shape, read-only mark and padding of a host tensor.

    Memory that is dense in C order is not copied with protocol 5; any other is copied dense first. TypeError for a
    tensor that the host cannot read.
    """
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


def rebuild(payload: Any, dtype: str, shape: tuple[int, ...], readonly: bool, padded: bool) -> _core.Tensor:
    """The tensor over `payload`, a buffer; read-only where it was, or where the buffer is.

    DataError where the buffer's size is not that of the shape and dtype, ValueError for an unknown dtype.
    """
    return rebuild_over(_core.asdlpack(memoryview(payload).cast("B")), dtype, shape, readonly, padded)


def rebuild_over(
    octets: _core.Tensor, dtype: str, shape: tuple[int, ...], readonly: bool, padded: bool
) -> _core.Tensor:
    """`rebuild()` over a tensor of bytes."""
    try:
        return _core.reinterpret(
            octets, dtype=dtype, shape=tuple(shape), readonly=readonly or octets.readonly, padded=padded
        )
    except _core.DataError as error:
        raise _core.DataError(
            f"pickle: {octets.nbytes} bytes were stored for a {dtype} tensor of shape {shape}: {error}. The pickle is "
            "damaged, or its out-of-band buffers are in another order"
        ) from error
