#!/usr/bin/env python3
"""Checks the direction of includes: frameworks -> protocols -> bridge, ndarray -> bridge, python -> all, no other way.

`protocols` and `ndarray` never see each other: they meet at the descriptor only. No protocol sees another one: what two
of them need lies in protocols/common, which sees none of them. Within the ndarray, core/ stands on
runtime/ and kernels/, which know neither it nor each other. Run it in the repository, or give the
root as the one argument; it prints a line for each violation and exits 1 when there is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LAYERS = ("bridge", "protocols", "frameworks", "ndarray", "python")
SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh", ".inl"}

# What each layer may include of this repository.
ALLOWED = {
    "bridge": {"bridge"},
    "protocols": {"bridge", "protocols"},
    "frameworks": {"bridge", "protocols", "frameworks"},
    "ndarray": {"bridge", "ndarray"},
    "python": {"bridge", "protocols", "frameworks", "ndarray", "python"},
}
COMMON = "common"  # the folder of protocols/ that all the others there may include

# What each folder of the ndarray may include of the ndarray.
NDARRAY_ALLOWED = {
    "kernels": {"kernels"},
    "runtime": {"runtime"},
    "core": {"kernels", "runtime", "core"},
}

PYTHON_HEADERS = re.compile(r"(Python\.h|pybind11/|nanobind/|numpy/|pyconfig\.h|structmember\.h)")
CUDA_HEADERS = re.compile(r"(cuda\.h|cuda_|cudaTypedefs|driver_types|nvrtc\.h|cub/|thrust/|cublas|cusolver|cufft)")

# What each layer may not include from outside. The bridge and the readers run without a CUDA toolkit: they open the
# driver at run time. Of the bridge's headers those for extension modules alone know Python.
FOREIGN = {
    "bridge": (("Python", PYTHON_HEADERS), ("CUDA", CUDA_HEADERS)),
    "protocols": (("CUDA", CUDA_HEADERS),),
    "frameworks": (("CUDA", CUDA_HEADERS),),
    "ndarray": (("Python", PYTHON_HEADERS),),
    "python": (),
}
# Each converter knows its own framework: whoever includes it has that anyway.
KNOWS_CUDA = {Path("bridge/include/dlbridge/converters") / name for name in ("mdspan.h", "rmm.h", "thrust.h")}
KNOWS_PYTHON = {
    Path("bridge/include/dlbridge.h"),
    Path("bridge/include/dlbridge/pybind11.h"),
    Path("bridge/include/dlbridge/pybind11/connect.h"),
    Path("bridge/include/dlbridge/pybind11/place.h"),
    Path("bridge/include/dlbridge/pybind11/variant.h"),
    Path("bridge/include/dlbridge/nanobind.h"),
    Path("bridge/include/dlbridge/nanobind/place.h"),
    Path("bridge/include/dlbridge/python/api.h"),
}

INCLUDE = re.compile(r'^\s*#\s*(?:include|include_next|import)\s*(?:"([^"]+)"|<([^>]+)>)')


def included_file(include: str, source: Path, root: Path) -> Path:
    """The file that an include names, relative to root where it is a path from there or lies beside the source."""
    beside = (root / source.parent / include).resolve()
    return beside.relative_to(root) if beside.exists() and beside.is_relative_to(root) else Path(include)


def layer_of(include: str, source: Path, root: Path) -> str | None:
    """The layer of this repository that an include names, or None for a header from outside."""
    beside = (root / source.parent / include).resolve()
    if beside.exists() and beside.is_relative_to(root):
        first = beside.relative_to(root).parts[0]
        return first if first in LAYERS else "outside the layers"
    first = include.split("/", 1)[0]
    if first in ("tests", "benchmarks", "examples"):
        return "outside the layers"
    if first == "dlbridge":
        return "bridge"
    return first if first in LAYERS and "/" in include else None


def violations_of(source: Path, root: Path) -> Iterator[str]:
    """Each violation of one file (relative to root), as `path:line: what, and the rule`."""
    layer = source.parts[0]
    text = (root / source).read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        include = match.group(1) or match.group(2)
        target = layer_of(include, source, root)
        if target is not None:
            if target not in ALLOWED[layer]:
                allowed = ", ".join(sorted(ALLOWED[layer]))
                yield f"{source}:{number}: {layer} includes {include} ({target}); it may include {allowed} only"
            elif layer == target == "ndarray":
                own, other = source.parts[1], included_file(include, source, root).parts[1]
                if other not in NDARRAY_ALLOWED.get(own, {own, *NDARRAY_ALLOWED}):
                    allowed = ", ".join(sorted(NDARRAY_ALLOWED[own]))
                    yield f"{source}:{number}: ndarray/{own} includes {include}; it may include {allowed} only"
            elif layer == target == "protocols":
                own, other = source.parts[1], included_file(include, source, root).parts[1]
                if other not in (own, COMMON):
                    yield f"{source}:{number}: protocols/{own} includes {include}; protocols are siblings over {COMMON}"
            continue
        for name, pattern in FOREIGN[layer]:
            known = {"Python": KNOWS_PYTHON, "CUDA": KNOWS_CUDA}[name]
            if pattern.match(include) and source not in known:
                yield f"{source}:{number}: {layer} includes {include}; it must build without {name}"


def lint(root: Path) -> list[str]:
    """All violations below root, sorted by path."""
    root = root.resolve()
    found: list[str] = []
    for layer in LAYERS:
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                found.extend(violations_of(path.relative_to(root), root))
    return found


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / "bridge").is_dir():
        print(f"lint_includes: {root} has no folder bridge/: not the root of the repository", file=sys.stderr)
        return 2
    found = lint(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
