"""How a tensor enters each framework: one function a way, the cheapest one that both ends understand.

convert(obj, to) goes

1. python/src/convert.cpp   `to`, a name or a module, is looked up in the table of frameworks/table.cpp
2. python/src/asdlpack.cpp  `obj` is read
3. frameworks/plan.cpp      the rows of frameworks/<name> are held against the tensor: shared, copied, refused
4. python/src/convert.cpp   the copy, where there must be one
5. frameworks/<name>.cpp    in, by the framework's C way (NumPy, PyTorch and whoever has a C exchange table), or
6. here                     by the function that the row names, with the imported module and the tensor

The facts in the comments were seen with torch 2.13, jax 0.10, tensorflow 2.21, pyarrow 26, onnxruntime 1.31 and 1.32,
tvm_ffi 0.1.15, OpenCV 5.0 and NumPy 2.4, unless a comment says that they were read from documentation only.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import ModuleType
from typing import Any, NoReturn, cast

from dlbridge import _core

Tensor = _core.Tensor

# jax keeps 64-bit arrays of other producers only while 64-bit types are on, and truncates them otherwise.
_WIDE = frozenset({"int64", "uint64", "float64", "complex128"})
_LEGACY_DEFAULT_STREAM = 1  # as the array API numbers streams


def refuse_import(name: str, module: str, error: ImportError) -> NoReturn:
    """For a framework of the table that is not there."""
    raise ImportError(
        f"convert(): to={name!r}, but module {module!r} cannot be imported: {error}. Install it, or name another of "
        f"{', '.join(_core.consumers())}",
        name=module,
    ) from error


def find_importer(name: str) -> ModuleType:
    """A module that is not in the table but has the Array API's from_dlpack(). ValueError where there is none."""
    if all(part.isidentifier() for part in name.split(".")):  # import_module() knows empty and relative names, too
        try:
            module = importlib.import_module(name)
        except ImportError:
            pass
        else:
            if callable(getattr(module, "from_dlpack", None)):
                return module
    raise ValueError(
        f"convert(): to={name!r} is neither a known consumer nor an installed module with from_dlpack(). "
        f"Known: {', '.join(_core.consumers())}"
    )


def _as_integers(tensor: Tensor) -> _core.HostTensor:
    """A host tensor's elements as the unsigned integers of the same width: every consumer can name those."""
    return cast(_core.HostTensor, _core.reinterpret(tensor, dtype=f"uint{8 * tensor.itemsize}"))


def _without_readonly_mark(tensor: Tensor) -> Tensor:
    """`tensor` as if it were writable, for consumers that never write.

    A legacy DLPack capsule cannot carry the mark and so may not be made from a read-only tensor (DLPack 1.0); a
    consumer of immutable arrays that only reads legacy capsules would lose nothing by it.
    """
    return _core.reinterpret(tensor, readonly=False) if tensor.readonly else tensor


def from_dlpack(module: ModuleType, tensor: Tensor) -> object:
    """Any module with the Array API's from_dlpack(); the versioned capsule carries the read-only mark."""
    return module.from_dlpack(tensor)


def numpy(_module: ModuleType, tensor: Tensor) -> Any:
    """An ndarray through NumPy's C API, with ml_dtypes' type where NumPy has none."""
    return _core.to_numpy(tensor)


def tvm_ffi(module: ModuleType, tensor: Tensor) -> object:
    """Its own importer asks nobody on which stream the data is ready.

    So the stream that it works on is made to wait before: the legacy default one, unless tvm_ffi.use_raw_stream() names
    another.
    """
    if tensor.device.type == "cuda":
        stream = module.get_raw_stream(module.device("cuda", tensor.device.id))
        _core.asdlpack(tensor, stream=stream or _LEGACY_DEFAULT_STREAM)
    return module.from_dlpack(tensor)


def jax(module: ModuleType, tensor: Tensor) -> object:
    """A jax.Array. jax reads legacy capsules only, which cannot say read-only; its arrays are never written to."""
    source = _without_readonly_mark(tensor)
    wide: AbstractContextManager[Any] = nullcontext()
    if str(tensor.dtype) in _WIDE:
        wide = module.enable_x64(True) if hasattr(module, "enable_x64") else module.experimental.enable_x64(True)
    with wide:
        return module.dlpack.from_dlpack(source)


