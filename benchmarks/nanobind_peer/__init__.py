"""Builds the nanobind peer with one compiler call and imports it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import types

NAME = "dlbridge_nanobind_peer"
BUILD_TIMEOUT_S = 300
RELEASE_FLAGS = (
    "-std=c++17",
    "-O3",
    "-DNDEBUG",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
)


class BuildError(RuntimeError):
    """The peer cannot be built here; the message is the reason."""


def compiler() -> list[str]:
    """The C++ compiler's command; BuildError where there is none."""
    found = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if found is None:
        raise BuildError("no C++ compiler (CXX, g++, clang++)")
    return found.split()


def _command(output: pathlib.Path) -> list[str]:
    """The compiler call, with the flags of nanobind's own release builds."""
    nanobind = importlib.import_module("nanobind")
    # The headers of robin_map lie beside the sources, outside nanobind's include folder.
    sources = pathlib.Path(nanobind.source_dir())
    robin_map = sources.parent / "ext" / "robin_map" / "include"
    here = pathlib.Path(__file__).parent
    return [
        *compiler(),
        *RELEASE_FLAGS,
        f"-I{sysconfig.get_paths()['include']}",
        f"-I{nanobind.include_dir()}",
        f"-I{robin_map}",
        str(here / "peer.cpp"),
        str(sources / "nb_combined.cpp"),
        "-o",
        str(output),
    ]


def load() -> types.ModuleType:
    """Builds the extension in a temporary folder of its own and imports it from there.

    Raises ImportError when nanobind is absent and BuildError when the compiler fails.
    """
    # The folder can go as soon as the shared object is mapped.
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dlbridge-nanobind-"))
        output = pathlib.Path(folder) / (NAME + sysconfig.get_config_var("EXT_SUFFIX"))
        done = subprocess.run(_command(output), capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
        if done.returncode != 0:
            first = next((s for s in done.stderr.splitlines() if "error" in s), done.stderr[-200:])
            raise BuildError(f"the compiler failed: {pathlib.PurePath(first).name[:160]}")
        loader = importlib.machinery.ExtensionFileLoader(NAME, str(output))
        spec = importlib.util.spec_from_file_location(NAME, output, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module
