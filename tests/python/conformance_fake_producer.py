"""An array library made of NumPy, in which faults can be planted: `make_<fault>` is its factory with it.

`make_sound`, `make_cuda_sound` and `make_sound_buffer` have none: what NumPy itself breaks is repaired. The factories
come from `__getattr__`, so that a child process can import them by name.
"""

from __future__ import annotations

import ctypes as ct
import functools

import numpy as np
from dlbridge.tests.conformance import Unsupported, _abi, adapters
from dlbridge.tests.conformance._adversary import _GET_BUFFER, _RELEASE_BUFFER, _Slot, _type_from_spec, _TypeSpec
from dlbridge.tests.conformance._making import c_strides

_kept = []  # callbacks and tables live as long as the process

_set_destructor = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.c_void_p)(("PyCapsule_SetDestructor", ct.pythonapi))
_incref = ct.PYFUNCTYPE(None, ct.c_void_p)(("Py_IncRef", ct.pythonapi))
_no_deleter = ct.cast(ct.CDLL(None).abs, ct.c_void_p).value  # `int abs(int)`: does nothing with what it is given
_valid = ct.PYFUNCTYPE(ct.c_int, ct.c_void_p, ct.c_char_p)(("PyCapsule_IsValid", ct.pythonapi))
_pointer = ct.PYFUNCTYPE(ct.c_void_p, ct.c_void_p, ct.c_char_p)(("PyCapsule_GetPointer", ct.pythonapi))


@_abi.DESTRUCTOR
def _delete_whatever_the_name(capsule):
    for name, struct in (
        (b"dltensor", _abi.DLManagedTensor),
        (b"used_dltensor", _abi.DLManagedTensor),
        (b"dltensor_versioned", _abi.DLManagedTensorVersioned),
        (b"used_dltensor_versioned", _abi.DLManagedTensorVersioned),
    ):
        if _valid(capsule, name):
            _abi.call_deleter(ct.cast(_pointer(capsule, name), ct.POINTER(struct)).contents)


# fault: what it does to the struct of a capsule that NumPy made


def _unflag(managed, bit):
    if isinstance(managed, _abi.DLManagedTensorVersioned):
        managed.flags &= ~bit


def _strides_in_bytes(managed):
    tensor = managed.dl_tensor
    for axis in range(tensor.ndim):
        tensor.strides[axis] *= tensor.dtype.bits // 8


def _bool_as_uint8(managed):
    if managed.dl_tensor.dtype.code == 6:
        managed.dl_tensor.dtype.code = 1


def _bool_as_bit(managed):
    if managed.dl_tensor.dtype.code == 6:
        managed.dl_tensor.dtype.bits = 1


def _complex_as_halves(managed):
    if managed.dl_tensor.dtype.code == 5:
        managed.dl_tensor.dtype.bits //= 2


def _lost_offset(managed):
    if managed.dl_tensor.ndim == 2 and managed.dl_tensor.data:
        managed.dl_tensor.byte_offset += 4


def _on_cuda(managed):
    managed.dl_tensor.device.device_type = 2


def _major_2(managed):
    if isinstance(managed, _abi.DLManagedTensorVersioned):
        managed.version.major = 2


def _null_strides(managed):
    managed.dl_tensor.strides = None


def _strange_flag(managed):
    if isinstance(managed, _abi.DLManagedTensorVersioned):
        managed.flags |= 1 << 17


def _never_frees(managed):
    managed.deleter = _no_deleter


STRUCT_FAULTS = {
    "drops_readonly": functools.partial(_unflag, bit=_abi.READ_ONLY),
    "no_is_copied": functools.partial(_unflag, bit=_abi.IS_COPIED),
    "strides_in_bytes": _strides_in_bytes,
    "bool_as_uint8": _bool_as_uint8,
    "bool_as_bit": _bool_as_bit,
    "complex_as_halves": _complex_as_halves,
    "wrong_byte_offset": _lost_offset,
    "wrong_device_in_struct": _on_cuda,
    "major_2": _major_2,
    "null_strides": _null_strides,
    "strange_flag": _strange_flag,
    "never_frees": _never_frees,
}


_SCRATCH = np.zeros(1 << 16, "u1")


def _in_scratch(array):
    """A copy of `array` where every other such copy is, too."""
    shared = _SCRATCH[: array.nbytes].view(array.dtype).reshape(array.shape)
    shared[...] = array
    return shared


