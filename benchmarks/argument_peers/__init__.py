"""Builds two extension modules with the same functions, one compiler call each, and imports them."""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sysconfig
import tempfile
import types

from nanobind_peer import BUILD_TIMEOUT_S, RELEASE_FLAGS, BuildError, compiler

HERE = pathlib.Path(__file__).parent


def _flags() -> list[str]:
    return ["-std=c++20", *(flag for flag in RELEASE_FLAGS if not flag.startswith("-std="))]


def _nanobind_command() -> list[str]:
    nanobind = importlib.import_module("nanobind")
    sources = pathlib.Path(nanobind.source_dir())
    robin_map = sources.parent / "ext" / "robin_map" / "include"
    includes = (nanobind.include_dir(), str(robin_map), importlib.import_module("dlbridge").get_include())
    source = (str(HERE / "nanobind_args.cpp"), str(sources / "nb_combined.cpp"))
    return [*_flags(), *(f"-I{i}" for i in includes), *source]


def _pybind11_command() -> list[str]:
    includes = (importlib.import_module("pybind11").get_include(), importlib.import_module("dlbridge").get_include())
    return [*_flags(), *(f"-I{i}" for i in includes), str(HERE / "pybind11_args.cpp")]


def _build(name: str, command: list[str], folder: str) -> str:
    output = str(pathlib.Path(folder) / (name + importlib.machinery.EXTENSION_SUFFIXES[0]))
    full = [*compiler(), *command, "-o", output]
    done = subprocess.run(full, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        first = next((s for s in done.stderr.splitlines() if "error" in s), done.stderr[-200:])
        raise BuildError(f"{name}: the compiler failed: {pathlib.PurePath(first).name[:160]}")
    return output


def load() -> dict[str, types.ModuleType]:
    """`nanobind_args` and `pybind11_args`, built in a temporary folder. Raises ImportError or BuildError."""
    python = f"-I{sysconfig.get_paths()['include']}"  # asked here: sysconfig's first use is not for two threads at once
    commands = {"nanobind_args": [python, *_nanobind_command()], "pybind11_args": [python, *_pybind11_command()]}
    modules = {}
    # The folder can go as soon as the shared objects are mapped.
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dlbridge-arguments-"))
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(2))
        built = {name: pool.submit(_build, name, command, folder) for name, command in commands.items()}
        for name, path in built.items():
            loader = importlib.machinery.ExtensionFileLoader(name, path.result())
            spec = importlib.util.spec_from_file_location(name, path.result(), loader=loader)
            assert spec is not None
            modules[name] = importlib.util.module_from_spec(spec)
            loader.exec_module(modules[name])
    return modules
