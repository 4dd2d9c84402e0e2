"""User kernels as far as no device is needed: signatures, types, generated code, the cache, NVRTC itself."""

import re
import sys

import numpy as np
import pytest
from dlbridge import nd
from dlbridge.nd import _native
from dlbridge.nd._kernels import cache, codegen, nvrtc, reduction_plan, reduction_source
from dlbridge.nd._kernels.signature import POINTER, UNKNOWN, VALUE, read_signature
from dlbridge.nd._kernels.types import C_TYPES, DTYPE_NUMBERS, parse_parameters, resolve_types

# ---- signatures


def declared(parameters, head='extern "C" __global__ void f', body="{}"):
    return read_signature(f"{head}({parameters}) {body}", "f")


def dtypes_of(mask):
    return {name for name, number in DTYPE_NUMBERS.items() if mask >> number & 1}


@pytest.mark.parametrize(
    ("text", "kind", "dtypes", "read_only"),
    [
        ("const float* x", POINTER, {"float32"}, True),
        ("float *__restrict__ x", POINTER, {"float32"}, False),
        ("float const * const __restrict__ x", POINTER, {"float32"}, True),
        ("double x[]", POINTER, {"float64"}, False),
        ("const int x[3]", POINTER, {"int32", "uint32"}, True),
        ("unsigned long long* x", POINTER, {"int64", "uint64"}, False),
        ("long unsigned int *x", POINTER, {"int64", "uint64"}, False),
        ("const void* x", POINTER, set(), True),
        ("unsigned char* x", POINTER, {"int8", "uint8", "bool"}, False),
        ("complex<float>* x", POINTER, {"complex64"}, False),
        ("std::int16_t* x", POINTER, {"int16", "uint16"}, False),
        ("const __half* x", POINTER, {"float16"}, True),
        ("Thing* x", POINTER, set(), False),
        ("float** x", UNKNOWN, set(), False),
        ("Thing x", UNKNOWN, set(), False),
        ("void (*x)(int)", UNKNOWN, set(), False),
        ("int x", VALUE, {"int32", "uint32"}, False),
        ("const unsigned x", VALUE, {"int32", "uint32"}, False),
        ("size_t x", VALUE, {"int64", "uint64"}, False),
        ("bool x", VALUE, {"bool"}, False),
        ("float", VALUE, {"float32"}, False),
        ("unsigned", VALUE, {"int32", "uint32"}, False),
    ],
)
def test_signature_of_one_parameter(text, kind, dtypes, read_only):
    (found,) = declared(text)
    assert (found.kind, dtypes_of(found.allowed), found.read_only) == (kind, dtypes, read_only)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('extern "C" __global__ void f() {}', 0),
        ('extern "C" __global__ void f(void) {}', 0),
        ('extern "C" __global__ __launch_bounds__(256, 2) void f(int a, /* , int no */ float* b) {}', 2),
        ('extern "C" { __device__ int g() { return 1; } __global__ void f(int a) {} }', 1),
        ('extern "C" __global__ void g(int a, int b); // void f(\nextern "C" __global__ void f(int a) {}', 1),
        ("__global__ void f(int a) {}", None),  # mangled: it may be overloaded
        ("template <class T> __global__ void f(T* a) {}", None),
        ('extern "C" __global__ void f(int a\n#ifdef B\n, int b\n#endif\n) {}', None),
        ('extern "C" __global__ void f(int a);\nextern "C" __global__ void f(float a) {}', None),
        ("", None),
    ],
)
def test_signature_of_a_kernel(source, count):
    found = read_signature(source, "f")
    assert (None if found is None else len(found)) == count


def test_a_type_that_is_a_macro_is_left_open():
    (x, n) = read_signature('#define real float\nextern "C" __global__ void f(real* x, int n) {}', "f")
    assert (x.kind, n.kind) == (UNKNOWN, VALUE)
    (x,) = read_signature('#define float double\nextern "C" __global__ void f(float* x) {}', "f")
    assert x.kind == UNKNOWN


# ---- parameters and their types


