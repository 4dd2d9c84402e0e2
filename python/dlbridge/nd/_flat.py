"""Elements in C order, whatever the layout of the array: what the extension leaves to Python."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_values, count_up
from dlbridge.nd._dtypes import kind_of
from dlbridge.nd._indexing import unravel_index
from dlbridge.nd._joining import resize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray
flatiter = _native.flatiter


def write(a: ndarray, key: Any, value: ArrayLike) -> None:
    """a.flat[key] = value. The extension calls."""
    new, in_c = as_values(value, a), a._flags[0]
    if in_c and new.size == 1:
        a.reshape(-1)[key] = new.reshape(()) if new.ndim else new
        return
    target = a.reshape(-1) if in_c else count_up(a.size, a.device)
    chosen = target[key]
    if not chosen.size:
        return
    if new.ndim > 0 and new.size not in (1, chosen.size):  # it begins again, or is cut short
        new = resize(new, (chosen.size,))
    new = new.reshape(() if new.size == 1 else chosen.shape)
    if in_c:
        target[key] = new
    else:
        a[unravel_index(chosen, a.shape)] = new


def swapped_by_views(a: ndarray) -> ndarray:
    """A copy with the bytes of each element, or of each part of a complex number, in the opposite order."""
    dense = a.ravel().copy()
    part = dense.itemsize // 2 if kind_of(dense.dtype) == "c" else dense.itemsize
    units = dense.view("uint8").reshape(-1, part)
    return units[:, ::-1].ravel().view(a.dtype).reshape(a.shape)
