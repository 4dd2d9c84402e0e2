"""An operation of dlbridge.op() inside of XLA's compiled programs: a foreign function over their buffers, on a GPU in
the order of their stream.

XLA calls back with a frame of C structs, those of its FFI from 0.0 on: what it has added since lies behind what is read
here. Source: xla/ffi/api/c_api.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import sys

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

# XLA's number of a dtype: that of its PrimitiveType.
_DTYPES = {
    1: "bool",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "uint8",
    7: "uint16",
    8: "uint32",
    9: "uint64",
    10: "float16",
    11: "float32",
    12: "float64",
    15: "complex64",
    16: "bfloat16",
    18: "complex128",
    19: "float8_e5m2",
    20: "float8_e4m3fn",
    23: "float8_e4m3b11fnuz",
    24: "float8_e5m2fnuz",
    25: "float8_e4m3fnuz",
    28: "float8_e4m3",
    29: "float8_e3m4",
    33: "float8_e8m0fnu",
}
_METADATA = 1  # the type of an extension that asks for _Metadata
_INTERNAL = 13  # absl's code of an error


def takes(dtypes: Sequence[_core.DType]) -> bool:
    """Whether buffers of all these dtypes are known here."""
    return all(dtype.name in _DTYPES.values() for dtype in dtypes)


_HEAD = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p))  # of every struct


class _Version(ctypes.Structure):
    _fields_ = (*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Metadata(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32))


class _Extension(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    )


class _Error(ctypes.Structure):
    _fields_ = (*_HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int))


class _Stream(ctypes.Structure):
    _fields_ = (*_HEAD, ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p))


class _Api(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("make_error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Error))),
        ("message_of_error", ctypes.c_void_p),
        ("destroy_error", ctypes.c_void_p),
        ("register_handler", ctypes.c_void_p),
        ("get_stream", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Stream))),
    )


class _Buffer(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class _Buffers(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("size", ctypes.c_int64),
        ("kinds", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    )


class _Frame(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
    )


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))


class _DeviceMemory:
    """Memory on a GPU, whose users come behind what is queued on the stream."""

    def __init__(self, address: int | None, size: int, stream: int) -> None:
        data = (address or 0, False)
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": data,
            "version": 3,
            "stream": stream,
        }


def _memory(buffer: Any, stream: int | None) -> Any:
    """XLA's memory as an object, which can be asked how many hold it. stream: on a GPU, XLA's."""
    size = _core.DType(_DTYPES[buffer.dtype]).itemsize * math.prod(buffer.dims[: buffer.rank])
    if stream is not None:
        return _DeviceMemory(buffer.data, size, stream)
    return (ctypes.c_uint8 * size).from_address(buffer.data or 0)


def _tensor(memory: Any, buffer: Any) -> _core.Tensor:
    return _core.reinterpret(_core.asdlpack(memory), dtype=_DTYPES[buffer.dtype], shape=buffer.dims[: buffer.rank])


def _buffers(given: _Buffers) -> list[Any]:
    return [given.buffers[index].contents for index in range(given.size)]


def _stream_of(frame: _Frame) -> int:
    """The stream of the program on a GPU."""
    asked = _Stream(ctypes.sizeof(_Stream), None, frame.context, None)
    if frame.api.contents.get_stream(asked):
        raise _core.CudaError("XLA gives no stream for this program")
    return asked.stream or 1  # the legacy default stream


@contextlib.contextmanager
def _current(stream: int | None) -> Iterator[None]:
    """XLA's stream is the current one of its device, and that device the thread's."""
    from dlbridge import nd

    if stream is None:
        yield
        return
    external = nd.cuda.ExternalStream(stream)
    with nd.cuda.Device(external.device_id), external:
        yield


def _run(name: str, function: Callable[..., Sequence[_core.Tensor]], frame: _Frame, stream: int | None) -> None:
    from dlbridge import nd

    arguments = _buffers(frame.arguments)
    memories = [_memory(buffer, stream) for buffer in arguments]
    held = list(map(sys.getrefcount, memories))
    with _current(stream):
        results = function(*map(_tensor, memories, arguments))
        for result, buffer in zip(results, _buffers(frame.results), strict=True):
            nd.copyto(nd.from_dlpack(_tensor(_memory(buffer, stream), buffer)), nd.from_dlpack(result))
            if stream is not None:
                result.record_stream(stream)  # the copy is queued, no more
        del results
    # XLA takes the memory back, and nothing else can end an array over it.
    if list(map(sys.getrefcount, memories)) != held:
        gc.collect()  # what only a cycle holds is nobody's
    kept = [index for index, count in enumerate(map(sys.getrefcount, memories)) if count != held[index]]
    if kept:
        raise _core.DataError(
            f"{name}: the function kept argument {kept[0]}, whose memory is XLA's when it has returned. Keep a copy: "
            "x.copy()"
        )


def _answer_metadata(frame: _Frame) -> None:
    """XLA asks which version of its interface this is: its own, for what is read here is alike in all."""
    extension = ctypes.cast(frame.extension, ctypes.POINTER(_Extension)).contents
    if extension.type == _METADATA:
        version, own = extension.metadata.contents.version, frame.api.contents.version
        version.major, version.minor = own.major, own.minor
        extension.metadata.contents.traits = 0


_handlers: list[Any] = []  # XLA keeps their addresses for good


def register(jax: Any, target: str, name: str, function: Callable[..., Sequence[_core.Tensor]]) -> None:
    """Makes `function`, which takes and gives tensors, XLA's `target`. name: of the operation, for its errors."""
    for platform in ("cpu", "CUDA"):
        handler = _handler(name, function, on_gpu=platform == "CUDA")
        _handlers.append(handler)
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(handler), platform=platform)


def _handler(name: str, function: Callable[..., Sequence[_core.Tensor]], *, on_gpu: bool) -> Any:
    def handler(frame: Any) -> int | None:
        frame = frame.contents
        try:
            if frame.extension:
                _answer_metadata(frame)
            else:
                _run(name, function, frame, _stream_of(frame) if on_gpu else None)
            return None
        except BaseException as error:
            text = f"{type(error).__qualname__}: {error}".encode()
            made = _Error(ctypes.sizeof(_Error), None, text, _INTERNAL)
            found: int | None = frame.api.contents.make_error(made)
            return found

    return _Handler(handler)