def test_parameters_are_read():
    parameters = parse_parameters("T x, raw float32 y , const int z,", "k")
    assert [tuple(p) for p in parameters] == [("x", "T", False), ("y", "float32", True), ("z", "int64", False)]
    for text in ("x", "float33 x", "T x y", "raw", "T 1x", "T i", "T n", "1 x"):
        with pytest.raises((ValueError, TypeError)):
            parse_parameters(text, "k")


def key(*given):
    kinds = {bool: "0", int: "1", float: "2", complex: "3"}
    return "".join(kinds.get(g) or chr(ord("A" if g[0].isupper() else "a") + DTYPE_NUMBERS[g.lower()]) for g in given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("Float32", "Float32"), ["float32"] * 3),
        (("Int16", int), ["int16"] * 3),
        (("Float16", "float64"), ["float16"] * 3),  # an array's dtype goes before a scalar's
        ((int, float), ["float64"] * 3),
        ((bool, bool), ["bool"] * 3),
        (("float32", int), ["float32"] * 3),
        (("Float32", int, "Float32"), ["float32"] * 3),
    ],
)
def test_types_of_a_call(given, expected):
    assert resolve_types(parse_parameters("T x, T y, T z", "k"), key(*given), "k") == expected


@pytest.mark.parametrize(
    ("parameters", "given", "text"),
    [
        ("T x, T y", ("Float32", "Float64"), "T is float32"),
        ("float32 x, T y", ("Float64", "Float64"), "declared float32"),
        ("T x, S y", ("Float32",), "what S is"),
        ("T x, T y", ("Int32", float), "scalar is a float64"),
        ("float32 x, T y", (complex, "Int8"), "complex128"),
    ],
)
def test_types_that_do_not_fit(parameters, given, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        resolve_types(parse_parameters(parameters, "k"), key(*given), "k")


# ---- generated code


@pytest.mark.parametrize(
    ("code", "overwritten"),
    [
        ("z = x", True),
        ("z = x + y; z *= 2", True),
        ("int a = 1; z = a", True),
        ("{ int q = 1; } z = x", True),
        ("// z\n z = x;", True),
        ("z += x", False),
        ("z = z + x", False),
        ("z == x", False),
        ("if (x > 0) z = x", False),
        ("if (x > 0) { z = x; } else { z = y; }", False),
        ("if (x < 0) return; z = x", False),
        ("for (int k = 0; k < 3; ++k) z = x", False),
        ("f(z = x)", False),
        ("y = z; z = x", False),
        ("x = 1", False),
    ],
)
def test_outputs_that_need_no_load(code, overwritten):
    assert codegen.is_overwritten(code, "z") is overwritten


@pytest.mark.parametrize("extent", [1, 2, 3, 5, 7, 10, 255, 256, 641, 6700417, 2**31 - 1])
def test_division_by_multiplication(extent):
    word, shift = reduction_plan.divisor_words(extent, wide=False)
    divisor, magic = word & 0xFFFFFFFF, word >> 32
    assert divisor == extent
    for index in {0, 1, extent - 1, extent, extent + 1, 2 * extent - 1, 2**31 - 1, 12345678, 2**31 - 2**20}:
        if index < 2**31:
            assert (((index * magic) >> 32) + index) >> shift == index // extent


def test_scalars_are_packed_in_their_format():
    assert reduction_plan.pack_scalar(1.0, "bfloat16")[0] == 0x3F80
    assert reduction_plan.pack_scalar(-1, "int8")[0] == 0xFF
    assert reduction_plan.pack_scalar(2.0, "float16")[0] == 0x4000
    assert reduction_plan.pack_scalar(1j, "complex128") == [0, 0x3FF0000000000000]
    assert reduction_plan.pack_scalar(True, "bool")[0] == 1


def test_unroll_follows_the_bytes_on_their_way():
    def unroll(inputs, vector, operation="z = x"):
        dtypes = ("float32",) * (inputs + 1)
        loop = codegen.Loop(vector, 1, False, -1, "d" * (inputs + 1), (), "", dtypes, "a" * (inputs + 1))
        return codegen.choose_unroll(loop, operation)

    assert [unroll(1, 4), unroll(3, 4), unroll(8, 4), unroll(1, 1)] == [4, 2, 1, 4]
    assert unroll(1, 4, "z = x;" * 1000) == 1


def test_reduction_plans():
    def plan(shape, axes, **options):
        strides = [8]
        for extent in reversed(shape[1:]):
            strides.insert(0, strides[0] * extent)
        kept = [k for k in range(len(shape)) if k not in axes]
        return reduction_plan.plan_reduction(
            reduction_plan.merge_dims([shape[k] for k in kept], [[strides[k] for k in kept]], 0),
            reduction_plan.merge_dims([shape[k] for k in axes], [[strides[k] for k in axes]], 0),
            "a",
            132,
            **options,
        )

    whole = plan((1 << 28,), [0])
    assert whole.splits > 132 and whole.splits * whole.chunk >= 1 << 28 and whole.block == (256, 1)
    tall = plan((10**6, 8), [0])
    assert tall.shape.columns and tall.block == (8, 32) and tall.splits > 132
    wide = plan((8, 10**6), [1])
    assert not wide.shape.columns and wide.splits * 8 >= 132
    rows = plan((32768, 1024), [1])
    assert rows.splits == 1 and rows.grid[0] == 32768
    short = plan((10**6, 8), [1])
    assert short.block == (8, 32) and short.splits == 1
    middle = plan((4, 1000, 64), [1])
    assert middle.shape.columns and middle.shape.kept_ndim == 2
    one = plan((4, 5), [])
    assert one.reduced_size == 1 and one.kept_size == 20


# ---- construction


def test_what_is_not_there_is_refused_by_name():
    with pytest.raises(ValueError, match="backend is 'nvcc'"):
        nd.RawKernel("", "f", backend="nvcc")
    with pytest.raises(ValueError, match="translate_cucomplex is not there"):
        nd.RawKernel("", "f", translate_cucomplex=True)
    with pytest.raises(ValueError, match="jitify is not there"):
        nd.RawModule(code="", jitify=True)
    with pytest.raises(TypeError, match="options is '-O3'"):
        nd.RawKernel("", "f", "-O3")
    with pytest.raises(TypeError, match="either code="):
        nd.RawModule()
    with pytest.raises(ValueError, match="compiled already"):
        nd.RawModule(path="x.cubin", options=("-O3",))
    with pytest.raises(FileNotFoundError):
        nd.RawModule(path="there_is_no_such.cubin")
    with pytest.raises(ValueError, match="is there twice"):
        nd.ElementwiseKernel("T x", "T x", "")
    with pytest.raises(ValueError, match="no parameter"):
        nd.ElementwiseKernel("", "", "")
    with pytest.raises(ValueError, match="cannot be raw"):
        nd.ReductionKernel("raw T x", "T y", "x", "a + b", "y = a", "0")
    with pytest.raises(ValueError, match="named 'a'"):
        nd.ReductionKernel("T x", "T a", "x", "a + b", "a = a", "0")
    with pytest.raises(TypeError, match="fuse"):
        nd.fuse(3)
    assert repr(nd.RawKernel("", "f")) == "<RawKernel 'f'>"
    with pytest.raises(TypeError, match=r"\(grid, block, args\)"):
        nd.RawKernel("", "f")((1,), (1,))


def test_host_arrays_are_refused_and_fused_functions_just_run():
    x = nd.arange(4.0, device="cpu")
    with pytest.raises(TypeError, match=r"nd\.asarray\(x, device='cuda'\)"):
        nd.ElementwiseKernel("T x", "T y", "y = x")(x)
    with pytest.raises(TypeError, match=r"nd\.asarray\(x, device='cuda'\)"):
        nd.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")(x)
    with pytest.raises(TypeError, match=r"nd\.asarray\(x, device='cuda'\)"):
        nd.RawKernel('extern "C" __global__ void f(double* x) {}', "f")((1,), (1,), (x,))
    fused = nd.fuse(lambda x, y: nd.where(x > 1, x * y, 0), kernel_name="chosen")
    assert fused(x, 2).tolist() == [0, 0, 4, 6] and fused.name == "chosen"
    assert nd.fuse()(lambda x: x.sum())(x) == 6
    theirs = nd.fuse(lambda x, y: x * y)(np.arange(3.0), np.float32(2))
    assert isinstance(theirs, np.ndarray) and theirs.tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="numpy.ndarray"):  # beside ours, one would have to move
        nd.fuse(lambda x, y: x * y)(x, np.arange(4))


