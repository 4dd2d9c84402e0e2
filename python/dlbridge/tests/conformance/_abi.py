"""The C structs of the protocols, and the few CPython calls that reach them, by ctypes: no extension to be trusted."""

from __future__ import annotations

import ctypes as ct
from ctypes import pythonapi
from typing import Any

READ_ONLY, IS_COPIED, PADDED = 1, 2, 4  # flags of DLManagedTensorVersioned
KNOWN_FLAGS = READ_ONLY | IS_COPIED | PADDED

LEGACY, VERSIONED, EXCHANGE = b"dltensor", b"dltensor_versioned", b"dlpack_exchange_api"
USED = {LEGACY: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}


class DLDevice(ct.Structure):
    _fields_ = [("device_type", ct.c_int32), ("device_id", ct.c_int32)]


class DLDataType(ct.Structure):
    _fields_ = [("code", ct.c_uint8), ("bits", ct.c_uint8), ("lanes", ct.c_uint16)]


class DLTensor(ct.Structure):
    _fields_ = [
        ("data", ct.c_void_p),
        ("device", DLDevice),
        ("ndim", ct.c_int32),
        ("dtype", DLDataType),
        ("shape", ct.POINTER(ct.c_int64)),
        ("strides", ct.POINTER(ct.c_int64)),
        ("byte_offset", ct.c_uint64),
    ]


class DLPackVersion(ct.Structure):
    _fields_ = [("major", ct.c_uint32), ("minor", ct.c_uint32)]


class DLManagedTensor(ct.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", ct.c_void_p), ("deleter", ct.c_void_p)]


class DLManagedTensorVersioned(ct.Structure):
    _fields_ = [
        ("version", DLPackVersion),
        ("manager_ctx", ct.c_void_p),
        ("deleter", ct.c_void_p),
        ("flags", ct.c_uint64),
        ("dl_tensor", DLTensor),
    ]


class ExchangeTable(ct.Structure):
    """DLPackExchangeAPI of DLPack 1.3."""

    _fields_ = [
        ("version", DLPackVersion),
        ("prev_api", ct.c_void_p),
        ("allocate", ct.c_void_p),
        ("from_object", ct.c_void_p),
        ("to_object", ct.c_void_p),
        ("borrow", ct.c_void_p),
        ("work_stream", ct.c_void_p),
    ]


class ArrayStruct(ct.Structure):
    """PyArrayInterface, behind ``__array_struct__``."""

    _fields_ = [
        ("two", ct.c_int),
        ("nd", ct.c_int),
        ("typekind", ct.c_char),
        ("itemsize", ct.c_int),
        ("flags", ct.c_int),
        ("shape", ct.POINTER(ct.c_ssize_t)),
        ("strides", ct.POINTER(ct.c_ssize_t)),
        ("data", ct.c_void_p),
        ("descr", ct.c_void_p),
    ]


class PyBuffer(ct.Structure):
    _fields_ = [
        ("buf", ct.c_void_p),
        ("obj", ct.c_void_p),
        ("len", ct.c_ssize_t),
        ("itemsize", ct.c_ssize_t),
        ("readonly", ct.c_int),
        ("ndim", ct.c_int),
        ("format", ct.c_char_p),
        ("shape", ct.POINTER(ct.c_ssize_t)),
        ("strides", ct.POINTER(ct.c_ssize_t)),
        ("suboffsets", ct.POINTER(ct.c_ssize_t)),
        ("internal", ct.c_void_p),
    ]


# --- capsules ---------------------------------------------------------------------------------------------------------

DESTRUCTOR = ct.CFUNCTYPE(None, ct.c_void_p)
DELETER = ct.CFUNCTYPE(None, ct.c_void_p)  # releases the GIL, as a C++ consumer may

_new = ct.PYFUNCTYPE(ct.py_object, ct.c_void_p, ct.c_char_p, ct.c_void_p)(("PyCapsule_New", pythonapi))
_pointer = ct.PYFUNCTYPE(ct.c_void_p, ct.py_object, ct.c_char_p)(("PyCapsule_GetPointer", pythonapi))
_name = ct.PYFUNCTYPE(ct.c_char_p, ct.py_object)(("PyCapsule_GetName", pythonapi))
_set_name = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.c_char_p)(("PyCapsule_SetName", pythonapi))

_immortal_names: dict[bytes, bytes] = {}  # a capsule keeps the bare pointer to its name


def new_capsule(address: int, name: bytes | None, destructor: Any = None) -> Any:
    name = None if name is None else _immortal_names.setdefault(name, name)
    return _new(address, name, None if destructor is None else ct.cast(destructor, ct.c_void_p))


def is_capsule(obj: object) -> bool:
    return type(obj).__name__ == "PyCapsule"


def capsule_name(capsule: Any) -> bytes | None:
    name: bytes | None = _name(capsule)
    return name


def capsule_pointer(capsule: Any, name: bytes | None) -> int:
    return int(_pointer(capsule, name) or 0)


def rename(capsule: Any, name: bytes) -> None:
    _set_name(capsule, _immortal_names.setdefault(name, name))


def managed_of(capsule: Any) -> Any:
    """The struct behind an unconsumed DLPack capsule; borrowed."""
    name = capsule_name(capsule)
    struct: Any = DLManagedTensorVersioned if name == VERSIONED else DLManagedTensor
    return ct.cast(capsule_pointer(capsule, name), ct.POINTER(struct)).contents


def consume(capsule: Any) -> Any:
    """Takes the struct over, as a consumer does; the caller runs the deleter."""
    managed = managed_of(capsule)
    name = capsule_name(capsule)
    assert name is not None
    rename(capsule, USED[name])
    return managed


def call_deleter(managed: Any) -> None:
    if managed.deleter:
        DELETER(managed.deleter)(ct.addressof(managed))


# --- buffers ----------------------------------------------------------------------------------------------------------

SIMPLE, WRITABLE, FORMAT, ND = 0, 1, 4, 8
STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS = 0x18, 0x38, 0x58, 0x98
INDIRECT = 0x118
FULL_RO, RECORDS_RO = INDIRECT | FORMAT, STRIDES | FORMAT

_get_buffer = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.POINTER(PyBuffer), ct.c_int)(("PyObject_GetBuffer", pythonapi))
release_buffer = ct.PYFUNCTYPE(None, ct.POINTER(PyBuffer))(("PyBuffer_Release", pythonapi))


def get_buffer(obj: Any, flags: int) -> PyBuffer:
    """PyObject_GetBuffer. On a failure ``error.view`` is the Py_buffer as the exporter left it."""
    view = PyBuffer(obj=1)  # garbage, which a failing exporter has to replace by NULL
    try:
        if _get_buffer(obj, ct.byref(view), flags):
            raise SystemError("the exporter returned -1 without an exception")
    except Exception as error:
        error.view = view  # type: ignore[attr-defined]
        raise
    return view


# --- the heap ---------------------------------------------------------------------------------------------------------


class _MallInfo(ct.Structure):
    _fields_ = [
        (name, ct.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keep",
        )
    ]


def heap_bytes() -> int | None:
    """Bytes that malloc has given out, or None where the C library cannot tell (glibc 2.33 and newer can)."""
    try:
        libc = ct.CDLL(None)
        mallinfo2, malloc_trim = libc.mallinfo2, libc.malloc_trim
    except (AttributeError, OSError):
        return None
    malloc_trim(0)  # freed blocks in the fast bins count as given out, and what is taken from them would not show
    mallinfo2.restype = _MallInfo
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)
