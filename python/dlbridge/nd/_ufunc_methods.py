"""The methods of ufuncs: reduce, accumulate, reduceat, outer, at, in MEMBERS, which the package puts on the type."""

from __future__ import annotations

from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, Axis, DTypeLike

ndarray = _native.ndarray

as_array, as_arrays, as_operands, as_positions, count_up, into, normalize_axis = (
    _native.late("_arguments", name)
    for name in ("as_array", "as_arrays", "as_operands", "as_positions", "count_up", "into", "normalize_axis")
)
is_inexact, kind_of = (_native.late("_dtypes", name) for name in ("is_inexact", "kind_of"))
bincount = _native.late("_histograms", "bincount")
unravel_index = _native.late("_indexing", "unravel_index")

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
    return TypeError(f"{ufunc.__name__}.{method}: only {', '.join(table)} have it")


def into_any(out: ndarray | None, result: ndarray, operation: str) -> ndarray:
    """into(), which takes sums and products of integers into every dtype, as NumPy's scans do."""
    return into(out, result, operation, "unsafe" if kind_of(result.dtype) in "biu" else "same_kind")


def scan(x: ndarray, name: str, axis: int | None, dtype: DTypeLike | None, out: ndarray | None) -> ndarray:
    """The running sum or product: nd.cumsum() and nd.cumprod() as methods have them."""
    if dtype is None and isinstance(out, ndarray) and is_inexact(out):  # as reduce() has it
        dtype = _native.result_type(x.dtype, out.dtype)
    x, along = (x.ravel(), 0) if axis is None else (x if x.ndim else x.reshape(1), axis)
    return into_any(out, _native.scan(name, x, along, dtype), f"cum{name}")


def ufunc_reduce(
    self: Any,
    array: ArrayLike,
    axis: Axis = 0,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """The ufunc between all elements along axes, axis 0 by default; None: all."""
    if self.__name__ not in _REDUCTIONS:
        raise _lacks(self, "reduce", _REDUCTIONS)
    return _native.reduce(_REDUCTIONS[self.__name__], as_array(array), axis, dtype, keepdims, out, 0.0)


def ufunc_accumulate(
    self: Any, array: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """The running result of the ufunc along an axis."""
    if self.__name__ not in _SCANS:
        raise _lacks(self, "accumulate", _SCANS)
    return scan(as_array(array), _SCANS[self.__name__], axis, dtype, out)


def ufunc_reduceat(
    self: Any,
    array: ArrayLike,
    indices: ArrayLike,
    axis: int = 0,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """The ufunc between the elements from each index to the next along an axis; the last goes to the end, and one that
    is not below the next names its element alone.

    A reduction for each index, on which the host waits. IndexError for one out of bounds. Source: NumPy.
    """
    if self.__name__ not in _REDUCTIONS:
        raise _lacks(self, "reduceat", _REDUCTIONS)
    x = as_array(array)
    along = normalize_axis(axis, x.ndim, f"{self.__name__}.reduceat")
    n = x.shape[along]
    positions = as_positions(indices, None, f"{self.__name__}.reduceat")
    if positions.ndim != 1:
        raise ValueError(f"{self.__name__}.reduceat: indices have {positions.ndim} axes; give a vector")
    starts = positions.tolist()
    for start in starts:
        if not 0 <= start < n:
            raise IndexError(f"{self.__name__}.reduceat: index {start} is out of bounds for an axis of size {n}")
    before = (slice(None),) * along
    parts = []
    for start, end in zip(starts, [*starts, n][1:], strict=True):
        part = x[(*before, slice(start, end if end > start else start + 1))]
        parts.append(_native.reduce(_REDUCTIONS[self.__name__], part, along, dtype, True, None, 0.0))
    if not parts:  # of no index: nothing, in the dtype of a result
        one = _native.reduce(_REDUCTIONS[self.__name__], x[(*before, slice(0, 1))], along, dtype, True, None, 0.0)
        parts = [one[(*before, slice(0, 0))]]
    return into(out, _native.concatenate(parts, along), f"{self.__name__}.reduceat")


def ufunc_outer(self: Any, A: ArrayLike, B: ArrayLike, /, **kwargs: Any) -> Any:
    """The ufunc of all pairs of elements of two arrays."""
    if self.nin != 2:
        raise ValueError(f"{self.__name__}.outer: it takes {self.nin} operand(s); an outer product has two")
    a, b = as_arrays(A, B)
    return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


def ufunc_at(self: Any, a: ndarray, indices: Any, b: Any = None, /) -> None:
    """The ufunc in place at what `indices` selects (arrays, masks, slices); positions named more than once count each
    time, one after the other. Waits for how often. The results are cast to the dtype of `a`, as NumPy does it."""
    if not isinstance(a, ndarray):
        raise TypeError(f"{self.__name__}.at: Unsupported type {type(a)}; give an nd array")
    if (b is None) != (self.nin == 1):
        raise ValueError(f"{self.__name__}.at: it takes {self.nin} operand(s) for each position")
    if b is not None and _native.combine_at(self.__name__, a, indices, b):
        return
    positions = count_up(a.size, a.device).reshape(a.shape)[indices]
    operands: list[ndarray] = []
    if b is not None:
        if hasattr(b, "ndim") and not isinstance(b, ndarray):  # as an assignment takes it
            b = _native.asarray(b, device=a.device)
        operands = [_native.broadcast_to(as_operands(a, b)[1], positions.shape).ravel()]
    _one_after_the_other(self, a, positions.ravel(), operands)


def _one_after_the_other(function: Any, a: ndarray, positions: ndarray, operands: list[ndarray]) -> None:
    """In rounds: the first time that each position is named, the second, …"""
    if positions.size == 0:
        return
    order = _native.argsort(positions, 0)
    positions = positions[order]
    turn = count_up(positions.size, a.device) - _native.searchsorted_flat(positions, positions)
    by_turn = _native.argsort(turn, 0)
    where = unravel_index(positions[by_turn], a.shape)
    operands = [x[order][by_turn] for x in operands]
    end = 0
    for count in bincount(turn).tolist():
        begin, end = end, end + count
        chosen = tuple(axis[begin:end] for axis in where)
        a[chosen] = function(a[chosen], *[x[begin:end] for x in operands]).astype(a.dtype, copy=False)


def _ufunc_signature(self: Any) -> Any:
    from inspect import Parameter, Signature

    names = ["x"] if self.nin == 1 else [f"x{number}" for number in range(1, self.nin + 1)]
    operands = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
    out = Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None)
    dtype = Parameter("dtype", Parameter.KEYWORD_ONLY, default=None)
    return Signature([*operands, out, dtype, Parameter("casting", Parameter.KEYWORD_ONLY, default="same_kind")])


MEMBERS: dict[str, Any] = {
    "reduce": ufunc_reduce,
    "accumulate": ufunc_accumulate,
    "outer": ufunc_outer,
    "reduceat": ufunc_reduceat,
    "at": ufunc_at,
    "__signature__": property(_ufunc_signature),
    "__module__": "dlbridge.nd",
}