# ---- the cache


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DLBRIDGE_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_cache_keeps_and_checks(cache_folder):
    name = cache.key_of(["source", "option"])
    assert name != cache.key_of(["sourceo", "ption"]) and cache.load(name) is None
    entry = cache.Entry(b"\x7fELF\nimage\n", ("_Z1fv",))
    assert cache.store(name, entry) and cache.load(name) == entry
    (file,) = cache_folder.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole + b"x", b"y" + whole[1:], whole.replace(b"image", b"igame")):
        file.write_bytes(damaged)
        assert cache.load(name) is None
    assert cache.clear() == 1 and not list(cache_folder.iterdir())


def test_cache_without_a_folder(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DLBRIDGE_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert not cache.store("k", cache.Entry(b"", ())) and cache.load("k") is None
    monkeypatch.delenv("DLBRIDGE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "xdg" / "dlbridge" / "kernels"


# ---- NVRTC


def test_candidates_begin_with_what_the_user_says(monkeypatch, tmp_path):
    wheel = tmp_path / "nvidia" / "cu13" / "lib"
    wheel.mkdir(parents=True)
    for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.alt.so.13"):
        (wheel / name).touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delenv("DLBRIDGE_NVRTC", raising=False)
    found = list(nvrtc.candidates())
    assert found[0] == str(wheel / "libnvrtc.so.13") and found[-1] == "libnvrtc.so"
    assert not any("builtins" in path or ".alt." in path for path in found)
    monkeypatch.setenv("DLBRIDGE_NVRTC", "/there/is/none.so")
    assert list(nvrtc.candidates()) == ["/there/is/none.so"]


LOG = """f.cu(3): warning #177-D: variable "q" was declared but never referenced
      int q;
          ^

f.cu(5): error: identifier "missing" is undefined
      x[0] = missing;
             ^

operation(2): error: expected a ";"
1 error detected in the compilation of "f.cu".
"""


def test_errors_are_quoted_with_a_caret():
    text = nvrtc.word_errors(LOG, "f", "\n" * 9)
    assert text == (
        "f does not compile, 2 errors:\n"
        'f.cu:5: error: identifier "missing" is undefined\n'
        "     5 | x[0] = missing;\n"
        "       |        ^\n"
        'operation:2: error: expected a ";"'
    )
    assert nvrtc.word_errors("something else", "f", "") == "f does not compile:\nsomething else"


def needs_nvrtc():
    try:
        return nvrtc.compiler()
    except RuntimeError as error:
        pytest.skip(f"no NVRTC: {str(error).splitlines()[0]}")


def test_without_nvrtc_every_place_is_named():
    code = (
        "from dlbridge.nd._kernels import nvrtc\n"
        "try: nvrtc.compiler()\n"
        "except RuntimeError as error: print(error)\n"
        "else: print('found')"
    )
    from child_process import run_python

    done = run_python(code, DLBRIDGE_NVRTC="/there/is/none.so")
    assert "pip install nvidia-cuda-nvrtc" in done.stdout and "/there/is/none.so: " in done.stdout


def test_nvrtc_compiles_and_explains(cache_folder):
    compiler = needs_nvrtc()
    assert compiler.version >= (11, 2) and 90 in compiler.architectures
    source = 'extern "C" __global__ void f(float* x) { x[0] = 1; }'
    image = nvrtc.compile_source(source, "f", 90).image
    assert image.startswith(b"\x7fELF") and len(list(cache_folder.iterdir())) == 1
    assert nvrtc.compile_source(source, "f", 90).image == image
    template = "template <class T> __global__ void f(T* x) { x[0] = 1; }"
    names = nvrtc.compile_source(template, "f", 90, name_expressions=("f<int>",)).lowered_names
    assert names == {"f<int>": "_Z1fIiEvPT_"}
    ptx = nvrtc.compile_source(source, "f", max(compiler.architectures) + 1).image
    assert b".target sm_" in ptx
    with pytest.raises(nvrtc.CompileError, match="does not compile, 1 error") as caught:
        nvrtc.compile_source('extern "C" __global__ void f(float* x) {\n  x[0] = missing;\n}', "f", 90)
    assert "f.cu:2: error" in str(caught.value) and "| x[0] = missing;" in str(caught.value).replace("  x[0]", "x[0]")
    assert str(caught.value).rstrip().endswith("^")
    with pytest.raises(ValueError, match="no-such-option"):
        nvrtc.compile_source(source, "f", 90, options=("--no-such-option",))
    with pytest.raises(nvrtc.CompileError, match="compute capability"):
        nvrtc.compile_source(source, "f", 10)
    headers = "#include <cupy/complex.cuh>\n#include <dlbridge/types.cuh>\n" + source
    assert nvrtc.compile_source(headers, "f", 90).image


@pytest.mark.parametrize("name", C_TYPES)
def test_nvrtc_takes_the_generated_code(name, cache_folder):
    needs_nvrtc()
    x, z = parse_parameters("T x, raw T t, T s", "k"), parse_parameters("T z", "k")
    vector = {1: 16, 2: 8, 4: 4, 8: 2, 16: 1}[codegen.ITEMSIZES[name]]
    dense = codegen.Loop(vector, 1, False, -1, "dd", (1,), "d", (name,) * 4, "arsa")
    strided = codegen.Loop(1, 3, True, 2, "sd", (3,), "s", (name,) * 4, "arsa")
    for loop, operation in ((dense, "z = x + t[i] * s"), (strided, "if (_ind[0] > n) return; z += T(x)")):
        source = codegen.write_elementwise("generated", x, z, operation, loop)
        assert nvrtc.compile_source(source.code, "generated", 90).image
    join = reduction_source.Expressions("x", "a + b", "z = a", "0" if name != "bool" else None, "")
    shape = reduction_source.Shape(2, 2, False, True, True, "a")
    joined = "float" if name in ("float16", "bfloat16") else C_TYPES[name]
    source = reduction_source.write_reduction("total", x[:1], z, (name, name), joined, join, shape)
    assert nvrtc.compile_source(source.code, "total", 90).image


def test_nvrtc_takes_every_operation_of_fused_functions(cache_folder):
    """One kernel with all operations that can be recorded, for a float, an integer, bool and a complex dtype."""
    needs_nvrtc()
    from dlbridge.nd._kernels.fusion import Program
    from dlbridge.nd._kernels.tracing import CannotFuse, Trace, Traced

    operations = [n for n, u in vars(_native).items() if type(u) is nd.ufunc]
    for dtype in ("float16", "float64", "int8", "uint32", "bool", "complex64"):
        trace = Trace()
        x = trace.argument(0, dtype, 1, None, True)
        made = []
        for name in operations:
            operand = trace.cast(x._node, "bool") if name == "where" else x._node
            inputs = [Traced(trace, operand, None), x, x][: getattr(_native, name).nin]
            try:
                made.append(Traced(trace, trace.apply(name, inputs), None))
            except (CannotFuse, TypeError):
                continue
        assert len(made) > 20, dtype
        for part in range(0, len(made), 30):
            program = Program(trace, tuple(made[part : part + 30]), "everything")
            for stage in program._elementwise(True):
                outputs = len(stage.outputs)
                dtypes = (dtype, *(node.dtype for node in stage.outputs))
                loop = codegen.Loop(1, 1, False, -1, "d" * (1 + outputs), (), "", dtypes, "a" * (1 + outputs))
                assert nvrtc.compile_source(stage.kernel.source(loop).code, "everything", 90).image


def test_a_kernel_is_set_up_once_and_says_what_a_launch_cannot_take():
    kernel = nd.RawKernel('extern "C" __global__ void f() {}', "f")
    with pytest.raises(TypeError, match="once"):
        kernel.__init__('extern "C" __global__ void g() {}', "g")
    for grid, block, keywords in (
        (("x",), (1,), {}),
        ((1,), 2.5, {}),
        ((1,), (1, None), {}),
        ((1,), (1,), {"shared_mem": "x"}),
    ):
        with pytest.raises(TypeError):
            kernel(grid, block, (), **keywords)

    class Raising:
        def __index__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernel((Raising(),), (1,), ())
