"""Matrix products in every layout, by the BLAS of the process and by the ndarray's own loops."""

import itertools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
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
SHAPES = [(32, 40, 24), (1, 130, 70), (70, 130, 1), (1, 5000, 1), (5000, 1, 3), (3, 1, 5000), (200, 2, 200), (9, 0, 9)]
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4}


def compare_all_layouts(dtype):
    rng = np.random.default_rng(3)
    for m, k, n in SHAPES:
        # Positive numbers, so that no sum cancels.
        a, b = (rng.integers(1, 9, (2 * rows + 2, 2 * columns + 2)) for rows, columns in ((m, k), (k, n)))
        for lay_a, lay_b in itertools.product(LAYOUTS.values(), repeat=2):
            x, y = lay_a(a.astype(dtype), m, k), lay_b(b.astype(dtype), k, n)
            if x.shape == (m, k) and y.shape == (k, n):  # nothing is repeated where there is nothing
                check(nd.asarray(x) @ nd.asarray(y), x @ y, rtol=TOLERANCE.get(dtype, 1e-9))
    stacks = [rng.integers(1, 9, shape).astype(dtype) for shape in ((3, 1, 20, 30), (2, 30, 20))]
    check(nd.asarray(stacks[0]) @ nd.asarray(stacks[1]), stacks[0] @ stacks[1], rtol=TOLERANCE.get(dtype, 1e-9))


DTYPES = ["float32", "float64", "complex64", "complex128", "int64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_every_layout(dtype):
    compare_all_layouts(dtype)


def test_products_without_the_blas_of_the_process():
    code = f"import test_nd_products as t\nfor dtype in {DTYPES}: t.compare_all_layouts(dtype)"
    here = str(pathlib.Path(__file__).parent)
    paths = [here, str(pathlib.Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "DLBRIDGE_BLAS": "0", "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=300)
