"""CUDA C++ of the generated reductions.

A kernel reduces each output's elements, or one piece of them (`blockIdx.y`) into a slot of partial results that a
second kernel combines. Within a block the threads of one output lie along x ("rows") or, where neighbouring outputs are
neighbours in memory, along y ("columns"). The order of every combination is fixed by the shape alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dlbridge.nd._kernels.codegen import device_header, sanitize
from dlbridge.nd._kernels.types import C_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbridge.nd._kernels.types import Parameter

SLOT_BYTES = 64  # of one partial result
MAX_THREADS = 256
_UNROLL = 4


class Shape(NamedTuple):
    """What the code of a reduction depends on beside its dtypes."""

    kept_ndim: int
    reduced_ndim: int
    wide: bool  # 64-bit indices
    columns: bool
    split: bool
    kinds: str  # one an input: a(rray) or s(calar)


class Layout(NamedTuple):
    """Where things lie in the block of words."""

    scalars: int
    kept_divisors: int
    reduced_divisors: int
    kept_strides: int  # of the input arrays, of `i`, of the outputs
    reduced_strides: int  # of the input arrays, of `i`
    words: int


def lay_out(shape: Shape, outputs: int) -> Layout:
    arrays = shape.kinds.count("a")
    at = 4
    scalars, at = at, at + 2 * shape.kinds.count("s")
    kept_divisors, at = at, at + 2 * max(shape.kept_ndim - 1, 0)
    reduced_divisors, at = at, at + 2 * max(shape.reduced_ndim - 1, 0)
    kept_strides, at = at, at + (arrays + 1 + outputs) * shape.kept_ndim
    reduced_strides, at = at, at + (arrays + 1) * shape.reduced_ndim
    return Layout(scalars, kept_divisors, reduced_divisors, kept_strides, reduced_strides, at)


class Expressions(NamedTuple):
    map: str
    reduce: str
    post_map: str
    identity: str | None
    preamble: str


def _unravel(prefix: str, ndim: int, divisors: int, wide: bool) -> list[str]:
    """Splits `{prefix}` into `{prefix}_at0`, …, innermost first."""
    kind = "long long" if wide else "unsigned"
    lines = [f"const {kind} {prefix}_rest0 = {prefix};"]
    for d in range(ndim):
        rest = f"{prefix}_rest{d}"
        if d + 1 == ndim:
            lines.append(f"const {kind} {prefix}_at{d} = {rest};")
            continue
        word = divisors + 2 * d
        quotient = (
            f"{rest} / static_cast<long long>(p_.word[{word}])"
            if wide
            else (f"dlbridge_divide({rest}, p_.word + {word})")
        )
        lines.append(f"const {kind} {prefix}_rest{d + 1} = {quotient};")
        lines.append(
            f"const {kind} {prefix}_at{d} = {rest} - {prefix}_rest{d + 1} * static_cast<{kind}>(p_.word[{word}]);"
        )
    return lines


def _offset(prefix: str, ndim: int, strides: int) -> str:
    terms = [
        f"static_cast<long long>({prefix}_at{d}) * static_cast<long long>(p_.word[{strides + d}])" for d in range(ndim)
    ]
    return " + ".join(terms) or "0"


def _accumulator(symbol: str, has_identity: bool) -> list[str]:
    """Functions on accumulators. With no identity an accumulator knows whether it holds anything."""
    if has_identity:
        return [
            f"typedef _type_reduce {symbol}_acc;",
            f"DLBRIDGE_FN {symbol}_acc {symbol}_join({symbol}_acc a, {symbol}_acc b)",
            f"{{ return {symbol}_reduce(a, b); }}",
            f"DLBRIDGE_FN {symbol}_acc {symbol}_of(const _type_reduce& value) {{ return value; }}",
            f"DLBRIDGE_FN _type_reduce {symbol}_value(const {symbol}_acc& a) {{ return a; }}",
        ]
    return [
        f"struct {symbol}_acc {{ _type_reduce value; bool any; }};",
        f"DLBRIDGE_FN {symbol}_acc {symbol}_join(const {symbol}_acc& a, const {symbol}_acc& b) {{",
        "  if (!a.any) return b;",
        "  if (!b.any) return a;",
        f"  return {symbol}_acc{{{symbol}_reduce(a.value, b.value), true}};",
        "}",
        f"DLBRIDGE_FN {symbol}_acc {symbol}_of(const _type_reduce& value) {{ return {symbol}_acc{{value, true}}; }}",
        f"DLBRIDGE_FN _type_reduce {symbol}_value(const {symbol}_acc& a) {{ return a.value; }}",
    ]


_BLOCK = """
  // Joins the accumulators of the threads of one output; thread 0 of each has the result.
  alignas(16) __shared__ unsigned char shared_[{threads} * sizeof({symbol}_acc)];
  {symbol}_acc* const slots_ = reinterpret_cast<{symbol}_acc*>(shared_);
  const unsigned slot_ = threadIdx.y * blockDim.x + threadIdx.x;
  slots_[slot_] = acc_;
  __syncthreads();
  for (unsigned half_ = lanes_ / 2; half_ > 0; half_ /= 2) {{
    if (lane_ < half_) slots_[slot_] = {symbol}_join(slots_[slot_], slots_[slot_ + half_ * {pitch}]);
    __syncthreads();
  }}
  if (lane_ != 0 || !live_) return;
  acc_ = slots_[slot_];
