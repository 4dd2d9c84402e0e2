"""Cases of matrix products: all small shapes in every dtype and transposition, batches, and the shapes of each route.

The factors are small whole numbers, so that the products are exact in every dtype. NumPy multiplies them in the widest
dtype of the kind and rounds once: it has no fast float16, and no bfloat16.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from oracle.arrays import COMPLEX, DTYPES, INEXACT, INTS, Input
from oracle.cases import Case
from oracle.tables import Letter, Row, Table, expand_all, rows
from oracle.thresholds import sizes

EXTENTS = (0, 1, 2, 3, 16, 17, 64, 200)


def wide(dtype: str) -> str:
    """The dtype that NumPy computes in: of BLAS, where the numbers fit it exactly."""
    return "complex128" if dtype in COMPLEX else "float64"


def by_numpy(product: str, dtype: str) -> str:
    """A product of `a` and `b` as NumPy has it fast and exact."""
    replaced = f"a, b = a.astype('{wide(dtype)}'), b.astype('{wide(dtype)}')\nr = np.asarray({product})\n"
    if dtype == "bool":
        return replaced + "r != 0"
    narrow = {"bfloat16": "float32"}.get(dtype, dtype)
    if dtype in INTS:
        return replaced + f"r.astype('int64').astype('{narrow}')"
    return replaced + f"r.astype('{narrow}')"


def matrices() -> Iterator[Case]:
    for dtype, (m, k, n) in itertools.product(DTYPES, itertools.product(EXTENTS, repeat=3)):
        for left, right in itertools.product((False, True), repeat=2):
            one = Input(dtype, (m, k), "whole", "transposed" if left else "contiguous", 1)
            two = Input(dtype, (k, n), "whole", "transposed" if right else "contiguous", 2)
            tier = 0 if not left and not right else 1
            yield Case("products", "a @ b", (("a", one), ("b", two)), n, by_numpy("a @ b", dtype), tier=tier)


def batches() -> Iterator[Case]:
    shapes = (
        ((3, 5, 7), (3, 7, 4)),
        ((3, 5, 7), (7, 4)),
        ((5, 7), (3, 7, 4)),
        ((2, 1, 17, 64), (3, 64, 16)),
        ((1, 3, 3), (70, 3, 3)),
        ((65, 1, 1), (65, 1, 1)),
        ((2, 64, 200), (2, 200, 65)),
        ((0, 3, 4), (0, 4, 5)),
        ((4, 3, 0), (4, 0, 5)),
        ((7,), (3, 7, 4)),
        ((3, 4, 7), (7,)),
        ((300, 17, 2), (300, 2, 3)),
    )
    for dtype, (one, two), layout in itertools.product(
        DTYPES, shapes, ("contiguous", "strided", "reversed", "gapped", "offset", "unaligned", "broadcast")
    ):
        inputs = (("a", Input(dtype, one, "whole", layout, 1)), ("b", Input(dtype, two, "whole", layout, 2)))
        yield Case("products", "xp.matmul(a, b)", inputs, 3, by_numpy("np.matmul(a, b)", dtype), tier=1)
        if len(one) == len(two) == 3:
            flipped = "xp.matmul(b.swapaxes(1, 2), a.swapaxes(1, 2))"
            yield Case("products", flipped, inputs, 3, by_numpy(flipped.replace("xp", "np"), dtype), tier=1)


def lines() -> Iterator[Case]:
    """Vectors and thin matrices around the thresholds of the routes."""
    codes = (
        ("xp.dot(a, b)", lambda n: ((n,), (n,))),
        ("xp.vdot(a, b)", lambda n: ((n,), (n,))),
        ("xp.inner(a, b)", lambda n: ((3, n), (2, n))),
        ("xp.vecdot(a, b)", lambda n: ((3, n), (3, n))),
        ("a @ b", lambda n: ((n, 3), (3,))),
        ("a @ b", lambda n: ((3, n), (n,))),
        ("a @ b", lambda n: ((n,), (n, 3))),
        ("a @ b", lambda n: ((1, n), (n, 1))),
        ("a @ b", lambda n: ((n, 1), (1, 2))),
        ("a @ b", lambda n: ((n, 65), (65, 5))),
        ("a @ b", lambda n: ((65, n), (n, 66))),
    )
    for dtype, (code, shapes) in itertools.product(DTYPES, codes):
        for n in [*sizes("product", most=1100), 5000, 60_000]:
            one, two = shapes(n)
            if "66" in code and n > 5000 and dtype not in INEXACT:
                continue
            if n > 2000 and len(one) == 2 and one[0] * one[-1] * two[-1] > 10**7:
                continue
            for layout in ("contiguous", "strided", "reversed") if n in (17, 1024) else ("contiguous",):
                inputs = (("a", Input(dtype, one, "whole", layout, 1)), ("b", Input(dtype, two, "whole", layout, 2)))
                theirs = by_numpy(code.replace("xp", "np"), dtype)
                yield Case("products", code, inputs, n, theirs, tier=0 if n == 1024 else 2)


ROWS = Table(
    "products",
    (
        *rows(
            """
            xp.outer(x, y)
            xp.kron(t, u)
            xp.tensordot(t, t, 2)
            xp.tensordot(t, t.T, 1)
            xp.tensordot(x, y, 0)
            xp.linalg.tensordot(t, t, axes=2)
            xp.linalg.outer(x, y)
            xp.linalg.matmul(t, t.T)
            xp.matmul(t, t, axes=[(0, 1), (1, 0), (1, 0)])
            xp.matmul(t, t.T, casting="no")
            xp.linalg.matrix_transpose(t)
            xp.linalg.vecdot(t, t)
            xp.linalg.trace(t)
            xp.linalg.diagonal(t)
            xp.linalg.cross(w, w[::-1])
            xp.linalg.matrix_power(s, 3)
            xp.linalg.multi_dot([t, t.T, t])
            xp.linalg.matrix_norm(t)
            xp.einsum("ij,kj->ik", t, t)
            xp.einsum("ij,ij->j", t, t)
            xp.einsum("i,j->ij", x, y)
            xp.einsum("ij->ji", t)
            xp.einsum("ij->i", t)
            xp.trace(t)
            xp.dot(t, t.T)
            x.dot(y)
            x.trace() if x.ndim > 1 else 0
            """
        ),
        *rows("x.dot(y)"),
    ),
    {
        "x": Letter("whole"),
        "y": Letter("whole"),
        "t": Letter("whole", "table"),
        "u": Letter("whole", "few"),
        "s": Letter("signs", "square"),
        "w": Letter("whole", "triples"),
    },
    sizes=(1, 9, 100, 625),
    layout_sizes=(100,),
    ulps=0,
)
ROUNDED = {"matrix_norm": 8.0}


def named() -> Iterator[Case]:
    for case in expand_all((ROWS,)):
        ulps = next((ulps for name, ulps in ROUNDED.items() if name in case.code), 0)
        yield case._replace(device_ulps=ulps, numpy_ulps=ulps)


def cases() -> Iterator[Case]:
    yield from matrices()
    yield from batches()
    yield from lines()
    yield from named()


__all__ = ["Row", "cases"]
