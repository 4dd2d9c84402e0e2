"""Builds extension modules of nanobind against the dlbridge that is tested: with nanobind's own sources linked, which
are compiled once a session, or split, as nanobind calls it, with those of the package nanobind-backend."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import build_folders
import pytest
from caster_support import _sanitizer_flags, cxx_compiler, include_folders

SOURCE = Path(__file__).parent.parent / "nanobind" / "nanobind_module.cpp"
# Classes are known to all modules of a domain, however those are built; these are others of the same names.
SPLIT = ("-DPy_LIMITED_API=0x030A0000", "-DNB_BACKEND_MODULE=nanobind_backend", "-DNB_DOMAIN=split")


def _run(command):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # the compiler is not under test
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def compiler_command():
    """The compiler with all warnings and all headers. Skips by name where something is missing."""
    nanobind = pytest.importorskip("nanobind", "3.0", reason="nanobind >= 3 builds the test extension")
    folders = (sysconfig.get_paths()["include"], nanobind.include_dir())
    return [
        *(cxx_compiler(), "-std=c++20", "-fvisibility=hidden", "-fPIC", "-Wall", "-Wextra", "-Wconversion", "-Werror"),
        *(f"-I{folder}" for folder in include_folders()),
        *(part for folder in folders for part in ("-isystem", folder)),
    ]


@functools.cache
def _library():
    """nanobind's own sources, compiled."""
    nanobind = pytest.importorskip("nanobind", "3.0")
    sources = Path(nanobind.source_dir())
    path = build_folders.new("nanobind") / "nanobind.o"
    folders = (sources.parent / "include", sources.parent / "ext/robin_map/include", sysconfig.get_paths()["include"])
    _run([cxx_compiler(), "-std=c++17", "-O0", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNDEBUG",
          *(f"-I{folder}" for folder in folders), "-c", sources / "nb_combined.cpp", "-o", path])  # fmt: skip
    return path


@functools.cache
def build(source=SOURCE, split=False, flags=(), folder=None):
    """The path of the module that `source` is named after."""
    command = [*compiler_command(), "-O0", *_sanitizer_flags(), *flags, "-shared", source]
    if split:
        pytest.importorskip("nanobind_backend", reason="nanobind-backend is what a split module runs on")
        suffix, others = ".abi3.so", SPLIT
    else:
        suffix, others = sysconfig.get_config_var("EXT_SUFFIX"), (_library(),)
    path = (folder or build_folders.new("nanobind")) / (Path(source).stem + suffix)
    _run([*command, *others, "-o", path])
    return path


@functools.cache
def load(source=SOURCE, split=False):
    """The module, imported."""
    path = build(source, split)
    spec = importlib.util.spec_from_file_location(Path(source).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
