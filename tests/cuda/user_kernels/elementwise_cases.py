"""ElementwiseKernel: layouts, dtypes, outputs, raw arguments, indices."""

from __future__ import annotations

import numpy as np
from dlbridge import nd
from dlbridge.nd._kernels.nvrtc import CompileError
from fake_cuda import CaiArray, Memory, lib, read_now
from support import CUDA, host, on_device, raises, rng


def test_elementwise_layouts_agree_with_numpy():
    kernel = nd.ElementwiseKernel("T x, T y", "T z", "z = 3 * x - y", "layouts")
    base = rng.integers(-99, 99, (6, 10, 12)).astype("i4")
    x = on_device(base)
    cases = {
        "dense": (x, x, base, base),
        "tail": (x.ravel()[1:], x.ravel()[:-1], base.ravel()[1:], base.ravel()[:-1]),
        "odd": (x.ravel()[:13], x.ravel()[:13], base.ravel()[:13], base.ravel()[:13]),
        "row": (x, x[0, 0], base, base[0, 0]),
        "column": (x, x[:, :, :1], base, base[:, :, :1]),
        "outer": (x[0], x[:, :1, :], base[0], base[:, :1, :]),
        "steps": (x[::2, ::-1, ::3], x[1::2, :, 2::3], base[::2, ::-1, ::3], base[1::2, :, 2::3]),
        "transposed": (x.T, x.T, base.T, base.T),
        "mixed": (x[0, :, :10].T, x[0, :, :10], base[0, :, :10].T, base[0, :, :10]),
        "0-d": (x[0, 0, 0], x[0, 0, 1], base[0, 0, 0], base[0, 0, 1]),
        "empty": (x[:0], x[:0], base[:0], base[:0]),
        "scalar": (x, 7, base, 7),
    }
    for name, (a, b, a_host, b_host) in cases.items():
        got = kernel(a, b)
        expected = 3 * a_host - b_host
        assert got.shape == expected.shape and str(got.dtype) == "int32", name
        np.testing.assert_array_equal(host(got), expected, err_msg=name)
    transposed = kernel(x.T, x.T)
    assert transposed.strides == x.T.strides  # outputs keep the layout of the inputs


def test_elementwise_large_blocks_and_dtypes():
    kernel = nd.ElementwiseKernel("T x, S y", "S z", "z = x + y", "dtypes")
    for first, second in (
        ("f2", "f4"),
        ("i1", "i8"),
        ("f4", "c8"),
        ("f4", "f8"),
        ("?", "u2"),
        ("f8", "c16"),
        ("f2", "f2"),
    ):
        x = rng.integers(0, 2, 5000).astype(first)
        y = rng.integers(0, 50, 5000).astype(second)
        got = kernel(on_device(x), on_device(y))
        np.testing.assert_array_equal(host(got), (x.astype(second) + y).astype(second))
    z = rng.random(1000) + 1j * rng.random(1000)
    f = nd.ElementwiseKernel("T z", "T w", "w = exp(z) * conj(z) / (z + T(2))", "complex_function")
    np.testing.assert_allclose(host(f(on_device(z))), np.exp(z) * z.conj() / (z + 2), rtol=1e-13)


def test_elementwise_outputs():
    kernel = nd.ElementwiseKernel("float32 x", "float32 y, int32 s", "y = x * x; s = x < 0 ? -1 : x > 0", "outputs")
    x = rng.normal(size=33).astype("f4")
    y, s = kernel(on_device(x))
    np.testing.assert_array_equal(host(y), x * x)
    np.testing.assert_array_equal(host(s), np.sign(x))
    out, sign = nd.empty(33, "f4", device=CUDA), nd.empty(33, "i4", device=CUDA)
    got = kernel(on_device(x), out, sign)
    assert got[0] is out and got[1] is sign
    np.testing.assert_array_equal(host(out), x * x)
    with raises(ValueError, "argument 1", "(33,)", "(32,)"):
        kernel(on_device(x[:32]), out, sign)
    with raises(TypeError, "declared float32", "float64"):
        kernel(on_device(x.astype("f8")))
    with raises(TypeError, "1 arguments", "3"):
        kernel(on_device(x), out)
    with raises(ValueError, "share memory"):
        kernel(on_device(x), out, out.view("i4"))
    increment = nd.ElementwiseKernel("T x", "T y", "y += x", "increment")  # the old value is read
    increment(on_device(x), out)
    np.testing.assert_array_equal(host(out), x * x + x)
    conditional = nd.ElementwiseKernel("T x", "T y", "if (x > 0) y = x", "conditional")
    conditional(on_device(x), out)
    np.testing.assert_array_equal(host(out), np.where(x > 0, x, x * x + x))
    assert nd.ElementwiseKernel("T x", "T y", "y = x", "none", no_return=True)(out) is None
    assert len(nd.ElementwiseKernel("T x", "T y", "y = x", "one", return_tuple=True)(out)) == 1


