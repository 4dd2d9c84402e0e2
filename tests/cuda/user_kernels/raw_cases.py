"""RawKernel and RawModule: arguments, limits, streams, modules, what is kept on disk."""

from __future__ import annotations

import ctypes
import os

import fake_nvrtc
import numpy as np
from dlbridge import asdlpack, nd
from dlbridge.nd._kernels import cache
from dlbridge.nd._kernels.nvrtc import CompileError
from fake_cuda import CaiArray, Memory, calls, forget, lib, new_calls, new_stream, read_now
from support import CUDA, host, on_device, raises, rng

ADD = r"""
extern "C" __global__ void add(const float* x, const float* y, float* out, int n, float scale) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) out[i] = x[i] + scale * y[i];
}
"""


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


class LoadingStream:
    """A stream that loads the kernel again while the kernel is at a launch on it, or is an interrupt."""

    ptr = 0

    def __init__(self, kernel):
        self.kernel = kernel

    @property
    def device_id(self):
        if self.kernel is None:
            raise KeyboardInterrupt
        self.kernel._load(0)
        return 0


def test_a_stream_may_load_the_kernel_again_and_what_it_raises_passes_through():
    kernel = nd.RawKernel(ADD, "add")
    x, out = on_device(np.ones(4, "f4")), nd.empty(4, "f4", device=CUDA)
    kernel((1,), (4,), (x, x, out, 4, 1.0), stream=LoadingStream(kernel))
    assert host(out).tolist() == [2] * 4
    with raises(KeyboardInterrupt):
        kernel((1,), (4,), (x, x, out, 4, 1.0), stream=LoadingStream(None))


class InterruptingPointer:
    @property
    def ptr(self):
        raise KeyboardInterrupt


def test_what_an_argument_raises_passes_through():
    kernel = nd.RawKernel(ADD, "add")
    x = on_device(np.ones(4, "f4"))
    with raises(KeyboardInterrupt):
        kernel((1,), (4,), (InterruptingPointer(), x, x, 4, 1.0))


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
