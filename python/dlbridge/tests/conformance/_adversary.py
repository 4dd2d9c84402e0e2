"""Producers that do what a consumer has to survive, made with ctypes.

The C memory of each lives as long as the process: a faulty consumer may use it at any time.
"""

from __future__ import annotations

import ctypes as ct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._spec import DTYPES, Spec, c_strides, encode

_kept: list[object] = []  # see above

_MAX_CALLS = 16
_ALIGNMENT = 256  # dlpack.h: "the data pointer should be aligned to 256 bytes"; jax and TensorFlow ask for 64


class CallCounter:
    """A function for the `deleter` slot that counts its calls, and is no Python code.

    A deleter may be called without the GIL, with an exception pending, at exit: a ctypes callback would fail there and
    put the blame on the consumer. `rand_r` of the C library takes the pointer that a deleter gets, needs nothing of
    Python, and changes the first four bytes of the struct by a known sequence, in which the number of calls is read.
    """

    def __init__(self) -> None:
        self._step = ct.CDLL(None).rand_r
        self._step.argtypes = [ct.POINTER(ct.c_uint32)]
        self.address = ct.cast(self._step, ct.c_void_p).value or 0

    def calls(self, before: bytes, now: bytes) -> int:
        """How often it was called on a struct whose first four bytes were `before` and are `now`; -1: overwritten."""
        state = ct.c_uint32.from_buffer_copy(before)
        for count in range(_MAX_CALLS):
            if bytes(state) == now:
                return count
            self._step(ct.byref(state))
        return -1


def c_int64s(values: Sequence[int] | None) -> Any:
    return None if values is None else (ct.c_int64 * max(len(values), 1))(*values)


class Managed:
    """A DLPack managed tensor of any content; `deletions` counts the calls of its deleter.

    `version` None makes the legacy struct. `memory` is a ctypes array, an address, or None for a null pointer; `ndim`
    overrides the length of `shape`, which may be None.
    """

    def __init__(
        self,
        memory: Any,
        shape: Sequence[int] | None,
        strides: Sequence[int] | None = None,
        *,
        dtype: tuple[int, int, int] = (2, 32, 1),
        device: tuple[int, int] = (1, 0),
        ndim: int | None = None,
        byte_offset: int = 0,
        version: tuple[int, int] | None = (1, 0),
        flags: int = 0,
        deleter: bool = True,
    ) -> None:
        _kept.append(self)
        self.memory = memory
        self.address = memory if isinstance(memory, int) or memory is None else ct.addressof(memory)
        self.shape, self.strides = c_int64s(shape), c_int64s(strides)
        self._counter = CallCounter()
        self.struct: Any = _abi.DLManagedTensor() if version is None else _abi.DLManagedTensorVersioned()
        if version is not None:
            self.struct.version = _abi.DLPackVersion(*version)
            self.struct.flags = flags
        self.struct.deleter = self._counter.address if deleter else None
        pointer = ct.POINTER(ct.c_int64)
        self.struct.dl_tensor = _abi.DLTensor(
            self.address,
            _abi.DLDevice(*device),
            (len(shape) if shape is not None else 0) if ndim is None else ndim,
            _abi.DLDataType(*dtype),
            ct.cast(self.shape, pointer) if self.shape is not None else None,
            ct.cast(self.strides, pointer) if self.strides is not None else None,
            byte_offset,
        )
        self.name = _abi.LEGACY if version is None else _abi.VERSIONED
        self._initial = self._head()

    def _head(self) -> bytes:
        return ct.string_at(ct.addressof(self.struct), 4)

    @property
    def deletions(self) -> int:
        return self._counter.calls(self._initial, self._head())

    def capsule(self, name: bytes | None = None) -> Any:
        """Without a destructor: whether the consumer took the struct is read off the name."""
        return _abi.new_capsule(ct.addressof(self.struct), self.name if name is None else name)


