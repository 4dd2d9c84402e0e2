"""Runs a Python function on stand-ins for arrays, and records the operations that it does on them.

A `Traced` value names a node of the record. Each node carries a witness: a host array of one element, on which the very
operation has been done, so that dtypes, dimensions and refusals are those of nd itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from dlbridge.nd import _native
from dlbridge.nd._dtypes import resolve
from dlbridge.nd._protocols import namespace

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCALARS = (bool, int, float, complex)
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor"})
REDUCTIONS = frozenset({"sum", "prod", "max", "min", "any", "all", "mean", "count_nonzero"})
READINGS = frozenset({"cast", "real", "imag", "bits"})  # of one operand: nothing is computed
_SHARING = READINGS - {"cast"} | {"view"}  # what an array's own memory is, outside of fuse()


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One value. `operation`: a ufunc's name, a reduction's, of READINGS, "array", "view", "scalar" or "constant"."""

    number: int
    operation: str
    inputs: tuple[Node, ...]
    dtype: str
    witness: Any  # a host array of one element; a Python number for a scalar, whose dtype is its kind's
    detail: Any  # a reduction's axes and keepdims; a view's key or dtype; a constant's value; an argument's position
    is_scalar: bool  # made of scalars alone

    @property
    def is_reduction(self) -> bool:
        return self.operation in REDUCTIONS

    @property
    def is_array(self) -> bool:
        """An array before any kernel computes from it."""
        return self.operation in ("array", "view") or self.is_reduction

    @property
    def is_weak(self) -> bool:
        """A Python scalar: it takes the dtype of what it meets."""
        return isinstance(self.witness, _SCALARS)


class Reduction(NamedTuple):
    axis: tuple[int, ...] | None
    keepdims: bool


class CannotFuse(TypeError):
    """The function does what cannot be recorded, or what no fused kernel can do."""


def _refuse(what: str) -> NoReturn:
    raise CannotFuse(
        f"fuse(): {what} cannot be fused: the function runs once on stand-ins, to be recorded. Use element-by-element "
        "operations (nd.where for a choice) and sum, prod, max, min, mean, any, all, or call it without fuse()"
    )


_SCALAR_NAMES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


