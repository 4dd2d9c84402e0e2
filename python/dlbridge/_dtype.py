"""The names that users have for dtypes, and NumPy's dtypes behind them: what DType asks for beyond its name.

Importing this module imports no framework; NumPy and ml_dtypes are loaded when one of their dtypes is needed.
"""

from __future__ import annotations

import sys

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DType = _core.DType

# NumPy's other names of its dtypes, the one-letter code first; those of C types are Linux's on 64 bits.
_ALIASES: dict[str, tuple[str, ...]] = {
    "bool": ("?", "b1", "bool_"),
    "int8": ("b", "i1", "byte"),
    "int16": ("h", "i2", "short"),
    "int32": ("i", "i4", "intc"),
    "int64": ("l", "q", "p", "i8", "n", "int", "int_", "intp", "long", "longlong"),
    "uint8": ("B", "u1", "ubyte"),
    "uint16": ("H", "u2", "ushort"),
    "uint32": ("I", "u4", "uintc"),
    "uint64": ("L", "Q", "P", "u8", "N", "uint", "uintp", "ulong", "ulonglong"),
    "float16": ("e", "f2", "half"),
    "float32": ("f", "f4", "single"),
    "float64": ("d", "f8", "float", "double", "float_"),
    "complex64": ("F", "c8", "csingle"),
    "complex128": ("D", "c16", "complex", "cdouble", "complex_"),
}
BY_NAME: dict[str, DType] = {
    row["name"]: _core._dtype(row["code"], row["bits"], row["lanes"]) for row in _core.dtypes()
}
_BY_ALIAS = {
    **BY_NAME,
    "bf16": BY_NAME["bfloat16"],
    **{alias: BY_NAME[name] for name, aliases in _ALIASES.items() for alias in aliases},
}
_BY_TYPE: dict[Any, DType] = {
    bool: BY_NAME["bool"],
    int: BY_NAME["int64"],
    float: BY_NAME["float64"],
    complex: BY_NAME["complex128"],
}


def is_swapped(text: str) -> bool:
    """Whether a typestr is in the opposite byte order."""
    found = _BY_ALIAS.get(text[1:])
    return text[:1] == (">" if sys.byteorder == "little" else "<") and found is not None and found.itemsize > 1


def _from_string(text: str) -> DType | None:
    return None if is_swapped(text) else _BY_ALIAS.get(text[1:] if text[:1] in ("<", ">", "=", "|") else text)


def _from_numpy(obj: Any) -> DType | None:
    """By way of NumPy, which knows its dtypes, scalar types, ctypes and whatever has a `dtype`."""
    numpy = sys.modules.get("numpy")
    if numpy is None and isinstance(obj, type):
        try:
            import numpy
        except ImportError:
            return None
    if numpy is None:
        return None
    try:
        theirs = numpy.dtype(obj)
    except (TypeError, ValueError):
        return None
    return BY_NAME.get(theirs.name) if theirs.isnative else None


def find(obj: Any) -> DType | None:
    """The DType that `obj` names, in any spelling that NumPy takes, and torch's dtypes; None where it names none."""
    if isinstance(obj, DType):
        return obj
    if isinstance(obj, (str, bytes)):
        return _from_string(obj if isinstance(obj, str) else obj.decode("latin-1"))
    if obj is None:
        return None
    if type(obj).__module__ == "torch":
        return BY_NAME.get(str(obj).removeprefix("torch."))
    if isinstance(obj, type) and obj in _BY_TYPE:
        return _BY_TYPE[obj]
    return _from_numpy(obj)


def make(dtype: Any = None) -> DType:
    """DType(...): the one that `dtype` names, float64 for None, as numpy.dtype(). TypeError for what names none."""
    found = BY_NAME["float64"] if dtype is None else find(dtype)
    if found is None:
        swapped = isinstance(dtype, str) and is_swapped(dtype)
        why = "is in the opposite byte order" if swapped else "names none of the dtypes that there are"
        raise TypeError(f"DType(): {dtype!r} {why}. Give a name ('float32', 'f4'), or a dtype of NumPy or torch")
    return found


def to_numpy(self: DType) -> Any:
    """NumPy's dtype of that name, or ml_dtypes'. So numpy.empty(3, x.dtype) works."""
    import numpy

    if self.name in _ALIASES:
        return numpy.dtype(self.name)
    import ml_dtypes

    if not hasattr(ml_dtypes, self.name):
        raise TypeError(f"{self.name} is a dtype of neither NumPy nor ml_dtypes")
    return numpy.dtype(getattr(ml_dtypes, self.name))


_hashes: dict[str, int] = {}


def hash_of(self: DType) -> int:
    """NumPy's hash of the dtype, which equals it; the name's where NumPy has none, or is not installed."""
    found = _hashes.get(self.name)
    if found is None:
        try:
            found = hash(to_numpy(self))
        except (ImportError, TypeError):
            found = hash(self.name)
        _hashes[self.name] = found  # for good: NumPy may become importable later
    return found


def char(self: DType) -> str:
    names = _ALIASES.get(self.name)
    return names[0] if names else str(to_numpy(self).char)


def typestr(self: DType) -> str:
    return str(to_numpy(self).str)


def descr(self: DType) -> list[tuple[str, str]]:
    """What array interfaces have beside their typestr."""
    return list(to_numpy(self).descr)


def scalar_type(self: DType) -> Any:
    return to_numpy(self).type


def make_scalar(self: DType, value: Any = 0) -> Any:
    """A NumPy scalar of this dtype, as numpy.float32(value) makes it: a kernel's argument, for one."""
    return scalar_type(self)(value)


def inner_dtype(self: DType) -> Any:
    """`DType.dtype`: where NumPy before 2.4 looks for the dtype of an object. Newer ones look at __numpy_dtype__, and
    take an object with both, and what has it for its dtype, for a mistake."""
    import numpy

    if tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 4):
        raise AttributeError("'DType' object has no attribute 'dtype'")
    return to_numpy(self)
