"""load(): the tensors of a safetensors file, over a mapping of it.

The format, as huggingface.co/docs/safetensors states it: eight bytes with the header's length, little-endian; the
header, a JSON object that begins with "{"; then the data, which the tensors cover without holes and overlaps, each
dense, in C order and little-endian. What its own loader is lenient about and the text forbids (names that are there
twice) is refused, too; fields of a tensor that the text does not know are left alone, as there.
"""

from __future__ import annotations

import json
import math
import mmap
import os

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, NoReturn

    from dlbridge._core import Device

_LENGTH_BYTES = 8
_MOST_HEADER_BYTES = 100_000_000  # safetensors' own limit
_METADATA = "__metadata__"

# What goes to a device in one copy. Each copy costs microseconds, whatever its size. From 4 MiB on it is staged
# (ndarray/runtime/staging.h), and a tensor of that size would gain little from company, which keeps its memory from
# being freed. Smaller ones go together: the bound of a block is what one of them can keep alive.
_LEAST_ALONE = 4 << 20
_MOST_BLOCK = 16 << 20
_ALIGNMENT = 64  # the most that any framework asks for; XLA's programs want 16 on a GPU

# The dtypes of safetensors 0.8. Four-bit and six-bit numbers are packed, and their shape counts the numbers.
_DTYPES = {
    theirs: (ours, _core.DType(ours).bits)
    for theirs, ours in {
        "BOOL": "bool",
        "U8": "uint8",
        "U16": "uint16",
        "U32": "uint32",
        "U64": "uint64",
        "I8": "int8",
        "I16": "int16",
        "I32": "int32",
        "I64": "int64",
        "F16": "float16",
        "F32": "float32",
        "F64": "float64",
        "BF16": "bfloat16",
        "C64": "complex64",
        "F8_E4M3": "float8_e4m3fn",
        "F8_E4M3FNUZ": "float8_e4m3fnuz",
        "F8_E5M2": "float8_e5m2",
        "F8_E5M2FNUZ": "float8_e5m2fnuz",
        "F8_E8M0": "float8_e8m0fnu",
        "F6_E2M3": "float6_e2m3fn",
        "F6_E3M2": "float6_e3m2fn",
        "F4": "float4_e2m1fn",
    }.items()
}

_Entry = tuple[str, str, list[int], int, int]  # name, dtype, shape, begin, end


def _refuse_constant(text: str) -> NoReturn:
    raise _core.DataError(f"its header has {text}, which is not JSON")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _core.DataError(f"its header has the name {twice!r} twice, which the format forbids")
    return found


