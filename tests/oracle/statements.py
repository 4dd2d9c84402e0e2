"""Random statements over ndarrays: each is drawn from what the arrays of a program look like at its point."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np

from oracle.programs import literal

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
SCALARS = (
    "0", "1", "2", "3", "-1", "-2", "7", "127", "128", "-128", "-129", "255", "256", "300", "32768", "2**31", "-2**31",
    "2**32", "2**53 + 1", "2**63 - 1", "2**63", "2**64 - 1", "2**64", "-2**63", "-2**63 - 1", "10**30", "True", "False",
    "0.5", "-0.0", "1.5", "2.0", "-3.0", "1e5", "1e300", "inf", "-inf", "nan", "1j", "complex(2, -1)",
    "np.int8(3)", "np.int8(-1)", "np.uint8(200)", "np.int16(-300)", "np.int64(5)", "np.uint64(2**63)",
    "np.float16(1.5)", "np.float32(2.5)", "np.float64(0.25)", "np.complex64(1 - 1j)", "np.bool_(True)",
)  # fmt: skip
BINARY = ("+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>")
IN_PLACE = ("+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>=")
UNARY_FUNCTIONS = (
    "negative", "positive", "absolute", "sign", "square", "floor", "ceil", "trunc", "rint", "invert", "sqrt", "isnan",
    "isinf", "isfinite", "signbit", "logical_not", "conjugate", "real", "imag", "fabs", "isreal",
    "iscomplex", "isposinf", "isneginf", "nan_to_num",
)  # fmt: skip
BINARY_FUNCTIONS = (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "copysign", "gcd", "power", "heaviside",
    "hypot", "lcm",
)  # fmt: skip
REDUCTIONS = (
    "sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "ptp", "count_nonzero", "argmax", "argmin",
    "nansum", "nanmax", "nanmin", "median",
)  # fmt: skip


def _divisors(n: int) -> list[int]:
    low = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return sorted({*low, *(n // d for d in low)})


class Writer:
    """Draws the next line of a program from its arrays, which it sees as NumPy's."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.arrays: dict[str, np.ndarray] = {}
        self.count = 0

    def line(self, arrays: dict[str, np.ndarray]) -> str:
        self.arrays = arrays
        if len(arrays) < 2 or self.rng.random() < 0.08:
            return f"{self.new()} = {self.fresh()}"
        kinds: tuple[tuple[Callable[[], str], int], ...] = (
            (self.view, 20), (self.binary, 16), (self.in_place, 14), (self.unary, 6), (self.get, 12), (self.put, 14),
            (self.reduction, 12), (self.cast, 6), (self.joined, 7), (self.ordered, 8), (self.moved, 7),
            (self.chosen, 8), (self.scanned, 4), (self.with_out, 8), (self.product, 4), (self.function, 8),
        )  # fmt: skip
        choose = self.rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        return choose()

    # --- pieces ------------------------------------------------------------------------------------------------------

    def new(self) -> str:
        """A name: mostly a new one, of eight at most, so that arrays die."""
        self.count += 1
        return f"v{self.count % 8}"

    def any(self) -> str:
        return self.rng.choice(list(self.arrays))

    def where(self, wanted: Callable[[np.ndarray], bool]) -> str:
        found = [name for name, value in self.arrays.items() if wanted(value)]
        return self.rng.choice(found) if found else self.any()

    def like(self, name: str) -> str:
        """An array that broadcasts with another, a number, or whatever there is."""
        shape = self.arrays[name].shape

        def fits(value: np.ndarray) -> bool:
            try:
                return len(np.broadcast_shapes(shape, value.shape)) <= 5
            except ValueError:
                return False

        return self.where(fits) if self.rng.random() < 0.93 else self.any()

    def scalar(self) -> str:
        return self.rng.choice(SCALARS)

    def operand(self, name: str) -> str:
        return self.scalar() if self.rng.random() < 0.35 else self.like(name)

    def shape(self, most: int = 4) -> tuple[int, ...]:
        dims = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
        return tuple(self.rng.choice((0, 1, 1, 2, 3, 3, most, 5)) for _ in range(dims))

    def values(self, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        count = math.prod(shape)
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype[0] in "iu":
            info = np.iinfo(dtype)
            values = rng.integers(max(info.min, -5), 8, count)
            ends = rng.choice(np.array([info.min, info.max, info.max // 2], dtype), count)
            chosen = np.where(rng.random(count) < 0.15, ends, values.astype(dtype))
            return chosen.astype(dtype).reshape(shape)
        real = rng.integers(-8, 9, count) / 2.0
        if dtype[0] == "f":
            special = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e4]), count)
            real = np.where(rng.random(count) < 0.15, special, real)
            return real.astype(dtype).reshape(shape)
        return (real + 1j * rng.integers(-4, 5, count)).astype(dtype).reshape(shape)

    def fresh(self, shape: tuple[int, ...] | None = None, dtype: str = "") -> str:
        dtype = dtype or self.rng.choice(DTYPES)
        return literal(self.values(dtype, self.shape() if shape is None else shape))

    def axis(self, name: str, none: bool = True) -> str:
        dims = self.arrays[name].ndim
        drawn = self.rng.random()
        if (drawn < 0.2 and none) or not dims:
            return "None" if none else "0"
        if drawn < 0.24:
            return str(dims)  # out of bounds
        return str(self.rng.randrange(-dims, dims))

    def axes(self, name: str) -> str:
        dims = self.arrays[name].ndim
        if self.rng.random() < 0.35 and dims:
            chosen = self.rng.sample(range(dims), self.rng.randint(0, dims))
            return str(tuple(a - dims if self.rng.random() < 0.3 else a for a in chosen))
        return self.axis(name)

    def slice(self, extent: int) -> str:
        def bound() -> str:
            return "" if self.rng.random() < 0.45 else str(self.rng.randint(-extent - 1, extent + 1))

        step = self.rng.choice(("", "", "", "2", "-1", "-1", "-2", "3"))
        return f"{bound()}:{bound()}" + (f":{step}" if step else "")

    def basic(self, name: str) -> str:
        """A basic key, which gives a view."""
        parts: list[str] = []
        for extent in self.arrays[name].shape:
            drawn = self.rng.random()
            if drawn < 0.12:
                parts.append("None")
            if drawn < 0.2:
                break
            if drawn < 0.35 and extent:
                parts.append(str(self.rng.randrange(-extent, extent)))
            elif drawn < 0.37:
                parts.append(str(extent))
            else:
                parts.append(self.slice(extent))
        if self.rng.random() < 0.25:
            parts.insert(self.rng.randint(0, len(parts)), "...")
        return ", ".join(parts) or "..."

    def index_array(self, extent: int, shape: tuple[int, ...]) -> str:
        dtype = self.rng.choice(("int64", "int64", "int32", "int8", "uint8", "intp", "uint64"))
        dtype = "int64" if extent > 127 else dtype
        low = 0 if dtype.startswith("u") else -extent
        count = math.prod(shape)
        numbers = [self.rng.randrange(low, extent) if extent else 0 for _ in range(count)]
        if self.rng.random() < 0.04 and numbers:
            numbers[0] = extent  # out of bounds
        made = np.array(numbers, dtype).reshape(shape)
        if self.rng.random() < 0.3 and len(shape) == 1:
            return str(numbers)
        return literal(made)

    def advanced(self, name: str) -> str:
        """A key with index arrays, lists or masks in it."""
        value = self.arrays[name]
        drawn = self.rng.random()
        if drawn < 0.2:
            return literal(np.array(self.rng.choices((False, True), k=value.size), bool).reshape(value.shape))
        if drawn < 0.3:
            return self.where(lambda other: other.dtype == bool and other.shape == value.shape)
        target = self.rng.choice(((), (1,), (2,), (3,), (2, 2), (0,), (4,), (2, 1)))
        parts: list[str] = []
        arrays = 0
        for extent in value.shape:
            drawn = self.rng.random()
            if drawn < 0.1:
                parts.append("None")
            if drawn < 0.5:
                parts.append(self.index_array(extent, target if self.rng.random() < 0.8 else (1,)))
                arrays += 1
            elif drawn < 0.6:
                parts.append(literal(np.array(self.rng.choices((False, True), k=extent), bool)))
                arrays += 1
            elif drawn < 0.7 and extent:
                parts.append(str(self.rng.randrange(extent)))
            elif drawn < 0.8:
                break
            else:
                parts.append(self.slice(extent))
        if self.rng.random() < 0.1:
            parts.insert(self.rng.randint(0, len(parts)), "...")
        if not arrays:
            parts = [self.index_array(value.shape[0] if value.shape else 1, target)]
        return ", ".join(parts)

    def key(self, name: str) -> str:
        return self.basic(name) if self.rng.random() < 0.55 else self.advanced(name)

    def made(self, *expressions: str) -> str:
        """A new name for one of some expressions."""
        return f"{self.new()} = {self.rng.choice(expressions)}"

    # --- statements --------------------------------------------------------------------------------------------------

    def view(self) -> str:
        name = self.any()
        value = self.arrays[name]
        order = list(range(value.ndim))
        self.rng.shuffle(order)
        return self.made(
            f"{name}[{self.basic(name)}]",
            f"{name}[{self.basic(name)}]",
            f"{name}[{self.basic(name)}]",
            f"{name}.T",
            f"{name}.transpose({tuple(order)})",
            f"xp.swapaxes({name}, {self.axis(name, False)}, {self.axis(name, False)})",
            f"xp.moveaxis({name}, {self.axis(name, False)}, {self.axis(name, False)})",
            f"{name}.reshape({self.reshaped(value.size)})",
            f"{name}.reshape({self.reshaped(value.size)}, order='F')",
            f"{name}.ravel({self.rng.choice(('', repr('F'), repr('K'), repr('A')))})",
            f"xp.broadcast_to({name}, {self.broadcast(value.shape)})",
            f"xp.expand_dims({name}, {self.rng.randint(-value.ndim - 1, value.ndim)})",
            f"xp.squeeze({name})",
            f"xp.flip({name}, {self.axes(name)})",
            f"xp.diagonal({name}, {self.rng.randint(-2, 2)})",
            f"{name}.real",
            f"{name}.imag",
            f"xp.rot90({name}, {self.rng.randint(0, 3)})",
            f"xp.atleast_2d({name})",
        )

    def reshaped(self, size: int) -> str:
        extents: list[int] = []
        rest = size
        while rest > 1 and len(extents) < 3:
            extent = self.rng.choice(_divisors(rest))
            extents.append(extent)
            rest //= extent
        extents.append(rest)
        if self.rng.random() < 0.3 and size:
            extents[self.rng.randrange(len(extents))] = -1
        return str(tuple(extents))

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        wide = tuple(self.rng.choice((1, 2, 3, 0)) if extent == 1 else extent for extent in shape)
        return (self.rng.choice((1, 2)), *wide) if self.rng.random() < 0.4 and len(shape) < 4 else wide

    def binary(self) -> str:
        name = self.any()
        other, operator = self.operand(name), self.rng.choice(BINARY)
        left, right = (name, other) if self.rng.random() < 0.65 else (other, name)
        return f"{self.new()} = {left} {operator} {right}"

    def function(self) -> str:
        name = self.any()
        return f"{self.new()} = xp.{self.rng.choice(BINARY_FUNCTIONS)}({name}, {self.operand(name)})"

    def unary(self) -> str:
        name = self.any()
        if self.rng.random() < 0.3:
            return f"{self.new()} = {self.rng.choice('-~+')}{name}"
        return f"{self.new()} = xp.{self.rng.choice(UNARY_FUNCTIONS)}({name})"

    def in_place(self) -> str:
        name = self.any()
        operator = self.rng.choice(IN_PLACE)
        drawn = self.rng.random()
        if drawn < 0.35:
            return f"{name} {operator} {self.operand(name)}"
        key = self.key(name)
        if drawn < 0.6:
            return f"{name}[{key}] {operator} {self.operand(name) if drawn < 0.45 else self.scalar()}"
        # Overlapping: an array with a view of itself that has its shape.
        other = self.rng.choice((f"{name}[::-1]", f"{name}.T", f"{name}[..., ::-1]", f"{name}[:1]", f"{name}[-1]"))
        if drawn < 0.8:
            return f"{name} {operator} {other}"
        return self.rng.choice((f"{name}[1:] {operator} {name}[:-1]", f"{name}[:-1] {operator} {name}[1:]"))

    def get(self) -> str:
        name = self.any()
        return f"{self.new()} = {name}[{self.advanced(name)}]"

    def put(self) -> str:
        name = self.any()
        drawn = self.rng.random()
        if drawn < 0.2:
            other = self.rng.choice((f"{name}[::-1]", f"{name}.T", f"{name}[..., ::-1]", f"{name}[:1]"))
            return f"{name}[...] = {other}"
        if drawn < 0.3:
            left, right = self.rng.choice((("1:", ":-1"), (":-1", "1:"), ("::2", "1::2"), ("...", "::-1")))
            return f"{name}[{left}] = {name}[{right}]"
        if drawn < 0.35:
            return f"{name}.fill({self.rng.choice([one for one in SCALARS if 'np.' not in one])})"
        key = self.key(name)
        if drawn < 0.55:
            return f"{name}[{key}] = {self.scalar()}"
        try:
            shape = np.empty(self.arrays[name].shape)[eval(key, {"xp": np, "on": {}, **self.arrays})].shape
        except Exception:
            shape = ()
        if drawn < 0.7:
            return f"{name}[{key}] = {self.like_shape(shape)}"
        return f"{name}[{key}] = {self.fresh(shape)}"

    def like_shape(self, shape: tuple[int, ...]) -> str:
        return self.where(lambda value: value.shape == shape or value.size == 1)

    def reduction(self) -> str:
        name = self.any()
        function = self.rng.choice(REDUCTIONS)
        if self.arrays[name].dtype.kind == "c" and not np.isfinite(self.arrays[name]).all():
            function = "count_nonzero"  # of complex infinities every library has sums and variances of its own
        arguments = [name]
        axis = self.axis(name) if function.startswith("arg") else self.axes(name)
        if axis != "None" or self.rng.random() < 0.5:
            arguments.append(f"axis={axis}")
        if self.rng.random() < 0.25:
            arguments.append("keepdims=True")
        if self.rng.random() < 0.15 and function in ("sum", "prod", "mean"):
            inexact = function == "mean" or self.arrays[name].dtype.kind in "fc"
            arguments.append(f"dtype={self.rng.choice(DTYPES[10:] if inexact else DTYPES)!r}")
        if self.rng.random() < 0.15 and function in ("var", "std"):
            arguments.append(f"ddof={self.rng.randint(0, 2)}")
        if self.rng.random() < 0.15 and not function.startswith("nan") and function != "count_nonzero":
            out = self.any()
            return f"xp.{function}({', '.join(arguments)}, out={out})"
        return f"{self.new()} = xp.{function}({', '.join(arguments)})"

    def cast(self) -> str:
        name = self.any()
        dtype = self.rng.choice(DTYPES)
        return self.made(
            f"{name}.astype({dtype!r})",
            f"{name}.astype({dtype!r})",
            f"{name}.astype({dtype!r}, casting={self.rng.choice(('safe', 'same_kind', 'unsafe'))!r})",
            f"{name}.astype({dtype!r}, copy=False)",
            f"{name}.copy({self.rng.choice(('', repr('F'), repr('K'), repr('A')))})",
            f"xp.asarray({name})",
            f"xp.ascontiguousarray({name})",
            f"xp.asfortranarray({name})",
            f"xp.full_like({name}, {self.scalar()})",
            f"xp.zeros_like({name}, dtype={dtype!r})",
            f"xp.array({name}, ndmin=2)",
        )

    def joined(self) -> str:
        name = self.any()
        other = self.where(lambda value: value.shape == self.arrays[name].shape)
        axis = self.axis(name, False)
        return self.made(
            f"xp.concatenate([{name}, {other}], axis={self.axis(name)})",
            f"xp.concatenate([{name}, {self.any()}], axis=None)",
            f"xp.concatenate([{name}[:1], {other}])",
            f"xp.stack([{name}, {other}], axis={axis})",
            f"xp.hstack([{name}, {other}])",
            f"xp.vstack([{name}, {other}])",
            f"xp.append({name}, {self.operand(name)})",
            f"xp.column_stack([{name}, {other}])",
        )

    def ordered(self) -> str:
        name = self.any()
        axis = self.axis(name)
        made = self.rng.choice(
            (
                f"xp.sort({name}, axis={axis})",
                f"xp.argsort({name}, axis={axis}, kind='stable')",
                f"xp.unique({name})",
                f"xp.nonzero({name})[0]",
                f"xp.searchsorted(xp.sort({name}.ravel()), {self.operand(name)})",
                f"xp.flatnonzero({name})",
                f"xp.argwhere({name})",
                f"xp.isin({name}, {self.any()})",
                f"xp.take_along_axis({name}, xp.argsort({name}, axis=-1, kind='stable'), axis=-1)",
                "",
            )
        )
        if not made:
            return f"{name}.sort({self.axis(name, False)})"
        return f"{self.new()} = {made}"

    def moved(self) -> str:
        name = self.any()
        return self.made(
            f"xp.roll({name}, {self.rng.randint(-3, 3)}, axis={self.axes(name)})",
            f"xp.repeat({name}, {self.rng.randint(0, 3)}, axis={self.axis(name)})",
            f"xp.tile({name}, {self.rng.choice(('2', '(2, 1)', '(1, 2, 1)', '0'))})",
            f"xp.pad({name}, {self.rng.choice(('1', '(0, 2)'))})",
            f"xp.tril({name})",
            f"xp.triu({name}, 1)",
            f"xp.diag({name}).copy()",
            f"xp.diff({name}, axis={self.axis(name, False)})",
            f"xp.delete({name}, {self.rng.choice(('0', '[0, -1]', 'slice(None, None, 2)'))}, {self.axis(name)})",
            f"xp.resize({name}, {self.shape(3)})",
        )

    def chosen(self) -> str:
        name = self.any()
        mask = self.where(lambda value: value.dtype == bool)
        extent = max(self.arrays[name].size, 1)
        rows = self.index_array(max(self.arrays[name].shape[:1] or (1,)), (3,))
        return self.rng.choice(
            (
                f"{self.new()} = xp.where({mask}, {name}, {self.operand(name)})",
                f"{self.new()} = xp.where({mask}, {self.scalar()}, {self.scalar()})",
                f"{self.new()} = xp.clip({name}, {self.operand(name)}, {self.operand(name)})",
                f"{self.new()} = xp.take({name}, {self.index_array(extent, (3,))})",
                f"{self.new()} = xp.take({name}, [0, 0, -1], axis={self.axis(name, False)}, mode='clip')",
                f"{self.new()} = xp.compress([True, False, True], {name}, axis={self.axis(name)})",
                f"{self.new()} = xp.extract({mask}, {name})",
                f"{self.new()} = xp.select([{mask}], [{name}], {self.scalar()})",
                f"xp.copyto({name}, {self.operand(name)}, where=~{mask})",
                f"xp.copyto({name}, {self.operand(name)})",
                f"xp.putmask({name}, ~{mask}, {self.fresh((2,))})",
                f"xp.put({name}, {self.index_array(extent, (2,))}, {self.scalar()})",
                f"xp.add.at({self.where(lambda value: value.dtype.kind in 'ifc')}, {rows}, {self.rng.randint(0, 3)})",
                f"xp.fill_diagonal({name}, {self.scalar()})",
            )
        )

    def scanned(self) -> str:
        name = self.any()
        function = self.rng.choice(("cumsum", "cumprod", "nancumsum"))
        return f"{self.new()} = xp.{function}({name}, axis={self.axis(name)})"

    def with_out(self) -> str:
        name = self.any()
        out = self.rng.choice((name, self.like(name), f"{name}[::-1]", f"{self.like(name)}[...]"))
        if self.rng.random() < 0.3:
            return f"xp.{self.rng.choice(UNARY_FUNCTIONS[:12])}({name}, out={out})"
        return f"xp.{self.rng.choice(BINARY_FUNCTIONS[:-1])}({name}, {self.operand(name)}, out={out})"

    def product(self) -> str:
        name = self.any()
        other = self.where(lambda value: value.ndim > 0 and value.shape[-1:] == self.arrays[name].shape[-1:])
        return self.made(
            f"{name} @ {other}",
            f"{name} @ {other}.T",
            f"xp.dot({name}, {other}.T)",
            f"xp.outer({name}, {other})",
            f"xp.inner({name}, {other})",
            f"xp.vecdot({name}, {other})",
            f"xp.tensordot({name}, {other}, 0)",
        )
