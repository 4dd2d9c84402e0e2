"""Which numbers are drawn: the same of a parameter and of an array of it, in each width, on the host and on a device,
whatever is rejected on the way and whichever tables are kept."""

import numpy as np
import pytest
from dlbridge import nd

COUNTERS = {
    "vonmises(0.5, 2, 1000)": 1000,
    "gamma(0.5, 2, 1000)": 1000,
    "laplace(0.5, 2, 1000)": 500,
    "negative_binomial(0.5, 0.1, 1000)": 1000,
    "noncentral_f(0.5, 2, 3, 1000)": 1000,
    "multinomial(100, [0.2, 0.8], 1000)": 1000,
    "multinomial(3, [0.2, 0.8], 1001)": 1502,
    "binomial(10**12, 0.3, 1000)": 1000,
    "geometric(0.3, 1000)": 500,
}


@pytest.mark.parametrize("call", COUNTERS)
def test_counters_do_not_depend_on_what_was_rejected(device, call):
    """So that what is drawn next is the same on every device."""
    g = nd.random.default_rng(2, device=device)
    before = g.state["offset"]
    eval(f"g.{call}", {"g": g})
    assert g.state["offset"] == before + COUNTERS[call]


@pytest.mark.parametrize("draw", [("poisson", 3.0), ("binomial", 20, 0.25), ("hypergeometric", 5, 7, 6)], ids=str)
def test_a_table_that_is_kept_changes_no_number(device, draw):
    name, *parameters = draw
    again = nd.random.default_rng(9, device=device)
    getattr(again, name)(*parameters, 50)
    for n in (1, 50, 3000, 20_000, 20_000):  # of the last, a table for each
        later = nd.random.default_rng(9, device=device)
        later.state = again.state
        kept = getattr(again, name)(*parameters, n)
        np.testing.assert_array_equal(nd.asnumpy(kept), nd.asnumpy(getattr(later, name)(*parameters, n)))
    assert len(again._tables) == 1


def test_many_parameters_keep_few_tables(device):
    g = nd.random.default_rng(4, device=device)
    for i in range(40):
        g.binomial(9, i / 64, 3)
    assert len(g._tables) == 16


@pytest.mark.parametrize(
    "call", ["poisson(p)", "poisson(500 * p)", "zipf(p)", "negative_binomial(p, 0.1)", "logseries(1 / p)"]
)
def test_counts_of_an_array_of_one_parameter_are_those_of_the_number(device, call):
    """One counter each, too, so that what is drawn next is the same."""
    g, h = (nd.random.default_rng(11, device=device) for _ in range(2))
    numbers = eval(f"g.{call[:-1]}, size=999)", {"g": g, "p": 7.5})
    arrays = eval(f"h.{call}", {"h": h, "p": nd.full((999,), 7.5, device=device)})
    np.testing.assert_array_equal(nd.asnumpy(numbers), nd.asnumpy(arrays))
    assert g.state["offset"] == h.state["offset"] == 999


@pytest.mark.parametrize("call", ["poisson(p)", "zipf(p)", "negative_binomial(p, 0.01)"])
def test_counts_of_an_element_do_not_depend_on_the_others(device, call):
    """Means of both ways to draw beside each other, and a length that no vector of counters divides."""
    p = np.random.default_rng(4).uniform(1.5, 30, 1003)
    whole, part = (
        eval(f"g.{call}", {"g": nd.random.default_rng(3, device=device), "p": nd.asarray(p[:n], device=device)})
        for n in (1003, 37)
    )
    assert nd.array_equal(whole[:37], part)


ONE = ("rayleigh", "chisquare", "pareto", "power", "weibull", "standard_t")
TWO = ("laplace", "logistic", "gumbel", "gamma", "beta", "f", "wald", "vonmises", "noncentral_chisquare")


