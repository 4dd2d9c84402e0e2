"""The types of other frameworks' arrays, for registries that go by type: multiprocessing's, Dask's, Ray's."""

from __future__ import annotations

import importlib


def types_of(operation: str, name: str, known: tuple[str, ...]) -> tuple[type, ...]:
    """The types of a framework's arrays; the framework is imported, and registers reducers of its own first.

    ValueError where the name is none of `known`, ImportError where the framework is not there.
    """
    if name not in known:
        raise ValueError(f"{operation}: {name!r} is none of {', '.join(map(repr, known))}")
    module = importlib.import_module(name)
    if name == "numpy":
        return module.ndarray, module.memmap
    if name == "torch":
        return (module.Tensor,)
    if name == "cupy":
        return (module.ndarray,)
    assert name == "jax"
    return (importlib.import_module("jaxlib._jax").ArrayImpl,)  # what jax.Array is abstract of
