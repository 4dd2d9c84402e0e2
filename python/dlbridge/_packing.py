"""Four-bit numbers: two to a byte, as they are stored, and one to a byte, as they are computed with.

The even element is in the low four bits of a byte, the odd one in the high four, along the last axis: PyTorch's, JAX's
and ONNX's order.
"""

from __future__ import annotations

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FLOAT4 = "float4_e2m1fn"
_BYTES = ("int8", "uint8")


def _read(x: Any, operation: str, takes: tuple[str, ...]) -> _core.Tensor:
    tensor = _core.asdlpack(x)
    if tensor.dtype.name not in takes:
        raise TypeError(f"{operation}: the array has dtype {tensor.dtype}; give one of {', '.join(takes)}")
    if tensor.ndim == 0:
        raise ValueError(f"{operation}: the array has no axis along which pairs could lie. Reshape it first")
    return tensor


def _bytes_of(tensor: _core.Tensor, dtype: str = "uint8") -> Any:
    """An nd array over one-byte elements, on their device."""
    from dlbridge import nd

    return nd.from_dlpack(_core.reinterpret(tensor, dtype=dtype))


def _pair(low: Any, high: Any) -> Any:
    return (low & 15) | (high << 4)


def _pack(x: Any, operation: str) -> Any:
    if x.shape[-1] % 2:
        raise ValueError(
            f"{operation}: the last axis has {x.shape[-1]} elements, and a byte takes two. Append one that is 0"
        )
    return _pair(x[..., ::2], x[..., 1::2])


def _split(x: Any) -> tuple[Any, Any]:
    """The low and the high halves of the bytes of `x`, each in a byte of its own."""
    return x & 15, x >> 4


def _interleave(low: Any, high: Any) -> Any:
    from dlbridge import nd

    out = nd.empty((*low.shape[:-1], 2 * low.shape[-1]), dtype=low.dtype, device=str(low.device))
    out[..., ::2] = low
    out[..., 1::2] = high
    return out


def pack_int4(x: Any) -> _core.Tensor:
    """Integers of four bits, one to a byte, as uint8 with two to a byte; the last axis halves.

    x: any int8 array of -8 to 7, or uint8 of 0 to 15; its last axis must be even. The work is done on its device.
    Raises TypeError for another dtype, ValueError for numbers that do not fit and for an odd axis.
    """
    tensor = _read(x, "pack_int4()", _BYTES)
    signed = tensor.dtype == "int8"
    values = _bytes_of(tensor, str(tensor.dtype))
    low, high = (-8, 7) if signed else (0, 15)
    if values.size and not (low <= int(values.min()) and int(values.max()) <= high):
        raise ValueError(
            f"pack_int4(): four bits hold {low} to {high}, and the array has {int(values.min())} to "
            f"{int(values.max())}. Clip it first"
        )
    packed: _core.Tensor = _pack(_bytes_of(tensor), "pack_int4()")
    return packed


def unpack_int4(x: Any, *, signed: bool = True) -> _core.Tensor:
    """Integers of four bits, two to a byte (uint8 or int8), as int8 of -8 to 7; the last axis doubles.

    signed=False: as uint8 of 0 to 15. The work is done on the array's device.
    """
    low, high = _split(_bytes_of(_read(x, "unpack_int4()", _BYTES)))
    unpacked = _interleave(low, high)
    if signed:  # the fourth bit is the sign
        unpacked = ((unpacked ^ 8).view("int8") - 8).astype("int8")
    result: _core.Tensor = unpacked
    return result


def pack_float4(x: Any) -> _core.Tensor:
    """float4_e2m1fn with a byte for each element (ml_dtypes), or their bits as uint8, as a packed float4_e2m1fn tensor.

    The shape stays; two elements share a byte. The last axis must be even. The work is done on the array's device.
    Raises TypeError for another dtype, ValueError for an odd axis and for bytes above 15.
    """
    tensor = _read(x, "pack_float4()", (_FLOAT4, *_BYTES))
    if tensor.dtype == _FLOAT4 and not tensor.padded:
        return tensor
    values = _bytes_of(tensor)
    if values.size and int(values.max()) > 15:
        raise ValueError("pack_float4(): a byte is above 15, which is no number of four bits. Mask it: x & 15")
    packed = _pack(values, "pack_float4()")
    return _core.reinterpret(packed, dtype=_FLOAT4, shape=tuple(tensor.shape), padded=False)


def unpack_float4(x: Any) -> _core.Tensor:
    """A packed float4_e2m1fn tensor, or PyTorch's float4_e2m1fn_x2, as one with a byte for each element.

    NumPy takes the result, with ml_dtypes: convert(unpack_float4(x), "numpy").astype("float32"). An x2 tensor's last
    axis doubles. The work is done on the array's device.
    """
    tensor = _read(x, "unpack_float4()", (_FLOAT4, _FLOAT4 + "_x2"))
    if tensor.padded:
        return tensor
    shape = tuple(tensor.shape)
    if tensor.dtype == _FLOAT4:
        if shape[-1] % 2:
            raise ValueError(f"unpack_float4(): the last axis has {shape[-1]} elements, so that rows begin in mid-byte")
        tensor = _core.reinterpret(tensor, dtype="uint8", shape=(*shape[:-1], shape[-1] // 2), padded=False)
    unpacked = _interleave(*_split(_bytes_of(tensor)))
    return _core.reinterpret(unpacked, dtype=_FLOAT4, padded=True)
