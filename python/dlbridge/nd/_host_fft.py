"""Transforms on the host: SciPy's pocketfft, NumPy's where SciPy is not installed. Of short arrays by the routines
beneath their functions, which add to a transform more than it takes."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from math import sqrt
from sys import modules

from dlbridge.nd import _native
from dlbridge.nd._dtypes import BY_NAME, real_dtype
from dlbridge.nd._host import computed_in, numpys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._dtypes import DType

ndarray = _native.ndarray
_FLOAT64 = BY_NAME["float64"]
TO_REAL = frozenset({"irfft", "irfftn", "hfft"})  # the last axis holds n // 2 + 1 of the n elements


def arguments(name: str, extents: Sequence[int], axes: Sequence[int]) -> tuple[Any, Any]:
    """Lengths and axes as the function of that name takes them."""
    return (extents, axes) if name.endswith("n") else (extents[0], axes[0])


def library(name: str, operation: str, repeated: bool) -> Any:
    """The transform of that name: SciPy's is the faster one, but knows no axis that is transformed twice."""
    numpys_own = numpys("numpy.fft", operation)
    return getattr(numpys_own if repeated or _scipys() is None else _scipys(), name)


def transform(name: str, x: ndarray, extents: Sequence[int], axes: Sequence[int], norm: Any) -> ndarray | None:
    """A transform along different axes, that of 16-bit floats not rounded; None where library() is to be called."""
    x, scipys = x.astype(computed_in(x.dtype), copy=False), _scipys()
    if scipys is None:
        gufuncs = _gufuncs()
        return None if gufuncs is None else _by_numpy(gufuncs, name, x, extents, axes, norm)
    if x.dtype.kind in "biu":
        x = read(name, x, extents, axes).astype(_FLOAT64)
    found = _short(name, x, extents[0], axes[0], norm) if name in _ROUTINES and x.size < _SHORT else None
    if found is None:  # it keeps precision, and never warns
        found = _native.call_sharing(getattr(scipys, name), x, *arguments(name, extents, axes), norm)
    return found


# --- SciPy's ----------------------------------------------------------------------------------------------------------


@cache  # an import that fails is tried in full each time
def _scipys() -> Any:
    try:
        import scipy.fft

        return scipy.fft
    except ImportError:
        return None


@cache
def _pocketfft() -> Any:
    """SciPy's routines beneath scipy.fft, by which a short transform takes a fifth of the time; None where they are not
    as they were when this was written."""
    try:
        from scipy.fft._pocketfft import pypocketfft

        one = _native.asarray([1.0 + 0j], device="cpu")
        for name, arguments in (("c2c", ()), ("r2c", ()), ("c2r", (1,))):
            _native.call_sharing(
                getattr(pypocketfft, name), one.real if name == "r2c" else one, (0,), *arguments, *_TRIAL
            )
        return pypocketfft
    except Exception:  # whatever a private module may raise
        return None


_TRIAL = True, 0, None, 1  # forward, no factor, no output, one thread
_SHORT = 4096  # elements: beyond, what scipy.fft adds to the time is not seen
_ROUTINES = {  # which one, and whether it goes forward
    "fft": ("c2c", True),
    "ifft": ("c2c", False),
    "rfft": ("r2c", True),
    "ihfft": ("r2c", False),
    "hfft": ("c2r", True),
    "irfft": ("c2r", False),
}
_FACTORS = {None: 0, "backward": 0, "ortho": 1, "forward": 2}  # of a transform forward


def read(name: str, x: ndarray, extents: Sequence[int], axes: Sequence[int]) -> ndarray:
    """What is read of an array that is cut along different axes."""
    for extent, axis in zip(extents, axes, strict=True):
        read = extent // 2 + 1 if name in TO_REAL and axis == axes[-1] else extent
        if x.shape[axis] > read:
            x = x[(slice(None),) * axis + (slice(read),)]
    return x


