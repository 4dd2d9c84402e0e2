"""fields(): the fields of a structured array as tensors of their own."""

from __future__ import annotations

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _tensor(view: Any, path: str, copy: bool) -> _core.Tensor:
    try:
        if not copy:
            return _core.asdlpack(view)
        return _core.asdlpack(view.astype(view.dtype.newbyteorder("="), order="C", copy=True))
    except (BufferError, TypeError, ValueError) as error:
        text = str(error).removeprefix("asdlpack(): ")
        remedy = "" if copy else ". A copy can lie otherwise: fields(x, copy=True)"
        raise type(error)(
            f"fields(): field {path!r}: {text}{remedy}. Other fields alone: fields(x[['name', ...]])"
        ) from error


def _fields(array: Any, path: str, copy: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in array.dtype.names:
        where = f"{path}.{name}" if path else name
        view = array[name]
        made[name] = _tensor(view, where, copy) if view.dtype.names is None else _fields(view, where, copy)
    return made


def fields(x: Any, *, copy: bool = False) -> dict[str, Any]:
    """The fields of a structured NumPy array (or of an object that NumPy takes for one), by name.

    Each is a Tensor that shares the array's memory, with the array's shape and the record's strides; a field that is an
    array itself has its axes last, one that has fields itself is a dict. Read-only memory stays read-only.
    copy=True gives dense copies in native byte order instead: for fields in the other byte order, and for records that
    are not a multiple of a field's size, whose strides no DLPack tensor can have.

    Raises TypeError where `x` has no fields, BufferError for a field that cannot be shared, each with the field's name.
    """
    import numpy

    array = x if isinstance(x, numpy.ndarray) else numpy.asarray(x)
    if array.dtype.names is None:
        raise TypeError(
            f"fields(): the array has dtype {array.dtype}, which has no fields. Use asdlpack(x) for an array of numbers"
        )
    return _fields(array, "", copy)
