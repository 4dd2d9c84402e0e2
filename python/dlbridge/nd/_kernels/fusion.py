"""fuse(): one kernel for a Python function of element-by-element operations.

The function is recorded once for each combination of dtypes (tracing.py). The record becomes stages: a reduction kernel
for each reduction, whose map is the part of the record before it, and one elementwise kernel for the results that have
the same operands.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbridge.nd import _native
from dlbridge.nd._kernels import tracing
from dlbridge.nd._kernels.codegen import device_header, sanitize
from dlbridge.nd._kernels.elementwise import ElementwiseKernel
from dlbridge.nd._kernels.fusion_source import call, fits, is_leaf, scalar_limits, write_body
from dlbridge.nd._kernels.reduction import ReductionKernel
from dlbridge.nd._kernels.tracing import CannotFuse, Node, Reduction, Trace, Traced
from dlbridge.nd._kernels.types import C_TYPES, read_given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# --- stages -----------------------------------------------------------------------------------------------------------


class ReductionStage(NamedTuple):
    kernel: ReductionKernel
    leaves: tuple[Node, ...]
    detail: Reduction
    number: int  # of the node that it computes

    def run(self, values: dict[int, Any]) -> None:
        arguments = [values[leaf.number] for leaf in self.leaves]
        values[self.number] = self.kernel(*arguments, axis=self.detail.axis, keepdims=self.detail.keepdims)


class ViewStage(NamedTuple):
    source: int
    key: tuple[Any, ...] | str  # of x[key], or the dtype of x.view(dtype)
    number: int

    def run(self, values: dict[int, Any]) -> None:
        source = values[self.source]
        values[self.number] = source.view(self.key) if isinstance(self.key, str) else source[self.key]


class ElementwiseStage(NamedTuple):
    kernel: ElementwiseKernel
    leaves: tuple[Node, ...]
    outputs: tuple[Node, ...]
    targets: tuple[int | None, ...]  # the argument that an output is written to

    def run(self, values: dict[int, Any], arguments: Sequence[Any], results: dict[int, Any]) -> None:
        inputs = [values[leaf.number] for leaf in self.leaves]
        if all(target is None for target in self.targets):
            made = self.kernel(*inputs)
            results |= zip((node.number for node in self.outputs), made, strict=True)
            return
        arrays = [x for x in inputs if isinstance(x, _native.ndarray)]
        shape = _native.common_shape("fuse()", *[x.shape for x in arrays])
        outputs = [
            _native.empty(shape, node.dtype, device=arrays[0].device) if target is None else arguments[target]
            for node, target in zip(self.outputs, self.targets, strict=True)
        ]
        self.kernel(*inputs, *outputs)
        results |= zip((node.number for node in self.outputs), outputs, strict=True)


_JOINS: dict[str, tuple[str, str | None, str]] = {  # reduce, or the operation that does it; identity; post-map of `a`
    "sum": ("a + b", "0", "a"),
    "prod": ("a * b", "1", "a"),
    "max": ("maximum", None, "a"),
    "min": ("minimum", None, "a"),
    "any": ("a || b", "false", "a"),
    "all": ("a && b", "true", "a"),
    "mean": ("a + b", "0", "a / dlb::cast<_type_reduce>(n)"),
}


def _headers() -> str:
    return device_header("functors.cuh")


def _reduction_stage(node: Node, name: str) -> ReductionStage:
    body = write_body(node.inputs)
    if not any(leaf.is_array for leaf in body.leaves):
        raise CannotFuse(f"fuse(): {node.operation}() of scalars alone cannot be fused. Compute it outside")
    joined, identity, post_map = _JOINS[node.operation]
    accumulated = "float32" if node.dtype in ("float16", "bfloat16") else node.dtype
    reduce_type = C_TYPES[accumulated]
    if identity is None:
        joined = call(joined, accumulated, accumulated, "a", "b")
    symbol = f"{sanitize(name)}_map"
    parameters = ", ".join(f"{C_TYPES[leaf.dtype]} x{k}_" for k, leaf in enumerate(body.leaves))
    value = f"dlb::cast<{reduce_type}>({body.names[0]})"
    preamble = (
        f"{_headers()}\nDLBRIDGE_FN {reduce_type} {symbol}({parameters}) {{\n{body.statements}\nreturn {value};\n}}\n"
    )
    kernel = ReductionKernel(
        ", ".join(f"{leaf.dtype} x{k}_" for k, leaf in enumerate(body.leaves)),
        f"{node.dtype} y0_",
        f"{symbol}({', '.join(f'x{k}_' for k in range(len(body.leaves)))})",
        joined,
        f"y0_ = dlb::cast<{C_TYPES[node.dtype]}>({post_map})",
        identity,
        name,
        reduce_type,
        preamble=preamble,
    )
    return ReductionStage(kernel, body.leaves, node.detail, node.number)


def _elementwise_stage(
    outputs: Sequence[Node], targets: Sequence[int | None], name: str, *, return_tuple: bool = True
) -> ElementwiseStage:
    body = write_body(outputs)
    stores = "\n".join(f"y{k}_ = {value};" for k, value in enumerate(body.names))
    kernel = ElementwiseKernel(
        ", ".join(f"{leaf.dtype} x{k}_" for k, leaf in enumerate(body.leaves)),
        ", ".join(f"{node.dtype} y{k}_" for k, node in enumerate(outputs)),
        f"{body.statements}\n{stores}",
        name,
        preamble=_headers(),
        return_tuple=return_tuple,
    )
    return ElementwiseStage(kernel, body.leaves, tuple(outputs), tuple(targets))


class Program:
    """The stages for one combination of dtypes."""

    def __init__(self, trace: Trace, returned: Any, name: str) -> None:
        self._sequence = type(returned) if isinstance(returned, (tuple, list)) else None
        values = list(returned) if self._sequence is not None else [] if returned is None else [returned]
        self._nothing = returned is None
        self._returned = [_node_of(value) for value in values]
        self._alias = [value._argument for value in values]  # `return x`: the argument itself
        written = trace.written
        wanted = [node for node, alias in zip(self._returned, self._alias, strict=True) if alias is None]
        before = _arrays_before([*self._returned, *written.values()])
        self._before = [
            ViewStage(node.inputs[0].number, node.detail, node.number)
            if node.operation == "view"
            else _reduction_stage(node, name)
            for node in before
        ]
        self._of_scalars = any(node.is_scalar and not is_leaf(node) for node in wanted)
        self._groups = [] if self._of_scalars else _group(wanted, written)
        self._name = name
        self._stages: dict[bool, list[ElementwiseStage]] = {}
        self._inputs = [node for node in trace.nodes if node.operation in ("array", "scalar")]
        self._limits = scalar_limits(trace.nodes)

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Whether the kernels hold the Python ints among the arguments, and give all results: what depends on scalars
        alone is what the function makes of them."""
        return not self._of_scalars and all(
            dtype and fits(arguments[position], dtype) for position, dtype in self._limits
        )

    def run(self, arguments: Sequence[Any]) -> Any:
        values = {node.number: arguments[node.detail] for node in self._inputs}
        for stage_before in self._before:
            stage_before.run(values)
        results: dict[int, Any] = dict(values)
        shapes = {x.shape for x in values.values() if isinstance(x, _native.ndarray)}
        for stage in self._elementwise(len(shapes) == 1):
            stage.run(values, arguments, results)
        if self._nothing:
            return None
        out = [
            results[node.number] if alias is None else arguments[alias]
            for node, alias in zip(self._returned, self._alias, strict=True)
        ]
        return self._sequence(out) if self._sequence is not None else out[0]

    def direct(self, count: int) -> ElementwiseKernel | None:
        """The one kernel that is the whole program: its arguments are the function's, as are its results."""
        if self._limits or self._before or len(self._groups) != 1 or self._nothing or self._sequence is list:
            return None
        (group,) = self._groups
        (stage,) = self._elementwise(False)
        returned = [node.number for node in self._returned]
        same_results = returned == [node.number for node, target in group if target is None] and len(returned) == len(
            group
        )
        if not same_results or [leaf.detail for leaf in stage.leaves] != list(range(count)):
            return None
        if self._sequence is not None:
            return stage.kernel
        return _elementwise_stage([node for node, _ in group], [None], self._name, return_tuple=False).kernel

    def _elementwise(self, one_shape: bool) -> list[ElementwiseStage]:
        """One kernel for all results where all arrays have one shape, else one for each set of operands."""
        if one_shape not in self._stages:
            groups = [[item for group in self._groups for item in group]] if one_shape else self._groups
            self._stages[one_shape] = [
                _elementwise_stage([node for node, _ in group], [target for _, target in group], self._name)
                for group in groups
                if group
            ]
        return self._stages[one_shape]


