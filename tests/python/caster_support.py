"""Builds the extension module of tests/pybind against the dlbridge that is tested, once a session."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import build_folders
import dlbridge
import pytest

SOURCE = Path(__file__).parent.parent / "pybind" / "caster_module.cpp"
NAME = "caster_module"


def include_folders():
    """Of the installed wheel; of the checkout where the package is an in-place build."""
    try:
        return [dlbridge.get_include()]
    except FileNotFoundError:
        tvm_ffi = importlib.util.find_spec("tvm_ffi")
        if tvm_ffi is None:
            pytest.skip("dlbridge is not installed from a wheel, and apache-tvm-ffi, for its dlpack.h, is not there")
        return [str(SOURCE.parents[2] / "bridge" / "include"), str(Path(tvm_ffi.origin).parent / "include")]


def _is_preloaded(library):
    return library in os.environ.get("LD_PRELOAD", "")


def _sanitizer_flags():
    """Most of what is tested is in headers: under a sanitizer the module is built with it, too."""
    of_clang = _is_preloaded("libclang_rt.asan")
    if not of_clang and not _is_preloaded("libasan"):
        return []
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"]
    return [*flags, "-shared-libsan"] if of_clang else flags


def cxx_compiler():
    """That of the sanitizer's library that is preloaded. Skips where there is none."""
    compiler = shutil.which("clang++-19" if _is_preloaded("libclang_rt.asan") else "c++")
    if compiler is None:
        pytest.skip("no C++ compiler on PATH to build the test extension")
    return compiler


def compiler_command():
    """The compiler with all warnings and all headers. Skips by name where something is missing."""
    pybind11 = pytest.importorskip("pybind11", "3.1", reason="pybind11 >= 3.1 builds the test extension")
    return [
        *(cxx_compiler(), "-std=c++20", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wconversion", "-Werror"),
        *(f"-I{i}" for i in include_folders()),
        *(part for i in (sysconfig.get_paths()["include"], pybind11.get_include()) for part in ("-isystem", i)),
    ]


@functools.cache
def build():
    """The path of the built module. Skips by name where it cannot be built."""
    path = str(build_folders.new("caster") / (NAME + sysconfig.get_config_var("EXT_SUFFIX")))
    command = [*compiler_command(), "-O0", "-fPIC", "-shared", *_sanitizer_flags(), str(SOURCE), "-o", path]
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # the compiler is not under test
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return path


@functools.cache
def load():
    """The module, imported."""
    spec = importlib.util.spec_from_file_location(NAME, build())
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    return module


class Broken:
    """A producer whose own code raises."""

    def __init__(self, kind):
        self.kind = kind

    def __dlpack__(self, **_):
        raise self.kind("my own words")

    def __dlpack_device__(self):
        return (1, 0)


def check_named_by_the_reader(call, ext, names, row):
    """What the readers refuse begins with the names of function and argument, and keeps its class."""
    import numpy as np

    masked = np.ma.masked_array(row, mask=[0, 1, 0])
    for bad, kind, reason in (
        ("abc", dlbridge.ProtocolError, "str "),
        (masked, dlbridge.ExchangeError, "the array is "),
    ):
        with pytest.raises(kind) as error:
            call(ext, bad)
        assert str(error.value).startswith(names + reason), error.value


def check_each_alternative(call, ext, names):
    """A variant of float32 and float64 vectors and of a matrix: each says why; what is alike of all is said once."""
    import numpy as np

    for _ in range(2):
        with pytest.raises(TypeError) as error:
            call(ext, np.ones(2, "int32"))
        lines = str(error.value).splitlines()
        assert lines[0] == names + "none of the alternatives takes this:"
        assert [line.strip().partition(", got (2,) [numpy.ndarray, int32")[0] for line in lines[1:]] == [
            "expected dtype float32",
            "expected dtype float64",
            "expected rank 2",
        ]
    with pytest.raises(dlbridge.ProtocolError) as error:
        call(ext, "text")
    assert str(error.value).startswith(names + "str has none of")


def matrix(dtype="float32"):
    """Twelve elements in three rows."""
    import numpy as np

    return np.arange(12, dtype=dtype).reshape(3, 4)
