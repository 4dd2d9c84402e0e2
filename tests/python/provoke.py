"""Producers that do what the specifications forbid, made with ctypes so that no other extension has to be compiled.

Each object here owns the C memory and the callbacks that it hands out, and lives as long as the process: a collector
that takes a test's frame apart runs deleters in any order. Deleters are ctypes callbacks, which acquire the GIL
themselves and may run on any thread.
"""

from __future__ import annotations

import ctypes as ct
import math
from ctypes import pythonapi

import pytest
from dlbridge import asdlpack
from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._abi import (
    DESTRUCTOR,
    ArrayStruct,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLPackVersion,
    DLTensor,
    call_deleter,
    capsule_pointer,
    new_capsule,
)
from dlbridge.tests.conformance._adversary import (
    _GET_BUFFER,
    _RELEASE_BUFFER,
    _incref,
    _Slot,
    _type_from_spec,
    _TypeSpec,
)

_kept: list[object] = []  # see above

CPU, CUDA, CUDA_HOST, METAL, ROCM_HOST, CUDA_MANAGED = (1, 0), (2, 0), (3, 0), (8, 0), (11, 0), (13, 0)
INT8, UINT8, INT32, INT64 = (0, 8, 1), (1, 8, 1), (0, 32, 1), (0, 64, 1)
FLOAT32, FLOAT64, BFLOAT16, BOOL = (2, 32, 1), (2, 64, 1), (4, 16, 1), (6, 8, 1)

# --- capsules ---------------------------------------------------------------------------------------------------------

# A dying capsule must not get a new reference: its destructor works on the bare address.
_dying_is_valid = ct.PYFUNCTYPE(ct.c_int, ct.c_void_p, ct.c_char_p)(("PyCapsule_IsValid", pythonapi))
_dying_pointer = ct.PYFUNCTYPE(ct.c_void_p, ct.c_void_p, ct.c_char_p)(("PyCapsule_GetPointer", pythonapi))


@DESTRUCTOR
def delete_unconsumed(capsule):
    """The destructor that DLPack asks of producers. Python code must not run while an exception is pending: only for
    capsules that die outside of a failing call."""
    for name, struct in ((b"dltensor", DLManagedTensor), (b"dltensor_versioned", DLManagedTensorVersioned)):
        if _dying_is_valid(capsule, name):
            call_deleter(ct.cast(_dying_pointer(capsule, name), ct.POINTER(struct)).contents)


# --- managed tensors --------------------------------------------------------------------------------------------------


def _c_array(values):
    return None if values is None else (ct.c_int64 * max(len(values), 1))(*values)


class Managed:
    """A DLPack managed tensor of any content; ``deletions`` counts the calls of its deleter.

    `data`: a ctypes object (its address is given out), an int address, or None. `version` None makes the legacy
    struct. `ndim` overrides the length of `shape`, which may be None for a null pointer.
    """

    def __init__(
        self,
        data=...,
        shape=(3,),
        *,
        strides=None,
        dtype=FLOAT32,
        device=CPU,
        ndim=None,
        byte_offset=0,
        version=(1, 3),
        flags=0,
        deleter=True,
    ):
        _kept.append(self)
        self.data = (ct.c_float * 12)(*range(12)) if data is ... else data
        self.address = data if isinstance(data, int) else ct.addressof(self.data) if self.data is not None else None
        self.shape, self.strides = _c_array(shape), _c_array(strides)
        self.deletions = 0
        self._deleter = ct.CFUNCTYPE(None, ct.c_void_p)(self._count)
        self.struct = DLManagedTensor() if version is None else DLManagedTensorVersioned()
        if version is not None:
            self.struct.version = DLPackVersion(*version)
            self.struct.flags = flags
        self.struct.deleter = ct.cast(self._deleter, ct.c_void_p).value if deleter else None
        pointer = ct.POINTER(ct.c_int64)
        self.struct.dl_tensor = DLTensor(
            self.address,
            DLDevice(*device),
            (len(shape) if shape is not None else 0) if ndim is None else ndim,
            DLDataType(*dtype),
            ct.cast(self.shape, pointer) if self.shape is not None else None,
            ct.cast(self.strides, pointer) if self.strides is not None else None,
            byte_offset,
        )
        self.name = b"dltensor" if version is None else b"dltensor_versioned"

    def _count(self, _address):
        self.deletions += 1

    def capsule(self, name=..., destructor=None):
        return new_capsule(ct.addressof(self.struct), self.name if name is ... else name, destructor)


class Producer:
    """An object with __dlpack__ and __dlpack_device__ that records how it was called."""

    def __init__(self, make, device=CPU):
        self.make = make
        self.device = device
        self.calls = []

    def __dlpack__(self, **options):
        self.calls.append(options)
        return self.make(**options)

    def __dlpack_device__(self):
        return self.device


# --- the C exchange API -----------------------------------------------------------------------------------------------

FROM_OBJECT = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(ct.c_void_p))
TO_OBJECT = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(ct.c_void_p))
BORROW = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(DLTensor))
WORK_STREAM = ct.CFUNCTYPE(ct.c_int, ct.c_int32, ct.c_int32, ct.POINTER(ct.c_void_p))
SET_ERROR = ct.CFUNCTYPE(None, ct.c_void_p, ct.c_char_p, ct.c_char_p)
ALLOCATE = ct.CFUNCTYPE(ct.c_int, ct.POINTER(DLTensor), ct.POINTER(ct.c_void_p), ct.c_void_p, SET_ERROR)

