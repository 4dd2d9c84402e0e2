"""The dtypes of the ndarray under all the names that users have for them, and what is known about each."""

from __future__ import annotations

from dlbridge import _core
from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import DTypeLike

DType = _core.DType
dtype = DType

# name: (kind as the Array API groups them, NumPy's one-letter kind, other names of it). NumPy's aliases of C types are
# those of Linux on 64 bits.
_TABLE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "bool": ("bool", "b", ("?", "b1", "bool_")),
    "int8": ("signed integer", "i", ("b", "i1", "byte")),
    "int16": ("signed integer", "i", ("h", "i2", "short")),
    "int32": ("signed integer", "i", ("i", "i4", "intc")),
    "int64": ("signed integer", "i", ("l", "q", "p", "i8", "n", "int", "int_", "intp", "long", "longlong")),
    "uint8": ("unsigned integer", "u", ("B", "u1", "ubyte")),
    "uint16": ("unsigned integer", "u", ("H", "u2", "ushort")),
    "uint32": ("unsigned integer", "u", ("I", "u4", "uintc")),
    "uint64": ("unsigned integer", "u", ("L", "Q", "P", "u8", "N", "uint", "uintp", "ulong", "ulonglong")),
    "float16": ("real floating", "f", ("e", "f2", "half")),
    "bfloat16": ("real floating", "f", ("bf16",)),
    "float32": ("real floating", "f", ("f", "f4", "single")),
    "float64": ("real floating", "f", ("d", "f8", "float", "double", "float_")),
    "complex64": ("complex floating", "c", ("F", "c8", "csingle")),
    "complex128": ("complex floating", "c", ("D", "c16", "complex", "cdouble", "complex_")),
}
NAMES = tuple(_TABLE)
BY_NAME: dict[str, DType] = {name: _native.result_type(name) for name in NAMES}
_BY_ALIAS = {**BY_NAME, **{alias: BY_NAME[name] for name, row in _TABLE.items() for alias in row[2]}}
_BY_TYPE: dict[type, DType] = {
    bool: BY_NAME["bool"],
    int: BY_NAME["int64"],
    float: BY_NAME["float64"],
    complex: BY_NAME["complex128"],
}
_KINDS: dict[str, tuple[str, ...]] = {
    kind: tuple(name for name, row in _TABLE.items() if row[0] == kind) for kind in {row[0] for row in _TABLE.values()}
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
_INEXACT = frozenset(_KINDS["real floating"] + _KINDS["complex floating"])


def _from_string(text: str) -> DType | None:
    order, rest = (text[0], text[1:]) if text[:1] in ("<", "=", "|", ">") else ("", text)
    found = _BY_ALIAS.get(rest)
    if order == ">" and found is not None and found.itemsize > 1:
        raise TypeError(
            f"dtype {text!r} is in the other byte order, which the ndarray does not have. Byte-swap the data first, "
            f"and name {rest!r}"
        )
    return found


def resolve(obj: DTypeLike) -> DType:
    """The DType that `obj` names.

    A DType, a name or typestr ("float32", "f4", "<f8", "i"), a Python type (float), a dtype or scalar type of NumPy,
    ml_dtypes or torch. TypeError for anything else, and for dtypes that the ndarray does not have.
    """
    found: DType | None = None
    if isinstance(obj, DType):
        found = BY_NAME.get(obj.name)
    elif isinstance(obj, str):
        found = _from_string(obj)
    elif isinstance(obj, type):
        found = _BY_TYPE.get(obj) or _from_string(obj.__name__)
    elif isinstance(getattr(obj, "str", None), str) and isinstance(getattr(obj, "name", None), str):  # numpy.dtype
        found = _from_string(obj.str) or (BY_NAME.get(obj.name) if getattr(obj, "isnative", True) else None)
    elif str(obj).startswith("torch."):
        found = BY_NAME.get(str(obj)[len("torch.") :])
    if found is None:
        raise TypeError(
            f"data type {obj!r} is none of the ndarray's: {', '.join(NAMES)}. Name one of them, or give an object that "
            "stands for it"
        )
    return found


def kind_of(obj: DTypeLike) -> str:
    """NumPy's one-letter kind of a dtype: "b", "i", "u", "f" or "c"."""
    return _TABLE[resolve(obj).name][1]


def is_inexact(x: Any) -> bool:
    """Whether the dtype of `x` has fractions."""
    return x.dtype.name in _INEXACT


def real_dtype(obj: DTypeLike) -> DType:
    """The dtype of the parts of a complex dtype; any other itself."""
    name = resolve(obj).name
    return BY_NAME[{"complex64": "float32", "complex128": "float64"}.get(name, name)]


def float_for(obj: DTypeLike) -> DType:
    """The dtype that statistics of a dtype are computed and returned in: itself, or float64 for integers and bool."""
    found = resolve(obj)
    return found if found.name in _INEXACT else BY_NAME["float64"]


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether `dtype` is of `kind`: a dtype, a kind of the Array API ("bool", "signed integer", "unsigned integer",
    "integral", "real floating", "complex floating", "numeric"), or a tuple of such.

    ValueError for an unknown kind, TypeError for what is no dtype. Source: Array API 2024.12.
    """
    if isinstance(kind, tuple):
        answers = [isdtype(dtype, k) for k in kind]  # all of them: each is checked
        return True in answers
    name = resolve(dtype).name
    if isinstance(kind, str):
        if kind in _KINDS:
            return name in _KINDS[kind]
        if kind not in _TABLE:
            raise ValueError(f"isdtype(): kind {kind!r} is unknown; give a dtype or one of {', '.join(sorted(_KINDS))}")
    return name == resolve(kind).name


def can_cast(from_: Any, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether a dtype or array can be cast to the dtype `to`; `casting`: "no", "equiv", "safe", "same_kind", "unsafe".

    ValueError for another `casting`, TypeError for what is no dtype. Source: Array API 2024.12, NumPy.
    """
    return _native.can_cast(from_.dtype if isinstance(from_, _native.ndarray) else resolve(from_), resolve(to), casting)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that operands of these dtypes (arrays, dtypes, Python scalars) are promoted to, as NumPy 2 does.

    ValueError for no argument, TypeError where there is no common dtype. Source: Array API 2024.12, NEP 50.
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type(): no argument; give at least one array, dtype or scalar")
    operands = [
        a if isinstance(a, (_native.ndarray, bool, int, float, complex)) else resolve(getattr(a, "dtype", a))
        for a in arrays_and_dtypes
    ]
    return _native.result_type(*operands)


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """The smallest dtype that both dtypes can be cast to safely; NumPy's rules."""
    return result_type(resolve(type1), resolve(type2))


def common_type(*arrays: _native.ndarray) -> DType:
    """The inexact dtype that fits all the arrays; integers count as float64."""
    return result_type(*[float_for(a.dtype) for a in arrays])


class iinfo:
    """The limits of an integer dtype: `bits`, `min`, `max`, `dtype`, `kind`. ValueError for any other dtype.

    `type` is a dtype or an array. Source: Array API 2024.12.
    """

    def __init__(self, type: Any) -> None:
        self.dtype = resolve(getattr(type, "dtype", type))
        self.kind = kind_of(self.dtype)
        if self.kind not in "iu":
            raise ValueError(f"iinfo(): {self.dtype} is no integer dtype. Use finfo() for floats")
        self.bits = self.dtype.bits
        self.min = -(1 << (self.bits - 1)) if self.kind == "i" else 0
        self.max = (1 << (self.bits - (self.kind == "i"))) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


# Bits of the mantissa that are stored, and of the exponent.
_FORMATS = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}


