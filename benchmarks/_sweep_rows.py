"""The rows of sweep.py: the oracle's tables of code, at the sizes, dtypes and layouts of a benchmark.

No function is listed here: what is called, on what inputs, with what error bound stands in tests/oracle, and this
module only gives those cases other sizes. A table that is added there is in the sweep, too.
"""

from __future__ import annotations

import functools
import itertools
import math
import pathlib
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from oracle import composed, decomposed, elementwise, ordering, product, reduction, shaping
from oracle.arrays import INTS, Input
from oracle.cases import Case, names_of
from oracle.tables import SHAPES, Letter, Row, Table, case_of

MODULES = (elementwise, reduction, ordering, product, shaping, composed, decomposed)
DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64")
LAYOUTS = ("contiguous", "strided", "transposed", "broadcast", "gapped")
SIZES = (16, 1000, 10**6, 64 * 10**6)
LAYOUTS_FROM = 1000  # elements: below, what is timed is the call
LARGEST_SIDE = 2048  # of the square matrices that are multiplied
LARGEST_DECOMPOSED = 10**6  # elements: a decomposition of more takes minutes
REDUCED = (  # shape and axis of a reduction or a scan
    ("line", "None"),
    ("line", "0"),
    ("square", "None"),
    ("square", "0"),
    ("square", "1"),
    ("table", "0"),
    ("table", "1"),
    ("wide", "1"),
)

# Values that are timed are ordinary ones: NaN, infinities and subnormals have routes of their own in every library.
UNIT = {"arcsin", "arccos", "arctanh", "asin", "acos", "atanh"}
POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "power", "pow", "arccosh", "acosh", "float_power"}
DIVIDES = {"divide", "true_divide", "floor_divide", "remainder", "mod", "fmod", "divmod"}
# Columns taken by as many indices as there are rows: a number for each pair.
PAIRS = re.compile(r"t\[:, j\]|t\[\.\.\., j|take\(t, j")
KEEPS_INTEGERS = {"sorting", "sets", "casts"}  # what integers there are decides how these go about it


class Spot(NamedTuple):
    """One row: a case of the oracle, and what of it the report is divided by. `subject` is its code for all shapes."""

    subject: str
    case: Case
    dtype: str
    size: int
    layout: str

    @property
    def key(self) -> str:
        inputs = (f"{name}={s.dtype}{s.shape}{s.layout}:{s.fill}:{s.limit}" for name, s in self.case.inputs)
        return " ".join((self.case.code.replace("\n", "; "), f"n={self.case.n}", *inputs)).replace(", ", ",")


def tame(case: Case) -> Case:
    """The case on ordinary values of the domain of what it calls."""
    names = names_of(case.code)
    inputs = []
    for name, spec in case.inputs:
        # What is sorted has few equal numbers: many are a route of their own, too.
        fill = "any" if spec.fill == "ties" and case.family == "sorting" else spec.fill
        if fill == "any" and spec.dtype not in (*INTS, "bool"):
            fill = "unit" if names & UNIT else "positive" if names & POSITIVE else "finite"
        elif fill == "ties" and spec.dtype not in (*INTS, "bool"):
            fill = "whole"  # as many of each, without NaN
        elif fill == "any" and names & DIVIDES and spec.dtype != "bool":
            fill = "nonzero"
        elif fill in ("any", "finite") and spec.dtype in INTS and case.family not in KEEPS_INTEGERS:
            fill = "positive" if names & {"gcd", "lcm"} else fill
        inputs.append((name, spec._replace(fill=fill)))
    return case._replace(inputs=tuple(inputs))


def _of(case: Case, size: int, layout: str = "contiguous", subject: str = "") -> Spot:
    dtype = case.inputs[0][1].dtype if case.inputs else next((d for d in DTYPES if f"'{d}'" in case.code), "-")
    return Spot(subject or case.code, tame(case), dtype, size, layout)


def _resized(case: Case, old: int, new: int) -> Case:
    """A case of the oracle with every extent and limit of one size replaced by another."""
    inputs = tuple(
        (
            name,
            spec._replace(
                shape=tuple(new if extent == old else extent for extent in spec.shape),
                limit=new if spec.limit == old else spec.limit,
            ),
        )
        for name, spec in case.inputs
    )
    return case._replace(inputs=inputs, n=new if case.n == old else case.n)


