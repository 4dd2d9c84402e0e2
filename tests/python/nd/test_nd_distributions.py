"""Random distributions: goodness of fit beside SciPy's, moments, parameters in arrays, what is refused."""

import itertools

import numpy as np
import pytest
from dlbridge import nd

stats = pytest.importorskip("scipy.stats")
N = 20_000

CONTINUOUS = {
    "beta(2.0, 3.5)": stats.beta(2, 3.5),
    "beta(0.3, 0.4)": stats.beta(0.3, 0.4),
    "beta(0.05, 0.7)": stats.beta(0.05, 0.7),
    "beta(3e6, 2e6)": stats.beta(3e6, 2e6),
    "beta(0.5, 1e7)": stats.beta(0.5, 1e7),
    "chisquare(3)": stats.chi2(3),
    "f(4, 9)": stats.f(4, 9),
    "f(0.7, 1.3)": stats.f(0.7, 1.3),
    "gamma(2.5, 2.0)": stats.gamma(2.5, scale=2),
    "gamma(0.2)": stats.gamma(0.2),
    "gamma(4000)": stats.gamma(4000),
    "gumbel(1, 2)": stats.gumbel_r(1, 2),
    "laplace(1, 2)": stats.laplace(1, 2),
    "logistic(1, 2)": stats.logistic(1, 2),
    "lognormal(0.5, 0.7)": stats.lognorm(0.7, scale=np.exp(0.5)),
    "noncentral_chisquare(3, 2)": stats.ncx2(3, 2),
    "noncentral_chisquare(0.6, 20)": stats.ncx2(0.6, 20),
    "noncentral_chisquare(1, 5)": stats.ncx2(1, 5),
    "noncentral_f(5, 9, 3)": stats.ncf(5, 9, 3),
    "noncentral_f(0.8, 9, 3)": stats.ncf(0.8, 9, 3),
    "pareto(3)": stats.lomax(3),
    "power(2.5)": stats.powerlaw(2.5),
    "rayleigh(2)": stats.rayleigh(scale=2),
    "standard_cauchy()": stats.cauchy(),
    "standard_gamma(0.9)": stats.gamma(0.9),
    "standard_gamma(1)": stats.gamma(1),
    "standard_t(4)": stats.t(4),
    "standard_t(0.3)": stats.t(0.3),
    "triangular(-1, 0, 3)": stats.triang(0.25, -1, 4),
    "triangular(0, 1, 1)": stats.triang(1, 0, 1),
    "vonmises(0.5, 4)": stats.vonmises(4, 0.5, 1),
    "vonmises(0, 0)": stats.uniform(-np.pi, 2 * np.pi),
    "vonmises(0, 1e8)": stats.norm(0, 1e-4),
    "vonmises(0, 9e5)": stats.norm(0, 9e5**-0.5),
    "wald(2, 3)": stats.invgauss(2 / 3, scale=3),
    "wald(100, 0.1)": stats.invgauss(1000, scale=0.1),
    "wald(1, 1e8)": stats.norm(1, 1e-4),
    "weibull(1.7)": stats.weibull_min(1.7),
    "exponential(3)": stats.expon(scale=3),
    "normal(1, 3)": stats.norm(1, 3),
}


class TruncatedZipf:
    """Of the integers to 2**63: the generalized harmonic numbers by Euler and Maclaurin beyond the first ones."""

    def __init__(self, a):
        self.a, self.first = a, np.cumsum(np.arange(1.0, 1001.0) ** -a)
        self.whole = 1.0
        self.whole = self.cdf(np.array([2.0**63]))[0]

    def cdf(self, k):
        m, a = 1000.0, self.a
        beyond = np.maximum(np.floor(k), m)
        tail = (beyond ** (1 - a) - m ** (1 - a)) / (1 - a) + (beyond**-a - m**-a) / 2
        tail -= a / 12 * (beyond ** (-a - 1) - m ** (-a - 1))
        return (self.first[np.clip(np.asarray(k), 1, m).astype("int64") - 1] + tail) / self.whole

    def ppf(self, q):
        return np.unique(np.floor(np.geomspace(1, 2.0**62, 60)))[: len(q)]