def _node_of(value: Any) -> Node:
    if not isinstance(value, tracing._Handle):
        raise CannotFuse(
            f"fuse(): the function returned a {type(value).__name__} that does not depend on its arguments' elements. "
            "Return arrays, a tuple of them, or None"
        )
    return value._node


def _arrays_before(nodes: Iterable[Node]) -> list[Node]:
    """Every reduction and view that the nodes need, in the order in which they can be made."""
    found: dict[int, Node] = {}
    pending = list(nodes)
    seen = set()
    while pending:
        node = pending.pop()
        if node.number in seen:
            continue
        seen.add(node.number)
        if node.is_array and node.operation != "array":
            found[node.number] = node
        pending += node.inputs
    return [found[number] for number in sorted(found)]


def _group(wanted: Sequence[Node], written: dict[int, Node]) -> list[list[tuple[Node, int | None]]]:
    """Results that come from the same arrays share a kernel: they have one shape."""
    groups: dict[tuple[Node, ...], _Group] = {}
    unique = {n.number: n for n in wanted}.values()
    results: list[tuple[Node, int | None]] = [(node, None) for node in unique if not is_leaf(node)]
    results += [(node, target) for target, node in written.items()]
    for node, target in results:
        leaves = tuple(leaf for leaf in write_body([node]).leaves if leaf.is_array)
        groups.setdefault(leaves, []).append((node, target))
    return _order(list(groups.items()))


