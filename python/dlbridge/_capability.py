"""What a consumer can take, as data, and the one check that reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlbridge import _core

BOOL = frozenset({"bool"})
INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = frozenset({"float16", "float32", "float64"})
COMPLEX = frozenset({"complex64", "complex128"})
BFLOAT16 = frozenset({"bfloat16"})
NUMPY_NATIVE = BOOL | INTEGERS | FLOATS | COMPLEX
FLOAT8 = frozenset(
    f"float8_{kind}" for kind in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
)
FLOAT8_TORCH = frozenset(f"float8_{kind}" for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"))
ML_DTYPES = BFLOAT16 | FLOAT8 | {"float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"}

HOST = frozenset({"cpu", "cuda_host", "rocm_host"})
CUDA = frozenset({"cuda", "cuda_managed"})
ALL_NDIMS = range(65)


class Layout(IntEnum):
    """How much a consumer asks of strides; each level includes those above it."""

    ANY = 0
    NON_NEGATIVE = 1
    PERMUTED = 2  # dense, the axes in any order
    ROW_MAJOR = 3


class Access(Enum):
    """What a consumer does with the read-only mark."""

    KEEPS = "keeps the mark"
    IMMUTABLE = "never writes"
    WRITES = "lets its user write, and has no mark"


class Outcome(Enum):
    AS_IS = "as is"
    COPY = "copy needed"
    REFUSED = "refused"


@dataclass(frozen=True)
class Verdict:
    """What becomes of a tensor at a consumer; `reason` and `remedy` are empty for AS_IS."""

    outcome: Outcome
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Consumer:
    """One row of the capability table: a framework, and the tensors it takes with no copy."""

    name: str
    module: str
    route: Callable[[ModuleType, _core.Tensor], object]
    dtypes: frozenset[str]
    devices: frozenset[str]
    access: Access
    layout: Layout = Layout.ANY
    ndims: range = ALL_NDIMS
    alignment_bytes: int = 1  # of the data pointer, on the host
    overlap: bool = True  # takes stride 0 on memory that may be written
    copies: str = ""  # why the consumer itself always copies; empty: it does not
    copied_dtypes: frozenset[str] = frozenset()  # dtypes that it copies even so
    note: str = ""  # the remedy for a dtype or a device that it cannot take


def is_row_major(tensor: _core.Tensor) -> bool:
    """Dense in C order; strides of axes of extent 1 (and all of an empty tensor) do not count."""
    expected = tensor.itemsize
    for extent, stride_bytes in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if extent > 1 and stride_bytes != expected and tensor.size:
            return False
        expected *= extent
    return True


def is_permuted_dense(tensor: _core.Tensor) -> bool:
    """Dense in some order of the axes."""
    expected = tensor.itemsize
    axes = sorted((s, n) for s, n in zip(tensor.strides, tensor.shape, strict=True) if n > 1)
    for stride_bytes, extent in axes:
        if stride_bytes != expected and tensor.size:
            return False
        expected *= extent
    return True


def _live_strides(tensor: _core.Tensor) -> list[int]:
    return [s for s, n in zip(tensor.strides, tensor.shape, strict=True) if n > 1] if tensor.size else []


def layout_fault(row: Consumer, tensor: _core.Tensor) -> str:
    """What is wrong with the strides for a row that is not of Layout.ANY."""
    if min(tensor.strides, default=0) < 0 and min(_live_strides(tensor), default=0) < 0:
        return f"strides {tensor.strides} bytes are negative"
    if row.layout == Layout.ROW_MAJOR and not is_row_major(tensor):
        return f"strides {tensor.strides} bytes of shape {tensor.shape} are not dense in C order"
    if row.layout == Layout.PERMUTED and not is_permuted_dense(tensor):
        return f"strides {tensor.strides} bytes of shape {tensor.shape} are not dense in any order of the axes"
    return ""


def _readonly_fault(row: Consumer, tensor: _core.Tensor) -> str:
    if tensor.readonly:
        return f"the memory is read-only, and {row.name} would let its user write to it"
    return ""


def _overlap_fault(row: Consumer, tensor: _core.Tensor) -> str:
    if 0 in tensor.strides and 0 in _live_strides(tensor):
        return f"strides {tensor.strides} bytes let elements share memory that {row.name} may write to"
    return ""


def _alignment_fault(row: Consumer, tensor: _core.Tensor) -> str:
    if tensor.data_ptr % row.alignment_bytes and tensor.device.type in HOST:
        return f"data pointer {tensor.data_ptr:#x} is not aligned to the {row.alignment_bytes} bytes it works with"
    return ""


# Faults that a dense, aligned, writable copy cures, and which rows can have each of them.
_Fault = Callable[[Consumer, "_core.Tensor"], str]
_CURABLE: tuple[tuple[_Fault, Callable[[Consumer], bool]], ...] = (
    (_readonly_fault, lambda row: row.access is Access.WRITES),
    (layout_fault, lambda row: row.layout is not Layout.ANY),
    (_overlap_fault, lambda row: row.access is Access.WRITES and not row.overlap),
    (_alignment_fault, lambda row: row.alignment_bytes > 1),
)
_PASSES = Verdict(Outcome.AS_IS)


def faults_of(row: Consumer) -> tuple[_Fault, ...]:
    """The checks that a row needs at all."""
    return tuple(fault for fault, applies in _CURABLE if applies(row))


def select(rows: tuple[Consumer, ...], tensor: _core.Tensor) -> tuple[Consumer | None, Verdict]:
    """The row that takes this tensor's device, rank and dtype; None and the reason where there is none."""
    name = rows[0].name
    on_device = [row for row in rows if tensor.device.type in row.devices]
    if not on_device:
        taken = ", ".join(sorted(frozenset().union(*(row.devices for row in rows))))
        reachable = [device for device in ("cpu", "cuda") if any(device in row.devices for row in rows)]
        remedy = f"Move it there: convert(x, {name!r}, device={reachable[0]!r})" if reachable else rows[0].note
        return None, Verdict(Outcome.REFUSED, f"device {tensor.device}; {name} takes {taken}", remedy)
    of_rank = [row for row in on_device if tensor.ndim in row.ndims]
    if not of_rank:
        taken = ", ".join(f"{row.ndims.start} to {row.ndims.stop - 1}" for row in on_device)
        return None, Verdict(Outcome.REFUSED, f"{tensor.ndim} dimensions; {name} takes {taken}", "Reshape it first.")
    for row in of_rank:
        if str(tensor.dtype) in row.dtypes:
            return row, _PASSES
    remedy = of_rank[0].note or "Cast it first, or view it as an unsigned integer of the same width."
    return None, Verdict(Outcome.REFUSED, f"dtype {tensor.dtype}, which {name} does not have or cannot import", remedy)


def check(row: Consumer, faults: tuple[_Fault, ...], tensor: _core.Tensor) -> Verdict:
    """Whether a tensor of a fitting device, rank and dtype can go as it is; `faults` are those of the row."""
    for fault in faults:
        reason = fault(row, tensor)
        if reason:
            return Verdict(Outcome.COPY, reason, "Allow a copy: copy=None or copy=True.")
    return _PASSES


def self_copy(row: Consumer, tensor: _core.Tensor) -> str:
    """Why the consumer makes a copy of its own whatever it is given; empty where it does not."""
    if row.copies:
        return row.copies
    if str(tensor.dtype) in row.copied_dtypes:
        return f"it stores {tensor.dtype} in another form"
    return ""