DISCRETE = {
    "binomial(10, 0.3)": stats.binom(10, 0.3),
    "binomial(100_000, 0.4)": stats.binom(100_000, 0.4),
    "binomial(21, 0.52)": stats.binom(21, 0.52),
    "binomial(50, 0.8)": stats.binom(50, 0.8),
    "geometric(0.3)": stats.geom(0.3),
    "geometric(1e-5)": stats.geom(1e-5),
    "hypergeometric(15, 20, 10)": stats.hypergeom(35, 15, 10),
    "hypergeometric(4000, 6000, 7000)": stats.hypergeom(10_000, 4000, 7000),
    "hypergeometric(6000, 4000, 70)": stats.hypergeom(10_000, 6000, 70),
    "hypergeometric(20, 15, 30)": stats.hypergeom(35, 20, 30),
    "logseries(0.8)": stats.logser(0.8),
    "logseries(0.05)": stats.logser(0.05),
    "logseries(0.99)": stats.logser(0.99),
    "negative_binomial(3.5, 0.4)": stats.nbinom(3.5, 0.4),
    "negative_binomial(0.2, 0.05)": stats.nbinom(0.2, 0.05),
    "negative_binomial(300, 0.01)": stats.nbinom(300, 0.01),
    "poisson(0.02)": stats.poisson(0.02),
    "poisson(0.7)": stats.poisson(0.7),
    "poisson(9.99)": stats.poisson(9.99),
    "poisson(10)": stats.poisson(10),
    "poisson(17)": stats.poisson(17),
    "poisson(40)": stats.poisson(40),
    "poisson(901)": stats.poisson(901),
    "poisson(1e7)": stats.poisson(1e7),
    "zipf(1.05)": TruncatedZipf(1.05),
    "zipf(1.5)": TruncatedZipf(1.5),
    "zipf(2.0)": stats.zipf(2.0),
    "zipf(3.0)": stats.zipf(3.0),
}


def drawn(call, device, size=N):
    """The numbers of a call, with parameters as they stand; by another route, with parameters in arrays."""
    name, parameters = call[:-1].split("(")
    numbers = eval(f"[{parameters}]")
    one = getattr(nd.random.default_rng(12, device=device), name)(*numbers, size=size)
    many = [nd.full((size,), float(x), device=device) for x in numbers]
    other = getattr(nd.random.default_rng(13, device=device), name)(*many) if many else one
    assert one.shape == other.shape == (size,) and str(one.device).startswith(device)
    return [nd.asnumpy(one), nd.asnumpy(other)]


@pytest.mark.parametrize("call", CONTINUOUS)
def test_floats_fit_their_distribution(call, device):
    """Kolmogorov and Smirnov: fixed seeds, so that a p-value below 1e-4 is a wrong distribution."""
    for x in drawn(call, device):
        assert stats.kstest(x, CONTINUOUS[call].cdf).pvalue > 1e-4


@pytest.mark.parametrize("call", DISCRETE)
def test_counts_fit_their_distribution(call, device):
    """Pearson, over bins of at least some twenty expected counts."""
    known = DISCRETE[call]
    for x in drawn(call, device):
        assert x.dtype == "int64"
        edges = np.unique(known.ppf(np.linspace(0.002, 0.998, 40)))
        observed = np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1)
        expected = np.diff([0.0, *known.cdf(edges), 1.0]) * N
        kept = expected > 5
        if not kept.all():
            observed, expected = (np.append(v[kept], v[~kept].sum()) for v in (observed, expected))
        kept = expected > 0
        assert observed[~kept].sum() == 0
        chi2 = ((observed[kept] - expected[kept]) ** 2 / expected[kept]).sum()
        assert stats.chi2.sf(chi2, kept.sum() - 1) > 1e-4, (observed, expected)


