"""The source of random bits that Generators draw from: Philox4x32-10, a counter under a key (Salmon et al. 2011)."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import DeviceLike, Shape

_MASK = (1 << 64) - 1


def _mixed(value: int) -> int:
    """A finaliser of SplitMix64: neighbouring seeds give unrelated keys."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def _word(value: Any) -> int:
    """An integer of a seed; NumPy's booleans are 0 and 1, as Python's are."""
    return index(value.item() if hasattr(value, "item") else value)


def key_of(seed: Any) -> int:
    """The 64-bit key of a seed: an integer of any size, a sequence of them, or None for one of the system's entropy."""
    if type(seed) is int and 0 <= seed <= _MASK:
        return _mixed(seed)
    if seed is None:
        import os

        return int.from_bytes(os.urandom(8), "little")
    if getattr(seed, "ndim", 0) == 1:  # a vector of any library
        seed = seed.tolist()
    words = [_word(word) for word in seed] if isinstance(seed, (list, tuple)) else [_word(seed)]
    key = 0
    for word in words:
        if word < 0:
            raise ValueError(f"random: the seed is {word}; give an integer of 0 or more")
        key = _mixed(key ^ (word & _MASK))
        while word > _MASK:
            word >>= 64
            key = _mixed(key ^ (word & _MASK))
    return key


class Philox4x32(_native.BitStream):
    """A stream of random bits, the same on the host and on every device: a key, made of a seed, and a counter.

    seed: an integer of any size, a sequence of them, None for one of the system. Generators over the same one take
    their numbers in turn. CuPy's name for it is Philox4x3210.
    """

    def __init__(self, seed: Any = None) -> None:
        self._set(key_of(seed), 0)

    def __repr__(self) -> str:
        key, offset = self._place
        return f"<dlbridge.nd.random.Philox4x32 key={key:#018x} offset={offset}>"

    def __getstate__(self) -> dict[str, Any]:
        return self.state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(0)  # type: ignore[misc]
        self.state = state

    @property
    def state(self) -> dict[str, Any]:
        """The state, to be set again: the algorithm, the key, and the number of counters used."""
        key, offset = self._place
        return {"algorithm": "philox4x32-10", "key": key, "offset": offset}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        if state.get("algorithm") != "philox4x32-10":
            raise ValueError(f"Generator.state: {state!r} is not a state of philox4x32-10")
        self._set(index(state["key"]), index(state["offset"]))

    def spawn(self, n_children: int) -> list[Philox4x32]:
        """Independent streams, which this one's later numbers do not overlap."""
        start = self.take(n_children)
        return [type(self)((self.key, start + child)) for child in range(n_children)]

    def random_raw(self, size: Shape | None = None, *, device: DeviceLike = None) -> Any:
        """Random bits as uint64: an array, of no dimension by default."""
        from dlbridge.nd._arguments import shape_of

        x = _native.empty(() if size is None else shape_of(size, "random_raw"), "uint64", device=device)
        if x.size:
            self.fill(x, "integer")
        return x
