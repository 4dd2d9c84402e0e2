"""Serializers by which the arrays of other frameworks lend their memory to Ray's object store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dlbridge import _array_types, _core, _pickle

_Reduce = Callable[[Any], Any]
_PROTOCOL = 5  # of Ray's pickles
_before: dict[type, _Reduce | None] = {}


class _AsBefore:
    """Pickles as an array did before, and is that array when it is loaded."""

    def __init__(self, x: Any) -> None:
        before = _before[type(x)]
        self.reduced = x.__reduce_ex__(_PROTOCOL) if before is None else before(x)

    def __reduce__(self) -> Any:
        return self.reduced


def _dump(to: str | None, x: Any) -> Any:
    try:
        tensor = _core.asdlpack(x)
    except (TypeError, ValueError, BufferError):  # a gradient, a sparse tensor, an array on several devices
        return _AsBefore(x)
    if not isinstance(tensor, _core.HostTensor):
        return _AsBefore(x)
    return to or _core.framework_name(x), *_pickle.reduce_ex(tensor, _PROTOCOL)[1]


def _load(dumped: Any) -> Any:
    if not isinstance(dumped, tuple):
        return dumped
    kind, *state = dumped
    return _core.convert(_pickle.rebuild(*state), kind)


def install(*frameworks: str, to: str | None = None) -> None:
    """Lets this process put the arrays of other frameworks into Ray's object store as dlbridge puts its own.

    frameworks: "jax", "torch": their arrays' memory is copied into the store once, and pickled in no other way.
    to: the framework of what ``ray.get`` gives, as `convert()` takes it; None: that of the array. "dlbridge" gives a
    `Tensor`, which needs no framework where it is read.

    What is read lies in the store and is read-only: JAX's arrays and `Tensor`s are not copied. PyTorch has no read-only
    tensors, so they are, once. Arrays on a GPU, tensors with a gradient and subclasses go as they did before.

    It is for what a process sends, whether Ray has started or not; receivers need no call. Workers that return arrays
    call it by ``ray.init(runtime_env={"worker_process_setup_hook": ...})``. May be called again, for more frameworks or
    another `to`. Raises ValueError for another name and ImportError where a framework, or Ray, is not there.
    """
    types = [kind for name in frameworks for kind in _array_types.types_of("ray.install()", name, ("jax", "torch"))]
    from ray.util.serialization import register_serializer

    for kind in types:
        if kind not in _before:
            _before[kind] = _registered().get(kind)
        # The first call makes Ray's context, which registers what is Ray's own: it does not come later, over ours.
        register_serializer(kind, serializer=functools.partial(_dump, to), deserializer=_load)


def uninstall() -> None:
    """Puts back what was there before `install()`. What was sent can still be read."""
    if not _before:
        return
    from ray.util.serialization import deregister_serializer

    for kind, before in _before.items():
        deregister_serializer(kind)
        if before is not None:
            _registered()[kind] = before
    _before.clear()


def _registered() -> dict[type, _Reduce]:
    """What `register_serializer()` fills."""
    from ray.cloudpickle import CloudPickler

    found: dict[type, _Reduce] = CloudPickler.dispatch
    return found
