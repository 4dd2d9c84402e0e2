"""Arrays through Ray: over its object store without a copy, and between the actors of a node where they lie.

`Tensor` and `nd.ndarray` need nothing of this module: they pickle so that Ray's store holds their memory, and
``ray.get`` gives arrays over it, read-only.
"""

from __future__ import annotations

from dlbridge.ray._store import install, uninstall

__all__ = ["install", "register_transport", "uninstall"]


def register_transport(framework: str = "nd", name: str = "dlbridge", *, to: str | None = None) -> None:
    """Gives Ray a tensor transport that passes arrays between processes of a node by `dlbridge.share`.

    framework: whose arrays go so, of the host and of CUDA: "nd", "cupy", "jax" or "torch".
    name: what ``ray.put(x, _tensor_transport=name)`` and ``@ray.method(tensor_transport=name)`` call it; case does not
    count. One name carries one framework.
    to: the framework of what readers get, as `convert()` takes it; None: that of the array.

    Memory that is shared already (see `dlbridge.share`) is not copied, other memory of the host once, by who made the
    array. A CUDA array stays where it is, and the streams of its readers wait until it is ready; memory that the driver
    gives no handles of (its own pools) is copied once on the GPU. Readers have the same memory, and what one of them
    writes the others see; read-only arrays stay so. The maker keeps it until Ray counts no reference to the object,
    that of a GPU until the last reader has dropped it. It goes past the object store, and does not count there.

    Call it before the classes that name it, in the process that makes the actors: Ray tells them. Raises ValueError for
    another framework and for a name that is taken, ImportError where Ray, which must have
    `ray.experimental.register_tensor_transport`, or the framework is not there. A read raises ValueError on another
    node, CudaError where the reader does not see the GPU, and what `Handle.open()` raises.
    """
    from dlbridge.ray import _transport

    _transport.register(framework, name, to)
