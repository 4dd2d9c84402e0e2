"""The consumers: how convert() and the framework's own importer are called, and how their arrays are looked at."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from dlbridge import _core

_Import = Callable[[ModuleType, _core.Tensor], Any]


@dataclass(frozen=True)
class Consumer:
    """`read`, `pointer`, `write` and `readonly` look at a result by its framework's own means.

    `from_dlpack` is the framework's own importer, None where it has none; `write` sets element 0 and is None where
    the framework's arrays are immutable; `readonly` is None where they have no such mark.
    """

    name: str  # as convert() knows it
    module: str
    read: Callable[[Any], Any]
    pointer: Callable[[Any], int]
    from_dlpack: _Import | None = None
    write: Callable[[Any, Any], None] | None = None
    readonly: Callable[[Any], bool] | None = None
    own_copy: Callable[[_core.Tensor], str] = lambda tensor: ""  # why from_dlpack copies; empty: it does not


def _numpy() -> Any:
    import numpy

    return numpy


def _as_float(a: Any) -> Any:
    """Lists from a NumPy array, also of ml_dtypes' types, whose own items are not Python numbers."""
    return a.astype("float32").tolist() if a.dtype.kind == "V" else a.tolist()


def _numpy_write(a: Any, value: Any) -> None:
    a[(0,) * a.ndim] = value


def _torch_read(t: Any) -> Any:
    return t.tolist() if t.dtype.is_complex or not t.dtype.is_floating_point else t.double().tolist()


def _buffer_read(view: memoryview) -> Any:
    if not view.format.startswith("Z"):
        return view.tolist()
    parts = struct.unpack(f"{2 * view.nbytes // view.itemsize}{view.format[1]}", view.tobytes())  # tolist() has no Z
    return [complex(real, imaginary) for real, imaginary in zip(parts[::2], parts[1::2], strict=True)]


def _buffer_pointer(view: memoryview) -> int:
    return _core.asdlpack(view).data_ptr


def _buffer_write(view: memoryview, value: Any) -> None:
    if view.format.startswith("Z"):  # no item assignment either
        struct.pack_into(f"2{view.format[1]}", view, 0, complex(value).real, complex(value).imag)
    else:
        view[(0,) * view.ndim] = value


def _tf_from_dlpack(tf: ModuleType, tensor: _core.Tensor) -> Any:
    return tf.experimental.dlpack.from_dlpack(tensor.__dlpack__())  # takes a capsule, not an object


def _tf_pointer(t: Any) -> int:
    import tensorflow

    fields = _core.peek_capsule(tensorflow.experimental.dlpack.to_dlpack(t))
    return int(fields["data"] + fields["byte_offset"])


def _jax_copy(tensor: _core.Tensor) -> str:
    jax: Any = importlib.import_module("jax")
    wide = tensor.dtype.bits in (64, 128) and tensor.dtype != "complex64"
    return "jax narrows 64-bit types while jax_enable_x64 is off" if wide and not jax.config.jax_enable_x64 else ""


def _arrow_read(a: Any) -> Any:
    return a.to_pylist() if hasattr(a, "to_pylist") else _as_float(a.to_numpy())


def _arrow_pointer(a: Any) -> int:
    return int(a.buffers()[1].address if hasattr(a, "buffers") else a.to_numpy().ctypes.data)


def _arrow_from_dlpack(pa: ModuleType, tensor: _core.Tensor) -> Any:
    kind = pa.Array if tensor.ndim == 1 else pa.Tensor
    if not hasattr(kind, "from_dlpack"):
        raise AttributeError(f"pyarrow {pa.__version__} has no {kind.__name__}.from_dlpack()")
    return kind.from_dlpack(tensor)


def _ort_read(value: Any) -> Any:
    if value.element_type() == 16:  # bfloat16: numpy() does not know it
        return _core.convert(value, "torch").double().tolist() if _has("torch") else None
    return _as_float(value.numpy())


def _has(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


def _tvm_read(t: Any) -> Any:
    return _as_float(_core.to_numpy(_core.asdlpack(t, device="cpu")))


def _tvm_write(t: Any, value: Any) -> None:
    on_host = _core.asdlpack(t).device == "cpu"
    _numpy_write(_core.convert(t, "numpy" if on_host else "torch"), value)


def _cupy_read(a: Any) -> Any:
    return a.get().tolist()


def _cai_pointer(a: Any) -> int:
    return int(a.__cuda_array_interface__["data"][0])


def _numba_read(a: Any) -> Any:
    return (a.copy_to_host() if hasattr(a, "copy_to_host") else a).tolist()


def _numba_write(a: Any, value: Any) -> None:
    if hasattr(a, "copy_to_device"):  # without a kernel: numba would have to compile one for an item assignment
        a.reshape(a.size)[:1].copy_to_device(_numpy().array([value], a.dtype))
    else:
        _numpy_write(a, value)


def _numba_pointer(a: Any) -> int:
    return int(a.ctypes.data) if hasattr(a, "ctypes") else _cai_pointer(a)


def _array_api(module: ModuleType, tensor: _core.Tensor) -> Any:
    return module.from_dlpack(tensor)


CONSUMERS: tuple[Consumer, ...] = (
    Consumer("buffer", "stdlib", _buffer_read, _buffer_pointer, None, _buffer_write, lambda view: view.readonly),
    Consumer(
        "numpy",
        "numpy",
        _as_float,
        lambda a: int(a.ctypes.data),
        _array_api,
        _numpy_write,
        lambda a: not a.flags.writeable,
    ),
    Consumer("torch", "torch", _torch_read, lambda t: int(t.data_ptr()), _array_api, _numpy_write),
    Consumer(
        "jax",
        "jax",
        lambda a: _as_float(_numpy().asarray(a)),
        lambda a: int(a.unsafe_buffer_pointer()),
        lambda jax, tensor: jax.dlpack.from_dlpack(tensor),
        own_copy=_jax_copy,
    ),
    Consumer("tensorflow", "tensorflow", lambda t: _as_float(t.numpy()), _tf_pointer, _tf_from_dlpack),
    Consumer("pyarrow", "pyarrow", _arrow_read, _arrow_pointer, _arrow_from_dlpack),
    Consumer(
        "onnxruntime",
        "onnxruntime",
        _ort_read,
        lambda v: int(v.data_ptr()),
        lambda ort, tensor: ort.OrtValue.from_dlpack(tensor),
    ),
    Consumer("tvm_ffi", "tvm_ffi", _tvm_read, lambda t: int(t.data_ptr()), _array_api, _tvm_write),
    Consumer("numba", "numba", _numba_read, _numba_pointer, None, _numba_write),
    Consumer("cupy", "cupy", _cupy_read, _cai_pointer, _array_api, _numpy_write),
)
