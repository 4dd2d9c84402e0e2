"""Factories and importers of known libraries, for ``--library NAME``; also examples of how to write them.

Each is a function of this module, so that a process of its own can import it by name.
"""

from __future__ import annotations

import importlib
from typing import Any

from dlbridge.tests.conformance._check import Unsupported
from dlbridge.tests.conformance._spec import ARROW_LAYOUTS, FOREIGN_DTYPES, Spec


def load(module: str) -> Any:
    """An optional module, imported when it is needed."""
    return importlib.import_module(module)


def _numpy_dtype(name: str) -> Any:
    np = load("numpy")

    if name in FOREIGN_DTYPES:
        return np.dtype(name)
    try:
        return np.dtype(name)
    except TypeError:
        ml_dtypes = load("ml_dtypes")

        return np.dtype(getattr(ml_dtypes, name))


def _numpy_foreign(spec: Spec) -> Any:
    np = load("numpy")

    return np.zeros(spec.shape, _numpy_dtype(spec.dtype))


def _numpy_layout(dense: Any, spec: Spec) -> Any:
    """`dense` in the layout of `spec`, by views of larger arrays."""
    np = load("numpy")

    shape = spec.shape
    if spec.layout == "F":
        return np.asfortranarray(dense)
    if spec.layout == "broadcast":
        return (
            np.broadcast_to(dense[0], shape)
            if spec.readonly
            else np.lib.stride_tricks.as_strided(dense[0].copy(), shape, (0, *dense.strides[1:]))
        )
    if spec.layout == "reversed":
        return np.ascontiguousarray(dense[..., ::-1])[..., ::-1]
    if spec.layout == "strided":
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), dense.dtype)[..., ::2]
    elif spec.layout == "offset":
        wide = np.zeros(dense.size + 1, dense.dtype)[1:].reshape(shape)
    elif spec.layout == "packed":
        wide = np.zeros(shape, np.dtype([("pad", "u1"), ("value", dense.dtype)]))["value"]
    else:
        raise Unsupported(spec.layout)
    wide[...] = dense
    return wide


def numpy_array(spec: Spec) -> Any:
    np = load("numpy")

    if spec.device != "cpu" or spec.layout in ARROW_LAYOUTS:
        raise Unsupported(spec.device if spec.device != "cpu" else spec.layout)
    if spec.dtype in FOREIGN_DTYPES:
        return _numpy_foreign(spec)
    array = np.array(spec.values, np.complex128 if spec.dtype.startswith("complex") else None)
    array = array.astype(_numpy_dtype(spec.dtype)).reshape(spec.shape)
    if spec.layout != "C":
        array = _numpy_layout(array, spec)
    if spec.readonly:
        array.flags.writeable = False
    return array


def numpy_from_dlpack(x: Any, *, device: Any = None, copy: Any = None) -> Any:
    np = load("numpy")

    return np.from_dlpack(x, device=device, copy=copy)


def numpy_asarray(x: Any) -> Any:
    """Every protocol but DLPack, which np.asarray does not look for."""
    np = load("numpy")

    made = np.asarray(x)
    if made.dtype == object:
        raise TypeError("np.asarray made an array of objects")
    return made


def torch_tensor(spec: Spec) -> Any:
    torch = load("torch")

    dtype = getattr(torch, spec.dtype, None)
    if dtype is None or spec.readonly:
        raise Unsupported("torch has no such dtype" if dtype is None else "torch has no read-only tensors")
    device = torch.device(spec.device)
    dense = torch.tensor(spec.values, device=device).to(dtype).reshape(spec.shape)
    if spec.layout == "F":
        order = list(range(dense.ndim))[::-1]
        return dense.permute(order).contiguous().permute(order)
    if spec.layout == "broadcast":
        return dense[0].clone().expand(spec.shape)
    if spec.layout == "strided":
        wide = torch.zeros((*spec.shape[:-1], 2 * spec.shape[-1]), dtype=dtype, device=device)[..., ::2]
    elif spec.layout == "offset":
        wide = torch.zeros(spec.size + 1, dtype=dtype, device=device)[1:].view(spec.shape)
    elif spec.layout == "C":
        return dense
    else:
        raise Unsupported(f"torch has no {spec.layout} layout")
    wide.copy_(dense)
    return wide


def torch_from_dlpack(x: Any, *, device: Any = None, copy: Any = None) -> Any:
    torch = load("torch")

    if device is None and copy is None:
        return torch.from_dlpack(x)
    return torch.from_dlpack(x, device=device, copy=copy)


def torch_as_tensor(x: Any) -> Any:
    torch = load("torch")

    return torch.as_tensor(x)


def jax_array(spec: Spec) -> Any:
    jax = load("jax")

    if spec.layout != "C" or spec.dtype in FOREIGN_DTYPES:
        raise Unsupported("jax has no layouts but its own")
    jax.config.update("jax_enable_x64", True)
    platform = spec.device.partition(":")[0]
    # jax arrays cannot be written to: they are the read-only arrays of the table, and none of the others.
    return jax.device_put(numpy_array(Spec(spec.shape, spec.dtype)), jax.devices(platform)[0], may_alias=False)


def jax_from_dlpack(x: Any, *, device: Any = None, copy: Any = None) -> Any:
    jax = load("jax")

    jax.config.update("jax_enable_x64", True)
    return jax.dlpack.from_dlpack(x, device=device, copy=copy)