class FakeArray:
    """A NumPy array behind protocols of its own."""

    def __init__(self, array, fault):
        self.array, self.fault = array, fault
        self.shape = array.shape
        self.shadow = array.copy() if fault == "memory_dies" else None

    # --- DLPack

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        fault, array = self.fault, self.array
        if fault == "legacy_despite_max_version":
            max_version = None
        elif fault == "versioned_without_max_version":
            max_version = (1, 0)
        elif fault == "ignores_device":
            dl_device = None
        elif fault == "ignores_stream":
            stream = None
        elif fault == "ignores_copy_true":
            copy = None
        elif fault == "ignores_copy_false":
            copy = True
        elif fault == "exports_foreign_order":
            array = array.view(array.dtype.newbyteorder("="))
        elif fault == "floors_strides" and any(s % array.itemsize for s in array.strides):
            strides = tuple(s // array.itemsize * array.itemsize for s in array.strides)
            array = np.lib.stride_tricks.as_strided(array, strides=strides)
        elif fault == "refuses_with_value_error" and array.dtype.byteorder == ">":
            raise ValueError("no such byte order")
        elif fault == "copies_strided_despite_false" and copy is False and not array.flags.c_contiguous:
            array, copy = np.ascontiguousarray(array), None
        elif fault == "zeros_for_a_strided_copy" and copy and not array.flags.c_contiguous:
            array = np.zeros_like(array)
        elif fault == "scratch" or (fault == "scratch_for_copies" and copy):
            array, copy = _in_scratch(array), None
        if stream is not None and not isinstance(stream, int):
            raise TypeError("stream must be an integer")
        capsule = self._capsule(array, stream, max_version, dl_device, copy)
        managed = _abi.managed_of(capsule)
        if not array.size:
            managed.dl_tensor.data = None
        if fault in STRUCT_FAULTS:
            STRUCT_FAULTS[fault](managed)
        elif fault == "readonly_copies" and copy and not array.flags.writeable:
            managed.flags |= _abi.READ_ONLY
        elif fault == "memory_dies":
            managed.dl_tensor.data = self.shadow.ctypes.data
        elif fault == "wrong_capsule_name":
            _abi.rename(capsule, b"dl_tensor")
        elif fault == "no_destructor":
            _set_destructor(capsule, None)
        elif fault == "deletes_consumed":
            _set_destructor(capsule, ct.cast(_delete_whatever_the_name, ct.c_void_p))
        return capsule

    def _capsule(self, array, stream, max_version, dl_device, copy):
        if array.flags.writeable or max_version is None or self.fault != "drops_readonly":
            return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        return array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self):
        return {"wrong_device_tuple": (2, 0), "device_list": [1, 0], "device_id_none": (1, None)}.get(
            self.fault, (1, 0)
        )

    # --- array interface

    @property
    def __array_interface__(self):
        array = self.array
        if self.fault == "interface_of_a_temporary":
            array = array.copy()
        elif self.fault == "interface_scratch":
            array = _in_scratch(array)
        value = dict(array.__array_interface__)
        del array
        if self.fault == "interface_byte_order":
            value["typestr"] = value["typestr"].replace("<", ">")
            value.pop("descr")
        elif self.fault == "interface_strides_in_elements" and value["strides"]:
            value["strides"] = tuple(s // self.array.itemsize for s in value["strides"])
        elif self.fault == "interface_drops_readonly":
            value["data"] = (value["data"][0], False)
        elif self.fault == "interface_data_list":
            value["data"] = list(value["data"])
        elif self.fault == "interface_no_version":
            del value["version"]
        elif self.fault == "interface_shape_list":
            value["shape"] = list(value["shape"])
        return value

    @property
    def __array_struct__(self):
        capsule = (self.array.copy() if self.fault == "struct_of_a_temporary" else self.array).__array_struct__
        struct = ct.cast(_abi.capsule_pointer(capsule, None), ct.POINTER(_abi.ArrayStruct)).contents
        if self.fault == "struct_always_writeable":
            struct.flags |= 0x400
        elif self.fault == "struct_always_contiguous":
            struct.flags |= 0x1
        elif self.fault == "struct_two_is_three":
            struct.two = 3
        return capsule


class FakeCudaArray:
    """Says that its memory is on a CUDA device; the checks of the dictionary never touch it."""

    def __init__(self, array, fault):
        self.array, self.fault = array, fault

    @property
    def __cuda_array_interface__(self):
        interface = self.array.__array_interface__
        fault = self.fault
        address = interface["data"][0] if self.array.size or fault == "cuda_null_data" else 0
        typestr = interface["typestr"]
        return {
            "shape": interface["shape"],
            "typestr": typestr.replace("<", ">") if fault == "cuda_typestr" else typestr,
            "data": (address, fault != "cuda_drops_readonly" and interface["data"][1]),
            "strides": interface["strides"],
            "version": 1 if fault == "cuda_version" else 3,
            "stream": 0 if fault == "cuda_stream_0" else None,
            "mask": [True] if fault == "cuda_mask" else None,
        }


class _Both(FakeCudaArray):
    """Offers device memory as host memory, too."""

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


# --- the buffer protocol: a type with slots of its own ----------------------------------------------------------------


def _fill(array, fault, view, flags):
    """Py_buffer of `array` for a request; False where it cannot be met."""
    writable, nd, strides = flags & 1, flags & _abi.ND, flags & 0x10
    dense, fortran = array.flags.c_contiguous, array.flags.f_contiguous
    if writable and not array.flags.writeable and fault != "buffer_ignores_writable":
        return False
    needed = {_abi.C_CONTIGUOUS: dense, _abi.F_CONTIGUOUS: fortran, _abi.ANY_CONTIGUOUS: dense or fortran}
    kind = flags & (_abi.C_CONTIGUOUS | _abi.F_CONTIGUOUS | _abi.ANY_CONTIGUOUS)
    if fault != "buffer_ignores_contiguity" and not (needed.get(kind, True) if strides else dense):
        return False
    extents, steps = ((ct.c_ssize_t * max(array.ndim, 1))(*v) for v in (array.shape, array.strides))
    _kept.append((extents, steps))
    view.buf, view.len, view.itemsize = array.ctypes.data, array.nbytes, array.itemsize
    view.readonly, view.ndim = not array.flags.writeable, array.ndim
    text = memoryview(array).format.encode()
    _kept.append(text)
    if fault == "buffer_wrong_format":
        text = b"i" if text == b"f" else text
    elif fault == "buffer_wrong_len":
        view.len += 1
    elif fault == "buffer_drops_readonly":
        view.readonly = 0
    elif fault == "buffer_scratch":
        view.buf = _in_scratch(array).ctypes.data
    elif fault == "buffer_suboffsets" and array.ndim:
        offsets = (ct.c_ssize_t * array.ndim)(*[-1] * array.ndim)
        _kept.append(offsets)
        view.suboffsets = ct.cast(offsets, ct.POINTER(ct.c_ssize_t))
    pointer = ct.POINTER(ct.c_ssize_t)
    everything = fault == "buffer_fills_everything"
    view.format = text if flags & _abi.FORMAT or everything else None
    view.shape = ct.cast(extents, pointer) if (nd or everything) and array.ndim else pointer()
    view.strides = ct.cast(steps, pointer) if strides and array.ndim else pointer()
    if fault == "buffer_no_strides" and array.ndim:
        view.strides = ct.cast((ct.c_ssize_t * array.ndim)(*c_strides(array.shape, array.itemsize)), pointer)
    return True


@functools.cache
def _buffer_type(fault):
    from_address = {}

    def get(address, view, flags):
        array = from_address[address]
        if not _fill(array, fault, view.contents, flags):
            if fault != "buffer_leaves_obj":
                view.contents.obj = None
            return -1  # with no exception, which a ctypes callback cannot set: these types are not for the sound case
        _incref(address)
        view.contents.obj = address
        return 0

    def release(address, view):
        pass

    callbacks = (_GET_BUFFER(get), _RELEASE_BUFFER(release))
    slots = (_Slot * 3)(_Slot(1, ct.cast(callbacks[0], ct.c_void_p)), _Slot(2, ct.cast(callbacks[1], ct.c_void_p)))
    made = _type_from_spec(ct.byref(_TypeSpec(b"conformance.FakeBuffer", 0, 0, 0, slots)))
    _kept.append((callbacks, slots, made))
    return made, from_address


def make(fault, spec):
    if fault.startswith("cuda"):
        kind = _Both if fault == "cuda_and_host" else FakeCudaArray
        return kind(adapters.numpy_array(type(spec)(spec.shape, spec.dtype, spec.layout, spec.readonly)), fault)
    array = adapters.numpy_array(spec)
    if spec.dtype.startswith(("bfloat", "float8")):
        raise Unsupported("the fake library has NumPy's dtypes")
    if fault == "sound_buffer":
        return memoryview(array)
    if fault.startswith("buffer"):
        made, known = _buffer_type(fault)
        obj = made()
        known[id(obj)] = array
        return obj
    return FakeArray(array, fault)


def __getattr__(name):
    if name.startswith("make_"):
        return functools.partial(make, name.removeprefix("make_"))
    raise AttributeError(name)