class Trace:
    """The record of one run."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.written: dict[int, Node] = {}  # argument's position: what the function has put in it
        self.shared: set[int] = set()  # the nodes of which there are views

    def _add(self, operation: str, inputs: tuple[Node, ...], witness: Any, detail: Any = None) -> Node:
        weak = isinstance(witness, _SCALARS)
        dtype = _SCALAR_NAMES[type(witness)] if weak else str(witness.dtype)
        scalar = operation in ("scalar", "constant") or (bool(inputs) and all(node.is_scalar for node in inputs))
        node = Node(len(self.nodes), operation, inputs, dtype, witness, detail, scalar)
        if operation in _SHARING:
            self.shared.add(inputs[0].number)
        self.nodes.append(node)
        return node

    def argument(self, position: int, dtype: str | None, ndim: int, kind: type | None, array: bool) -> Traced:
        """A stand-in for an array of that dtype and ndim, a NumPy scalar, or a Python scalar of that kind."""
        if kind is not None:
            return Traced(self, self._add("scalar", (), kind(1), position), None)
        witness = _native.empty((1,) * ndim, dtype, device="cpu")
        witness.fill(1)
        node = self._add("array" if array else "scalar", (), witness, position)
        return Traced(self, node, position if array else None)

    def node_of(self, value: Any) -> Node:
        if isinstance(value, _Handle):
            return value._node
        if type(value) in _SCALARS:
            return self._add("constant", (), value, value)
        if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "shape", None) == ():
            number = _native.array(value, device="cpu")
            return self._add("constant", (), number, value.item())
        return _refuse(f"a {type(value).__name__} made elsewhere")

    def apply(self, name: str, values: Sequence[Any]) -> Node:
        """Records a ufunc, under any of its names."""
        inputs = tuple(self.node_of(value) for value in values)
        function = getattr(_native, name)
        name, fused = function.__name__, function._fused_types
        for node in inputs:
            if node.dtype.startswith("complex") and node.dtype not in fused:
                _refuse(f"{name}() of complex numbers")
        operands = [node.witness for node in inputs]
        if not all(node.is_weak for node in inputs):
            return self._add(name, inputs, function(*operands))
        operands[0] = _native.array(operands[0], device="cpu")
        witness = function(*operands).item()  # scalars among themselves stay scalars
        return self._add(name, inputs, witness)

    def view(self, node: Node, key: Any) -> Node:
        """x[key] of an array that is there before the kernel is launched: then it is a view, and an operand."""
        keys = key if isinstance(key, tuple) else (key,)
        if not all(map(_is_basic, keys)):
            _refuse("indexing by arrays")
        if not node.is_array:
            _refuse("indexing of what was computed")
        # Of a witness, all axes of which have one element.
        at = tuple(slice(None) if isinstance(k, slice) else 0 if isinstance(k, int) else k for k in keys)
        return self._add("view", (node,), node.witness[at], keys)

    def reinterpret(self, node: Node, dtype: Any) -> Node:
        """x.view(dtype): of an array that is there before the kernel a view, of what was computed the bits."""
        dtype = resolve(dtype)
        if node.is_scalar:
            _refuse("view() of a scalar")
        if node.is_array and node.witness.ndim and node.witness.itemsize != dtype.itemsize:
            witness = _native.empty(node.witness.shape, dtype, device="cpu")
            witness.fill(1)
            return self._add("view", (node,), witness, str(dtype))
        if not node.is_array and node.witness.itemsize != dtype.itemsize:
            _refuse("view() of what was computed, as elements of another size,")
        return self._add("view" if node.is_array else "bits", (node,), node.witness.view(dtype), str(dtype))

    def part(self, node: Node, name: str) -> Node:
        """The real or imaginary part of complex numbers."""
        return self._add(name, (node,), getattr(node.witness, name))

    def cast(self, node: Node, dtype: Any) -> Node:
        witness = _native.array(node.witness, dtype, device="cpu") if node.is_weak else node.witness.astype(dtype)
        return self._add("cast", (node,), witness)

    def reduce(self, name: str, node: Node, axis: Any, dtype: Any, keepdims: bool) -> Node:
        if name == "count_nonzero":
            node = self.apply("not_equal", [Traced(self, node, None), 0])
            name = "sum"
        if dtype is not None:
            node = self.cast(node, dtype)
        if node.is_weak:
            _refuse(f"{name}() of a scalar")
        witness = getattr(node.witness, name)(axis=axis, keepdims=keepdims)
        ndim = node.witness.ndim
        axes = None if axis is None else tuple(k % ndim for k in (axis if isinstance(axis, tuple) else (axis,)))
        return self._add(name, (node,), witness, Reduction(axes, keepdims))


def _is_basic(key: Any) -> bool:
    """A key that makes a view: an int, None, "...", a slice between ints."""
    if isinstance(key, slice):
        return all(bound is None or type(bound) is int for bound in (key.start, key.stop, key.step))
    return key is None or key is Ellipsis or type(key) is int


def _is_whole(key: Any) -> bool:
    """A key that leaves nothing out: "...", full slices."""
    return all(
        k is Ellipsis or (type(k) is slice and k == slice(None)) for k in (key if type(key) is tuple else (key,))
    )


class _Handle:
    """What isinstance() finds a stand-in by: Traced itself claims to be an ndarray."""

    __slots__ = ("_argument", "_node", "_trace")
    _node: Node


def _method(name: str, swapped: bool = False) -> Any:
    def call(self: Traced, other: Any) -> Any:
        values = (other, self) if swapped else (self, other)
        return Traced(self._trace, self._trace.apply(name, values), None)

    return call


def _in_place(name: str) -> Any:
    def call(self: Traced, other: Any) -> Any:
        node = self._trace.apply(name, (self, other))
        if self._node.is_scalar:  # the name means another number: there is no array to change
            return Traced(self._trace, node, None)
        return self._write_result(node)

    return call


def _unary(name: str) -> Any:
    def call(self: Traced) -> Any:
        return Traced(self._trace, self._trace.apply(name, (self,)), None)

    return call


def _reduction(name: str) -> Any:
    def call(self: Traced, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if out is not None:
            _refuse(f"{name}(out=)")
        return Traced(self._trace, self._trace.reduce(name, self._node, axis, dtype, keepdims), None)

    return call


def _refused(what: str) -> Any:
    def call(self: Traced, *args: Any, **kwargs: Any) -> Any:
        _refuse(what)

    return call


class Traced(_Handle):
    """A stand-in for an array while a function is recorded: what is done to it is noted, not computed."""

    __slots__ = ()

    def __init__(self, trace: Trace, node: Node, argument: int | None) -> None:
        self._trace, self._node, self._argument = trace, node, argument

    # nd's own functions take it for an array; those of them that are made of others are then recorded piece by piece.
    __class__ = property(lambda self: _native.ndarray)
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    @property
    def dtype(self) -> Any:
        return _native.result_type(self._node.dtype)

    @property
    def ndim(self) -> int:
        return 0 if self._node.is_weak else int(self._node.witness.ndim)

    @property
    def real(self) -> Traced:
        if not self._node.dtype.startswith("complex"):
            return self
        return Traced(self._trace, self._trace.part(self._node, "real"), None)

    @property
    def imag(self) -> Traced:
        if self._node.dtype.startswith("complex"):
            return Traced(self._trace, self._trace.part(self._node, "imag"), None)
        zero = False if self._node.dtype == "bool" else 0
        return Traced(self._trace, self._trace.apply("where", (True, zero, self)), None)

    def view(self, dtype: Any = None) -> Traced:
        return Traced(
            self._trace, self._trace.reinterpret(self._node, self._node.dtype if dtype is None else dtype), None
        )

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> Traced:
        return Traced(self._trace, self._trace.cast(self._node, dtype), None)

    def copy(self, order: str = "C") -> Traced:
        return Traced(self._trace, self._trace.cast(self._node, self._node.dtype), None)

    def conj(self) -> Traced:
        return Traced(self._trace, self._trace.apply("conjugate", (self,)), None)

    def clip(self, min: Any = None, max: Any = None) -> Traced:
        node = self._node if min is None else self._trace.apply("maximum", (self, min))
        low = Traced(self._trace, node, None)
        return low if max is None else Traced(self._trace, self._trace.apply("minimum", (low, max)), None)

    def __getitem__(self, key: Any) -> Traced:
        if not self._node.is_scalar and _is_whole(key):
            self._node.witness[key]  # IndexError for too many
            return self
        return Traced(self._trace, self._trace.view(self._node, key), None)

    def __setitem__(self, key: Any, value: Any) -> None:
        """x[...] = value or x[:] = value, as x += value writes."""
        if self._node.is_scalar or not _is_whole(key):
            _refuse("assignment to a part of an array")
        self._node.witness[key]  # IndexError for too many
        if value is not self:  # of x[...] += 1 it is
            self._write(self._trace.apply("where", (True, value, self)))

    def _copy_from(self, source: Any, casting: str, where: Any) -> None:
        """copyto()"""
        node = self._trace.node_of(source)
        if self._node.is_scalar:
            _refuse("copyto() a scalar")
        if where is not True and (mask := self._trace.node_of(where).dtype) != "bool":
            raise TypeError(f"copyto(): where is {mask}; it must be bool. Compare with 0 first")
        _native.copyto(
            self._node.witness.copy(), node.witness, casting
        )  # nd itself says whether it may be written there
        cast = Traced(self._trace, self._trace.cast(node, self._node.dtype), None)
        self._write(self._trace.apply("where", (where, cast, self)))

    def _write_result(self, node: Node) -> Traced:
        """Of an operation: nd itself says whether it may be written there."""
        operands = [source.witness for source in node.inputs]
        getattr(_native, node.operation)(*operands, out=self._node.witness.copy())
        return self._write(node)

    def _write(self, node: Node) -> Traced:
        """x += y: the name means the new value, and an argument's array gets it at the end."""
        if self._node.operation in _SHARING or self._node.number in self._trace.shared:
            _refuse("a change in place of an array that has a view, or is one,")
        if node.is_scalar:
            node = self._trace.apply("where", (True, Traced(self._trace, node, None), self))
        if node.dtype != self._node.dtype:
            node = self._trace.cast(node, self._node.dtype)
        self._node = node
        if self._argument is not None:
            self._trace.written[self._argument] = node
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        dtype = kwargs.pop("dtype", None)
        if method != "__call__" or kwargs:
            _refuse(
                f"{ufunc.__name__}.{method}()" if method != "__call__" else f"{ufunc.__name__}({next(iter(kwargs))}=)"
            )
        if type(getattr(_native, ufunc.__name__, None)) is not _native.ufunc:
            _refuse(f"{ufunc.__name__}()")
        node = self._trace.apply(ufunc.__name__, inputs)
        target = out[0] if isinstance(out, tuple) else out
        if target is None:
            return Traced(self._trace, node if dtype is None else self._trace.cast(node, dtype), None)
        if not isinstance(target, _Handle) or target._node.is_scalar:
            _refuse("an output made elsewhere")
        if dtype is not None:
            return target._write(self._trace.cast(node, dtype))  # type: ignore[attr-defined]
        return target._write_result(node)  # type: ignore[attr-defined]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        own = getattr(namespace(), name, None)
        return own(*args, **kwargs) if own is not None else _refuse(f"{name}()")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _refuse(f"'.{name}'")

    def __repr__(self) -> str:
        return f"<stand-in for {self._node.dtype} in nd.fuse>"


