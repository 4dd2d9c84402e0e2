"""A pytest plugin: `import cupy` gives dlbridge.nd, and `cupy.testing` the module of the checkout $CUPY_CHECKOUT.

What looks into CuPy's insides (`cupy._core`, `cupyx`, `cupy.cuda.driver`, ...) meets LooksInside, by which the report
knows the tests that no other library can pass.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from dlbridge import nd

_CHECKOUT = Path(os.environ["CUPY_CHECKOUT"])


class LooksInside(ImportError):
    """Not of CuPy's documented interface."""


class _Inside(types.ModuleType):
    """A module of CuPy's that has no counterpart, but for the few names that CuPy's own test helpers ask for."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise LooksInside(f"{self.__name__}.{name}")


class _Public(types.ModuleType):
    """A module of CuPy's in which dlbridge's names lie."""

    __path__: ClassVar[list[str]] = []

    def __init__(self, name: str, of: Any) -> None:
        super().__init__(name)
        self._of = of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            if name.startswith("__"):
                raise AttributeError(name)
            raise LooksInside(f"{self.__name__}.{name}")
        return getattr(self._of, name)


def _inside(name: str, **names: Any) -> types.ModuleType:
    module = _Inside(name)
    vars(module).update(names)
    return module


def _random() -> types.ModuleType:
    """The modules in which CuPy keeps its public functions have them, too."""
    random = _Public("cupy.random", nd.random)
    distributions = _Public("cupy.random._distributions", nd.random)
    random._distributions = distributions  # type: ignore[attr-defined]
    random._generator = _inside("cupy.random._generator", _random_states={}, RandomState=nd.random.RandomState)  # type: ignore[attr-defined]

    def reset_states() -> None:
        random._generator._random_states = {}  # type: ignore[attr-defined]

    random.reset_states = reset_states  # type: ignore[attr-defined]
    return random


def _no_choice(*_accelerators: Any) -> list[str]:
    return []


# Modules of `cupy.cuda` that wrap NVIDIA's libraries, and what CuPy's tests ask them for before they run.
_OF_CUDA: dict[str, dict[str, Any]] = {
    "cub": {"available": False},
    "cublas": {},
    "curand": {},
    "cusolver": {},
    "device": {"get_compute_capability": lambda: "60"},  # below what CuPy's own kernels across blocks need
    "memory": {},
    "pinned_memory": {},
}


def _modules() -> dict[str, types.ModuleType]:
    count = nd.cuda.device_count() if nd.cuda.is_available() else 0
    runtime = _inside("cupy.cuda.runtime", is_hip=False, getDeviceCount=lambda: count, runtimeGetVersion=lambda: 13000)
    driver = _inside("cupy.cuda.driver", get_build_version=lambda: 13000)
    cuda = _Public("cupy.cuda", nd.cuda)
    vars(cuda).update(runtime=runtime, driver=driver, nvtx=_inside("cupy.cuda.nvtx", available=False))
    vars(cuda).update(get_local_runtime_version=runtime.runtimeGetVersion)
    for name, names in _OF_CUDA.items():
        setattr(cuda, name, _inside(f"cupy.cuda.{name}", **names))
    internal = _inside("cupy._core.internal", prod=math.prod)
    choices = {
        f"{verb}_{kind}_accelerators": _no_choice for verb in ("get", "set") for kind in ("routine", "reduction")
    }
    accelerator = _inside("cupy._core._accelerator", **choices)  # tests of sums set it and set it back
    core = _inside("cupy._core", internal=internal, _accelerator=accelerator)
    exceptions = types.ModuleType("cupy.exceptions")
    for name in ("AxisError", "ComplexWarning", "RankWarning", "TooHardError", "VisibleDeprecationWarning"):
        setattr(exceptions, name, getattr(np.exceptions, name))
    cupy = _Public("cupy", nd)
    found = {"cupy.cuda": cuda, "cupy.random": _random(), "cupy.exceptions": exceptions, "cupy._core": core}
    for module in found.values():
        setattr(cupy, module.__name__.rpartition(".")[2], module)
    cupy.__version__ = "14.2.0"
    found |= {"cupy": cupy, "cupy.cuda.runtime": runtime, "cupy.cuda.driver": driver, "cupy._core.internal": internal}
    found["cupy._core._accelerator"] = accelerator
    # A check of CuPy's own, that a block does not wait for the device; it is not made.
    found["cupyx"] = _inside("cupyx", allow_synchronize=lambda _allow: contextlib.nullcontext())
    return found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`cupy.testing` from the checkout; `cupy.linalg` and its kin from nd; the rest is inside."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name.partition(".")[0] not in ("cupy", "cupyx", "cupy_backends", "cupy_tests"):
            return None
        if name == "cupy.testing":
            return importlib.util.spec_from_file_location(
                name,
                _CHECKOUT / "cupy/testing/__init__.py",
                submodule_search_locations=[str(_CHECKOUT / "cupy/testing")],
            )
        if name.startswith(("cupy.testing.", "cupy_tests")):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        package, *parts = spec.name.split(".")
        of: Any = nd if package == "cupy" else None
        for part in parts:
            of = getattr(of, part, None)
        return _Public(spec.name, of) if isinstance(of, types.ModuleType) else _inside(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _name_tolerances_by_type(testing: types.ModuleType) -> None:
    """Tolerances are named by NumPy's scalar types, which CuPy's names are; ours are dtypes."""
    compare = testing.numpy_cupy_allclose

    def named(tolerance: Any) -> Any:
        if not isinstance(tolerance, dict):
            return tolerance
        return {np.dtype(str(k)).type if isinstance(k, nd.dtype) else k: v for k, v in tolerance.items()}

    def numpy_cupy_allclose(*args: Any, **kwargs: Any) -> Any:
        return compare(*map(named, args), **{key: named(value) for key, value in kwargs.items()})

    testing.numpy_cupy_allclose = numpy_cupy_allclose  # type: ignore[attr-defined]


sys.modules.update(_modules())
sys.meta_path.insert(0, _Finder())
sys.path.insert(0, str(_CHECKOUT / "tests"))
_name_tolerances_by_type(importlib.import_module("cupy.testing"))  # some tests have it without an import of their own
