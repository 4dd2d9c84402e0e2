"""The producers: one row an array type, with what is needed to check it without asdlpack()."""

from __future__ import annotations

import array
import ctypes
import importlib
import mmap
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_COUNT = 12
_VALUES = tuple(range(1, _COUNT + 1))  # exact in every dtype used here, bfloat16 included
_BOOLS = (True, False, True, True)


class Unavailable(Exception):
    """The module is there, but not the device or the feature that this row needs; the message says which."""


@dataclass(frozen=True)
class Producer:
    """`make` builds a fresh array of `values`; `pointer` and `read` look at it by its own framework's means."""

    name: str
    module: str
    make: Callable[[ModuleType], Any]
    pointer: Callable[[Any], int]
    read: Callable[[Any], Any] | None = None  # nested lists of the values; None: immutable, or no need
    values: Sequence[Any] = _VALUES
    readonly: bool = False
    new_value: Any = 7


# --- Python's own types ---------------------------------------------------------------------------------------------


def _bytes_pointer(obj: bytes) -> int:
    return id(obj) + sys.getsizeof(b"") - 1  # CPython: the characters follow the header, with one NUL behind


def _from_buffer_pointer(obj: Any) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(obj))


def _memoryview(_: ModuleType) -> memoryview:
    return memoryview(bytearray(_VALUES)).cast("B", (3, 4))


def _mmap(_: ModuleType) -> mmap.mmap:
    mapping = mmap.mmap(-1, _COUNT)
    mapping[:] = bytes(_VALUES)
    return mapping


def _ctypes(_: ModuleType) -> Any:
    return ((ctypes.c_int32 * 4) * 3)(*((ctypes.c_int32 * 4)(*_VALUES[i : i + 4]) for i in (0, 4, 8)))


_STDLIB = (
    Producer("bytes", "stdlib", lambda _: bytes(bytearray(_VALUES)), _bytes_pointer, readonly=True),
    Producer("bytearray", "stdlib", lambda _: bytearray(_VALUES), _from_buffer_pointer, list),
    Producer("memoryview", "stdlib", _memoryview, _from_buffer_pointer, memoryview.tolist),
    Producer(
        "array.array",
        "stdlib",
        lambda _: array.array("d", _VALUES),
        lambda a: int(a.buffer_info()[0]),
        array.array.tolist,
    ),
    Producer("mmap", "stdlib", _mmap, _from_buffer_pointer, lambda m: list(m[:])),
    Producer("ctypes", "stdlib", _ctypes, ctypes.addressof, lambda a: [list(row) for row in a]),
)

# --- NumPy and what builds on it ------------------------------------------------------------------------------------


def _numpy_pointer(a: Any) -> int:
    return int(a.ctypes.data)


def _numpy_list(a: Any) -> Any:
    return a.tolist()


def _numpy(np: ModuleType) -> Any:
    return np.array(_VALUES, np.float32).reshape(3, 4)


def _numpy_readonly(np: ModuleType) -> Any:
    a = _numpy(np)
    a.flags.writeable = False
    return a


def _numpy_strided(np: ModuleType) -> Any:
    a = np.zeros((3, 8), np.float64)[:, ::2]
    a[...] = np.reshape(_VALUES, (3, 4))
    return a


def _numpy_reversed(np: ModuleType) -> Any:
    return np.array(_VALUES[::-1], np.int32)[::-1]


def _memmap(np: ModuleType) -> Any:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(8 * _COUNT))
        file.flush()
        mapped = np.memmap(file, np.int64, "r+", shape=(_COUNT,))
    mapped[:] = _VALUES
    return mapped


def _ml_dtypes(dtype: str) -> Callable[[ModuleType], Any]:
    def make(ml_dtypes: ModuleType) -> Any:
        import numpy as np

        return np.array(_VALUES, np.float32).astype(getattr(ml_dtypes, dtype))

    return make


def _ml_list(a: Any) -> Any:
    return a.astype("float32").tolist()


def _pillow(pil: ModuleType) -> Any:
    from PIL import Image

    return Image.frombytes("L", (4, 3), bytes(_VALUES))


_NUMPY = (
    Producer("numpy", "numpy", _numpy, _numpy_pointer, _numpy_list),
    Producer("numpy read-only", "numpy", _numpy_readonly, _numpy_pointer, readonly=True),
    Producer("numpy strided", "numpy", _numpy_strided, _numpy_pointer, _numpy_list),
    Producer("numpy reversed", "numpy", _numpy_reversed, _numpy_pointer, _numpy_list),
    Producer(
        "numpy bool", "numpy", lambda np: np.array(_BOOLS), _numpy_pointer, _numpy_list, values=_BOOLS, new_value=False
    ),
    Producer("numpy complex", "numpy", lambda np: np.array(_VALUES, np.complex64), _numpy_pointer, _numpy_list),
    Producer("numpy 0-d", "numpy", lambda np: np.array(3.0), _numpy_pointer, lambda a: [a.item()], values=(3,)),
    Producer("numpy empty", "numpy", lambda np: np.empty((0, 3), np.float32), lambda _: 0, _numpy_list, values=()),
    Producer("numpy memmap", "numpy", _memmap, _numpy_pointer, _numpy_list),
    Producer("ml_dtypes bfloat16", "ml_dtypes", _ml_dtypes("bfloat16"), _numpy_pointer, _ml_list),
    Producer("ml_dtypes float8", "ml_dtypes", _ml_dtypes("float8_e4m3fn"), _numpy_pointer, _ml_list),
)

