"""ReductionKernel: axes, splits over blocks, structures as accumulators."""

from __future__ import annotations

import numpy as np
from dlbridge import nd
from support import CUDA, host, launches_of, on_device, raises, rng


def test_reductions_agree_with_numpy():
    norm = nd.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
    base = rng.random((5, 7, 9))
    x = on_device(base)
    for axis in (None, 0, 1, 2, (0, 1), (1, 2), (0, 2), -1, ()):
        for keepdims in (False, True):
            got = norm(x, axis=axis, keepdims=keepdims)
            expected = np.sqrt((base * base).sum(axis=axis, keepdims=keepdims))
            assert got.shape == expected.shape, (axis, keepdims)
            np.testing.assert_allclose(host(got), expected, rtol=1e-12, err_msg=f"{axis} {keepdims}")
    np.testing.assert_allclose(
        host(norm(x[::2, :, ::-2].T, axis=0)), np.sqrt((base[::2, :, ::-2].T ** 2).sum(0)), rtol=1e-12
    )


def test_reductions_split_over_blocks():
    total = nd.ReductionKernel("T x, T w", "T y", "x * w", "a + b", "y = a", "0", "weighted")
    x = rng.integers(0, 9, (40, 1300)).astype("i8")
    got, names = launches_of(lambda: total(on_device(x), 2))
    assert int(host(got)) == 2 * x.sum()
    assert names == ["weighted", "weighted_finish"]
    tall = rng.integers(0, 9, (3000, 3)).astype("i8")
    np.testing.assert_array_equal(host(total(on_device(tall), 1, axis=0)), tall.sum(0))
    np.testing.assert_array_equal(host(total(on_device(x), on_device(x[0]), axis=1)), (x * x[0]).sum(1))


def test_reductions_without_identity_and_with_structures():
    largest = nd.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", None, "largest")
    x = -1 - rng.random((4, 70))
    np.testing.assert_array_equal(host(largest(on_device(x), axis=1)), x.max(1))
    assert float(host(largest(on_device(x)))) == x.max()
    with raises(ValueError, "empty", "identity"):
        largest(on_device(x[:0]), axis=0)
    assert largest(on_device(x[:0]), axis=1).shape == (0,)
    of_nothing = nd.ReductionKernel("T x", "T y", "x", "a + b", "y = a + 5", "0", "of_nothing")
    assert host(of_nothing(on_device(x[:0]), axis=0)).tolist() == [5] * 70  # what the identity becomes
    assert host(of_nothing(on_device(x[:, :0]), axis=1)).tolist() == [5] * 4
    assert float(host(of_nothing(on_device(x[:0])))) == 5
    argmax = nd.ReductionKernel(
        "T x", "int64 y", "Best<T>{x, i}", "b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a",
        "y = a.at", None, "argmax", reduce_type="Best<T>",
        preamble="template <class A> struct Best { A value; long long at; };",
    )  # fmt: skip
    assert int(host(argmax(on_device(x)))) == x.argmax()
    both = nd.ReductionKernel("T x", "T s, float64 m", "x", "a + b", "s = a; m = a / double(n)", "0", "sum_and_mean")
    s, m = both(on_device(np.arange(12).reshape(3, 4)), axis=0)
    assert host(s).tolist() == [12, 15, 18, 21] and host(m).tolist() == [4, 5, 6, 7]
    out = nd.empty(4, "f8", device=CUDA)
    plain = nd.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "plain_sum")
    assert plain(on_device(x), axis=1, out=out) is out
    np.testing.assert_allclose(host(out), x.sum(1))
    with raises(ValueError, "(4,)", "(70,)"):
        plain(on_device(x), axis=0, out=out)
    half = rng.random(3000).astype("f2")
    assert abs(float(host(plain(on_device(half)))) - half.astype("f8").sum()) < 2
    with raises(TypeError, "no argument is an array"):
        plain(3.0)
    with raises(TypeError, "cpu"):
        plain(nd.zeros(3, device="cpu"))
