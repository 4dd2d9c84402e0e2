"""Pickling: the bytes travel through the host, out of band with protocol 5 (PEP 574); the device is remembered."""

from __future__ import annotations

import pickle

from dlbridge import _core, _pickle
from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ndarray = _native.ndarray


def reduce_ex(x: ndarray, protocol: int) -> Any:
    """`ndarray.__reduce_ex__`: the bytes, dtype, shape and device, and the order of the axes in memory."""
    axes = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    dense = x.transpose(axes)
    if x._flags[0] or not dense._flags[0]:  # with gaps or backwards: a copy in C order
        axes, dense = list(range(x.ndim)), x if x._flags[0] else x.copy("C")
    host = dense if isinstance(dense, _native.HostArray) else _native.to_device(dense, "cpu")
    octets = host.reshape(-1).view("uint8") if host.size else b""
    payload: Any = pickle.PickleBuffer(octets) if protocol >= 5 else bytes(memoryview(octets))  # type: ignore[arg-type]
    return rebuild, (payload, str(x.dtype), dense.shape, str(x.device), tuple(axes))


def rebuild(
    payload: Any, dtype: str, shape: tuple[int, ...], device: str, axes: tuple[int, ...] | None = None
) -> ndarray:
    """The array of a pickle. ValueError where the device is not there.

    On the host it lies in `payload`, read-only where that is, on a device in memory of its own. `bytes` are copied:
    those in band say nothing of whether the array may be written to.
    axes: those that the extents of `shape` are of, the outermost in memory first; in their order by default.
    """
    x = _dense(payload, dtype, shape, device)
    if axes is None or list(axes) == sorted(axes):
        return x
    return x.transpose([axes.index(axis) for axis in range(len(axes))])


def _dense(payload: Any, dtype: str, shape: tuple[int, ...], device: str) -> ndarray:
    size = 1
    for extent in shape:
        size *= extent
    if size == 0:
        return _native.empty(shape, dtype, device=device)
    octets = _core.asdlpack(memoryview(payload).cast("B"))
    try:
        tensor = _core.reinterpret(octets, dtype=dtype, shape=shape)
    except (_core.DataError, _core.ExchangeError) as error:
        raise _core.DataError(
            f"pickle: {octets.nbytes} bytes were stored for a {dtype} array of shape {shape}: {error}. The pickle is "
            "damaged, or its out-of-band buffers are in another order"
        ) from error
    if device == "cpu" and not isinstance(payload, bytes):
        return _native.from_dlpack(_pickle.aligned(tensor))
    return _native.array(tensor, device=device)