def test_elementwise_in_place_and_overlap():
    kernel = nd.ElementwiseKernel("T x, T y", "T z", "z = x + y", "overlap")
    base = np.arange(64, dtype="i4").reshape(8, 8)
    x = on_device(base)
    kernel(x, x, x)
    np.testing.assert_array_equal(host(x), 2 * base)


def test_elementwise_raw_index_and_scalars():
    gather = nd.ElementwiseKernel("raw T x, int32 step", "T y", "y = x[(i * step) % x.size()] + n * 0", "gather")
    x = np.arange(10.0)
    y = nd.empty(10, "f8", device=CUDA)
    gather(on_device(x), 3, y)
    np.testing.assert_array_equal(host(y), x[np.arange(10) * 3 % 10])
    strided = on_device(np.arange(20.0).reshape(4, 5))[:, ::2]
    flat = nd.ElementwiseKernel("raw T x", "raw T y", "y[i] = x[i]", "flatten")
    out = nd.empty(12, "f8", device=CUDA)
    flat(strided, out, size=12)
    np.testing.assert_array_equal(host(out), np.arange(20.0).reshape(4, 5)[:, ::2].ravel())
    with raises(ValueError, "raw", "size"):
        flat(strided, out)
    with raises(ValueError, "size"):
        gather(on_device(x), 3, y, size=4)
    index = nd.ElementwiseKernel(
        "T x", "int64 y", "y = 100 * _ind.get()[0] + 10 * _ind.get()[1] + _ind.get()[2]", "where_am_i"
    )
    cube = on_device(np.zeros((2, 3, 4), "f4"))
    expected = np.indices((2, 3, 4))
    np.testing.assert_array_equal(host(index(cube)), 100 * expected[0] + 10 * expected[1] + expected[2])
    np.testing.assert_array_equal(host(index(cube.T)), sum(10 ** (2 - k) * np.indices((4, 3, 2))[k] for k in range(3)))
    numbered = nd.ElementwiseKernel("T x", "int64 y", "y = i", "numbered")
    np.testing.assert_array_equal(host(numbered(cube.T)).ravel(), np.arange(24))
    scaled = nd.ElementwiseKernel("T x, T s", "T y", "y = s * x", "scaled")
    np.testing.assert_array_equal(host(scaled(on_device(np.arange(3, dtype="f4")), 2)), [0, 2, 4])
    with raises(TypeError, "int32", "float"):
        scaled(on_device(np.arange(3, dtype="i4")), 2.5)
    with raises(TypeError, "T is", "float64"):
        scaled(on_device(np.arange(3, dtype="i4")), on_device(np.arange(3.0)))


def test_elementwise_loop_code_and_block_size():
    kernel = nd.ElementwiseKernel(
        "T x", "T y", "y = twice(x) + offset", "prepared",
        preamble="template <class A> __device__ A twice(A a) { return a + a; }",
        loop_prep="const T offset = T(n)", after_loop="(void)offset",
    )  # fmt: skip
    x = np.arange(1000, dtype="f4")
    np.testing.assert_array_equal(host(kernel(on_device(x))), 2 * x + 1000)
    np.testing.assert_array_equal(host(kernel(on_device(x), block_size=32)), 2 * x + 1000)
    with raises(ValueError, "block_size"):
        kernel(on_device(x), block_size=4096)


def test_elementwise_takes_foreign_arrays():
    kernel = nd.ElementwiseKernel("T x", "T y", "y = x + 1", "foreign")
    memory = Memory(6)
    out = CaiArray(Memory(6), shape=(6,))
    assert host(kernel(CaiArray(memory, shape=(6,)))).tolist() == [1, 2, 3, 4, 5, 6]
    assert kernel(CaiArray(memory, shape=(6,)), out) is out
    lib.fake_cuda_synchronize()
    assert read_now(out.memory.address, 6) == [1, 2, 3, 4, 5, 6]
    with raises(TypeError, "NumPy"):
        kernel(np.zeros(3))
    with raises(TypeError, "cpu"):
        kernel(nd.zeros(3, device="cpu"))


def test_elementwise_compile_error_names_the_operation():
    kernel = nd.ElementwiseKernel("T x", "T y", "y = x +\n absent", "wrong")
    with raises(CompileError, "wrong", "operation:2"):
        kernel(on_device(np.zeros(3, "f4")))
