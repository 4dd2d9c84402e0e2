"""The same memory under another dtype, shape or read-only mark, without a copy.

Some consumers cannot name a dtype, or refuse read-only memory that they would never write to.
"""

from __future__ import annotations

from typing import cast

from dlbridge import _core

_CARRIERS: dict[int, str] = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


def as_integers(tensor: _core.Tensor) -> _core.HostTensor:
    """A host tensor's elements as the unsigned integers of the same width: every consumer can name those."""
    return cast(_core.HostTensor, _core.reinterpret(tensor, dtype=_CARRIERS[tensor.itemsize]))


def as_bytes(tensor: _core.Tensor) -> _core.HostTensor:
    """The bytes of a dense row-major host tensor as a one-dimensional uint8 tensor."""
    return cast(_core.HostTensor, _core.reinterpret(tensor, dtype="uint8", shape=(tensor.nbytes,)))


def without_readonly_mark(tensor: _core.Tensor) -> _core.Tensor:
    """`tensor` as if it were writable, for consumers that never write.

    A legacy DLPack capsule cannot carry the mark and so may not be made from a read-only tensor (DLPack 1.0); a
    consumer of immutable arrays that only reads legacy capsules would lose nothing by it.
    """
    return _core.reinterpret(tensor, readonly=False) if tensor.readonly else tensor
