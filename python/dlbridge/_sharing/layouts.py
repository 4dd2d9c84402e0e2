"""An array as a place in a segment, and back: what comes from another process is checked, never trusted."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from dlbridge import _core, _pickle
from dlbridge._reach import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge._sharing.loans import Loan
    from dlbridge._sharing.segments import Mapping, Segment

_MOST_DIMENSIONS = 64  # DLPack's and NumPy's
_ORDER = "<" if sys.byteorder == "little" else ">"
# Elements of a strided view are read as these, which every width has.
_STAND_IN = {1: "|u1", 2: f"{_ORDER}u2", 4: f"{_ORDER}u4", 8: f"{_ORDER}u8", 16: f"{_ORDER}c16"}


class Place(NamedTuple):
    """Where an array is: in which segment of the handle, at which byte its memory begins, and how it lies there.

    strides: in bytes; None where it is dense in C order. offset: of the lowest byte, not of the first element.
    kind: the framework whose array it was, None where it was of none. cuda: whether it is on a GPU, as its segment is.
    """

    segment: int
    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    readonly: bool
    padded: bool
    kind: str | None
    cuda: bool = False


class View:
    """A producer of memory that `owner` keeps, by the attribute that is its protocol."""

    def __init__(self, owner: object, protocol: str, interface: dict[str, Any]) -> None:
        self.owner = owner
        setattr(self, protocol, interface)


def fills(itemsize: int, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether no byte between the lowest and the highest is another's, in any order of axes, backwards or repeated."""
    moving = ((abs(stride), extent) for extent, stride in zip(shape, strides, strict=True) if extent != 1 and stride)
    expected = itemsize
    for stride, extent in sorted(moving):
        if stride != expected:
            return False
        expected *= extent
    return True


def is_packed(tensor: _core.Tensor) -> bool:
    """Whether elements share bytes, so that strides in bytes cannot say where each is."""
    return tensor.size * tensor.itemsize != tensor.nbytes


def strides_of(tensor: _core.Tensor, operation: str) -> tuple[int, ...] | None:
    """The strides in bytes; None where dtype and shape alone say how it lies. ExchangeError where nothing does."""
    if tensor.is_contiguous:
        return None
    if is_packed(tensor):
        raise _core.ExchangeError(
            f"{operation}: dtype {tensor.dtype} is packed, several elements per byte, and the array is not contiguous. "
            "Make it contiguous with the producer's own copy first"
        )
    return tensor.strides


def view(
    mapping: Mapping | Loan, offset: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, width: int
) -> Any:
    """A producer over a mapping, of elements of `width` bytes; `offset` is that of the first element."""
    interface = {
        "version": 3,
        "typestr": _STAND_IN[width],
        "shape": shape,
        "strides": strides,
        "data": (mapping.address + offset, mapping.readonly),
        **mapping.extras,
    }
    return View(mapping, mapping.protocol, interface)


def octets_at(address: int, nbytes: int, owner: object) -> memoryview:
    """Memory of `owner` as bytes to read."""
    interface = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, True)}
    producer = View(owner, "__array_interface__", interface)
    return memoryview(cast(_core.HostTensor, _core.asdlpack(producer)))


def _refuse(operation: str, what: str) -> _core.DataError:
    return _core.DataError(f"{operation}: {what}. The handle is damaged or forged")


def _is_size(value: object, least: int | None = 0) -> bool:
    return type(value) is int and abs(value) < 1 << 62 and (least is None or value >= least)


