"""poly1d against NumPy's: expressions of p, q and x, and the coefficients or the values that they give."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import check, put

EXPRESSIONS = [
    "p.coeffs",
    "p.c",
    "q.order",
    "len(p)",
    "list(q)",
    "p[0]",
    "p[2]",
    "p[9]",
    "p(x)",
    "p(2.0)",
    "p(q)",
    "-p",
    "+p",
    "p + q",
    "p + 1.5",
    "1.5 + p",
    "p - q",
    "2 - p",
    "p * q",
    "p * 3",
    "3 * p",
    "q / 2",
    "p**3",
    "p**0",
    "p == p",
    "p == q",
    "p != q",
    "p.roots",
    "q.r",
    "xp.poly1d(x)",
    "xp.poly1d([2.0, 3.0], True)",
    "xp.poly1d([0, 0, 1, 2])",
    "xp.poly1d([0])",
    "xp.polyadd(p, x)",
    "xp.polymul(x, q)",
    "xp.polysub(p, q)",
    "xp.polyval(p, x)",
    "xp.poly1d(p).variable",
    "xp.roots(x[:1])",
    "xp.roots((x * 0).astype('float32'))",
]


def operands(xp, device):
    x = np.array([0.5, -1.0, 2.0])
    p, q = np.array([1.0, -3.0, 2.0, 4.0]), np.array([0, 2, 1])
    if xp is np:
        return {"xp": np, "p": np.poly1d(p, variable="z"), "q": np.poly1d(q), "x": x}
    return {"xp": nd, "p": nd.poly1d(put(p, device), variable="z"), "q": nd.poly1d(put(q, device)), "x": put(x, device)}


def plain(value):
    return value.coeffs if isinstance(value, (nd.poly1d, np.poly1d)) else value


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_poly1d_is_numpys(expression, device):
    theirs = plain(eval(expression, operands(np, device)))
    ours = plain(eval(expression, operands(nd, device)))
    if isinstance(ours, nd.ndarray):
        check(ours, theirs)
    else:
        assert ours == (theirs.item() if isinstance(theirs, np.generic) else theirs)


def test_a_coefficient_is_set_below_and_above_the_degree(device):
    theirs, ours = operands(np, device)["p"], operands(nd, device)["p"]
    for p in (theirs, ours):
        p[1] = 7.0
        p[5] = -1.0
    check(ours.coeffs, theirs.coeffs)
    with pytest.raises(ValueError, match="negative"):
        ours[-1] = 1.0


def test_a_polynomial_goes_to_numpy(device):
    assert operands(nd, device)["p"].get() == operands(np, device)["p"]


def test_polynomials_that_change_have_no_hash(device):
    with pytest.raises(TypeError, match="unhashable"):
        hash(operands(nd, device)["p"])


def test_a_fit_that_points_do_not_determine_warns():
    x = nd.asarray([1.0, 1.0, 1.0], device="cpu")
    with pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"):
        nd.polyfit(x, x, 2)
