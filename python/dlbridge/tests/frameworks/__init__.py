"""The registry of frameworks: the adapters in this folder, and those of third parties.

A package adds its own through an entry point of the group ``dlbridge.frameworks`` that names a `Framework`, a list of
them, or a function that returns either. docs/runner.md has an example.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
from collections.abc import Iterable
from typing import Any

from dlbridge.tests.frameworks._base import ArrayType, Bench, Framework, Look

__all__ = ["ArrayType", "Bench", "Framework", "Look", "built_in", "find", "registry"]

GROUP = "dlbridge.frameworks"

# One module of this folder each, in the order of reports.
_MODULES = (
    *("stdlib", "numpy_", "ml_dtypes_", "torch_", "jax_", "tensorflow_", "pyarrow_", "onnxruntime_", "tvm_ffi_"),
    *(
        "numba_",
        "pillow",
        "xarray_",
        "pandas_",
        "polars_",
        "nanoarrow_",
        "duckdb_",
        "opencv_",
        "mpi4py_",
        "openvino_",
        "paddle_",
    ),
    *("mlx_", "warp_", "dpnp_", "cupy_", "cudf_", "rmm_", "cuda_core", "nd"),
)


class PluginError(Exception):
    """An entry point of the group that gives no framework."""


@functools.cache
def built_in() -> tuple[Framework, ...]:
    """The adapters of this folder. Imports no framework."""
    return tuple(importlib.import_module(f"{__name__}.{name}").FRAMEWORK for name in _MODULES)


def _from_plugin(value: Any) -> list[Framework]:
    if callable(value) and not isinstance(value, Framework):
        value = value()
    found = list(value) if isinstance(value, Iterable) else [value]
    wrong = next((item for item in found if not isinstance(item, Framework)), None)
    if wrong is not None or not found:
        raise PluginError(f"it gives {type(wrong).__name__}, not a dlbridge.tests.frameworks.Framework")
    return found


def registry() -> tuple[dict[str, Framework], dict[str, str]]:
    """All frameworks by name, and why plugins could not be used, by the entry point's name."""
    table = {framework.name: framework for framework in built_in()}
    broken: dict[str, str] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            found = _from_plugin(entry.load())
            taken = [framework.name for framework in found if framework.name in table]
            if taken:
                raise PluginError(f"the name {taken[0]!r} is taken")
        except (Exception, SystemExit) as error:  # third-party code
            broken[entry.name] = f"broken plugin {entry.value!r}: {type(error).__name__}: {error}".splitlines()[0]
            continue
        table.update((framework.name, framework) for framework in found)
    return table, broken


def find(names: Iterable[str] | None) -> tuple[list[Framework], dict[str, str]]:
    """The frameworks of these names (or of these modules), all for None, and the broken plugins.

    Raises ValueError for a name that there is none of.
    """
    table, broken = registry()
    if names is None:
        return list(table.values()), broken
    aliases = {**{framework.module: framework.name for framework in table.values()}, "buffer": "stdlib"}
    chosen = dict.fromkeys(aliases.get(name, name) for name in names)
    unknown = [name for name in chosen if name not in table and name not in broken]
    if unknown:
        raise ValueError(f"no framework is named {unknown[0]!r}; known: {', '.join(table)}")
    return [table[name] for name in table if name in chosen], {n: why for n, why in broken.items() if n in chosen}
