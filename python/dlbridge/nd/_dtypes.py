"""The dtypes of the ndarray under all the names that users have for them, and what is known about each."""

from __future__ import annotations

from dlbridge import _core, _dtype
from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import DTypeLike

DType = _core.DType
dtype = DType

# The ndarray's dtypes by the kinds of the Array API.
_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", "bfloat16", "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
NAMES = tuple(name for names in _KINDS.values() for name in names)
BY_NAME: dict[str, DType] = {name: _dtype.BY_NAME[name] for name in NAMES}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
INEXACT = frozenset(_KINDS["real floating"] + _KINDS["complex floating"])


resolve, kind_of = _native.resolve, _native.kind_of


def resolve_other(obj: DTypeLike) -> DType:
    """What resolve() gives for what the extension does not know: see dlbridge._dtype.find(). The extension calls."""
    if isinstance(obj, str) and _dtype.is_swapped(obj):
        raise TypeError(
            f"dtype {obj!r} is in the opposite byte order, which the ndarray does not have. Byte-swap the data first, "
            f"and name {obj[1:]!r}"
        )
    found = _dtype.find(obj)
    if found is None or found.name not in BY_NAME:
        raise TypeError(
            f"data type {obj!r} is none of the ndarray's: {', '.join(NAMES)}. Name one of them, or give an object that "
            "stands for it"
        )
    return found


def is_inexact(x: Any) -> bool:
    """Whether the dtype of `x` has fractions."""
    return x.dtype.name in INEXACT


def real_dtype(obj: DTypeLike) -> DType:
    """The dtype of the parts of a complex dtype; any other itself."""
    name = resolve(obj).name
    return BY_NAME[{"complex64": "float32", "complex128": "float64"}.get(name, name)]


def float_for(obj: DTypeLike) -> DType:
    """The dtype that statistics of a dtype are computed and returned in: itself, or float64 for integers and bool."""
    return _native.result_type(resolve(obj), 1.0)


def loop_float(obj: DTypeLike) -> DType:
    """The dtype that functions of floats alone compute a dtype in: itself, or the smallest float that holds it."""
    found = resolve(obj)
    if found.name in INEXACT:
        return found
    return _native.result_type(found, "float16")


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether `dtype` is of `kind`: a dtype, a kind of the Array API ("bool", "signed integer", "unsigned integer",
    "integral", "real floating", "complex floating", "numeric"), or a tuple of such.

    ValueError for an unknown kind, TypeError for anything that is not a dtype. Source: Array API 2024.12.
    """
    if isinstance(kind, tuple):
        answers = [isdtype(dtype, k) for k in kind]  # all of them: each is checked
        return True in answers
    name = resolve(dtype).name
    if isinstance(kind, str):
        if kind in _KINDS:
            return name in _KINDS[kind]
        if kind not in BY_NAME:
            raise ValueError(f"isdtype(): kind {kind!r} is unknown; give a dtype or one of {', '.join(sorted(_KINDS))}")
    return name == resolve(kind).name


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is another one, or of an abstract class: nd.floating and its kin, which are NumPy's.

    TypeError for what is neither. Source: NumPy.
    """
    from dlbridge.nd import _abstract

    def is_abstract(given: Any) -> bool:
        return isinstance(given, type) and issubclass(given, _abstract.generic) and _dtype.find(given) is None

    if is_abstract(arg2):
        return issubclass(arg1 if is_abstract(arg1) else _abstract.OF_KIND[kind_of(arg1)], arg2)
    return not is_abstract(arg1) and resolve(arg1) == resolve(arg2)


can_cast, promote_types, result_type = _native.can_cast, _native.promote_types, _native.result_type


def min_scalar_type(a: Any, /) -> DType:
    """The smallest dtype that holds a number, of floats by their range alone; of arrays their own, of sequences that of
    the array they make.

    Nothing is read of an ndarray, also of one without a dimension, so that no device is waited for. OverflowError for
    integers that no dtype holds. Source: NumPy.
    """
    from dlbridge.nd._arguments import is_scalar

    if not is_scalar(a):
        return result_type(a if isinstance(a, _native.ndarray) or hasattr(a, "dtype") else _native.array(a))
    value = a.item() if hasattr(a, "item") else a
    if isinstance(value, bool):
        return BY_NAME["bool"]
    if isinstance(value, int):
        for name in ("uint8", "uint16", "uint32", "uint64") if value >= 0 else ("int8", "int16", "int32", "int64"):
            if iinfo(name).min <= value <= iinfo(name).max:
                return BY_NAME[name]
        raise OverflowError(f"min_scalar_type(): no dtype holds {value}. Give a float: float(value)")
    parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
    finite = max([abs(part) for part in parts if part - part == 0], default=0.0)
    names = ("complex64", "complex128") if isinstance(value, complex) else ("float16", "float32", "float64")
    return next(BY_NAME[name] for name in names if name == names[-1] or finite <= finfo(name).max)


def common_type(*arrays: _native.ndarray) -> DType:
    """The inexact dtype that fits all the arrays; integers count as float64."""
    return result_type(*[float_for(a.dtype) for a in arrays])


class iinfo:
    """The limits of an integer dtype: `bits`, `min`, `max`, `dtype`, `kind`. ValueError for any other dtype.

    `type` is a dtype or an array. Source: Array API 2024.12.
    """

    def __init__(self, type: Any) -> None:
        self.dtype = _dtype_of(type)
        self.kind = kind_of(self.dtype)
        if self.kind not in "iu":
            raise ValueError(f"iinfo(): {self.dtype} is not an integer dtype. Use finfo() for floats")
        self.bits = self.dtype.bits
        self.min = -(1 << (self.bits - 1)) if self.kind == "i" else 0
        self.max = (1 << (self.bits - (self.kind == "i"))) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def _dtype_of(given: Any) -> DType:
    """The dtype of an array, or one named itself: NumPy's scalar types have an attribute `dtype` that is none."""
    return resolve(given if isinstance(given, (type, DType)) else getattr(given, "dtype", given))


# Bits of the mantissa that are stored, and of the exponent.
_FORMATS = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}


class finfo:
    """The limits of a float dtype, of its parts for a complex one, as Python floats: `bits eps epsneg max min tiny
    smallest_normal smallest_subnormal precision resolution nmant nexp dtype`. ValueError for any other dtype.

    `type` is a dtype or an array. Source: Array API 2024.12, NumPy.
    """

    def __init__(self, type: Any) -> None:
        self.dtype = real_dtype(_dtype_of(type))
        if self.dtype.name not in _FORMATS:
            raise ValueError(f"finfo(): {self.dtype} is not a float dtype. Use iinfo() for integers")
        self.nmant, self.nexp = _FORMATS[self.dtype.name]
        self.bits = self.dtype.bits
        largest_exponent = (1 << (self.nexp - 1)) - 1
        self.eps = 2.0**-self.nmant
        self.epsneg = self.eps / 2
        self.max = (2.0 - self.eps) * 2.0**largest_exponent
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0 ** (1 - largest_exponent)
        self.smallest_subnormal = self.smallest_normal * self.eps
        self.precision = int(self.nmant * 0.30102999566398120)  # decimal digits: log10(2) a bit
        self.resolution = 10.0**-self.precision

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution}, min={self.min}, max={self.max}, dtype={self.dtype})"
