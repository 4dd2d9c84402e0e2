"""fuse(): what becomes one kernel, and what cannot be recorded."""

from __future__ import annotations

import numpy as np
from dlbridge import CudaError, nd
from dlbridge.nd._interpolation import _interpolated
from fused_support import COMPLEX, DTYPES, NAMES, assert_same_values, is_exact, operands
from support import CUDA, host, launches_of, on_device, raises, rng


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


def test_fused_functions_may_have_the_names_of_functions_in_c():
    x = np.array([0.0, 1.5])
    got, names = launches_of(lambda: nd.fuse(nd.exp)(on_device(x)))
    np.testing.assert_allclose(host(got), np.exp(x))
    assert names == ["fused_exp"]


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
    ints = nd.fuse(lambda x, y: (x // y, x % y, x / y, x << 1, x == 300, nd.power(x, 2), ~x, *nd.divmod(x, y)))
    x, y = rng.integers(-9, 9, 50).astype("i1"), rng.integers(-3, 3, 50).astype("i1")
    with np.errstate(all="ignore"):
        expected = (x // y, x % y, x / y, x << 1, x == 300, np.power(x, 2), ~x, *np.divmod(x, y))
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


KEYS = (
    1, -1, (1, 0), (-1, 0, -2), slice(None, None, -1), (slice(1, None), slice(None, None, 2)), ..., (..., 2), None,
    (1, None, slice(None, None, -1), None, 2), (slice(None), 0, slice(None, None, -1)), (), (1, ..., 3),
)  # fmt: skip


def test_fuse_takes_views_of_its_arguments_and_of_reductions():
    x = rng.normal(size=(2, 3, 4)).astype("f4")
    for key in KEYS:
        got, names = launches_of(lambda key=key: nd.fuse(lambda x: x[key] * 2)(on_device(x)))
        np.testing.assert_array_equal(host(got), x[key] * np.float32(2), err_msg=str(key))
        assert len(names) == 1
        np.testing.assert_array_equal(host(nd.fuse(lambda x, key=key: x[key])(on_device(x))), x[key], err_msg=str(key))
    differences = nd.fuse(lambda x: x[:, 1:] - x[:, :-1])
    got, names = launches_of(lambda: differences(on_device(x)))
    np.testing.assert_array_equal(host(got), np.diff(x, axis=1))
    assert len(names) == 1
    wide = rng.normal(size=(2, 7, 4)).astype("f4")  # what was recorded holds for other extents
    np.testing.assert_array_equal(host(differences(on_device(wide))), np.diff(wide, axis=1))
    centred = nd.fuse(lambda x: x - x.sum(axis=(0, 2))[None, :, None] / 8)
    np.testing.assert_allclose(host(centred(on_device(x))), x - x.mean((0, 2))[None, :, None], rtol=1e-5)
    with raises(IndexError):
        nd.fuse(lambda x: x[2] + 1)(on_device(x))
    with raises(IndexError):
        nd.fuse(lambda x: x[0, 0, 0, 0])(on_device(x))


def test_fuse_assigns_whole_arguments():
    def fill(x, y):
        x[...] = y + 1
        y[:] = float("nan")
        return x * 2

    x, y = on_device(np.zeros((3, 4), "f4")), on_device(np.arange(4, dtype="f4"))
    np.testing.assert_array_equal(host(nd.fuse(fill)(x, y)), np.tile(np.arange(1, 5, dtype="f4") * 2, (3, 1)))
    np.testing.assert_array_equal(host(x), np.tile(np.arange(1, 5, dtype="f4"), (3, 1)))
    assert np.isnan(host(y)).all()


def test_fuse_takes_parts_of_complex_numbers():
    z = (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype("c8")
    z[0, :2] = complex(np.inf, 2), complex(1, np.nan)
    r = z.real.copy()
    fused = nd.fuse(lambda z, r: (z.real, z.imag * 2, (z * z).imag, nd.angle(z), r.real, r.imag, nd.imag(r > 0)))
    with np.errstate(all="ignore"):
        expected = (z.real, z.imag * 2, (z * z).imag, np.angle(z), r, 0 * z.imag[1], np.zeros((3, 4), bool))
    for got, want in zip(fused(on_device(z), on_device(r)), expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(host(got), np.broadcast_to(want, (3, 4)), rtol=1e-5)
    got = nd.fuse(lambda z: z.real.sum(axis=0) + z.imag.max())(on_device(z[1:]))
    np.testing.assert_allclose(host(got), z[1:].real.sum(0) + z[1:].imag.max(), rtol=1e-5)
    assert nd.fuse(lambda x, c: x + c.imag)(on_device(r), 2 + 3j).dtype == "float32"


def test_fuse_takes_views_as_another_dtype():
    x = np.array([[1.5, -0.0], [np.nan, 1e30]], "f4")
    fused = nd.fuse(lambda x: (x.view("int32") >> 3, (x * 2).view("uint32"), x.view("uint8")[:, 1:3] + 1))
    expected = x.view("i4") >> 3, (x * 2).view("u4"), x.view("u1")[:, 1:3] + 1
    for got, want in zip(fused(on_device(x)), expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(host(got), want)
    wide = np.arange(8, dtype="i2").reshape(2, 4)
    np.testing.assert_array_equal(host(nd.fuse(lambda x: x.view("int64") + 1)(on_device(wide))), wide.view("i8") + 1)
    flags = np.array([0, 1], "u1")
    for function in (lambda x: x.view("bool"), lambda x: (x + 0).view("bool"), lambda x: (x > 0).view("uint8")):
        np.testing.assert_array_equal(host(nd.fuse(function)(on_device(flags))), function(flags))
    for dtype in ("f2", "f4", "f8"):
        x = np.array([0.0, -3.75, 1e-7, np.inf, np.nan, 6e4], dtype)
        for got, want in zip(nd.fuse(nd.frexp)(on_device(x)), np.frexp(x), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(host(got), want)


def test_fuse_copies_to_arguments():
    x, y = rng.normal(size=(3, 4)).astype("f4"), rng.integers(-9, 9, 4)
    for function in (
        lambda x, y, xp: xp.copyto(x, y, "unsafe"),
        lambda x, y, xp: xp.copyto(x, 2.5),
        lambda x, y, xp: xp.copyto(x, x * 2, where=x > 0),
        lambda x, y, xp: xp.copyto(x, y, "unsafe", y > 0),
        lambda x, y, xp: xp.copyto(x, -1, where=False),
    ):
        ours, theirs = on_device(x), x.copy()
        assert nd.fuse(lambda x, y, f=function: f(x, y, nd))(ours, on_device(y)) is None
        function(theirs, y, np)
        np.testing.assert_array_equal(host(ours), theirs)
        ours = on_device(x)
        nd.fuse(lambda x, y, f=function: f(x, y, np))(ours, on_device(y))  # NumPy's function asks ours
        np.testing.assert_array_equal(host(ours), theirs)
    for function, error in (
        (lambda x, y: nd.copyto(y, x), TypeError),
        (lambda x, y: nd.copyto(x, y, where=y), TypeError),
        (lambda x, y: nd.copyto(y, 2**70), OverflowError),
        (lambda x, y: nd.copyto(x, np.ones(4)), TypeError),
    ):
        with raises(error):
            nd.fuse(function)(on_device(x), on_device(y))


def test_fuse_leaves_scalars_to_the_function():
    """Numbers are immutable: x += y of one binds the name to another; and what is made of them alone is no kernel's."""
    x = np.arange(4, dtype="i4")

    def update(x, s):
        before = s
        s += x
        return before * s

    for s in (np.int16(3), 2.5, np.float32(2.5)):
        np.testing.assert_array_equal(host(nd.fuse(update)(on_device(x), s)), update(x, s))
        assert nd.fuse(lambda x, s: -s)(on_device(x), s) == -s
        assert type(nd.fuse(lambda x, s: [s * s])(on_device(x), s)[0]) is type(s * s)
        with raises(CudaError, "kernel library"):  # the function itself, which the fake device has no kernels for
            nd.fuse(lambda x, s: (x + s, s * s))(on_device(x), s)
        assert nd.fuse(lambda x, s: (s, x * 2))(on_device(x), s)[0] == s
    out = on_device(x)
    nd.fuse(lambda x, s: nd.add(s, 1, out=x))(out, np.int16(3))
    np.testing.assert_array_equal(host(out), [4] * 4)


def test_fuse_refuses_outputs_as_the_operations_do():
    x, y = on_device(np.arange(4)), on_device(np.arange(4, dtype="u8"))
    for function in (
        lambda x, y: nd.add(x, x, out=y),
        lambda x, y: np.divide(x, x, out=x),
        lambda x, y: x.__iadd__(1.5),
    ):
        with raises(TypeError, "same_kind"):
            nd.fuse(function)(x, y)


def test_fuse_reduces_complex_numbers():
    z = (rng.integers(0, 3, (5, 40)) + 1j * rng.integers(-3, 3, (5, 40))).astype("c8")
    for function in (lambda x: (x * 2).max(axis=0), lambda x: x.min(), lambda x: x.sum(axis=1), lambda x: x.any()):
        np.testing.assert_array_equal(host(nd.fuse(function)(on_device(z))), function(z))
    z[3, 7] = complex(np.nan, 1)
    assert np.isnan(host(nd.fuse(lambda x: x.max())(on_device(z))))


def test_fuse_changes_what_is_named_whole():
    x = on_device(np.arange(4.0))

    def change(x):
        x[:] += 1
        x[...] *= 2
        y = x * 1
        y[:] -= 5
        return y

    np.testing.assert_array_equal(host(nd.fuse(change)(x)), np.arange(1, 5) * 2.0 - 5)
    np.testing.assert_array_equal(host(x), np.arange(1, 5) * 2.0)


def changed_by_a_view(name):
    def function(x):
        y = x * 1 if name == "computed" else x
        part = y.view("int64") if name == "bits" else y.real if x.dtype == "complex128" else y[1:]
        if name == "base":
            y += 1
        else:
            part += 1
        return y, part

    return function


def test_fuse_refuses_to_lose_what_is_written_through_views():
    """Outside of fuse() a view and its array have the same memory; here they would part."""
    for dtype in ("f8", "c16"):
        for name in ("base", "view", "computed", "bits"):
            with raises(nd._kernels.tracing.CannotFuse, "fuse()"):
                nd.fuse(changed_by_a_view(name))(on_device(np.arange(4).astype(dtype)))


def test_fuse_reduces_arrays_without_elements():
    for shape in ((2, 0, 3), (0, 2, 3), (3, 2, 0), (0, 0, 0)):
        x = np.zeros(shape, "i8")
        for axis in (None, 0, 1, 2, (0, 1), (0, 2), (1, 2)):
            got = nd.fuse(lambda x, axis=axis: x.sum(axis=axis))(on_device(x))
            np.testing.assert_array_equal(host(got), x.sum(axis=axis), strict=True)


def test_fuse_refuses_what_cannot_be_recorded():
    x = on_device(np.arange(4.0))
    for function in (lambda x: x if x else -x, lambda x: x[x > 0], lambda x: (x + 1)[0], lambda x: x[:x], lambda x: 3.0,
                     lambda x: x.reshape(2, 2), lambda x: x.__setitem__(0, 1), lambda x: x.__setitem__(..., x[::-1]),
                     lambda x: x + np.ones(4), lambda x: float(x), lambda x: x @ x, lambda x: x.shape):  # fmt: skip
        with raises(TypeError):
            nd.fuse(function)(x)
    with raises(TypeError, "fuse()", "choice"):
        nd.fuse(lambda x: 1 if x > 0 else 2)(x)


def widened(x):
    """As NumPy's array: it has no bfloat16."""
    x = nd.asarray(x, device="cpu")
    return np.asarray(x.astype("float32") if x.dtype == "bfloat16" else x)


def compare_with_eager(names, dtype, expected):
    """One fused kernel for some operations, against the kernels of nd on the host. Elementary functions are those of
    two libraries; complex ones in generated kernels are right for ordinary numbers only."""
    arguments, calls, wanted = [], [], []
    for name in names:
        ours = [nd.array(x, "bool" if x.dtype == bool else dtype, device="cpu") for x in operands(name, dtype)]
        try:
            wanted.append(getattr(nd, name)(*ours))
        except (TypeError, ValueError):
            continue
        calls.append((name, len(arguments), len(arguments) + len(ours)))
        arguments += [nd.asarray(x, device=CUDA) for x in ours]
    fused = nd.fuse(lambda *x: tuple(getattr(nd, name)(*x[start:stop]) for name, start, stop in calls))
    for (name, *_), got, want in zip(calls, fused(*arguments), wanted, strict=True):
        expected.add(name)
        assert got.dtype == want.dtype, (name, dtype)
        exact = is_exact(name, dtype)
        if not exact and dtype in COMPLEX:
            continue
        if exact or want.dtype == "float64" or want.dtype == "float32":
            assert_same_values(widened(got), widened(want), f"{name} of {dtype}", 0 if exact else 16)


def test_fused_functions_are_those_of_nd():
    with np.errstate(all="ignore"):
        for dtype in DTYPES:
            seen = set()
            fusible = [name for name in NAMES if fits(name, dtype)]
            for start in range(0, len(fusible), 12):
                compare_with_eager(fusible[start : start + 12], dtype, seen)
            assert len(seen) > 25, dtype


def fits(name, dtype):
    """Whether fused kernels have the operation for operands of the dtype."""
    return dtype not in COMPLEX or dtype in getattr(nd, name)._fused_types


def test_operations_of_a_fused_kernel_round_as_they_do_one_by_one():
    """No product and sum become one instruction: what is lost of a * b is lost before c is added."""
    a, c = np.array([1 + 2**-12], "f4"), np.array([-1 - 2**-11], "f4")
    fused = nd.fuse(lambda x, y: (x * x + y, nd.square(x) + y, y + x * x, y - x * x, x * x - x * x))
    for got, want in zip(fused(on_device(a), on_device(c)), (0, 0, 0, 2 * c[0], 0), strict=True):
        assert host(got)[0] == want


def test_functions_made_of_others_are_recorded():
    x = np.array([0.0, 1.0, -19.9, 20.1, 300.0])
    got, names = launches_of(lambda: nd.fuse(nd.i0)(on_device(x)))
    np.testing.assert_allclose(host(got), np.i0(x), rtol=1e-14)
    assert names == ["fused_i0"]


def test_functions_of_many_steps_are_one_kernel():
    x = np.array([0.0, 1.0, -19.9, 20.1, 300.0])
    got, names = launches_of(lambda: nd.i0(on_device(x)))
    np.testing.assert_allclose(host(got), np.i0(x), rtol=1e-14)
    assert names == ["fused_i0"]
    at, knots = np.array([-1.0, 0, 0.25, 1, 2.5, np.nan, 4, 5]), np.array([0.0, 1, 2, 4])
    values = np.array([3.0, 1, np.inf, 2])
    low = np.clip(np.searchsorted(knots, at, "right") - 1, 0, 2)
    between = (at, knots[low], knots[low + 1], values[low], values[low + 1])
    for left, right in ((values[:1].reshape(()), values[3:].reshape(())), (-7, 2.5)):
        ends = (knots[:1].reshape(()), knots[3:].reshape(()), values[3:].reshape(()), left, right)
        given = [on_device(x) if isinstance(x, np.ndarray) else x for x in (*between, *ends)]
        got, names = launches_of(lambda: _interpolated(*given))  # noqa: B023
        np.testing.assert_allclose(host(got), np.interp(at, knots, values, left, right))
        assert names == ["fused_interpolated"]


def test_fused_casts_of_special_values():
    casts = nd.fuse(
        lambda x: tuple(x.astype(t) for t in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f8"))
    )
    for dtype in ("f4", "f8", "i8", "u8", "?"):
        x = np.array([0.0, -0.0, 1.7, -1.7, 100.9, -100.9] if dtype[0] == "f" else [0, 1, 2, 100]).astype(dtype)
        for got in casts(on_device(x)):
            np.testing.assert_array_equal(host(got), np.asarray(nd.array(x, device="cpu").astype(str(got.dtype))))
    exact = np.array([1 + 2**-11 + 2**-40, 2049 + 2**-30])
    np.testing.assert_array_equal(host(casts(on_device(exact))[9]), exact.astype("f2"))


def test_fused_python_integers_of_any_size():
    """As the operations themselves: what a dtype cannot hold is refused, or compared."""
    ran_on = []

    @nd.fuse
    def compare(x, n):
        ran_on.append(type(x))  # a stand-in's, or an array's: then the comparisons themselves answer
        return x < n, x <= n, x == n, x != n, x > n, n < x

    add = nd.fuse(lambda x, n: x + n)
    doubled = nd.fuse(lambda x, n: x + n * 2)
    for dtype in ("i1", "i4", "i8", "u1", "u8"):
        info = np.iinfo(dtype)
        x = np.array([info.min, 0, info.max], dtype)
        for n in (-(2**70), -1, 0, 300, 2**40, 2**63, 2**64, 2**70):
            eager = nd.array(x, device="cpu")
            want = (eager < n, eager <= n, eager == n, eager != n, eager > n, n < eager)
            if info.min <= n <= min(info.max, 2**63 - 1):
                for got, answer in zip(compare(on_device(x), n), want, strict=True):
                    np.testing.assert_array_equal(host(got), np.asarray(answer))
            else:
                with raises(CudaError, "kernel library"):  # which the fake device has not
                    compare(on_device(x), n)
                assert ran_on[-1] is nd.CudaArray
            constant = nd.fuse(lambda x, n=n: (x < n, x == n, nd.logical_and(x, n)))
            for got, answer in zip(
                constant(on_device(x)), (eager < n, eager == n, nd.logical_and(eager, n)), strict=True
            ):
                np.testing.assert_array_equal(host(got), np.asarray(answer))
            if info.min <= n <= min(info.max, 2**63 - 1):
                np.testing.assert_array_equal(host(add(on_device(x), n)), np.asarray(eager + n))
            elif n > info.max or n < info.min:
                with raises(OverflowError, "out of bounds"):
                    add(on_device(x), n)
        with raises(OverflowError, "out of bounds"):
            doubled(on_device(x), info.max)


def test_fuse_refuses_numpys_arrays_beside_ours():
    fused = nd.fuse(lambda x, y: x + y)
    for arguments in ((on_device(np.ones(3)), np.ones(3)), (np.ones(3), on_device(np.ones(3)))):
        with raises(TypeError, "Unsupported type <class 'numpy.ndarray'>"):
            fused(*arguments)
    for other in (np.ones(3), 1):  # NumPy's alone: the function computes with those
        np.testing.assert_array_equal(fused(np.ones(3), other), np.full(3, 2.0))