def _shaped(case: Case, shapes: Iterable[tuple[int, ...]], layout: str, n: int) -> Case:
    pairs = zip(case.inputs, shapes, strict=False)
    return case._replace(inputs=tuple((x, s._replace(shape=shape, layout=layout)) for (x, s), shape in pairs), n=n)


def _layouts(size: int) -> tuple[str, ...]:
    return LAYOUTS if size >= LAYOUTS_FROM else LAYOUTS[:1]


def is_plain(case: Case) -> bool:
    """Whether all inputs are contiguous lines of one length, no dtype but those of the sweep among them."""
    specs = [spec for _, spec in case.inputs]
    lines = all(s.layout == "contiguous" and s.shape == specs[0].shape and len(s.shape) == 1 for s in specs)
    return lines and all(s.dtype in DTYPES for s in specs)


def of_ufuncs(sizes: tuple[int, ...]) -> Iterator[Spot]:
    """Every ufunc on lines, on tables of each layout, and with a row, a column and a number as its second operand."""
    found: dict[tuple[str, str], Case] = {}
    for case in elementwise.ufuncs():
        name = case.code.partition("(")[0].removeprefix("xp.")
        if case.tier == 0 and is_plain(case) and elementwise.UFUNCS[name].__name__ == name:
            key = case.code, case.inputs[0][1].dtype
            if key not in found or found[key].numpy is None:  # complex numbers: the case that NumPy can be asked
                found[key] = case
    for case, size in itertools.product(found.values(), sizes):
        (old,) = case.inputs[0][1].shape
        yield _of(_resized(case, old, size), size)
        side = math.isqrt(size)
        if size < LAYOUTS_FROM:
            continue
        for layout in LAYOUTS[1:]:
            yield _of(_shaped(case, [(side, side)] * 2, layout, size), size, layout)
        if len(case.inputs) == 2:
            for layout, shape in (("row", (side,)), ("column", (side, 1)), ("number", ())):
                yield _of(_shaped(case, [(side, side), shape], "contiguous", size), size, layout)


def of_casts(sizes: tuple[int, ...]) -> Iterator[Spot]:
    plain = [c for c in elementwise.casts() if c.tier == 0 and is_plain(c) and c.code.split("'")[1] in DTYPES]
    for case, size in itertools.product(plain, sizes):
        for layout in _layouts(size):
            shape = (size,) if layout in ("contiguous", "strided") else (math.isqrt(size),) * 2
            yield _of(_shaped(case, [shape], layout, size), size, layout)
    for dtype, code, size in itertools.product(DTYPES, elementwise.TRANSPOSED, sizes):
        spec = Input(dtype, (math.isqrt(size),) * 2, "any", seed=1)
        yield _of(Case("copies", code, (("x", spec),), size), size, "transposed")


def of_reductions(sizes: tuple[int, ...]) -> Iterator[Spot]:
    tables = (
        ("reductions", reduction.REDUCTIONS),
        ("reductions", reduction.FEW),
        ("scans", reduction.SCANS),
    )
    for family, table in tables:
        for (code, fill, ulps), dtype in itertools.product(table, DTYPES):
            bound = reduction.bound_of(code, ulps, dtype)
            for (shape, axis), size in itertools.product(REDUCED, sizes):
                n = fitted(size, [shape])
                for layout in _layouts(size):
                    spec = Input(dtype, SHAPES[shape](n), fill, layout)
                    line = reduction.along(code, axis)
                    case = Case(family, line, (("x", spec),), n, "", bound, bound * 20)
                    yield _of(case, size, layout, code)


def fitted(size: int, shapes: Iterable[str]) -> int:
    """The n of a row whose largest input has about `size` elements."""
    factor = max((math.prod(SHAPES[shape](1 << 20)) / (1 << 20) for shape in shapes), default=1.0)
    return max(1, round(size / factor)) if factor > 1.5 else size


