"""What the functions of the namespace share: operands, axes and shapes, checked once and in one wording."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native

TYPE_CHECKING = False  # `typing` would cost a third of the import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, SupportsIndex, TypeAlias, TypeVar

    # What functions compute with: an ndarray, a Python or NumPy scalar, nested sequences of them.
    ArrayLike: TypeAlias = _native.ndarray | complex | SupportsIndex | Sequence[Any]
    DTypeLike: TypeAlias = Any  # whatever _dtypes.resolve() takes
    DeviceLike: TypeAlias = Any
    Shape: TypeAlias = int | Sequence[int]
    Error = TypeVar("Error", bound=Exception)
    Axis: TypeAlias = int | Sequence[int] | None

ndarray = _native.ndarray


class AxisError(ValueError, IndexError):
    """An axis that the array does not have. Where NumPy is loaded, those raised are of NumPy's class, too."""


_numpys_too: dict[type, Any] = {}


def with_numpys(own: type[Error], module: str) -> type[Error]:
    """An exception class of the ndarray's that, where NumPy is loaded, is the one of that name in its `module`, too."""
    import sys

    numpy: Any = sys.modules.get("numpy")
    theirs = getattr(getattr(numpy, module, numpy), own.__name__, None)  # NumPy before 1.25 has no numpy.exceptions
    if own not in _numpys_too and theirs is not None:
        _numpys_too[own] = type(own.__name__, (own, theirs), {"__module__": own.__module__})
    found: type[Error] = _numpys_too.get(own, own)
    return found


def axes_error(message: str) -> AxisError:
    return with_numpys(AxisError, "exceptions")(message)


def axis_error(operation: str, axis: int, ndim: int) -> AxisError:
    """The error of an axis out of bounds; the extension asks for it, too."""
    name = operation.removesuffix("()")
    if ndim == 0:
        return axes_error(f"{name}(): axis {axis} is out of bounds for a 0-d array, which has no axis")
    return axes_error(
        f"{name}(): axis {axis} is out of bounds for an array of {ndim} dimension{'s' * (ndim > 1)}; it must be from "
        f"{-ndim} to {ndim - 1}"
    )


_SCALARS = (bool, int, float, complex)


def is_scalar(value: object) -> bool:
    """Whether `value` is a Python number or a NumPy scalar."""
    return isinstance(value, _SCALARS) or (
        type(value).__module__ == "numpy"
        and getattr(value, "shape", None) == ()
        and hasattr(value, "item")
        and type(value).__name__ not in ("ndarray", "memmap")
    )


as_array, as_arrays = _native.as_array, _native.as_arrays
into, normalize_axis, normalize_axes = _native.into, _native.normalize_axis, _native.normalize_axes


def new_array(value: ArrayLike, like: ndarray | None) -> ndarray:
    """What as_array() makes of anything but an ndarray. The extension calls."""
    if isinstance(value, ndarray):  # what stands for one while fuse() records
        return value
    device = None if like is None else like.device
    if isinstance(value, (list, tuple)) or is_scalar(value):
        return _native.array(value, device=device)
    raise TypeError(f"Unsupported type {type(value)}")


def as_values(value: ArrayLike, like: ndarray) -> ndarray:
    """What is written to `like`: an ndarray itself, anything else as an ndarray of the dtype of `like`, on its device.

    OverflowError for Python integers that the dtype cannot hold.
    """
    if isinstance(value, ndarray):
        return value
    if isinstance(value, (list, tuple)) or is_scalar(value):
        return _native.array(value, like.dtype, device=like.device)
    raise TypeError(f"Unsupported type {type(value)}")


def as_operands(*values: ArrayLike) -> list[ndarray]:
    """as_arrays(), but Python scalars beside arrays get the dtype that the two promote to (NEP 50), as ufuncs do it."""
    arrays = [value for value in values if isinstance(value, ndarray)]
    if len(arrays) == len(values):
        return arrays
    like = arrays[0] if arrays else None
    return [
        _native.array(value, _native.result_type(*arrays, value), device=like.device)
        if like is not None and type(value) in _SCALARS
        else as_array(value, like)
        for value in values
    ]


def as_positions(indices: ArrayLike, like: ndarray | None, operation: str) -> ndarray:
    """Index arrays as int64, in which arithmetic on them does not wrap. TypeError for anything but integers."""
    positions = as_array(indices, like)
    if positions.dtype.name.startswith(("int", "uint", "bool")):
        return positions.astype("int64", copy=False)
    raise TypeError(f"{operation}(): indices are {positions.dtype}; they must be integers")


def shape_of(shape: Any, operation: str) -> tuple[int, ...]:
    """A shape argument as a tuple. ValueError for negative extents, TypeError for anything that is not an integer."""
    if type(shape) is int and shape >= 0:
        return (shape,)
    extents = tuple(map(index, shape)) if hasattr(shape, "__iter__") else (index(shape),)
    if extents and min(extents) < 0:
        raise ValueError(f"{operation}(): shape {extents} has a negative extent. Extents are 0 or more")
    return extents


def order_of(order: Any, operation: str, letters: str = "CFAK") -> str:
    """A memory order as its capital letter. ValueError unless it is one of `letters`."""
    found = order.upper() if isinstance(order, str) else ""
    if len(found) != 1 or found not in letters:
        *some, last = list(letters)
        raise ValueError(f"{operation}(): order {order!r} is unknown; give {', '.join(map(repr, some))} or {last!r}")
    return found


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to. ValueError where two extents differ and neither is 1."""
    return _native.common_shape("broadcast_shapes()", *shapes)


def count_up(n: int, device: DeviceLike = None, dtype: DTypeLike = "int64") -> ndarray:
    """The numbers from 0 to n - 1."""
    x = _native.empty((n,), dtype, device=device)
    if x.size:
        _native.range_fill(x, 0, 1)
    return x


def one_device(arrays: Sequence[ndarray], operation: str) -> Any:
    """The device that all the arrays are on; None for no array. ValueError where they differ."""
    if len({a.__dlpack_device__() for a in arrays}) == 1:
        return arrays[0].device
    devices = {str(a.device): a.device for a in arrays}
    if len(devices) > 1:
        raise ValueError(
            f"{operation}(): arrays on {' and '.join(devices)} cannot be combined. Move them to one device: "
            "x.to_device(device)"
        )
    return next(iter(devices.values()), None)


def write_out(out: Any, result: ndarray, operation: str, casting: str = "same_kind") -> ndarray:
    """What into() does where `out` is given. The extension calls."""
    check_out(out, result, operation)
    _native.copyto(out, result, casting)
    given: ndarray = out
    return given


def check_out(out: Any, result: ndarray, operation: str) -> None:
    """Whether `result` can be written to `out`; that the dtypes fit, copyto() says."""
    if not isinstance(out, ndarray):
        raise TypeError(f"{operation}(): out is of type {type(out).__name__}; it must be a dlbridge.nd.ndarray")
    if out.shape != result.shape:
        raise ValueError(f"{operation}(): out has shape {out.shape}; the result has {result.shape}")
