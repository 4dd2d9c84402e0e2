"""r_ and c_: arrays from what stands between brackets."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, is_scalar
from dlbridge.nd._joining import concatenate
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


def _widened(x: ndarray, dimensions: int, first: int) -> ndarray:
    """With axes of extent 1 before and behind its own, which begin at `first`."""
    lacking = dimensions - x.ndim
    start = first + lacking + 1 if first < 0 else first
    before = slice(start, None).indices(lacking)[0]
    return x.reshape((1,) * before + x.shape + (1,) * (lacking - before))


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
        arrays: list[Any] = []
        dtypes, numbers, place, all_lie_there = [], [], None, True
        for piece in pieces:
            if isinstance(piece, ndarray):
                x, place = piece, piece if place is None else place
                all_lie_there = all_lie_there and isinstance(x, _native.HostArray)
            elif not isinstance(piece, slice) and is_scalar(piece):
                numbers.append(piece)
                arrays.append(piece)
                continue
            else:
                x, all_lie_there = _range(piece) if isinstance(piece, slice) else as_array(piece), False
            dtypes.append(x.dtype)
            arrays.append(x if x.ndim >= dimensions else _widened(x, dimensions, first))
        device = None if place is None else place.device
        if place is not None and not all_lie_there:
            arrays = [x.to_device(device) if isinstance(x, ndarray) else x for x in arrays]
        if numbers:  # they take the dtype of the arrays beside them
            dtype, shape = _native.result_type(*dtypes, *numbers), (1,) * dimensions
            arrays = [x if isinstance(x, ndarray) else _native.full(shape, x, dtype, device=device) for x in arrays]
        return concatenate(arrays, axis)

    def __repr__(self) -> str:
        return f"dlbridge.nd.{self._name}"

    def __len__(self) -> int:
        return 0


r_ = _Concatenator(0, 1, -1, "r_")
c_ = _Concatenator(-1, 2, 0, "c_")
