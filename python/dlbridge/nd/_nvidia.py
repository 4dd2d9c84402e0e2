"""NVIDIA's libraries: where wheels and toolkits have them, and those that Python calls, opened when first needed."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from dlbridge.nd import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def device_of(x: _native.ndarray) -> int:
    """The number of an array's device, in a sixth of the time that x.device.id takes."""
    return x.__dlpack_device__()[1]


@cache
def name_of(device: int) -> str:
    """What `device=` arguments read in a third of the time that a Device takes."""
    return f"cuda:{device}"


# --- libraries that Python calls -------------------------------------------------------------------------------------

# The versions of a library's file name, newest first, those of CUDA 13 and 12.
_VERSIONS = {"cublas": (13, 12), "cusolver": (12, 11), "cufft": (12, 11)}


def _candidates(name: str) -> Iterator[str]:
    files = [f"lib{name}.so.{version}" for version in _VERSIONS[name]]
    yield from files  # what the process has already, such as PyTorch's, or the system's path
    for folder in library_folders(("nvidia/cu13/lib", f"nvidia/{name}/lib")):
        yield from (str(folder / file) for file in files if (folder / file).is_file())


@cache
def library(name: str) -> int:
    """A library of this process, opened for good. RuntimeError with every place that was tried where there is none."""
    tried = []
    for candidate in _candidates(name):
        try:
            return _native.open_library(candidate)
        except OSError as error:
            tried.append(f"{candidate} ({error})")
    raise RuntimeError(
        f"lib{name} of CUDA was not found. Install the wheel with `pip install nvidia-{name}`, or a CUDA toolkit. "
        "Tried: " + "; ".join(tried)
    )


def address(function: Function) -> int:
    """Where a function is; 0 where its library is too old to have it."""
    return _native.find_symbol(library(function.library), function.name)


class Function(_native.LibraryFunction):
    """A function of a library that returns a status: calling it raises RuntimeError where that is not 0.

    arguments: a letter each: p pointer or handle, i int, l int64, z size_t, b signed char. A pointer is given as a
    number, None, an array, or memory of the host, such as array("i", [0]) for a result. Uses of the arrays are ordered
    on the thread's stream of their device, which is made the current one for the call.
    """

    def __init__(self, library: str, name: str, arguments: str) -> None:
        self.library, self.name, self.arguments = library, name, arguments

    def exists(self) -> bool:
        return address(self) != 0

    def _load(self) -> tuple[int, str, str]:
        """For the native half, once."""
        found = address(self)
        if found == 0:
            raise RuntimeError(f"lib{self.library} has no {self.name}: a newer one is needed")
        return found, self.arguments, f"{self.name} of lib{self.library}"
