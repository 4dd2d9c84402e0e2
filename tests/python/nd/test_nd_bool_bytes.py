"""Bools whose bytes others have written: what is not 0 is true, wherever it is read."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import NUMPY_DTYPES, check

BYTES = np.array([0, 1, 2, 128, 255, 0, 3, 1] * 40, "u1")  # long enough for the loops of whole vectors


def bools(device, layout):
    """(ours, NumPy's, of 0 and 1)"""
    ours = nd.array(BYTES, device=device).view("bool")
    theirs = BYTES != 0
    return (ours, theirs) if layout == "dense" else (ours[::3], theirs[::3])


EXPRESSIONS = [
    *(f"x {op} y" for op in ("+", "*", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=")),
    *(f"x {op} {n}" for op in ("+", "-", "*") for n in ("1", "1.0", "one", "1j")),
    *(f"x.astype('{dtype}')" for dtype in NUMPY_DTYPES if dtype != "bool"),
    *(f"xp.{f}(x)" for f in ("logical_not", "invert", "absolute", "signbit", "sqrt", "exp", "floor", "rint")),
    *(f"xp.{f}(x, y)" for f in ("maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor")),
    *("xp.where(x, 5, 7)", "xp.where(x, y, ~y) | False", "xp.clip(x, y, True) | False", "xp.copysign(1.0, x)"),
    *(f"x.{f}()" for f in ("sum", "prod", "any", "all", "mean", "var", "std", "argmax", "argmin", "cumsum")),
    *(f"x[::-1].{f}()" for f in ("argmax", "argmin")),
    *("x.max() | False", "x.min() | False", "xp.count_nonzero(x)", "xp.nonzero(x)", "xp.flatnonzero(x)"),
    *("line[x]", "xp.argsort(x, kind='stable')", "xp.sort(x) | False", "xp.searchsorted(xp.sort(y), x)"),
    *("x[:4] @ y[:4]", "x[:4].reshape(2, 2) @ y[:4].reshape(2, 2)", "x[:9].reshape(3, 3).sum(axis=0)", "x[2] | False"),
    *(
        "x[:96].reshape(4, 24) @ y[:96].reshape(24, 4)",
        "x[:96].reshape(4, 24) @ y[:96].reshape(4, 24).T",
        "x @ (y & ~x)",
    ),
    *("x.astype('f4').sum()", "x.sum(dtype='f4')", "xp.bincount(x.astype('i8'))", "xp.cumsum(x, dtype='f8')"),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_every_byte_that_is_not_0_is_true(expression, layout, device):
    ours, theirs = bools(device, layout)
    results = []
    for xp, x, on in ((np, theirs, {}), (nd, ours, {"device": device})):
        names = {"xp": xp, "x": x, "y": x[::-1], "one": xp.ones(1, "f4", **on)[0], "line": xp.arange(x.size, **on)}
        results.append(eval(expression, names))
    want, got = results
    check(got, want, dtype="argsort" not in expression)


@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_elements_and_writes(layout, device):
    ours, theirs = bools(device, layout)
    assert [x.item() for x in ours[:9]] == theirs[:9].tolist() == ours[:9].tolist()
    for dtype in ("u1", "i1", "f2", "f8", "c8"):
        target = nd.zeros(ours.shape, dtype, device=device)
        target[...] = ours
        check(target, theirs.astype(dtype))
        assert nd.logical_not(ours, out=nd.zeros(ours.shape, "u1", device=device)).tolist() == (~theirs).tolist()
    x = nd.zeros(ours.shape, "i8", device=device)
    x[ours] = 7
    check(x, np.where(theirs, 7, 0))
    assert nd.array(np.array([2], "u1").view("?"), device=device).astype("i4").tolist() == [1]


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
@pytest.mark.parametrize(
    "values", [[6, -(2**63), 2**63 - 1], [0.5, 0.5], [0.0, 2.0], [float("nan"), 1], [], [256, 256]], ids=str
)
def test_sums_and_products_as_bool_are_of_the_truth_of_each(name, values, device):
    want = getattr(np, name)(np.array(values), dtype=bool)
    got = getattr(nd, name)(nd.asarray(np.array(values), device=device), dtype="bool")
    assert got.dtype == "bool" and nd.asnumpy(got).tolist() == want.tolist()
