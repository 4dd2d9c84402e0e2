"""Finds NVRTC, compiles CUDA C++ with it, and words its errors."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from dlbridge.nd import _native
from dlbridge.nd._kernels import cache
from dlbridge.nd._kernels.codegen import device_header
from dlbridge.nd._nvidia import library_folders, site_folders, toolkits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Folders of site-packages that hold libraries of the CUDA wheels, newest layout first, and their headers.
_WHEEL_LIBRARIES = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "torch/lib")
_WHEEL_HEADERS = ("nvidia/cu13/include", "nvidia/cuda_runtime/include", "nvidia/cuda_cccl/include")
_SONAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")

# Headers that a source may include without any toolkit.
_OWN_HEADERS = {"dlbridge/types.cuh": "types.cuh", "cupy/complex.cuh": "types.cuh"}

# Options that bring in files of the user's, which may change without the source: such code is not kept on disk.
_INCLUDING = ("-I", "--include-path", "-include", "--pre-include")


class CompileError(RuntimeError):
    """A kernel does not compile. `log` is what NVRTC said, `source` what it read."""

    def __init__(self, message: str, log: str = "", source: str = "") -> None:
        super().__init__(message)
        self.log, self.source = log, source


class Compiler(NamedTuple):
    path: str
    version: tuple[int, int]
    architectures: tuple[int, ...]


class Compiled(NamedTuple):
    image: bytes
    lowered_names: dict[str, str]


def candidates() -> Iterator[str]:
    """Where NVRTC may be, best first: what the user says, wheels, a toolkit, the system's library path."""
    chosen = os.environ.get("DLBRIDGE_NVRTC")
    if chosen:
        yield chosen
        return
    for folder in library_folders(_WHEEL_LIBRARIES):
        found = [p for p in sorted(folder.glob("libnvrtc*.so*"), reverse=True) if "builtins" not in p.name]
        yield from (str(p) for p in found if ".alt." not in p.name)
    yield from _SONAMES


@functools.cache
def compiler() -> Compiler:
    """The NVRTC of this process. RuntimeError, with every place that was tried, where there is none."""
    found = _native.nvrtc_open(list(candidates()))
    return Compiler(found["path"], tuple(found["version"]), tuple(found["architectures"]))


@functools.cache
def _header_options() -> tuple[str, ...]:
    """Options that make CUDA's own headers (cuda_fp16.h, cooperative_groups.h, …) includable, where they are."""
    folders = [site / part for site in site_folders() for part in _WHEEL_HEADERS]
    folders += [root / "include" for root in toolkits()]
    found = [folder for folder in folders if (folder / "cuda_fp16.h").is_file()][:1]
    out = [f"--include-path={folder}" for folder in found]
    out += [f"--include-path={folder / 'cccl'}" for folder in found if (folder / "cccl").is_dir()]
    return tuple(out)


class Target(NamedTuple):
    option: str
    machine_code: bool


def target_for(capability: int) -> Target:
    """What to compile for: the device's machine code, or PTX of the newest architecture that NVRTC knows below it."""
    known = compiler().architectures
    if capability in known:
        return Target(f"--gpu-architecture=sm_{capability}", True)
    older = [architecture for architecture in known if architecture < capability]
    if not older:
        raise CompileError(
            f"NVRTC {'.'.join(map(str, compiler().version))} ({compiler().path}) compiles for compute capability "
            f"{known[0] / 10:.1f} and newer, and the device has {capability / 10:.1f}. Install an older "
            "nvidia-cuda-nvrtc"
        )
    return Target(f"--gpu-architecture=compute_{older[-1]}", False)


def check_options(options: Sequence[str], kernel: str) -> tuple[str, ...]:
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"{kernel}: options is {options!r}; give a tuple of strings, such as ('--use_fast_math',)")
    return tuple(options)


def compile_source(
    source: str,
    name: str,
    capability: int,
    *,
    options: Sequence[str] = (),
    name_expressions: Sequence[str] = (),
    quote: str | None = None,
) -> Compiled:
    """Machine code (or PTX) of a source, from the cache or by NVRTC. `quote`: what errors quote instead of `source`."""
    target = target_for(capability)
    named_standard = any(option.startswith(("-std", "--std")) for option in options)
    headers = _header_options() if "#include" in source else ()
    flags = [target.option, *(() if named_standard else ("--std=c++17",)), *headers, *options]
    own = [(include, device_header(file)) for include, file in _OWN_HEADERS.items() if include in source]
    version = ".".join(map(str, compiler().version))
    key = cache.key_of([source, *flags, "", *name_expressions, "", version, *(text for _, text in own)])
    keeps = not any(option.startswith(_INCLUDING) for option in options)
    entry = cache.load(key) if keeps else None
    if entry is None or len(entry.lowered_names) != len(name_expressions):
        succeeded, log, image, lowered = _native.nvrtc_compile(
            source, name + ".cu", flags, list(name_expressions), own, target.machine_code
        )
        if not succeeded:
            raise CompileError(word_errors(log, name, source if quote is None else quote), log, source)
        entry = cache.Entry(image, tuple(lowered))
        if keeps:
            cache.store(key, entry)
    return Compiled(entry.image, dict(zip(name_expressions, entry.lowered_names, strict=True)))


_MESSAGE = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<what>(?:catastrophic )?error.*)$")


def word_errors(log: str, name: str, source: str) -> str:
    """NVRTC's errors, each with its line of the source and a caret below the place.

    Warnings are left to CompileError.log.
    """
    lines = log.splitlines()
    sources = source.splitlines()
    out: list[str] = []
    for number, line in enumerate(lines):
        found = _MESSAGE.match(line)
        if found is None:
            continue
        out.append(f"{found['file']}:{found['line']}: {found['what']}")
        quoted, caret = _quoted_lines(lines[number + 1 :])
        at = int(found["line"]) - 1
        if quoted is None and found["file"] == name + ".cu" and at < len(sources):
            quoted, caret = sources[at], None
        if quoted is not None:
            out.append(f"  {int(found['line']):4} | {quoted}")
        if caret is not None:
            out.append(f"       | {caret}")
    if not out:
        return f"{name} does not compile:\n{log}"
    count = sum(1 for line in lines if _MESSAGE.match(line))
    return f"{name} does not compile, {count} error{'s' if count > 1 else ''}:\n" + "\n".join(out)


def _quoted_lines(following: Sequence[str]) -> tuple[str | None, str | None]:
    """The source line and the caret line that NVRTC itself shows below a message (its source lines are indented)."""
    for at, line in enumerate(following[:4]):
        if _MESSAGE.match(line):
            break
        if line.strip() == "^":
            quoted = following[at - 1] if at > 0 else ""
            indent = min(len(quoted) - len(quoted.lstrip()), len(line) - 1)
            return quoted[indent:], line[indent:]
    return None, None