@pytest.mark.parametrize("extent", [2, 7, 100, 3 * 2**61, 2**63 + 1], ids=str)
def test_integers_between_arrays_of_bounds_are_uniform(extent, device):
    """Pearson; the words that would favour small values are more than a quarter of all for the last two."""
    bins = min(extent, 64)
    low = nd.full((N,), 5, "uint64", device=device)
    x = nd.asnumpy(
        nd.random.default_rng(2, device=device).integers(
            low, low + nd.asarray(extent, "uint64", device=device), dtype="uint64"
        )
    )
    places = [int(v) * bins // extent for v in x - np.uint64(5)]
    observed = np.bincount(places, minlength=bins)
    edges = [-(-k * extent // bins) for k in range(bins + 1)]
    expected = np.array([(b - a) / extent for a, b in itertools.pairwise(edges)]) * N
    assert observed.sum() == N and stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), bins - 1) > 1e-4


def test_vectors_have_their_moments(device):
    g = nd.random.default_rng(3, device=device)
    x = nd.asnumpy(g.dirichlet([0.5, 2.0, 1.5], N))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(x.mean(0), [0.125, 0.5, 0.375], atol=0.01)
    assert stats.kstest(x[:, 1], stats.beta(2, 2).cdf).pvalue > 1e-4
    assert nd.asnumpy(g.dirichlet([1e-5, 1e-5], 100)).max() > 0.99  # the gamma variates of both underflow
    counts = nd.asnumpy(g.multinomial(50, [0.2, 0.5, 0.3], N))
    assert (counts.sum(-1) == 50).all() and counts.dtype == "int64"
    np.testing.assert_allclose(counts.mean(0), [10, 25, 15], atol=0.2)
    np.testing.assert_allclose(np.cov(counts.T)[0, 1], -50 * 0.2 * 0.5, rtol=0.1)
    assert g.multinomial(nd.asarray([3, 0], device=device), [0.5, 0.5]).shape == (2, 2)
    assert g.multinomial(7, [0.0, 1.0, 0.0]).tolist() == [0, 7, 0] and g.multinomial(7, [1.0]).tolist() == [7]
    balls = nd.asnumpy(g.multivariate_hypergeometric([10, 0, 20], 6, N))
    assert (balls.sum(-1) == 6).all() and (balls[:, 1] == 0).all()
    np.testing.assert_allclose(balls.mean(0), [2, 0, 4], atol=0.05)
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    for method in ("svd", "eigh", "cholesky"):
        x = nd.asnumpy(g.multivariate_normal([1.0, -1.0], cov.tolist(), N, method=method))
        np.testing.assert_allclose(x.mean(0), [1, -1], atol=0.05)
        np.testing.assert_allclose(np.cov(x.T), cov, atol=0.08)
    assert g.multivariate_normal(nd.ones(2, device=device), nd.eye(2, device=device), (3, 4)).shape == (3, 4, 2)
    with pytest.warns(RuntimeWarning, match="not symmetric positive semidefinite"):
        g.multivariate_normal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])


EDGES = {
    "beta(1e300, 1e-300)": 1.0,
    "beta(1e308, 1e308)": 0.5,
    "beta(1e-320, 1)": 0.0,
    "binomial(9, 0.0)": 0,
    "binomial(9, 1.0)": 9,
    "binomial(0, 0.5)": 0,
    "geometric(1)": 1,
    "geometric(1e-300)": 2**63 - 1,
    "hypergeometric(5, 10, 15)": 5,
    "hypergeometric(5, 10, 0)": 0,
    "hypergeometric(0, 0, 0)": 0,
    "hypergeometric(5, 0, 3)": 3,
    "logseries(0)": 1,
    "negative_binomial(3, 1)": 0,
    "negative_binomial(1e-300, 0.5)": 0,
    "poisson(0)": 0,
    "poisson(1e-320)": 0,
    "zipf(2000)": 1,
    "zipf(1e308)": 1,
    "standard_gamma(0)": 0.0,
    "gamma(2, 0)": 0.0,
}


@pytest.mark.parametrize("call", EDGES)
def test_what_is_certain_is_drawn(call, device):
    for x in drawn(call, device, 9):
        assert x.tolist() == [EDGES[call]] * 9


def test_large_means_neither_cancel_nor_overflow(device):
    """Beyond 2**53, too, where the deviation is counted in steps of the floats."""
    for mean in (1e12, 1e17, 2.0**62 - 1024):
        x = nd.asnumpy(nd.random.default_rng(1, device=device).poisson(mean, 2000)).astype("float64")
        z = (x - mean) / mean**0.5
        assert abs(z.mean()) < 0.1 and abs(z.std() - 1) < 0.1
        assert stats.kstest(z, "norm").pvalue > 1e-4
    x = nd.asnumpy(nd.random.default_rng(1, device=device).negative_binomial(4e6, 1e-11, 2000)).astype("float64")
    assert stats.kstest((x * 1e-11 - 4e6) / 2000, "norm").pvalue > 1e-4
    most = int(nd.random.default_rng(1, device=device).negative_binomial(0.01, 2.3e-19, N).max())
    assert abs(most / 2.0**62 - 1) < 1e-6  # where a gamma variate is larger, 2**62 is the mean
    assert int(nd.random.default_rng(1, device=device).zipf(1.0001, 500).min()) >= 1
    assert int(nd.random.default_rng(1, device=device).geometric(1e-300, 5).min()) > 0