# `int f(PyObject*)` of CPython that fails with the exception of __bool__: a slot that fails with an error set, which
# no ctypes callback can do.
FAILS_WITH_THE_ERROR_OF_BOOL = ct.cast(pythonapi.PyObject_IsTrue, ct.c_void_p).value


class ExchangeTable(_abi.ExchangeTable):
    def fill(self, version=(1, 3), **slots):
        _kept.append((self, slots))
        self.version = DLPackVersion(*version)
        for name, slot in slots.items():
            address = ct.addressof(slot) if isinstance(slot, ExchangeTable) else ct.cast(slot, ct.c_void_p).value
            setattr(self, name, address)
        return self


def exchange_table(version=(1, 3), **slots) -> ExchangeTable:
    return ExchangeTable().fill(version, **slots)


def table_capsule(table: ExchangeTable, name: bytes = b"dlpack_exchange_api"):
    return new_capsule(ct.addressof(table), name)


def table_of(type_) -> ExchangeTable:
    """The table that a type advertises."""
    pointer = capsule_pointer(type_.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    return ct.cast(pointer, ct.POINTER(ExchangeTable)).contents


def returning(managed: Managed):
    """A from_object slot that gives `managed` out."""

    def give(_object, out):
        out[0] = ct.addressof(managed.struct)
        return 0

    return FROM_OBJECT(give)


# --- what tests of DLPack's import ask --------------------------------------------------------------------------------

VERSIONS = pytest.mark.parametrize("version", [None, (1, 3)], ids=["legacy", "versioned"])


def floats(tensor):
    """The elements, through the buffer protocol, which NumPy has no part in."""
    return memoryview(tensor).tolist()


def assert_refused(managed, error, match):
    with pytest.raises(error, match=match) as caught:
        asdlpack(managed.capsule())
    assert managed.deletions == 1
    return caught.value


# --- __array_struct__ -------------------------------------------------------------------------------------------------


class StructProducer:
    """Offers __array_struct__ over twelve float32; ``destroyed`` counts the deaths of its capsules."""

    def __init__(self, *, shape=(3,), strides=(4,), name=None, null_shape=False, **fields):
        _kept.append(self)
        self.memory = (ct.c_float * 12)(*range(12))
        self._shape = (ct.c_ssize_t * len(shape))(*shape)
        self._strides = (ct.c_ssize_t * len(strides))(*strides)
        pointer = ct.POINTER(ct.c_ssize_t)
        self.struct = ArrayStruct(
            2,
            len(shape),
            b"f",
            4,
            0x701,
            None if null_shape else ct.cast(self._shape, pointer),
            ct.cast(self._strides, pointer),
            ct.addressof(self.memory),
        )
        for field, value in fields.items():
            setattr(self.struct, field, value)
        self.name = name
        self.destroyed = 0
        self._destructor = DESTRUCTOR(self._count)

    def _count(self, _capsule):
        self.destroyed += 1

    @property
    def __array_struct__(self):
        return new_capsule(ct.addressof(self.struct), self.name, self._destructor)


def struct_behind(capsule) -> ArrayStruct:
    return ct.cast(capsule_pointer(capsule, None), ct.POINTER(ArrayStruct)).contents


# --- buffers ----------------------------------------------------------------------------------------------------------


class BufferExporter:
    """Makes ``object``, whose Py_buffer has exactly the given fields; ``live`` counts the views that are out."""

    def __init__(self, *, format=b"f", itemsize=4, shape=(3,), strides=None, suboffsets=None, readonly=False, **fields):
        _kept.append(self)
        self.memory = (ct.c_float * 12)(*range(12))
        self.live = 0
        lists = [None if v is None else (ct.c_ssize_t * max(len(v), 1))(*v) for v in (shape, strides, suboffsets)]
        pointers = [None if v is None else ct.cast(v, ct.POINTER(ct.c_ssize_t)) for v in lists]
        values = {
            "buf": ct.addressof(self.memory),
            "len": 12 if shape is None or min(shape, default=0) < 0 else min(itemsize * math.prod(shape), 2**63 - 1),
            "itemsize": itemsize,
            "readonly": int(readonly),
            "ndim": len(shape) if shape is not None else 1,
            "format": format,
            "shape": pointers[0],
            "strides": pointers[1],
            "suboffsets": pointers[2],
        } | fields

        def fill(address, view, _flags):
            for field, value in values.items():
                setattr(view.contents, field, value)
            _incref(address)
            view.contents.obj = address
            self.live += 1
            return 0

        def release(_address, _view):
            self.live -= 1

        self._callbacks = (_GET_BUFFER(fill), _RELEASE_BUFFER(release), lists)
        slots = (_Slot * 3)(
            _Slot(1, ct.cast(self._callbacks[0], ct.c_void_p)),  # Py_bf_getbuffer
            _Slot(2, ct.cast(self._callbacks[1], ct.c_void_p)),  # Py_bf_releasebuffer
        )
        spec = _TypeSpec(b"provoke.Exporter", 0, 0, 0, slots)
        self.object = _type_from_spec(ct.byref(spec))()
