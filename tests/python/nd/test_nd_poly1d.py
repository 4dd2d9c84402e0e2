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
    "xp.add(q, x[:2])",
    "xp.subtract(q, q)",
    "xp.multiply(2, q)",
    "xp.divide(q, 2.0)",
    "xp.power(q, 2)",
    "x[:2] + q",
    "x[:2] - q",
    "x[:2] * q",
    "[hasattr(y, 'coeffs') for y in (x[:2] * q, q * x[:2])]",
    "repr(p) + repr(q) + repr(xp.poly1d(x.astype('float32')))",
    "str(p) + str(q * 1j)",
    "xp.polyval(xp.poly1d(x > 0), xp.poly1d(x > 0))",
    "xp.poly(x.astype('float16'))",
    "xp.polyfit(x.astype('float16'), x, 1)",
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


def test_a_polynomial_goes_to_numpy_and_comes_from_there(device):
    ours, theirs = operands(nd, device), operands(np, device)
    assert ours["p"].get() == theirs["p"]
    ours["q"].set(theirs["p"])
    assert ours["q"].get() == theirs["p"] and ours["q"].variable == "z" and ours["q"].coeffs.device == ours["x"].device
    assert nd.poly1d(theirs["p"]).get() == theirs["p"] and nd.poly1d(theirs["p"], variable="y").variable == "y"
    check(nd.poly1d(theirs["x"]).coeffs, theirs["x"])


@pytest.mark.parametrize(
    "call",
    [
        "xp.polyval(3.0, x)",
        "xp.polyval(x[0], x)",
        "xp.roots(x[0])",
        "xp.polyfit(x, x.astype('float16'), 1)",
        "xp.polyfit(x, x, 1, w=x * 1j)",
        "p.set(x)",
    ],
)
def test_calls_that_numpy_refuses_are_refused(call, device):
    with pytest.raises(TypeError, match=r"^\w+(\.set)?\(\): "):
        eval(call, operands(nd, device))


def test_polynomials_that_change_have_no_hash(device):
    with pytest.raises(TypeError, match="unhashable"):
        hash(operands(nd, device)["p"])


def test_a_fit_that_points_do_not_determine_warns():
    x = nd.asarray([1.0, 1.0, 1.0], device="cpu")
    with pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"):
        nd.polyfit(x, x, 2)
