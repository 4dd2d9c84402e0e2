"""Finding and importing what is installed, quietly; what is not there is a reason, not an error."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType

# Set only where the user has not: TensorFlow's log lines would drown the table, and jax would take most of the GPU.
_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
_DISTRIBUTIONS = {"tvm_ffi": "apache-tvm-ffi", "PIL": "pillow", "tensorflow": "tensorflow-cpu"}


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Sends file descriptor 2 to nowhere: the C++ of some frameworks writes there while it loads."""
    try:
        sys.stderr.flush()
        saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except (AttributeError, OSError):  # no stderr at all, or no descriptors left
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def version_of(module: ModuleType) -> str:
    """The version a module or its distribution names; "?" where neither does."""
    version = getattr(module, "__version__", None)
    if isinstance(version, str):
        return version
    name = module.__name__
    for distribution in (_DISTRIBUTIONS.get(name, name), name):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(distribution)
    return "?"


@dataclass
class Frameworks:
    """What could be imported, and why the rest could not. "stdlib" stands for Python's own types."""

    modules: dict[str, ModuleType] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def versions(self) -> dict[str, str]:
        return {name: version_of(module) for name, module in self.modules.items() if name != "stdlib"}


def load(names: list[str]) -> Frameworks:
    """Imports every one of `names` that is installed."""
    for key, value in _ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    found = Frameworks()
    for name in names:
        if name == "stdlib":
            found.modules[name] = sys
            continue
        try:
            if importlib.util.find_spec(name) is None:
                found.absent[name] = "not installed"
                continue
            with _quiet_stderr():
                found.modules[name] = importlib.import_module(name)
        except Exception as error:  # an installed framework may fail in any way: a missing library, a driver, ...
            found.absent[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return found
