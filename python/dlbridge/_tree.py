"""How the rarer containers of convert() are taken apart and put together; python/src/tree.cpp has the others.

Here are subclasses of dict, list and tuple, collections.UserDict, dataclasses, and what optree has registered. Whatever
is made has the type of what was given: a copy by copy.copy(), in which the parts that are new are put, so that no
``__init__`` and no ``__post_init__`` runs a second time.
"""

from __future__ import annotations

import copy
import sys
from collections import UserDict
from collections.abc import Callable, Sequence
from typing import Any

# (names, parts, whether the names are fields, whether a new one is made in any case, how it is made of new parts)
_Taken = tuple[Sequence[Any], Sequence[Any], bool, bool, Callable[[list[Any]], Any]]


def _entry(kind: type) -> Any:
    """What optree knows of a type in its global namespace; None, too, where optree was not imported."""
    optree = sys.modules.get("optree")
    return None if optree is None else optree.register_pytree_node.get(kind)


def is_registered(kind: type) -> bool:
    """Whether optree takes objects of this type apart."""
    return _entry(kind) is not None


def _copied(container: Any) -> Any:
    made = copy.copy(container)
    if type(made) is not type(container) or made is container:
        raise TypeError(
            f"convert(): copy.copy() of a {type(container).__qualname__} gives {type(made).__qualname__}, "
            f"{'itself' if made is container else 'another type'}; a container needs a copy of its own to hold the new "
            "arrays. Give it a __copy__(), or convert what it holds"
        )
    return made


def _filled(made: Any, keys: Sequence[Any], old: Sequence[Any], new: Sequence[Any]) -> Any:
    for key, before, after in zip(keys, old, new, strict=True):
        if after is not before:
            made[key] = after
    return made


def _with_fields(container: Any, names: Sequence[str], old: Sequence[Any], new: Sequence[Any]) -> Any:
    made = _copied(container)
    for name, before, after in zip(names, old, new, strict=True):
        if after is not before:
            object.__setattr__(made, name, after)  # frozen ones, too
    return made


def _of_optree(container: Any, entry: Any) -> _Taken:
    children, metadata, *paths = entry.flatten_func(container)
    parts = list(children)
    names = list(paths[0]) if paths and paths[0] is not None else list(range(len(parts)))
    return names, parts, False, False, lambda new: entry.unflatten_func(metadata, new)


def take_apart(container: Any) -> _Taken:
    """The parts of a container, by name."""
    kind = type(container)
    if isinstance(container, (dict, UserDict, list)):
        made = _copied(container)  # now: code of an array's may change the container while the arrays are read
        items = list(enumerate(container) if isinstance(container, list) else container.items())
        keys, values = [key for key, _ in items], [value for _, value in items]
        return keys, values, False, True, lambda new: _filled(made, keys, values, new)
    if isinstance(container, tuple):
        return range(len(container)), container, False, False, kind
    entry = _entry(kind)
    if entry is not None:
        return _of_optree(container, entry)
    import dataclasses  # whoever has a dataclass has imported it

    # A field with init=False may not be there.
    names = [field.name for field in dataclasses.fields(container) if hasattr(container, field.name)]
    values = [getattr(container, name) for name in names]
    return names, values, True, False, lambda new: _with_fields(container, names, values, new)


def parts_of(container: Any) -> list[Any]:
    """The parts alone."""
    if isinstance(container, (dict, UserDict)):
        return list(container.values())
    return list(container if isinstance(container, (list, tuple)) else take_apart(container)[1])