def aligned(size: int) -> Any:
    """A ctypes array of `size` zero bytes at an address that is a multiple of `_ALIGNMENT`, for good."""
    block = (ct.c_char * (size + _ALIGNMENT))()
    _kept.append(block)
    return (ct.c_char * size).from_buffer(block, -ct.addressof(block) % _ALIGNMENT)


def memory_of(spec: Spec, *, lead: int = 0) -> tuple[Any, int, tuple[int, ...]]:
    """Memory with the values of `spec`: (buffer, byte offset of element 0, byte strides). `lead`: bytes before it.

    Aligned to what any consumer may ask of memory that it takes as it is, but for `lead` and a layout of its own.
    """
    itemsize = len(encode(_any_value(spec), spec.dtype))
    offset, strides = lead, c_strides(spec.shape, itemsize)
    if spec.layout == "F":
        strides = tuple(reversed(c_strides(tuple(reversed(spec.shape)), itemsize)))
    elif spec.layout == "strided":
        strides = tuple(2 * stride for stride in strides)
    elif spec.layout == "reversed":
        offset += itemsize * (spec.shape[-1] - 1)
        strides = (*strides[:-1], -itemsize)
    elif spec.layout == "offset":
        offset += itemsize
    elif spec.layout == "broadcast":
        strides = (0, *strides[1:])
    elif spec.layout == "packed":
        strides = tuple(stride + 1 for stride in strides)
    size = lead + itemsize * (2 * max(spec.size, 1) + 1) + spec.size
    memory = aligned(size)
    addresses = [offset]
    for extent, stride in zip(spec.shape, strides, strict=True):
        addresses = [a + i * stride for a in addresses for i in range(extent)]
    for address, value in zip(addresses, spec.values, strict=False):
        ct.memmove(ct.addressof(memory) + address, encode(value, spec.dtype), itemsize)
    return memory, offset, strides


def _any_value(spec: Spec) -> Any:
    return Spec((1,), spec.dtype).values[0]


