"""What the C++ headers cost a compiler."""

import os
import subprocess
import sysconfig
from pathlib import Path

import caster_support
import pytest

pytestmark = pytest.mark.no_sanitizer  # nothing of it runs

SOURCES = Path(__file__).parents[2] / "benchmarks" / "compile_sources"


def compiled(*command):
    python = ("-isystem", sysconfig.get_paths()["include"])
    folders = (f"-I{folder}" for folder in caster_support.include_folders())
    command = [caster_support.cxx_compiler(), "-std=c++20", *folders, *python, *command]
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_a_file_of_functions_reads_no_binding_library_and_no_costly_header(tmp_path):
    done = compiled("-M", SOURCES / "functions_alone.cpp")
    assert done.returncode == 0, done.stderr
    read = {Path(name).name for name in done.stdout.split() if name != "\\"}
    assert "tensor_view.h" in read
    costly = {"iostream", "ostream", "sstream", "format", "ranges", "regex", "chrono", "functional", "filesystem"}
    assert not read & {*costly, "map", "unordered_map", "memory", "mutex", "thread", "pybind11.h", "nanobind.h"}


def test_the_words_of_refusals_are_the_packages_and_not_compiled_into_extensions(tmp_path):
    nanobind = pytest.importorskip("nanobind", reason="nanobind is the route whose files can be as small")
    out = tmp_path / "three.o"
    done = compiled("-O2", "-fPIC", "-fvisibility=hidden", "-isystem", nanobind.include_dir(), "-c",
                    SOURCES / "with_nanobind.cpp", "-o", out)  # fmt: skip
    assert done.returncode == 0, done.stderr
    code = out.read_bytes()
    assert b"its default is None" in code
    for words in (b"C-contiguous", b"writable memory", b".astype(", b"cuda_host"):
        assert words not in code, words
