"""planes(): the planes of a video frame as tensors."""

from __future__ import annotations

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ON_A_DEVICE = ("cuda",)


def _elements(frame: Any, index: int) -> tuple[str, int] | None:
    """The dtype and the number of components of a pixel; None where they are no whole elements side by side."""
    layout = frame.format
    parts = [part for part in layout.components if part.plane == index]
    plane = frame.planes[index]
    itemsize = (parts[0].bits + 7) // 8 if parts else 0
    same = len({(part.bits, part.width) for part in parts}) == 1 and parts[0].width == plane.width
    if not same or parts[0].bits < 8 or itemsize not in (1, 2, 4):
        return None
    packed = len(frame.planes) == 1
    if packed and layout.padded_bits_per_pixel != 8 * itemsize * len(parts):  # a pixel has bits that are no component
        return None
    is_float = "f32" in layout.name or "f16" in layout.name
    return f"{'float' if is_float else 'uint'}{8 * itemsize}", len(parts)


def _plane(frame: Any, index: int) -> _core.Tensor:
    from dlbridge import nd

    plane = frame.planes[index]
    raw = _core.asdlpack(plane, protocol="buffer")
    if not plane.line_size:  # a palette
        return raw
    known = _elements(frame, index)
    dtype, channels = known or ("uint8", 1)
    itemsize = _core.DType(dtype).itemsize
    rows = _core.reinterpret(raw, dtype=dtype, shape=(plane.height, plane.line_size // itemsize))
    if known is None:
        return rows
    pixels = nd.from_dlpack(rows)[:, : plane.width * channels]
    view: _core.Tensor = pixels if channels == 1 else pixels.reshape(plane.height, plane.width, channels, copy=False)
    return view


def planes(frame: Any) -> list[_core.Tensor]:
    """The planes of a PyAV VideoFrame, in its order, each a tensor over the frame's memory.

    A plane is (height, width), or (height, width, components) where a pixel's components lie side by side (RGB; the
    chroma of NV12), with the rows' padding in the strides; their order is that of the memory. Planes whose pixels are
    no whole elements (YUYV, bits, RGB565, padded RGB0) come as rows of bytes, padding included, palettes as bytes.
    Frames that a GPU decoded give tensors on it. The frame's memory lives as long as a plane of it; PyAV may hand out a
    frame that is still a reference of the decoder, so write to copies only.

    Raises TypeError for what is no such frame, BufferError for a format in the opposite byte order.
    """
    if not all(hasattr(frame, name) for name in ("planes", "format", "width", "height")):
        raise TypeError(f"planes(): the object is {type(frame).__qualname__}, not a VideoFrame of PyAV")
    if frame.format.name in _ON_A_DEVICE:
        return [_core.asdlpack(plane) for plane in frame.planes]
    if frame.format.is_big_endian and any(part.bits > 8 for part in frame.format.components):
        raise _core.ExchangeError(
            f"planes(): the frame's format is {frame.format.name}, which is big-endian; DLPack needs the native order. "
            f"Convert it first: frame.reformat(format={frame.format.name[:-2] + 'le'!r})"
        )
    return [_plane(frame, index) for index in range(len(frame.planes))]
