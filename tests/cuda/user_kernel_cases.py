"""User kernels on a machine with no GPU, numbers included: the fake driver runs what a host compiler made of them.

Run by tests/python/nd/test_user_kernels_fake.py with fake_user_kernels.c as libcuda.so.1; prints a line for each case.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import traceback

import fake_nvrtc
import numpy as np
from dlbridge import _core, asdlpack, nd
from dlbridge.nd._kernels import cache
from dlbridge.nd._kernels.nvrtc import CompileError
from fake_cuda import CaiArray, Memory, calls, forget, lib, new_calls, new_stream, read_now

CUDA = "cuda:0"
rng = np.random.default_rng(7)


def on_device(values, device=CUDA):
    return nd.asarray(np.asarray(values), device=device)


def host(x):
    return np.asarray(asdlpack(x, device="cpu"))


def raises(error, *texts):
    class Expectation:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, trace):
            assert kind is not None, f"no {error} was raised"
            assert issubclass(kind, error), f"{kind.__name__}: {value}"
            for text in texts:
                assert text in str(value), f"{text!r} is not in: {value}"
            self.message = str(value)
            return True

    return Expectation()


ADD = r"""
extern "C" __global__ void add(const float* x, const float* y, float* out, int n, float scale) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) out[i] = x[i] + scale * y[i];
}
"""

# ---- RawKernel


def test_raw_kernel_adds_and_python_scalars_take_the_declared_types():
    kernel = nd.RawKernel(ADD, "add")
    x, y = rng.random(300, "f4"), rng.random(300, "f4")
    out = nd.empty(300, "f4", device=CUDA)
    kernel((3,), (128,), (on_device(x), on_device(y), out, 300, 2))
    np.testing.assert_allclose(host(out), x + 2 * y, rtol=1e-6)
    kernel(grid=(3, 1, 1), block=128, args=[on_device(x), on_device(y), out, np.int64(300), np.float32(3)])
    np.testing.assert_allclose(host(out), x + 3 * y, rtol=1e-6)
    assert kernel((0,), (128,), (on_device(x), on_device(y), out, 300, 2)) is None  # no block, no work


def test_raw_kernel_refuses_arguments_that_do_not_fit():
    kernel = nd.RawKernel(ADD, "add")
    x = on_device(np.ones(4, "f4"))
    ints = on_device(np.ones(4, "i4"))
    with raises(TypeError, "argument 0 (const float* x)", "int32", "float32"):
        kernel((1,), (4,), (ints, x, x, 4, 1))
    with raises(TypeError, "5 arguments"):
        kernel((1,), (4,), (x, x, x, 4))
    with raises(TypeError, "argument 3 (int n)", "float"):
        kernel((1,), (4,), (x, x, x, 4.0, 1))
    with raises(OverflowError, "argument 3 (int n)", "int32"):
        kernel((1,), (4,), (x, x, x, 2**31, 1))
    with raises(TypeError, "argument 4", "numpy.float64"):
        kernel((1,), (4,), (x, x, x, 4, np.float64(1)))
    with raises(TypeError, "argument 3", "array"):
        kernel((1,), (4,), (x, x, x, x, 1))
    with raises(TypeError, "argument 0", "pointer"):
        kernel((1,), (4,), (1.5, x, x, 4, 1))
    with raises(TypeError, "argument 1", "NumPy"):
        kernel((1,), (4,), (x, np.ones(4, "f4"), x, 4, 1))
    with raises(TypeError, "argument 1", "cpu"):
        kernel((1,), (4,), (x, nd.ones(4, "f4", device="cpu"), x, 4, 1))
    with raises(TypeError, "argument 1", "str"):
        kernel((1,), (4,), (x, "y", x, 4, 1))
    with raises(ValueError, "argument 1", "cuda:1", "cuda:0"):
        kernel((1,), (4,), (x, on_device(np.ones(4, "f4"), "cuda:1"), x, 4, 1))
    with raises(TypeError, "shared"):
        kernel((1,), (4,), (x, x, x, 4, 1), shared=1)
    loose = nd.RawKernel(ADD, "add", check_types=False)
    loose((1,), (4,), (ints, x, x, 4, 1))
    with raises(TypeError, "has 8 bytes", "4"):
        loose((1,), (4,), (x, x, x, np.int64(4), 1))
    with raises(TypeError, "5 arguments"):
        loose((1,), (4,), (x, x, x, 4))


def test_raw_kernel_refuses_views_unless_told():
    x = on_device(np.arange(8, dtype="f4"))
    matrix = on_device(np.zeros((2, 4), "f4"))
    kernel = nd.RawKernel(ADD, "add")
    for view in (x[::2], x[::-1], matrix.T):
        with raises(ValueError, "argument 0", "strides", "ascontiguousarray", "require_contiguous=False"):
            kernel((1,), (4,), (view, x, x, 4, 1))
    nd.RawKernel(ADD, "add", require_contiguous=False)((1,), (4,), (x[::2], x, matrix, 4, 1))
    kernel((1,), (4,), (x[4:], x, matrix, 4, 1))
    np.testing.assert_array_equal(host(matrix)[0], [4, 6, 8, 10])


def test_launch_limits_name_the_dimension():
    kernel = nd.RawKernel(ADD, "add")
    x = on_device(np.zeros(4, "f4"))
    args = (x, x, x, 4, 1)
    with raises(ValueError, "block dimension x is 1025", "1024", "swapped"):
        kernel((128,), (1025,), args)
    with raises(ValueError, "block dimension z is 65", "64"):
        kernel((1,), (1, 1, 65), args)
    with raises(ValueError, "grid dimension y is 65536", "65535"):
        kernel((1, 65536), (1,), args)
    with raises(ValueError, "2048 threads (64, 32, 1)"):
        kernel((1,), (64, 32), args)
    with raises(ValueError, "block dimension y is 0"):
        kernel((1,), (1, 0), args)
    with raises(ValueError, "4 extents"):
        kernel((1, 1, 1, 1), (1,), args)
    with raises(ValueError, "-1"):
        kernel((-1,), (1,), args)
    with raises(ValueError, "shared_mem is 50000", "max_dynamic_shared_size_bytes"):
        kernel((1,), (1,), args, shared_mem=50000)
    kernel.max_dynamic_shared_size_bytes = 60000
    kernel((1,), (1,), args, shared_mem=50000)
    with raises(ValueError, "max_dynamic_shared_size_bytes is 300000"):
        kernel.max_dynamic_shared_size_bytes = 300000


def test_attributes():
    kernel = nd.RawKernel(ADD, "add")
    assert kernel.num_regs == 32 and kernel.max_threads_per_block == 1024 and kernel.shared_size_bytes == 16
    assert kernel.max_dynamic_shared_size_bytes == 49152 and kernel.local_size_bytes == 0
    assert set(kernel.attributes) >= {"num_regs", "binary_version", "preferred_shared_memory_carveout"}
    assert kernel.name == "add" and kernel.code == ADD and kernel.options == () and kernel.backend == "nvrtc"


def test_compile_errors_show_the_line():
    kernel = nd.RawKernel('extern "C" __global__ void f(int* x) {\n  x[0] = missing;\n}\n', "f")
    with raises(CompileError, "RawKernel 'f' does not compile", ":2: error", "missing", "x[0] = missing;"):
        kernel.compile()
    with raises(ValueError, "no kernel 'g'", 'extern "C"'):
        nd.RawKernel(ADD, "g").compile()


def test_undeclared_scalars_take_the_size_of_the_parameter():
    code = r"""
    #define REAL float
    extern "C" __global__ void f(REAL* out, REAL a, short b, long long c, bool d, double e) {
      out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e;
    }"""
    out = nd.empty(5, "f4", device=CUDA)
    kernel = nd.RawKernel(code, "f", check_types=False)
    kernel((1,), (1,), (out, 1.5, -2, 3, True, 4))
    assert host(out)[:4].tolist() == [1.5, -2, 3, 1]
    with raises(OverflowError, "argument 2", "2"):
        kernel((1,), (1,), (out, 1.5, 70000, 3, True, 4.0))
    checked = nd.RawKernel(code, "f")
    checked((1,), (1,), (out, 2.5, -2, 3, True, 4))
    assert host(out).tolist() == [2.5, -2, 3, 1, 4]


def test_structures_addresses_and_null():
    code = r"""
    struct Pair { int a; double b; };
    extern "C" __global__ void f(Pair p, double* out, const char* nothing) {
      out[0] = p.a; out[1] = p.b; out[2] = nothing == nullptr;
    }"""

    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]

    out = nd.empty(4, "f8", device=CUDA)
    kernel = nd.RawKernel(code, "f")
    kernel((1,), (1,), (Pair(3, 0.5), out.data, None))
    assert host(out)[:3].tolist() == [3, 0.5, 1]
    record = np.zeros(1, np.dtype([("a", "i4"), ("b", "f8")], align=True))
    record["a"], record["b"] = 5, 0.25
    kernel((1,), (1,), (record[0], out[1:], None))
    assert host(out)[1:].tolist() == [5, 0.25, 1]
    kernel((1,), (1,), (Pair(7, 1), out.data.ptr, None))
    assert host(out)[0] == 7


def test_many_arguments():
    names = [f"a{k}" for k in range(40)]
    body = " ".join(f"out[{k}] = {name};" for k, name in enumerate(names))
    code = f'extern "C" __global__ void f(int* out, {", ".join("int " + name for name in names)}) {{ {body} }}'
    out = nd.empty(40, "i4", device=CUDA)
    nd.RawKernel(code, "f")((1,), (1,), (out, *range(40)))
    assert host(out).tolist() == list(range(40))


def test_foreign_arrays_are_taken_without_a_copy_and_ordered_both_ways():
    theirs, ours = new_stream(), new_stream()
    memory = Memory(6)
    memory.fill(1, theirs)  # a slow kernel of the producer's, still to run
    array = CaiArray(memory, shape=(6,), stream=theirs)
    kernel = nd.RawKernel('extern "C" __global__ void f(int* x) { x[threadIdx.x] += 1; }', "f")
    forget()
    with nd.cuda.ExternalStream(ours):
        kernel((1,), (6,), (array,))
    assert [line.split()[0] for line in new_calls("stream_synchronize", "event_synchronize")] == []
    lib.cuStreamSynchronize(theirs)  # the producer's stream waits for the kernel
    assert read_now(memory.address, 6) == [0x01010102] * 6
    kernel((1,), (6,), (asdlpack(CaiArray(memory, shape=(6,))),))
    lib.fake_cuda_synchronize()
    assert read_now(memory.address, 6) == [0x01010103] * 6


def test_launches_go_to_the_stream_and_wait_for_other_streams():
    first, second = nd.cuda.Stream(non_blocking=True), nd.cuda.Stream(non_blocking=True)
    kernel = nd.RawKernel(
        'extern "C" __global__ void f(int* x, int v) { x[threadIdx.x] = 2 * x[threadIdx.x] + v; }', "f"
    )
    x = on_device(np.zeros(4, "i4"))
    kernel((1,), (4,), (x, 1), stream=first)
    with second:
        kernel((1,), (4,), (x, 3))
    kernel((1,), (4,), (x, 5), stream=first.ptr)
    assert host(x).tolist() == [((0 * 2 + 1) * 2 + 3) * 2 + 5] * 4
    streams = [line.split("stream=")[1] for line in calls("launch_kernel")][-3:]
    assert len(set(streams)) == 2 and streams[0] == streams[2] != streams[1]
    with raises((TypeError, ValueError)):
        kernel((1,), (4,), (x, 5), stream="fast")


def test_read_only_arrays_go_to_pointers_to_const_only():
    x = on_device(np.ones(4, "f4"))
    frozen = CaiArray(Memory(4), shape=(4,), typestr="<f4")
    frozen.interface["data"] = (frozen.interface["data"][0], True)
    kernel = nd.RawKernel(ADD, "add")
    kernel((1,), (4,), (frozen, x, x, 4, 1))
    with raises(BufferError, "argument 2", "read-only"):
        kernel((1,), (4,), (x, x, frozen, 4, 1))


def test_modules():
    module = nd.RawModule(
        code=r"""
        template <class T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }
        extern "C" __device__ int counter = 5;
        extern "C" __global__ void count(int* out) { out[0] = counter++; }
        """,
        name_expressions=["scale<float>", "scale<double>"],
    )
    x = on_device(np.arange(3, dtype="f8"))
    module.get_function("scale<double>")((1,), (3,), (x, 2.0))
    assert host(x).tolist() == [0, 2, 4]
    count = module.get_function("count")
    assert module.get_function("count") is count and count.name == "count"
    out = nd.empty(1, "i4", device=CUDA)
    count((1,), (1,), (out,))
    lib.fake_cuda_synchronize()
    pointer = module.get_global("counter")
    assert ctypes.c_int.from_address(pointer.ptr).value == 6 and pointer.mem.size == 4
    with raises(ValueError, "no global 'missing'"):
        module.get_global("missing")
    image = next(fake_nvrtc.FOLDER.glob("*.so"))
    file = fake_nvrtc.FOLDER / "kernel.cubin"
    file.write_bytes(b"HOST:" + bytes(image) + b"\0")
    with raises(ValueError, "no kernel 'missing'"):
        nd.RawModule(path=file).get_function("missing").compile()
    file.write_bytes(b"\x7fELF of another machine")
    with raises(RuntimeError, "cuModuleLoadData", "another GPU architecture", "fatal: not an image"):
        nd.RawModule(path=file).compile()
    file.write_bytes(b".version 99.0")
    with raises(RuntimeError, "PTX of a newer CUDA"):
        nd.RawModule(path=file).compile()


def test_cooperative_kernels():
    code = 'extern "C" __global__ void f(int* x) { x[0] = 1; }'
    x = on_device(np.zeros(1, "i4"))
    nd.RawKernel(code, "f", enable_cooperative_groups=True)((1,), (1,), (x,))
    assert calls("cooperative") and host(x)[0] == 1


def test_kernels_are_kept_on_disk_and_damaged_entries_made_anew():
    code = 'extern "C" __global__ void kept(int* x) { x[0] = 42; }'
    x = on_device(np.zeros(1, "i4"))

    def compilations():
        before = len(fake_nvrtc.compiled)
        nd.RawKernel(code, "kept")((1,), (1,), (x,))
        assert host(x)[0] == 42
        return len(fake_nvrtc.compiled) - before

    before = set(cache.folder().iterdir()) if cache.folder().is_dir() else set()
    assert compilations() == 1
    assert compilations() == 0
    (entry,) = set(cache.folder().iterdir()) - before
    whole = entry.read_bytes()
    for damaged in (whole[:-3], whole[:40], b"", b"x" + whole[1:], whole[:-1] + b"?"):
        entry.write_bytes(damaged)
        assert compilations() == 1
        assert entry.read_bytes() == whole
    assert nd.RawKernel(code, "kept", options=("-DX=1",)).compile() is None
    assert len(set(cache.folder().iterdir()) - before) == 2
    folder = os.environ["DLBRIDGE_CACHE_DIR"]
    os.environ["DLBRIDGE_CACHE_DIR"] = "/proc/none"
    try:
        assert compilations() == 1  # nowhere to write: no error
    finally:
        os.environ["DLBRIDGE_CACHE_DIR"] = folder


# ---- ElementwiseKernel


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


# ---- ReductionKernel


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
    launches = len(calls("launch_kernel"))
    assert int(host(total(on_device(x), 2))) == 2 * x.sum()
    names = [line.split("name=")[1].split()[0] for line in calls("launch_kernel")[launches:]]
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


# ---- fuse


def launches_of(call):
    before = len(calls("launch_kernel"))
    result = call()
    return result, [line.split("name=")[1].split()[0] for line in calls("launch_kernel")[before:]]


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


def main():
    cases = [(name, case) for name, case in globals().items() if name.startswith("test_")]
    wanted = sys.argv[1:]
    for name, case in cases:
        if wanted and name not in wanted:
            continue
        try:
            case()
            print(name, "passed", flush=True)
        except Exception:
            print(name, "failed", repr(traceback.format_exc()), flush=True)
    lib.fake_cuda_synchronize()
    gc.collect()
    print("live", _core.live_counts(), flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
