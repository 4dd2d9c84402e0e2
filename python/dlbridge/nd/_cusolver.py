"""cuSOLVER and, for many small matrices, cuBLAS: their handles, how their functions are called, and LU, which most of
_device_linalg.py is made of.

Both libraries count rows first: they are given a copy with each matrix column by column, shape (batch, N, M) for
matrices (..., M, N). A stack is worked off on one stream, with one workspace.
"""

from __future__ import annotations

from ctypes import byref, c_int, c_size_t, c_void_p, create_string_buffer
from functools import cache
from math import prod
from threading import RLock

from dlbridge.nd import _native
from dlbridge.nd._manipulation import matrix_transpose
from dlbridge.nd._nvidia import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ndarray = _native.ndarray

TYPES = {"float32": 0, "float64": 1, "complex64": 4, "complex128": 5}  # cudaDataType
LETTERS = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}
FILL = {"L": 0, "U": 1}

# What a call takes behind the handle and its parameters; the same for its workspace's size, but for what stands between
# bars, and then the workspace and the place for its error, and what is behind the semicolon.
_SIGNATURES = {
    "Xpotrf": "ilipli",
    "Xgetrf": "llipl|p|i",
    "Xgeqrf": "lliplipi",
    "Xsyevd": "iiliplipi",
    "XsyevBatched": "iiliplipi;l",
    "Xgesvd": "bblliplipiplipli",
    "Xgeev": "iiliplipiplipli",
}


def _generic(name: str) -> tuple[Function, Function]:
    taken, _, tail = _SIGNATURES[name].partition(";")
    size = "".join(taken.split("|")[::2])
    full = taken.replace("|", "")
    return (
        Function("cusolver", f"cusolverDn{name}_bufferSize", f"pp{size}pp{tail}"),
        Function("cusolver", f"cusolverDn{name}", f"pp{full}pzpzp{tail}"),
    )


GENERIC = {name: _generic(name) for name in _SIGNATURES}
_getrs = Function("cusolver", "cusolverDnXgetrs", "ppilliplpiplp")
potrf_batched = {t: Function("cusolver", f"cusolverDn{t}potrfBatched", "piipipi") for t in "SDCZ"}
_getrf_batched = {t: Function("cublas", f"cublas{t}getrfBatched", "pipippi") for t in "SDCZ"}
_getrs_batched = {t: Function("cublas", f"cublas{t}getrsBatched", "piiipippipi") for t in "SDCZ"}
_MAKES_Q = {"S": "orgqr", "D": "orgqr", "C": "ungqr", "Z": "ungqr"}
q_size = {t: Function("cusolver", f"cusolverDn{t}{name}_bufferSize", "piiipipp") for t, name in _MAKES_Q.items()}
make_q = {t: Function("cusolver", f"cusolverDn{t}{name}", "piiipippip") for t, name in _MAKES_Q.items()}

BATCHED_UP_TO = 256  # rows of matrices that the batched routines are the faster ones for


class Failed(Exception):
    """A matrix that the operation cannot work with: what LinAlgError becomes of, with the operation's words."""


class _Solver:
    """The libraries' handles of one device: for one thread at a time, on that thread's stream."""

    def __init__(self) -> None:
        self._lock = RLock()
        self.handle = self._made("cusolver", "cusolverDnCreate")
        self.parameters = self._made("cusolver", "cusolverDnCreateParams")
        self._cublas: int | None = None
        self._streams = {name: Function(name.partition("_")[0], set_stream, "pp") for name, set_stream in (
            ("cusolver", "cusolverDnSetStream"), ("cublas", "cublasSetStream_v2"))}  # fmt: skip

    def _made(self, library: str, name: str) -> int:
        handle = c_void_p()
        Function(library, name, "p")(byref(handle))
        assert handle.value is not None
        return handle.value

    def __enter__(self) -> _Solver:
        self._lock.acquire()
        self._streams["cusolver"](self.handle, _native.get_current_stream().ptr)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @property
    def cublas(self) -> int:
        if self._cublas is None:
            self._cublas = self._made("cublas", "cublasCreate_v2")
        self._streams["cublas"](self._cublas, _native.get_current_stream().ptr)
        return self._cublas

    def run(self, name: str, calls: Sequence[Sequence[Any]], info: ndarray, tail: Sequence[int] = ()) -> None:
        """Calls a generic function once for each list of arguments, all with one workspace."""
        size, function = GENERIC[name]
        on_device, on_host = c_size_t(), c_size_t()
        first = list(calls[0])
        left_out = [len(part) for part in _SIGNATURES[name].partition(";")[0].split("|")]
        if len(left_out) > 1:
            del first[left_out[0] : left_out[0] + left_out[1]]
        size(self.handle, self.parameters, *first, byref(on_device), byref(on_host), *tail)
        work = _native.empty((on_device.value,), "uint8", device=info.device)
        host = create_string_buffer(max(on_host.value, 1))
        for i, arguments in enumerate(calls):
            function(
                self.handle, self.parameters, *arguments, work.data_ptr, on_device.value, byref(host), on_host.value,
                info.data_ptr + i * info.itemsize, *tail,
            )  # fmt: skip


