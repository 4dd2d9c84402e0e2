"""What is sent: the values by dtype and the layouts, with what every exchange must find at the other end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from math import prod
from typing import Any

# Types with fewer than five bits of precision hold these exactly; all others hold a running number.
_NARROW: dict[str, Sequence[Any]] = {
    "bool": (True, False, True, True, False),
    "float8_e8m0fnu": (1.0, 4.0, 2.0, 16.0, 8.0),
    "float4_e2m1fn": (1.0, -3.0, 2.0, 6.0, -4.0),
    "float6_e2m3fn": (1.0, -3.0, 2.0, 6.0, -4.0),
    "float6_e3m2fn": (1.0, -3.0, 2.0, 6.0, -4.0),
    "float8_e3m4": (1.0, -3.0, 2.0, 6.0, -4.0),
    "float8_e5m2": (1.0, -3.0, 2.0, 6.0, -4.0),
    "float8_e4m3fn": (1.0, -3.0, 2.0, 6.0, -4.0),
}


def values_of(dtype: str, count: int) -> list[Any]:
    """`count` Python values that `dtype` holds exactly, with signs and imaginary parts where it has them."""
    narrow = _NARROW.get(dtype)
    if narrow is not None:
        return list(islice(cycle(narrow), count))
    numbers = [n if n % 3 else -n for n in range(1, count + 1)]
    if dtype.startswith("uint"):
        return [abs(n) for n in numbers]
    if dtype.startswith("complex"):
        return [complex(n, count - n) for n in numbers]
    return numbers if dtype.startswith("int") else [float(n) for n in numbers]


@dataclass(frozen=True)
class Layout:
    """A view of a dense array: `base` is its shape, `shape` that of the view, `picks` the base's elements in it."""

    base: tuple[int, ...]
    shape: tuple[int, ...]
    picks: tuple[int, ...]


def _dense(*shape: int) -> Layout:
    return Layout(shape, shape, tuple(range(prod(shape))))


LAYOUTS: dict[str, Layout] = {
    "contiguous": _dense(3, 4),
    "strided": Layout((3, 8), (3, 4), tuple(range(0, 24, 2))),
    "negative": Layout((12,), (12,), tuple(range(11, -1, -1))),
    "0-d": _dense(),
    "zero-size": _dense(0, 3),
    "offset": Layout((16,), (12,), tuple(range(4, 16))),
    "read-only": _dense(3, 4),
    "delayed": _dense(3, 4),  # on a GPU: written late, on a stream that the consumer does not know
}


@dataclass(frozen=True)
class Case:
    """One array to send: its dtype, layout and device, and from them the values."""

    dtype: str
    layout: str
    device: str = "cpu"

    @property
    def geometry(self) -> Layout:
        return LAYOUTS[self.layout]

    @property
    def base_values(self) -> list[Any]:
        return values_of(self.dtype, prod(self.geometry.base))

    @property
    def values(self) -> list[Any]:
        """The view's values in C order."""
        base = self.base_values
        return [base[i] for i in self.geometry.picks]

    @property
    def new_value(self) -> Any:
        """What is written to the first element: any other value of the list."""
        first, *others = self.values
        other = next((value for value in others if value != first), None)
        if other is not None:
            return other
        return next(value for value in values_of(self.dtype, 5) if value != first)


def flatten(value: Any) -> list[Any]:
    """The numbers in nested lists, in C order."""
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in flatten(part)]
    return [value]


def same(got: Any, expected: Sequence[Any]) -> bool:
    """Equal as flat lists; NaN equals NaN."""
    flat = flatten(got)
    return len(flat) == len(expected) and all(
        a == b or (a != a and b != b) for a, b in zip(flat, expected, strict=True)
    )