REFUSED = """
beta(0, 1)
beta(1, float('nan'))
binomial(-1, 0.5)
binomial(3, 1.5)
chisquare(0)
dirichlet([1.0, 0.0])
dirichlet(2.0)
exponential(v)
f(1, -1)
gamma(-1)
gamma(float('inf'))
geometric(0)
gumbel(0, -1)
hypergeometric(5, 10, 16)
hypergeometric(-1, 10, 5)
laplace(0, v)
logseries(1.0)
multinomial(3, [0.9, 0.9, 0.1])
multinomial(3, [])
multinomial(-1, [1.0])
multivariate_hypergeometric([1, 2], 4)
multivariate_hypergeometric([1.5], 1)
multivariate_normal([0.0], [[1.0, 0], [0, 1]])
multivariate_normal([0.0, 0.0], [[1.0, 2], [2, 1]], check_valid='raise')
multivariate_normal([0.0], [[1.0]], method='qr')
multivariate_normal([0.0], [[1.0]], check_valid='no')
negative_binomial(0, 0.5)
negative_binomial(1, 1e-300)
negative_binomial(1e18, 0.1)
negative_binomial(float('nan'), 0.5)
negative_binomial(2, [0.5, float('nan')])
negative_binomial([1.0, 1e19], 0.5)
noncentral_chisquare(1, -1)
noncentral_f(0, 1, 1)
normal(0, v)
pareto(0)
poisson(-1)
poisson(1e300)
poisson(float('nan'))
poisson([1.0, float('nan')])
poisson([1.0, 2.0**62])
poisson(v)
power(-1)
rayleigh(-1)
standard_gamma(v)
standard_t(0)
triangular(1, 0, 2)
triangular(1, 1, 1)
vonmises(0, -1)
wald(0, 1)
weibull(0)
zipf(1)
zipf(float('nan'))
zipf([2.0, float('nan')])
zipf(float('inf'))
beta(2, [1.0, 2.0], size=3)
"""


@pytest.mark.parametrize("call", [line for line in REFUSED.splitlines() if line])
def test_parameters_that_no_distribution_has_are_refused(call, device):
    g = nd.random.default_rng(1, device=device)
    scope = {name: getattr(g, name) for name in dir(g) if name[0] != "_"}
    with pytest.raises(ValueError):
        eval(call, {**scope, "v": nd.asarray([1.0, -1.0], device=device)})


def test_results_have_their_dtype_and_place(device):
    g = nd.random.default_rng(2, device=device)
    assert g.gamma(2.0, size=3, dtype="float32").dtype == "float32"
    assert g.poisson(2.0, size=3, dtype="int8").dtype == "int8"
    assert g.binomial(5, 0.5).shape == () and g.beta(nd.ones((2, 1), device=device), [1.0, 2.0]).shape == (2, 2)
    for empty in (0, (2, 0)):
        assert g.gamma(2.0, size=empty).size == g.poisson(3.0, size=empty).size == g.zipf(2.0, empty).size == 0
    out = nd.zeros((2, 3), "float32", device=device)
    assert g.standard_gamma(2.0, dtype="float32", out=out) is out and float(out.min()) > 0
    with pytest.raises(TypeError, match="dtype is int32; it must be a float"):
        g.gamma(2.0, dtype="int32")
    with pytest.raises(TypeError, match="dtype is complex64; it must be of integers"):
        g.poisson(2.0, dtype="complex64")
    some = g.poisson([0.0, 50.0], (3, 2), "bool")
    assert some.dtype == "bool" and some.tolist() == [[False, True]] * 3


@pytest.mark.parametrize("call", ["gamma(p, 2.0)", "normal(p, 2.0)", "normal(0.0, p)", "poisson(p)", "choice(p, (2,))"])
def test_parameters_of_other_libraries_move_to_where_the_numbers_are_made(call, device):
    g = nd.random.default_rng(1, device=device)
    x = eval(f"g.{call}", {"g": g, "p": np.array([1.0, 2.0])})
    assert x.shape == (2,) and x.device == nd.zeros(1, device=device).device
    with pytest.raises(TypeError):
        eval(f"g.{call}", {"g": g, "p": object()}) if "choice" not in call else g.gamma(None)


