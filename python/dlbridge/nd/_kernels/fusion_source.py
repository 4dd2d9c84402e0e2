"""C++ of a recorded function: each node of the record is a constant of the kernel."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbridge.nd import _native
from dlbridge.nd._dtypes import iinfo
from dlbridge.nd._kernels import tracing
from dlbridge.nd._kernels.types import C_TYPES
from dlbridge.nd._protocols import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dlbridge.nd._kernels.tracing import Node


def _constant(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return repr(float(value))
    if isinstance(value, int):
        if value >= 1 << 63:
            return f"{value}ULL"
        return f"{value}LL" if value > -(1 << 63) else "(-9223372036854775807LL - 1)"
    if isinstance(value, complex):
        return f"complex<double>({_constant(value.real)}, {_constant(value.imag)})"
    if math.isnan(value):
        return "((1e308 * 10) - (1e308 * 10))"
    if math.isinf(value):
        return "(1e308 * 10)" if value > 0 else "(-1e308 * 10)"
    return repr(float(value))


def _comparison_dtype(inputs: Sequence[Node]) -> str:
    """What a comparison compares in."""
    if all(node.is_weak for node in inputs):
        return str(_native.result_type(*(_native.result_type(node.dtype) for node in inputs)))
    return str(_native.result_type(*(1 * node.witness if node.is_weak else node.witness for node in inputs)))


@cache
def _integers(dtype: str) -> range:
    limits = iinfo(dtype)
    return range(limits.min, limits.max + 1)


def fits(value: Any, dtype: str) -> bool:
    """Whether a Python scalar is a value of an integer dtype; true for any other pair."""
    if "int" not in dtype or type(value) is not int:
        return True
    return value in _integers(dtype)


def _compute_dtype(node: Node) -> str:
    """The dtype that the operands of a node are cast to."""
    if node.operation in COMPARISONS or node.operation in tracing.LOGICAL:
        return _comparison_dtype(node.inputs)
    if node.dtype == "bool" or node.operation in ("absolute", "bitwise_count"):
        return node.inputs[0].dtype
    return node.dtype


def _expression(node: Node, text: dict[int, str]) -> str:
    """The node's value in C++, from the names of its inputs."""
    c_type = C_TYPES[node.dtype]
    if node.operation == "constant":
        value = _constant(node.detail)
        return value if node.is_weak else f"dlb::cast<{c_type}>({value})"
    if node.operation in tracing.READINGS:
        return _reading(node, c_type, text[node.inputs[0].number])
    compute = _compute_dtype(node)
    if node.dtype == "bool" and any(n.operation == "constant" and not fits(n.detail, compute) for n in node.inputs):
        if node.operation in COMPARISONS:
            return str(bool(node.witness.any())).lower()  # the same for every element
        text = text | {n.number: "true" for n in node.inputs if n.operation == "constant"}  # of a logical operation
    return call(node.operation, compute, node.dtype, *(text[source.number] for source in node.inputs))


def _reading(node: Node, c_type: str, operand: str) -> str:
    if node.operation == "cast":
        return f"dlb::cast<{c_type}>({operand})"
    if node.operation == "bits":
        bits = f"dlbridge::nd::bits_as<{C_TYPES['uint8'] if node.dtype == 'bool' else c_type}>({operand})"
        return f"({bits} != 0)" if node.dtype == "bool" else bits
    return f"{operand}.{node.operation}()"


def call(name: str, compute: str, result: str, *operands: str) -> str:
    """An operation on values of any dtypes in C++: by the functor that the compiled kernels of nd have for it."""
    functor, compute, swapped = getattr(_native, name)._functor(compute)
    if functor in ("false", "true"):
        return str(functor)
    types = f"{C_TYPES[compute]}, {C_TYPES[result]}"
    values = ", ".join(reversed(operands) if swapped else operands)
    if functor == "kWhere":
        return f"dlb::where<{types}>({values})"
    return f"dlb::call<dlb::Op::{functor}, {types}>({values})"


def scalar_limits(nodes: Iterable[Node]) -> list[tuple[int, str]]:
    """(position of an argument, integer dtype): what the kernel takes a Python int of that argument for. One that does
    not fit is refused or compared by the operations themselves, not by the kernel; "": so is any int of that argument,
    for scalars are computed from it, and Python's have no bounds."""
    limits = set()
    for node in nodes:
        if node.operation == "scalar" and type(node.witness) is int:
            limits.add((node.detail, "int64"))
        if is_leaf(node) or node.operation == "constant" or node.operation in tracing.READINGS:
            continue
        compute = _compute_dtype(node)
        limits |= {
            (leaf.detail, compute if leaf is source else "")
            for source in node.inputs
            if source.is_weak and "int" in compute
            for leaf in _scalars_behind(source)
        }
    return sorted(limits)


def _scalars_behind(node: Node) -> Iterable[Node]:
    return (
        [node] if node.operation == "scalar" else [leaf for source in node.inputs for leaf in _scalars_behind(source)]
    )


class Body(NamedTuple):
    """Part of a record as C++ statements over the names of its leaves."""

    leaves: tuple[Node, ...]
    statements: str
    names: tuple[str, ...]  # of the wanted nodes


def is_leaf(node: Node) -> bool:
    return node.operation == "scalar" or node.is_array


def write_body(wanted: Iterable[Node], stop: Callable[[Node], bool] = is_leaf) -> Body:
    """Statements that compute the wanted nodes from the nearest leaves."""
    wanted = tuple(wanted)
    needed: dict[int, Node] = {}
    pending = list(wanted)
    while pending:
        node = pending.pop()
        if node.number in needed:
            continue
        needed[node.number] = node
        if not stop(node):
            pending += node.inputs
    text: dict[int, str] = {}
    leaves: list[Node] = []
    lines: list[str] = []
    for number in sorted(needed):
        node = needed[number]
        if stop(node):
            text[number] = f"x{len(leaves)}_"
            leaves.append(node)
            continue
        text[number] = f"v{number}_"
        lines.append(f"const {C_TYPES[node.dtype]} v{number}_ = {_expression(node, text)};")
    return Body(tuple(leaves), "\n".join(lines), tuple(text[node.number] for node in wanted))