def check(place: object, count: int, operation: str) -> Place:
    """What was said to be a place in one of `count` segments, with values of the right kinds. DataError otherwise."""
    if not isinstance(place, tuple) or len(place) != len(Place._fields):
        raise _refuse(operation, "a place has other parts than it should")
    found = Place(*place)
    if not (_is_size(found.segment) and found.segment < max(count, 1) and _is_size(found.offset)):
        raise _refuse(operation, f"segment {found.segment!r} at byte {found.offset!r} is not one of {count} segments")
    if type(found.shape) is not tuple or len(found.shape) > _MOST_DIMENSIONS or not all(map(_is_size, found.shape)):
        raise _refuse(operation, f"{found.shape!r} is no shape")
    strides = found.strides
    if strides is not None and (
        type(strides) is not tuple
        or len(strides) != len(found.shape)
        or not all(_is_size(stride, None) for stride in strides)
    ):
        raise _refuse(operation, f"{strides!r} are no strides of shape {found.shape}")
    if type(found.dtype) is not str or not (found.kind is None or type(found.kind) is str):
        raise _refuse(operation, f"{found.dtype!r} is no name of a dtype, or {found.kind!r} none of a framework")
    if not all(type(mark) is bool for mark in (found.readonly, found.padded, found.cuda)):
        raise _refuse(operation, "a mark is neither set nor clear")
    return found


@functools.lru_cache(maxsize=64)
def _width_of(dtype: str, padded: bool) -> tuple[int, int]:
    """The bytes of an element of that dtype, and the bits that it has for itself."""
    like = _core.reinterpret(_core.asdlpack(b""), dtype=dtype, shape=(0,), padded=padded)
    return like.itemsize, 8 * like.itemsize if padded else like.dtype.bits * like.dtype.lanes


def _width_at(place: Place, operation: str) -> tuple[int, int]:
    """The same of a place. DataError where it has no dtype."""
    try:
        return _width_of(place.dtype, place.padded)
    except (ValueError, BufferError) as error:
        raise _refuse(operation, f"{place.dtype!r} is no dtype") from error


def nbytes_of(place: Place, operation: str) -> int:
    """The bytes of the elements alone. DataError where the dtype is none, or no memory is as large."""
    _, bits = _width_at(place, operation)
    nbytes = (math.prod(place.shape) * bits + 7) // 8
    if nbytes >= 1 << 62:
        raise _refuse(operation, f"shape {place.shape} is beyond all memory")
    return nbytes


def restored(place: Place, segments: Sequence[Segment | Loan], operation: str) -> _core.Tensor:
    """The array at a place that was checked, over the memory. DataError where it does not lie within the segment."""
    nbytes = nbytes_of(place, operation)
    if nbytes == 0 and not place.cuda:
        return _pickle.rebuild(bytearray(), place.dtype, place.shape, place.readonly, place.padded)
    if not segments:
        raise _refuse(operation, "an array with elements, or on a GPU, has no segment")
    segment = segments[place.segment]
    if place.cuda != segment.is_cuda:
        raise _refuse(operation, f"an array {'' if place.cuda else 'not '}on a GPU lies in memory that is elsewhere")
    if nbytes == 0:
        device = f"cuda:{cast('Loan', segment).held.ordinal}"
        return _pickle.rebuild_on(bytearray(), place.dtype, place.shape, place.readonly, place.padded, device)
    if not (segment.writable or place.readonly):
        raise _refuse(operation, "an array that may be written to lies in memory that may not")
    if place.strides is None:
        mapping = segment.mapped(place.offset + nbytes, operation)
        octets = _core.asdlpack(view(mapping, place.offset, (nbytes,), None, 1))
        return _pickle.rebuild_over(octets, place.dtype, place.shape, place.readonly, place.padded)
    width, _ = _width_at(place, operation)
    if width not in _STAND_IN:
        raise _refuse(operation, f"{place.dtype} has no strides")
    low, high = reach(width, place.shape, place.strides)
    mapping = segment.mapped(place.offset + high - low, operation)
    try:
        elements = _core.asdlpack(view(mapping, place.offset - low, place.shape, place.strides, width))
        return _core.reinterpret(elements, dtype=place.dtype, readonly=place.readonly, padded=place.padded)
    except (ValueError, BufferError, OverflowError) as error:
        raise _refuse(operation, f"strides {place.strides} do not fit {place.dtype}: {error}") from error