@pytest.mark.parametrize("name", [*ONE, *TWO, "triangular", "noncentral_f"])
def test_arrays_of_one_parameter_draw_what_the_number_draws(device, name):
    """By the same formula, within what its last steps round."""
    parameters = (1.5,) if name in ONE else (0.75, 1.5) if name in TWO else (0.75, 1.5, 2.5)
    g, h = (nd.random.default_rng(11, device=device) for _ in range(2))
    numbers = getattr(g, name)(*parameters, 999)
    arrays = getattr(h, name)(*(nd.full((999,), p, device=device) for p in parameters))
    np.testing.assert_allclose(nd.asnumpy(numbers), nd.asnumpy(arrays), rtol=1e-13, atol=1e-13)
    assert g.state["offset"] == h.state["offset"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["gumbel", "gamma", "beta", "wald"])
def test_narrow_floats_are_the_wide_ones_rounded(device, name, dtype):
    wide, narrow = (
        getattr(nd.random.default_rng(5, device=device), name)(0.5, 2.0, 501, dtype=kind) for kind in ("float64", dtype)
    )
    np.testing.assert_array_equal(*(nd.asnumpy(x.astype("float64")) for x in (wide.astype(dtype), narrow)))


LAWS = {
    "binomial": lambda g, n: g.binomial(20, 0.3, n),
    "binomial without a table": lambda g, n: g.binomial(10**12, 0.3, n),
    "binomial of an array": lambda g, n: g.binomial(nd.arange(n, device=g._device), 0.4),
    "hypergeometric": lambda g, n: g.hypergeometric(9, 4, 6, n, "int32"),
    "hypergeometric of arrays": lambda g, n: g.hypergeometric(9.0, nd.arange(n, device=g._device) + 6, [6]),
    "hypergeometric of many": lambda g, n: g.hypergeometric(nd.arange(n, device=g._device) + 90, 500, 300),
    "poisson": lambda g, n: g.poisson(30.0, n),
    "multinomial": lambda g, n: g.multinomial(20, [0.2, 0.3, 0.5], n),
    "multinomial of many trials": lambda g, n: g.multinomial(200, [0.2, 0.3, 0.5], n),
    "multivariate_hypergeometric": lambda g, n: g.multivariate_hypergeometric([9, 4, 0, 7], 6, n),
    "one colour": lambda g, n: g.multivariate_hypergeometric([9], 6, n),
    "triangular": lambda g, n: g.triangular(1, 2, 4, n),
    "triangular of halves": lambda g, n: g.triangular(0, 1, 1, n, "float32"),
    "wald": lambda g, n: g.wald(2, 3, n),
    "beta": lambda g, n: g.beta(0.3, 2, n),
    "f": lambda g, n: g.f(0.3, 2, n),
    "standard_t": lambda g, n: g.standard_t(3, n),
    "geometric": lambda g, n: g.geometric(0.3, n),
    "geometric at once": lambda g, n: g.geometric(1.0, n, "int16"),
    "logseries": lambda g, n: g.logseries(0.9, n),
    "logseries of ones": lambda g, n: g.logseries(0.0, n),
    "vonmises": lambda g, n: g.vonmises(0.5, 4, n),
    "vonmises of many turns": lambda g, n: g.vonmises(-200.5, 0.3, n, "float32"),
    "vonmises without a direction": lambda g, n: g.vonmises(0, 0, n),
    "vonmises like a normal": lambda g, n: g.vonmises(3, 1e8, n),
    "noncentral_chisquare": lambda g, n: g.noncentral_chisquare(3, 2, n),
    "noncentral_f": lambda g, n: g.noncentral_f(5, 9, 3, n, "float32"),
}


@pytest.mark.gpu
@pytest.mark.parametrize("n", [0, 1, 257, 9001])
@pytest.mark.parametrize("law", LAWS)
def test_the_host_and_a_device_draw_the_same_numbers(law, n):
    """But for one of a thousand, on which a logarithm's last digit decides; later numbers follow from the counters."""
    one, other = (nd.random.default_rng(3, device=device) for device in ("cpu", "cuda"))
    for _ in range(2):
        x, y = (nd.asnumpy(LAWS[law](g, n)) for g in (one, other))
        assert x.shape == y.shape and x.dtype == y.dtype
        rounding = 1e-5 if x.dtype == np.float32 else 1e-11
        assert np.isclose(x, y, rtol=rounding, atol=rounding).sum() >= x.size - x.size // 1000
    assert one.state == other.state