# --- frameworks on the CPU ------------------------------------------------------------------------------------------


def _torch(dtype: str, device: str = "cpu") -> Callable[[ModuleType], Any]:
    def make(torch: ModuleType) -> Any:
        if device == "cuda" and not torch.cuda.is_available():
            raise Unavailable("torch sees no CUDA device")
        return torch.tensor(_VALUES, dtype=getattr(torch, dtype), device=device).reshape(3, 4)

    return make


def _jax(platform: str) -> Callable[[ModuleType], Any]:
    def make(jax: ModuleType) -> Any:
        try:
            device = jax.devices(platform)[0]
        except RuntimeError as error:
            raise Unavailable(f"jax has no {platform} device") from error
        return jax.device_put(jax.numpy.asarray(_VALUES, jax.numpy.float32).reshape(3, 4), device)

    return make


def _capsule_pointer(capsule: object) -> int:
    from dlbridge import _core

    fields = _core.peek_capsule(capsule)
    return int(fields["data"] + fields["byte_offset"])


def _tensorflow_pointer(t: Any) -> int:
    import tensorflow as tf

    return _capsule_pointer(tf.experimental.dlpack.to_dlpack(t))


def _arrow_tensor(pa: ModuleType) -> Any:
    import numpy as np

    return pa.Tensor.from_numpy(_numpy(np))


def _ortvalue(ort: ModuleType) -> Any:
    import numpy as np

    # from_shape_and_type: a value that owns its memory, unlike one over a NumPy array
    value = ort.OrtValue.ortvalue_from_shape_and_type([3, 4], np.float32, "cpu", 0)
    value.update_inplace(_numpy(np))
    return value


def _tvm_ffi(tvm_ffi: ModuleType) -> Any:
    import numpy as np

    return tvm_ffi.from_dlpack(_numpy(np))


_CPU = (
    Producer("torch", "torch", _torch("float32"), lambda t: int(t.data_ptr()), lambda t: t.tolist()),
    Producer("torch bfloat16", "torch", _torch("bfloat16"), lambda t: int(t.data_ptr()), lambda t: t.tolist()),
    Producer("jax", "jax", _jax("cpu"), lambda a: int(a.unsafe_buffer_pointer())),
    Producer("tensorflow", "tensorflow", lambda tf: tf.constant(_VALUES, tf.float32, (3, 4)), _tensorflow_pointer),
    Producer("pyarrow Array", "pyarrow", lambda pa: pa.array(_VALUES), lambda a: int(a.buffers()[1].address)),
    Producer("pyarrow Tensor", "pyarrow", _arrow_tensor, lambda t: _numpy_pointer(t.to_numpy())),
    Producer(
        "pyarrow Buffer",
        "pyarrow",
        lambda pa: pa.py_buffer(bytes(bytearray(_VALUES))),
        lambda b: int(b.address),
        readonly=True,
    ),
    Producer("onnxruntime", "onnxruntime", _ortvalue, lambda v: int(v.data_ptr())),
    Producer("tvm_ffi", "tvm_ffi", _tvm_ffi, lambda t: int(t.data_ptr())),
    # Pillow makes fresh bytes at every access of __array_interface__, so there is no pointer to compare.
    Producer("pillow", "PIL", _pillow, lambda _: -1, readonly=True),
)

# --- CUDA -----------------------------------------------------------------------------------------------------------


def _cupy(cupy: ModuleType) -> Any:
    try:
        return cupy.asarray(_VALUES, cupy.float32).reshape(3, 4)
    except Exception as error:
        raise Unavailable(f"cupy cannot allocate: {error}") from error


def _numba(_: ModuleType) -> Any:
    import numpy as np

    try:
        cuda: Any = importlib.import_module("numba.cuda")
    except ImportError as error:
        raise Unavailable(f"numba has no CUDA target: {error}") from error
    if not cuda.is_available():
        raise Unavailable("numba sees no CUDA device")
    return cuda.to_device(_numpy(np))


def _cai_pointer(obj: Any) -> int:
    return int(obj.__cuda_array_interface__["data"][0])


_CUDA = (
    Producer("torch cuda", "torch", _torch("float32", "cuda"), lambda t: int(t.data_ptr()), lambda t: t.tolist()),
    Producer("jax cuda", "jax", _jax("cuda"), lambda a: int(a.unsafe_buffer_pointer())),
    Producer("cupy", "cupy", _cupy, _cai_pointer, lambda a: a.get().tolist()),
    Producer("numba cuda", "numba", _numba, _cai_pointer, lambda a: a.copy_to_host().tolist()),
)

PRODUCERS: tuple[Producer, ...] = _STDLIB + _NUMPY + _CPU + _CUDA