def test_an_infinite_shape_is_a_limit(device):
    g = nd.random.default_rng(1, device=device)
    assert (
        g.weibull(float("inf"), 3).tolist()
        == g.power(nd.full((), float("inf"), device=device), 3).tolist()
        == [1.0] * 3
    )
    assert g.pareto(float("inf"), 2).tolist() == [0.0, 0.0]


def test_there_is_nothing_to_choose_from_a_number_that_is_no_integer(device):
    for a in (3.5, None):
        with pytest.raises(ValueError, match="how many integers"):
            nd.random.default_rng(1, device=device).choice(a)


@pytest.mark.parametrize("call", ["beta(1e-4, 1e-4, n)", "beta(1e-305, 3e-305, n)"])
def test_beta_variates_of_next_to_nothing_are_0_or_1(device, call):
    x = nd.asnumpy(eval(f"g.{call}", {"g": nd.random.default_rng(7, device=device), "n": N}))
    want = 0.5 if "e-4" in call else 0.25
    assert np.isin(x.round(9), [0, 1]).mean() > 0.99 and abs(x.mean() - want) < 0.015


def test_rare_inverse_gaussian_variates_are_as_large_as_they_must_be(device):
    """Where the mean is ten orders of magnitude above the scale, one number of ten thousand million is all of the mean;
    below it they are scale / chi-squared."""
    x = nd.asnumpy(nd.random.default_rng(7, device=device).wald(1e10, 1e-10, N))
    assert stats.kstest(x, stats.invgamma(0.5, scale=0.5e-10).cdf).pvalue > 1e-4


@pytest.mark.parametrize("n", [1, 20, 32, 33, 500])
def test_each_outcome_of_a_multinomial_is_binomial(device, n):
    """Few trials are drawn one by one, many as binomial variates."""
    p = [0.2, 0.3, 0.5]
    x = nd.asnumpy(nd.random.default_rng(6, device=device).multinomial(n, p, 20_000))
    assert (x.sum(-1) == n).all() and x.dtype == np.int64
    spread = np.cov(x.T) / n
    np.testing.assert_allclose(x.mean(0) / n, p, atol=4 * (0.25 / (20_000 * n)) ** 0.5)
    np.testing.assert_allclose(spread, np.diag(p) - np.outer(p, p), atol=0.015)


@pytest.mark.parametrize("n", [4, 300])
def test_rows_of_a_multinomial_have_their_trials_and_probabilities(device, n):
    """Many outcomes, an array of trials and rows of probabilities are binomial variates of what is left."""
    p = np.array([[0.1] * 10, [0.5, 0.3, 0.2] + [0.0] * 7])
    trials = nd.asarray([[n], [0], [2 * n]], device=device)
    x = nd.asnumpy(nd.random.default_rng(8, device=device).multinomial(trials, p.tolist(), (20_000, 3, 2)))
    assert (x.sum(-1) == np.array([[n], [0], [2 * n]])).all()
    spread = 5 * (0.25 / (20_000 * n)) ** 0.5
    np.testing.assert_allclose(x.mean(0)[[0, 2]] / np.array([n, 2 * n]).reshape(2, 1, 1), [p, p], atol=spread)
    np.testing.assert_allclose(np.cov(x[:, 0, 1, :2].T) / n, [[0.25, -0.15], [-0.15, 0.21]], atol=0.015)


def test_random_state_has_the_older_names(device):
    s = nd.random.RandomState(5, device=device)
    state = s.get_state()
    x = s.rand(3), s.randn(2), s.randint(5, size=4), s.random_sample(3), s.random_integers(6, size=50), s.tomaxint(2)
    s.set_state(state)
    again = s.rand(3)
    s.seed(5)
    assert nd.array_equal(again, x[0]) and nd.array_equal(s.rand(3), x[0])
    assert int(x[4].min()) >= 1 and int(x[4].max()) <= 6 and int(x[5].min()) >= 0
    assert s.random_integers(3, 3).item() == 3 and isinstance(s.spawn(1)[0], nd.random.RandomState)
    assert isinstance(s, nd.random.Generator) and "RandomState" in repr(s)


def test_draws_from_too_few_are_refused_of_numbers_and_of_arrays(device):
    g = nd.random.default_rng(1, device=device)
    for nsample in (14, nd.asarray([3, 14], device=device)):
        with pytest.raises(ValueError, match="draw at most as many"):
            g.hypergeometric(9, 4, nsample)
