"""Arrays through multiprocessing and concurrent.futures without pickling what is in them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from dlbridge import _array_types, _core, _pickle
from dlbridge._sharing import handle, mappings

__all__ = ["install", "uninstall"]

SMALL = 64 * 1024  # bytes; below, the message is quicker than opening memory

_Reducer = Callable[[Any], Any]
_reducers: dict[type, _Reducer] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]  # what register() fills
_before: dict[type, _Reducer | None] = {}


def _unpickle_small(kind: str, state: Any) -> Any:
    return _core.convert(_pickle.rebuild(*state), kind)


def _reduce(x: Any) -> Any:
    try:
        tensor = _core.asdlpack(x)
    except (TypeError, ValueError, BufferError):  # objects, records, gradients, sparse ones
        tensor = None
    if isinstance(tensor, _core.CudaTensor):
        return handle.reduce_array(x, tensor)
    if not isinstance(tensor, _core.HostTensor):
        before = _before.get(type(x))
        return x.__reduce_ex__(pickle.DEFAULT_PROTOCOL) if before is None else before(x)
    if tensor.nbytes <= SMALL and not mappings.is_shared(tensor):
        return _unpickle_small, (_core.framework_name(x), _pickle.reduce_ex(tensor, 4)[1])
    return handle.reduce_array(x, tensor)


def install(*frameworks: str) -> None:
    """Lets the queues, pipes and pools of multiprocessing and concurrent.futures carry arrays in shared memory.

    frameworks: "numpy", "torch", "jax", "cupy": arrays of these, too; those of dlbridge (`Tensor`, `nd.ndarray`) in any
    case.
    Arrays arrive as what they were, and memory that is shared already (see `dlbridge.share`) is not copied: both sides
    see what either writes. Other memory is copied once, into memory that only the receiver has; up to 64 KiB go in the
    message. Arrays on a GPU stay where they are. What cannot be shared (tensors with a gradient, arrays of objects)
    goes as it did before.

    Call it in each process that sends: at the top of a module that workers import, or as the initializer of a pool.
    Receivers need no call. The sender must live until the message is read; a child process that ends waits up to ten
    seconds for that. May be called again, for more frameworks.
    Raises ValueError for another name and ImportError where a framework is not there.
    """
    types: list[type] = [_core.HostTensor, _core.CudaTensor]
    for name in frameworks:
        types += _array_types.types_of("multiprocessing.install()", name, ("numpy", "torch", "jax", "cupy"))
    from dlbridge import nd

    types += [nd.HostArray, nd.CudaArray]
    for kind in types:
        if kind not in _before:
            _before[kind] = _reducers.get(kind)
            ForkingPickler.register(kind, _reduce)


def uninstall() -> None:
    """Puts back what was there before `install()`."""
    for kind, before in _before.items():
        if before is None:
            _reducers.pop(kind, None)
        else:
            ForkingPickler.register(kind, before)
    _before.clear()