class finfo:
    """The limits of a float dtype, of its parts for a complex one, as Python floats: `bits eps epsneg max min tiny
    smallest_normal smallest_subnormal precision resolution nmant nexp dtype`. ValueError for any other dtype.

    `type` is a dtype or an array. Source: Array API 2024.12, NumPy.
    """

    def __init__(self, type: Any) -> None:
        self.dtype = real_dtype(getattr(type, "dtype", type))
        if self.dtype.name not in _FORMATS:
            raise ValueError(f"finfo(): {self.dtype} is no float dtype. Use iinfo() for integers")
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


def _to_numpy(self: DType) -> Any:
    if self.name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return self.name


def _numpy_dtype(self: DType) -> Any:
    """NumPy's dtype of that name; bfloat16 is that of ml_dtypes. So numpy.empty(3, x.dtype) works."""
    import numpy

    return numpy.dtype(_to_numpy(self))


def _make_scalar(self: DType, value: Any = 0) -> Any:
    """A NumPy scalar of this dtype, as numpy.float32(value) makes it: a kernel's argument, for one."""
    return _numpy_dtype(self).type(value)


def attach() -> None:
    """Gives DType what users of `x.dtype` expect of a NumPy dtype: kind, char, str, type; and that NumPy takes it."""
    if hasattr(DType, "kind"):
        return
    members: dict[str, Any] = {
        "kind": property(lambda self: _TABLE[self.name][1], doc="str: NumPy's one-letter kind."),
        "char": property(lambda self: _TABLE[self.name][2][0], doc="str: NumPy's one-letter code."),
        "str": property(lambda self: _numpy_dtype(self).str, doc="str: NumPy's typestr."),
        "type": property(lambda self: _numpy_dtype(self).type, doc="type: NumPy's scalar type."),
        "dtype": property(_numpy_dtype, doc=_numpy_dtype.__doc__),  # where NumPy before 2.4 looks
        "__numpy_dtype__": property(_numpy_dtype, doc=_numpy_dtype.__doc__),  # where NumPy 2.4 looks
        "__call__": _make_scalar,
    }
    for name, member in members.items():
        setattr(DType, name, member)
