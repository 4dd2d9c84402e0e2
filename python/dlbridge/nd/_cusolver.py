"""cuSOLVER and, for many small matrices, cuBLAS: their handles, how their functions are called, and LU, which most of
_device_linalg.py is made of.

Both libraries have matrices column by column, so that rows in C order are to them the transposed matrix: taken() gives
these where that serves, columns_of() the matrix itself, which has to be transposed for it. A stack is worked off on one
stream, with one workspace.
"""

from __future__ import annotations

from array import array
from functools import cache
from math import prod
from threading import RLock

from dlbridge.nd import _native
from dlbridge.nd._manipulation import matrix_transpose
from dlbridge.nd._nvidia import Function, device_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    OfEachDtype = tuple[dict[str, Function], dict[str, Function]]

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


def _of_each_dtype(library: str, name: str, arguments: str) -> dict[str, Function]:
    """A function that exists once for each dtype, by their letters; "@" in its name stands for the letter."""
    complex_name = name.replace("@sy", "@he").replace("@or", "@un")
    names = {letter: (name if letter in "SD" else complex_name).replace("@", letter) for letter in "SDCZ"}
    return {letter: Function(library, name, arguments) for letter, name in names.items()}


GENERIC = {name: _generic(name) for name in _SIGNATURES}
_getrs = Function("cusolver", "cusolverDnXgetrs", "ppilliplpiplp")
potrf_batched = _of_each_dtype("cusolver", "cusolverDn@potrfBatched", "piipipi")
_getrf_batched = _of_each_dtype("cublas", "cublas@getrfBatched", "pipippi")
_getrs_batched = _of_each_dtype("cublas", "cublas@getrsBatched", "piiipippipi")
geqrf_batched = _of_each_dtype("cublas", "cublas@geqrfBatched", "piipippi")
# Those with a workspace, and how its size is asked for.
MAKE_Q, SYEVJ_BATCHED, GESVDJ, GESVDJ_BATCHED = (
    (
        _of_each_dtype("cusolver", f"cusolverDn@{name}_bufferSize", f"{taken}p{tail}"),
        _of_each_dtype("cusolver", f"cusolverDn@{name}", f"{taken}pip{tail}"),
    )
    for name, taken, tail in (
        ("orgqr", "piiipip", ""),
        ("syevjBatched", "piiipip", "pi"),
        ("gesvdj", "piiiipippipi", "p"),
        ("gesvdjBatched", "piiipippipi", "pi"),
    )
)
_CREATE = Function("cusolver", "cusolverDnCreate", "p")
_CREATE_PARAMETERS = Function("cusolver", "cusolverDnCreateParams", "p")
OF_SYEVJ = Function("cusolver", "cusolverDnCreateSyevjInfo", "p")
OF_GESVDJ = Function("cusolver", "cusolverDnCreateGesvdjInfo", "p")
_CREATE_CUBLAS = Function("cublas", "cublasCreate_v2", "p")
_set_stream = Function("cusolver", "cusolverDnSetStream", "pp")
_set_stream_of_cublas = Function("cublas", "cublasSetStream_v2", "pp")

JACOBI_UP_TO = 32  # rows and columns that the batched routines by Jacobi's method take


_MOST_WORKSPACES = 256  # of a device, and then from the beginning: each is two numbers


class Failed(Exception):
    """A matrix that the operation cannot work with: what LinAlgError becomes of, with the operation's words."""


def _created(function: Function) -> int:
    handle = array("Q", [0])
    function(handle)
    return handle[0]


class _Solver:
    """The libraries' handles of one device: for one thread at a time, on that thread's stream."""

    def __init__(self, device: int) -> None:
        self.device = device
        self._lock = RLock()
        self.handle = _created(_CREATE)
        self._more: dict[Function, int] = {}
        self._workspaces: dict[tuple[Any, ...], list[int]] = {}

    def with_one(self, create: Function) -> int:
        """What a function of the library makes, once: parameters, or a handle of cuBLAS."""
        if create not in self._more:
            self._more[create] = _created(create)
        return self._more[create]

    def __enter__(self) -> _Solver:
        self._lock.acquire()
        _set_stream(self.handle, _native.work_stream(self.device))
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @property
    def cublas(self) -> int:
        handle = self.with_one(_CREATE_CUBLAS)
        _set_stream_of_cublas(handle, _native.work_stream(self.device))
        return handle

    def run(self, name: str, calls: Sequence[Sequence[Any]], info: ndarray, tail: Sequence[int] = ()) -> None:
        """Calls a generic function once for each list of arguments, all with one workspace."""
        size, function = GENERIC[name]
        handles = self.handle, self.with_one(_CREATE_PARAMETERS)
        of_size, _, _ = _SIGNATURES[name].partition(";")
        first = list(calls[0])
        left_out = [len(part) for part in of_size.split("|")]
        if len(left_out) > 1:
            del first[left_out[0] : left_out[0] + left_out[1]]
        on_device, on_host = self._workspace(size, [*handles, *first], "QQ", tail)
        work = _native.empty((on_device,), "uint8", device=name_of(self.device))
        host = bytearray(max(on_host, 1))
        for i, arguments in enumerate(calls):
            function(
                *handles, *arguments, work, on_device, host, on_host, info.data_ptr + i * info.itemsize, *tail
            )  # fmt: skip

    def _workspace(self, size: Function, arguments: Sequence[Any], types: str, tail: Sequence[int]) -> list[int]:
        """What a function says of workspaces behind its arguments. It depends on the numbers among them, not on the
        pointers, and is asked for once."""
        numbers = [a for a, letter in zip(arguments, size.arguments, strict=False) if letter != "p"]
        key = (size, *numbers, *tail)
        found = self._workspaces.get(key)
        if found is None:
            places = [array(letter, [0]) for letter in types]
            size(*arguments, *places, *tail)
            found = [place[0] for place in places]
            if len(self._workspaces) >= _MOST_WORKSPACES:
                self._workspaces.clear()
            self._workspaces[key] = found
        return found

    def run_of_dtype(
        self, functions: OfEachDtype, dtype: str, calls: Sequence[Sequence[Any]], info: ndarray, *tail: int
    ) -> None:
        """The same with a function that exists once for each dtype."""
        size, function = (of_each[LETTERS[dtype]] for of_each in functions)
        (elements,) = self._workspace(size, [self.handle, *calls[0]], "i", tail)
        work = _native.empty((elements,), dtype, device=name_of(self.device))
        for i, arguments in enumerate(calls):
            function(
                self.handle, *arguments, work, elements, info.data_ptr + i * info.itemsize, *tail
            )  # fmt: skip