@cache
def _solver_on(device: int) -> _Solver:
    return _Solver()


def solver_of(x: ndarray) -> _Solver:
    return _solver_on(x.device.id)


# --- stacks of matrices ----------------------------------------------------------------------------------------------


def columns_of(x: ndarray) -> ndarray:
    """A copy with each matrix column by column: (batch, N, M)."""
    return matrix_transpose(x).copy("C").reshape((prod(x.shape[:-2]), x.shape[-1], x.shape[-2]))


def rows_of(columns: ndarray, kept: tuple[int, ...]) -> ndarray:
    """The matrices of that form as others have them, in a stack of that shape."""
    found = matrix_transpose(columns).copy("C")
    return found.reshape((*kept, *found.shape[1:]))


def new(like: ndarray, shape: tuple[int, ...], dtype: Any = None) -> ndarray:
    return _native.empty(shape, like.dtype if dtype is None else dtype, device=like.device)


def parts(x: ndarray) -> list[int]:
    """Where each element of the first axis lies."""
    step = x.strides[0]
    return [x.data_ptr + i * step for i in range(x.shape[0])]


def pointers_of(x: ndarray) -> ndarray:
    """The same, on the device."""
    found = new(x, (x.shape[0],), "int64")
    _native.range_fill(found, x.data_ptr, x.strides[0])
    return found


def checked(info: ndarray) -> None:
    """Failed where a matrix was not what it has to be. The host waits, unless the stream is being captured."""
    if not _native.get_current_stream().is_capturing() and bool((info != 0).any()):
        raise Failed


def factored(columns: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """(pivots, info, pointers): LU in place; the rows that were exchanged, counted from 1; where a 0 was met."""
    batch, n, _ = columns.shape
    dtype = columns.dtype.name
    info = new(columns, (batch,), "int32")
    with solver_of(columns) as solver:
        if batch > 1 and n <= BATCHED_UP_TO:
            pivots, pointers = new(columns, (batch, n), "int32"), pointers_of(columns)
            _getrf_batched[LETTERS[dtype]](
                solver.cublas, n, pointers.data_ptr, n, pivots.data_ptr, info.data_ptr, batch
            )
            return pivots, info, pointers
        pivots, kind = new(columns, (batch, n), "int64"), TYPES[dtype]
        solver.run(
            "Xgetrf",
            [(n, n, kind, a, n, p, kind) for a, p in zip(parts(columns), parts(pivots), strict=True)],
            info,
        )
    return pivots, info, info


def solved(columns: ndarray, right: ndarray, pivots: ndarray, pointers: ndarray) -> None:
    """Solves in place for right sides (batch, K, N), with what factored() gave."""
    (batch, n, _), k = columns.shape, right.shape[1]
    dtype = columns.dtype.name
    with solver_of(columns) as solver:
        if pivots.dtype == "int32":
            status, sides = c_int(), pointers_of(right)
            _getrs_batched[LETTERS[dtype]](
                solver.cublas, 0, n, k, pointers.data_ptr, n, pivots.data_ptr, sides.data_ptr, n, byref(status), batch
            )
            return
        info, kind = new(columns, (1,), "int32"), TYPES[dtype]
        for a, p, b in zip(parts(columns), parts(pivots), parts(right), strict=True):
            _getrs(solver.handle, solver.parameters, 0, n, k, kind, a, n, p, kind, b, n, info.data_ptr)
