"""Elements added before and after each axis: constants, what is there again, or statistics of it."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, count_up
from dlbridge.nd._dtypes import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray

# The keywords that a mode takes, beside their defaults.
_KEYWORDS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}


def _pairs(value: Any, ndim: int, name: str) -> list[tuple[Any, Any]]:
    """`value` as (before, after) of each axis: one number, one pair, or a pair or number per axis."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return [(value, value)] * ndim
    if not any(isinstance(item, (list, tuple)) for item in value):
        if len(value) == 1:
            return [(value[0], value[0])] * ndim
        if len(value) == 2:
            return [(value[0], value[1])] * ndim
    else:
        pairs = [tuple(item) * (2 if len(item) == 1 else 1) for item in value]
        if len(pairs) in (1, ndim) and all(len(pair) == 2 for pair in pairs):
            return [(pair[0], pair[1]) for pair in pairs * (ndim if len(pairs) == 1 else 1)]
    raise ValueError(
        f"pad(): {name} {value} fits no array of {ndim} dimensions; give a number, a pair, or a pair per axis"
    )


def _extend_oddly(x: ndarray, axis: int, low: int, high: int, skipped: int) -> None:
    """Fills an axis of `x` around [low, high) by mirroring what is there through its edges, again and again."""
    along: tuple[Any, ...] = (slice(None),) * axis
    extent = x.shape[axis]

    def through(target: slice, edge: int, source: slice) -> None:
        at = x[(*along, slice(edge, edge + 1))]
        _native.subtract(at + at, x[(*along, source)], x[(*along, target)])

    while low > 0 or high < extent:
        there = high - low - skipped
        right, left = min(extent - high, there), min(low, there)
        if right:
            through(slice(high, high + right), high - 1, _backwards(high - 1 - skipped, right))
        if left:
            through(slice(low - left, low), low, _backwards(low + skipped + left - 1, left))
        low, high = low - left, high + right


def _extend(x: ndarray, axis: int, before: int, n: int, mode: str, odd: bool = False) -> None:
    """Fills an axis of `x` whose positions from `before` on, `n` of them, are there, by what its mode repeats."""
    along: tuple[Any, ...] = (slice(None),) * axis
    extent = x.shape[axis]

    def write(start: int, stop: int, source: slice) -> None:
        if stop > start:
            _native.copyto(x[(*along, slice(start, stop))], x[(*along, source)])

    low, high = before, before + n
    if mode == "edge":
        write(0, low, slice(low, low + 1))
        write(high, extent, slice(high - 1, high))
        return
    period = n
    if odd and (n > 1 or mode == "symmetric"):  # there is nothing beside a single element to mirror
        _extend_oddly(x, axis, low, high, int(mode == "reflect"))
        return
    if mode != "wrap":  # its mirror image on either side; "reflect" leaves the edge itself out
        skipped = int(mode == "reflect")
        period = max(2 * (n - skipped), 1)
        right, left = min(extent - high, n - skipped), min(low, n - skipped)
        write(high, high + right, _backwards(high - 1 - skipped, right))
        write(low - left, low, _backwards(low + skipped + left - 1, left))
        low, high = low - left, high + right
    while low > 0 or high < extent:  # whole periods of what is there, which doubles
        step = (high - low) // period * period
        right, left = min(extent - high, step), min(low, step)
        write(high, high + right, slice(high - step, high - step + right))
        write(low - left, low, slice(low - left + step, low + step))
        low, high = low - left, high + right


def _backwards(last: int, count: int) -> slice:
    """`count` positions from `last` down."""
    return slice(last, None if last < count else last - count, -1)


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> ndarray:
    """A copy with elements added before and after each axis.

    pad_width: how many: a number, a pair (before, after), or a pair per axis. mode: "constant" (constant_values=0,
    given in the same way), "edge", "empty", "linear_ramp" (end_values=0), "maximum", "mean", "median" or "minimum" (of
    stat_length= elements at the edge), "reflect" or "symmetric" (reflect_type="even" or "odd"), "wrap"; or a function
    that fills each line in place: function(line, widths, axis, keywords), on the host. ValueError for another mode or
    keyword, negative widths, or the repetition of an axis without elements. Source: NumPy.
    """
    a = as_array(array)
    widths = [(index(b), index(e)) for b, e in _pairs(pad_width, a.ndim, "pad_width")]
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError(f"pad(): pad_width {pad_width} has a negative number")
    if callable(mode):
        return _by_function(a, widths, mode, kwargs)
    if mode not in _KEYWORDS:
        known = ", ".join(map(repr, _KEYWORDS))
        raise ValueError(f"pad(): mode {mode!r} is unknown; give {known} or a function")
    for name in kwargs:
        if name not in _KEYWORDS[mode]:
            taken = ", ".join(_KEYWORDS[mode]) or "none"
            raise ValueError(f"pad(): mode {mode!r} does not take the keyword {name!r}; those that it takes: {taken}")
    options = {**_KEYWORDS[mode], **kwargs}
    if mode == "constant":
        return _pad_constant(a, widths, _pairs(options["constant_values"], a.ndim, "constant_values"))
    if mode == "empty":
        return _surrounded(a, widths)[0]
    if mode == "linear_ramp":
        return _with_edges(a, widths, _ramps(_pairs(options["end_values"], a.ndim, "end_values")))
    for axis, pair in enumerate(widths):
        if any(pair) and a.shape[axis] == 0:
            raise ValueError(f"pad(): axis {axis} has no element to repeat. Use mode='constant'")
    if "stat_length" in options:
        return _with_edges(a, widths, _statistics(mode, _pairs(options["stat_length"], a.ndim, "stat_length")))
    odd = options.get("reflect_type", "even")
    if odd not in ("even", "odd"):
        raise ValueError(f"pad(): reflect_type is {odd!r}; it must be 'even' or 'odd'")
    found = None if odd == "odd" else _in_one_pass(a, widths, mode, 0)
    if found is not None:
        return found
    x, inner = _surrounded(a, widths)
    for axis, (before, after) in enumerate(widths):
        if x.size and (before or after):  # of the later axes what is there: those repeat the corners
            part = x[(slice(None),) * (axis + 1) + inner[axis + 1 :]]
            _extend(part, axis, before, a.shape[axis], mode, odd == "odd")
    return x


