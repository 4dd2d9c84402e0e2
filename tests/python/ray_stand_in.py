"""As much of Ray as dlbridge.ray's transport asks for: what it sends and reads is tested where Ray is not installed.

For processes of their own, which import it first."""

import sys
import types
from dataclasses import dataclass
from typing import ClassVar

NODE = ["this node"]


@dataclass
class CommunicatorMetadata:
    pass


@dataclass
class TensorTransportMetadata:
    tensor_meta: list
    tensor_device: str | None = None


class TensorTransportManager:
    pass


class CloudPickler:
    dispatch: ClassVar[dict] = {}


class _Context:
    def get_node_id(self):
        return NODE[0]


def _modules():
    """The modules of Ray that are imported, with what is taken from each."""
    parts = {
        "ray": {"get_runtime_context": _Context},
        "ray.cloudpickle": {"CloudPickler": CloudPickler},
        "ray.experimental": {"register_tensor_transport": None},
        "ray.experimental.rdt": {},
        "ray.experimental.rdt.tensor_transport_manager": {
            one.__name__: one for one in (CommunicatorMetadata, TensorTransportManager, TensorTransportMetadata)
        },
    }
    for name, content in parts.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        yield name, module


sys.modules.update(_modules())