"""


class ReductionSource(NamedTuple):
    code: str
    symbol: str
    finish: str  # the kernel that combines partial results


class _Writer:
    def __init__(
        self,
        name: str,
        inputs: Sequence[Parameter],
        outputs: Sequence[Parameter],
        dtypes: Sequence[str],
        reduce_type: str,
        expressions: Expressions,
        shape: Shape,
    ) -> None:
        self.symbol = sanitize(name)
        self.inputs, self.outputs = inputs, outputs
        self.types = dict(zip([p.name for p in (*inputs, *outputs)], (C_TYPES[d] for d in dtypes), strict=True))
        self.letters = {p.type: C_TYPES[d] for p, d in zip((*inputs, *outputs), dtypes, strict=True) if p.is_generic}
        self.reduce_type, self.expressions, self.shape = reduce_type, expressions, shape
        self.layout = lay_out(shape, len(outputs))
        self.arrays = [p for p, kind in zip(inputs, shape.kinds, strict=True) if kind == "a"]
        self.index = "long long" if shape.wide else "unsigned"

    def _header(self) -> list[str]:
        e, symbol = self.expressions, self.symbol
        return [
            device_header("types.cuh"),
            device_header("elementwise.cuh"),
            *(f"typedef {c_type} {letter};" for letter, c_type in sorted(self.letters.items())),
            f"struct {symbol}_words {{ unsigned long long word[{self.layout.words}]; }};",
            '#line 1 "preamble"',
            e.preamble,
            f'#line 1 "{symbol}"',
            f"typedef {self.reduce_type} _type_reduce;",
            f'static_assert(sizeof(_type_reduce) <= {SLOT_BYTES}, "reduce_type has more than {SLOT_BYTES} bytes");',
            f"DLBRIDGE_FN _type_reduce {symbol}_reduce(_type_reduce a, _type_reduce b) {{ return",
            '#line 1 "reduce_expr"',
            f"({e.reduce}",
            f'#line 1 "{symbol}"',
            "); }",
            *_accumulator(symbol, e.identity is not None),
            f"DLBRIDGE_FN {symbol}_acc {symbol}_none() {{",
            f"  return {'_type_reduce(' + e.identity + ')' if e.identity is not None else symbol + '_acc{}'};",
            "}",
        ]

    def _scalars(self) -> list[str]:
        out = []
        for k, name in enumerate(p.name for p, kind in zip(self.inputs, self.shape.kinds, strict=True) if kind == "s"):
            c_type, word = self.types[name], self.layout.scalars + 2 * k
            out.append(f"const {c_type} {name} = dlbridge_value<{c_type}>(p_.word + {word});")
        return out

    def _parameters(self, parameters: Sequence[Parameter]) -> str:
        return "".join(f"char* {p.name}_p_, " for p in parameters)

    def _words(self) -> str:
        return f"const __grid_constant__ {self.symbol}_words p_"

    def _who(self) -> list[str]:
        """Which output a thread works for, and as which of its threads."""
        lane, output = ("threadIdx.y", "threadIdx.x") if self.shape.columns else ("threadIdx.x", "threadIdx.y")
        lanes, outputs = ("blockDim.y", "blockDim.x") if self.shape.columns else ("blockDim.x", "blockDim.y")
        return [
            f"const unsigned lane_ = {lane}, lanes_ = {lanes};",
            f"const {self.index} kept_ = static_cast<{self.index}>(blockIdx.x) * {outputs} + {output};",
            f"const bool live_ = kept_ < static_cast<{self.index}>(p_.word[0]);",
        ]

    def _post_map(self) -> list[str]:
        """Turns the accumulator into the outputs and stores them."""
        lines = [f"const _type_reduce a = {self.symbol}_value(acc_);", "(void)a;"]
        first = self.layout.kept_strides + (len(self.arrays) + 1) * self.shape.kept_ndim
        for k, p in enumerate(self.outputs):
            at = _offset("kept_", self.shape.kept_ndim, first + k * self.shape.kept_ndim)
            lines.append(f"{self.types[p.name]}& {p.name} = dlbridge_at<{self.types[p.name]}>({p.name}_p_, {at});")
        return [*lines, '#line 1 "post_map_expr"', self.expressions.post_map, f'#line 1 "{self.symbol}"', ";"]

    def _loop(self) -> list[str]:
        """Maps and joins a thread's own elements, several loads at a time."""
        s, layout = self.shape, self.layout
        arguments = ", ".join([*(f"const {self.types[p.name]} {p.name}" for p in self.arrays), "const long long i"])
        lines = [
            f"const auto map_ = [&]({arguments}) -> _type_reduce {{ (void)i; return _type_reduce(",
            '#line 1 "map_expr"',
            self.expressions.map,
            f'#line 1 "{self.symbol}"',
            "); };",
        ]
        names = [*(p.name for p in self.arrays), "i"]
        for k, name in enumerate(names):
            base = _offset("kept_", s.kept_ndim, layout.kept_strides + k * s.kept_ndim)
            lines.append(f"const long long {name}_base_ = {base};")
        lines.append("const auto element_ = [&](" + self.index + " red_) -> _type_reduce {")
        lines += _unravel("red_", s.reduced_ndim, layout.reduced_divisors, s.wide)
        for k, name in enumerate(names):
            at = _offset("red_", s.reduced_ndim, layout.reduced_strides + k * s.reduced_ndim)
            lines.append(f"const long long {name}_off_ = {name}_base_ + {at};")
        values = [f"dlbridge_at<{self.types[p.name]}>({p.name}_p_, {p.name}_off_)" for p in self.arrays]
        lines.append(f"return map_({', '.join([*values, 'i_off_'])});")
        lines.append("};")
        symbol, cast = self.symbol, f"static_cast<{self.index}>"
        lines += [
            f"const {self.index} begin_ = {cast}(blockIdx.y) * {cast}(p_.word[2]);",
            f"const {self.index} total_ = {cast}(p_.word[1]);",
            f"const {self.index} stop_ = total_ - begin_ < {cast}(p_.word[2]) ? total_ : begin_ + {cast}(p_.word[2]);",
            f"{symbol}_acc accs_[{_UNROLL}];",
            f"for (int u = 0; u < {_UNROLL}; ++u) accs_[u] = {symbol}_none();",
            f"{self.index} r_ = begin_ + lane_;",
            f"for (; live_ && begin_ < total_ && r_ + {_UNROLL - 1} * lanes_ < stop_; r_ += {_UNROLL} * lanes_) {{",
            f"_type_reduce values_[{_UNROLL}];",
            f"#pragma unroll\nfor (int u = 0; u < {_UNROLL}; ++u) values_[u] = element_(r_ + u * lanes_);",
            f"#pragma unroll\nfor (int u = 0; u < {_UNROLL}; ++u) "
            f"accs_[u] = {symbol}_join(accs_[u], {symbol}_of(values_[u]));",
            "}",
            "for (; live_ && begin_ < total_ && r_ < stop_; r_ += lanes_)",
            f"accs_[0] = {symbol}_join(accs_[0], {symbol}_of(element_(r_)));",
            f"{symbol}_acc acc_ = {symbol}_join({symbol}_join(accs_[0], accs_[1]), {symbol}_join(accs_[2], accs_[3]));",
        ]
        return lines

    def _block(self) -> str:
        pitch = "blockDim.x" if self.shape.columns else "1"
        return _BLOCK.format(symbol=self.symbol, threads=MAX_THREADS, pitch=pitch)

    def _main(self) -> list[str]:
        s, symbol = self.shape, self.symbol
        outputs = "char* partial_p_, " if s.split else self._parameters(self.outputs)
        lines = [
            f'extern "C" __global__ void {symbol}({self._parameters(self.arrays)}{outputs}{self._words()}) {{',
            "const long long n = static_cast<long long>(p_.word[1]);",
            "(void)n;",
            *self._scalars(),
            *self._who(),
            *_unravel("kept_", s.kept_ndim, self.layout.kept_divisors, s.wide),
            *self._loop(),
            self._block(),
        ]
        if s.split:
            at = f"(static_cast<long long>(kept_) * gridDim.y + blockIdx.y) * {SLOT_BYTES}"
            return [*lines, f"dlbridge_at<{symbol}_acc>(partial_p_, {at}) = acc_;", "}"]
        return [*lines, *self._post_map(), "}"]

    def _finish(self) -> list[str]:
        """Combines the partial results of each output, which lie side by side."""
        s, symbol = self.shape, self.symbol
        at = f"(static_cast<long long>(kept_) * splits_ + part_) * {SLOT_BYTES}"
        return [
            f'extern "C" __global__ void {symbol}_finish(char* partial_p_, {self._parameters(self.outputs)}'
            f"{self._words()}) {{",
            "const long long n = static_cast<long long>(p_.word[1]);",
            "(void)n;",
            *self._scalars(),
            "const unsigned lane_ = threadIdx.x, lanes_ = blockDim.x;",
            f"const {self.index} kept_ = blockIdx.x;",
            "const bool live_ = true;",
            *_unravel("kept_", s.kept_ndim, self.layout.kept_divisors, s.wide),
            "const unsigned splits_ = static_cast<unsigned>(p_.word[3]);",
            f"{symbol}_acc acc_ = {symbol}_none();",
            "for (unsigned part_ = lane_; part_ < splits_; part_ += lanes_)",
            f"acc_ = {symbol}_join(acc_, dlbridge_at<{symbol}_acc>(partial_p_, {at}));",
            _BLOCK.format(symbol=symbol, threads=MAX_THREADS, pitch="1"),
            *self._post_map(),
            "}",
        ]

    def write(self) -> ReductionSource:
        lines = [*self._header(), *self._main(), *(self._finish() if self.shape.split else [])]
        return ReductionSource("\n".join(lines) + "\n", self.symbol, self.symbol + "_finish")


def write_reduction(
    name: str,
    inputs: Sequence[Parameter],
    outputs: Sequence[Parameter],
    dtypes: Sequence[str],
    reduce_type: str,
    expressions: Expressions,
    shape: Shape,
) -> ReductionSource:
    """The source of one variant of a reduction."""
    return _Writer(name, inputs, outputs, dtypes, reduce_type, expressions, shape).write()
