"""NumPy's abstract dtypes, which issubdtype() takes: NumPy's own classes, or stand-ins where there is no NumPy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating", "complexfloating")


def _stand_ins() -> list[type]:
    """The classes as NumPy has them, one below the other."""
    generic = type("generic", (), {"__doc__": "Any dtype."})
    number = type("number", (generic,), {"__doc__": "A dtype of numbers, bool aside."})
    integer, inexact = type("integer", (number,), {}), type("inexact", (number,), {})
    return [
        generic, number, integer, type("signedinteger", (integer,), {}), type("unsignedinteger", (integer,), {}),
        inexact, type("floating", (inexact,), {}), type("complexfloating", (inexact,), {}),
    ]  # fmt: skip


try:
    import numpy
except ImportError:
    _found = _stand_ins()
else:
    _found = [getattr(numpy, name) for name in NAMES]

generic, number, integer, signedinteger, unsignedinteger, inexact, floating, complexfloating = _found

# The class of each one-letter kind.
OF_KIND: dict[str, Any] = {
    "b": generic,
    "i": signedinteger,
    "u": unsignedinteger,
    "f": floating,
    "c": complexfloating,
}
