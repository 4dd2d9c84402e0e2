"""NVIDIA's libraries: where wheels and toolkits have them, and those that Python calls, opened when first needed."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_TOOLKIT_LIBRARIES = ("lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib")


def site_folders() -> list[Path]:
    """Where wheels may be: every entry of sys.path that is a folder, once."""
    return list(dict.fromkeys(path for path in map(Path, sys.path) if path.is_absolute() and path.is_dir()))


def toolkits() -> list[Path]:
    named = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    return [Path(root) for root in [*named, "/usr/local/cuda"] if root and Path(root).is_dir()]


def library_folders(wheels: Sequence[str]) -> list[Path]:
    """Folders that may hold a library, best first: those of wheels (parts of site-packages), then of toolkits."""
    folders = [site / part for site in site_folders() for part in wheels]
    return folders + [root / part for root in toolkits() for part in _TOOLKIT_LIBRARIES]


# --- libraries that Python calls -------------------------------------------------------------------------------------

# The versions of a library's file name, newest first, those of CUDA 13 and 12.
_VERSIONS = {"cublas": (13, 12), "cusolver": (12, 11), "cufft": (12, 11)}
_LETTERS = {"p": "c_void_p", "i": "c_int", "l": "c_int64", "z": "c_size_t", "b": "c_byte"}


def _candidates(name: str) -> Iterator[str]:
    files = [f"lib{name}.so.{version}" for version in _VERSIONS[name]]
    yield from files  # what the process has already, such as PyTorch's, or the system's path
    for folder in library_folders(("nvidia/cu13/lib", f"nvidia/{name}/lib")):
        yield from (str(folder / file) for file in files if (folder / file).is_file())


@cache
def library(name: str) -> Any:
    """A library of this process, opened for good. RuntimeError with every place that was tried where there is none."""
    from ctypes import CDLL

    tried = []
    for candidate in _candidates(name):
        try:
            return CDLL(candidate)
        except OSError as error:
            tried.append(f"{candidate} ({error})")
    raise RuntimeError(
        f"lib{name} of CUDA was not found. Install the wheel with `pip install nvidia-{name}`, or a CUDA toolkit. "
        "Tried: " + "; ".join(tried)
    )


class Function:
    """A function of a library that returns a status: calling it raises RuntimeError where that is not 0.

    arguments: a letter each: p pointer or handle, i int, l int64, z size_t, b signed char.
    """

    def __init__(self, library: str, name: str, arguments: str) -> None:
        self.library, self.name, self.arguments = library, name, arguments
        self._call: Any = None

    def exists(self) -> bool:
        return hasattr(library(self.library), self.name)

    def __call__(self, *arguments: Any) -> None:
        if self._call is None:
            import ctypes

            found = getattr(library(self.library), self.name)
            found.argtypes = [getattr(ctypes, _LETTERS[letter]) for letter in self.arguments]
            found.restype = ctypes.c_int
            self._call = found
        status = self._call(*arguments)
        if status != 0:
            raise RuntimeError(f"{self.name} of lib{self.library} failed with status {status}")
