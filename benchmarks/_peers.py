"""The libraries that take part, and the reason for each one that does not."""

from __future__ import annotations

import importlib
import importlib.metadata
import types
from collections.abc import Callable
from typing import Any

# The distributions that give a library's version, the first that is installed. A library that is not
# here, such as CuPy with its many distributions, is asked itself.
DISTRIBUTIONS = {
    "dlbridge": ("dlbridge",),
    "tvm_ffi": ("apache-tvm-ffi",),
    "pydlpack": ("pydlpack",),
    "cuda_core": ("cuda-core",),
    "nanobind_peer": ("nanobind",),
    "numba_cuda": ("numba-cuda", "numba"),
}


def _torch() -> types.ModuleType:
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    return torch


def _torch_cuda() -> types.ModuleType:
    torch = _torch()
    if not torch.cuda.is_available():
        raise ImportError("torch sees no GPU")
    return torch


def _cupy() -> types.ModuleType:
    cupy = importlib.import_module("cupy")
    try:
        cupy.zeros(1)
    except Exception as error:
        raise ImportError(f"CuPy cannot allocate: {type(error).__name__}") from error
    return cupy


def _jax() -> types.ModuleType:
    """JAX on the CPU alone: its GPU client would take three quarters of the GPU's memory."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_platforms", "cpu")
    return jax


def _numba_cuda() -> types.ModuleType:
    cuda = importlib.import_module("numba.cuda")
    if not cuda.is_available():
        raise ImportError("numba.cuda sees no GPU")
    return cuda


def _pydlpack() -> types.ModuleType:
    """The real package: dlbridge can put a stand-in of the same module name into sys.modules."""
    module = importlib.import_module("dlpack")
    if not hasattr(module, "Capsule"):
        raise ImportError("the module 'dlpack' is not pydlpack")
    return module


def _cuda_core() -> types.ModuleType:
    """The module that has StridedMemoryView, which moved when cuda.core left its experimental phase."""
    reasons = []
    for name in ("cuda.core.utils", "cuda.core.experimental.utils"):
        try:
            module = importlib.import_module(name)
        except Exception as error:
            reasons.append(f"{name}: {type(error).__name__}")
        else:
            if hasattr(module, "StridedMemoryView"):
                return module
            reasons.append(f"{name}: no StridedMemoryView")
    raise ImportError("; ".join(reasons))


def _nanobind_peer() -> types.ModuleType:
    import nanobind_peer

    return nanobind_peer.load()


_LOADERS: dict[str, Callable[[], types.ModuleType]] = {
    "dlbridge": lambda: importlib.import_module("dlbridge"),
    "numpy": lambda: importlib.import_module("numpy"),
    "torch": _torch,
    "torch_cuda": _torch_cuda,
    "cupy": _cupy,
    "jax": _jax,
    "polars": lambda: importlib.import_module("polars"),
    "numba_cuda": _numba_cuda,
    "tvm_ffi": lambda: importlib.import_module("tvm_ffi"),
    "pydlpack": _pydlpack,
    "cuda_core": _cuda_core,
    "nanobind_peer": _nanobind_peer,
    "optree": lambda: importlib.import_module("optree"),
}


class Environment:
    """Loads a library the first time a row asks for it; an absence is remembered with its reason."""

    def __init__(self) -> None:
        self._modules: dict[str, types.ModuleType] = {}
        self.absent: dict[str, str] = {}

    def get(self, name: str) -> types.ModuleType | None:
        """The module, or None: `absent` then says why."""
        if name in self._modules:
            return self._modules[name]
        if name in self.absent:
            return None
        try:
            module = _LOADERS[name]()
        except Exception as error:  # a broken installation is as absent as a missing one
            text = str(error).splitlines()[0] if str(error) else ""
            self.absent[name] = f"{type(error).__name__}: {text}"[:160]
            return None
        self._modules[name] = module
        return module

    def __getattr__(self, name: str) -> Any:
        """`env.numpy`, for rows that have declared that they need it."""
        module = self.get(name) if name in _LOADERS else None
        if module is None:
            raise AttributeError(name)
        return module

    def versions(self) -> dict[str, str]:
        """The version of each library that was loaded."""
        return {name: _version(name, module) for name, module in self._modules.items()}


def _version(name: str, module: types.ModuleType) -> str:
    for distribution in DISTRIBUTIONS.get(name, ()):
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return str(getattr(module, "__version__", "unknown"))
