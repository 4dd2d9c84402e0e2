"""A type with a C exchange API made with ctypes over NumPy, in which faults can be planted: `make_<fault>`."""

from __future__ import annotations

import ctypes as ct
import functools

import numpy as np
from conformance_fake_producer import _in_scratch
from dlbridge.tests.conformance import Unsupported, _abi, adapters
from dlbridge.tests.conformance.producer_exchange import ALLOCATE, BORROW, FROM_OBJECT, TO_OBJECT, WORK_STREAM

_kept = []  # tables live as long as the process
_incref = ct.PYFUNCTYPE(None, ct.py_object)(("Py_IncRef", ct.pythonapi))
_TYPES = {(0, 8): "i1", (0, 16): "i2", (0, 32): "i4", (1, 8): "u1", (2, 32): "f4", (2, 64): "f8", (6, 8): "?"}


class _Capsule:
    """A managed tensor for np.from_dlpack."""

    def __init__(self, address):
        self.capsule = _abi.new_capsule(address, _abi.VERSIONED)

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def _export(array):
    """A managed tensor of `array`, which the caller owns."""
    return _abi.consume(array.__dlpack__(max_version=(1, 0)))


def _table(fault, make):
    @FROM_OBJECT
    def from_object(obj, out):
        managed = _export(_in_scratch(obj.array) if fault == "exchange_scratch" else obj.array)
        if fault == "exchange_drops_readonly":
            managed.flags &= ~_abi.READ_ONLY
        elif fault == "exchange_managed_major_2":
            managed.version.major = 2
        elif fault == "exchange_never_frees":
            managed.deleter = ct.cast(ct.CDLL(None).abs, ct.c_void_p).value
        out[0] = ct.addressof(managed)
        return 0

    @TO_OBJECT
    def to_object(address, out):
        array = np.from_dlpack(_Capsule(address))
        made = array if fault == "exchange_makes_another_type" else make(array.copy() if fault == "copies" else array)
        if fault == "exchange_to_object_leaks":
            _kept.append(made)
        _incref(made)
        out[0] = id(made)
        return 0

    @BORROW
    def borrow(obj, out):
        if not hasattr(obj, "lent"):
            obj.lent = _export(obj.array)  # owns shape and strides
        out[0] = obj.lent.dl_tensor
        if fault == "exchange_borrows_another_dtype":
            out[0].dtype.bits //= 2
        return 0

    @WORK_STREAM
    def work_stream(_kind, _id, out):
        out[0] = None
        return -1 if fault == "exchange_stream_fails" else 0

    @ALLOCATE
    def allocate(prototype, out, context, set_error):
        tensor = prototype.contents
        dtype = _TYPES.get((tensor.dtype.code, tensor.dtype.bits))
        if dtype is None:
            if fault != "exchange_allocator_is_silent":
                set_error(context, b"TypeError", b"no such dtype")
            return -1
        shape = tuple(tensor.shape[: tensor.ndim])
        out[0] = ct.addressof(
            _export(np.zeros(shape[::-1] if fault == "exchange_allocates_reversed" else shape, dtype))
        )
        return 0

    slots = {"from_object": from_object, "to_object": to_object, "borrow": borrow, "work_stream": work_stream}
    slots["allocate"] = allocate
    table = _abi.ExchangeTable(version=_abi.DLPackVersion(2 if fault == "exchange_major_2" else 1, 3))
    for name, slot in slots.items():
        setattr(table, name, ct.cast(slot, ct.c_void_p).value)
    if fault == "exchange_null_function":
        table.work_stream = None
    elif fault == "exchange_circular_chain":
        table.prev_api = ct.addressof(table)
    _kept.append((table, slots))
    return table


class _Moving:
    """An attribute that gives another table at every look."""

    def __init__(self, make_capsule):
        self.make_capsule = make_capsule

    def __get__(self, _obj, _type=None):
        return self.make_capsule()


@functools.cache
def _type(fault):
    class FakeExchange:
        def __init__(self, array):
            self.array, self.shape = array, array.shape
            if fault == "exchange_on_instance":
                self.__dict__["__dlpack_c_exchange_api__"] = capsule()

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    def capsule():
        name = b"dlpack_api" if fault == "exchange_wrong_name" else _abi.EXCHANGE
        return _abi.new_capsule(ct.addressof(_table(fault, FakeExchange)), name)

    FakeExchange.__dlpack_c_exchange_api__ = _Moving(capsule) if fault == "exchange_moving_table" else capsule()
    if fault == "exchange_is_an_integer":
        FakeExchange.__dlpack_c_exchange_api__ = ct.addressof(_table(fault, FakeExchange))
    return FakeExchange


def make(fault, spec):
    if spec.dtype.startswith(("bfloat", "float8")):
        raise Unsupported("the fake library has NumPy's dtypes")
    return _type(fault)(adapters.numpy_array(spec))


def __getattr__(name):
    if name.startswith("make_"):
        return functools.partial(make, name.removeprefix("make_"))
    raise AttributeError(name)
