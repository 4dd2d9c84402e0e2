"""share(): arrays as a handle, which pickles and is opened in another process."""

from __future__ import annotations

import io
import operator
import os
import pickle
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, cast

from dlbridge import _core
from dlbridge._reach import reach
from dlbridge._sharing import layouts, loans, mappings, messages, segments
from dlbridge._sharing.allocations import HANDLE_BYTES
from dlbridge._sharing.layouts import Place
from dlbridge._sharing.loans import Loan, LoanReference
from dlbridge._sharing.segments import Reference, Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType, TracebackType

VERSION = 2  # of what is pickled
_ALIGNMENT = 64  # bytes, of copies; what the strictest consumer asks for

# References, places (plain tuples: a third of the time to pickle them), the pickled container (None for an array
# alone), whether something was copied, bytes.
_State = tuple[tuple[tuple[Any, ...], ...], tuple[tuple[Any, ...], ...], bytes | None, bool, int]


class _Writer:
    """The places of arrays, each found where it is shared already, or copied into new memory."""

    def __init__(self, given: set[int]) -> None:
        """given: the identities of the tensors that were so before."""
        self.given = given
        self.segments: list[Segment | Loan] = []
        self._lender = loans.Lender()
        self.places: list[Place | None] = []
        self._private: dict[bool, list[tuple[int, _core.Tensor]]] = {True: [], False: []}  # by whether writable
        self.nbytes = 0

    def add(self, tensor: _core.Tensor) -> int:
        """The number of its place."""
        if not isinstance(tensor, _core.HostTensor | _core.CudaTensor):
            raise NotImplementedError(
                f"share(): the array is on {tensor.device}; memory of the host and of CUDA is shared. Copy it to the "
                "host first: share(asdlpack(x, device='cpu'))"
            )
        number = len(self.places)
        self.places.append(self._lent(tensor) if isinstance(tensor, _core.CudaTensor) else self._shared(tensor))
        if self.places[number] is None:
            self._private[not tensor.readonly].append((number, tensor))
        self.nbytes += tensor.nbytes
        return number

    def _index(self, segment: Segment | Loan) -> int:
        if segment not in self.segments:
            self.segments.append(segment)
        return self.segments.index(segment)

    def _lent(self, tensor: _core.CudaTensor) -> Place:
        loan, offset, strides = self._lender.lend(tensor)
        return self._place(tensor, self._index(loan), offset, strides)._replace(cuda=True)

    def _shared(self, tensor: _core.HostTensor) -> Place | None:
        if tensor.size == 0:
            return self._place(tensor, 0, 0, None)
        found = mappings.found(tensor)
        if found is None:
            return None
        segment, offset, strides = found
        return self._place(tensor, self._index(segment), offset, strides)

    def _place(self, tensor: _core.Tensor, segment: int, offset: int, strides: tuple[int, ...] | None) -> Place:
        kind = None
        if id(tensor) not in self.given:
            own = _core.framework_name(tensor)
            kind = _core.framework_name(tensor.owner) if own == "dlbridge" else own
        kind = None if kind in ("buffer", "dlbridge") else kind
        return Place(segment, offset, str(tensor.dtype), tensor.shape, strides, tensor.readonly, tensor.padded, kind)

    def finished(self, container: bytes | None) -> Handle:
        """The handle; what is private is copied first, and where what is on a GPU is ready is taken note of."""
        self._lender.record()
        for writable, tensors in self._private.items():
            if tensors:
                self._copy(tensors, writable)
        copied = self._lender.has_copied or any(self._private.values())
        handle = Handle((), cast(tuple[Place, ...], tuple(self.places)), container, copied, self.nbytes)
        handle._segments = tuple(self.segments)
        return handle

    def _copy(self, tensors: Sequence[tuple[int, _core.Tensor]], writable: bool) -> None:
        images = [_Image(tensor) for _, tensor in tensors]
        offsets, end = [], 0
        for image in images:
            offsets.append(end)
            end += -(-image.nbytes // _ALIGNMENT) * _ALIGNMENT
        fd = segments.new_memory(end, "share()")
        try:
            for image, offset in zip(images, offsets, strict=True):
                image.write(fd, offset)
        except BaseException:
            os.close(fd)
            raise
        index = self._index(segments.finished(fd, writable, "share()"))
        for (number, tensor), image, offset in zip(tensors, images, offsets, strict=True):
            self.places[number] = self._place(tensor, index, offset, image.strides)


class _Image:
    """The bytes that stand for a private array: as it lies, where none between them are another's, else in C order."""

    def __init__(self, tensor: _core.Tensor) -> None:
        self.tensor = tensor
        self.nbytes, self.low = tensor.nbytes, 0
        self.strides = layouts.strides_of(tensor, "share()")
        self.in_one_piece = True
        if self.strides is not None:
            form = tensor.itemsize, tensor.shape, self.strides
            self.in_one_piece = layouts.fills(*form)
            if self.in_one_piece:
                self.low, high = reach(*form)
                self.nbytes = high - self.low
            else:
                self.strides = None

    def write(self, fd: int, offset: int) -> None:
        if self.in_one_piece:
            octets = layouts.octets_at(self.tensor.data_ptr + self.low, self.nbytes, self.tensor)
            segments.write(fd, octets, offset, "share()")
            return
        from dlbridge import nd  # copies any strides at memory's speed

        mapping = segments.temporary(fd, "share()")
        width = self.tensor.itemsize
        target = _core.asdlpack(layouts.view(mapping, offset, self.tensor.shape, None, width))
        source = _core.reinterpret(self.tensor, dtype=str(target.dtype), readonly=True)
        nd.copyto(nd.from_dlpack(target), nd.from_dlpack(source))


class _ContainerPickler(pickle.Pickler):
    """A container whose arrays are numbers of places."""

    def __init__(self, file: io.BytesIO, writer: _Writer) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.writer = writer
        self.numbers: dict[int, tuple[int, object]] = {}  # by identity, of objects that are kept

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, _core.Tensor):
            return None
        if id(obj) not in self.numbers:
            self.numbers[id(obj)] = self.writer.add(obj), obj
        return self.numbers[id(obj)][0]


