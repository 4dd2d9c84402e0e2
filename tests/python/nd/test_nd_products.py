"""Matrix products in every layout, by the BLAS of the process and by the ndarray's own loops."""

import itertools
import pathlib

import numpy as np
import pytest
from child_process import run_python
from dlbridge import nd
from nd_support import check

# How a matrix of the wanted shape lies in memory, made of one of at least that shape.
LAYOUTS = {
    "rows": lambda x, m, n: x[:m, :n].copy(),
    "columns": lambda x, m, n: np.asfortranarray(x[:m, :n]),
    "part of rows": lambda x, m, n: x[:m, 1 : n + 1],
    "part of columns": lambda x, m, n: np.asfortranarray(x)[1 : m + 1, :n],
    "every other": lambda x, m, n: x[: 2 * m : 2, : 2 * n : 2],
    "backwards": lambda x, m, n: x[:m, :n].copy()[::-1, ::-1],
    "one row repeated": lambda x, m, n: np.broadcast_to(x[:1, :n], (m, n)),
    "one column repeated": lambda x, m, n: np.broadcast_to(x[:m, :1], (m, n)),
}
SHAPES = [
    (32, 40, 24),
    (1, 130, 70),
    (70, 130, 1),
    (1, 5000, 1),
    (5000, 1, 3),
    (3, 1, 5000),
    (200, 2, 200),
    (9, 0, 9),
    (5, 700, 300),
]
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4}


def numbers(rng, shape, k, dtype):
    """Positive ones, so that no sum cancels; bools of which one pair in k is true."""
    return rng.random(shape) ** 2 * k < 1 if dtype == "bool" else rng.integers(1, 9, shape)


def compare_all_layouts(dtype):
    rng = np.random.default_rng(3)
    for m, k, n in SHAPES:
        a, b = (numbers(rng, (2 * rows + 2, 2 * columns + 2), k, dtype) for rows, columns in ((m, k), (k, n)))
        for lay_a, lay_b in itertools.product(LAYOUTS.values(), repeat=2):
            x, y = lay_a(a.astype(dtype), m, k), lay_b(b.astype(dtype), k, n)
            if x.shape == (m, k) and y.shape == (k, n):  # nothing is repeated where there is nothing
                check(nd.asarray(x) @ nd.asarray(y), x @ y, rtol=TOLERANCE.get(dtype, 1e-9))
    stacks = [numbers(rng, shape, 30, dtype).astype(dtype) for shape in ((3, 1, 20, 30), (2, 30, 20))]
    check(nd.asarray(stacks[0]) @ nd.asarray(stacks[1]), stacks[0] @ stacks[1], rtol=TOLERANCE.get(dtype, 1e-9))


VECTORS = {
    "side by side": lambda xp, x, n: x[:n],
    "every other": lambda xp, x, n: x[: 2 * n : 2],
    "backwards": lambda xp, x, n: x[:n][::-1],
    "one repeated": lambda xp, x, n: xp.broadcast_to(x[:1], (n,)),
}


def compare_vectors(dtype):
    """As many terms as our own loops take and as BLAS does; the first vector of vdot and vecdot is conjugated."""
    whole = np.random.default_rng(4).integers(1, 5, 11_000)
    whole = (whole - 2j * whole[::-1] if dtype.startswith("complex") else whole % 3).astype(dtype)
    ours = nd.array(whole, device="cpu")
    for n in (0, 1, 7, 127, 128, 1000, 5000):
        for one, other in itertools.product(VECTORS.values(), repeat=2):
            x, y = one(np, whole, n), other(np, whole[5:], n)
            a, b = one(nd, ours, n), other(nd, ours[5:], n)
            check(nd.dot(a, b), np.dot(x, y), rtol=TOLERANCE.get(dtype, 1e-9))
            check(nd.vdot(a, b), np.vdot(x, y), rtol=TOLERANCE.get(dtype, 1e-9))
            check(nd.vecdot(a, b), np.vdot(x, y), rtol=TOLERANCE.get(dtype, 1e-9))
    table, line = whole[:900].reshape(6, 150), whole[900:1050]
    a, b = ours[:900].reshape(6, 150), ours[900:1050]
    check(nd.vecdot(a, b), table.conj() @ line, rtol=TOLERANCE.get(dtype, 1e-9))
    check(nd.vecdot(b, a[:, ::-1]), table[:, ::-1] @ line.conj(), rtol=TOLERANCE.get(dtype, 1e-9))


DTYPES = ["float32", "float64", "complex64", "complex128", "int64", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_every_layout(dtype):
    compare_all_layouts(dtype)


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "uint8"])
def test_sums_of_products_of_vectors_as_they_lie(dtype):
    compare_vectors(dtype)


def test_products_without_the_blas_of_the_process():
    here = pathlib.Path(__file__)
    code = f"""
import sys
sys.path += {[str(here.parent), str(here.parents[2])]}
import test_nd_products as t
for dtype in {DTYPES}:
    t.compare_all_layouts(dtype)
    t.compare_vectors(dtype)
"""
    run_python(code, DLBRIDGE_BLAS="0")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "complex64"])
def test_thin_products(device, dtype):
    """Few rows or columns, few terms a sum, short and long: each has loops of its own on the host."""
    extents = (1, 2, 8, 9, 17)
    whole = np.arange(3 * 40 * 40).reshape(3, 40, 40) * 7 % 5
    left = (whole % 3 if dtype != "bool" else whole == 0).astype(dtype)
    right = (whole - 1 if dtype != "uint8" else whole).astype(dtype) if dtype != "bool" else whole == 1
    if dtype == "complex64":
        left = left * (1 - 2j)
    ours = [nd.array(x, device=device) for x in (left, right)]
    for m, k, n in itertools.product(extents, extents, extents):
        for turned in range(4):
            a, b = ((left, right), ours)[0]
            x, y = ours
            a, x = (z[:, :k, :m].swapaxes(1, 2) if turned & 1 else z[:, :m, :k] for z in (a, x))
            b, y = (z[1, :n, :k].swapaxes(0, 1) if turned & 2 else z[1, :k, :n] for z in (b, y))
            check(x @ y, a @ b)
            check(x[0].copy() @ y.copy(), a[0] @ b)
