"""Uniform integers between bounds that are numbers, by the kernels, or arrays; and numbers by rejection."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._draws import _Draws
from dlbridge.nd._dtypes import BY_NAME, iinfo, kind_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dlbridge.nd._arguments import DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray
_INT64, _UINT64 = BY_NAME["int64"], BY_NAME["uint64"]
_MASK = (1 << 64) - 1
_EXACT = 1 << 53  # float64 holds every integer up to here


class _Integers(_Draws):
    def _accepted(
        self,
        n: int,
        device: DeviceLike,
        parameters: list[ndarray],
        propose: Callable[..., tuple[ndarray, ndarray]],
    ) -> ndarray:
        """n numbers by rejection: propose(source, count, device, *parameters) gives numbers, and which of them hold.

        The numbers come from a generator of their own, so that this one uses one counter however many are rejected.
        The host waits for each round.
        """
        source = self.spawn(1)[0]
        values, holds = propose(source, n, device, *parameters)
        rest = _native.nonzero(~holds)[0]
        while rest.size:
            of_rest = [p if p.ndim == 0 else p[rest] for p in parameters]
            again, holds = propose(source, rest.size, device, *of_rest)
            values[rest] = again
            rest = rest[~holds]
        return values

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Shape | None = None,
        dtype: DTypeLike = "int64",
        endpoint: bool = False,
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Uniform integers in [low, high), or [0, low) with one argument; endpoint includes the upper bound.

        The bounds are integers, or arrays that broadcast to `size`, of integers or of floats that are cut to integers.
        ValueError for an empty range or bounds that the dtype cannot hold; for arrays, the host waits.
        """
        where = self._device if device is None else device
        drawn = self._bits.draw_integers(low, high, size, dtype, endpoint, where)
        if drawn is not None:
            return drawn
        low, high = (0, low) if high is None else (low, high)
        found = resolve(dtype)
        limits = _limits(found)
        if any(isinstance(bound, (list, tuple)) or getattr(bound, "ndim", 0) for bound in (low, high)):
            return self._integers_between(low, high, size, found, limits, endpoint, device)
        first, last = index(low), index(high) - (not endpoint)
        if last < first:
            raise ValueError(f"integers(): from {first} to {last} (included) there is no integer")
        if first < limits[0] or last > limits[1]:
            raise ValueError(f"integers(): [{first}, {last}] does not fit in {found}, which holds {limits}")
        extent = last - first + 1
        low_bits = first - (1 << 64) if first >= 1 << 63 else first  # the kernel adds modulo 2**64
        return self._draw("integer", size, found, None, device, low=low_bits, extent=0 if extent > _MASK else extent)

    def _integers_between(
        self,
        low: Any,
        high: Any,
        size: Shape | None,
        dtype: Any,
        limits: tuple[int, int],
        endpoint: bool,
        device: DeviceLike,
    ) -> ndarray:
        """Bounds in arrays: random words modulo the extents, all of them modulo 2**64."""
        if not endpoint and isinstance(high, (list, tuple)):
            high, endpoint = _less_one(high), True  # 2**64 is a bound of uint64, and no element of an array
        low, high, shape, device = self._operands(low, high, size, device)
        first = _bits(low, limits, True, dtype, device)
        last = _bits(high, limits, endpoint, dtype, device) - (0 if endpoint else 1)
        ordered = _UINT64 if limits[1] > iinfo(_INT64).max else _INT64
        wrong = last.astype(ordered) < first.astype(ordered)
        if not endpoint:
            wrong |= high <= limits[0]  # where one less may have wrapped around
        if bool(wrong.any()):
            raise ValueError("integers(): between some bounds there is no integer; each low must be below its high")
        extent = _native.broadcast_to(last - first + 1, shape).reshape(-1)  # 0: all of 2**64
        excess = (0 - extent) % extent  # 2**64 modulo it: as many words would favour the smaller values

        def propose(
            source: _Draws, n: int, device: DeviceLike, extent: ndarray, excess: ndarray
        ) -> tuple[ndarray, ndarray]:
            word = source._draw("integer", (n,), _UINT64, None, device)
            return _native.where(extent == 0, word, word % extent), word >= excess

        drawn = self._accepted(extent.size, device, [extent, excess], propose).reshape(shape)
        return (drawn + first).astype(dtype, copy=False)


@lru_cache(maxsize=32)
def _limits(dtype: Any) -> tuple[int, int]:
    return (0, 1) if kind_of(dtype) == "b" else (iinfo(dtype).min, iinfo(dtype).max)


def _less_one(bounds: Any) -> Any:
    """Of an element or a nested list, one less than its integers."""
    if isinstance(bounds, (list, tuple)):
        return [_less_one(bound) for bound in bounds]
    return (int(bounds) if isinstance(bounds, float) and abs(bounds) < inf else bounds) - 1


def _bits(bound: Any, limits: tuple[int, int], included: bool, dtype: Any, device: DeviceLike) -> ndarray:
    """A bound of integers() modulo 2**64, where it is one of the dtype, or one more if it is not included."""
    end = limits[1] + (not included)
    if not isinstance(bound, ndarray):
        fits, bits = limits[0] <= (value := index(bound)) <= end, _native.asarray(value & _MASK, _UINT64, device=device)
    else:
        kind = kind_of(bound.dtype)
        if kind not in "buif":
            raise TypeError(f"integers(): bounds are {bound.dtype}; they must be integers")
        if kind == "f":
            bound = _native.trunc(bound)
            limits, end = (max(limits[0], -_EXACT), 0), min(end, _EXACT)
        fits = bool(((bound >= limits[0]) & (bound <= end)).all())
        bits = bound.astype(_INT64 if kind == "f" else _UINT64).astype(_UINT64) if fits else bound
    if not fits:
        raise ValueError(f"integers(): bounds are not all in [{limits[0]}, {end}], which {dtype} takes")
    return bits
