"""Bits in bytes."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, normalize_axis
from dlbridge.nd._dtypes import kind_of
from dlbridge.nd._joining import concatenate
from dlbridge.nd._manipulation import moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray


def _check_order(bitorder: str, operation: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{operation}(): bitorder is {bitorder!r}; give 'big' or 'little'")


def _number(a: ndarray, axis: int | None, operation: str) -> int | None:
    return None if axis is None else normalize_axis(axis, a.ndim, operation)


def _bits_last(a: ndarray, number: int | None) -> ndarray:
    return a.reshape(-1) if number is None else moveaxis(a, number, -1)


def packbits(a: ArrayLike, /, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Eight elements a byte, a bit for each that is not 0, along an axis or of the flattened array; zeros at the end.

    a: integers or bools. bitorder: "big", where the first element is the highest bit, or "little". Source: NumPy.
    """
    packed = _native.pack_bits(a, bitorder) if axis is None else _native.pack_bits_along(a, axis, bitorder)
    if packed is not None:
        return packed
    a = as_array(a)
    if kind_of(a.dtype) not in "biu":
        raise TypeError(f"packbits(): the array is {a.dtype}; give integers or bools")
    _check_order(bitorder, "packbits")
    number = _number(a, axis, "packbits")
    bits = _bits_last(a, number)
    lacking = -bits.shape[-1] % 8
    if lacking:
        padding = _native.empty((*bits.shape[:-1], lacking), a.dtype, device=a.device)
        padding.fill(0)
        bits = concatenate([bits, padding], -1)
    packed = _native.pack_bits(bits, bitorder).reshape((*bits.shape[:-1], bits.shape[-1] // 8))
    return packed if number is None else moveaxis(packed, -1, number)


def unpackbits(a: ArrayLike, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> ndarray:
    """The bits of bytes as uint8, along an axis or of the flattened array.

    count: how many to give; more than there are: zeros follow; negative: so many are left out. bitorder as for
    packbits(). Source: NumPy.
    """
    if axis is not None:
        unpacked = _native.unpack_bits_along(a, axis, count, bitorder)
    else:
        unpacked = _native.unpack_bits(a, bitorder) if count is None else None
    if unpacked is not None:
        return unpacked
    a = as_array(a)
    if a.dtype.name != "uint8":
        raise TypeError(f"unpackbits(): the array is {a.dtype}; give uint8")
    _check_order(bitorder, "unpackbits")
    number = _number(a, axis, "unpackbits")
    there = 8 * (a.size if number is None else a.shape[number])
    if count is not None and -count > there:
        raise ValueError(f"unpackbits(): count is {count}, and there are {there} bits")
    data = _bits_last(a, number)
    bits = _native.unpack_bits(data, bitorder).reshape((*data.shape[:-1], there))
    if count is not None:
        lacking = count - bits.shape[-1]
        if lacking > 0:
            padding = _native.empty((*bits.shape[:-1], lacking), "uint8", device=a.device)
            padding.fill(0)
            bits = concatenate([bits, padding], -1)
        bits = bits[..., :count]
    return bits if number is None else moveaxis(bits, -1, number)