def tensorflow(module: ModuleType, tensor: Tensor) -> object:
    """An EagerTensor. from_dlpack takes a legacy capsule, not an object; its tensors are never written to."""
    source = _without_readonly_mark(tensor)
    return module.experimental.dlpack.from_dlpack(source.__dlpack__())


class _OrtSource:
    """What OrtValue.from_dlpack() asked of a producer until 1.31: it found bool by `dtype`, encoded as uint8."""

    def __init__(self, tensor: Tensor) -> None:
        self.dtype = tensor.dtype
        source = _as_integers(tensor) if tensor.dtype == "bool" else tensor
        self._source = _without_readonly_mark(source)

    def __dlpack__(self) -> object:
        return self._source.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._source.__dlpack_device__()


@cache
def _has_bool_capsules(version: str) -> bool:
    return [int(part) for part in version.split(".")[:2]] >= [1, 32]


def onnxruntime(module: ModuleType, tensor: Tensor) -> object:
    """An OrtValue. The DLPack route, for it gives the value the ownership; ortvalue_from_numpy() does not.

    A session's stream waits for no other, and Python is not told which it is.
    """
    _core.synchronize(tensor)
    source = _without_readonly_mark(tensor) if _has_bool_capsules(module.__version__) else _OrtSource(tensor)
    return module.OrtValue.from_dlpack(source)


def pyarrow_array(pa: ModuleType, tensor: Tensor) -> object:
    """A pyarrow.Array over the memory. A foreign buffer, for Array.from_dlpack() is newer than most installs."""
    name = str(tensor.dtype)
    if name == "bool":  # Arrow packs eight to the byte
        return pa.array(memoryview(cast(_core.HostTensor, tensor)).tolist(), pa.bool_())
    values = pa.foreign_buffer(tensor.data_ptr, tensor.nbytes, base=tensor)
    return pa.Array.from_buffers(getattr(pa, name)(), tensor.size, [None, values])


def pyarrow_tensor(pa: ModuleType, tensor: Tensor) -> object:
    """A pyarrow.Tensor; from_numpy() takes any stride that is not negative, and keeps the read-only mark."""
    return pa.Tensor.from_numpy(numpy(pa, tensor))


def numba_cuda(module: ModuleType, tensor: Tensor) -> object:
    """A DeviceNDArray; numba waits for the stream that the CUDA Array Interface names."""
    return importlib.import_module("numba.cuda").as_cuda_array(tensor)


def cudf_series(module: ModuleType, tensor: Tensor) -> object:
    """A Series over the memory, by the CUDA Array Interface (from its documentation)."""
    return module.Series(tensor)


def cudf_frame(module: ModuleType, tensor: Tensor) -> object:
    """A DataFrame; from_dlpack() takes a legacy capsule and copies into columns (from its documentation)."""
    return module.from_dlpack(_without_readonly_mark(tensor).__dlpack__(stream=_LEGACY_DEFAULT_STREAM))


def paddle(module: ModuleType, tensor: Tensor) -> object:
    """A paddle.Tensor; 3.x takes objects, older ones capsules (from its documentation)."""
    dlpack = module.utils.dlpack
    try:
        return dlpack.from_dlpack(tensor)
    except TypeError:
        return dlpack.from_dlpack(tensor.__dlpack__())


def dpnp_host(module: ModuleType, tensor: Tensor) -> object:
    """A dpnp array in device memory: host memory has to be copied there (from its documentation)."""
    return module.asarray(numpy(module, tensor))


def mlx(module: ModuleType, tensor: Tensor) -> object:
    """An mlx array, which always owns its memory (from its documentation). bfloat16 crosses as uint16."""
    mx = importlib.import_module("mlx.core")
    if tensor.dtype == "bfloat16":
        return mx.array(numpy(module, _as_integers(tensor))).view(mx.bfloat16)
    return mx.array(numpy(module, tensor))


def openvino(module: ModuleType, tensor: Tensor) -> object:
    """An openvino.Tensor over the memory, dense only (from its documentation)."""
    return module.Tensor(numpy(module, tensor), shared_memory=True)


def buffer(_module: ModuleType, tensor: Tensor) -> memoryview:
    """A memoryview."""
    return memoryview(cast(_core.HostTensor, tensor))


