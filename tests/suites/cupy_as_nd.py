"""A pytest plugin: `import cupy` gives dlbridge.nd, and `cupy.testing` the module of the checkout $CUPY_CHECKOUT.

What looks into CuPy's insides (`cupy._core`, `cupyx`, `cupy.cuda.driver`, ...) meets LooksInside, by which the report
knows the tests that no other library can pass. A file may import such names, and decorate its tests with them: only the
tests that use them meet it.
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
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from dlbridge import nd

_CHECKOUT = Path(os.environ["CUPY_CHECKOUT"])


class LooksInside(ImportError):
    """Not of CuPy's documented interface."""


class _Base:
    """What a class in a test's file inherits that names a class of CuPy's insides as its base."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> _Base:
        raise LooksInside(cls.__name__)


class _Name:
    """A name of CuPy's insides: false and inert while files are collected, LooksInside once tests run."""

    collecting: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self._name = name

    def _used(self, *_args: Any, **_kwargs: Any) -> _Name:
        if not _Name.collecting:
            raise LooksInside(self._name)
        return self

    def __getattr__(self, name: str) -> _Name:
        if name.startswith("__") or name == "pytestmark":
            raise AttributeError(name)
        return self._used()

    def __bool__(self) -> bool:
        return self._used() is None

    def __repr__(self) -> str:
        return self._name  # the names of parametrized tests have it

    def __hash__(self) -> int:
        return hash(self._name)

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[type]:
        return (_Base,)

    __call__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = __or__ = __add__ = __eq__ = _used  # type: ignore[assignment]


def pytest_collection_finish() -> None:
    _Name.collecting = False


class _Inside(types.ModuleType):
    """A module of CuPy's that has no counterpart, but for the few names that CuPy's own test helpers ask for."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "pytestmark":
            raise AttributeError(name)
        return _Name(f"{self.__name__}.{name}")._used()


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
            return _Name(f"{self.__name__}.{name}")._used()
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


class _FftConfig(_Inside):
    """A setting that CuPy's tests of transforms set, and are warned of; there is nothing to set."""

    _planning = True

    @property
    def enable_nd_planning(self) -> bool:
        warnings.warn("enable_nd_planning", DeprecationWarning, stacklevel=2)
        return self._planning

    @enable_nd_planning.setter
    def enable_nd_planning(self, value: bool) -> None:
        warnings.warn("enable_nd_planning", DeprecationWarning, stacklevel=2)
        self._planning = value


def _fft() -> types.ModuleType:
    fft = _Public("cupy.fft", nd.fft)
    fft.config = _FftConfig("cupy.fft.config")  # type: ignore[attr-defined]
    return fft


def _linalg() -> types.ModuleType:
    def stacked_identity(shape: tuple[int, ...], n: int, dtype: Any) -> nd.ndarray:
        return nd.broadcast_to(nd.eye(n, dtype=dtype), (*shape, n, n))

    linalg = _Public("cupy.linalg", nd.linalg)
    linalg._util = _inside("cupy.linalg._util", stacked_identity=stacked_identity)  # type: ignore[attr-defined]
    return linalg


def _no_choice(*_accelerators: Any) -> list[str]:
    return []


def _errstate(*, linalg: str) -> contextlib.AbstractContextManager[None]:
    if linalg != "raise":
        raise LooksInside("cupyx.errstate")
    return contextlib.nullcontext()  # the only way of dlbridge.nd


# Modules of `cupy.cuda` that wrap NVIDIA's libraries, and what CuPy's tests ask them for before they run.
_OF_CUDA: dict[str, dict[str, Any]] = {
    "compiler": {"_get_nvrtc_version": lambda: (13, 0), "_run_cc": lambda *_args: "release 13.0"},
    "cub": {"available": False},
    "cublas": {},
    "curand": {},
    "cusolver": {},
    "device": {"get_compute_capability": lambda: "60"},  # below what CuPy's own kernels across blocks need
    "memory": {},
    "pinned_memory": {},
}


def _sum(a: Any, *args: Any, **kwargs: Any) -> Any:
    """CuPy calls the method of what it is given, and the tests of fused functions take their reference from that."""
    return a.sum(*args, **kwargs) if isinstance(a, np.ndarray) else nd.sum(a, *args, **kwargs)


def _modules() -> dict[str, types.ModuleType]:
    count = nd.cuda.device_count() if nd.cuda.is_available() else 0
    runtime = _inside("cupy.cuda.runtime", is_hip=False, getDeviceCount=lambda: count, runtimeGetVersion=lambda: 13000)
    driver = _inside("cupy.cuda.driver", get_build_version=lambda: 13000)
    cuda = _Public("cupy.cuda", nd.cuda)
    vars(cuda).update(runtime=runtime, driver=driver, nvtx=_inside("cupy.cuda.nvtx", available=False))
    vars(cuda).update(get_local_runtime_version=runtime.runtimeGetVersion, get_nvcc_path=lambda: "nvcc")
    for name, names in _OF_CUDA.items():
        setattr(cuda, name, _inside(f"cupy.cuda.{name}", **names))
    internal = _inside("cupy._core.internal", prod=math.prod)
    choices = {
        f"{verb}_{kind}_accelerators": _no_choice for verb in ("get", "set") for kind in ("routine", "reduction")
    }
    accelerator = _inside("cupy._core._accelerator", **choices)  # tests of sums set it and set it back
    choices |= {"get_compute_type": _no_choice, "set_compute_type": _no_choice}
    core = _inside(
        "cupy._core", internal=internal, _accelerator=accelerator, ndarray=nd.ndarray, array=nd.array, **choices
    )
    exceptions = types.ModuleType("cupy.exceptions")
    for name in ("AxisError", "ComplexWarning", "RankWarning", "TooHardError", "VisibleDeprecationWarning"):
        setattr(exceptions, name, getattr(np.exceptions, name))
    cupy = _Public("cupy", nd)
    cupy.sum = _sum  # type: ignore[attr-defined]
    cupy.get_array_module = lambda *args: cupy if nd.get_array_module(*args) is nd else np  # type: ignore[attr-defined]
    found = {
        "cupy.cuda": cuda,
        "cupy.random": _random(),
        "cupy.linalg": _linalg(),
        "cupy.fft": _fft(),
        "cupy.exceptions": exceptions,
        "cupy._core": core,
    }
    for module in found.values():
        setattr(cupy, module.__name__.rpartition(".")[2], module)
    cupy.__version__ = "14.2.0"
    found |= {"cupy": cupy, "cupy.cuda.runtime": runtime, "cupy.cuda.driver": driver, "cupy._core.internal": internal}
    found["cupy._core._accelerator"] = accelerator
    # A check of CuPy's own, that a block does not wait for the device; it is not made.
    quiet = {"allow_synchronize": lambda _allow: contextlib.nullcontext(), "errstate": _errstate}
    found["cupyx"] = _inside(
        "cupyx", **quiet, cusolver=_inside("cupyx.cusolver", check_availability=lambda _name: True)
    )
    found["cupyx.cusolver"] = found["cupyx"].cusolver
    limits = {"get_batched_gesv_limit": _no_choice, "set_batched_gesv_limit": _no_choice}
    found["cupy.cublas"] = _inside("cupy.cublas", **limits)
    cupy.cublas = found["cupy.cublas"]
    found["cupy_backends.cuda.api"] = _inside("cupy_backends.cuda.api", runtime=runtime, driver=driver)
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
