"""The capability table: one row a consumer, or one a rank or device where a framework has several array types."""

from __future__ import annotations

from dlbridge import _routes
from dlbridge._capability import (
    BFLOAT16,
    BOOL,
    COMPLEX,
    CUDA,
    FLOAT8,
    FLOAT8_TORCH,
    FLOATS,
    HOST,
    INTEGERS,
    ML_DTYPES,
    NUMPY_NATIVE,
    Access,
    Consumer,
    Layout,
)

_CPU = frozenset({"cpu"})
_TORCH_DTYPES = NUMPY_NATIVE | BFLOAT16 | FLOAT8_TORCH | {"complex32", "float4_e2m1fn_x2"}
_PANDAS_DTYPES = NUMPY_NATIVE
_TENSORFLOW_DTYPES = NUMPY_NATIVE | BFLOAT16
_ML_NOTE = "Install ml_dtypes, or take it through torch or jax."

_ROWS: tuple[Consumer, ...] = (
    Consumer("numpy", "numpy", _routes.numpy, NUMPY_NATIVE | ML_DTYPES, HOST, Access.KEEPS, note=_ML_NOTE),
    # A negative stride does not raise in torch's importer: it aborts the process (pytorch#188023). Stride 0 is
    # torch's own expand(): it refuses to write to such a tensor itself.
    Consumer("torch", "torch", _routes.torch, _TORCH_DTYPES, HOST | CUDA, Access.WRITES, Layout.NON_NEGATIVE),
    Consumer("cupy", "cupy", _routes.from_dlpack, NUMPY_NATIVE, CUDA, Access.WRITES, overlap=False),
    # jax copies what is not aligned to 64 bytes on the CPU by itself, and refuses it with copy=False; strides that
    # are not a permutation of a dense array are "UNIMPLEMENTED".
    Consumer(
        "jax",
        "jax",
        _routes.jax,
        NUMPY_NATIVE | BFLOAT16 | FLOAT8,
        _CPU,
        Access.IMMUTABLE,
        Layout.PERMUTED,
        alignment_bytes=64,
    ),
    Consumer("jax", "jax", _routes.jax, NUMPY_NATIVE | BFLOAT16 | FLOAT8, CUDA, Access.IMMUTABLE, Layout.PERMUTED),
    # TensorFlow imports a pointer of any alignment, and its first kernel on it then ends the process with
    # "Check failed: IsAligned()"; the limit is EIGEN_MAX_ALIGN_BYTES, 64 in the AVX-512 builds. Any stride but
    # row-major is "Invalid strides array from DLPack".
    Consumer(
        "tensorflow",
        "tensorflow",
        _routes.tensorflow,
        _TENSORFLOW_DTYPES,
        _CPU,
        Access.IMMUTABLE,
        Layout.ROW_MAJOR,
        alignment_bytes=64,
    ),
    Consumer(
        "tensorflow", "tensorflow", _routes.tensorflow, _TENSORFLOW_DTYPES, CUDA, Access.IMMUTABLE, Layout.ROW_MAJOR
    ),
    Consumer("numba", "numba", _routes.numpy, NUMPY_NATIVE, HOST, Access.KEEPS),
    # as_cuda_array() drops the read-only mark of the CUDA Array Interface.
    Consumer("numba", "numba", _routes.numba_cuda, NUMPY_NATIVE, CUDA, Access.WRITES, overlap=False),
    Consumer(
        "cudf",
        "cudf",
        _routes.cudf_series,
        BOOL | INTEGERS | {"float32", "float64"},
        CUDA,
        Access.WRITES,
        Layout.ROW_MAJOR,
        ndims=range(1, 2),
    ),
    Consumer(
        "cudf",
        "cudf",
        _routes.cudf_frame,
        BOOL | INTEGERS | {"float32", "float64"},
        CUDA,
        Access.WRITES,
        Layout.NON_NEGATIVE,
        ndims=range(2, 3),
        copies="a DataFrame holds one buffer a column",
    ),
    Consumer(
        "paddle",
        "paddle",
        _routes.paddle,
        BOOL | INTEGERS | FLOATS | COMPLEX | BFLOAT16,
        _CPU | CUDA,
        Access.WRITES,
        Layout.NON_NEGATIVE,
        overlap=False,
    ),
    # tvm_ffi's own dtype has no complex code: "DLDataType contains unknown type_code=5".
    Consumer(
        "tvm_ffi",
        "tvm_ffi",
        _routes.tvm_ffi,
        BOOL | INTEGERS | FLOATS | BFLOAT16 | FLOAT8 | {"float4_e2m1fn_x2"},
        HOST | CUDA,
        Access.WRITES,
        overlap=False,
    ),
    # One dimension gives an Array, whose bool is packed to bits; any other rank a Tensor, which has no bool
    # (from_numpy() makes it uint8) and no complex type. Both are immutable to their user.
    Consumer(
        "pyarrow",
        "pyarrow",
        _routes.pyarrow_array,
        BOOL | INTEGERS | FLOATS,
        HOST,
        Access.IMMUTABLE,
        Layout.ROW_MAJOR,
        ndims=range(1, 2),
        copied_dtypes=BOOL,
        note="Arrow has no such type; cast it, or view complex numbers as pairs of floats.",
    ),
    Consumer(
        "pyarrow",
        "pyarrow",
        _routes.pyarrow_tensor,
        INTEGERS | FLOATS,
        HOST,
        Access.KEEPS,
        Layout.NON_NEGATIVE,
        note="pyarrow.Tensor has no such type; cast it, or view it as integers.",
    ),
    # An OrtValue is an input: sessions do not write to it. update_inplace() would, so do not call it on one.
    Consumer(
        "onnxruntime",
        "onnxruntime",
        _routes.onnxruntime,
        BOOL | INTEGERS | FLOATS | BFLOAT16,
        _CPU,
        Access.IMMUTABLE,
        Layout.ROW_MAJOR,
    ),
    Consumer(
        "dpnp", "dpnp", _routes.from_dlpack, NUMPY_NATIVE, frozenset({"oneapi"}), Access.WRITES, Layout.NON_NEGATIVE
    ),
    Consumer(
        "dpnp",
        "dpnp",
        _routes.dpnp_host,
        NUMPY_NATIVE,
        _CPU,
        Access.WRITES,
        copies="its arrays live in device memory",
    ),
    Consumer(
        "mlx",
        "mlx",
        _routes.mlx,
        BOOL | INTEGERS | {"float16", "float32", "complex64", "bfloat16"},
        _CPU,
        Access.WRITES,
        copies="its arrays own their memory",
    ),
    Consumer(
        "openvino",
        "openvino",
        _routes.openvino,
        BOOL | INTEGERS | FLOATS,
        _CPU,
        Access.WRITES,
        Layout.ROW_MAJOR,
    ),
    Consumer(
        "nd",
        "dlbridge.nd",
        _routes.from_dlpack,
        NUMPY_NATIVE | BFLOAT16,
        HOST | CUDA,
        Access.KEEPS,
        overlap=False,
    ),
    Consumer(
        "buffer",
        "builtins",
        _routes.buffer,
        NUMPY_NATIVE | {"complex32"},
        HOST,
        Access.KEEPS,
        note="PEP 3118 has no code for it; take it through DLPack.",
    ),
    Consumer("xarray", "xarray", _routes.xarray, NUMPY_NATIVE, HOST, Access.KEEPS),
    Consumer("pandas", "pandas", _routes.pandas_series, _PANDAS_DTYPES, HOST, Access.KEEPS, ndims=range(1, 2)),
    Consumer("pandas", "pandas", _routes.pandas_frame, _PANDAS_DTYPES, HOST, Access.KEEPS, ndims=range(2, 3)),
)


def _by_name() -> dict[str, tuple[Consumer, ...]]:
    table: dict[str, tuple[Consumer, ...]] = {}
    for row in _ROWS:
        table[row.name] = (*table.get(row.name, ()), row)
    return table


# Other names of the same consumers, modules' names included.
ALIASES: dict[str, str] = {
    "np": "numpy",
    "pytorch": "torch",
    "tf": "tensorflow",
    "jnp": "jax",
    "jax.numpy": "jax",
    "jax.dlpack": "jax",
    "numba.cuda": "numba",
    "arrow": "pyarrow",
    "ort": "onnxruntime",
    "mlx.core": "mlx",
    "memoryview": "buffer",
    "builtins": "buffer",
    "dlbridge.nd": "nd",
}
CONSUMERS: dict[str, tuple[Consumer, ...]] = _by_name()