def of_table(table: Table, sizes: tuple[int, ...]) -> Iterator[Spot]:
    for position, entry in enumerate(table.rows):
        row = Row(entry) if isinstance(entry, str) else entry
        used: dict[str, Letter] = {n: x for n, x in table.letters.items() if re.search(rf"\b{n}\b", row.code)}
        several = any(letter.layouts for letter in used.values())
        least = max((math.prod(SHAPES[letter.shape](1)) for letter in used.values()), default=1)
        for dtype, size in itertools.product(row.dtypes or table.dtypes, sizes):
            if dtype not in DTYPES or (table.family == "linear algebra" and size > LARGEST_DECOMPOSED):
                continue
            if least > 4 * size:  # matrices of a fixed extent
                continue
            n = fitted(size, (letter.shape for letter in used.values()))
            if table.family == "products":  # here, too
                n = math.isqrt(n)
            if PAIRS.search(row.code):
                n = min(n, 13 * math.isqrt(size))
            for layout in _layouts(size) if several else LAYOUTS[:1]:
                if layout in table.layouts:
                    case = case_of(table, row, used, dtype, n, layout, position, 0)
                    if "matrix_norm" in row.code and table.family == "products":
                        case = case._replace(device_ulps=8, numpy_ulps=8)
                    yield _of(case, size, layout)


def of_tables(sizes: tuple[int, ...]) -> Iterator[Spot]:
    for module in MODULES:
        for table in vars(module).values():
            if isinstance(table, Table):
                yield from of_table(table, sizes)


def of_products(sizes: tuple[int, ...]) -> Iterator[Spot]:
    """Square matrices, as they are and transposed; vectors and thin matrices; many small matrices."""
    for case in product.matrices():
        specs = [spec for _, spec in case.inputs]
        if any(s.shape != (200, 200) or s.dtype not in DTYPES for s in specs):
            continue
        for size in sizes:
            side = min(math.isqrt(size), LARGEST_SIDE)
            layouts = {s.layout for s in specs}
            yield _of(_resized(case, 200, side), size, "transposed" if "transposed" in layouts else "contiguous")
    for case in product.lines():
        specs = [spec for _, spec in case.inputs]
        if case.tier == 0 and case.n == 1024 and {s.layout for s in specs} == {"contiguous"}:
            for size in sizes:
                other = max(math.prod(s.shape) // 1024 for s in specs)
                if specs[0].dtype in DTYPES:
                    n = max(1, size // max(other, 1))
                    shapes = "x".join(str(s.shape).replace("1024", "n") for s in specs)
                    yield _of(_resized(case, 1024, n), size, subject=f"{case.code}, {shapes}")
    for case in product.batches():
        if all(s.shape[0] == 300 and s.layout == "contiguous" and s.dtype in DTYPES for _, s in case.inputs):
            for size in sizes:
                yield _of(_resized(case, 300, max(1, size // 34)), size, subject=f"{case.code}, batches")


def of_made(sizes: tuple[int, ...]) -> Iterator[Spot]:
    """What makes arrays, and random numbers: lines without inputs, which read n."""
    codes = {case.code: case for case in shaping.cases() if not case.inputs}
    for case, size in itertools.product(codes.values(), sizes):
        if not re.search(r"'(bfloat16|u?int16|uint32|uint64|int8|complex128)'", case.code) or case.family == "random":
            yield _of(case._replace(n=size), size, subject=re.sub(r"'[a-z]+\d*'", "dtype", case.code))


def in_order(spots: Iterable[Spot]) -> list[Spot]:
    """Each round takes one row of every subject: a run of any length has all functions, sizes and dtypes alike."""
    subjects: dict[str, dict[str, Spot]] = {}
    for spot in spots:
        subjects.setdefault(f"{spot.case.family} {spot.subject}", {}).setdefault(spot.key, spot)
    shuffled = sorted(subjects, key=lambda name: zlib.crc32(name.encode()))
    columns = [sorted(subjects[s].values(), key=lambda spot: zlib.crc32(spot.key.encode())) for s in shuffled]
    return [spot for row in itertools.zip_longest(*columns) for spot in row if spot is not None]


def _repeats(spot: Spot) -> bool:
    """A transposed line is the line."""
    return spot.layout == "transposed" and all(len(spec.shape) < 2 for _, spec in spot.case.inputs)


@functools.cache
def walk(sizes: tuple[int, ...] = SIZES, only: str = "") -> list[Spot]:
    """All rows of a sweep. `only`: those in whose family and code this regular expression is found."""
    parts = (of_ufuncs, of_casts, of_reductions, of_tables, of_products, of_made)
    spots = itertools.chain.from_iterable(part(sizes) for part in parts)
    wanted = re.compile(only)
    return in_order(s for s in spots if wanted.search(f"{s.case.family}: {s.case.code}") and not _repeats(s))


__all__ = ["DTYPES", "LAYOUTS", "SIZES", "Spot", "walk"]
