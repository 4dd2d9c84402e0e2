"""Arrays as mpi4py's buffers: ready, described, and in memory that the library can reach."""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
import weakref
from typing import Any

from dlbridge import _core
from dlbridge._sharing import layouts
from dlbridge.mpi import _types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_SWITCH = "DLBRIDGE_MPI_CUDA"
_CUDA = 0  # MPIX_GPU_SUPPORT_CUDA of MPICH


@functools.cache
def is_cuda_aware() -> bool:
    """Whether the MPI library reads and writes device memory itself, as it says.

    Asks Open MPI (and MVAPICH) by MPIX_Query_cuda_support, MPICH by MPIX_GPU_query_support. ``DLBRIDGE_MPI_CUDA=1`` or
    ``0`` in the environment is believed instead.
    """
    said = os.environ.get(_SWITCH)
    if said in ("0", "1"):
        return said == "1"
    library = ctypes.CDLL(_types.mpi().__file__)  # names are looked up in what it is linked with, too
    if hasattr(library, "MPIX_GPU_query_support"):
        found = ctypes.c_int(0)
        failed: int = library.MPIX_GPU_query_support(_CUDA, ctypes.byref(found))
        return failed == 0 and found.value != 0
    if hasattr(library, "MPIX_Query_cuda_support"):
        return bool(library.MPIX_Query_cuda_support())
    return False


@functools.cache
def _say_that_it_is_staged() -> None:
    warnings.warn(
        "buf(): this MPI library does not say that it reads device memory, so that arrays of a GPU go by a copy on the "
        f"host. Use one that is built for CUDA, or set {_SWITCH}=1 if this one is; {_SWITCH}=0 silences this",
        stacklevel=4,
    )


class Buffer(list[Any]):
    """What `buf()` gives: mpi4py's [data, datatype].

    As a context manager it ends with `finish()`. Attributes: tensor (the array as a `Tensor`), staged (whether MPI sees
    a copy on the host).
    """

    tensor: _core.Tensor
    staged: bool

    def __init__(self, tensor: _core.Tensor, writes: bool) -> None:
        """For `buf()` alone."""
        self.tensor, self._back = tensor, _nothing
        seen: _core.Tensor = tensor
        is_native = isinstance(tensor, _core.HostTensor) or _types.native(str(tensor.dtype)) is not None
        self.staged = not isinstance(tensor, _core.HostTensor) and not (is_native and is_cuda_aware())
        if self.staged:
            if is_native and os.environ.get(_SWITCH) != "0":
                _say_that_it_is_staged()
            seen = _core.asdlpack(tensor, device="cpu", copy=True)
            if not writes:
                seen = _core.reinterpret(seen, readonly=True)
        elif isinstance(tensor, _core.CudaTensor):
            _wait(tensor)
        data, datatype, own = _described(seen, self.staged)
        if own is not None:
            weakref.finalize(self, _free, own)
        if self.staged and writes:
            # mpi4py holds the data, not this list, as long as a request is under way.
            self._back = weakref.finalize(data, _copy_back, seen, tensor)
            self._back.atexit = False
        super().__init__([data, datatype])

    def finish(self) -> None:
        """Copies what MPI received back to the array, where it was staged; once. Waits for no request."""
        self._back()

    def __enter__(self) -> Buffer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.finish()


class _Memory:
    """A producer of the bytes of a tensor, from `low` bytes off its first element on; keeps the tensor."""

    def __init__(self, tensor: _core.Tensor, low: int, nbytes: int) -> None:
        self.tensor = tensor
        address = tensor.data_ptr + low if nbytes else 0
        interface = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, tensor.readonly)}
        if isinstance(tensor, _core.HostTensor):
            self.__array_interface__ = interface
        else:
            self.__cuda_array_interface__ = {**interface, "stream": None}  # what is written to it is complete


def _nothing() -> None:
    pass


def _free(datatype: Any) -> None:
    if not _types.mpi().Is_finalized():
        datatype.Free()  # MPI keeps it for what is under way


def _wait(tensor: _core.Tensor) -> None:
    """Until what was written to it, and what reads it on its own stream, is done."""
    from dlbridge import nd

    with nd.cuda.Device(tensor.device.id):
        stream = nd.cuda.Stream(non_blocking=True)
        _core.asdlpack(tensor, stream=stream)
        stream.synchronize()


def _copy_back(staged: _core.Tensor, tensor: _core.Tensor) -> None:
    from dlbridge import nd

    target = nd.from_dlpack(tensor)
    nd.copyto(target, nd.array(staged, device=str(target.device)))
    _wait(target)


def _described(tensor: _core.Tensor, staged: bool) -> tuple[Any, Any, Any]:
    """The memory, the datatype, and the datatype again where it is to be freed."""
    if layouts.strides_of(tensor, "buf()") is None:
        if layouts.is_packed(tensor):
            return _octets(tensor, 0, tensor.nbytes), _types.mpi().BYTE, None
        datatype = _types.element(str(tensor.dtype), tensor.itemsize)
        if isinstance(tensor, _core.HostTensor) and not staged:  # mpi4py's own object takes a tenth of the time
            return _types.mpi().buffer.frombuffer(tensor, tensor.readonly), datatype, None
        return _octets(tensor, 0, tensor.nbytes), datatype, None
    datatype, low, high = _types.strided(tensor)
    return _octets(tensor, low, high - low), datatype, datatype


def _octets(tensor: _core.Tensor, low: int, nbytes: int) -> _core.Tensor:
    return _core.asdlpack(_Memory(tensor, low, nbytes))


def buf(x: Any, *, writes: bool = False) -> Buffer:
    """What mpi4py's `Send`, `Recv`, `Bcast`, `Allreduce`, `Isend`, … take for the array `x`.

    x: an array of any framework, or a buffer. Its dtype becomes MPI's; bfloat16, the small floats and, where the
    library has none, float16 become a datatype of their own, which `dlbridge.mpi.SUM` and its kin reduce. Dense arrays
    are described by their elements; others, views with steps, transposed and backwards ones, by one datatype that is
    the whole array, with which MPI moves it without a copy, but reduces and scatters nothing.

    The host waits until the data of a CUDA array is ready, for MPI knows no streams. Where the library does not reach
    device memory, or the dtype is none of MPI's, the array is copied to the host; a warning tells the first time.
    writes=True says that MPI writes to it: the copy goes back when the buffer is finished, at the end of a `with`
    block, or when mpi4py lets go of it: after a call that waits, or the request's `Wait`. Without it, a staged buffer
    is read-only and mpi4py refuses to receive into it. For arrays that MPI reaches, `writes` changes nothing.

    Raises what asdlpack() raises, and ImportError where mpi4py is not there; mpi4py refuses to receive into read-only
    arrays (JAX's).
    """
    return Buffer(_core.asdlpack(x), writes)
