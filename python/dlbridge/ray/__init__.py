"""Arrays through Ray: over its object store without a copy, and between the actors of a node in shared memory.

`Tensor` and `nd.ndarray` need nothing of this module: they pickle so that Ray's store holds their memory, and
``ray.get`` gives arrays over it, read-only.
"""

from __future__ import annotations

from dlbridge.ray._store import install, uninstall

__all__ = ["install", "register_transport", "uninstall"]


def register_transport(framework: str = "nd", name: str = "dlbridge") -> None:
    """Gives Ray a tensor transport that passes host arrays between processes of a node in shared memory.

    framework: whose arrays go so: "nd" (`nd.HostArray`), "jax" or "torch".
    name: what ``ray.put(x, _tensor_transport=name)`` and ``@ray.method(tensor_transport=name)`` call it; case does not
    count. One name carries one framework.

    Memory that is shared already (see `dlbridge.share`) is not copied, other memory once, by who made the array.
    Readers have the same memory, and what one of them writes the others see; read-only arrays stay so. The maker keeps
    it until Ray counts no reference to the object. It goes past the object store, and does not count there.

    Call it before the classes that name it, in the process that makes the actors: Ray tells them. Arrays on a GPU are
    refused: Ray's "cuda_ipc" and "nccl" carry those of PyTorch. Raises ValueError for another framework and for a name
    that is taken, ImportError where Ray, which must have `ray.experimental.register_tensor_transport`, or the framework
    is not there.
    """
    from dlbridge.ray import _transport

    _transport.register(framework, name)
