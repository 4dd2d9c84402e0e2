"""Arrays between Dask's processes: a header, and the memory itself as a frame.

Host arrays are lent to the connection and lie in what it received (_frames.py); arrays of a GPU go by the host ("dask",
for TCP), or as device memory where the connection takes that ("cuda", for UCX).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dlbridge import _array_types, _core, _pickle
from dlbridge.dask import _frames

_Message = tuple[dict[str, Any], Sequence[Any]]
_Reduce = Callable[[Any, int], tuple[Callable[..., Any], tuple[Any, ...]]]
_ALIGNMENTS = {"jax": 64}  # bytes, that a framework wants of memory that it does not copy
_registered: set[str] = set()


def _reduce_tensor(tensor: _core.Tensor, protocol: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if isinstance(tensor, _core.CudaTensor):
        return _pickle.reduce_by_host(tensor, protocol)
    return _pickle.reduce_ex(tensor, protocol)


def _by_host(reduce: _Reduce, x: _core.Tensor, alignment: int = 1) -> _Message:
    """What a pickle holds of the array, its bytes as a frame; alignment: what the array wants where it arrives."""
    _, (payload, *state) = reduce(x, 5)
    header = {"state": state, "writeable": not x.readonly}
    return header, _frames.sent(memoryview(payload).cast("B"), alignment, header)


def _from_host(rebuild: Callable[..., Any], header: dict[str, Any], frames: Sequence[Any]) -> Any:
    frame = _frames.received(frames, header)
    if header["writeable"] and frame.readonly:  # a message that was compressed, or that was short
        frame = memoryview(bytearray(frame))
    elif not header["writeable"]:
        frame = frame.toreadonly()
    dtype, shape, *rest = header["state"]
    return rebuild(frame, dtype, tuple(shape), *rest)


def _load_tensor(header: dict[str, Any], frames: Sequence[Any]) -> _core.Tensor:
    rebuild = _pickle.rebuild if len(header["state"]) == 4 else _pickle.rebuild_on  # which has the device, too
    tensor: _core.Tensor = _from_host(rebuild, header, frames)
    return tensor


def _by_device(x: _core.Tensor) -> _Message:
    """The frame is the device's memory, ready on the legacy default stream, which UCX's side waits for."""
    try:
        octets = _core.reinterpret(x, dtype="uint8", shape=(x.nbytes,))
    except _core.DataError:  # not dense in C order
        from dlbridge import nd

        octets = _core.reinterpret(nd.ascontiguousarray(nd.asarray(x)), dtype="uint8", shape=(x.nbytes,))
    return {"state": (str(x.dtype), x.shape, x.readonly, x.padded)}, [_core.asdlpack(octets, stream=1)]


def _from_device(finish: Callable[[_core.Tensor], Any], header: dict[str, Any], frames: Sequence[Any]) -> Any:
    dtype, shape, readonly, padded = header["state"]
    return finish(_pickle.rebuild_over(_core.asdlpack(frames[0]), dtype, tuple(shape), readonly, padded))


def _register_tensor() -> None:
    from distributed.protocol import cuda_deserialize, cuda_serialize, dask_deserialize, dask_serialize

    dask_serialize.register(_core.Tensor, functools.partial(_by_host, _reduce_tensor))
    dask_deserialize.register(_core.Tensor, _load_tensor)
    cuda_serialize.register(_core.CudaTensor, _by_device)
    cuda_deserialize.register(_core.CudaTensor, functools.partial(_from_device, _itself))
    from dlbridge import nd
    from dlbridge.nd import _pickling

    dask_serialize.register(nd.ndarray, functools.partial(_by_host, _pickling.reduce_ex))
    dask_deserialize.register(nd.ndarray, functools.partial(_from_host, _pickling.rebuild))
    cuda_deserialize.register(nd.CudaArray, functools.partial(_from_device, nd.from_dlpack))


def _itself(tensor: _core.Tensor) -> _core.Tensor:
    return tensor


def register() -> None:
    """Tensors and nd arrays, once the first of them is sent or arrives. Nothing where distributed is not installed."""
    try:
        from distributed.protocol import cuda_deserialize, cuda_serialize, dask_deserialize, dask_serialize
    except ModuleNotFoundError:
        return
    for dispatch in (dask_serialize, dask_deserialize, cuda_serialize, cuda_deserialize):
        dispatch.register_lazy("dlbridge", _register_tensor)


# ---- arrays of other frameworks


def _dump_foreign(framework: str, before: Callable[[Any], _Message] | None, x: Any) -> _Message:
    try:
        tensor = _core.asdlpack(x)
    except (TypeError, ValueError, BufferError):  # a gradient, a sparse tensor, an array on several devices
        if before is None:
            raise NotImplementedError(type(x).__qualname__) from None  # Dask goes on to pickle
        header, frames = before(x)
        return {"own": header}, frames
    return _by_host(_reduce_tensor, tensor, _ALIGNMENTS.get(framework, 1))


def _load_foreign(
    framework: str, before: Callable[[Any, Sequence[Any]], Any] | None, header: dict[str, Any], frames: Sequence[Any]
) -> Any:
    if "own" in header and before is not None:
        return before(header["own"], frames)
    return _core.convert(_load_tensor(header, frames), framework)


def _found(dispatch: Any, kind: type) -> Any:
    """What Dask itself has for a type, None where it has nothing."""
    try:
        return dispatch.dispatch(kind)
    except TypeError:
        return None


def register_frameworks(names: Iterable[str]) -> None:
    """Arrays of other frameworks, in this process."""
    types = [(name, kind) for name in names for kind in _array_types.types_of("dask.install()", name, ("jax", "torch"))]
    for name, kind in types:
        if name in _registered:
            continue
        from distributed.protocol import dask_deserialize, dask_serialize

        dump, load = _found(dask_serialize, kind), _found(dask_deserialize, kind)
        dask_serialize.register(kind, functools.partial(_dump_foreign, name, dump))
        dask_deserialize.register(kind, functools.partial(_load_foreign, name, load))
        _registered.add(name)


def registered() -> tuple[str, ...]:
    """The frameworks that were."""
    return tuple(sorted(_registered))
