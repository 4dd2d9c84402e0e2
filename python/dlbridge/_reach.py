"""The bytes that an array reaches."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def reach(itemsize: int, shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The lowest byte that an array with elements reaches from its first one, and the one behind the highest."""
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + itemsize
