"""Cases of what makes, moves and joins arrays, of random numbers, and of the few arrays beyond two gigabytes."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.arrays import DTYPES, INTS, Input
from oracle.cases import Case
from oracle.tables import Letter, Row, Table, expand_all, rows
from oracle.thresholds import sizes

MANIPULATION = Table(
    "manipulation",
    rows(
        """
        xp.reshape(t, (-1,))
        xp.reshape(t, (13, -1))
        t.reshape(-1, order="F")
        x.reshape(-1, 1)
        xp.transpose(t)
        x.transpose()
        x.T
        t.mT
        xp.permute_dims(t, (1, 0))
        xp.matrix_transpose(t)
        xp.moveaxis(c, 0, -1)
        xp.rollaxis(c, 2)
        xp.swapaxes(c, 0, 2)
        x[:, None].swapaxes(0, 1)
        x.swapaxes(0, 0)
        xp.squeeze(t[:1])
        x[None].squeeze(0)
        x.squeeze() if x.shape != (1,) else 0
        xp.expand_dims(x, (0, 2))
        xp.atleast_1d(x)
        xp.atleast_2d(x)
        xp.atleast_3d(x)
        xp.broadcast_to(x, (3, *x.shape))
        xp.broadcast_arrays(x[:1], t)
        xp.flip(t)
        xp.flip(c, axis=(0, 2))
        xp.fliplr(t)
        xp.flipud(t)
        xp.rot90(t)
        xp.rot90(t, 2)
        xp.rot90(t, 3)
        xp.roll(x, 3)
        xp.roll(t, -5)
        xp.roll(t, (2, -3), axis=(0, 1))
        xp.fft.fftshift(t)
        xp.fft.ifftshift(t, axes=1)
        xp.repeat(x, 3)
        xp.repeat(t, 2, axis=0)
        xp.repeat(t, 2, axis=1)
        x.repeat(2)
        xp.tile(x, 3)
        xp.tile(t, (2, 2))
        xp.resize(t, (7, 11))
        xp.concatenate([x, x[::-1], x[:5]])
        xp.concatenate([t, t], axis=1)
        xp.concatenate([t, t[:, :3]], axis=1)
        xp.concat([t, c.reshape(-1)], axis=None)
        xp.stack([x, x[::-1]])
        xp.stack([t, t], axis=-1)
        xp.unstack(t, axis=1)
        xp.hstack([t, t])
        xp.vstack([t, t])
        xp.row_stack([t, t])
        xp.dstack([t, t])
        xp.column_stack([x, x])
        xp.append(x, x[:3])
        xp.append(t, t, axis=0)
        xp.array_split(x, 3)
        xp.array_split(t, 4, axis=1)
        xp.split(t, [1, 5], axis=1)
        xp.hsplit(t, [2, 4])
        xp.vsplit(t, [1])
        xp.dsplit(c, 3)
        xp.pad(t, 2)
        xp.pad(x, (3, 1), "edge")
        xp.pad(t, ((1, 0), (2, 3)), "reflect") if min(t.shape) > 3 else 0
        xp.pad(t, 1, "symmetric") if min(t.shape) > 0 else 0
        xp.pad(x, 4, "wrap") if x.shape[0] else 0
        xp.delete(x, slice(1, None, 2))
        xp.delete(t, 0, axis=1)
        xp.diag(x[:200])
        xp.diag(t)
        xp.diag(t, 2)
        xp.diagflat(x[:100])
        xp.diagonal(t, -1)
        xp.diagonal(c, 1, 0, 2)
        x[None].diagonal()
        xp.tril(t)
        xp.triu(t, 2)
        xp.triu(c, -1)
        xp.diff(x)
        xp.diff(t, axis=0)
        xp.diff(x, 2)
        xp.ediff1d(x)
        xp.ravel(c)
        x.flatten()
        x[::2].ravel()
        xp.ndim(t)
        xp.shape(t)
        xp.size(t)
        xp.meshgrid(x[:70], x[:50])
        xp.may_share_memory(x, x[1:])
        xp.shares_memory(x, x[2:3])
        xp.full_like(t, 3)
        xp.zeros_like(t)
        xp.ones_like(t)
        xp.empty_like(t).shape
        xp.array([x, x])
        xp.array(x, ndmin=3)
        [y.copy() for y in x[:9]]
        x.view("uint8") if x.flags.c_contiguous and x.size else 0
        x.item(0) if x.size else 0
        x.tobytes()
        x[:99].tolist()
        x.nbytes
        x.size
        x.ndim
        x.shape
        x.itemsize
        """
    ),
    {"x": Letter(), "t": Letter(shape="table"), "c": Letter(shape="cube")},
    sizes=(0, 1, 17, 260, 4099),
    layout_sizes=(260, 4099),
)
ROUNDED = Table(
    "manipulation",
    (Row("xp.trapezoid(x)", ulps=200), Row("xp.vander(x[:9], 3)", ulps=4)),
    {"x": Letter("positive")},
)

CREATION = """
xp.zeros(n, dtype, **on)
xp.ones((n, 3), dtype, **on)
xp.full(n, 3, dtype, **on)
xp.empty((n, 2), dtype, **on).shape
xp.eye(min(n, 300), dtype=dtype, **on)
xp.eye(min(n, 70), 90, k=3, dtype=dtype, **on)
xp.identity(min(n, 300), dtype, **on)
xp.tri(min(n, 300), 40, 1, dtype, **on)
xp.arange(min(n, 127), dtype=dtype, **on)
xp.array([1, 0, 1], dtype, **on)
xp.asarray([[1, 0], [1, 1]], dtype, **on)
xp.fromiter(range(min(n, 100)), dtype, **on)
xp.frombuffer(bytes(range(32)), "uint8", **on)
"""
RANGES = """
xp.arange(n, **on)
xp.arange(5, 5 + n, dtype="int64", **on)
xp.arange(n, 0, -1, **on)
xp.arange(0, 1, 1 / max(n, 1), **on)
xp.linspace(0, 1, n, **on)
xp.linspace(2.5, -7, n, endpoint=False, **on)
xp.fft.fftfreq(max(n, 1), **on)
xp.fft.rfftfreq(max(n, 1), 0.25, **on)
xp.indices((n, 3), **on)
xp.fromfunction(lambda i, j: i * 2 + j, (n, 3), **on)
"""
ROUNDED_RANGES = """
xp.logspace(0, 3, n, **on)
xp.geomspace(1, 1000, n, **on)
"""
FIXED = """
xp.tril_indices(40, 1, **on)
xp.triu_indices(40, -1, 50, **on)
xp.diag_indices(40, **on)
xp.broadcast_shapes((3, 1), (1, 5))
xp.isdtype(xp.float32, "real floating")
xp.can_cast("int32", "float64")
xp.promote_types("int32", "float32")
xp.result_type("int8", "uint8")
"""

# The generator is the same on every device: integers and uniform numbers in every bit, the others but for logarithms.
RANDOM = (
    ("random(n)", 0),
    ("random(n, 'float32')", 0),
    ("uniform(-2, 5, n)", 2),
    ("integers(0, 1000, n)", 0),
    ("integers(-7, 2**40, n)", 0),
    ("integers(0, 200, n, 'uint8')", 0),
    ("integers(0, 2, n, 'bool')", 0),
    ("standard_normal(n)", 16),
    ("standard_normal(n, 'float32')", 16),
    ("normal(3, 2, n)", 64),
    ("exponential(2.0, n)", 16),
    ("standard_exponential(n)", 16),
    ("lognormal(0, 1, n)", 64),
    ("gumbel(0, 1, n)", 256),
    ("laplace(0, 1, n)", 256),
    ("logistic(0, 1, n)", 256),
    ("rayleigh(1, n)", 64),
    ("standard_cauchy(n)", 1e7),  # the tangent near its poles
    ("permutation(n)", 0),
    ("permuted(xp.arange(n, **on))", 0),
    ("choice(100, n)", 0),
    ("bytes(n)", 0),
)
# Logarithms and powers of those, some by rejection: what is drawn again is the same on every device, but for one number
# in some 1e15 that lies at the bound of what is taken.
DISTRIBUTIONS = """
beta(2.5, 0.7, n)
binomial(20, 0.3, n)
chisquare(3, n)
dirichlet([0.4, 2, 5], n)
f(4, 9, n)
gamma(2.5, 2, n)
gamma(0.3, size=n)
geometric(0.2, n)
hypergeometric(15, 20, 10, n)
logseries(0.7, n)
multinomial(20, [0.2, 0.3, 0.5], n)
negative_binomial(3, 0.4, n)
noncentral_chisquare(3, 2, n)
noncentral_f(5, 9, 3, n)
pareto(3, n)
poisson(6.5, n)
poisson(4000, n)
power(2.5, n)
standard_gamma(1.5, n)
triangular(1, 2, 4, n)
wald(2, 3, n)
weibull(1.7, n)
zipf(3, n)
"""
AROUND_ZERO = """
multivariate_normal([1, 2], [[2, 1], [1, 3]], n) + 16
standard_t(4, n) + 64
vonmises(0.5, 2, n) + 8
"""
# Where a number near zero is a difference of larger ones, or the cosine of an angle: the size of those.
SIZES = {
    ".normal(3, 2": "5.0",
    **dict.fromkeys((".standard_normal(", ".normal(0, 1", ".randn(", ".gumbel(", ".laplace(", ".logistic("), "1.0"),
}
LEGACY = """
xp.random.random(n, **on)
xp.random.random_sample(n, **on)
xp.random.ranf(n, **on)
xp.random.sample(n, **on)
xp.random.rand(n, **on)
xp.random.randint(0, 99, n, **on)
xp.random.uniform(0, 1, n, **on)
xp.random.choice(50, n, **on)
xp.random.permutation(n, **on)
"""
LEGACY_NEAR = """
xp.random.randn(n, **on)
xp.random.standard_normal(n, **on)
xp.random.normal(0, 1, n, **on)
xp.random.exponential(1, n, **on)
xp.random.standard_exponential(n, **on)
xp.random.lognormal(0, 1, n, **on)
xp.random.gumbel(0, 1, n, **on)
xp.random.laplace(0, 1, n, **on)
xp.random.logistic(0, 1, n, **on)
xp.random.rayleigh(1, n, **on)
"""


def made() -> Iterator[Case]:
    for dtype in DTYPES:
        for row in rows(CREATION):
            for n in (0, 1, 17, 257, 4097):
                code = row.code.replace("dtype=dtype", f"dtype={dtype!r}").replace(", dtype", f", {dtype!r}")
                code = code.replace(f"{dtype!r}=", "dtype=")
                theirs = code.replace("'bfloat16'", "'float32'")
                yield Case("creation", code, (), n, theirs, tier=0 if n == 4097 else 2)
    for n in (0, 1, 2, 17, *sizes("elementwise", 8, 70_000)):
        for row in rows(RANGES):
            yield Case("creation", row.code, (), n, tier=1, numpy_ulps=1)
        for row in rows(ROUNDED_RANGES):
            yield Case("creation", row.code, (), n, tier=1, device_ulps=32, numpy_ulps=64)
    for row in rows(FIXED):
        yield Case("creation", row.code, tier=0)


def random() -> Iterator[Case]:
    for n in (*sizes("random", 8, 1 << 16), 100_003):
        for call, ulps in RANDOM:
            code = f"xp.random.default_rng(7, **on).{call}"
            size = next((size for name, size in SIZES.items() if name in code), "")
            yield Case("random", code, (), n, None, device_ulps=ulps, tier=0 if n == 4097 else 1, size=size)
        yield Case("random", "y = xp.arange(n, **on)\nxp.random.default_rng(7, **on).shuffle(y)\ny", (), n, None)
        for text, ulps in ((LEGACY, 0), (LEGACY_NEAR, 256)):
            for row in rows(text):
                code = f"xp.random.seed(5)\n{row.code}"
                size = next((size for name, size in SIZES.items() if name in code), "")
                yield Case("random", code, (), n, None, device_ulps=ulps, size=size)
    for n in (17, 4097):
        for row in (*rows(DISTRIBUTIONS), *rows(AROUND_ZERO)):
            for code in (f"xp.random.default_rng(7, **on).{row.code}", f"xp.random.seed(5)\nxp.random.{row.code}"):
                on = code if "default_rng" in code else code.replace("n)", "n, **on)")
                yield Case("random", on, (), n, None, device_ulps=4096, tier=0 if n == 17 else 1)
    yield Case("random", "xp.random.default_rng(7, **on).multivariate_hypergeometric([9, 4], 6, n)", (), 65, None)
    yield Case("random", "xp.random.seed(5)\nxp.random.random_integers(1, 9, n, **on)", (), 65, None)
    yield Case("random", "xp.random.seed(5)\nxp.random.standard_cauchy(50, **on)", (), 50, None, device_ulps=1e7)
    yield Case("random", "xp.random.seed(5)\ny = xp.arange(50, **on)\nxp.random.shuffle(y)\ny", (), 50, None)
    yield Case("random", "xp.random.seed(5)\nxp.random.bytes(50)", (), 50, None)


# One value a part of the array: what is beyond 2^31 bytes must not come from, or go to, the part below.
LARGE = """
x = xp.zeros(n, "uint8", **on); x[-5:] = 7; x[n // 2] = 3; (x[-9:] + x[:9], xp.sum(x), xp.argmax(x), x[n // 2 - 1:][:3])
x = xp.ones(n, "uint8", **on); y = x + x; (y[-3:], xp.min(y), xp.max(y))
x = xp.zeros(n, "int8", **on); x[::-1][:3] = 1; (xp.nonzero(x), xp.count_nonzero(x))
x = xp.zeros((n // 4, 4), "uint8", **on); x[-2:] = 5; y = xp.ascontiguousarray(x.T); (y[:, -3:], xp.sum(y))
x = xp.zeros(n, "uint8", **on); p = xp.asarray([n - 1, 2**31, 5], **on); x[p] = 9; (x[p], xp.sum(x), x[n - 3:])
x = xp.arange(n // 4, dtype="int32", **on); (x[-3:], xp.take(x, xp.asarray([n // 4 - 1, 7], **on)), x[::-1][:3])
x = xp.ones(n, "bool", **on); xp.cumsum(x[-70:], dtype="int64")
x = xp.zeros(n, "uint8", **on); y = x[1:].astype("int8"); y[-2:] = -1; xp.concatenate([y[-5:], x[-5:].astype("int8")])
"""


def large() -> Iterator[Case]:
    for row in rows(LARGE):
        yield Case("large", row.code, (), (1 << 31) + 67, tier=1)


def cases() -> Iterator[Case]:
    yield from expand_all((MANIPULATION, ROUNDED))
    yield from made()
    yield from random()


__all__ = ["INTS", "Input", "cases", "large"]