def _header(data: mmap.mmap | bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the data begins."""
    if len(data) < _LENGTH_BYTES:
        raise _core.DataError(f"it has {len(data)} bytes, and the length of the header alone takes {_LENGTH_BYTES}")
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if length > min(len(data) - _LENGTH_BYTES, _MOST_HEADER_BYTES):
        raise _core.DataError(
            f"its first {_LENGTH_BYTES} bytes say that the header has {length} bytes; the file has {len(data)}, and a "
            f"header at most {_MOST_HEADER_BYTES}. It is cut off, or is no safetensors file"
        )
    start = _LENGTH_BYTES + length
    try:
        text = str(data[_LENGTH_BYTES:start], "utf-8")
        if not text.startswith("{"):
            raise _core.DataError("its header does not begin with '{'. It is no safetensors file")
        header = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except _core.DataError:
        raise
    except (ValueError, RecursionError) as error:  # of UTF-8, of JSON, of numbers with thousands of digits
        raise _core.DataError(f"its header is not JSON in UTF-8: {error}") from None
    return header, start


def _check_metadata(metadata: Any) -> None:
    """A map of strings; safetensors' own loader takes null for none."""
    is_map = isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    if metadata is not None and not is_map:
        raise _core.DataError(f"its {_METADATA} is not an object of strings")


def _are_counts(values: Any) -> bool:
    if not isinstance(values, list):
        return False
    for value in values:  # noqa: SIM110 - a third faster than all()
        if type(value) is not int or not 0 <= value < 2**63:
            return False
    return True


def _entry(name: str, info: Any) -> _Entry:
    """What the header says of one tensor."""
    try:
        name.encode()
        code, shape, offsets = info["dtype"], info["shape"], info["data_offsets"]
    except UnicodeEncodeError:
        raise _core.DataError(f"the name {name!r} is not Unicode text") from None
    except (KeyError, TypeError):
        raise _core.DataError(f"tensor {name!r} is not an object with 'dtype', 'shape' and 'data_offsets'") from None
    dtype, bits = _DTYPES.get(code, ("", 0)) if isinstance(code, str) else ("", 0)
    if not dtype:
        raise _core.DataError(f"tensor {name!r} has dtype {code!r}; the format has {', '.join(_DTYPES)}")
    if not _are_counts(shape):
        raise _core.DataError(f"tensor {name!r} has shape {shape!r}, which is not a list of counts below 2**63")
    if not _are_counts(offsets) or len(offsets) != 2:
        raise _core.DataError(f"tensor {name!r} has data_offsets {offsets!r}, which are not [begin, end]")
    begin, end = offsets
    needed = math.prod(shape) * bits
    if 8 * (end - begin) != needed:
        raise _core.DataError(
            f"tensor {name!r} has data_offsets {offsets}, and shape {shape} of {code} takes {needed} bits"
        )
    return name, dtype, shape, begin, end


def _check_covered(entries: list[_Entry], size: int) -> None:
    """The format: the data has no holes, and no byte of it belongs to two tensors."""
    reached = 0
    for name, _, _, begin, end in sorted(entries, key=lambda entry: entry[3:]):
        if begin != reached:
            what = "overlaps" if begin < reached else "leaves a hole behind"
            raise _core.DataError(f"tensor {name!r} begins at byte {begin} and {what} what is before it, to {reached}")
        reached = end
    if reached != size:
        raise _core.DataError(f"its tensors take {reached} bytes and its data has {size}. It is cut off, or has a tail")


def _check_bools(entries: list[_Entry], data: Any) -> None:
    for name, dtype, _, begin, end in entries:
        if dtype == "bool" and begin != end and int(data[begin:end].max()) > 1:
            raise _core.DataError(f"tensor {name!r} is BOOL and holds bytes other than 0 and 1")


def _views(entries: list[_Entry], block: _core.Tensor, start: int = 0) -> dict[str, _core.Tensor]:
    """Tensors in a block of bytes, which has the data from `start` on."""
    views = {}
    for name, dtype, shape, begin, _ in entries:
        try:
            views[name] = _core.reinterpret(block, dtype=dtype, shape=tuple(shape), offset=begin - start)
        except (ValueError, OverflowError) as error:  # 65 axes; a shape that holds 0 beside what no address reaches
            what = str(error).removeprefix("reinterpret(): ")
            raise _core.DataError(f"tensor {name!r} has shape {shape}: {what}") from None
    return views


def _blocks(entries: list[_Entry]) -> list[list[_Entry]]:
    """Neighbours in the data that one copy takes to a device."""
    blocks: list[list[_Entry]] = []
    start, is_open = 0, False
    for entry in sorted(entries, key=lambda entry: entry[3:]):
        begin, end = entry[3:]
        is_small = end - begin < _LEAST_ALONE
        if not (is_open and is_small and (begin - start) % _ALIGNMENT == 0 and end - start <= _MOST_BLOCK):
            blocks.append([])
            start, is_open = begin, is_small
        blocks[-1].append(entry)
    return blocks


def _moved(entries: list[_Entry], data: Any, device: Device | str, file: str) -> dict[str, _core.Tensor]:
    """The tensors on a device. A refusal names the first one of the block."""
    blocks = _blocks(entries)
    parts = {block[0][0]: data[block[0][3] : block[-1][4]] for block in blocks}
    there = _core.convert_part(parts, "dlbridge", None, device, "load()", file)
    tensors: dict[str, _core.Tensor] = {}
    for block, part in zip(blocks, there.values(), strict=True):
        tensors |= _views(block, part, block[0][3])
    return tensors


def _map(path: str, writable: bool) -> mmap.mmap | bytes:
    """The file's bytes; the mapping lives as long as a tensor over it."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""  # which cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY if writable else mmap.ACCESS_READ)


def _read(file: mmap.mmap | bytes) -> tuple[list[_Entry], Any]:
    """What the header says of the tensors, in its order, and the data, an nd array of bytes."""
    from dlbridge import nd

    header, start = _header(file)
    _check_metadata(header.pop(_METADATA, None))
    entries = [_entry(name, info) for name, info in header.items()]
    _check_covered(entries, len(file) - start)
    # No memoryview: one in a cycle, with tensors over it, crashes the collector of CPython before 3.11.8 and 3.12.2
    # (python/cpython#77894).
    data = nd.from_dlpack(_core.asdlpack(file))[start:]
    _check_bools(entries, data)
    return entries, data


def load(
    path: str | os.PathLike[str],
    to: str | ModuleType | None = None,
    *,
    device: Device | str = "cpu",
    writable: bool | None = None,
) -> dict[str, Any]:
    """The tensors of a safetensors file by their names, in the order of its header.

    The file is mapped, and on the host the arrays share the mapping: nothing is read before it is used. `to` is a
    framework as in `convert`, by whose rules each tensor goes there (JAX, for one, shares what is aligned to 64 bytes
    and gets a copy of the rest); None gives `Tensor`. `__metadata__` is checked, and not given back.

    For another `device` the data is copied there from the mapping. A tensor of 4 MiB or more has memory of its own;
    smaller ones that lie side by side in the file go in one copy, into memory that they share, of at most 16 MiB: it is
    freed when the last of them is gone. Copy the one that shall stay alone.

    writable=False maps the file read-only, as NumPy's and JAX's arrays can be. writable=True makes a private mapping:
    pages that are written to become the process's own, and the file stays as it is. None takes the private mapping for
    frameworks whose arrays cannot be read-only (PyTorch, CuPy, ...), so that they, too, share.

    Nobody may shorten or rewrite the file while its arrays live, as for every mapping.

    Raises OSError where the file cannot be opened or mapped, DataError (a ValueError) where it breaks the format, and
    what `convert` raises for a tensor that the framework cannot take, with the tensor's name.
    """
    target = "dlbridge" if to is None else to
    consumer = None if to is None else _core.consumers().get(_core.target_name(to))
    is_private = (consumer is not None and consumer["writes"]) if writable is None else writable
    file = os.fspath(path)
    name = os.path.basename(file)
    try:
        entries, data = _read(_map(file, is_private))
        tensors = _views(entries, data)
    except _core.DataError as error:
        raise _core.DataError(
            f"load(): {name!r} breaks the safetensors format: {error}. Fetch it, or save it, again"
        ) from None
    if device != "cpu":
        tensors |= _moved(entries, data, device, name)
    arrays: dict[str, Any] = _core.convert_part(tensors, target, None, device, "load()", name)
    return arrays