def jax_asarray(x: Any) -> Any:
    jax = load("jax")

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(x)


class _TensorFlow:
    """A tensor with the methods that TensorFlow has as functions."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        tf = load("tensorflow")

        return tf.experimental.dlpack.to_dlpack(self.tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def tensorflow_tensor(spec: Spec) -> Any:
    tf = load("tensorflow")

    if spec.layout != "C" or spec.dtype in FOREIGN_DTYPES:
        raise Unsupported("tensorflow has no layouts but its own")
    with tf.device("CPU:0" if spec.device == "cpu" else "GPU:0"):
        tensor = tf.constant(numpy_array(Spec(spec.shape, spec.dtype)))
    return tensor if hasattr(tensor, "__dlpack__") else _TensorFlow(tensor)


def tensorflow_from_dlpack(x: Any) -> Any:
    tf = load("tensorflow")

    return tf.experimental.dlpack.from_dlpack(x.__dlpack__())


def tensorflow_convert(x: Any) -> Any:
    tf = load("tensorflow")

    return tf.convert_to_tensor(x)


def pyarrow_tensor(spec: Spec) -> Any:
    pa = load("pyarrow")

    return pa.Tensor.from_numpy(numpy_array(spec))


def onnxruntime_value(spec: Spec) -> Any:
    ort = load("onnxruntime")

    if spec.layout != "C" or spec.readonly or spec.dtype in FOREIGN_DTYPES:
        raise Unsupported("OrtValue is dense")
    try:
        array = numpy_array(spec)
        # from_shape_and_type: it owns its memory, unlike a value over a NumPy array
        value = ort.OrtValue.ortvalue_from_shape_and_type(list(spec.shape), array.dtype.type, "cpu", 0)
        if spec.size:
            value.update_inplace(array)
        return value._ortvalue
    except Exception as error:
        raise Unsupported(str(error)) from error


def onnxruntime_from_dlpack(x: Any) -> Any:
    _pybind_state = load("onnxruntime.capi._pybind_state")

    return _pybind_state.OrtValue.from_dlpack(x.__dlpack__(), False)


def tvm_ffi_tensor(spec: Spec) -> Any:
    tvm_ffi = load("tvm_ffi")

    if spec.readonly or spec.dtype in FOREIGN_DTYPES:
        raise Unsupported("tvm_ffi.Tensor has no such thing")
    return tvm_ffi.from_dlpack(numpy_array(spec))


def tvm_ffi_from_dlpack(x: Any) -> Any:
    tvm_ffi = load("tvm_ffi")

    return tvm_ffi.from_dlpack(x)


def pydlpack_wrapped(spec: Spec) -> Any:
    dlpack = load("dlpack")

    return dlpack.asdlpack(numpy_array(spec))


def pydlpack_from_dlpack(x: Any) -> Any:
    """By way of NumPy, once: a wrapper of pydlpack has one managed tensor for all of its capsules."""
    dlpack = load("dlpack")
    np = load("numpy")
    return np.from_dlpack(dlpack.asdlpack(x))


def cupy_array(spec: Spec) -> Any:
    cupy = load("cupy")

    if spec.device == "cpu" or spec.readonly or spec.dtype in FOREIGN_DTYPES:
        raise Unsupported("cupy arrays are writable and on a GPU")
    dense = cupy.asarray(numpy_array(Spec(spec.shape, spec.dtype)))
    if spec.layout == "C":
        return dense
    if spec.layout == "F":
        return cupy.asfortranarray(dense)
    if spec.layout == "reversed":
        return cupy.ascontiguousarray(dense[..., ::-1])[..., ::-1]
    if spec.layout == "broadcast":
        return cupy.broadcast_to(dense[0], spec.shape)
    if spec.layout != "strided":
        raise Unsupported(spec.layout)
    wide = cupy.zeros((*spec.shape[:-1], 2 * spec.shape[-1]), dense.dtype)[..., ::2]
    wide[...] = dense
    return wide


def cupy_from_dlpack(x: Any, *, device: Any = None, copy: Any = None) -> Any:
    cupy = load("cupy")

    return cupy.from_dlpack(x, device=device, copy=copy)


def cupy_asarray(x: Any) -> Any:
    cupy = load("cupy")

    return cupy.asarray(x)


def numba_device_array(spec: Spec) -> Any:
    cuda = load("numba.cuda")

    if spec.device == "cpu" or spec.readonly or spec.dtype in FOREIGN_DTYPES or spec.layout not in ("C", "F"):
        raise Unsupported("numba device arrays are writable, dense, and on a GPU")
    return cuda.to_device(numpy_array(Spec(spec.shape, spec.dtype, spec.layout)))


def numba_as_cuda_array(x: Any) -> Any:
    cuda = load("numba.cuda")

    return cuda.as_cuda_array(x)


def cuda_observe(result: Any) -> Any:
    return {"values": result.copy_to_host().tolist(), "shape": tuple(result.shape)}


def dlbridge_tensor(spec: Spec) -> Any:
    from dlbridge import asdlpack

    return asdlpack(numpy_array(spec))


def dlbridge_asdlpack(x: Any, *, copy: Any = None) -> Any:
    from dlbridge import asdlpack

    return asdlpack(x, copy=copy)
