"""Arrays of any framework as buffers of mpi4py: dtype, layout and stream are seen to.

``comm.Allreduce(buf(x), buf(y), op=SUM)``: `buf` gives what mpi4py's methods with a capital letter take. `SUM`, `PROD`,
`MIN` and `MAX` reduce every dtype, those that MPI has no name for (bfloat16), too. They are made on first use, and not
by a star import: importing this module starts no MPI.
"""

from __future__ import annotations

from dlbridge.mpi._buffers import Buffer, buf, is_cuda_aware

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mpi4py.MPI import Op

    MAX: Op
    MIN: Op
    PROD: Op
    SUM: Op

__all__ = ["Buffer", "buf", "is_cuda_aware"]

_OPS = ("MAX", "MIN", "PROD", "SUM")


def __getattr__(name: str) -> Any:
    if name not in _OPS:
        raise AttributeError(f"module 'dlbridge.mpi' has no attribute {name!r}")
    from dlbridge.mpi._reductions import made

    globals()[name] = op = made(name)
    return op


def __dir__() -> list[str]:
    return sorted([*__all__, *_OPS])