_Group = list[tuple[Node, "int | None"]]


def _order(groups: list[tuple[tuple[Node, ...], _Group]]) -> list[_Group]:
    """The groups so that no kernel writes an argument that a later one reads."""
    out: list[_Group] = []
    while groups:
        for at, (_, group) in enumerate(groups):
            written = {target for _, target in group if target is not None}
            others = [leaf for k, (leaves, _) in enumerate(groups) if k != at for leaf in leaves]
            if not any(leaf.operation == "array" and leaf.detail in written for leaf in others):
                out.append(groups.pop(at)[1])
                break
        else:
            raise CannotFuse("fuse(): arguments are changed in place from one another. Return the results instead")
    return out


# --- fuse() -----------------------------------------------------------------------------------------------------------


class Fusion:
    """A fused function: see fuse()."""

    def __init__(self, function: Callable[..., Any], kernel_name: str | None) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.name: str = kernel_name or getattr(function, "__name__", None) or "fused"
        self._kernel_name = sanitize(kernel_name or f"fused_{self.name}")  # C++ has functions named exp and max itself
        self._programs: dict[bytes, Program] = {}
        self._direct: dict[bytes, ElementwiseKernel] = {}

    def __call__(self, *args: Any) -> Any:
        key = _native.fusion_key(args)
        kernel = self._direct.get(key)
        if kernel is not None:
            return kernel(*args)
        if key is None:
            if _are_numpys(args):
                return self._function(*args)
            args = tuple(_to_operand(x) for x in args)
            key = _native.fusion_key(args)
        program = self._programs.get(key) if key is not None else None
        if program is not None:
            return program.run(args) if program.takes(args) else self._function(*args)
        if key is None or not key.startswith(b"c"):
            return self._function(*args)  # host arrays, scalars: there is no kernel to save
        program = self._programs[key] = self._record(key)
        direct = program.direct(len(args))
        if direct is not None:
            self._direct[key] = direct
        return program.run(args) if program.takes(args) else self._function(*args)

    def _record(self, key: bytes) -> Program:
        trace = Trace()
        arguments = []
        text = key[1:].decode("latin-1")
        kinds = (bool, int, float, complex)
        for position in range(len(text) // 2):
            letter, ndim = text[2 * position], ord(text[2 * position + 1])
            given = read_given(letter)[0]
            kind = None if given.dtype is not None else kinds[given.kind]
            arguments.append(trace.argument(position, given.dtype, ndim, kind, given.array))
        return Program(trace, self._function(*arguments), self._kernel_name)

    def clear_cache(self) -> None:
        """Forgets what was recorded; compiled kernels stay on disk."""
        self._programs.clear()
        self._direct.clear()

    def __repr__(self) -> str:
        return f"<fused {self.name!r}>"


def _are_numpys(args: tuple[Any, ...]) -> bool:
    """Whether NumPy's arrays are the only ones: the function computes with those as it is, and nothing moves."""
    numpy = sys.modules.get("numpy")
    arrays = [x for x in args if hasattr(x, "__dlpack__")]
    return numpy is not None and bool(arrays) and all(isinstance(x, numpy.ndarray) for x in arrays)


def _to_operand(x: Any) -> Any:
    """Arrays of other frameworks as ours, without a copy; anything else as it is. TypeError for NumPy's arrays: nothing
    moves to a device unasked."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
    if isinstance(x, (bool, int, float, complex, str)) or not hasattr(x, "__dlpack__"):
        return x
    return _native.asarray(x)


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Fuses a function of element-by-element operations into one kernel: ``fuse(f)``, ``@fuse(kernel_name="f")``.

    The function runs once for each combination of dtypes, on stand-ins that record what it does: operators, nd's and
    NumPy's element-by-element functions, nd.where, astype, in-place operators, and sum, prod, max, min, mean, any, all
    (each reduction is a kernel of its own, over all that comes before it), x[key] of an argument or a reduction by
    integers, slices, None and "...", x.real, x.imag, x.view(dtype), x[...] = value and nd.copyto. Later calls launch
    the kernel. Python scalars given as arguments are arguments of the kernel; other names are constants.

    On host arrays, and on NumPy's, the function itself is called, and where a result depends on scalars alone. Raises
    TypeError for what cannot be recorded: a choice by an element's value, indexing by arrays, shapes, changes in place
    of an array and of its views. `kernel_name` is the name in profilers.
    """
    kernel_name = kwargs.pop("kernel_name", None)
    if kwargs or len(args) > 1:
        raise TypeError("fuse() takes a function and kernel_name")
    if args and callable(args[0]):
        return Fusion(args[0], kernel_name)
    if args:
        raise TypeError(f"fuse() takes a function, got {type(args[0]).__name__}")
    return lambda function: Fusion(function, kernel_name)


__all__ = ["CannotFuse", "Fusion", "Traced", "fuse"]