class _ContainerUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, arrays: Sequence[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self.arrays = arrays

    def persistent_load(self, pid: Any) -> Any:
        if type(pid) is not int or not 0 <= pid < len(self.arrays):
            raise _core.DataError(
                f"Handle.open(): the container has array {pid!r} of {len(self.arrays)}. The handle is damaged or forged"
            )
        return self.arrays[pid]


class Handle:
    """Arrays that other processes can open; made by `share()`, and given to them by pickling.

    Through multiprocessing (`Queue`, `Pipe`, `Pool`, `Process(args=)`) and concurrent.futures, the message keeps the
    memory until it was read. `pickle.dumps()` makes a reference only: the handle must live, where it was made or where
    it was unpickled and opened, until the others have opened theirs.

    A handle is a context manager, which closes it. Attributes: copied (whether memory that was private was copied),
    nbytes (of the arrays, elements only), closed.
    """

    def __init__(
        self,
        references: tuple[Reference | LoanReference, ...],
        places: tuple[Place, ...],
        container: bytes | None,
        copied: bool,
        nbytes: int,
    ) -> None:
        """For `share()` and unpickling alone."""
        self._references, self._places, self._container = references, places, container
        self._segments: tuple[Segment | Loan, ...] | None = None
        self.copied, self.nbytes, self.closed = copied, nbytes, False

    def open(self, to: str | ModuleType | None = None, *, copy: bool | None = None) -> Any:
        """The array, or the container with its arrays, over the shared memory. May be called many times.

        to: the framework, as `convert()` takes it; None: that of the array that was shared, and `dlbridge.Tensor` for
        memory of none. copy: as `convert()` takes it: True gives memory of its own, False refuses where a copy is
        needed, as it is for read-only memory in PyTorch.

        The arrays keep the memory, whether the handle is closed or its maker ended. The process maps it once, and what
        one array writes all see, here and elsewhere. Raises ValueError where the handle is closed, FileNotFoundError
        where nobody has kept the memory, PermissionError where it is another user's, DataError where the handle does
        not fit the memory, CudaError where its GPU is not to be seen here and in a fork, OSError where no descriptor is
        left, and what convert() raises.
        """
        memory = self._opened()
        arrays = [self._array(place, memory, to, copy) for place in self._places]
        return arrays[0] if self._container is None else _ContainerUnpickler(self._container, arrays).load()

    def _array(self, place: Place, memory: Sequence[Segment | Loan], to: Any, copy: bool | None) -> Any:
        tensor = layouts.restored(place, memory, "Handle.open()")
        return _core.convert(tensor, to if to is not None else place.kind or "dlbridge", copy=copy)

    def _opened(self) -> tuple[Segment | Loan, ...]:
        if self.closed:
            raise ValueError("Handle: it was closed, and opens nothing any more. Share the array again")
        if self._segments is None:
            self._segments = tuple(map(_open_reference, self._references))
        return self._segments

    def close(self) -> None:
        """Lets go of the memory. Arrays that were opened keep it; handles elsewhere that were not opened lose it."""
        self.closed, self._segments, self._references = True, None, ()

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        arrays = ", ".join(f"{one.dtype}{list(one.shape)}" for one in self._places[:3])
        more = ", ..." if len(self._places) > 3 else ""
        state = "closed" if self.closed else "copied" if self.copied else "shared"
        return f"<dlbridge.Handle {arrays}{more} {state}>"

    def _state(self, own: bool) -> _State:
        references: Sequence[Reference | LoanReference] = self._references
        if own or self._segments is not None:
            references = [segment.reference() for segment in self._opened()]
        elif self.closed:
            self._opened()  # raises
        parts = tuple(map(tuple, references)), tuple(map(tuple, self._places))
        return *parts, self._container, self.copied, self.nbytes

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickle, (VERSION, self._state(own=False), None)


def _open_reference(reference: Reference | LoanReference) -> Segment | Loan:
    borrow = loans.borrow if isinstance(reference, LoanReference) else segments.open_reference
    return borrow(reference, "Handle.open()")  # type: ignore[arg-type]  # each its own kind


def _reference(parts: Any, operation: str) -> Reference | LoanReference:
    """What was said to be a reference, with values of the right kinds. DataError otherwise."""
    if isinstance(parts, tuple) and all(type(part) is int and part >= 0 for part in parts[:4]):
        if len(parts) == len(Reference._fields) and type(parts[4]) is bool:
            return Reference(*parts)
        sizes = (loans.UUID_BYTES,), (0, HANDLE_BYTES), (0, HANDLE_BYTES)
        if len(parts) == len(LoanReference._fields) and all(
            type(part) is bytes and len(part) in known for part, known in zip(parts[4:], sizes, strict=True)
        ):
            return LoanReference(*parts)
    raise _core.DataError(f"{operation}: {parts!r} is no reference to memory. It is damaged or forged")


def _handle(version: int, state: Any) -> Handle:
    """A handle of what was pickled, with each value of its right kind."""
    operation = "Handle"
    if version != VERSION:
        raise _core.DataError(
            f"{operation}: it has version {version!r}, and dlbridge {_core.__version__} reads version {VERSION}. Use "
            "the same release of dlbridge in both processes"
        )
    if not isinstance(state, tuple) or len(state) != 5 or not all(isinstance(part, tuple) for part in state[:2]):
        raise _core.DataError(f"{operation}: what was pickled has other parts than it should. It is damaged or forged")
    references, places, container, copied, nbytes = state
    opened = tuple(_reference(parts, operation) for parts in references)
    if not places or not (container is None or type(container) is bytes):
        raise _core.DataError(f"{operation}: there is no array in it, or no container. It is damaged or forged")
    checked = tuple(layouts.check(place, len(references), operation) for place in places)
    return Handle(opened, checked, container, bool(copied), nbytes)


def _unpickle(version: int, state: Any, ticket: Any) -> Handle:
    """A handle from a pickle; one of a message (with a ticket) opens the memory now, for the message kept it."""
    handle = _handle(version, state)
    if ticket is not None:
        handle._opened()
        messages.acknowledge(messages.Ticket(*ticket))
    return handle


def _unpickle_array(version: int, state: Any, ticket: Any) -> Any:
    return _unpickle(version, state, ticket).open()


def _message(handle: Handle) -> tuple[int, _State, tuple[int, ...] | None]:
    memory = handle._opened()
    return VERSION, handle._state(own=True), tuple(messages.post(memory)) if memory else None


def _reduce_handle(handle: Handle) -> Any:
    return _unpickle, _message(handle)


ForkingPickler.register(Handle, _reduce_handle)


def reduce_array(x: Any, tensor: _core.Tensor) -> Any:
    """An array, which is `tensor` as well, as a message of multiprocessing holds it: shared, and opened as it was."""
    return _unpickle_array, _message(_share_array(x, tensor))


def share(x: Any) -> Handle:
    """A `Handle` of an array, or of all arrays in a container, for other processes of this user on this machine.

    x: what `convert()` takes: an array of any framework, a buffer, or a dict, list, tuple, dataclass, … of arrays.
    Memory that is shared already is not copied: of a file that was mapped (`numpy.memmap`, `mmap`), of
    `multiprocessing.shared_memory`, of `torch.Tensor.share_memory_()`, of `empty_shared()`, and what a handle opened.
    Other memory is copied once, all of a container into one piece, and ``handle.copied`` says so: what is written to
    the array later is not seen by others. Read-only arrays are read-only for all.

    CUDA arrays stay where they are: in memory of cuMemAlloc, as the caching allocators of PyTorch, CuPy and `nd` have
    it; other memory of a GPU is copied once. The arrays are kept until the last process has dropped them. Those who
    open the handle find what was queued by now: their streams wait, and no host does.

    The memory has no name, in /dev/shm or elsewhere: it lives as long as a process has a handle or an array of it, and
    is freed by the kernel however they end. Linux only. There is no lock in it: tell others when it may be read.

    Raises TypeError where there is no array in `x`, NotImplementedError for arrays on devices that are neither the host
    nor CUDA's, OSError where no descriptor or memory is left, CudaError where the driver cannot share memory, and what
    `asdlpack()` raises.
    """
    tree = _core.convert(x, "dlbridge")
    if isinstance(tree, _core.Tensor):
        return _share_array(x, tree)
    arrays = [array for _, array in _core.survey(None, (x,), {}, 0) or ()]
    writer = _Writer({id(array) for array in arrays if _core.framework_name(array) == "dlbridge"})
    file = io.BytesIO()
    _ContainerPickler(file, writer).dump(tree)
    if not writer.places:
        raise TypeError(f"share(): there is no array in the {type(x).__qualname__}. Pickle it as it is")
    return writer.finished(file.getvalue())


def _share_array(x: Any, tensor: _core.Tensor) -> Handle:
    writer = _Writer({id(tensor)} if _core.framework_name(x) == "dlbridge" else set())
    writer.add(tensor)
    return writer.finished(None)


def empty_shared(shape: int | Sequence[int], dtype: Any = "float64", *, to: str | ModuleType = "nd") -> Any:
    """A new array of zeros in memory that `share()` need not copy.

    shape: an extent, or a sequence of them. dtype: as `convert()` takes it. to: the framework whose array it is, as
    `convert()` takes it.
    Raises ValueError for a negative extent, TypeError for a dtype that is none, OSError where no descriptor or memory
    is left.
    """
    extents = (operator.index(shape),) if hasattr(shape, "__index__") else tuple(map(operator.index, shape))
    if any(extent < 0 for extent in extents):
        raise ValueError(f"empty_shared(): shape {extents} has a negative extent; an extent is 0 or more")
    name = str(_core.DType(dtype))
    place = Place(0, 0, name, extents, None, False, False, None)
    memory = []
    nbytes = layouts.nbytes_of(place, "empty_shared()")
    if nbytes:
        fd = segments.new_memory(nbytes, "empty_shared()")
        memory.append(segments.finished(fd, True, "empty_shared()"))
    return _core.convert(layouts.restored(place, memory, "empty_shared()"), to, copy=False)