@cache
def _solver_on(device: int) -> _Solver:
    return _Solver(device)


def solver_of(x: ndarray) -> _Solver:
    return _solver_on(device_of(x))


# --- stacks of matrices ----------------------------------------------------------------------------------------------


def stacked(x: ndarray) -> ndarray:
    """(batch, M, N) in C order: to the libraries the transposed matrices, column by column. Copied if need be."""
    dense = x if x._flags[0] else x.copy("C")
    return dense.reshape((prod(x.shape[:-2]), *x.shape[-2:]))


def taken(x: ndarray) -> ndarray:
    """The same as a copy, which the libraries may write to."""
    return stacked(x.copy("C"))


def columns_of(x: ndarray) -> ndarray:
    """A copy with each matrix column by column: (batch, N, M) for matrices (..., M, N)."""
    return taken(matrix_transpose(x))


def turned(columns: ndarray, kept: tuple[int, ...]) -> ndarray:
    """A view of the matrices of that form as others have them, in a stack of that shape."""
    found = matrix_transpose(columns)
    return found.reshape((*kept, *found.shape[1:]))


def rows_of(columns: ndarray, kept: tuple[int, ...]) -> ndarray:
    """The same as a copy in C order."""
    return turned(columns, kept).copy("C")


def is_batched(batch: int, n: int) -> bool:
    """Whether the batched routines are to be called: for larger matrices, or few of them, one call each is faster."""
    return batch > 1 and n <= (512 if batch >= 8 else 256)


def new(like: ndarray, shape: tuple[int, ...], dtype: Any = None) -> ndarray:
    return _native.empty(shape, like.dtype if dtype is None else dtype, device=name_of(device_of(like)))


def parts(x: ndarray) -> list[int]:
    """Where each element of the first axis lies."""
    step = x.strides[0]
    return [x.data_ptr + i * step for i in range(x.shape[0])]


def pointers_of(x: ndarray) -> ndarray:
    """The same, on the device."""
    found = new(x, (x.shape[0],), "int64")
    _native.range_fill(found, x.data_ptr, x.strides[0])
    return found


def succeeded(info: ndarray) -> bool:
    """Whether no matrix failed. The host waits to know, unless the stream is being captured: then it is assumed.

    Whatever else an operation has for the device is queued before: it then runs while the host waits.
    """
    return _native.get_current_stream().is_capturing() or not (info if info.size == 1 else info.any()).item()


def checked(info: ndarray) -> None:
    if not succeeded(info):
        raise Failed


def factored(matrices: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """(pivots, info, pointers): LU in place, of what the library sees; the exchanges, counted from 1; where a 0 was."""
    batch, n, _ = matrices.shape
    dtype = matrices.dtype.name
    info = new(matrices, (batch,), "int32")
    with solver_of(matrices) as solver:
        if is_batched(batch, n):
            pivots, pointers = new(matrices, (batch, n), "int32"), pointers_of(matrices)
            _getrf_batched[LETTERS[dtype]](
                solver.cublas, n, pointers.data_ptr, n, pivots.data_ptr, info.data_ptr, batch
            )
            return pivots, info, pointers
        pivots, kind = new(matrices, (batch, n), "int64"), TYPES[dtype]
        solver.run(
            "Xgetrf",
            [(n, n, kind, a, n, p, kind) for a, p in zip(parts(matrices), parts(pivots), strict=True)],
            info,
        )
    return pivots, info, info


def solved(matrices: ndarray, right: ndarray, pivots: ndarray, pointers: ndarray, transposed: bool) -> None:
    """Solves in place for right sides (batch, K, N), column by column, with what factored() gave."""
    (batch, n, _), k = matrices.shape, right.shape[1]
    dtype = matrices.dtype.name
    with solver_of(matrices) as solver:
        if pivots.dtype == "int32":
            status, sides = array("i", [0]), pointers_of(right)
            _getrs_batched[LETTERS[dtype]](
                solver.cublas, int(transposed), n, k, pointers.data_ptr, n, pivots.data_ptr, sides.data_ptr, n,
                status, batch,
            )  # fmt: skip
            return
        info, kind = new(matrices, (1,), "int32"), TYPES[dtype]
        handles = solver.handle, solver.with_one(_CREATE_PARAMETERS)
        for a, p, b in zip(parts(matrices), parts(pivots), parts(right), strict=True):
            _getrs(*handles, int(transposed), n, k, kind, a, n, p, kind, b, n, info.data_ptr)
