"""What the source of a kernel declares its parameters to be, where that can be told without a compiler.

Only kernels that are declared extern "C" once, outside templates, are read; a type that is no plain arithmetic type (a
typedef, a macro, a structure) is left open, as is everything about a source that uses the preprocessor around the list.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dlbridge.nd._kernels.codegen import strip_comments
from dlbridge.nd._kernels.types import DTYPE_NUMBERS

UNKNOWN, POINTER, VALUE = 0, 1, 2


class Declared(NamedTuple):
    """One parameter, as the launcher takes it."""

    kind: int
    read_only: bool  # const T*
    dtype: int  # number of the dtype of a value; -1 for others
    allowed: int  # bit mask of the dtypes that may be given; 0: any
    text: str


_SIGNED = {"char": "int8", "short": "int16", "int": "int32", "long": "int64", "long long": "int64"}
_TYPES = {
    "bool": "bool",
    "float": "float32",
    "double": "float64",
    "__half": "float16",
    "half": "float16",
    "float16": "float16",
    "__nv_bfloat16": "bfloat16",
    "nv_bfloat16": "bfloat16",
    "bfloat16": "bfloat16",
    "complex<float>": "complex64",
    "complex<double>": "complex128",
    "cuFloatComplex": "complex64",
    "cuDoubleComplex": "complex128",
    "cuComplex": "complex64",
    "size_t": "uint64",
    "ptrdiff_t": "int64",
    "unsigned": "uint32",
    **{f"int{bits}_t": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **_SIGNED,
    **{f"unsigned {name}": f"u{dtype}" for name, dtype in _SIGNED.items()},
}
# Bytes of anything: the customary types of raw memory.
_RAW_BYTES = {"char", "unsigned char", "signed char", "void"}


def _mask(*names: str) -> int:
    return sum(1 << DTYPE_NUMBERS[name] for name in dict.fromkeys(names))


def _allowed(c_type: str, dtype: str) -> int:
    """Dtypes that may stand for a declared one: integers of the same width are taken for each other."""
    if c_type in _RAW_BYTES:
        return _mask("int8", "uint8", "bool")
    if dtype.startswith(("int", "uint")):
        bits = dtype.lstrip("uint")
        return _mask("int" + bits, "uint" + bits)
    return _mask(dtype)


_DROPPED = re.compile(
    r"\b(?:volatile|restrict|__restrict__|__restrict|__grid_constant__|register|struct|std::)\b|\bstd\s*::"
)


def _read_parameter(text: str) -> Declared:
    shown = " ".join(text.split())
    open_ended = Declared(UNKNOWN, False, -1, 0, shown)
    if "=" in text or "..." in text or "&" in text or text.count("*") > 1 or "(" in text:
        return open_ended
    words = _DROPPED.sub(" ", text).replace("[]", "*")
    if "[" in words:
        words = re.sub(r"\[[^\]]*\]", "*", words)
    pointer = "*" in words
    before = words.partition("*")[0]
    if pointer and words.count("*") > 1:
        return open_ended
    if pointer and re.match(r"[\w\s:<>,]*\Z", before) and "[" in text:  # `float x[]`: the name stands before
        before = re.sub(r"\w+\s*\Z", "", before)
    read_only = re.search(r"\bconst\b", before) is not None
    tokens = re.sub(r"\s*([<>])\s*", r"\1", re.sub(r"\bconst\b", " ", before)).split()
    if not pointer and len(tokens) > 1 and tokens[-1] not in _TYPES and tokens[-1] not in ("signed", "int"):
        tokens = tokens[:-1]  # the parameter's name
    c_type = _spell(tokens)
    if c_type == "void" and pointer:
        return Declared(POINTER, read_only, -1, 0, shown)
    dtype = _TYPES.get(c_type)
    if dtype is None:
        return Declared(POINTER, read_only, -1, 0, shown) if pointer else open_ended
    allowed = _allowed(c_type, dtype)
    if pointer:
        return Declared(POINTER, read_only, -1, allowed, shown)
    return Declared(VALUE, False, DTYPE_NUMBERS[dtype], allowed, shown)


def _spell(tokens: list[str]) -> str:
    """The one spelling that the table has: `long unsigned int` is `unsigned long`."""
    integers = {"signed", "unsigned", "char", "short", "int", "long"}
    if not tokens or not set(tokens) <= integers:
        return " ".join(tokens)
    base = "char" if "char" in tokens else "short" if "short" in tokens else " ".join(["long"] * tokens.count("long"))
    base = base or "int"
    if "unsigned" in tokens:
        return f"unsigned {base}"
    return "signed char" if base == "char" and "signed" in tokens else base


_TYPES["signed char"] = "int8"


def _split(text: str) -> list[str]:
    """The list at its commas, those inside of <> and () aside."""
    out, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += character in "<(["
        depth -= character in ">)]"
        if character == "," and depth == 0:
            out.append(text[start:at])
            start = at + 1
    out.append(text[start:])
    return [part for part in out if part.strip()]


def read_signature(source: str, name: str) -> list[Declared] | None:
    """The parameters of the kernel `name`, or None where the source does not tell them plainly."""
    code = strip_comments(source)
    heads = list(re.finditer(rf"__global__\b[^;{{}}()]*(?:\([^()]*\)[^;{{}}()]*)*?\b{re.escape(name)}\s*\(", code))
    lists = []
    for head in heads:
        end = _closing(code, head.end())
        if end < 0:
            return None
        lists.append(code[head.end() : end])
    if not lists or len({" ".join(text.split()) for text in lists}) != 1 or "#" in lists[0]:
        return None
    head = heads[0]
    if not _is_extern_c(code, head.start()):
        return None
    if lists[0].strip() == "void":
        return []
    defined = set(re.findall(r"^\s*#\s*define\s+(\w+)", code, re.MULTILINE))
    out = [_read_parameter(text) for text in _split(lists[0])]
    return [d._replace(kind=UNKNOWN, allowed=0) if defined & set(re.findall(r"\w+", d.text)) else d for d in out]


def _closing(code: str, start: int) -> int:
    depth = 1
    for at in range(start, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if depth == 0:
            return at
    return -1


def _is_extern_c(code: str, at: int) -> bool:
    """Whether the declaration at `at` is extern "C": by itself, or in a block."""
    if re.search(r'extern\s*"C"\s*(?:static\s+|inline\s+)*\Z', code[:at]) is not None:
        return True
    for block in re.finditer(r'extern\s*"C"\s*\{', code[:at]):
        inside = code[block.end() : at]
        if inside.count("{") >= inside.count("}"):
            return True
    return False
