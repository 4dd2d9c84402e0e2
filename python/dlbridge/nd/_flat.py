"""Elements in C order, whatever the layout of the array."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_values, count_up
from dlbridge.nd._dtypes import kind_of
from dlbridge.nd._indexing import unravel_index
from dlbridge.nd._joining import resize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray


def _refuse_new_axis(key: Any) -> None:
    if key is None:
        raise IndexError("flat[None]: elements in one row get no new axis; give a number, a slice, or arrays of them")


def _write_over_and_over(target: ndarray, values: ndarray) -> None:
    """Values, of which there is one at least, to a vector: they begin again behind the last one, or are cut short."""
    line = values.ravel().copy()  # they may lie in what is written to
    whole, rest = divmod(target.size, line.size)
    if whole:
        target[: whole * line.size].reshape(whole, line.size)[...] = line
    if rest:
        target[-rest:] = line[:rest]


class flatiter:
    """The elements of an array, `base`, by one number in C order: read as copies, written in place. Source: NumPy."""

    def __init__(self, base: ndarray) -> None:
        self.base = base
        self._elements: Iterator[Any] | None = None

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> flatiter:
        return self

    def __next__(self) -> Any:
        """The next element, as a Python number, of those that the array had when the first was asked for."""
        if self._elements is None:
            self._elements = iter(self.base.ravel().tolist())
        return next(self._elements)

    def __getitem__(self, key: Any) -> ndarray:
        _refuse_new_axis(key)
        return self.base.ravel()[key].copy()

    def __setitem__(self, key: Any, value: ArrayLike) -> None:
        _refuse_new_axis(key)
        a, new = self.base, as_values(value, self.base)
        in_c = a._flags[0]
        if in_c and new.size == 1:
            a.reshape(-1)[key] = new.reshape(()) if new.ndim else new
            return
        target = a.reshape(-1) if in_c else count_up(a.size, a.device)
        chosen = target[key]
        if not chosen.size:
            return
        if new.ndim > 0 and new.size not in (1, chosen.size):  # it begins again, or is cut short
            if in_c and new.size and isinstance(key, slice):
                _write_over_and_over(chosen, new)
                return
            new = resize(new, (chosen.size,))
        new = new.reshape(() if new.size == 1 else chosen.shape)
        if in_c:
            target[key] = new
        else:
            a[unravel_index(chosen, a.shape)] = new

    def copy(self) -> ndarray:
        """The elements as a new vector."""
        return self.base.ravel().copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.copy().__array__(dtype)


def set_flat(self: ndarray, value: ArrayLike) -> None:
    flatiter(self)[:] = value


def swapped_by_views(a: ndarray) -> ndarray:
    """A copy with the bytes of each element, or of each part of a complex number, in the opposite order."""
    dense = a.ravel().copy()
    part = dense.itemsize // 2 if kind_of(dense.dtype) == "c" else dense.itemsize
    units = dense.view("uint8").reshape(-1, part)
    return units[:, ::-1].ravel().view(a.dtype).reshape(a.shape)
