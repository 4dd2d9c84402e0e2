"""The methods of ndarray that need not be fast enough for C++, in MEMBERS, which the package puts on the type.

Each loads what it needs when it is called: importing this module imports nothing but that of the ufuncs.
"""

from __future__ import annotations

import operator

from dlbridge.nd import _native
from dlbridge.nd._ufunc_methods import scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike

ndarray = _native.ndarray


# --- attributes -----------------------------------------------------------------------------------------------------


_plain_device = ndarray.device
_cuda_devices: dict[int, Any] = {}


def _device(self: ndarray) -> Any:
    """The device: nd.cuda.Device on a GPU, else a dlbridge.Device. Both equal their names, "cuda:0" and "cpu"."""
    device = _plain_device.__get__(self)
    if device.type not in ("cuda", "cuda_managed"):
        return device
    found = _cuda_devices.get(device.id)
    if found is None:
        from dlbridge.nd.cuda import Device

        found = _cuda_devices[device.id] = Device(device.id)
    return found


# --- to the host and back -------------------------------------------------------------------------------------------


def get(self: ndarray, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
    """A numpy.ndarray with a copy of the values.

    stream: the CUDA stream to copy on (the current one by default). order: the layout, "C", "F" or "A" (as it lies).
    out: a NumPy array of that shape and dtype to write to. blocking: allows to return early; the copy is always done
    on return.
    """
    if stream is not None:
        with stream:
            return get(self, None, order, out)
    from dlbridge.nd._arguments import order_of

    order = order_of(order, "get", "CFA")
    c_contiguous, f_contiguous, *_ = self._flags
    if out is not None:
        return _write_to(out, self)
    layout = "F" if order == "F" or (order == "A" and f_contiguous and not c_contiguous) else "C"
    host = _native.to_numpy(self)  # of a device array a copy already, laid out as that is
    dense = host.flags.f_contiguous if layout == "F" else host.flags.c_contiguous
    return host if dense and not isinstance(self, _native.HostArray) else host.copy(layout)


def _write_to(out: Any, x: ndarray) -> Any:
    if type(out).__module__ != "numpy" or out.shape != x.shape or x.dtype != out.dtype:
        raise ValueError(
            f"get(): out is {type(out).__name__} {getattr(out, 'dtype', '')}{getattr(out, 'shape', '')}; it must be a "
            f"NumPy array {x.dtype}{x.shape}"
        )
    target = _native.asarray(out, copy=False, device="cpu")
    _native.copyto(target, x)
    return out


def set(self: ndarray, arr: Any, stream: Any = None) -> None:
    """Copies the values of a NumPy array of the same shape here, on `stream` (the current one by default)."""
    if stream is not None:
        with stream:
            set(self, arr)
        return
    source = _native.asarray(arr, device="cpu")
    if source.shape != self.shape:
        raise ValueError(f"set(): the array has shape {source.shape}; this one has {self.shape}")
    _native.copyto(self, source, "unsafe")


def to_device(self: ndarray, device: DeviceLike, /, *, stream: Any = None) -> ndarray:
    """The array on another device, itself where it is there already; on `stream` if given. Source: Array API
    2024.12."""
    if stream is None:
        return _native.to_device(self, device)
    with stream:
        return _native.to_device(self, device)


def __bytes__(self: ndarray) -> bytes:
    """bytes(x): the elements in C order. An integer of 0 dimensions gives that many zeros, as bytes(3) does."""
    return bytes(operator.index(self)) if self.ndim == 0 and self.dtype.kind in "iu" else self.tobytes()


def dumps(self: ndarray) -> bytes:
    """A pickle of the array, as bytes: pickle.loads() reads it."""
    import pickle

    return pickle.dumps(self, protocol=2)


def dump(self: ndarray, file: Any) -> None:
    """Writes a pickle of the array to a path or a file object: nd.load(file, allow_pickle=True) reads it."""
    if hasattr(file, "write"):
        file.write(dumps(self))
        return
    with open(file, "wb") as opened:
        opened.write(dumps(self))


def toDlpack(self: ndarray) -> Any:
    """A DLPack capsule of the old kind, ready on the legacy default stream. from_dlpack(x) is the newer way."""
    return self.__dlpack__()


# --- Python's own protocols -----------------------------------------------------------------------------------------


def __repr__(self: ndarray) -> str:
    from dlbridge.nd._printing import array_repr

    return array_repr(self)


def __str__(self: ndarray) -> str:
    from dlbridge.nd._printing import array_str

    return array_str(self)


def __format__(self: ndarray, spec: str) -> str:
    if self.ndim == 0:
        return format(self.item(), spec)
    if spec:
        raise TypeError(f"format(): {spec!r} formats a number; the array has shape {self.shape}")
    return str(self)


def __complex__(self: ndarray) -> complex:
    return complex(self.item())


def __contains__(self: ndarray, value: Any) -> bool:
    return bool((self == value).any())


def __copy__(self: ndarray) -> ndarray:
    return self.copy("K")


def __deepcopy__(self: ndarray, memo: Any) -> ndarray:
    return self.copy("K")


def __reduce_ex__(self: ndarray, protocol: Any) -> Any:
    from dlbridge.nd._pickling import reduce_ex

    return reduce_ex(self, protocol)


def __array_namespace__(self: ndarray, /, *, api_version: str | None = None) -> Any:
    """dlbridge.nd, which follows the Array API 2024.12. ValueError for a version that it does not know."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(
            f"__array_namespace__(): version {api_version!r} is unknown; the newest known one is '2024.12'"
        )
    from dlbridge.nd._protocols import namespace

    return namespace()


def __array_ufunc__(self: ndarray, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's ufuncs on ndarrays run here (NEP 13)."""
    from dlbridge.nd._protocols import call_ufunc

    return call_ufunc(ufunc, method, inputs, kwargs)


def __array_function__(self: ndarray, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's functions on ndarrays run here (NEP 18)."""
    from dlbridge.nd._protocols import call_function

    return call_function(func, types, args, kwargs)


# --- in place -------------------------------------------------------------------------------------------------------

_places_along = _native.late("_searching", "places_along")


def partition(self: ndarray, kth: Any, axis: int = -1) -> None:
    """Partitions along an axis in place; nd.partition() gives a copy."""
    axis, places = _places_along(self, kth, axis)
    _native.sort_in_place(self, axis, False, False, places)


def scatter_add(self: ndarray, indices: Any, value: ArrayLike) -> None:
    """Adds to the elements at index arrays in place; positions that are named more than once count each time."""
    from dlbridge.nd._arguments import as_array

    keys = indices if isinstance(indices, tuple) else (indices,)
    arrays = tuple(as_array(key, self) for key in keys)
    arrays = tuple(key for a in arrays for key in (_native.nonzero(a) if str(a.dtype) == "bool" else (a,)))
    _native.index_combine(self, arrays, value)


_compressed = _native.late("_indexing", "compress")

# --- values ---------------------------------------------------------------------------------------------------------


def nonzero(self: ndarray) -> tuple[ndarray, ...]:
    """The positions of the elements that are not zero, one int64 array per axis. Waits for their number."""
    return _native.nonzero(self)


def cumsum(
    self: ndarray, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """The running sum along an axis, of the flattened array by default."""
    return scan(self, "sum", axis, dtype, out)


def cumprod(
    self: ndarray, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """The running product along an axis, of the flattened array by default."""
    return scan(self, "prod", axis, dtype, out)


def compress(self: ndarray, condition: ArrayLike, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """The parts along an axis where a boolean vector is true."""
    return _compressed(condition, self, axis, out)


def _delegate(module: str, name: str) -> Callable[..., Any]:
    """A method that calls the function of that name, the array first."""
    method = _native.late(module, name)
    method.__name__ = name
    method.__qualname__ = f"ndarray.{name}"
    method.__doc__ = f"nd.{name}(self, …)."
    return method


_DELEGATED = {
    "argpartition": "_searching",
    "choose": "_indexing",
    "clip": "_elementwise",
    "dot": "_products",
    "ptp": "_statistics",
    "put": "_indexing",
    "repeat": "_joining",
    "searchsorted": "_searching",
    "take": "_indexing",
    "trace": "_grids",
}
_FUNCTIONS = (
    __repr__, __str__, __format__, __complex__, __contains__, __copy__, __deepcopy__, __reduce_ex__,
    __array_namespace__, __array_ufunc__, __array_function__, get, set, to_device, __bytes__, dumps, dump,
    toDlpack, partition, scatter_add, nonzero, cumsum, cumprod, compress,
)  # fmt: skip
for _function in _FUNCTIONS:
    _function.__qualname__ = f"ndarray.{_function.__name__}"


def _generic(cls: type, item: Any) -> Any:
    """ndarray[shape, dtype] in annotations."""
    from types import GenericAlias

    return GenericAlias(cls, item)


MEMBERS: dict[str, Any] = {
    **{function.__name__: function for function in _FUNCTIONS},
    **{name: _delegate(module, name) for name, module in _DELEGATED.items()},
    "flat": property(
        _native.flat_of,
        _native.set_flat,
        doc="The elements in C order by one number: read as copies, written in place. Assigning to it writes them all.",
    ),
    "device": property(_device, doc=_device.__doc__),
    "__array_priority__": 100.0,
    "__class_getitem__": classmethod(_generic),
}
# HostArray's own `device` is a dlbridge.Device always: there is nothing to look up.
HOST_MEMBERS: dict[str, Any] = {name: member for name, member in MEMBERS.items() if name != "device"}
