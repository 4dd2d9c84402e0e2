"""fuse(): what becomes one kernel, and what cannot be recorded."""

from __future__ import annotations

import numpy as np
from dlbridge import nd
from support import host, launches_of, on_device, raises, rng


def test_fuse_is_one_kernel():
    fused = nd.fuse(lambda a, b, c: a * b + c, kernel_name="axpy")
    a, b, c = (rng.random((30, 40), "f4") for _ in range(3))
    got, names = launches_of(lambda: fused(on_device(a), on_device(b), on_device(c)))
    np.testing.assert_allclose(host(got), a * b + c, rtol=1e-6)
    assert names == ["axpy"] and str(got.dtype) == "float32"
    np.testing.assert_allclose(host(fused(on_device(a), 2.5, on_device(c[0]))), a * np.float32(2.5) + c[0], rtol=1e-6)
    np.testing.assert_allclose(host(fused(on_device(a), 2, on_device(c.astype("f8")))), a * 2 + c.astype("f8"))
    assert nd.fuse(lambda a, b: a + b)(nd.ones(3, device="cpu"), 1).tolist() == [2, 2, 2]
    assert nd.fuse(lambda a, b: a + b)(1, 2) == 3


def test_fuse_functions_follow_the_dtypes_of_nd():
    @nd.fuse
    def everything(x, y):
        z = nd.where(x > 0, np.exp(-x), nd.maximum(y, 0.5)) ** 2
        z += nd.clip(x, -1, 1) // 0.25 % 3
        return nd.sqrt(abs(z)), (x < y) & ~nd.isnan(z), z.astype("float64") / 3, nd.sign(x)

    x, y = rng.normal(size=100).astype("f4"), rng.normal(size=100).astype("f4")
    a, b, c, d = everything(on_device(x), on_device(y))
    z = np.where(x > 0, np.exp(-x), np.maximum(y, np.float32(0.5))) ** 2
    z = z + np.clip(x, -1, 1) // np.float32(0.25) % 3
    np.testing.assert_allclose(host(a), np.sqrt(abs(z)), rtol=1e-5)
    np.testing.assert_array_equal(host(b), (x < y) & ~np.isnan(z))
    np.testing.assert_allclose(host(c), z.astype("f8") / 3, rtol=1e-5)
    assert [str(r.dtype) for r in (a, b, c, d)] == ["float32", "bool", "float64", "float32"]
    ints = nd.fuse(lambda x, y: (x // y, x % y, x / y, x << 1, x == 300, nd.power(x, 2), ~x))
    x, y = rng.integers(-9, 9, 50).astype("i1"), rng.integers(-3, 3, 50).astype("i1")
    with np.errstate(all="ignore"):
        expected = (x // y, x % y, x / y, x << 1, x == 300, np.power(x, 2), ~x)
    for got, want in zip(ints(on_device(x), on_device(y)), expected, strict=True):
        np.testing.assert_array_equal(host(got), want)


def test_fuse_reductions_and_what_follows_them():
    softmax = nd.fuse(lambda x: (lambda e: e / e.sum(axis=1, keepdims=True))(nd.exp(x - x.max(axis=1, keepdims=True))))
    x = rng.normal(size=(6, 50))
    got, names = launches_of(lambda: softmax(on_device(x)))
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(host(got), e / e.sum(1, keepdims=True), rtol=1e-12)
    assert len(names) == 3
    loss = nd.fuse(lambda x, y: nd.sum((x - y) ** 2))
    y = rng.normal(size=(6, 50))
    np.testing.assert_allclose(float(host(loss(on_device(x), on_device(y)))), ((x - y) ** 2).sum(), rtol=1e-12)
    stats = nd.fuse(lambda x: (x.mean(axis=0), (x > 0).any(axis=1), (x > 9).sum(), nd.max(abs(x))))
    mean, some, count, most = stats(on_device(x))
    np.testing.assert_allclose(host(mean), x.mean(0), rtol=1e-12)
    np.testing.assert_array_equal(host(some), (x > 0).any(1))
    assert int(host(count)) == 0 and str(count.dtype) == "int64" and float(host(most)) == abs(x).max()


def test_fuse_in_place():
    @nd.fuse()
    def update(p, m, g):
        m *= 0.9
        m += g
        p -= 0.1 * m

    p, m, g = (rng.random(20, "f4") for _ in range(3))
    dp, dm = on_device(p), on_device(m)
    (result, names) = launches_of(lambda: update(dp, dm, on_device(g)))
    assert result is None and len(names) == 1
    m = m * np.float32(0.9) + g
    np.testing.assert_allclose(host(dm), m, rtol=1e-6)
    np.testing.assert_allclose(host(dp), p - np.float32(0.1) * m, rtol=1e-6)
    with raises(TypeError, "float"):
        nd.fuse(lambda x: x.__iadd__(1.5))(on_device(np.arange(3)))


def test_fuse_refuses_what_cannot_be_recorded():
    x = on_device(np.arange(4.0))
    for function in (lambda x: x if x else -x, lambda x: x[0], lambda x: x.reshape(2, 2), lambda x: 3.0,
                     lambda x: x + np.ones(4), lambda x: float(x), lambda x: x @ x, lambda x: x.shape):  # fmt: skip
        with raises(TypeError):
            nd.fuse(function)(x)
    with raises(TypeError, "fuse()", "choice"):
        nd.fuse(lambda x: 1 if x > 0 else 2)(x)
