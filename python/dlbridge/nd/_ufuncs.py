"""The methods of ufuncs: reduce, accumulate, outer, at; attach() puts them on the type when the package is loaded."""

from __future__ import annotations

from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis, DTypeLike

ndarray = _native.ndarray

_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_SCANS = {"add": "sum", "multiply": "prod"}


def _lacks(ufunc: Any, method: str, table: dict[str, str]) -> TypeError:
    return TypeError(f"{ufunc.__name__}.{method}: it is had for {', '.join(table)} only")


def ufunc_reduce(
    self: Any,
    array: ArrayLike,
    axis: Axis = 0,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """The ufunc between all elements along axes, axis 0 by default; None: all."""
    from dlbridge.nd._arguments import as_array

    if self.__name__ not in _REDUCTIONS:
        raise _lacks(self, "reduce", _REDUCTIONS)
    return _native.reduce(_REDUCTIONS[self.__name__], as_array(array), axis, dtype, keepdims, out, 0.0)


def ufunc_accumulate(
    self: Any, array: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """The running result of the ufunc along an axis."""
    from dlbridge.nd._arguments import as_array
    from dlbridge.nd._methods import scan

    if self.__name__ not in _SCANS:
        raise _lacks(self, "accumulate", _SCANS)
    return scan(as_array(array), _SCANS[self.__name__], axis, dtype, out)


def ufunc_outer(self: Any, A: ArrayLike, B: ArrayLike, /, **kwargs: Any) -> Any:
    """The ufunc of all pairs of elements of two arrays."""
    from dlbridge.nd._arguments import as_arrays

    if self.nin != 2:
        raise ValueError(f"{self.__name__}.outer: it takes {self.nin} operand(s); an outer product has two")
    a, b = as_arrays(A, B)
    return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


def ufunc_at(self: Any, a: ndarray, indices: Any, b: Any = None, /) -> None:
    """The ufunc in place at index arrays; positions named more than once count each time. For add and subtract."""
    from dlbridge.nd._methods import scatter_add

    if self.__name__ == "add":
        scatter_add(a, indices, b)
    elif self.__name__ == "subtract":
        scatter_add(a, indices, _native.negative(b))
    else:
        raise _lacks(self, "at", {"add": "", "subtract": ""})


def _ufunc_signature(self: Any) -> Any:
    from inspect import Parameter, Signature

    names = ["x"] if self.nin == 1 else [f"x{number}" for number in range(1, self.nin + 1)]
    operands = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
    out = Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None)
    return Signature([*operands, out, Parameter("dtype", Parameter.KEYWORD_ONLY, default=None)])


def attach() -> None:
    """Puts reduce, accumulate, outer and at on the ufuncs, and the signature that inspect reads."""
    members: dict[str, Sequence[Any] | Any] = {
        "reduce": ufunc_reduce,
        "accumulate": ufunc_accumulate,
        "outer": ufunc_outer,
        "at": ufunc_at,
        "__signature__": property(_ufunc_signature),
        "__module__": "dlbridge.nd",
    }
    for name, member in members.items():
        setattr(_native.ufunc, name, member)