class Producer:
    """Has ``__dlpack__`` and ``__dlpack_device__``; `calls` are the keywords that came, `capsules` what it gave out.

    `make(**keywords)` returns the capsule.
    """

    def __init__(self, make: Callable[..., Any], device: Any = (1, 0)) -> None:
        self._make, self._device = make, device
        self.calls: list[dict[str, Any]] = []
        self.capsules: list[Any] = []

    @property
    def asked(self) -> bool:
        return bool(self.calls)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        self.calls.append({"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy})
        capsule = self._make(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        self.capsules.append(capsule)
        return capsule

    def __dlpack_device__(self) -> Any:
        return self._device


class OldProducer:
    """As before the array API 2023.12: no keyword but `stream`."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.capsules: list[Any] = []
        self.asked = False

    def __dlpack__(self, stream: Any = None) -> Any:
        self.capsules.append(self._make())
        return self.capsules[-1]

    def __dlpack_device__(self) -> tuple[int, int]:
        self.asked = True  # a call of __dlpack__ with newer keywords does not get here
        return (1, 0)


class Resizable:
    """A bytearray that cannot be resized while a view of it is out."""

    hopeless = False

    def __init__(self, raw: bytes) -> None:
        self.data = bytearray(raw)

    def unsettled(self) -> tuple[str, str] | None:
        try:
            self.data.append(0)
        except BufferError:
            return "the view released when the result died", "still held: the bytearray cannot be resized"
        return None


class Interface:
    """Offers one attribute with a dictionary (or whatever it is given), and nothing else."""

    def __new__(cls, attribute: str, value: Any) -> Any:
        return type("Interface", (), {attribute: value, "__module__": __name__})()


# --- buffers ----------------------------------------------------------------------------------------------------------


class _Slot(ct.Structure):
    _fields_ = [("slot", ct.c_int), ("function", ct.c_void_p)]


class _TypeSpec(ct.Structure):
    _fields_ = [
        ("name", ct.c_char_p),
        ("basicsize", ct.c_int),
        ("itemsize", ct.c_int),
        ("flags", ct.c_uint),
        ("slots", ct.POINTER(_Slot)),
    ]


_type_from_spec = ct.PYFUNCTYPE(ct.py_object, ct.POINTER(_TypeSpec))(("PyType_FromSpec", ct.pythonapi))
_incref = ct.PYFUNCTYPE(None, ct.c_void_p)(("Py_IncRef", ct.pythonapi))
_RELEASE_BUFFER = ct.CFUNCTYPE(None, ct.c_void_p, ct.POINTER(_abi.PyBuffer))
_GET_BUFFER = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(_abi.PyBuffer), ct.c_int)


class BufferExporter:
    """Makes `object`, whose Py_buffer has exactly the given fields whatever is asked.

    A request without the flags of `needs` is refused. Views are counted by the references that they hold: a view may
    be released with an exception pending, where a ctypes callback cannot count.
    """

    def __init__(
        self,
        memory: Any,
        shape: Sequence[int] | None,
        strides: Sequence[int] | None,
        *,
        format: bytes | None,
        itemsize: int,
        offset: int = 0,
        readonly: bool = False,
        suboffsets: Sequence[int] | None = None,
        needs: int = 0,
        **fields: Any,
    ) -> None:
        _kept.append(self)
        self.memory, self.address = memory, ct.addressof(memory) + offset
        lists = [None if v is None else (ct.c_ssize_t * max(len(v), 1))(*v) for v in (shape, strides, suboffsets)]
        pointers = [None if v is None else ct.cast(v, ct.POINTER(ct.c_ssize_t)) for v in lists]
        count = 1
        for extent in shape or ():
            count *= extent
        values = {
            "buf": self.address,
            "len": count * itemsize,
            "itemsize": itemsize,
            "readonly": int(readonly),
            "ndim": len(shape) if shape is not None else 1,
            "format": format,
            "shape": pointers[0],
            "strides": pointers[1],
            "suboffsets": pointers[2],
        } | fields

        def fill(address: int, view: Any, flags: int) -> int:
            if flags & needs != needs:
                view.contents.obj = None
                return -1  # CPython adds the SystemError that a ctypes callback cannot set
            for name, value in values.items():
                setattr(view.contents, name, value)
            _incref(address)
            view.contents.obj = address
            return 0

        self._callbacks = (_GET_BUFFER(fill), lists)
        slots = (_Slot * 2)(_Slot(1, ct.cast(self._callbacks[0], ct.c_void_p)))  # Py_bf_getbuffer
        spec = _TypeSpec(b"conformance.Exporter", 0, 0, 0, slots)
        self.object = _type_from_spec(ct.byref(spec))()
        self._references = sys.getrefcount(self.object)

    @property
    def live(self) -> int:
        """How many views, or other references to `object`, are out."""
        return sys.getrefcount(self.object) - self._references

    def unsettled(self) -> tuple[str, str] | None:
        """Every view is released."""
        return None if self.live == 0 else ("every view released when the result died", f"{self.live} still out")

    @property
    def hopeless(self) -> bool:
        return self.live < 0


def row_pointers(spec: Spec) -> BufferExporter:
    """`spec`, of two dimensions, as an array of pointers to its rows."""
    memory, offset, strides = memory_of(spec)
    row = DTYPES[spec.dtype]
    first = ct.addressof(memory) + offset
    pointers = (ct.c_void_p * spec.shape[0])(*(first + i * strides[0] for i in range(spec.shape[0])))
    return BufferExporter(
        pointers,
        spec.shape,
        (ct.sizeof(ct.c_void_p), strides[1]),
        format=row["pep3118"].encode(),
        itemsize=row["itemsize"],
        suboffsets=(0, -1),
        needs=_abi.INDIRECT,
    )
