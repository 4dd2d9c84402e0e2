"""CUDA C++ of the generated elementwise kernels.

A kernel takes the addresses of its arrays (those of the loop, then the raw ones) and one block of 64-bit words
(`ndarray/core/generated_loop.cpp` writes it): counts, the addresses again, values of the scalars, raw arrays,
divisors, strides, extents of the whole index space. Each thread
takes `unroll` vectors of `vector` elements, all of whose loads are under way before the first element is computed.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbridge.nd._kernels.types import C_TYPES, ITEMSIZES, Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

_DEVICE = Path(__file__).resolve().parent / "device"
_SOURCES = _DEVICE.parents[4]  # of a package that is used where its sources lie; a wheel has them in `device`
_INCLUDE = re.compile(r'^#include (?:"(ndarray/[^"]+)"|<[^>]+>)$', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LONG_CODE = 1500  # characters of an operation that is worth no unrolling


@functools.cache
def device_header(name: str) -> str:
    """The text of one of our device headers, which have include guards, with the sources of the compiled kernels that
    it includes. Headers of the C++ library and of CUDA are left out: generated kernels have neither."""
    included = set()

    def include(found: re.Match[str]) -> str:
        path = found[1]
        if path is None or path in included:
            return ""
        included.add(path)
        folder = _DEVICE if (_DEVICE / path).is_file() else _SOURCES
        text = (folder / path).read_text(encoding="utf-8").replace("#pragma once\n", "")
        return _INCLUDE.sub(include, text)

    return _INCLUDE.sub(include, (_DEVICE / name).read_text(encoding="utf-8"))


def strip_comments(code: str) -> str:
    return _COMMENT.sub(" ", code)


def uses_name(code: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", strip_comments(code)) is not None


def sanitize(name: str) -> str:
    """A C++ identifier like `name`."""
    text = re.sub(r"\W", "_", name)
    return text if text and not text[0].isdigit() else "kernel_" + text


def is_overwritten(code: str, name: str) -> bool:
    """Whether the code surely assigns the variable before it reads it, so that its old value need not be loaded.

    Errs to False: an assignment counts only as a statement of its own before any jump and any other mention.
    """
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', strip_comments(code))
    found = re.search(rf"\b{re.escape(name)}\b", text)
    if found is None:
        return False
    before, after = text[: found.start()], text[found.end() :]
    if before.count("{") != before.count("}") or before.count("(") != before.count(")"):
        return False
    if before.strip() and before.rstrip()[-1] not in ";}":
        return False
    if re.search(r"\b(return|continue|break|goto|else|do|if|for|while)\s*$|\b(return|continue|break|goto)\b", before):
        return False
    assigned = re.match(r"\s*=(?!=)([^;]*)(;|\Z)", after)
    return assigned is not None and re.search(rf"\b{re.escape(name)}\b", assigned.group(1)) is None


class Loop(NamedTuple):
    """One variant of an elementwise kernel: generated_loop.h explains the fields."""

    vector: int
    ndim: int
    wide: bool
    index_ndim: int
    walks: str
    raw_ndim: tuple[int, ...]
    raw_dense: str
    dtypes: tuple[str, ...]  # one a parameter
    kinds: str  # one a parameter: a(rray), r(aw), s(calar)
    words: int | None = None  # that the launcher will pass: checked against the layout


class Source(NamedTuple):
    code: str
    symbol: str
    unroll: int


class _Operand(NamedTuple):
    parameter: Parameter
    c_type: str
    itemsize: int
    written: bool
    walk: str
    strides: int  # of its first stride
    loads: bool


def choose_unroll(loop: Loop, operation: str) -> int:
    """Vectors a thread takes: enough bytes on their way, not so many that registers or code run out."""
    if len(operation) > _LONG_CODE:
        return 1
    read = sum(loop.vector * ITEMSIZES[d] for d, k in zip(loop.dtypes, loop.kinds, strict=True) if k == "a")
    unroll = 4
    while unroll > 1 and (read * unroll > 128 or loop.vector * unroll > 32):
        unroll //= 2
    return unroll


class _Writer:
    """Writes one kernel."""

    def __init__(
        self, symbol: str, inputs: Sequence[Parameter], outputs: Sequence[Parameter], operation: str, loop: Loop
    ) -> None:
        self.symbol, self.loop, self.operation = symbol, loop, operation
        self.parameters = (*inputs, *outputs)
        self.index = "long long" if loop.wide else "unsigned"
        self.unroll = choose_unroll(loop, operation)
        self._lay_out(len(inputs))

    def _lay_out(self, inputs: int) -> None:
        """Numbers the words."""
        rows = list(zip(self.parameters, self.loop.dtypes, self.loop.kinds, strict=True))
        arrays = [row for row in rows if row[2] == "a"]
        scalars = [row for row in rows if row[2] == "s"]
        raws = [row for row in rows if row[2] == "r"]
        word = 2 + len(arrays)
        self.scalars = [(p, C_TYPES[d], word + 2 * k) for k, (p, d, _) in enumerate(scalars)]
        word += 2 * len(scalars)
        self.raws = []
        for (p, d, _), ndim, dense in zip(raws, self.loop.raw_ndim, self.loop.raw_dense, strict=True):
            self.raws.append((p, C_TYPES[d], ndim, dense == "d", word))
            word += 2 + 2 * ndim
        self.divisors = word
        word += 2 * (self.loop.ndim - 1)
        self.operands = []
        for (p, d, _), walk in zip(arrays, self.loop.walks, strict=True):
            written = self.parameters.index(p) >= inputs
            loads = not written or not is_overwritten(self.operation, p.name)
            self.operands.append(_Operand(p, C_TYPES[d], ITEMSIZES[d], written, walk, word, loads))
            word += self.loop.ndim
        self.extents = word
        self.words = word + max(self.loop.index_ndim, 0)

    # ---- pieces

    def _type(self, operand: _Operand) -> str:
        """What one load of the operand brings."""
        if self.loop.vector == 1 or operand.walk == "r":
            return operand.c_type
        return f"DlbridgeVector<{operand.c_type}, {self.loop.vector}>"

    def _lane(self, operand: _Operand, u: str, k: str) -> str:
        whole = f"{operand.parameter.name}_in_[{u}]" if not operand.written else f"{operand.parameter.name}_out_[{u}]"
        return whole if self.loop.vector == 1 or operand.walk == "r" else f"{whole}.lane[{k}]"

    def _offsets(self) -> list[str]:
        """Code that turns the vector's number `rest` into a byte offset for each operand."""
        lines = []
        for d in range(self.loop.ndim):
            if d + 1 < self.loop.ndim:
                at = self.divisors + 2 * d
                if self.loop.wide:
                    extent = f"static_cast<long long>(p_.word[{at}])"
                    lines.append(f"const long long next{d} = rest{d} / {extent};")
                    lines.append(f"const long long at{d} = rest{d} - next{d} * {extent};")
                else:
                    lines.append(f"const unsigned next{d} = dlbridge_divide(rest{d}, p_.word + {at});")
                    lines.append(f"const unsigned at{d} = rest{d} - next{d} * static_cast<unsigned>(p_.word[{at}]);")
                lines.append(f"const {self.index} rest{d + 1} = next{d};")
            else:
                lines.append(f"const {self.index} at{d} = rest{d};")
        for operand in self.operands:
            terms = [
                f"static_cast<long long>(at{d}) * static_cast<long long>(p_.word[{operand.strides + d}])"
                for d in range(self.loop.ndim)
                if not (d == 0 and operand.walk == "r")
            ]
            name = operand.parameter.name
            lines.append(f"{name}_at_[u] = {' + '.join(terms) or '0'};")
        return lines

    def _call(self, operands: dict[str, str], index: str) -> str:
        return f"op_({', '.join([*operands.values(), index])});"

    def _lambda(self) -> list[str]:
        """The operation as a lambda: it may return, and sees what loop_prep declared."""
        arguments = [f"{o.c_type}{'&' if o.written else ''} {o.parameter.name}" for o in self.operands]
        head = [f"const auto op_ = [&]({', '.join([*arguments, 'const long long i'])}) {{"]
        if self.loop.index_ndim >= 0:
            head.append("_ind.set(i);")
        head.append("do {")
        return [*head, '#line 1 "operation"', self.operation, f'#line 1 "{self.symbol}"', ";", "} while (false);", "};"]

    def _declarations(self) -> list[str]:
        lines = ["const long long n = static_cast<long long>(p_.word[1]);", "(void)n;"]
        for p, c_type, word in self.scalars:
            lines.append(f"{c_type} {p.name} = dlbridge_value<{c_type}>(p_.word + {word});")
        for p, c_type, ndim, dense, word in self.raws:
            lines.append(
                f"const DlbridgeRaw<{c_type}, {ndim}, {str(dense).lower()}> {p.name}{{{p.name}_p_, p_.word + {word}}};"
            )
        if self.loop.index_ndim >= 0:
            lines.append(f"DlbridgeIndex<{self.loop.index_ndim}> _ind{{p_.word + {self.extents}, n, {{}}}};")
        return lines

    def _tile(self) -> list[str]:
        """Loads, computes and stores the vectors of one thread in one tile."""
        u, loop = self.unroll, self.loop
        lines = []
        for o in self.operands:
            suffix = "out" if o.written else "in"
            lines.append(f"{self._type(o)} {o.parameter.name}_{suffix}_[{u}];")
            lines.append(f"long long {o.parameter.name}_at_[{u}];")
        number = f"const {self.index} rest0 = (tile_ * {u} + u) * blockDim.x + threadIdx.x;"
        guard = "if (rest0 >= vectors_) continue;"
        unrolled = f"#pragma unroll\nfor (int u = 0; u < {u}; ++u) {{"
        lines += [unrolled, number, guard, *self._offsets()]
        for o in self.operands:
            if o.loads:
                suffix = "out" if o.written else "in"
                name = o.parameter.name
                lines.append(f"{name}_{suffix}_[u] = dlbridge_at<{self._type(o)}>({name}_p_, {name}_at_[u]);")
        lines += ["}", unrolled, number, guard]
        lines.append(f"#pragma unroll\nfor (int k = 0; k < {loop.vector}; ++k)")
        lanes = {o.parameter.name: self._lane(o, "u", "k") for o in self.operands}
        lines += [self._call(lanes, f"static_cast<long long>(rest0) * {loop.vector} + k"), "}", unrolled, number, guard]
        for o in self.operands:
            if o.written:
                name = o.parameter.name
                lines.append(f"dlbridge_at<{self._type(o)}>({name}_p_, {name}_at_[u]) = {name}_out_[u];")
        return [*lines, "}"]

    def _tail(self) -> list[str]:
        """The elements of a dense loop that fill no vector: the first block's."""
        if self.loop.vector == 1 or self.loop.ndim > 1:
            return []
        vector = self.loop.vector
        lines = [
            "if (blockIdx.x == 0) {",
            f"const long long first_ = static_cast<long long>(p_.word[0]) * {vector} + threadIdx.x;",
            "for (long long at = first_; at < n; at += blockDim.x) {",
        ]
        lanes = {}
        for o in self.operands:
            name = o.parameter.name
            step = "0" if o.walk == "r" else f"at * {o.itemsize}"
            lanes[name] = f"{name}_one"
            initial = f" = dlbridge_at<{o.c_type}>({name}_p_, {step})" if o.loads else ""
            lines.append(f"{o.c_type} {name}_one{initial};")
        lines.append(self._call(lanes, "at"))
        for o in self.operands:
            if o.written:
                name = o.parameter.name
                lines.append(f"dlbridge_at<{o.c_type}>({name}_p_, at * {o.itemsize}) = {name}_one;")
        return [*lines, "}", "}"]

    def write(self, letters: dict[str, str], preamble: str, loop_prep: str, after_loop: str) -> str:
        cast = "static_cast<long long>" if self.loop.wide else "static_cast<unsigned>"
        tile = f"(vectors_ + blockDim.x * {self.unroll} - 1) / (blockDim.x * {self.unroll})"
        arrays = [o.parameter for o in self.operands] + [row[0] for row in self.raws]
        bases = "".join(f"char* {p.name}_p_, " for p in arrays)
        lines = [
            device_header("types.cuh"),
            device_header("elementwise.cuh"),
            *(f"typedef {C_TYPES[dtype]} {letter};" for letter, dtype in sorted(letters.items())),
            f"struct {self.symbol}_words {{ unsigned long long word[{self.words}]; }};",
            '#line 1 "preamble"',
            preamble,
            f'#line 1 "{self.symbol}"',
            f'extern "C" __global__ void {self.symbol}({bases}const __grid_constant__ {self.symbol}_words p_) {{',
            *self._declarations(),
            '#line 1 "loop_prep"',
            loop_prep,
            f'#line 1 "{self.symbol}"',
            ";",
            *self._lambda(),
            f"const {self.index} vectors_ = {cast}(p_.word[0]);",
            f"const {self.index} tiles_ = {tile};",
            f"for ({self.index} tile_ = blockIdx.x; tile_ < tiles_; tile_ += gridDim.x) {{",
            *self._tile(),
            "}",
            *self._tail(),
            '#line 1 "after_loop"',
            after_loop,
            f'#line 1 "{self.symbol}"',
            ";",
            "}",
        ]
        return "\n".join(lines) + "\n"


def write_elementwise(
    name: str,
    inputs: Sequence[Parameter],
    outputs: Sequence[Parameter],
    operation: str,
    loop: Loop,
    *,
    preamble: str = "",
    loop_prep: str = "",
    after_loop: str = "",
) -> Source:
    """The source of one variant."""
    symbol = sanitize(name)
    writer = _Writer(symbol, inputs, outputs, operation, loop)
    if loop.words not in (None, writer.words):
        raise SystemError(f"{name}: the launcher passes {loop.words} words, and the kernel takes {writer.words}")
    letters = {p.type: dtype for p, dtype in zip(writer.parameters, loop.dtypes, strict=True) if p.is_generic}
    return Source(writer.write(letters, preamble, loop_prep, after_loop), symbol, writer.unroll)
