"""r_ and c_: arrays from what stands between brackets."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, is_scalar
from dlbridge.nd._joining import concatenate
from dlbridge.nd._manipulation import transpose
from dlbridge.nd._ranges import arange, linspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ndarray = _native.ndarray


def _range(piece: slice) -> ndarray:
    start = 0 if piece.start is None else piece.start
    if isinstance(piece.step, complex):
        return linspace(start, piece.stop, int(abs(piece.step)))
    return arange(start, piece.stop, 1 if piece.step is None else piece.step)


def _directive(text: str) -> list[int]:
    """The numbers of "axis,dimensions,first": "r" and "c" are matrices, which there are none of."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise ValueError(
            f"r_: {text!r} is unknown; give 'axis', 'axis,dimensions' or 'axis,dimensions,first' in integers. "
            "There are no matrices"
        )
    return numbers


class _Concatenator:
    """What its brackets hold, along one axis: arrays, numbers, and slices, which are ranges (an imaginary step: that
    many points, both ends included).

    A string in front says along which axis, how many axes each piece gets at least, and at which of them its own begin.
    Source: NumPy.
    """

    def __init__(self, axis: int, dimensions: int, first: int, name: str) -> None:
        self._axis, self._dimensions, self._first, self._name = axis, dimensions, first, name

    def __getitem__(self, key: Any) -> ndarray:
        axis, dimensions, first = self._axis, self._dimensions, self._first
        pieces = list(key) if isinstance(key, tuple) else [key]
        if pieces and isinstance(pieces[0], str):
            numbers_given = _directive(pieces.pop(0))
            axis, dimensions, first = (*numbers_given, *(axis, dimensions, first)[len(numbers_given) :])
        arrays = [self._widened(piece, dimensions, first) for piece in pieces]
        numbers = [piece for piece in pieces if is_scalar(piece)]
        kept = [x for x, piece in zip(arrays, pieces, strict=True) if not is_scalar(piece)]
        dtype = _native.result_type(*(x.dtype for x in kept), *numbers)
        device = next((piece.device for piece in pieces if isinstance(piece, ndarray)), None)
        arrays = [x.astype(dtype, copy=False) for x in arrays]
        return concatenate([x if device is None else x.to_device(device) for x in arrays], axis)

    def _widened(self, piece: Any, dimensions: int, first: int) -> ndarray:
        x = _range(piece) if isinstance(piece, slice) else as_array(piece)
        lacking = dimensions - x.ndim
        if lacking <= 0:
            return x
        own = x.ndim
        x = x.reshape((1,) * lacking + x.shape)
        start = first + lacking + 1 if first < 0 else first
        order = list(range(lacking))
        order[start:start] = range(lacking, lacking + own)
        return transpose(x, order)

    def __repr__(self) -> str:
        return f"dlbridge.nd.{self._name}"

    def __len__(self) -> int:
        return 0


r_ = _Concatenator(0, 1, -1, "r_")
c_ = _Concatenator(-1, 2, 0, "c_")