def _complete() -> None:
    """Gives Traced its operators."""
    for name, symbol in _OPERATORS.items():
        setattr(Traced, f"__{symbol}__", _method(name))
        setattr(Traced, f"__r{symbol}__", _method(name, swapped=True))
        setattr(Traced, f"__i{symbol}__", _in_place(name))
    for name, symbol in _COMPARISON_OPERATORS.items():
        setattr(Traced, f"__{symbol}__", _method(name))
    for name, symbol in _UNARY_OPERATORS.items():
        setattr(Traced, f"__{symbol}__", _unary(name))
    for name in REDUCTIONS:
        setattr(Traced, name, _reduction(name))
    for what, symbols in _REFUSED.items():
        for symbol in symbols.split():
            setattr(Traced, f"__{symbol}__", _refused(what))


_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv",
    "remainder": "mod", "power": "pow", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "left_shift": "lshift", "right_shift": "rshift",
}  # fmt: skip
_COMPARISON_OPERATORS = {
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip
_UNARY_OPERATORS = {"negative": "neg", "positive": "pos", "absolute": "abs", "invert": "invert"}
_REFUSED = {
    "a choice by an element's value": "bool",
    "the value of an element": "int float index complex",
    "len()": "len",
    "iteration": "iter",
    "a matrix product": "matmul rmatmul imatmul",
    "conversion to NumPy": "array",
}
_complete()