def _short(name: str, x: ndarray, extent: int, axis: int, norm: Any) -> ndarray | None:
    """A short transform along an axis, as scipy.fft computes it; None where that is to be called."""
    library = _pocketfft()
    routine, forward = _ROUTINES[name]
    count = extent // 2 + 1 if routine == "c2r" else extent
    if library is None:
        return None
    x, there = read(name, x, (extent,), (axis,)), x.shape[axis]
    if there < count:
        short, x = x, _native.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype, device="cpu")
        x[(slice(None),) * axis + (slice(there),)] = short
    factor = _FACTORS[norm] if forward else 2 - _FACTORS[norm]
    if routine != "c2r":
        return _native.call_sharing(getattr(library, routine), x, (axis,), forward, factor, None, 1)
    x = x.astype(_native.result_type(x, 1j), copy=False)
    return _native.call_sharing(library.c2r, x, (axis,), extent, forward, factor, None, 1)


# --- NumPy's ----------------------------------------------------------------------------------------------------------


@cache
def _gufuncs() -> Any:
    """NumPy 2's, of which its functions call one for each axis; None where they are not as when this was written."""
    try:
        found = import_module("numpy.fft._pocketfft_umath")
        for name, dtype in (("fftn", "complex128"), ("ifftn", "float32"), ("irfftn", "complex64"), ("rfft", "float64")):
            for n in (2, 3):
                _by_numpy(found, name, _native.zeros((2, 2), dtype, device="cpu"), (n,), (0,), None)
        return found
    except Exception:  # whatever a private module may raise
        return None


@lru_cache(256)
def _calls(
    gufuncs: Any,
    name: str,
    dtype: DType,
    shape: tuple[int, ...],
    extents: tuple[int, ...],
    axes: tuple[int, ...],
    norm: Any,
) -> list[tuple[Any, tuple[int, ...], DType, Any, list[tuple[int, ...]]]]:
    """A gufunc for each axis, shape and dtype of what it writes, its factor, and where the axis is. hfft and ihfft are
    the inverse of real numbers and the transform of those, backward, of conjugates."""
    kind = name.removesuffix("n")
    forward = kind in ("fft", "rfft", "hfft")
    complex_dtype = _native.result_type(dtype, 1j)
    number = getattr(modules["numpy"], real_dtype(complex_dtype).name)  # by a float of Python's it computes in float64
    calls, lengths = [], list(shape)

    def along(routine: str, k: int) -> None:
        n, axis = extents[k], axes[k]
        factor = 1 / sqrt(n) if norm == "ortho" else 1 / n if (norm == "forward") == forward else 1.0
        lengths[axis] = n // 2 + 1 if routine == "rfft" else n
        wanted = real_dtype(complex_dtype) if routine == "irfft" else complex_dtype
        called = f"rfft_n_{'odd' if n % 2 else 'even'}" if routine == "rfft" else routine
        calls.append((getattr(gufuncs, called), tuple(lengths), wanted, number(factor), [(axis,), (), (axis,)]))

    last, both = len(axes) - 1, "fft" if forward else "ifft"
    if kind in ("rfft", "ihfft"):
        along("rfft", last)
    elif kind in ("fft", "ifft"):
        along(both, last)
    for k in range(last) if kind == "irfft" else reversed(range(last)):
        along(both, k)
    if name in TO_REAL:
        along("irfft", last)
    return calls


def _by_numpy(gufuncs: Any, name: str, x: ndarray, extents: Sequence[int], axes: Sequence[int], norm: Any) -> ndarray:
    if name == "hfft" and x.dtype.kind == "c":
        x = _native.conjugate(x)
    calls = _calls(gufuncs, name, x.dtype, x.shape, tuple(extents), tuple(axes), norm)
    if name == "irfft":
        x = x.astype(_native.result_type(x, 1j), copy=False)  # which the gufunc would do piece by piece
    for gufunc, shape, dtype, factor, along in calls:
        out = _native.empty_like(x, dtype, shape=shape)
        _native.call_sharing(gufunc, x, factor, out, axes=along)
        x = out
    return _native.conjugate(x) if name == "ihfft" else x
