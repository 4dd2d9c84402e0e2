"""Random arrays: reproducible, the same on every device, and distributed as they say."""

import hashlib
import pickle
import threading

import numpy as np
import pytest
from dlbridge import nd

DRAWS = {
    "random": lambda g, n: g.random(n),
    "random32": lambda g, n: g.random(n, "float32"),
    "normal": lambda g, n: g.normal(2.0, 3.0, n),
    "standard_normal16": lambda g, n: g.standard_normal(n, "float16"),
    "integers": lambda g, n: g.integers(-7, 9, n),
    "integers8": lambda g, n: g.integers(0, 256, n, "uint8"),
    "integers of arrays": lambda g, n: g.integers([[-3], [2**40]], [[5], [2**62]], (2, n)),
    "integers64": lambda g, n: g.integers(0, 2**64 - 1, n, "uint64", endpoint=True),
    "exponential": lambda g, n: g.exponential(2.0, n),
    "permutation": lambda g, n: g.permutation(n),
    "choice": lambda g, n: g.choice(5, n, p=[0.1, 0.2, 0.3, 0.4, 0.0]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers(name, device):
    draw = DRAWS[name]
    generator = nd.random.default_rng(42, device=device)
    first, second = draw(generator, 1001), draw(generator, 1001)
    again = nd.random.default_rng(42, device=device)
    assert nd.array_equal(draw(again, 1001), first) and nd.array_equal(draw(again, 1001), second)
    assert not nd.array_equal(first, second)
    assert not nd.array_equal(draw(nd.random.default_rng(43, device=device), 1001), first)


# SHA-256 of what the seed 11 draws on the host, 1, 16, 1000 and 9001 numbers in turn: what needs no logarithm, and what
# is rounded to integers after it.
PINNED = {
    "random(n)": "8164f58b3fd3",
    "random(n, 'float32')": "ded062950ae1",
    "random(n, 'float16')": "a9a733f9e72c",
    "uniform(-2, 5, n)": "57639a03041c",
    "uniform(-2, 5, n, 'float32')": "3dd80d492094",
    "integers(0, 2, n, 'bool')": "49e285a5e08c",
    "integers(0, 256, n, 'uint8')": "f4c277760282",
    "integers(-3, 100, n, 'int8')": "6ef90e154502",
    "integers(-3, 1000, n, 'int16')": "aefbad95f169",
    "integers(0, 2**16, n, 'uint16')": "e6d1e9edceb6",
    "integers(-3, 1000, n, 'int32')": "e71d847d1fec",
    "integers(-7, 2**40, n)": "aa95c841ba5f",
    "integers(-2**63, 2**63, n)": "5c97f6ec117d",
    "integers(0, 3 * 2**62, n, 'uint64')": "14bd5565ba29",
    "integers([0], [7], (n,))": "d46cc7366826",
    "permutation(n)": "1f96c8734527",
    "multinomial(20, [0.2, 0.3, 0.5], n)": "a54a64b7ed35",
    "poisson(3, n)": "be0bc5988c62",
    "poisson(4000, n)": "d0f5f0349a3e",
    "binomial(20, 0.3, n)": "4bb16ce9b112",
    "hypergeometric(9, 4, 6, n)": "8fb0985bcba4",
    "multivariate_hypergeometric([9, 4, 7], 6, n)": "e71e08ca27f4",
    "geometric(0.3, n)": "9a0225f14095",
    "logseries(0.6, n)": "729e163fdcb3",
    "zipf(2.5, n)": "8031adab244f",
    "negative_binomial(3, 0.2, n)": "39aacebd3f0f",
}


@pytest.mark.parametrize("call", PINNED)
def test_the_numbers_of_a_seed_stay(call):
    generator, found = nd.random.default_rng(11, device="cpu"), hashlib.sha256()
    for n in (1, 16, 1000, 9001):
        found.update(nd.asnumpy(eval(f"g.{call}", {"g": generator, "n": n})).tobytes())
    assert found.hexdigest()[:12] == PINNED[call]


@pytest.mark.gpu
@pytest.mark.parametrize("name", DRAWS)
def test_host_and_device_give_the_same_numbers(name):
    one = nd.asnumpy(DRAWS[name](nd.random.default_rng(7, device="cuda"), 5003))
    other = nd.asnumpy(DRAWS[name](nd.random.default_rng(7, device="cpu"), 5003))
    if one.dtype.kind == "f":  # logarithms and roots of the two libraries differ in the last places
        np.testing.assert_allclose(one, other, rtol=4e-3 if one.dtype == np.float16 else 1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(one, other)


def test_distributions(device):
    """Means and variances of 40,000 numbers within six standard errors of what they must be."""
    g, n = nd.random.default_rng(5, device=device), 40_000
    expected = {  # mean, variance
        "random": (g.random(n), 0.5, 1 / 12),
        "uniform": (g.uniform(-1, 3, n), 1.0, 16 / 12),
        "normal": (g.normal(2, 3, n), 2.0, 9.0),
        "normal32": (g.standard_normal(n, "float32"), 0.0, 1.0),
        "exponential": (g.exponential(2.0, n), 2.0, 4.0),
        "integers": (g.integers(0, 10, n), 4.5, 99 / 12),
        "lognormal": (g.lognormal(0, 0.5, n), np.exp(0.125), np.exp(0.25) * (np.exp(0.25) - 1)),
        "laplace": (g.laplace(1, 2, n), 1.0, 8.0),
        "logistic": (g.logistic(1, 2, n), 1.0, 4 * np.pi**2 / 3),
        "gumbel": (g.gumbel(0, 1, n), 0.5772156649, np.pi**2 / 6),
        "rayleigh": (g.rayleigh(2, n), 2 * np.sqrt(np.pi / 2), (4 - np.pi) / 2 * 4),
        "arrays": (g.normal(nd.array([1.0], device=device), 2.0, n), 1.0, 4.0),
    }
    for name, (x, mean, variance) in expected.items():
        assert x.shape == (n,) and str(x.device).startswith(device), name
        assert abs(float(x.mean(dtype="float64")) - mean) < 6 * (variance / n) ** 0.5, name
        assert abs(float(x.var(dtype="float64")) / variance - 1) < 0.12, name
    u = g.random(n)
    assert float(u.min()) >= 0 and float(u.max()) < 1
    counts = nd.asnumpy(nd.bincount(g.integers(0, 8, n)))
    assert ((counts - n / 8) ** 2 / (n / 8)).sum() < 40  # chi-squared of 7 degrees of freedom: 40 is 1e-6
    lags = nd.asnumpy(u)
    assert abs(np.corrcoef(lags[1:], lags[:-1])[0, 1]) < 6 / n**0.5


def test_integers_cover_their_range(device):
    g = nd.random.default_rng(1, device=device)
    for dtype in ("int8", "uint8"):
        info = nd.iinfo(dtype)
        x = g.integers(info.min, info.max, 20_000, dtype, endpoint=True)
        assert (int(x.min()), int(x.max()), x.dtype) == (info.min, info.max, dtype)
    assert set(g.integers(0, 2, 100, bool).tolist()) == {True, False}
    assert g.integers(3, 4, 5).tolist() == [3] * 5 and g.integers(5, size=()).shape == ()
    wide = g.integers(-(2**63), 2**63 - 1, 1000, endpoint=True)
    assert int(wide.min()) < -(2**60) and int(wide.max()) > 2**60


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_integers_between_arrays_of_bounds_cover_each_range(dtype, device):
    g = nd.random.default_rng(1, device=device)
    least, most = (0, 1) if dtype == "bool" else (nd.iinfo(dtype).min, nd.iinfo(dtype).max)
    low, last = (nd.asarray(x, dtype, device=device) for x in ([least, most - 1, least], [least, most, least + 1]))
    x = g.integers(low, last, (200, 3), dtype, endpoint=True)
    assert (x.dtype, x.shape, x.device) == (dtype, (200, 3), low.device)
    assert [set(map(int, column)) for column in nd.asnumpy(x).T] == [{least}, {most - 1, most}, {least, least + 1}]
    assert g.integers([most], [most + 1], (2,), dtype).tolist() == [most] * 2  # 2**64 is such a bound
    whole = nd.asnumpy(g.integers([least], most, 2000, dtype, endpoint=True))
    np.testing.assert_allclose(
        [float(q) for q in np.quantile(whole, [0, 1])], [float(least), float(most)], atol=2.0**57
    )


SHAPES = [
    "([1, 2], [5, 6])", "([[-1], [0]], [[10, 11, 12]])", "([3, 4],)", "(3, [[4], [5]])", "([1, 2], [5, 6], (3, 2))",
    "([3], None, (2, 1))", "([], [5])", "([1.9], [5.9])", "([True], [5])", "(np.array([1, 2]), 5)",
    "(np.array(1), [5])",
]  # fmt: skip


@pytest.mark.parametrize("call", SHAPES)
@pytest.mark.parametrize("name", ["integers", "randint"])
def test_bounds_in_arrays_broadcast_as_numpys(call, name, device):
    arguments = eval(call)
    ours = nd.random.default_rng(1, device=device) if name == "integers" else nd.random.RandomState(1, device=device)
    theirs = np.random.default_rng(1) if name == "integers" else np.random.RandomState(1)
    x, y = getattr(ours, name)(*arguments), getattr(theirs, name)(*arguments)
    assert (x.shape, x.dtype) == (y.shape, y.dtype)
    low, high = (0, arguments[0]) if len(arguments) == 1 or arguments[1] is None else arguments[:2]
    assert ((nd.asnumpy(x) >= np.trunc(low)) & (nd.asnumpy(x) < np.trunc(high))).all()


REFUSED_BOUNDS = [
    "([1, 2], [5, 2])", "([1, 300], 400, None, 'int8')", "([-1], [5], None, 'uint8')", "([1, 2], [5, 6], 3)",
    "(5, [6, 5])", "([0], [3], None, 'bool')", "([float('nan')], [5])", "([float('-inf')], [5])", "(0, [2**64], 1)",
    "(0, [0], None, 'uint64')", "([-2**63], [-2**63])", "(0, np.array([0], 'uint64'), None, 'uint64')",
    "(-2**63, np.array([-2**63]), None)", "([0], [2**64 + 1], None, 'uint64')",
]  # fmt: skip


@pytest.mark.parametrize("call", REFUSED_BOUNDS)
def test_bounds_in_arrays_are_refused_as_numpys(call, device):
    arguments = eval(call)
    with pytest.raises((ValueError, OverflowError)):
        np.random.default_rng(1).integers(*arguments)
    with pytest.raises((ValueError, OverflowError)) as caught:
        nd.random.default_rng(1, device=device).integers(*arguments)
    assert "(): " in str(caught.value) or "size" in str(caught.value)


def test_complex_bounds_are_no_integers(device):
    with pytest.raises(TypeError, match="they must be integers"):
        nd.random.default_rng(1, device=device).integers([1j], [5])


def test_orders(device):
    g = nd.random.default_rng(3, device=device)
    assert sorted(g.permutation(100).tolist()) == list(range(100))
    x = nd.arange(20, device=device).reshape(10, 2)
    mixed = g.permutation(x)
    assert sorted(mixed.tolist()) == x.tolist() and mixed.tolist() != x.tolist()
    y = x.copy()
    assert g.shuffle(y) is None and sorted(y.tolist()) == x.tolist() and y.tolist() != x.tolist()
    rows = g.permuted(nd.arange(30, device=device).reshape(3, 10), axis=1)
    assert all(sorted(row) == list(range(10 * k, 10 * k + 10)) for k, row in enumerate(rows.tolist()))
    assert g.choice(x, 4).shape == (4, 2) and g.choice(7, (2, 3)).shape == (2, 3) and g.choice(4).shape == ()
    assert len(set(g.choice(50, 50, replace=False).tolist())) == 50
    picked = g.choice(4, 2, replace=False, p=[0.5, 0.5, 0.0, 0.0])
    assert sorted(picked.tolist()) == [0, 1]
    weighted = nd.asnumpy(nd.bincount(g.choice(3, 30_000, p=[0.2, 0.5, 0.3]), minlength=3)) / 30_000
    np.testing.assert_allclose(weighted, [0.2, 0.5, 0.3], atol=0.02)
    assert g.permutation(0).shape == (0,) and len(g.bytes(5)) == 5


def test_state_and_out(device):
    g = nd.random.default_rng((1, 2**80), device=device)
    state = g.state
    first = g.random(5)
    g.state = state
    assert nd.array_equal(g.random(5), first)
    twin = pickle.loads(pickle.dumps(g))
    assert nd.array_equal(twin.normal(size=3), g.normal(size=3))
    out = nd.zeros((4, 6), "float32", device=device)[:, ::2]
    assert g.random(out=out, dtype="float32") is out and float(out.min()) > 0
    one, other = g.spawn(2)
    assert not nd.array_equal(one.random(9), other.random(9))
    assert nd.random.default_rng(g) is g and "Generator" in repr(g)
    words = nd.random.default_rng(np.array([1, 2**40]), device=device), nd.random.default_rng([1, 2**40], device=device)
    assert words[0].state == words[1].state


def test_the_shared_generator(device):
    nd.random.seed(11)
    state = nd.random.get_state()
    x = (
        nd.random.rand(3, 2, device=device),
        nd.random.randn(4, device=device),
        nd.random.randint(9, size=5, device=device),
    )
    nd.random.seed(11)
    y = (
        nd.random.rand(3, 2, device=device),
        nd.random.randn(4, device=device),
        nd.random.randint(9, size=5, device=device),
    )
    assert all(nd.array_equal(a, b) for a, b in zip(x, y, strict=True))
    nd.random.set_state(state)
    assert nd.array_equal(nd.random.random((3, 2), device=device), x[0])
    assert nd.random.uniform(2, 3, 4, device=device).min() >= 2 and nd.random.normal(device=device).shape == ()
    assert (
        nd.random.standard_normal(2, device=device).dtype == "float64"
        and nd.random.permutation(3, device=device).size == 3
    )
    assert nd.random.rand(device=device).shape == () and nd.random.exponential(size=2, device=device).size == 2
    assert nd.random.standard_exponential(3, device=device).shape == (3,)


def test_threads_draw_different_numbers(device):
    g = nd.random.default_rng(0, device=device)
    drawn = []

    def work():
        for _ in range(20):
            drawn.append(g.integers(0, 2**62, 4))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [number for x in drawn for number in x.tolist()]
    assert len(set(numbers)) == len(numbers) == 320


def test_generators_over_one_stream_take_their_numbers_in_turn(device):
    bits = nd.random.Philox4x32(5)
    one, other = nd.random.Generator(bits, device=device), nd.random.default_rng(bits, device=device)
    alone = nd.random.default_rng(5, device=device)
    assert one.bit_generator is bits is other.bit_generator and nd.random.Philox4x3210 is nd.random.Philox4x32
    for g in (one, other, one):
        assert g.random(3).tolist() == alone.random(3).tolist()
    assert [x.state["key"] for x in bits.spawn(2)] == [x.bit_generator.state["key"] for x in alone.spawn(2)]
    assert "key=0x" in repr(bits) and bits.state == alone.state
    again = pickle.loads(pickle.dumps(bits))
    raw = bits.random_raw(4, device=device)
    assert raw.dtype == "uint64" and raw.tolist() == again.random_raw(4).tolist() and bits.random_raw().shape == ()


def test_what_is_refused_takes_no_numbers(device):
    g = nd.random.default_rng(5, device=device)
    refused = {
        ValueError: [
            lambda: g.random(-1),
            lambda: g.normal(0, -1, 3),
            lambda: g.integers(3, 3),
            lambda: g.geometric(2),
        ],
        TypeError: [lambda: g.random(3, "int8"), lambda: g.uniform(0, 1, "x"), lambda: g.gamma(2, 1, 3, "int8")],
    }
    for error, calls in refused.items():
        for call in calls:
            with pytest.raises(error):
                call()
    with pytest.raises(TypeError, match="no kernel for these dtypes"):
        g.bit_generator.fill(nd.empty(3, "int8", device=device), "normal")
    assert g.state == nd.random.default_rng(5).state


WITH_PARAMETERS = {
    "uniform": (-1, 3), "normal": (1, 2), "exponential": (2,), "integers": (-3, 9), "laplace": (0, 2),
    "standard_gamma": (3,), "gamma": (3, 2), "chisquare": (3,), "pareto": (3,), "wald": (2, 3), "triangular": (0, 1, 3),
    "geometric": (1,), "logseries": (0,), "poisson": (3,), "zipf": (3,),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_parameters_of_numpy_draw_what_pythons_do(name, device):
    numbers = WITH_PARAMETERS[name]
    ours, theirs = (nd.random.default_rng(5, device=device) for _ in range(2))
    for size in (None, 5, (2, 3)):
        want = getattr(ours, name)(*numbers, size)
        got = getattr(theirs, name)(*map(np.int16, numbers), size)
        assert (got.shape, got.dtype, got.tolist()) == (want.shape, want.dtype, want.tolist())
        assert ours.state == theirs.state


def test_a_seed_may_be_a_scalar_of_numpy():
    for seed in (np.int8(1), np.uint64(1), np.True_, nd.asarray(1, device="cpu")):
        assert nd.random.default_rng(seed).state == nd.random.default_rng(1).state
    for seed in (np.float64(1), 1.0, 1j):
        with pytest.raises(TypeError):
            nd.random.default_rng(seed)


def test_the_state_of_the_module_is_replaced_by_another():
    before = nd.random.get_random_state()
    kept, kept_device = before.bit_generator, before._device
    try:
        mine = nd.random.RandomState(3, device="cpu")
        nd.random.set_random_state(mine)
        alone = nd.random.RandomState(3, device="cpu")
        assert nd.random.rand(2).tolist() == alone.rand(2).tolist() and mine.rand(2).tolist() == alone.rand(2).tolist()
        assert mine.state["offset"] == 2 and nd.random.get_random_state() is before
        with pytest.raises(TypeError, match="give a RandomState"):
            nd.random.set_random_state(3)
    finally:
        before._bits, before._device = kept, kept_device


def test_bounds_of_randint_are_cut_to_integers():
    state = nd.random.RandomState(1, device="cpu")
    assert state.randint(-0.9, 1.1, 3).tolist() == [0, 0, 0] and state.randint(np.float64(-1.9), -0.9, 1).tolist() == [
        -1
    ]
    with pytest.raises(ValueError):
        state.randint(-0.2, 0.3)
    with pytest.raises(TypeError):
        nd.random.default_rng(1).integers(-0.9, 1.1)


def test_an_array_without_an_axis_cannot_be_shuffled(device):
    with pytest.raises(TypeError, match="a 0-d array"):
        nd.random.default_rng(1).shuffle(nd.zeros((), device=device))
