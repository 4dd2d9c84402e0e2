"""The dtypes of kernels: their C++ names, and how the parameters of a kernel are declared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from dlbridge import _core

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Names by their number in the extension's dtype table.
DTYPE_NAMES: tuple[str, ...] = tuple(str(row["name"]) for row in _core.dtypes())
DTYPE_NUMBERS: dict[str, int] = {name: number for number, name in enumerate(DTYPE_NAMES)}

C_TYPES: dict[str, str] = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "complex<float>",
    "complex128": "complex<double>",
}
ITEMSIZES: dict[str, int] = {str(row["name"]): int(row["itemsize"]) for row in _core.dtypes()}

# What a scalar of Python has become where no array says the dtype; also the order of the kinds.
SCALAR_DTYPES = ("bool", "int64", "float64", "complex128")
_KIND = {name: 0 if name == "bool" else 1 if "int" in name else 2 if "complex" not in name else 3 for name in C_TYPES}


class Parameter(NamedTuple):
    """One parameter of an ElementwiseKernel or a ReductionKernel."""

    name: str
    type: str  # a dtype's name, or a letter that stands for one
    raw: bool

    @property
    def is_generic(self) -> bool:
        return self.type not in C_TYPES


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_RESERVED = {"n", "i"}


def parse_parameters(text: str, kernel: str) -> tuple[Parameter, ...]:
    """Reads "T x, raw float32 y". ValueError for anything else."""
    from dlbridge.nd import _dtypes

    out = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        words = item.split()
        raw = words[0] == "raw"
        words = [word for word in words[raw:] if word != "const"]
        if len(words) != 2 or not _NAME.match(words[1]):
            raise ValueError(f"{kernel}: the parameter {item!r} is not of the form '[raw] type name'")
        kind, name = words
        if name in _RESERVED:
            raise ValueError(
                f"{kernel}: a parameter cannot be named {name!r}: it is the loop's own variable. Rename it"
            )
        if len(kind) > 1:
            kind = _dtypes.resolve(kind).name
        elif not kind.isalpha():
            raise ValueError(f"{kernel}: the type of the parameter {item!r} is neither a dtype nor a letter")
        out.append(Parameter(name, kind, raw))
    return tuple(out)


def check_names(parameters: Sequence[Parameter], kernel: str) -> None:
    names = [p.name for p in parameters]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{kernel}: the parameter {repeated[0]!r} is there twice. Give each a name of its own")


def _scalar_fits(kind: int, dtype: str) -> bool:
    return kind <= max(_KIND[dtype], 1)  # a bool takes 0 and 1


class Given(NamedTuple):
    """What a call gives for one parameter."""

    dtype: str | None  # of an array or a NumPy scalar; None for a Python scalar
    kind: int  # of a Python scalar: its place in SCALAR_DTYPES
    array: bool


def read_given(key: str) -> list[Given]:
    """Decodes the key that the launcher makes of a call: a letter an argument."""
    out = []
    for letter in key:
        if letter.isdigit():
            out.append(Given(None, int(letter), False))
        elif letter.isupper():
            out.append(Given(DTYPE_NAMES[ord(letter) - ord("A")], 0, True))
        else:
            out.append(Given(DTYPE_NAMES[ord(letter) - ord("a")], 0, False))
    return out


def bind_types(parameters: Sequence[Parameter], given: Sequence[Given], kernel: str) -> dict[str, str]:
    """What each letter stands for: what the arrays of a call say, else its NumPy scalars, else its Python ones."""
    bound: dict[str, str] = {}
    _bind(bound, ((p, g) for p, g in zip(parameters, given, strict=False) if g.array), kernel)
    _bind(bound, ((p, g) for p, g in zip(parameters, given, strict=False) if not g.array and g.dtype), kernel)
    weak: dict[str, int] = {}
    for p, g in zip(parameters, given, strict=False):
        if g.dtype is None and p.is_generic and p.type not in bound:
            weak[p.type] = max(weak.get(p.type, 0), g.kind)
    bound |= {letter: SCALAR_DTYPES[kind] for letter, kind in weak.items()}
    missing = [p for p in parameters if p.is_generic and p.type not in bound]
    if missing:
        raise TypeError(
            f"{kernel}: no argument says what {missing[0].type} is in the parameter '{missing[0].type} "
            f"{missing[0].name}'. Give the output array, or declare its dtype"
        )
    return bound


def _bind(bound: dict[str, str], pairs: Iterable[tuple[Parameter, Given]], kernel: str) -> None:
    for p, g in pairs:
        if not p.is_generic or g.dtype is None:
            continue
        if not g.array and p.type in bound:
            continue  # a scalar takes the arrays' dtype
        if bound.setdefault(p.type, g.dtype) != g.dtype:
            raise TypeError(
                f"{kernel}: {p.type} is {bound[p.type]} by another argument, and {p.name} is {g.dtype}. Convert one "
                "with astype(), or declare another letter for it"
            )


def resolve_types(parameters: Sequence[Parameter], key: str, kernel: str) -> list[str]:
    """The dtype of every parameter for a call, checked: TypeError where an argument has another."""
    given = read_given(key)
    bound = bind_types(parameters, given, kernel)
    out = [bound[p.type] if p.is_generic else p.type for p in parameters]
    for p, g, dtype in zip(parameters, given, out, strict=False):
        if g.array and g.dtype != dtype:
            raise TypeError(
                f"{kernel}: {p.name} is declared {dtype}, and the array is {g.dtype}. Use astype('{dtype}')"
            )
        kind = g.kind if g.dtype is None else _KIND[g.dtype]
        if not g.array and not _scalar_fits(kind, dtype):
            raise TypeError(
                f"{kernel}: {p.name} is {dtype}, and the scalar is a {SCALAR_DTYPES[kind]}. Convert it first"
            )
    return out
