"""NumPy's functions and ufuncs on ndarrays: each goes to the function of the same name here (NEP 13, NEP 18)."""

from __future__ import annotations

import sys
from importlib import import_module

from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any

ndarray = _native.ndarray

# Where NumPy's submodules have their counterparts.
_MODULES = {"numpy": "dlbridge.nd", "numpy.fft": "dlbridge.nd.fft", "numpy.linalg": "dlbridge.nd.linalg"}

# NumPy's scalars come as arrays without a dimension from their comparisons: `numpy.float32(2) < x`.
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


def namespace() -> ModuleType:
    """dlbridge.nd itself. It loads the modules that ask for it: none of them imports it."""
    return sys.modules["dlbridge.nd"]


def _is_scalar(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray" and value.shape == ()


def _refuse_foreign(objects: Iterable[Any]) -> None:
    """Data is never moved between the host and a device unasked, so that arrays of NumPy take no part."""
    for value in objects:
        if type(value).__module__.partition(".")[0] == "numpy" and getattr(value, "shape", ()) != ():
            raise TypeError(f"Unsupported type {type(value)}")
        if type(value).__name__ == "ndarray" and not isinstance(value, ndarray):
            raise TypeError(f"Unsupported type {type(value)}")


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `__array_ufunc__` returns: the ndarray's ufunc of that name, or NotImplemented.

    TypeError: Unsupported type, for arrays of NumPy among the operands.
    """
    if ufunc.__name__ in COMPARISONS:
        inputs = tuple(value[()] if _is_scalar(value) else value for value in inputs)
    _refuse_foreign(inputs)
    out = kwargs.pop("out", None)
    if out is not None:
        _refuse_foreign(out)
        kwargs["out"] = out[0] if len(out) == 1 else out
    found = getattr(namespace(), ufunc.__name__, None)
    if kwargs.get("where", True) is not True:
        raise TypeError(f"numpy.{ufunc.__name__}(): where= is not supported for dlbridge.nd arrays. Use nd.where()")
    kwargs.pop("where", None)
    if found is None:
        return NotImplemented
    if method == "__call__":
        return found(*inputs, **kwargs)
    bound = getattr(found, method, None)
    return NotImplemented if bound is None else bound(*inputs, **kwargs)


def call_function(func: Any, types: Iterable[type], args: Any, kwargs: dict[str, Any]) -> Any:
    """What `__array_function__` returns: what the ndarray's function of that name does, or NotImplemented.

    TypeError: Unsupported type, for arrays of NumPy among the arguments.
    """
    for kind in types:
        if kind.__module__.partition(".")[0] == "numpy":
            raise TypeError(f"Unsupported type {kind}")
    module = _MODULES.get(func.__module__)
    found = getattr(import_module(module), func.__name__, None) if module else None
    return NotImplemented if found is None else found(*args, **kwargs)