def _with_edges(a: ndarray, widths: list[tuple[int, int]], edge: Callable[..., Any]) -> ndarray:
    """Pads axis by axis with edge(what is there, axis, the side, width)."""
    x, inner = _surrounded(a, widths)
    for axis, (before, after) in enumerate(widths):
        earlier, later = (slice(None),) * axis, inner[axis + 1 :]
        there = x[(*earlier, inner[axis], *later)]
        for side, width in enumerate((before, after)):
            if width:
                start = before + a.shape[axis] if side else 0
                x[(*earlier, slice(start, start + width), *later)] = edge(there, axis, side, width)
    return x


def _ramps(ends: list[tuple[Any, Any]]) -> Callable[..., Any]:
    def edge(there: ndarray, axis: int, side: int, width: int) -> ndarray:
        """From the given end to the edge of what is there, which is not repeated."""
        last = there[(*(slice(None),) * axis, slice(-1, None) if side else slice(0, 1))]
        steps = count_up(width, there.device, "float64").reshape((-1,) + (1,) * (there.ndim - axis - 1))
        start = ends[axis][side]
        wide = last.astype("complex128" if kind_of(last.dtype) == "c" else "float64")
        line = start + (wide - start) / width * steps
        line = _native.floor(line) if kind_of(there.dtype) in "iub" else line
        ordered = line[(*(slice(None),) * axis, slice(None, None, -1))] if side else line
        return ordered.astype(there.dtype)

    return edge


def _statistics(mode: str, lengths: list[tuple[Any, Any]]) -> Callable[..., Any]:
    whole: dict[int, ndarray] = {}  # of all of an axis: both sides are that

    def edge(there: ndarray, axis: int, side: int, _width: int) -> ndarray:
        from dlbridge.nd._quantiles import median

        n, given = there.shape[axis], lengths[axis][side]
        length = n if given is None else min(n, index(given))
        if length < 0 or (length == 0 and mode in ("maximum", "minimum")):
            raise ValueError(f"pad(): stat_length {given} gives mode={mode!r} no elements; give 1 or more")
        if length == n and axis in whole:
            return whole[axis]
        chosen = there[(*(slice(None),) * axis, slice(n - length, None) if side else slice(None, length))]
        if mode in ("maximum", "minimum"):
            found = (chosen.max if mode == "maximum" else chosen.min)(axis, keepdims=True)
        else:
            found = chosen.mean(axis, keepdims=True) if mode == "mean" else median(chosen, axis, keepdims=True)
            found = (_native.rint(found) if kind_of(there.dtype) in "iu" else found).astype(there.dtype)
        if length == n:
            whole[axis] = found
        return found

    return edge


def _by_function(a: ndarray, widths: list[tuple[int, int]], function: Callable[..., Any], given: Any) -> ndarray:
    x = _pad_constant(a, widths, [(0, 0)] * a.ndim)
    values = _native.to_device(x, "cpu")
    for axis in range(a.ndim):
        lines = values.swapaxes(axis, -1)
        for key in _keys(lines.shape[:-1]):
            line = lines[key].copy()
            function(line, widths[axis], axis, given)
            lines[key] = line
    return _native.to_device(values, x.device)


def _keys(shape: tuple[int, ...]) -> Any:
    from itertools import product

    return product(*map(range, shape))


def _surrounded(a: ndarray, widths: list[tuple[int, int]]) -> tuple[ndarray, tuple[slice, ...]]:
    """An array with `a` in its midst, and where that is; on the host in Fortran's order where `a` lies so."""
    shape = tuple(before + n + after for n, (before, after) in zip(a.shape, widths, strict=True))
    in_c, in_fortran = a._flags[:2]
    order = "F" if in_fortran and not in_c and isinstance(a, _native.HostArray) else "C"
    x = _native.empty(shape, a.dtype, device=a.device, order=order)
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(a.shape, widths, strict=True))
    x[inner] = a
    return x, inner


def _in_one_pass(a: ndarray, widths: list[tuple[int, int]], mode: str, value: Any) -> ndarray | None:
    """On a device, where one kernel writes border and body."""
    if isinstance(a, _native.HostArray):
        return None
    return _native.pad_on_device(a, tuple(before for before, _ in widths), tuple(end for _, end in widths), mode, value)


def _pad_constant(a: ndarray, widths: list[tuple[int, int]], values: list[tuple[Any, Any]]) -> ndarray:
    if len({repr(value) for pair in values for value in pair}) == 1:  # 0 and -0.0 are two
        found = _in_one_pass(a, widths, "constant", values[0][0])
        if found is not None:
            return found
    x, inner = _surrounded(a, widths)
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, values, strict=True)):
        earlier, later = (slice(None),) * axis, inner[axis + 1 :]  # a later axis owns the corners, as in NumPy
        if before:
            x[(*earlier, slice(None, before), *later)] = low
        if after:
            x[(*earlier, slice(before + a.shape[axis], None), *later)] = high
    return x
