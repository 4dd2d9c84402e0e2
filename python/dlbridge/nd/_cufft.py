"""Fourier transforms on a device, by cuFFT. Plans are kept, the memory they work in is the pool's.

A plan says how the axes of a transform, up to three, lie in memory: what it can say is read and written where it is.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from functools import lru_cache
from math import prod, sqrt
from threading import Lock
from weakref import finalize

from dlbridge.nd import _native
from dlbridge.nd._dtypes import BY_NAME
from dlbridge.nd._manipulation import moveaxis
from dlbridge.nd._nvidia import Function, device_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dlbridge.nd._dtypes import DType

    Layout = tuple[list[int], int, int]  # as cuFFT has it: embedding, stride and distance of the batch, in elements

ndarray = _native.ndarray

_create = Function("cufft", "cufftCreate", "p")
_auto_allocate = Function("cufft", "cufftSetAutoAllocation", "ii")
_make = Function("cufft", "cufftXtMakePlanMany", "iippllipllilpi")
_set_stream = Function("cufft", "cufftSetStream", "ip")
_set_work = Function("cufft", "cufftSetWorkArea", "ip")
_execute = Function("cufft", "cufftXtExec", "ippi")
_destroy = Function("cufft", "cufftDestroy", "i")

_TYPES = {"float32": 0, "float64": 1, "complex64": 4, "complex128": 5}  # cudaDataType
_REAL = {"complex64": BY_NAME["float32"], "complex128": BY_NAME["float64"]}
_COMPLEX = {name: BY_NAME[of] for of, real in _REAL.items() for name in (of, real.name)}
_FORWARD, _INVERSE = -1, 1
_AXES_OF_A_PLAN = 3


# --- plans -----------------------------------------------------------------------------------------------------------


def _dense_strides(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


def _layout(shape: Sequence[int], strides: Sequence[int], axes: Sequence[int]) -> Layout | None:
    """How the axes of a transform lie, and all others as one batch; None where cuFFT has no words for it."""
    embedding: list[int] = []
    step = stride = strides[axes[-1]] if shape[axes[-1]] > 1 else 1
    for inner, outer in zip(reversed(axes), reversed((axes[0], *axes[:-1])), strict=True):
        wide = shape[inner]
        if inner != outer and shape[outer] > 1:
            wide, rest = divmod(strides[outer], step) if step > 0 else (0, 0)
            if rest or wide < shape[inner]:
                return None
        embedding.insert(0, wide)
        step *= wide
    batch, distance = 1, 0
    for axis in reversed(range(len(shape))):
        if axis in axes or shape[axis] == 1:
            continue
        if batch > 1 and strides[axis] != batch * distance:
            return None
        distance = strides[axis] if batch == 1 else distance
        batch *= shape[axis]
    if stride <= 0 or distance < 0 or (batch > 1 and distance == 0):
        return None
    return embedding, stride, distance if batch > 1 else prod(embedding) * stride


_Key = tuple[int, ...]


@lru_cache(1024)
def _layouts(
    shape: _Key, strides: _Key, itemsize: int, axes: _Key, extents: _Key, real: bool
) -> tuple[_Key, Layout, Layout] | None:
    """The shape of the result, how the array lies, and the dense result; None where there is no plan for that."""
    result = list(shape)
    for axis, extent in zip(axes, extents, strict=True):
        result[axis] = extent
    if real:
        result[axes[-1]] = extents[-1] // 2 + 1
    read = _layout(shape, [step // itemsize for step in strides], axes)
    written = _layout(result, _dense_strides(result), axes)
    return None if read is None or written is None else (tuple(result), read, written)


class _Plan:
    """How one layout is transformed on one device. It has one stream and one work area at a time: hence the lock."""

    def __init__(
        self, device: int, shape: tuple[int, ...], extents: Sequence[int], batch: int, given: tuple[str, Layout],
        wanted: tuple[str, Layout],
    ) -> None:  # fmt: skip
        from dlbridge.nd.cuda import Device

        handle, work = array("i", [0]), array("Q", [0])
        self.shape, self.device, self.lock = shape, device, Lock()  # shape: of the result
        self.where = name_of(device)
        self.in_place = given == wanted
        self.stream: int | None = None
        with Device(self.device):
            _create(handle)
            self.handle = handle[0]
            finalize(self, _destroy, self.handle).atexit = False  # the process takes its plans along
            _auto_allocate(self.handle, 0)
            execution = max(_TYPES[given[0]], _TYPES[wanted[0]])  # complex, of the precision of both
            sides: list[Any] = []
            for name, (embedding, stride, distance) in (given, wanted):
                sides += array("q", embedding), stride, distance, _TYPES[name]
            _make(self.handle, len(extents), array("q", extents), *sides, batch, work, execution)
        self.work = work[0]

    def run(self, x: ndarray, out: ndarray, direction: int) -> None:
        stream = _native.work_stream(self.device)
        with self.lock:
            if stream != self.stream:
                self.stream = None  # unknown, should the next line fail
                _set_stream(self.handle, stream)
                self.stream = stream
            if self.work:
                work = _native.empty((self.work,), "uint8", device=self.where)
                _set_work(self.handle, work)
            _execute(self.handle, x, out, direction)


_MOST_PLANS = 16
_plans: OrderedDict[tuple[Any, ...], _Plan] = OrderedDict()  # the least recently used one first
_plans_lock = Lock()


def _plan(x: ndarray, axes: tuple[int, ...], extents: tuple[int, ...], wanted: DType) -> _Plan | None:
    """The plan for an array with elements as it lies there; None where cuFFT has none for that."""
    given, device = x.dtype, device_of(x)
    key = (device, x.shape, x.strides, axes, extents, given.name, wanted.name)
    with _plans_lock:
        found = _plans.get(key)
        if found is not None:
            _plans.move_to_end(key)
            return found
        layouts = _layouts(x.shape, x.strides, x.itemsize, axes, extents, given.kind == "f")
        if layouts is None:
            return None
        shape, read, written = layouts
        batch = prod(extent for axis, extent in enumerate(shape) if axis not in axes)
        found = _Plan(device, shape, extents, batch, (given.name, read), (wanted.name, written))
        _plans[key] = found
        if len(_plans) > _MOST_PLANS:
            _plans.popitem(last=False)
        return found


def _run(
    x: ndarray,
    axes: tuple[int, ...],
    extents: tuple[int, ...],
    wanted: DType,
    direction: int,
    ours: bool,
    out: ndarray | None = None,
) -> ndarray:
    """Transforms axes of `extents` data points. `x` has these, or half of the last one; so has the result, which is
    dense: `out`, or a new array. ours: `x` may be overwritten, as transforms to real numbers do."""
    if x.size == 0:
        shape = list(x.shape)
        shape[axes[-1]] = extents[-1] // 2 + 1 if x.dtype.kind == "f" else extents[-1]
        return _native.empty(tuple(shape), wanted, device=x.device)
    # Numbers are loaded in pairs, also those of real arrays.
    pair = 2 * x.itemsize if x.dtype.kind == "f" else x.itemsize
    plan = None if x.data_ptr % pair else _plan(x, axes, extents, wanted)
    if plan is None:  # unless the axes stand in the middle, a copy will do
        dense = tuple(_dense_strides(x.shape))
        if _layouts(x.shape, dense, 1, axes, extents, x.dtype.kind == "f") is not None:
            x, ours = x.copy("C"), True
            plan = _plan(x, axes, extents, wanted)
    if plan is None:
        last = tuple(range(x.ndim - len(axes), x.ndim))
        moved = moveaxis(x, axes, last).copy("C")
        return moveaxis(_run(moved, last, extents, wanted, direction, True), last, axes).copy("C")
    if out is None:
        out = x if ours and plan.in_place else _native.empty(plan.shape, wanted, device=plan.where)
    plan.run(x, out, direction)
    return out


# --- transforms, by their names in NumPy ------------------------------------------------------------------------------


def _sized(x: ndarray, axis: int, n: int) -> tuple[ndarray, bool]:
    """With n elements along an axis: the first ones, or all of them and zeros; and whether that is a copy."""
    extent = x.shape[axis]
    if n == extent:
        return x, False
    head = (slice(None),) * axis
    if n < extent:
        return x[(*head, slice(n))], False
    padded = _native.empty((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, device=x.device)
    padded[(*head, slice(extent))] = x
    padded[(*head, slice(extent, None))] = 0
    return padded, True


def _complex_axes(x: ndarray, extents: Sequence[int], axes: Sequence[int], direction: int, ours: bool) -> ndarray:
    """Complex to complex along axes, of which one may stand there twice."""
    if len(axes) == 1:
        x, copied = _sized(x, axes[0], extents[0])
        return _run(x, tuple(axes), tuple(extents), x.dtype, direction, ours or copied)
    pairs = list(zip(axes, extents, strict=True))
    several = 1 if len(set(axes)) != len(axes) else _AXES_OF_A_PLAN
    while pairs:
        taken = sorted(pairs[-several:])
        del pairs[-several:]
        for axis, n in taken:
            x, copied = _sized(x, axis, n)
            ours = ours or copied
        x = _run(x, tuple(axis for axis, _ in taken), tuple(n for _, n in taken), x.dtype, direction, ours)
        ours = True
    return x


def _to_half(x: ndarray, extents: Sequence[int], axes: Sequence[int], wanted: DType) -> ndarray:
    """Of real numbers, so that half of the last axis is enough."""
    several = 1 if len(set(axes)) != len(axes) else _AXES_OF_A_PLAN
    taken = [*sorted(zip(axes[-several:-1], extents[-several:-1], strict=True)), (axes[-1], extents[-1])]
    for axis, n in taken:
        x, _ = _sized(x, axis, n)
    x = _run(x, tuple(axis for axis, _ in taken), tuple(n for _, n in taken), wanted, _FORWARD, False)
    return _complex_axes(x, extents[:-several], axes[:-several], _FORWARD, True)


def _from_half(x: ndarray, extents: Sequence[int], axes: Sequence[int], wanted: DType, factor: float) -> ndarray:
    """The inverse, times a factor. Axis after axis: a plan of several would read the half that NumPy ignores."""
    n, axis = extents[-1], axes[-1]
    ours = len(axes) > 1
    if ours:
        scaled = factor != 1 and not x._flags[0]  # it would be copied
        if scaled:
            x, factor = _native.multiply(x, factor, out=_native.empty(x.shape, x.dtype, device=x.device)), 1
        x = _complex_axes(x, extents[:-1], axes[:-1], _INVERSE, scaled)
    x, copied = _sized(x, axis, n // 2 + 1)
    if not (ours or copied):  # what is transformed to real numbers is written to, and the copy costs no more scaled
        x, factor = (x.copy("C"), factor) if factor == 1 else (_native.multiply(x, factor), 1)
    # What has no imaginary part in the transform of real numbers is not looked at: the first one, the middle one.
    x.imag[(*(slice(None),) * axis, slice(1) if n % 2 else slice(None, None, n // 2))] = 0
    result = _run(x, (axis,), (n,), wanted, _INVERSE, True)
    if factor != 1:
        result *= factor
    return result


_SHORT = 1 << 15  # data points: as complex numbers these take less time than two halves, which are a kernel more


def _of_reals(x: ndarray, wanted: DType, direction: int) -> ndarray:
    """All of the transform of a vector of real numbers: half of it, and its mirror image."""
    n = x.size
    result = _native.empty((n,), wanted, device=x.device)
    half, rest = result[: n // 2 + 1], result[n // 2 + 1 :]
    _run(x, (0,), (n,), wanted, _FORWARD, False, half)
    mirrored = half[1 : (n + 1) // 2][::-1]
    if direction == _FORWARD:
        _native.conjugate(mirrored, out=rest)
    else:
        rest[...] = mirrored
        _native.conjugate(half, out=half)
    return result


def _factor(n: int, norm: str | None, forward: bool) -> float:
    if norm == "ortho":
        return 1 / sqrt(n)
    return 1 / n if (norm == "forward") == forward else 1


_KINDS = {
    f"{kind}fft{several}": (kind, "i" not in kind) for kind in ("", "i", "r", "ir", "h", "ih") for several in ("", "n")
}


@lru_cache(256)  # of numbers and names alone: a transform of a few data points takes no longer on a GPU than this does
def _request(
    name: str, dtype: str, shape: tuple[int, ...], extents: tuple[int, ...], axes: tuple[int, ...], norm: str | None
) -> tuple[str, DType, int, float, tuple[tuple[int, ...], tuple[int, ...]] | None]:
    """What transform() does: the kind, the complex dtype, the direction, the factor of the result; and the axes and
    extents of the plan where one is enough, and `shape` has what it takes."""
    kind, forward = _KINDS[name]
    to_half = kind in ("r", "ih")
    direction = _FORWARD if forward or to_half else _INVERSE
    pairs = list(zip(axes, extents, strict=True))
    pairs = [*sorted(pairs[:-1]), pairs[-1]] if to_half else sorted(pairs)
    alone = len(set(axes)) == len(axes) <= _AXES_OF_A_PLAN and all(shape[axis] == n for axis, n in pairs)
    plan = (tuple(axis for axis, _ in pairs), tuple(n for _, n in pairs)) if alone and kind in _FROM_ALL else None
    return kind, _COMPLEX[dtype], direction, _factor(prod(extents), norm, forward), plan


_FROM_ALL = ("", "i", "r", "ih")  # kinds that read all that they are given: the others ignore imaginary parts


def _widened(x: ndarray, dtype: DType, factor: float) -> tuple[ndarray, float]:
    """Real numbers as complex ones, times a factor, as the copy costs no more then; and what is left of the factor."""
    if factor == 1 or x.dtype.kind == "c":
        return x.astype(dtype, copy=False), factor
    return _native.multiply(x, factor, dtype=dtype), 1


def transform(name: str, x: ndarray, extents: Sequence[int], axes: Sequence[int], norm: str | None) -> ndarray:
    """A transform of an array of float32, float64 or a complex dtype of these; real ones are made complex where needed.

    name: NumPy's: fft, ifftn, rfft, hfft and so on. extents: of the real side, one for each axis.
    """
    kind, dtype, direction, factor, plan = _request(name, x.dtype.name, x.shape, tuple(extents), tuple(axes), norm)
    of_reals = plan is not None and x.ndim == 1 and x.dtype.kind == "f" and kind in ("", "i") and x.size > _SHORT
    wide = x
    if not (of_reals or kind in ("r", "ih") or x.dtype is dtype):
        wide, factor = _widened(x, dtype, factor)
    if of_reals:
        result = _of_reals(x, dtype, direction)
    elif plan is not None:
        result = _run(wide, *plan, dtype, direction, wide is not x)
    elif kind in ("", "i"):
        result = _complex_axes(wide, extents, axes, direction, wide is not x)
    elif kind in ("r", "ih"):
        result = _to_half(wide, extents, axes, dtype)
    else:
        wide = _native.conjugate(wide) if kind == "h" else wide
        return _from_half(wide, extents, axes, _REAL[dtype.name], factor)
    if kind == "ih":
        result = _native.conjugate(result)
    if factor != 1:
        result *= factor
    return result
