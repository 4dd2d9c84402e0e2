"""How a reduction runs: its dimensions, the shape of its blocks, and the words that its kernel takes."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbridge.nd._kernels.reduction_source import MAX_THREADS, Shape, lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

_STRUCT_CODES = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
    "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
_SERIAL = 16  # elements that a thread should have before an output is split over several blocks
_BLOCKS_PER_MULTIPROCESSOR = 8
_NARROW = 2**31 - 2**20  # below it the 32-bit indices of a last, partial pass do not overflow


def pack_scalar(value: Any, dtype: str) -> list[int]:
    """Two words with the scalar in the memory format of `dtype`."""
    if dtype == "bfloat16":
        bits = struct.unpack("<I", struct.pack("<f", float(value)))[0]
        data = struct.pack("<H", ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF)
    elif dtype.startswith("complex"):
        number = complex(value)
        data = struct.pack("<2f" if dtype == "complex64" else "<2d", number.real, number.imag)
    else:
        convert = bool if dtype == "bool" else int if "int" in dtype else float
        data = struct.pack("<" + _STRUCT_CODES[dtype], convert(value))
    return list(struct.unpack("<2Q", data.ljust(16, b"\0")))


def divisor_words(extent: int, wide: bool) -> list[int]:
    """The divisor as device/elementwise.cuh takes it (Granlund and Montgomery, 1994)."""
    if wide:
        return [extent, 0]
    shift = (extent - 1).bit_length()
    magic = (((1 << 32) * ((1 << shift) - extent)) // extent + 1) & 0xFFFFFFFF
    return [extent | magic << 32, shift]


class Dims(NamedTuple):
    """Some dimensions of the loop, innermost first: extents, and a row of strides for each operand."""

    shape: list[int]
    strides: list[list[int]]


def merge_dims(shape: Sequence[int], strides: Sequence[Sequence[int]], leader: int) -> Dims:
    """Drops extents of 1, sorts by the leader's strides and merges what lies one after the other."""
    axes = [axis for axis in range(len(shape) - 1, -1, -1) if shape[axis] != 1]
    axes.sort(key=lambda axis: abs(strides[leader][axis]))
    extents: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for axis in axes:
        steps = [row[axis] for row in strides]
        if extents and all(step == row[-1] * extents[-1] for step, row in zip(steps, rows, strict=True)):
            extents[-1] *= shape[axis]
            continue
        extents.append(shape[axis])
        for row, step in zip(rows, steps, strict=True):
            row.append(step)
    return Dims(extents, rows)


class Plan(NamedTuple):
    """How a reduction runs."""

    shape: Shape
    kept: Dims
    reduced: Dims
    kept_size: int
    reduced_size: int
    block: tuple[int, int]
    grid: tuple[int, int]
    chunk: int

    @property
    def splits(self) -> int:
        return self.grid[1]


def power_of_two(n: int, most: int) -> int:
    return min(most, 1 << max(n - 1, 0).bit_length())


def plan_reduction(kept: Dims, reduced: Dims, kinds: str, multiprocessors: int) -> Plan:
    """Chooses the block, which way its threads lie, and how often each output is split."""
    kept_size, reduced_size = math.prod(kept.shape), math.prod(reduced.shape)
    inner_kept = abs(kept.strides[0][0]) if kept.shape else None
    inner_reduced = abs(reduced.strides[0][0]) if reduced.shape else None
    columns = inner_kept is not None and (inner_reduced is None or 0 < inner_kept < inner_reduced)
    if columns:
        across = power_of_two(kept_size, 32)
        lanes = max(1, min(MAX_THREADS // across, power_of_two(reduced_size, MAX_THREADS)))
        block, outputs = (across, lanes), across
    else:
        lanes = power_of_two(reduced_size, MAX_THREADS)
        outputs = min(MAX_THREADS // lanes, power_of_two(kept_size, MAX_THREADS))
        block = (lanes, outputs)
    blocks = max(1, -(-kept_size // outputs))
    wanted = -(-multiprocessors * _BLOCKS_PER_MULTIPROCESSOR // blocks)
    splits = max(1, min(wanted, reduced_size // (lanes * _SERIAL), 65535))
    chunk = max(1, -(-reduced_size // splits))
    splits = max(1, -(-reduced_size // chunk))
    wide = max(kept_size, reduced_size) > _NARROW
    shape = Shape(len(kept.shape), len(reduced.shape), wide, columns, splits > 1, kinds)
    return Plan(shape, kept, reduced, kept_size, reduced_size, block, (blocks, splits), chunk)


def plan_words(plan: Plan, outputs: int) -> list[int]:
    """The block of words that the kernel takes, with zeros for the scalars."""
    wide = plan.shape.wide
    words = [plan.kept_size, plan.reduced_size, plan.chunk, plan.splits]
    words += [0, 0] * plan.shape.kinds.count("s")
    for dims in (plan.kept, plan.reduced):
        for extent in dims.shape[:-1]:
            words += divisor_words(max(extent, 1), wide)  # nothing is divided by an extent of 0
    for dims in (plan.kept, plan.reduced):
        for row in dims.strides:
            words += [stride & 0xFFFFFFFFFFFFFFFF for stride in row]
    if len(words) != lay_out(plan.shape, outputs).words:
        raise SystemError("the words of a reduction do not match its layout")
    return words
