"""Python functions over elements, and arrays that are as they are required to be."""

from __future__ import annotations

from dlbridge._reach import reach
from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array
from dlbridge.nd._creation import asarray, asnumpy
from dlbridge.nd._dtypes import INEXACT
from dlbridge.nd._host import numpys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike

ndarray = _native.ndarray


class vectorize:
    """A function of numbers as one of arrays, which broadcast: it is called for each element, on the host.

    A convenience, not a fast way: arrays of a device are copied to the host and results back. For speed write the
    function with those of this namespace, or as an ElementwiseKernel. otypes, doc, excluded, cache, signature: as for
    numpy.vectorize, which makes the calls; they get NumPy's scalars.
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: str | None = None,
        excluded: Iterable[Any] | None = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        if not callable(pyfunc):
            raise TypeError(f"vectorize(): pyfunc is of type {type(pyfunc).__name__}; give a function")
        self.pyfunc = pyfunc
        self._calls = numpys("numpy", "vectorize").vectorize(self._call, otypes, doc, excluded, cache, signature)
        self.__doc__ = pyfunc.__doc__ if doc is None else doc
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """One call. What it computes with this namespace may lie on a device, where NumPy cannot take it."""
        found = self.pyfunc(*args, **kwargs)
        if isinstance(found, tuple):
            return tuple(asnumpy(x) if isinstance(x, ndarray) else x for x in found)
        return asnumpy(found) if isinstance(found, ndarray) else found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results, an array, or a tuple of them where the function returns one."""
        arrays = [x for x in (*args, *kwargs.values()) if isinstance(x, ndarray)]
        device = arrays[0].device if arrays else None
        hosts = [asnumpy(x) if isinstance(x, ndarray) else x for x in args]
        named = {name: asnumpy(x) if isinstance(x, ndarray) else x for name, x in kwargs.items()}
        found = self._calls(*hosts, **named)
        if isinstance(found, tuple):
            return tuple(asarray(x, device=device) for x in found)
        return asarray(found, device=device)


def byte_bounds(a: ndarray) -> tuple[int, int]:
    """The addresses of the first byte that an array's elements may take, and of the one behind the last."""
    x = as_array(a)
    low, high = reach(x.itemsize, x.shape, x.strides) if x.size else (0, 0)
    return x.data_ptr + low, x.data_ptr + high


_PROPERTIES = {
    "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F", "O": "O",
    "OWNDATA": "O",
}  # fmt: skip


def require(a: ArrayLike, dtype: DTypeLike | None = None, requirements: Any = None) -> ndarray:
    """The array, or a copy of it, with a dtype and properties: "C" or "F" (contiguous), "O" (it owns its memory).

    ValueError for other properties and for both orders at once. Source: NumPy.
    """
    wanted = [requirements] if isinstance(requirements, str) else list(requirements or ())
    names = [_PROPERTIES.get(name.upper()) for name in wanted]
    if None in names:
        raise ValueError(f"require(): requirements are {wanted}; those that there are: 'C', 'F' and 'O'")
    if "C" in names and "F" in names:
        raise ValueError("require(): 'C' and 'F' are two orders; give one of them")
    order = "C" if "C" in names else "F" if "F" in names else "A"
    try:
        x = asarray(a, dtype, order)
    except TypeError as error:
        if dtype is None:
            raise
        raise ValueError(f"require(): {error}") from error
    return x.copy(order=order) if "O" in names and not x.flags.owndata else x


def asarray_chkfinite(
    a: Any, dtype: DTypeLike | None = None, order: str | None = None, *, device: DeviceLike = None
) -> ndarray:
    """asarray(), with ValueError for infinities and NaN; the host waits for the device."""
    is_given = isinstance(a, ndarray) and dtype is None and order is None and device is None
    x = a if is_given else asarray(a, dtype=dtype, order=order or "K", device=device)
    if x.dtype.name in INEXACT and not bool(_native.isfinite(x).all()):
        raise ValueError("asarray_chkfinite(): the array has infinities or NaN; replace them: nan_to_num()")
    return x
