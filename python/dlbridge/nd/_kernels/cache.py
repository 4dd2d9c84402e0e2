"""Compiled kernels on disk, so that a program compiles each of its kernels once and not once a run.

An entry is one file, written aside and moved into place, so that a reader never sees half of one; it carries the digest
of its contents, and is compiled again where that differs. A folder that cannot be written is no error: nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAGIC = b"dlbridge kernel 1\n"
_SUFFIX = ".kernel"


class Entry(NamedTuple):
    image: bytes
    lowered_names: tuple[str, ...]


def folder() -> Path:
    """DLBRIDGE_CACHE_DIR, or dlbridge/kernels in XDG_CACHE_HOME (~/.cache)."""
    chosen = os.environ.get("DLBRIDGE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dlbridge" / "kernels"


def key_of(parts: Iterable[str]) -> str:
    """A name for what `parts` make together: they are separated, so that no two lists read the same."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def load(key: str) -> Entry | None:
    """The entry, or None where there is none or it is damaged."""
    try:
        data = (folder() / (key + _SUFFIX)).read_bytes()
    except OSError:
        return None
    if not data.startswith(_MAGIC):
        return None
    digest, _, body = data[len(_MAGIC) :].partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    names, _, image = body.partition(b"\n")
    try:
        return Entry(image, tuple(json.loads(names)))
    except ValueError:
        return None


def store(key: str, entry: Entry) -> bool:
    """Keeps the entry; False where the folder cannot be written."""
    body = json.dumps(entry.lowered_names).encode() + b"\n" + entry.image
    data = _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    where = folder()
    temporary = None
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=where, prefix=key[:16], suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, where / (key + _SUFFIX))
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return False
    return True


def clear() -> int:
    """Removes all entries; returns how many there were."""
    count = 0
    for path in folder().glob("*" + _SUFFIX):
        with contextlib.suppress(OSError):
            path.unlink()
            count += 1
    return count
