"""Functions of libraries on host arrays: NumPy's LAPACK, NumPy's and SciPy's pocketfft. Memory is shared both ways.

The libraries are imported on the first call that needs them.
"""

from __future__ import annotations

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

_COMPUTED = frozenset({"float32", "float64", "complex64", "complex128"})
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


def on_host(operation: str, *arrays: ndarray) -> None:
    """NotImplementedError for arrays on a device: nothing is copied to the host unasked."""
    for x in arrays:
        if not isinstance(x, _native.HostArray):
            raise NotImplementedError(
                f"{operation}(): the array is on {x.device}; decompositions and transforms run on host arrays only. "
                "Share it without a copy with a library that has them there, dlbridge.convert(x, 'torch'), or move it "
                "to the host: x.to_device('cpu')"
            )


def inexact(*arrays: ndarray) -> DType:
    """The dtype that results have for arrays: the one they promote to, integers and bool as float64."""
    first = arrays[0].dtype
    if first.name in _COMPUTED and all(x.dtype == first for x in arrays[1:]):
        return first  # most calls: the general way takes a microsecond for each array
    return _native.result_type(*[float_for(x.dtype) for x in arrays])


def computed_in(dtype: DType) -> DType:
    """The dtype in which a library computes a result of an inexact dtype: itself, float32 for those of 16 bits."""
    return BY_NAME["float32"] if dtype.name in _HALVES else dtype


def by_library(function: Callable[..., Any], arrays: Sequence[ndarray], rounded: bool = True, **keywords: Any) -> Any:
    """What a function of NumPy's or SciPy's returns for arrays, all of one inexact dtype: an ndarray, or a tuple.

    Neither operands nor results are copied, but for a change of dtype. Real results of 16-bit floats are rounded to
    their dtype unless `rounded` is False, complex ones stay complex64.
    """
    import numpy

    dtype = inexact(*arrays)
    wide = computed_in(dtype)
    with numpy.errstate(all="ignore"):  # functions of the ndarray do not warn
        found = function(*[numpy.asarray(x.astype(wide, copy=False)) for x in arrays], **keywords)
    narrow = dtype if rounded and wide is not dtype else None
    device = arrays[0].device
    if isinstance(found, tuple):
        return tuple(_adopted(value, narrow, device) for value in found)
    return _adopted(found, narrow, device)


def _adopted(value: Any, narrow: DType | None, device: Any) -> ndarray:
    result = _native.asarray(value, None, None, device=device)
    return result if narrow is None or kind_of(result.dtype) != "f" else result.astype(narrow)
