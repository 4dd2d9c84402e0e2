"""An importer of every protocol in plain Python, in which faults can be planted: `take_<fault>` is `take` with it.

`take_sound` has none, and `take_refuses_late` none either: it imports first and refuses then. The functions come from
`__getattr__`, so that a child process can import them by name.
"""

from __future__ import annotations

import ctypes as ct
import functools
import os
import re
import time

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._spec import c_strides, nest, read_memory

_KNOWN = {(code, bits) for code in (0, 1) for bits in (8, 16, 32, 64)}
_KNOWN |= {(4, 16), (6, 8), (2, 16), (2, 32), (2, 64), (5, 64), (5, 128)}
_FORMATS = {"e": (2, 2), "f": (2, 4), "d": (2, 8), "?": (6, 1), "Zf": (5, 8), "Zd": (5, 16)}
_SIGNED = {"b": ct.c_byte, "h": ct.c_short, "i": ct.c_int, "l": ct.c_long, "q": ct.c_longlong}
_FORMATS |= {letter: (0, ct.sizeof(kind)) for letter, kind in _SIGNED.items()}
_FORMATS |= {letter.upper(): (1, size) for letter, (code, size) in _FORMATS.items() if code == 0}
_KINDS = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}
_MAX_NDIM, _LIMIT = 64, 2**63


class Result:
    """What `take` returns: memory that is read at every look, and what keeps it."""

    def __init__(self, pointer, shape, strides, code, bits, *, readonly=False, swapped=False, release=None, keep=None):
        size = 1
        for extent in shape:
            if extent < 0:
                raise ValueError("negative extent")
            size *= extent
        if size * bits >= _LIMIT or any(n > 1 and abs(s) * n >= _LIMIT for n, s in zip(shape, strides, strict=True)):
            raise OverflowError("too large")
        if size and not pointer:
            raise ValueError("no data")
        self.shape, self.strides, self.readonly = tuple(shape), tuple(strides), readonly
        self._read = functools.partial(read_memory, pointer, self.shape, self.strides, code, bits, swapped=swapped)
        self._size, self._release, self._keep, self._itemsize = size, release, keep, bits // 8

    def tolist(self):
        return nest(self._read(), self.shape) if self._size else []

    def __del__(self):
        if getattr(self, "_release", None) is not None:
            self._release()


# --- DLPack -----------------------------------------------------------------------------------------------------------


def _export(obj, fault, copy):
    options = {"copy": copy} if copy is not None else {}
    if fault == "passes_stream":
        options["stream"] = 1
    if fault == "asks_no_version":
        return obj.__dlpack__(**options)
    version = [1, 0] if fault == "version_list" else (1, 0)
    try:
        capsule = obj.__dlpack__(max_version=version, **options)
        return obj.__dlpack__(max_version=version, **options) if fault == "exports_twice" else capsule
    except TypeError:
        if fault == "no_retry" or (copy and fault != "forgets_copy_of_old"):
            raise
        return obj.__dlpack__()
    except Exception:
        if fault != "swallows_errors":
            raise
        raise ValueError("import failed") from None


def _take_dlpack(obj, fault, copy):
    try:
        device = obj.__dlpack_device__()
    except AttributeError:
        raise
    if not isinstance(device, tuple) or len(device) != 2 or not all(isinstance(n, int) for n in device):
        raise BufferError("no device tuple")
    capsule = _export(obj, fault, copy)
    if not _abi.is_capsule(capsule):
        raise TypeError("no capsule")
    name = _abi.capsule_name(capsule)
    if fault == "takes_consumed":
        name = name.removeprefix(b"used_")
    elif fault == "takes_any_name" and name not in _abi.USED:
        name = _abi.LEGACY
    if name not in _abi.USED:
        raise ValueError("already consumed or not a DLPack capsule")
    struct = _abi.DLManagedTensorVersioned if name == _abi.VERSIONED else _abi.DLManagedTensor
    address = _abi.capsule_pointer(capsule, _abi.capsule_name(capsule))
    managed = ct.cast(address, ct.POINTER(struct)).contents
    if fault == "deletes_before_renaming" and managed.dl_tensor.device.device_type != 1:
        _abi.call_deleter(managed)
        raise BufferError("no such device")
    if fault != "never_renames":
        _abi.rename(capsule, _abi.USED[name])
    return _result(managed, fault)


def _result(managed, fault):
    """Owns `managed` from here on."""

    def delete():
        if fault != "never_deletes":
            if managed.deleter or fault == "calls_null_deleter":
                _abi.DELETER(managed.deleter or 0)(ct.addressof(managed))
            if fault == "deletes_twice" and managed.deleter:
                _abi.call_deleter(managed)

    try:
        result = _described(managed, fault, delete)
    except Exception:
        if fault != "leaks_on_error":
            delete()
        raise
    if fault == "deletes_at_once":
        delete()
        result._release = None
    return result


