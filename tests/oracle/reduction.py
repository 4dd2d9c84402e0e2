"""Cases of reductions, scans and what is made of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from oracle.arrays import DTYPES, INEXACT, INTS, LAYOUTS, Input
from oracle.cases import Case
from oracle.tables import SHAPES, itemsize
from oracle.thresholds import sizes

# Code, the values that keep it exact whatever the order of the sums, units in the last place otherwise.
# Variances have 16 added: their error is one of the squares of the values, which may cancel to nothing.
REDUCTIONS: tuple[tuple[str, str, float], ...] = (
    ("xp.sum(x, axis=a)", "whole", 0),
    ("xp.sum(x, axis=a)", "positive", 40),
    ("xp.prod(x, axis=a)", "signs", 0),
    ("xp.max(x, axis=a)", "any", 0),
    ("xp.min(x, axis=a)", "any", 0),
    ("xp.any(x, axis=a)", "whole", 0),
    ("xp.all(x, axis=a)", "whole", 0),
    ("xp.count_nonzero(x, axis=a)", "ties", 0),
    ("xp.argmax(x, axis=a)", "any", 0),
    ("xp.argmin(x, axis=a)", "any", 0),
    ("xp.argmax(x, axis=a)", "ties", 0),
    ("xp.argmin(x, axis=a)", "ties", 0),
    ("xp.mean(x, axis=a)", "whole", 1),
    ("xp.mean(x, axis=a)", "positive", 40),
    ("xp.var(x, axis=a) + 16", "positive", 60),
    ("xp.std(x, axis=a) + 16", "positive", 60),
    ("xp.ptp(x, axis=a)", "whole", 0),
    ("xp.nansum(x, axis=a)", "holes", 0),
    ("xp.nanmax(x, axis=a)", "any", 0),
    ("xp.nanmin(x, axis=a)", "any", 0),
    ("xp.nanargmax(x, axis=a)", "holes", 0),
    ("xp.nanargmin(x, axis=a)", "holes", 0),
    ("xp.nanmean(x, axis=a)", "holes", 1),
    ("xp.nanprod(x, axis=a)", "signs", 0),
    ("xp.nanvar(x, axis=a) + 16", "positive", 60),
    ("xp.nanstd(x, axis=a) + 16", "positive", 60),
    ("xp.average(x, axis=a)", "whole", 1),
    ("xp.linalg.norm(x, axis=a)", "positive", 60),
    ("xp.linalg.norm(x, 1, axis=a)", "whole", 40),
    ("xp.linalg.norm(x, inf, axis=a)", "finite", 4),
    ("xp.linalg.norm(x, -inf, axis=a)", "finite", 4),
    ("xp.linalg.vector_norm(x, axis=a)", "positive", 60),
)
FEW = (
    ("xp.amax(x, axis=a)", "any", 0),
    ("xp.amin(x, axis=a)", "any", 0),
    ("xp.add.reduce(x, axis=a)", "whole", 0),
    ("xp.maximum.reduce(x, axis=a)", "any", 0),
    ("xp.sum(x, axis=a, keepdims=True)", "whole", 0),
    ("xp.median(x, axis=a)", "positive", 4),
    ("xp.percentile(x, 30, axis=a)", "positive", 8),
    ("xp.quantile(x, 0.77, axis=a)", "positive", 8),
    ("xp.average(x, axis=a, weights=x)", "positive", 60),
    ("x.sum(axis=a)", "whole", 0),
    ("x.prod(axis=a)", "signs", 0),
    ("x.max(axis=a)", "any", 0),
    ("x.min(axis=a)", "any", 0),
    ("x.any(axis=a)", "whole", 0),
    ("x.all(axis=a)", "whole", 0),
    ("x.argmax(axis=a)", "any", 0),
    ("x.argmin(axis=a)", "any", 0),
    ("x.mean(axis=a)", "whole", 1),
    ("x.var(axis=a) + 16", "positive", 60),
    ("x.std(axis=a) + 16", "positive", 60),
)
SCANS: tuple[tuple[str, str, float], ...] = (
    ("xp.cumsum(x, axis=a)", "whole", 0),
    ("xp.cumprod(x, axis=a)", "signs", 0),
    ("xp.cumsum(x, axis=a)", "positive", 1250),  # equal numbers one by one: half a unit more each time, of 2,500
    ("xp.nancumsum(x, axis=a)", "holes", 0),
    ("xp.nancumprod(x, axis=a)", "signs", 0),
    ("xp.cumulative_sum(x, axis=a, include_initial=True)", "whole", 0),
    ("xp.nancumsum(x, axis=a, out=xp.cumsum(x, axis=a))", "holes", 0),
    ("xp.cumulative_prod(x, axis=a)", "signs", 0),
    ("xp.add.accumulate(x, axis=a)", "whole", 0),
    ("x.cumsum(axis=a)", "whole", 0),
    ("x.cumprod(axis=a)", "signs", 0),
)
AXES = {"line": 0, "rows": 1, "columns": 0, "tall": 1, "middle": 1}


def bound_of(code: str, ulps: float, dtype: str) -> float:
    """Results of integers are exact, too, unless the function divides."""
    divides = any(
        name in code for name in ("mean", "var", "std", "norm", "median", "percentile", "quantile", "average")
    )
    return ulps if dtype in INEXACT or divides else 0


def along(code: str, axis: object) -> str:
    return code.replace("=a", f"={axis}")


def _inputs(code: str, dtype: str, fill: str, around: str, most: int) -> Iterator[tuple[str, Input, int, bool]]:
    """The code along an axis, its input, its size, and whether it is one that no run leaves out."""
    tried = [n for n in sizes(around, itemsize(dtype), most) if n or not _needs_an_element(code)]
    for (shape, axis), n in itertools.product(AXES.items(), tried):
        yield along(code, axis), Input(dtype, SHAPES[shape](n), fill), n, shape == "line" and n == tried[-1]
    for layout in LAYOUTS[1:]:
        for shape, axis in (((2500,), "0"), ((61, 67), "None"), ((61, 67), "0"), ((61, 67), "1"), ((), "None")):
            if axis != "None" or "accumulate" not in code:
                yield along(code, axis), Input(dtype, shape, fill, layout), 61, False
    if "arg" not in code and "cum" not in code and "accumulate" not in code and "norm" not in code:
        for axis in ("(0, 2)", "(1, 2)", "(0, 1, 2)", "()"):
            yield along(code, axis), Input(dtype, (5, 70, 9), fill), 5, False


def _needs_an_element(code: str) -> bool:
    """Order statistics and weighted means of nothing are errors, of another kind than NumPy's, or NaN."""
    return any(name in code for name in ("median", "percentile", "quantile", "average", "-inf"))


def _table(family: str, table: tuple[tuple[str, str, float], ...], around: str, most: int) -> Iterator[Case]:
    for (code, fill, ulps), dtype in itertools.product(table, DTYPES):
        if fill == "positive" and dtype not in INEXACT and ("sum" in code or "mean" in code):
            continue  # exact in integers, which the whole numbers have shown
        if fill == "signs" and dtype in INTS and "nan" in code:
            continue
        bound = bound_of(code, ulps, dtype)
        for line, spec, n, first in _inputs(code, dtype, fill, around, most):
            tier = 0 if first else 1 if spec.layout != "contiguous" else 2
            # NumPy adds one by one along all axes but the last.
            yield Case(family, line, (("x", spec),), n, "", bound, bound * 20, tier)


def cases() -> Iterator[Case]:
    yield from _table("reductions", REDUCTIONS, "reduction", 40000)
    yield from _table("scans", SCANS, "scan", 20000)
    for case in _table("reductions", FEW, "reduction", 9000):
        if case.n in (0, 1, 61, 5) or case.tier == 0 or case.n > 4000:
            yield case
