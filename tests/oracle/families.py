"""All families of cases, and the differences from NumPy that are meant."""

from __future__ import annotations

from collections.abc import Iterator

from oracle import composed, decomposed, elementwise, ordering, product, reduction, shaping
from oracle.arrays import COMPLEX
from oracle.cases import Case, Known

FAMILIES = (
    "ufuncs",
    "beside ufuncs",
    "copies",
    "casts",
    "reductions",
    "scans",
    "sorting",
    "sets",
    "scatters",
    "histograms",
    "products",
    "manipulation",
    "creation",
    "composed",
    "linear algebra",
    "transforms",
    "random",
)

KNOWN = (
    Known(
        r"diff|around|round\(|trapezoid|\.at\(|average|interp|nbytes|itemsize|view|tobytes|angle"
        r"|spacing|nextafter|float_power|median|percentile|quantile|isclose|multi_dot|nan_to_num|astype",
        ("bfloat16",),
        "NumPy has no bfloat16: float32 stands in for it, and is rounded after the last step only",
    ),
    Known(r"(percentile|quantile)\(", ("bool",), "NumPy refuses the difference of bools here; ours is that of int8"),
    Known(r"xp\.(gcd|lcm|positive)\(", ("bool",), "NumPy refuses bool, which counts as int8"),
    Known(r"\bclip\(", COMPLEX, "complex numbers have no order that the Array API would clip by"),
    Known(r"log1p\(", COMPLEX, "NumPy loses the real part where it is below the imaginary one's rounding"),
    Known(r"average\(.*weights", (), "weights that sum to zero give NaN: to raise would be to wait for the device"),
    Known(r"spacing\(", ("int8", "float16"), "NumPy's is positive for negative float16, and negative for other floats"),
    Known(r"nextafter\(", ("float16",), "NumPy gives the first of two equal zeros of float16, else the second"),
    Known(r"isclose\(x, y", ("complex64",), "NumPy's absolute is a unit below where the largest numbers overflow"),
    Known(r"put\(q, b", ("uint64",), "NumPy refuses uint64; ours are checked by value"),
)


def all_cases() -> Iterator[Case]:
    for module in (elementwise, reduction, ordering, product, shaping, composed, decomposed):
        yield from module.cases()


def large_cases() -> Iterator[Case]:
    yield from shaping.large()
