"""Functions of libraries on host arrays: NumPy's LAPACK, NumPy's and SciPy's pocketfft. Memory is shared both ways.

The libraries are imported on the first call that needs them, but for what we can do ourselves: see
_native.by_numpy().
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

COMPUTED = frozenset({"float32", "float64", "complex64", "complex128"})
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
        found = _native.call_sharing(function, *operands, **keywords)
    else:
        with device:
            found = function(*operands, **keywords)
    if not rounded or wide is dtype:
        return found
    return tuple(_rounded(x, dtype) for x in found) if isinstance(found, tuple) else _rounded(found, dtype)


def _rounded(x: ndarray, dtype: DType) -> ndarray:
    return x.astype(dtype) if kind_of(x.dtype) == "f" else x
