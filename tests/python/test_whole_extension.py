"""One extension with all of it, eight functions, a class and three dtypes, by pybind11, by nanobind and in C, of the
headers that are installed: the three do the same."""

import functools
import gc
import importlib.util
import os
import subprocess
from pathlib import Path

import build_folders
import caster_support
import nanobind_support
import pytest
from dlbridge import Tensor
from lifecycle_support import host_array, nothing_lost
from test_c_extension import SUFFIX, compile_c

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")
pytestmark = pytest.mark.no_sanitizer  # the headers are tested under them by other modules

SOURCES = Path(__file__).parents[1] / "whole_extension"


def compile_cpp(name, command, *others):
    path = build_folders.new(name) / f"{name}{SUFFIX}"
    command = [*command, "-O0", "-fPIC", "-shared", SOURCES / f"{name}.cpp", SOURCES / "functions.cpp", *others]
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(
        [*map(str, command), "-o", str(path)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return path


def in_c():
    path = build_folders.new("whole-c") / f"whole_c{SUFFIX}"
    compile_c(SOURCES / "whole_c.c", path, "-Wall", "-Wextra", "-Wconversion", "-Werror")
    return path


MODULES = {
    "whole_pybind11": lambda: compile_cpp("whole_pybind11", caster_support.compiler_command()),
    "whole_nanobind": lambda: compile_cpp(
        "whole_nanobind", nanobind_support.compiler_command(), nanobind_support._library()
    ),
    "whole_c": in_c,
}


@functools.cache
def load(name):
    spec = importlib.util.spec_from_file_location(name, MODULES[name]())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=list(MODULES))
def whole(request):
    return load(request.param)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("make", [np.asarray, host_array], ids=["numpy", "nd"])
def test_three_dtypes_in_and_the_callers_framework_out(whole, make, dtype):
    a = make(np.arange(4).astype(dtype))
    with nothing_lost():
        assert whole.total(a) == 6
        out = whole.scaled(a, 2)
        assert type(out) is type(a) and str(out.dtype) == dtype and np.asarray(out).tolist() == [0, 2, 4, 6]
        del out
        gc.collect()


def test_arguments_and_results_of_every_kind(whole):
    a = np.arange(3, dtype="float32")
    with nothing_lost():
        assert whole.negate(a) is a and a.tolist() == [0, -1, -2]
        x = np.arange(6.0)[::2]
        assert whole.dot(x, x[::-1]) == 0 * 4 + 2 * 2 + 4 * 0
        rows = np.arange(6, dtype="float32").reshape(2, 3).T
        whole.copy_into(rows, out := np.zeros((3, 2), "float32"))
        assert out.tolist() == rows.tolist()
        sums = whole.column_sums(rows)
        assert type(sums) is np.ndarray and sums.tolist() == [3, 12]
        made = whole.filled(2, 7)
        assert isinstance(made, Tensor) and np.asarray(made).tolist() == [7, 7]
        assert [whole.axes(one) for one in (np.float32(1).reshape(()), rows, made)] == [0, 2, 1]
        del made, sums
        gc.collect()


def test_a_class_lends_its_memory_and_is_kept_by_it(whole):
    with nothing_lost():
        one = whole.Sum(np.arange(3.0))
        values = np.asarray(one.values)
        one.add(np.ones(3))
        del one
        gc.collect()
        assert values.tolist() == [1, 2, 3]
        del values
        gc.collect()


def test_what_is_wrong_names_the_function_and_the_argument(whole):
    for call, words in (
        (lambda: whole.negate(np.arange(3.0)), "negate(): argument 'a': expected dtype float32, got (3,) [numpy.ndar"),
        (lambda: whole.dot(np.ones(2), "no"), "dot(): argument 'b': str has none of"),
        (lambda: whole.total(np.ones((2, 2))), "total(): argument 'a': expected "),
    ):
        with pytest.raises(TypeError) as error:
            call()
        assert str(error.value).startswith(words)
    with pytest.raises(TypeError, match=r"argument 'first': expected rank 1"):
        whole.Sum(np.ones((2, 2)))