def xarray(module: ModuleType, tensor: Tensor) -> object:
    """A DataArray over the memory."""
    return module.DataArray(numpy(module, tensor))


def pandas_series(module: ModuleType, tensor: Tensor) -> object:
    """A Series over the memory."""
    return module.Series(numpy(module, tensor), copy=False)


def pandas_frame(module: ModuleType, tensor: Tensor) -> object:
    """A DataFrame over the memory, rows along axis 0."""
    return module.DataFrame(numpy(module, tensor), copy=False)


def polars_series(module: ModuleType, tensor: Tensor) -> object:
    """A Series over the memory, through Arrow; bools by NumPy, which Polars packs to bits."""
    return module.Series(numpy(module, tensor) if tensor.dtype == "bool" else tensor)


def warp(module: ModuleType, tensor: Tensor) -> object:
    """A warp.array; Warp must have been started, and starts once."""
    module.init()
    return module.from_dlpack(tensor)


def duckdb_relation(module: ModuleType, tensor: Tensor) -> object:
    """A relation of one column, "value", over the memory, through Arrow; it belongs to DuckDB's default connection."""
    return module.from_arrow(tensor)


def cvcuda(module: ModuleType, tensor: Tensor) -> object:
    """A Tensor by the CUDA Array Interface, whose stream CV-CUDA does not look at (from its documentation).

    So the stream that it works on is made to wait before.
    """
    _core.asdlpack(tensor, stream=module.Stream.current.handle or _LEGACY_DEFAULT_STREAM)
    return module.as_tensor(tensor)


_OPENCV_DEPTHS = {
    "uint8": "CV_8U",
    "int8": "CV_8S",
    "uint16": "CV_16U",
    "int16": "CV_16S",
    "int32": "CV_32S",
    "float16": "CV_16F",
    "float32": "CV_32F",
    "float64": "CV_64F",
}


def opencv_gpu(module: ModuleType, tensor: Tensor) -> object:
    """A cuda.GpuMat: rows, columns, and the third axis as channels. OpenCV copies, on the legacy default stream.

    One over foreign memory keeps nothing alive, and with OpenCV 5.0 neither does one of from_dlpack(), which never
    calls the deleter.
    """
    cuda = module.cuda
    if not tensor.size:
        return cuda.GpuMat()
    rows, columns, *last = tensor.shape
    channels = last[0] if last else 1
    kind = module.CV_MAKETYPE(getattr(module, _OPENCV_DEPTHS[str(tensor.dtype)]), channels)
    row_bytes = columns * channels * tensor.itemsize
    step = tensor.strides[0] if rows > 1 else row_bytes
    _core.asdlpack(tensor, stream=_LEGACY_DEFAULT_STREAM)
    device = cuda.getDevice()
    cuda.setDevice(tensor.device.id)
    try:
        view = cuda.createGpuMatFromCudaMemory(rows, columns, kind, tensor.data_ptr, step)
        if view.channels() != channels:
            raise ValueError(f"a GpuMat has no {channels} channels; give a picture of fewer, or one with two axes")
        made = view.clone()
    finally:
        cuda.setDevice(device)
    tensor.record_stream(_LEGACY_DEFAULT_STREAM)
    return made


def dali(module: ModuleType, tensor: Tensor) -> object:
    """A TensorGPU or TensorCPU; both take legacy capsules (from its documentation)."""
    try:
        tensors = importlib.import_module("nvidia.dali.tensors")
    except ImportError:  # the older name
        tensors = importlib.import_module("nvidia.dali.backend")
    if tensor.device.type == "cuda":
        return tensors.TensorGPU(tensor.__dlpack__(stream=_LEGACY_DEFAULT_STREAM))
    return tensors.TensorCPU(tensor.__dlpack__())


def nanoarrow_array(module: ModuleType, tensor: Tensor) -> object:
    """A nanoarrow.Array over the memory, through Arrow."""
    return module.Array(tensor)


def polars_array(module: ModuleType, tensor: Tensor) -> object:
    """A Series of Polars' Array type over the memory: the fixed-shape tensors of Arrow stay an extension type there."""
    return module.Series(_core.reinterpret(tensor, shape=(tensor.size,))).reshape(tensor.shape)
