"""Arrays of any framework as buffers of nccl4py: dtype, layout and stream are seen to.

``with source(x, stream=s) as a, buf(y, stream=s) as b: comm.allreduce(a, b, nccl.core.SUM, stream=s)``: nccl4py takes
pointers and asks nobody whether the data is ready, who may write to it or how it lies. `source` and `buf` do.
"""

from __future__ import annotations

from dlbridge import _core
from dlbridge._use import use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["buf", "source"]

# As kNcclTypes of bridge/include/dlbridge/converters/nccl.h, but for float8, which cuda.core, by which nccl4py reads,
# does not know; and what stands for others.
_KNOWN = frozenset(["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"])
_PARTS = {"bool": ("uint8", 1), "complex32": ("float16", 2), "complex64": ("float32", 2), "complex128": ("float64", 2)}
_LEGACY_DEFAULT = 1


class source(use):
    """An array that NCCL reads, as what nccl4py's methods take: ``with source(x, stream=s) as a: comm.send(a, ...)``.

    x: a CUDA array of any framework, dense in C order. Read-only ones (JAX's), too. Its dtype is one that nccl4py
    reads: int8, uint8, int32, uint32, int64, uint64, float16, float32, float64, and bfloat16, for which it wants
    ml_dtypes. A bool is a uint8: its maximum is "or", its minimum "and". A complex number is two floats, along a last
    axis: sums and averages are right, products and extremes are not.
    stream: the one that the call of nccl4py is given: a handle, an object with ``__cuda_stream__``, or None or 0 for
    the legacy default stream, which is nccl4py's own default.

    At the start the stream waits for the data, and no host does; at the end of the block the producer's stream waits
    for what was queued. A group must end within the block. Which device it is, nccl4py holds against the communicator.

    Raises what asdlpack() raises; BufferError for an array that is on the host or not dense, TypeError for another
    dtype.
    """

    _operation = "source()"

    def __init__(self, x: Any, *, stream: Any = None) -> None:
        """As the class says."""
        handle = _LEGACY_DEFAULT if stream is None or (isinstance(stream, int) and stream == 0) else stream
        super().__init__(x, stream=handle)

    def __enter__(self) -> _core.Tensor:
        checked = _core.asdlpack(self._source)
        self._check(checked)
        if checked.owner is None:
            self._source = checked  # a capsule is good for one reading
        return _as_nccl_has_it(super().__enter__())

    def _check(self, tensor: _core.Tensor) -> None:
        if isinstance(tensor, _core.HostTensor):
            raise BufferError(
                f"{self._operation}: the array is on {tensor.device}; NCCL moves the memory of CUDA devices. Copy it "
                'to one first, nd.asarray(x, device="cuda"), or use dlbridge.mpi'
            )
        dtype = str(tensor.dtype)
        if dtype not in _KNOWN and dtype not in _PARTS:
            raise TypeError(
                f"{self._operation}: dtype {dtype} is none that nccl4py reads: {', '.join(sorted(_KNOWN))}, or bool "
                "and complex numbers, which are made of them. Cast it, or send its bytes as a view of dtype uint8"
            )
        if not tensor.is_contiguous:
            raise BufferError(
                f"{self._operation}: shape {tensor.shape} with strides {tensor.strides} bytes is not dense in C order, "
                "as all ranks must have it. Make a dense copy first: nd.ascontiguousarray(x)"
            )


class buf(source):
    """As `source`, of an array that NCCL writes to: what is received, or the one array of a call in place.

    ``with source(x, stream=s) as a, buf(y, stream=s) as b: comm.allreduce(a, b, nccl.core.SUM, stream=s)``. After the
    block whatever the producer of `y` queues sees what was received. Read-only arrays (JAX's) are a BufferError:
    receive into another, and give that to the framework.
    """

    _operation = "buf()"

    def _check(self, tensor: _core.Tensor) -> None:
        super()._check(tensor)
        if tensor.readonly:
            raise BufferError(
                "buf(): the array is read-only, and NCCL writes to what it receives into. Use source() where NCCL only "
                "reads it; receive into nd.empty() and convert() that otherwise"
            )


def _as_nccl_has_it(tensor: _core.Tensor) -> _core.Tensor:
    """The same memory with a dtype of NCCL's, ready where it was."""
    dtype, parts = _PARTS.get(str(tensor.dtype), (None, 1))
    if dtype is None:
        return tensor
    shape = tensor.shape if parts == 1 else (*tensor.shape, parts)
    return _core.reinterpret(tensor, dtype=dtype, shape=shape)


def __getattr__(name: str) -> Any:
    """``dlbridge.nccl.Communicator`` and its kin are looked for by those who take this for NCCL itself."""
    raise AttributeError(
        f"module 'dlbridge.nccl' has no attribute {name!r}: communicators, groups and operations are nccl4py's, "
        f"nccl.core.{name}; pip install 'nccl4py[cu13]' brings it"
    )
