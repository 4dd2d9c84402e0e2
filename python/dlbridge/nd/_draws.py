"""Random arrays from a counter-based stream (Philox4x32-10), the same on the host and on every device: what the kernels
draw, what one formula makes of that, orders and choices."""

from __future__ import annotations

from math import inf
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, broadcast_shapes, into, normalize_axis, shape_of
from dlbridge.nd._bit_generators import Philox4x32
from dlbridge.nd._dtypes import BY_NAME, kind_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike, Shape

    Own = TypeVar("Own", bound="_Draws")

ndarray = _native.ndarray
_INT64, _UINT64 = BY_NAME["int64"], BY_NAME["uint64"]


class _Draws:
    """The state of a Generator, and its distributions without parameters of shape."""

    def __init__(self, seed: Any = None, *, device: DeviceLike = None) -> None:
        self._bits = seed if isinstance(seed, Philox4x32) else Philox4x32(seed)
        self._device = device

    def __repr__(self) -> str:
        key, offset = self._bits._place
        return f"<dlbridge.nd.random.{type(self).__name__} key={key:#018x} offset={offset}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.state, "device": None if self._device is None else str(self._device)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(0, device=state["device"])  # type: ignore[misc]
        self.state = state

    @property
    def bit_generator(self) -> Philox4x32:
        """The stream of bits that the numbers are made of."""
        return self._bits

    @property
    def state(self) -> dict[str, Any]:
        """The state, to be set again: the algorithm, the key, and the number of counters used."""
        return self._bits.state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._bits.state = state

    def spawn(self: Own, n_children: int) -> list[Own]:
        """Independent generators, which this one's later numbers do not overlap."""
        return [type(self)(bits, device=self._device) for bits in self._bits.spawn(n_children)]

    # --- distributions of the kernels --------------------------------------------------------------------------------

    def _draw(
        self,
        kind: str,
        size: Shape | None,
        dtype: DTypeLike,
        out: ndarray | None,
        device: DeviceLike,
        a: float = 0.0,
        b: float = 1.0,
        low: int = 0,
        extent: int = 0,
    ) -> ndarray:
        if out is None:
            where = self._device if device is None else device
            drawn = None if kind == "integer" else self._bits.draw(kind, size, dtype, where, a, b)
            if drawn is not None:
                return drawn
            x = _native.empty(() if size is None else shape_of(size, kind), dtype, device=where)
            if x.size:
                self._bits.fill(x, kind, a, b, 0.0, low, extent)
            return x
        x = _checked_out(out, size, dtype, kind)
        dense = x if x._flags[0] else _native.empty(x.shape, x.dtype, device=x.device)
        if dense.size:
            self._bits.fill(dense, kind, a, b, 0.0, low, extent)
        if dense is not x:
            _native.copyto(x, dense)
        return x

    def random(
        self,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        out: ndarray | None = None,
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Uniform floats in [0, 1). size: the shape, none by default. out: an array to fill, of that dtype."""
        if out is None:
            drawn = self._bits.draw("uniform", size, dtype, self._device if device is None else device)
            if drawn is not None:
                return drawn
        return self._draw("uniform", size, _float(dtype, "random"), out, device)

    def uniform(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Uniform floats in [low, high); the bounds are numbers, or arrays that broadcast to `size`."""
        drawn = self._bits.draw("uniform", size, dtype, self._device if device is None else device, low, high)
        if drawn is not None:
            return drawn
        found = _float(dtype, "uniform")
        if _plain(low, high):
            return self._draw("uniform", size, found, None, device, float(low), float(high))
        low, high, size, device = self._operands(low, high, size, device)
        x: ndarray = (self.random(size, dtype, device=device) * (high - low) + low).astype(found, copy=False)
        return x

    def standard_normal(
        self,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        out: ndarray | None = None,
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Normally distributed floats of mean 0 and standard deviation 1."""
        if out is None:
            drawn = self._bits.draw("normal", size, dtype, self._device if device is None else device)
            if drawn is not None:
                return drawn
        return self._draw("normal", size, _float(dtype, "standard_normal"), out, device)

    def normal(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Normally distributed floats of mean `loc` and standard deviation `scale`: numbers, or arrays that broadcast.

        ValueError for a negative scale; for an array, the host waits.
        """
        drawn = self._bits.draw("normal", size, dtype, self._device if device is None else device, loc, scale)
        if drawn is not None:
            return drawn
        found = _float(dtype, "normal")
        if _plain(loc, scale):
            _check_scale(scale, "normal")
            return self._draw("normal", size, found, None, device, float(loc), float(scale))
        loc, scale, size, device = self._operands(loc, scale, size, device)
        _check_scale(scale, "normal")
        x: ndarray = (self.standard_normal(size, found, device=device) * scale + loc).astype(found, copy=False)
        return x

    def standard_exponential(
        self,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        out: ndarray | None = None,
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Exponentially distributed floats of mean 1."""
        if out is None:
            drawn = self._bits.draw("exponential", size, dtype, self._device if device is None else device, 1.0)
            if drawn is not None:
                return drawn
        return self._draw("exponential", size, _float(dtype, "standard_exponential"), out, device, 1.0)

    def exponential(
        self, scale: Any = 1.0, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Exponentially distributed floats of mean `scale`: a number, or an array that broadcasts."""
        drawn = self._bits.draw("exponential", size, dtype, self._device if device is None else device, scale)
        if drawn is not None:
            return drawn
        found = _float(dtype, "exponential")
        if _plain(scale):
            _check_scale(scale, "exponential")
            return self._draw("exponential", size, found, None, device, float(scale))
        scale, _, size, device = self._operands(scale, 0.0, size, device)
        _check_scale(scale, "exponential")
        x: ndarray = (self.standard_exponential(size, found, device=device) * scale).astype(found, copy=False)
        return x

    # --- orders and choices ------------------------------------------------------------------------------------------

    def _order(self, n: int, device: DeviceLike) -> ndarray:
        """A permutation of range(n): the order of random keys; equal ones keep theirs, so that it never fails."""
        if device is None:
            device = self._device
        if n == 0:
            return _native.empty((0,), _INT64, device=device)
        keys = _native.empty((n,), _UINT64, device=device)
        self._bits.fill(keys, "integer")
        return _native.argsort(keys, 0, False, True)

    def permutation(self, x: Any, axis: int = 0, *, device: DeviceLike = None) -> ndarray:
        """A copy of an array with its parts along an axis in random order; of an integer n, the numbers below it."""
        if not isinstance(x, (ndarray, list, tuple)):
            return self._order(index(x), device)
        a = as_array(x)
        axis = normalize_axis(axis, a.ndim, "permutation")
        return _native.take(a, self._order(a.shape[axis], a.device), axis)

    def shuffle(self, x: ndarray, axis: int = 0) -> None:
        """Shuffles the parts of an array along an axis, in place."""
        if not isinstance(x, ndarray) or x.ndim == 0:
            got = "a 0-d array" if isinstance(x, ndarray) else f"of type {type(x).__name__}"
            raise TypeError(f"shuffle(): x is {got}; it must be a dlbridge.nd.ndarray with an axis")
        _native.copyto(x, self.permutation(x, axis))

    def permuted(self, x: ArrayLike, axis: int | None = None, out: ndarray | None = None) -> ndarray:
        """A copy with the elements of each row along an axis in a random order of its own; by default of all."""
        from dlbridge.nd._indexing import take_along_axis

        a = as_array(x)
        flat = a.ravel() if axis is None and a.ndim != 1 else a
        along = 0 if axis is None else normalize_axis(axis, a.ndim, "permuted")
        if flat.ndim == 1:
            result = _native.take(flat, self._order(flat.size, flat.device), 0)
            return into(out, result if a.ndim == 1 else result.reshape(a.shape), "permuted")
        keys = self._draw("integer", flat.shape, _UINT64, None, a.device)
        result = take_along_axis(flat, _native.argsort(keys, along, False, True), along) if a.size else flat.copy()
        return into(out, result.reshape(a.shape), "permuted")

    def choice(
        self,
        a: Any,
        size: Shape | None = None,
        replace: bool = True,
        p: ArrayLike | None = None,
        axis: int = 0,
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Elements of an array along an axis (or integers below `a`), equally likely or with the probabilities `p`.

        replace: whether one may be chosen again. ValueError where there are not enough, or p is not a distribution over
        them, for which the host waits.
        """
        if isinstance(a, (ndarray, list, tuple)):
            pool: ndarray | None = as_array(a)
        else:
            pool = None if _plain(a) else as_parameter(a, self._device if device is None else device)
        n = _how_many(a) if pool is None else pool.shape[normalize_axis(axis, pool.ndim, "choice")]
        device = device if pool is None else pool.device
        shape = () if size is None else shape_of(size, "choice")
        count = 1
        for extent in shape:
            count *= extent
        if n <= 0 and count > 0:
            raise ValueError(f"choice(): there is nothing to choose from: {n} elements")
        if not replace and count > n:
            raise ValueError(f"choice(): {count} of {n} elements cannot be chosen without replacement")
        chosen = self._positions(n, count, replace, p, device).reshape(shape)
        return chosen if pool is None else _native.take(pool, chosen, axis)

    def _positions(self, n: int, count: int, replace: bool, p: Any, device: DeviceLike) -> ndarray:
        if p is None:
            if replace:
                return self._draw("integer", (count,), _INT64, None, device, extent=max(n, 1))
            return self._order(n, device)[:count]
        likely = _native.asarray(p, "float64", device=self._device if device is None else device)
        total = likely.sum().item()
        if likely.shape != (n,) or bool((likely < 0).any()) or not abs(total - 1) < 1e-8:
            raise ValueError(
                f"choice(): p of shape {likely.shape} and sum {total} is not a distribution over {n} elements"
            )
        if replace:
            bounds = likely.cumsum()
            bounds /= bounds[-1:]
            return _native.searchsorted_flat(bounds, self.random((count,), device=likely.device), True)
        if count > int((likely > 0).sum()):
            raise ValueError(f"choice(): fewer than {count} elements have a probability above 0")
        # The smallest of exponential numbers divided by their weights are such a sample (Efraimidis, Spirakis 2006).
        times = self.standard_exponential((n,), device=likely.device) / likely
        return _native.argsort(_native.where(likely > 0, times, inf), 0, False, True)[:count]

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        host = self._draw("integer", (index(length),), BY_NAME["uint8"], None, "cpu", extent=256)
        return memoryview(host).tobytes()  # type: ignore[arg-type]

    def _operands(self, a: Any, b: Any, size: Shape | None, device: DeviceLike) -> tuple[Any, Any, Any, Any]:
        """Parameters that may be arrays, and the shape and device that follow from them."""
        like = next((x for x in (a, b) if isinstance(x, ndarray)), None)
        device = like.device if like is not None else self._device if device is None else device
        a, b = (x if _plain(x) else as_parameter(x, device) for x in (a, b))
        shapes = [x.shape for x in (a, b) if isinstance(x, ndarray)]
        shape = broadcast_shapes(*shapes)
        if size is not None:
            given = shape_of(size, "random")
            if broadcast_shapes(given, shape) != given:
                raise ValueError(f"random: size {given} is not what parameters of shape {shape} broadcast to")
            shape = given
        return a, b, shape, device


def as_parameter(value: Any, device: DeviceLike) -> ndarray:
    """A parameter of a distribution. Those of other libraries move to where the numbers are made, as lists do."""
    return value if isinstance(value, ndarray) else _native.asarray(value, device=device)


_NUMBERS = frozenset({int, float})


def _plain(*values: Any) -> bool:
    for value in values:
        if type(value) not in _NUMBERS and (isinstance(value, (ndarray, list, tuple)) or getattr(value, "ndim", 0) > 0):
            return False
    return True


def _how_many(a: Any) -> int:
    try:
        return index(a)
    except TypeError:
        raise ValueError(f"choice(): a is {a!r}; give an array with an axis, or how many integers there are") from None


def _check_scale(scale: Any, operation: str) -> None:
    if bool((scale < 0).any() if isinstance(scale, ndarray) else scale < 0):
        got = "an array with negative numbers" if isinstance(scale, ndarray) else scale
        raise ValueError(f"{operation}(): scale is {got}; it must not be negative")


def _float(dtype: DTypeLike, operation: str) -> Any:
    found = resolve(dtype)
    if kind_of(found) != "f":
        raise TypeError(f"{operation}(): dtype is {found}; it must be a float. Use integers() for integers")
    return found


def _checked_out(out: ndarray, size: Shape | None, dtype: DTypeLike, operation: str) -> ndarray:
    if not isinstance(out, ndarray):
        raise TypeError(f"{operation}(): out is of type {type(out).__name__}; it must be a dlbridge.nd.ndarray")
    if out.dtype != resolve(dtype):
        raise TypeError(f"{operation}(): out is {out.dtype}; the numbers are {resolve(dtype)}. Give dtype=out.dtype")
    if size is not None and shape_of(size, operation) != out.shape:
        raise ValueError(f"{operation}(): out has shape {out.shape}, size is {size}")
    return out
