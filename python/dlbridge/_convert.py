"""convert(): a tensor into a named framework, by the table in _consumers.py.

The extension does the fast part (asdlpack, and the direct route to NumPy and to consumers with a C exchange API)
and calls convert_tensor() for everything else.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dlbridge import _core, _routes
from dlbridge._capability import Access, Consumer, Layout, Outcome, Verdict, check, faults_of, select, self_copy
from dlbridge._consumers import ALIASES, CONSUMERS


def consumer_names() -> list[str]:
    """The names that convert() knows, in the table's order."""
    return list(CONSUMERS)


def _import(name: str, module: str) -> ModuleType:
    loaded = sys.modules.get(module)
    if loaded is not None:
        return loaded
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"convert(): to={name!r}, but module {module!r} cannot be imported: {error}. Install it, or name another "
            f"of {', '.join(CONSUMERS)}",
            name=module,
        ) from error


def _generic_row(name: str) -> tuple[Consumer, ...]:
    """A module that is in no row but has the Array API's from_dlpack(): it knows best what it takes."""
    try:
        known = callable(getattr(importlib.import_module(name), "from_dlpack", None))
    except ImportError:
        known = False
    if not known:
        raise ValueError(
            f"convert(): to={name!r} is no consumer that is known, nor an installed module with from_dlpack(). "
            f"Known: {', '.join(CONSUMERS)}"
        )
    return (Consumer(name, name, _routes.from_dlpack, frozenset(), frozenset(), Access.KEEPS, Layout.ANY),)


def find_rows(to: str | ModuleType) -> tuple[Consumer, ...]:
    """The rows of the consumer that `to` names; ValueError where there is none."""
    full_name = to.__name__ if isinstance(to, ModuleType) else to
    for name in (full_name, full_name.partition(".")[0]):
        rows = CONSUMERS.get(ALIASES.get(name, name))
        if rows is not None:
            return rows
    return _generic_row(full_name)


# Rows found before, with their checks, by consumer, dtype, device type and rank: the table is searched once each.
_Known = tuple[Consumer, tuple[Callable[[Consumer, _core.Tensor], str], ...], str]
_known: dict[tuple[str | ModuleType, str, str, int], _Known] = {}


def plan(tensor: _core.Tensor, to: str | ModuleType) -> tuple[Consumer | None, Verdict]:
    """What convert() would do with `tensor`: the row it would use, and whether it passes, is copied or refused.

    Imports no consumer. A verdict of COPY with a row says why; REFUSED comes without a row.
    """
    key = (to, str(tensor.dtype), tensor.device.type, tensor.ndim)
    known = _known.get(key)
    if known is None:
        rows = find_rows(to)
        if not rows[0].dtypes:  # a generic row: no capability is known
            return rows[0], Verdict(Outcome.AS_IS)
        row, verdict = select(rows, tensor)
        if row is None:
            return None, verdict
        known = _known[key] = (row, faults_of(row), self_copy(row, tensor))
    row, faults, own = known
    if own:
        return row, Verdict(Outcome.COPY, own, "Allow a copy: copy=None or copy=True.")
    return row, check(row, faults, tensor)


def convert_tensor(tensor: _core.Tensor, to: str | ModuleType, copy: bool | None = None) -> object:
    """Gives `tensor` to the consumer `to` and returns the consumer's object.

    `copy`: None copies only where the consumer cannot take the tensor as it is, True always copies, False raises
    CopyError instead of copying. Raises ExchangeError where the consumer cannot take the tensor at all, ImportError
    where it is not installed, ValueError where `to` names no consumer.
    """
    row, verdict = plan(tensor, to)
    if row is None:
        raise _core.ExchangeError(f"convert(): {verdict.reason}. {verdict.remedy}")
    if verdict.outcome is Outcome.COPY and copy is False:
        raise _core.CopyError(f"convert(): {row.name} needs a copy: {verdict.reason}. {verdict.remedy}")
    module = _import(row.name, row.module)
    if not self_copy(row, tensor) and (copy is True or verdict.outcome is Outcome.COPY):
        tensor = _core.asdlpack(tensor, copy=True)  # dense, writable, aligned to 64 bytes or more
    try:
        return row.route(module, tensor)
    except (MemoryError, _core.ExchangeError):
        raise
    except ImportError as error:
        raise _core.ExchangeError(f"convert(): {row.name} cannot take {tensor!r}: {error}. {row.note}") from error
    except Exception as error:
        raise _core.ExchangeError(f"convert(): {row.name} refused {tensor!r}: {error}") from error


def convert(
    obj: Any,
    to: str | ModuleType,
    /,
    *,
    device: Any = None,
    copy: bool | None = None,
    stream: Any = None,
) -> object:
    """dlbridge.convert() for all that the extension does not do directly; it calls this with its own arguments."""
    if not isinstance(to, (str, ModuleType)):
        raise TypeError(
            f"convert(): to is of type {type(to).__name__}; it names a framework, as 'torch' or as the module"
        )
    if to not in CONSUMERS:
        find_rows(to)  # an unknown name is the caller's mistake, whatever the object is
    tensor = _core.asdlpack(obj, device=device, stream=stream, copy=copy)
    # With copy=True the copy is made by now: another only where the consumer cannot take even that.
    return convert_tensor(tensor, to, None if copy else copy)
