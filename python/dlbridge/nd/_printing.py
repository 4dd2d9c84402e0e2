"""str() and repr() of arrays, as NumPy prints them. Of a large array only the edges that are shown are transferred."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._host import numpys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ndarray = _native.ndarray
_IMPLIED = frozenset({"bool", "int64", "float64", "complex128"})  # NumPy's defaults: not named in a repr
_LINE_WIDTH = 75
_EDGE_ITEMS, _THRESHOLD = 3, 1000


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _edges(x: ndarray, count: int) -> ndarray:
    """`x` with long axes cut to `count` elements at each end and one between, for which an ellipsis will stand."""
    from dlbridge.nd._joining import concatenate

    for axis in range(x.ndim):
        if x.shape[axis] > 2 * count + 1:
            before: tuple[Any, ...] = (slice(None),) * axis
            x = concatenate([x[(*before, slice(count + 1))], x[(*before, slice(x.shape[axis] - count, None))]], axis)
    return x


def _on_host(x: ndarray) -> ndarray:
    if str(x.dtype) == "bfloat16":
        x = x.astype("float32")
    return x if isinstance(x, _native.HostArray) else _native.to_device(x, "cpu")


def _nested(x: ndarray, summarised: bool, separator: str, prefix: str) -> str:
    """The elements without NumPy: nested brackets, the numbers as Python prints them, padded to one width."""

    def texts(value: Any) -> Any:
        return [texts(item) for item in value] if isinstance(value, list) else repr(value)

    def widest(value: Any) -> int:
        return max(map(widest, value), default=0) if isinstance(value, list) else len(value)

    values = texts(_on_host(x).tolist())
    width = widest(values)

    def joined(value: Any, depth: int) -> str:
        if not isinstance(value, list):
            return str(value).rjust(width)
        parts = [joined(item, depth + 1) for item in value]
        if summarised and len(parts) > 2 * _EDGE_ITEMS:
            parts[_EDGE_ITEMS : len(parts) - _EDGE_ITEMS] = ["..."]
        inner = x.ndim - depth - 1
        between = separator.rstrip() + "\n" * inner + " " * (len(prefix) + depth + 1) if inner else separator
        return "[" + between.join(parts) + "]"

    return joined(values, 0)


def _body(x: ndarray, separator: str, prefix: str, suffix: str) -> tuple[str, bool]:
    """The elements in brackets, and whether some were left out."""
    numpy = _numpy()
    options = numpy.get_printoptions() if numpy is not None else {}
    edge = options.get("edgeitems", _EDGE_ITEMS)
    summarised = x.size > options.get("threshold", _THRESHOLD)
    shown = _edges(x, edge) if summarised else x
    if numpy is None:
        return (_nested(shown, summarised, separator, prefix), summarised)
    host = _native.to_numpy(_on_host(shown))
    threshold = 0 if summarised else None
    return numpy.array2string(
        host, threshold=threshold, edgeitems=edge, separator=separator, prefix=prefix, suffix=suffix
    ), summarised


def array_str(a: ndarray) -> str:
    """The elements as NumPy prints them, the dtype left out."""
    if a.ndim == 0:
        return str(_native.to_numpy(_on_host(a))) if _numpy() is not None else repr(a.item())
    return _body(a, " ", "", "")[0]


def array_repr(a: ndarray) -> str:
    """``array([...], dtype=...)`` as NumPy prints it; the shape is named where elements are left out."""
    summarised = False
    if a.size > 0 or a.shape == (0,):
        text, summarised = _body(a, ", ", "array(", ")")
    else:
        text = "[]"
    extras = []
    if summarised or (a.size == 0 and a.shape != (0,)):
        extras.append(f"shape={a.shape}")
    if str(a.dtype) not in _IMPLIED or a.size == 0:
        extras.append(f"dtype={a.dtype}")
    text = f"array({text}"
    if not extras:
        return text + ")"
    extra = ", ".join(extras) + ")"
    last = len(text) - (text.rfind("\n") + 1)
    spacing = " " if last + len(extra) + 2 <= _LINE_WIDTH else "\n" + " " * len("array(")
    return f"{text},{spacing}{extra}"


def array2string(a: ndarray, separator: str = " ", prefix: str = "", suffix: str = "") -> str:
    """The elements as a string; arguments as NumPy's."""
    return _body(a, separator, prefix, suffix)[0]


def base_repr(number: int, base: int = 2, padding: int = 0) -> str:
    """An integer's digits in a base from 2 to 36, with `padding` zeros in front, by NumPy."""
    return str(numpys("numpy", "base_repr").base_repr(number, base, padding))


def binary_repr(num: int, width: int | None = None) -> str:
    """An integer's bits; negative ones as two's complement of `width` bits, by NumPy."""
    return str(numpys("numpy", "binary_repr").binary_repr(num, width))


def format_float_positional(x: Any, *args: Any, **kwargs: Any) -> str:
    """A number as text without an exponent; arguments as for NumPy's function of the name, which writes it."""
    return str(numpys("numpy", "format_float_positional").format_float_positional(_number(x), *args, **kwargs))


def format_float_scientific(x: Any, *args: Any, **kwargs: Any) -> str:
    """A number as text with an exponent; arguments as for NumPy's function of the name, which writes it."""
    return str(numpys("numpy", "format_float_scientific").format_float_scientific(_number(x), *args, **kwargs))


def _number(x: Any) -> Any:
    return _native.to_numpy(_native.to_device(x, "cpu"))[()] if isinstance(x, ndarray) else x