def _described(managed, fault, delete):
    readonly = False
    if isinstance(managed, _abi.DLManagedTensorVersioned):
        if managed.version.major != 1 and fault != "takes_major_2":
            raise BufferError("another major version")
        if managed.version.minor > 3 and fault == "refuses_minor_99":
            raise BufferError("a newer minor version")
        readonly = bool(managed.flags & _abi.READ_ONLY) and fault != "drops_readonly"
    tensor = managed.dl_tensor
    dtype, ndim = tensor.dtype, tensor.ndim
    if not 0 <= ndim <= _MAX_NDIM and fault != "reads_huge_ndim":
        raise ValueError("ndim")
    if ndim and not tensor.shape:
        raise ValueError("no shape")
    if tensor.device.device_type != 1 and fault != "takes_any_device":
        raise BufferError("another device")
    if fault not in ("ignores_lanes", "guesses_dtype") and dtype.lanes != 1:
        raise BufferError("lanes")
    code = dtype.code
    if (code, dtype.bits) not in _KNOWN:
        if fault != "guesses_dtype" or not dtype.bits or dtype.bits % 8:
            raise BufferError("no such dtype")
        code = 1
    if fault == "bool_as_uint8" and code == 6:
        code = 1
    shape = tuple(tensor.shape[:ndim]) if ndim else ()
    itemsize = dtype.bits // 8
    strides = c_strides(shape, itemsize)
    if ndim and tensor.strides:
        strides = tuple(s * (1 if fault == "strides_in_bytes" else itemsize) for s in tensor.strides[:ndim])
    elif ndim and fault == "misreads_null_strides":
        strides = (0,) * ndim
    if fault == "ignores_strides":
        strides = c_strides(shape, itemsize)
    if fault == "aborts_on_negative_strides" and any(s < 0 for s in strides):
        os.abort()
    if fault == "hangs_on_broadcast" and any(s == 0 and n > 1 for s, n in zip(strides, shape, strict=True)):
        time.sleep(60)
    strides = tuple(
        s if n > 1 or fault == "counts_size_one_strides" else 0 for s, n in zip(strides, shape, strict=True)
    )
    if fault == "counts_size_one_strides" and any(abs(s) > 10**9 for s in strides):
        raise ValueError("not contiguous")
    offset = 0 if fault == "ignores_byte_offset" else tensor.byte_offset
    if fault == "refuses_empty" and not tensor.data:
        raise ValueError("no data")
    data = (tensor.data or 0) + offset
    return Result(data, shape, strides, code, dtype.bits, readonly=readonly, release=delete, keep=managed)


# --- the C exchange API -----------------------------------------------------------------------------------------------

_FROM_OBJECT = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.POINTER(ct.c_void_p))


def _take_exchange(obj, fault):
    """None where there is no usable table."""
    capsule = getattr(type(obj), "__dlpack_c_exchange_api__", None)
    if capsule is None or (_abi.capsule_name(capsule) != _abi.EXCHANGE and fault != "exchange_takes_any_name"):
        return None
    address = _abi.capsule_pointer(capsule, _abi.capsule_name(capsule))
    while address:
        table = ct.cast(address, ct.POINTER(_abi.ExchangeTable)).contents
        if table.version.major == 1 or fault == "exchange_ignores_table_version":
            break
        address = table.prev_api
    if not address or not table.from_object:
        return None
    out = ct.c_void_p()
    if _FROM_OBJECT(table.from_object)(obj, ct.byref(out)):
        raise BufferError("export failed")
    managed = ct.cast(out, ct.POINTER(_abi.DLManagedTensorVersioned)).contents
    return _result(managed, "never_deletes" if fault == "exchange_leaks" else fault)


# --- array interfaces -------------------------------------------------------------------------------------------------

_TYPESTR = re.compile(r"([<>|])([biufc])(\d+)$")


def _take_interface(obj, attribute, fault):
    value = getattr(obj, attribute)
    cuda = attribute.startswith("__cuda")
    if not isinstance(value, dict):
        raise TypeError("no dict")
    if "version" not in value or (cuda and value["version"] < 2):
        raise ValueError("version")
    shape, data, strides = value["shape"], value["data"] if cuda else value.get("data"), value.get("strides")
    if not isinstance(shape, tuple) or not all(isinstance(n, int) for n in shape):
        raise TypeError("shape")
    if value.get("mask") is not None and fault != "interface_ignores_mask":
        raise BufferError("masks are not supported")
    if cuda and fault != "cuda_takes_stream_0":
        stream = value.get("stream")
        if stream is not None and (not isinstance(stream, int) or stream == 0):
            raise ValueError("stream")
    match = _TYPESTR.match(value["typestr"])
    if match is None:
        raise ValueError("typestr")
    code, itemsize = _KINDS[match[2]], int(match[3])
    if (code, 8 * itemsize) not in _KNOWN:
        raise ValueError("typestr")
    swapped = match[1] == ">" and fault != "interface_ignores_byte_order"
    if swapped and cuda:
        raise ValueError("byte order")
    strides = c_strides(shape, itemsize) if strides is None else strides
    if len(strides) != len(shape) or not all(isinstance(s, int) for s in strides):
        raise ValueError("strides")
    if fault == "interface_ignores_strides":
        strides = c_strides(shape, itemsize)
    keep, release = [obj], None
    if isinstance(data, tuple):
        (pointer, readonly) = data
        if not isinstance(pointer, int):
            raise TypeError("data")
    else:
        pointer, readonly, release = _interface_buffer(
            value, obj if data is None else data, shape, strides, itemsize, fault
        )
    if fault == "interface_drops_readonly":
        readonly = False
    if fault == "interface_forgets_producer":
        keep = []
    return Result(
        pointer, shape, strides, code, 8 * itemsize, readonly=readonly, swapped=swapped, release=release, keep=keep
    )


