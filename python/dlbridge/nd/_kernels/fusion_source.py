"""C++ of a recorded function: each node of the record is a constant of the kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbridge.nd import _native
from dlbridge.nd._kernels import tracing
from dlbridge.nd._kernels.types import C_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dlbridge.nd._kernels.tracing import Node


def _constant(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
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
    """What a comparison compares in. An int that the array's dtype cannot hold is compared in a wider one (NumPy 2)."""
    if all(node.is_weak for node in inputs):
        return str(_native.result_type(*(_native.result_type(node.dtype) for node in inputs)))
    dtype = str(_native.result_type(*(1 * node.witness if node.is_weak else node.witness for node in inputs)))
    if "int" not in dtype:
        return dtype
    bits = int(dtype.lstrip("uint"))
    low, high = (0, 1 << bits) if dtype[0] == "u" else (-(1 << (bits - 1)), 1 << (bits - 1))
    for node in inputs:
        if node.is_weak and node.operation == "constant" and not low <= node.detail < high:
            wide = dtype == "uint64" or not -(1 << 63) <= node.detail < 1 << 63
            return "float64" if wide else "int64"
    return dtype


def _compute_dtype(node: Node) -> str:
    """The dtype that the operands of a node are cast to."""
    if node.operation in tracing.COMPARISONS or node.operation in tracing.LOGICAL:
        return _comparison_dtype(node.inputs)
    if node.dtype == "bool" or node.operation == "absolute":
        return node.inputs[0].dtype
    return node.dtype


def _expression(node: Node, text: dict[int, str]) -> str:
    """The node's value in C++, from the names of its inputs."""
    c_type = C_TYPES[node.dtype]
    if node.operation == "constant":
        value = _constant(node.detail)
        return value if node.is_weak else f"dlb::cast<{c_type}>({value})"
    if node.operation == "cast":
        return f"dlb::cast<{c_type}>({text[node.inputs[0].number]})"
    compute = _compute_dtype(node)
    operands = []
    for position, source in enumerate(node.inputs):
        wanted = "bool" if node.operation == "where" and position == 0 else compute
        name = text[source.number]
        same = source.dtype == wanted
        operands.append(name if same and source.operation != "constant" else f"dlb::cast<{C_TYPES[wanted]}>({name})")
    return f"dlb::{node.operation}({', '.join(operands)})"


class Body(NamedTuple):
    """Part of a record as C++ statements over the names of its leaves."""

    leaves: tuple[Node, ...]
    statements: str
    names: tuple[str, ...]  # of the wanted nodes


def is_leaf(node: Node) -> bool:
    return node.operation in ("array", "scalar") or node.is_reduction


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
