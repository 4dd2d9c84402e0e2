"""Cases of every ufunc, of the functions beside them, and of casts and copies."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from dlbridge import nd

from oracle.arrays import COMPLEX, DTYPES, FLOATS, INEXACT, INTS, LAYOUTS, Input
from oracle.cases import Case
from oracle.tables import Letter, Row, Table, expand_all, itemsize, rows
from oracle.thresholds import sizes, value_of

UFUNCS = {name: value for name in nd.__all__ if isinstance(value := getattr(nd, name), nd.ufunc)}


class Beyond(NamedTuple):
    """A ufunc that NumPy lacks: its values in float64, and how far the libraries are apart (ULPS)."""

    value: Callable[..., Any]
    ulps: float


BEYOND_NUMPY = {
    "erf": Beyond(np.vectorize(math.erf, otypes="d"), 5),
    "expit": Beyond(lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))), 5),
    "rsqrt": Beyond(lambda x: 1 / np.sqrt(x), 5),
}

# Functions of the mathematical libraries: glibc, NumPy's vectors and CUDA round each in its own way. The number is that
# of CUDA's programming guide for its worst dtype, with a unit for glibc's and two for NumPy's. All others are exact.
ULPS = {
    **{name: row.ulps for name, row in BEYOND_NUMPY.items()},
    **dict.fromkeys(("sin", "cos", "arcsin", "arccos", "arctan", "arctan2", "cosh", "tanh", "hypot"), 5),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt"), 5),
    **dict.fromkeys(("logaddexp", "logaddexp2", "sinc"), 5),
    **dict.fromkeys(("degrees", "radians"), 2),  # by a factor that NumPy divides in the dtype
    **dict.fromkeys(("tan", "sinh", "arcsinh", "arccosh", "arctanh", "power"), 7),
}
# Complex arithmetic is made of several rounded steps, in an order of each library's own; fused on a GPU.
COMPLEX_ULPS = {
    **{name: 4 * ulps for name, ulps in ULPS.items()},
    **dict.fromkeys(("multiply", "divide", "square", "reciprocal", "absolute", "sign", "sqrt"), 4),
    "power": 4096,  # exp(y log x): an angle of thousands, whose last place is that much of the result's
}
# Infinities survive these in the ndarray, as Annex G of the C standard has it. NumPy gives NaN, or what its vectors
# give: it is compared on finite numbers only.
ANNEX_G = {"multiply", "divide", "reciprocal", "square", "power", "sign"}
# What values an operand has where not all will do: the numbers that each operation is defined for.
FILLS = {
    "left_shift": ("any", "shift"),
    "right_shift": ("any", "shift"),
    "reciprocal": ("nonzero",),
    "power": ("any", "exponent"),
}


def bound(name: str, dtype: str) -> float:
    base = UFUNCS[name].__name__
    return (COMPLEX_ULPS if dtype in COMPLEX else ULPS).get(base, 0)


def fills(name: str, dtype: str, count: int) -> tuple[str, ...]:
    base = UFUNCS[name].__name__
    if base in FILLS and (dtype in (*INTS, "bool") or base != "reciprocal"):
        return FILLS[base]
    return ("any",) * count


def _case(code: str, name: str, specs: list[Input], tier: int) -> Case:
    ulps = max(bound(name, spec.dtype) for spec in specs)
    special = any(spec.dtype in COMPLEX for spec in specs)
    special = special and any(spec.dtype in INEXACT and spec.fill == "any" for spec in specs)
    numpy = None if special and UFUNCS[name].__name__ in ANNEX_G else ""
    inputs = tuple(zip("xy", specs, strict=False))
    size = ""
    if UFUNCS[name].__name__ == "sinc":
        size = "np.fmax(1.0, np.abs(np.sinc(x)))"  # near its zeros, of what the rounding of pi x makes
        if specs[0].dtype == "float16" and numpy is not None:  # whose pi has three digits
            numpy = re.sub(r"xp\.sinc\((.*?)\)", r"np.sinc((\1).astype('float32')).astype('float16')", code)
    if UFUNCS[name].__name__ in ("logaddexp", "logaddexp2"):  # near zero, a difference of numbers of the operands' size
        size = "np.maximum(np.abs(1.0 * x), np.abs(1.0 * y))"
        if "out=y[1:]" in code:  # what y holds where the result goes is no operand of it
            size = "np.maximum(np.abs(1.0 * x), np.abs(1.0 * np.roll(y, 1, 0)))"
    return Case("ufuncs", code, inputs, math.prod(specs[0].shape), numpy, ulps, ulps, tier, size)


def short_rows(dtype: str) -> tuple[int, int]:
    """Rows that are too short to be walked one by one, and more than a block of them."""
    return value_of("host/elementwise.cpp:kBlockBytes") // (2 * itemsize(dtype)) + 3, 2


def ufuncs() -> Iterator[Case]:
    """Every ufunc under every name: sizes around the thresholds, layouts, and pairs of dtypes."""
    for name, ufunc in UFUNCS.items():
        letters = "xy"[: ufunc.nin]
        code = f"xp.{name}({', '.join(letters)})"
        alias = name != ufunc.__name__
        for dtype in DTYPES:
            values = fills(name, dtype, ufunc.nin)
            if dtype in COMPLEX and UFUNCS[name].__name__ in ANNEX_G:
                specs = [Input(dtype, (3001,), "finite", seed=k) for k in range(ufunc.nin)]
                yield _case(code, name, specs, 0)
            tried = [17, 4097] if alias else [*sizes("elementwise", itemsize(dtype), 20000)]
            for n in tried:
                specs = [Input(dtype, (n,), fill, seed=k) for k, fill in enumerate(values)]
                yield _case(code, name, specs, 0 if n == max(tried) else 2)
            if alias:
                continue
            for layout, shape in itertools.product(LAYOUTS, ((37,), (61, 67), short_rows(dtype), ())):
                specs = [Input(dtype, shape, fill, layout, k) for k, fill in enumerate(values)]
                yield _case(code, name, specs, 1)
            if ufunc.nin == 2:
                yield from _pairs(name, code, dtype, values)


def _pairs(name: str, code: str, dtype: str, values: tuple[str, ...]) -> Iterator[Case]:
    first = Input(dtype, (33, 130), values[0], seed=1)
    for shape, layout in (
        ((130,), "contiguous"),
        ((33, 1), "contiguous"),
        ((), "contiguous"),
        ((33, 130), "transposed"),
    ):
        yield _case(code, name, [first, Input(dtype, shape, values[1], layout, 2)], 1)
    yield _case(f"xp.{name}(x[1:], y[:-1], out=y[1:])\ny", name, [first, first._replace(fill=values[1], seed=3)], 1)
    for other in DTYPES:
        if other != dtype and not {dtype, other} >= {"bfloat16", "float16"}:
            yield _case(code, name, [first, Input(other, (33, 130), fills(name, other, 2)[1], seed=4)], 2)


BESIDE = Table(
    "beside ufuncs",
    (
        *rows(
            """
            xp.clip(x, y, z)
            xp.where(m, x, y)
            xp.fix(x)
            xp.fabs(x)
            xp.isneginf(x)
            xp.isposinf(x)
            xp.nan_to_num(x)
            xp.real(x)
            xp.imag(x)
            xp.modf(x)
            xp.frexp(x)
            xp.divmod(x, y)
            xp.spacing(x)
            xp.iscomplex(x)
            xp.isreal(x)
            xp.real_if_close(x)
            xp.array_equal(x, x)
            xp.array_equal(x, y)
            xp.array_equiv(x, x)
            xp.isclose(x, y)
            xp.isclose(x, x, equal_nan=True)
            xp.allclose(x, x)
            xp.iscomplexobj(x)
            xp.isrealobj(x)
            xp.isscalar(x)
            xp.isfortran(x)
            xp.astype(x, "complex128")
            xp.add.outer(x[:99], y[:77])
            x.conj()
            x.conjugate()
            x.real
            x.imag
            x.clip(y, z)
            x.fill(1); x
            """
        ),
        Row("xp.around(x, 2)", dtypes=FLOATS, ulps=1),
        Row("xp.round(x)"),
        Row("x.round()"),
    ),
    {"x": Letter(), "y": Letter(), "z": Letter(), "m": Letter(dtype="bool")},
    around="elementwise",
)

APPROXIMATE = Table(
    "beside ufuncs",
    rows(
        """
        xp.angle(x)
        xp.i0(x)
        xp.float_power(x, e)
        xp.ldexp(x, k)
        """
    ),
    {
        "x": Letter("positive"),
        "e": Letter("exponent"),
        "k": Letter("exponent", dtype="int32"),
    },
    ulps=24,
)

CASTS = Table(
    "copies",
    (
        *rows(
            """
            xp.copy(x)
            xp.array(x, copy=True)
            xp.ascontiguousarray(x)
            xp.asfortranarray(x)
            xp.asarray(x)
            xp.asanyarray(x)
            x.copy()
            x.copy(order="F")
            x.flatten()
            x.flatten("F")
            x.ravel()
            xp.ravel(x, order="F")
            x.tobytes()
            x[:9].tolist()
            x.T.copy()
            y = xp.zeros_like(x); y[...] = x; y
            y = xp.zeros_like(x); xp.copyto(y, x); y
            y = xp.zeros_like(x); xp.copyto(y, x, where=m); y
            y = xp.zeros_like(x); y[:, ::-1] = x; y
            x[1:] = x[:-1]; x
            x[:, 1:] = x[:, :-1]; x
            x[...] = x[::-1, ::-1]; x
            """
        ),
    ),
    {"x": Letter(shape="table"), "m": Letter(dtype="bool", shape="table")},
    around="elementwise",
    most=70000,
)

TRANSPOSED = ("xp.ascontiguousarray(x.T)", "xp.add(x.T, x.T)", "x.T.astype('complex128')", "x[...] = x.T.copy(); x")


def transposes() -> Iterator[Case]:
    extents = sizes("transpose", 4)
    for dtype, code in itertools.product(DTYPES, TRANSPOSED):
        for m, n in itertools.product([*extents, 130], repeat=2):
            if code.startswith("x[...]") and m != n:
                continue
            spec = Input(dtype, (m, n), "any", seed=m)
            yield Case("copies", code, (("x", spec),), n, tier=0 if (m, n) == (130, 130) else 2)
        for axes in itertools.permutations(range(3)):
            spec = Input(dtype, (33, 18, 70), "any")
            yield Case("copies", f"xp.ascontiguousarray(x.transpose{axes})", (("x", spec),), 33, tier=1)


def casts() -> Iterator[Case]:
    """From every dtype to every other: numbers that the other holds, for what else becomes of them no rule says."""
    for source, target in itertools.product(DTYPES, repeat=2):
        if target == "bfloat16":
            continue
        held = "whole" if source in INEXACT and target not in INEXACT else "any"
        if held == "whole" and target.startswith("u"):
            held = "positive"
        for n, layout in ((4097, "contiguous"), (0, "contiguous"), *((1500, layout) for layout in LAYOUTS[1:])):
            spec = Input(source, (n,), held, layout)
            code = f"x.astype({target!r})"
            if source in COMPLEX and target not in COMPLEX:
                code = f"x.real.astype({target!r})"
            yield Case("casts", code, (("x", spec),), n, tier=0 if n == 4097 else 1)


def cases() -> Iterator[Case]:
    yield from ufuncs()
    yield from expand_all((BESIDE, APPROXIMATE, CASTS))
    yield from transposes()
    yield from casts()
