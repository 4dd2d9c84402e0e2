"""install_as_dlpack(): code written for the package pydlpack (module `dlpack`) runs on this one."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from dlbridge import _core

# What pydlpack 0.2.1 calls them: the structs that asdlpack() may be asked for. Here every tensor can give both kinds,
# and the consumer chooses by max_version, so that these only stand for a choice that need not be made.


class DLManagedTensor:
    """Stands for the legacy struct in ``asdlpack(obj, impl_cls=...)``."""


class DLManagedTensorVersioned:
    """Stands for the versioned struct in ``asdlpack(obj, impl_cls=...)``."""


_DTYPE_LABELS = {0: "DLInt", 1: "DLUInt", 2: "DLFloat", 3: "DLOpaqueHandle", 4: "DLBfloat", 5: "DLComplex", 6: "DLBool"}
_DEVICE_LABELS = {1: "DLCPU", 2: "DLCUDA", 3: "DLCUDAHost", 10: "DLROCM", 11: "DLROCMHost", 13: "DLCUDAManaged"}


def _asdlpack(obj: Any, impl_cls: type | None = None, **options: Any) -> _core.Tensor:
    """dlbridge.asdlpack() with pydlpack's second argument, which is checked and otherwise has no effect."""
    if impl_cls not in (None, DLManagedTensor, DLManagedTensorVersioned):
        raise TypeError(
            f"asdlpack(): impl_cls={impl_cls!r} is neither DLManagedTensor nor DLManagedTensorVersioned. Leave it out: "
            "the tensor gives both"
        )
    tensor: _core.Tensor = _core.asdlpack(obj, **options)
    return tensor


def _reader(name: str, protocol: str) -> Any:
    def read(obj: Any, impl_cls: type | None = None) -> _core.Tensor:
        return _asdlpack(obj, impl_cls, protocol=protocol)

    read.__name__ = read.__qualname__ = name
    read.__doc__ = f"asdlpack() through the protocol {protocol!r} only."
    return read


def _todict(capsule: Any) -> dict[str, Any]:
    """The struct of a DLPack capsule as nested dicts with pydlpack's labels; the capsule is not consumed."""
    fields = _core.peek_capsule(capsule)
    row = next(r for r in _core.dtypes() if r["name"] == fields["dtype"])
    device_type, device_id = fields["device"]
    shape = tuple(fields["shape"])
    strides = fields["strides"]
    struct: dict[str, Any] = {
        "dl_tensor": {
            "data": fields["data"] or None,
            "device": {
                "device_type": _DEVICE_LABELS.get(device_type, str(device_type)),
                "device_id": device_id,
            },
            "ndim": len(shape),
            "dtype": {
                "code": _DTYPE_LABELS.get(row["code"], str(row["code"])),
                "bits": row["bits"],
                "lanes": row["lanes"],
            },
            "shape": shape,
            "strides": None if strides is None else tuple(strides),
            "byte_offset": fields["byte_offset"],
        }
    }
    if fields["version"] is not None:
        struct["version"] = dict(zip(("major", "minor"), fields["version"], strict=True))
        struct["flags"] = fields["flags"]
    return struct


def _run(**options: Any) -> Any:
    """dlbridge.tests.run()."""
    from dlbridge import tests

    return tests.run(**options)


def _module(name: str, names: dict[str, Any]) -> ModuleType:
    module = ModuleType(name, f"{name} of pydlpack, served by dlbridge.install_as_dlpack().")
    module.__dict__.update(names, __version__=_core.__version__, __all__=sorted(names))
    return module


def install_as_dlpack() -> None:
    """Puts modules `dlpack` and `dlpack.tests` into sys.modules whose functions are this package's.

    ``dlpack.asdlpack(obj)`` then returns a dlbridge Tensor, and ``dlpack.tests.run()`` is dlbridge.tests.run().
    Modules of those names that were imported before stay bound in code that holds them; calling it twice is
    harmless. One difference is intended: a live export keeps its mmap, bytearray or memoryview locked.
    """
    dlpack = _module(
        "dlpack",
        {
            "asdlpack": _asdlpack,
            "asdlpack_array_interface_v2": _reader("asdlpack_array_interface_v2", "array_interface"),
            "asdlpack_array_interface_v3": _reader("asdlpack_array_interface_v3", "array_interface"),
            "asdlpack_buffer": _reader("asdlpack_buffer", "buffer"),
            "asdlpack_cuda_array_interface": _reader("asdlpack_cuda_array_interface", "cuda_array_interface"),
            "asdlpack_dlpack": _reader("asdlpack_dlpack", "dlpack"),
            "todict": _todict,
            "DLPackObject": _core.Tensor,
            "DLManagedTensor": DLManagedTensor,
            "DLManagedTensorVersioned": DLManagedTensorVersioned,
        },
    )
    tests = _module("dlpack.tests", {"run": _run})
    dlpack.__path__ = []  # so that `import dlpack.tests` takes it for a package
    dlpack.tests = tests  # type: ignore[attr-defined]
    sys.modules["dlpack"] = dlpack
    sys.modules["dlpack.tests"] = tests