def _interface_buffer(value, owner, shape, strides, itemsize, fault):
    view = _abi.get_buffer(owner, _abi.SIMPLE)
    offset = 0 if fault == "interface_ignores_offset" else value.get("offset", 0)
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low = offset + sum(r for r in reach if r < 0)
    high = offset + sum(r for r in reach if r > 0) + itemsize
    if (low < 0 or high > view.len or min(shape) < 0) and fault != "interface_reads_beyond":
        _abi.release_buffer(ct.byref(view))
        raise ValueError("the buffer is too short")
    release = None if fault == "interface_never_releases" else functools.partial(_abi.release_buffer, ct.byref(view))
    return view.buf + offset, bool(view.readonly), release


# --- buffers ----------------------------------------------------------------------------------------------------------


def _take_buffer(view, fault):
    release = functools.partial(_abi.release_buffer, ct.byref(view))
    try:
        if fault == "buffer_never_releases":
            return _buffer_result(view, fault, None)
        if fault == "buffer_releases_at_once":
            result = _buffer_result(view, fault, None)
            release()
            return result
        return _buffer_result(view, fault, release)
    except Exception:
        if fault != "buffer_leaks_on_error":
            release()
        raise


def _buffer_result(view, fault, release):
    if not 0 <= view.ndim <= _MAX_NDIM or (view.ndim and not view.shape):
        raise ValueError("ndim")
    indirect = bool(view.suboffsets) and any(n >= 0 for n in view.suboffsets[: view.ndim])
    if indirect and fault != "buffer_ignores_suboffsets":
        raise BufferError("suboffsets")
    text = "B" if view.format is None else view.format.decode()
    order, kind = (text[0], text[1:]) if text[:1] in tuple("@=<>!^") else ("@", text)
    code, size = _FORMATS[kind]
    if order in "=<>!" and kind in "lL":
        size = 4
    if size != view.itemsize:
        if fault != "buffer_ignores_itemsize":
            raise BufferError("format and itemsize differ")
        size = view.itemsize
    swapped = order in ">!" and fault != "buffer_ignores_byte_order"
    shape = tuple(view.shape[: view.ndim]) if view.ndim else ()
    strides = tuple(view.strides[: view.ndim]) if view.ndim and view.strides else c_strides(shape, size)
    if fault == "buffer_ignores_strides":
        strides = c_strides(shape, size)
    readonly = bool(view.readonly) and fault != "buffer_drops_readonly"
    return Result(
        view.buf, shape, strides, code, 8 * size, readonly=readonly, swapped=swapped, release=release, keep=view
    )


def _copied(result):
    """`result` in memory of its own."""
    values = list(result._read())
    result._read = lambda: values
    return result


def take(fault, obj, *, copy=None):
    result = _take(fault, obj, None if fault == "ignores_copy_keyword" else copy)
    strided = result.strides != c_strides(result.shape, result._itemsize)
    if fault == "copies_anyway" or (fault == "copies_strided" and strided):
        result = _copied(result)
    if fault == "refuses_late" and result.shape != (2, 3):
        raise TypeError(f"only arrays of shape (2, 3) are supported, not {result.shape}")
    return result


def _take(fault, obj, copy):
    if fault.startswith("cuda"):
        return _take_interface(obj, "__cuda_array_interface__", re.sub("^cuda_(ignores|drops)", r"interface_\1", fault))
    result = _take_exchange(obj, fault)
    if result is not None:
        return result
    if hasattr(obj, "__dlpack__"):
        return _take_dlpack(obj, fault, copy)
    if hasattr(obj, "__array_interface__"):
        return _take_interface(obj, "__array_interface__", fault)
    try:
        view = _abi.get_buffer(obj, _abi.FULL_RO)
    except TypeError:
        raise AttributeError("no protocol") from None
    return _take_buffer(view, fault)


def take_by_any_keyword(fault, obj, **options):
    """A signature that does not name copy=."""
    return take(fault, obj, **options)


def __getattr__(name):
    if name.startswith("take_any_"):
        return functools.partial(take_by_any_keyword, name.removeprefix("take_any_"))
    if name.startswith("take_"):
        return functools.partial(take, name.removeprefix("take_"))
    raise AttributeError(name)


_lent = []


def lend(raw):
    """`cuda_memory` of the kit: host memory, which this importer reads as if it were of a device."""
    memory = ct.create_string_buffer(raw)
    _lent.append(memory)
    return ct.addressof(memory)
