"""A tensor transport of Ray's for the arrays of one node: a handle of `dlbridge.share` goes, the memory stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray
from ray.cloudpickle import CloudPickler
from ray.experimental import register_tensor_transport
from ray.experimental.rdt.tensor_transport_manager import (
    CommunicatorMetadata,
    TensorTransportManager,
    TensorTransportMetadata,
)

from dlbridge import _array_types, _core, nd
from dlbridge._sharing.handle import Handle, share
from dlbridge.ray._store import _PROTOCOL


@dataclass
class _Metadata(TensorTransportMetadata):  # type: ignore[misc]  # Any, where Ray is not installed
    """What goes from the maker by the owner to each reader."""

    handle: Handle | None = None
    node: str = ""


def _node() -> str:
    return str(ray.get_runtime_context().get_node_id())


def _as_host_arrays_go(x: nd.CudaArray) -> Any:
    """Ray sends one type by a transport, and registers its serializer late: that of `nd.HostArray` is for both."""
    ray_s = CloudPickler.dispatch.get(nd.HostArray)
    return x.__reduce_ex__(_PROTOCOL) if ray_s is None else ray_s(x)


CloudPickler.dispatch[nd.CudaArray] = _as_host_arrays_go  # in each actor, too: Ray loads the class below from here


def _device_of(arrays: list[Any]) -> str:
    """Ray knows one kind of device an object: a GPU's, where one of the arrays is there."""
    return "cuda" if any(isinstance(_core.asdlpack(x), _core.CudaTensor) for x in arrays) else "cpu"


class SharedMemoryTransport(TensorTransportManager):  # type: ignore[misc]
    """Ray makes one in each process. Its methods, and who calls them, are TensorTransportManager's."""

    to: str | None = None  # the framework of what is read; None: that of what was sent

    def __init__(self) -> None:
        self.handles: dict[str, Handle] = {}  # by object: they keep the memory until Ray counts no reference

    def tensor_transport_backend(self) -> str:
        return "DLBRIDGE"

    @staticmethod
    def is_one_sided() -> bool:
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        return True  # a reader waits for nobody

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[Any]) -> _Metadata:
        if not rdt_object:
            return _Metadata(tensor_meta=[])
        if obj_id not in self.handles:  # of a task that was tried again: others may have the first handle
            self.handles[obj_id] = share(rdt_object)
        # The name of the dtype: Ray loads this on a thread without a frame, where the pickle of a DType cannot be read.
        meta = [(tuple(x.shape), str(x.dtype)) for x in rdt_object]
        device, handle = _device_of(rdt_object), self.handles[obj_id]
        return _Metadata(tensor_meta=meta, tensor_device=device, handle=handle, node=_node())

    def get_communicator_metadata(
        self, src_actor: Any, dst_actor: Any, backend: str | None = None
    ) -> CommunicatorMetadata:
        return CommunicatorMetadata()

    def recv_multiple_tensors(
        self,
        obj_id: str,
        tensor_transport_metadata: _Metadata,
        communicator_metadata: CommunicatorMetadata,
        target_buffers: list[Any] | None = None,
    ) -> list[Any]:
        if target_buffers:
            raise NotImplementedError(
                "ray: the transport of dlbridge gives the maker's memory and fills no buffers. Copy from what it gives"
            )
        handle = tensor_transport_metadata.handle
        if handle is None:
            return []
        here = _node()
        if tensor_transport_metadata.node != here:
            raise ValueError(
                f"ray: the memory is on node {tensor_transport_metadata.node}, and the reader on {here}. The transport "
                "of dlbridge is for one node: use the object store between nodes, ray.put(x)"
            )
        arrays: list[Any] = handle.open(self.to)
        return arrays

    def send_multiple_tensors(
        self, tensors: list[Any], tensor_transport_metadata: _Metadata, communicator_metadata: CommunicatorMetadata
    ) -> None:
        raise NotImplementedError("ray: the transport of dlbridge is one-sided: readers open the memory")

    def garbage_collect(self, obj_id: str, tensor_transport_meta: _Metadata, tensors: list[Any]) -> None:
        self.handles.pop(obj_id, None)

    def abort_transport(self, obj_id: str, communicator_metadata: CommunicatorMetadata) -> None:
        """Nothing runs that could be ended."""


def _type_of(framework: str) -> type:
    if framework == "nd":
        return nd.HostArray
    return _array_types.types_of("ray.register_transport()", framework, ("nd", "cupy", "jax", "torch"))[0]


def register(framework: str, name: str, to: str | None) -> None:
    """`dlbridge.ray.register_transport()`."""
    # Ray makes it without arguments, in processes that get the class by value if it is one of ours.
    transport = SharedMemoryTransport if to is None else type("To", (SharedMemoryTransport,), {"to": to})
    register_tensor_transport(name, ["cpu", "cuda"], transport, _type_of(framework))
