"""Functions of libraries on host arrays: NumPy's LAPACK, NumPy's and SciPy's pocketfft. Memory is shared both ways.

The libraries are imported on the first call that needs them, but for what we can do ourselves: see by_numpy().
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from sys import modules

from dlbridge.nd import _native
from dlbridge.nd._dtypes import BY_NAME, float_for, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from dlbridge.nd._dtypes import DType

ndarray = _native.ndarray

COMPUTED = frozenset({"float32", "float64", "complex64", "complex128"})
_BFLOAT16 = BY_NAME["bfloat16"]
_HALVES = frozenset({"float16", "bfloat16"})  # computed in float32: the libraries have no loops for them


def numpys(module: str, operation: str) -> Any:
    """A module of NumPy's. ImportError with the operation where there is no NumPy."""
    try:
        return modules.get(module) or import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{operation}(): NumPy cannot be imported ({error}), and its library computes this on the host. Install "
            "it: pip install numpy"
        ) from error


def inexact(*arrays: ndarray) -> DType:
    """The dtype that results have for arrays: the one they promote to, integers and bool as float64."""
    first = arrays[0].dtype
    if first.name in COMPUTED and all(x.dtype == first for x in arrays[1:]):
        return first  # most calls: the general way takes a microsecond for each array
    return _native.result_type(*[float_for(x.dtype) for x in arrays])


def computed_in(dtype: DType) -> DType:
    """The dtype in which a library computes a result of an inexact dtype: itself, float32 for those of 16 bits."""
    return BY_NAME["float32"] if dtype.name in _HALVES else dtype


def by_library(function: Callable[..., Any], arrays: Sequence[ndarray], rounded: bool = True, **keywords: Any) -> Any:
    """What a function returns for arrays, all of one inexact dtype and one device: an ndarray, or a tuple.

    On the host it is one of NumPy's or SciPy's, whose operands and results are not copied; on a device one of
    ndarrays. Real results of 16-bit floats are rounded to their dtype unless `rounded` is False, complex ones stay
    complex64.
    """
    dtype = inexact(*arrays)
    wide = computed_in(dtype)
    operands = [x.astype(wide, copy=False) for x in arrays]
    device: Any = arrays[0].device
    if isinstance(operands[0], _native.HostArray):
        import numpy

        with numpy.errstate(all="ignore"):  # functions of the ndarray do not warn
            found = function(*map(_native.to_numpy, operands), **keywords)
    else:
        with device:
            found = function(*operands, **keywords)
    narrow = dtype if rounded and wide is not dtype else None
    if isinstance(found, tuple):
        return tuple(_adopted(value, narrow, device) for value in found)
    return _adopted(found, narrow, device)


def as_it_is(function: Callable[..., Any], x: ndarray, *arguments: Any) -> ndarray:
    """What a library's function gives for one host array, of a dtype that it computes in, where it warns of nothing."""
    return _adopted(function(_native.to_numpy(x), *arguments), None, x.device)


def by_numpy(name: str, *arrays: ndarray, may_warn: bool = False, **keywords: Any) -> Any:
    """What NumPy's function or method of that name gives for arrays: an ndarray, or a tuple of them.

    may_warn: it can, of what functions of the ndarray do not warn of. None where NumPy is not loaded or lacks the
    function, and for arrays of a device or of a dtype that it does not have: then the caller's own way is taken, which
    gives the same.
    """
    if modules.get("numpy") is None:
        return None
    for x in arrays:
        if not isinstance(x, _native.HostArray) or x.dtype is _BFLOAT16:
            return None
    numpy, function = _numpys_own(name)
    if function is None:
        return None
    operands = map(_native.to_numpy, arrays)
    if may_warn:
        with numpy.errstate(all="ignore"):
            found = function(*operands, **keywords)
    else:
        found = function(*operands, **keywords)
    if isinstance(found, tuple):
        return tuple(_adopted(value, None, arrays[0].device) for value in found)
    return _adopted(found, None, arrays[0].device)


@cache
def _numpys_own(name: str) -> tuple[Any, Callable[..., Any] | None]:
    import numpy

    return numpy, getattr(numpy, name, None) or getattr(numpy.ndarray, name, None)


def _adopted(value: Any, narrow: DType | None, device: Any) -> ndarray:
    result = value if isinstance(value, ndarray) else _native.asarray(value, None, None, device=device)
    return result if narrow is None or kind_of(result.dtype) != "f" else result.astype(narrow)
