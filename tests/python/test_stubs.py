"""Stub generators and a type checker on extension modules: what pybind11-stubgen and nanobind's stubgen make of
tests/stubs/stub_module.cpp, and which calls mypy accepts."""

import functools
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import build_folders
import caster_support
import dlbridge
import nanobind_support
import pytest
from child_process import HANG_S

pytestmark = pytest.mark.no_sanitizer  # interpreters of their own; nothing here runs what is under test

SOURCE = Path(__file__).parent.parent / "stubs" / "stub_module.cpp"


def run(*command, folder, status=(0,)):
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        capture_output=True, text=True, cwd=folder, timeout=HANG_S, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode in status, done.stdout + done.stderr
    return done.stdout + done.stderr


def by_pybind11(folder):
    pytest.importorskip("pybind11_stubgen", reason="pybind11-stubgen makes the stub")
    path = folder / f"stub_module{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = [*caster_support.compiler_command(), "-O0", "-fPIC", "-shared", SOURCE, "-o", path]
    subprocess.run(list(map(str, command)), check=True)
    said = run("pybind11_stubgen", "stub_module", "-o", folder, "--exit-code", folder=folder)
    assert "error" not in said.lower(), said


def by_nanobind(folder):
    nanobind_support.build(SOURCE, flags=("-DWITH_NANOBIND",), folder=folder)
    run("nanobind.stubgen", "-q", "-m", "stub_module", "-o", folder / "stub_module.pyi", folder=folder)


GENERATORS = {"pybind11-stubgen": by_pybind11, "nanobind.stubgen": by_nanobind}


@functools.cache
def make(generator):
    """The folder of the module and its stub."""
    folder = build_folders.new("stubs")
    GENERATORS[generator](folder)
    return folder


@pytest.fixture(scope="module", params=list(GENERATORS))
def generator(request):
    return request.param


@pytest.fixture(scope="module")
def folder(generator):
    return make(generator)


MATRIX = 'Annotated[dlbridge.AnyArray, "Tensor[float32, (*, *), C, cpu]"]'
STREAM = 'Annotated[Any, "CUDA stream"] | None'
SIGNATURES = [
    f"matrix(a: {MATRIX}) -> int",
    'paint(a: Annotated[dlbridge.AnyArray, "Tensor[uint8, (*, *, 3), cpu, writable]"]) -> None',
    'several(a: Annotated[dlbridge.AnyArray, "Tensor[int32 | float64, ..., cpu]"]) -> bool',
    f"maybe(a: {MATRIX} | None = None) -> bool",
    f"all(a: Sequence[{MATRIX}]) -> int",
    f'on_gpu(a: Annotated[dlbridge.AnyArray, "Tensor[float32, ..., cuda, writable]"], stream: {STREAM} = None) -> int',
    'tensor(a: Annotated[dlbridge.AnyArray, "Tensor"]) -> int',
    f"same(a: {MATRIX}) -> {MATRIX.replace('dlbridge.AnyArray', 'Any')}",
    f'alike(a: {MATRIX}) -> Annotated[Any, "array"]',
    "as_tensor() -> dlbridge.Tensor",
    "as_numpy() -> numpy.ndarray",
    "as_nd() -> dlbridge.nd.ndarray",
]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.split("(")[0])
def test_a_stub_has_the_types_of_the_signature(folder, signature):
    stub = (folder / "stub_module.pyi").read_text()
    stub = re.sub(r"\b(typing|collections\.abc)\.", "", stub).replace("None | None", "None")
    assert f"def {signature}:" in stub, stub


def test_a_strict_argument_says_what_it_takes(folder):
    assert "Tensor[float32, (*, *), C, cpu]" in (folder / "stub_module.pyi").read_text().split("def strict(")[1]


# What a checker is to accept as an array, with the module that it needs.
ARRAYS = {
    'numpy.ones((2, 2), "float32")': "numpy",
    "torch.ones(2, 2)": "torch",
    "torch.nn.Parameter(torch.ones(2, 2))": "torch",
    "jax.numpy.ones((2, 2))": "jax",
    "dlbridge.nd.ones((2, 2))": "dlbridge.nd",
    'dlbridge.asdlpack(b"abc")': "dlbridge",
    "dlbridge.nd.ones((2, 2)).__dlpack__()": "dlbridge.nd",
    'b"abc"': "dlbridge",
    'memoryview(b"abc")': "dlbridge",
    'array.array("f")': "array",
}
REFUSED = ['"abc"', "[1.0, 2.0]", "3", "None", "object()"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """mypy's, in which what it has read of PyTorch is read once."""
    return tmp_path_factory.mktemp("mypy")


@pytest.fixture(scope="module")
def said(folder, cache):
    """What mypy says of the lines of a client of the module, {line: text}, and of the stub; and all of it."""
    pytest.importorskip("mypy", reason="mypy checks the calls")
    modules = {module for module in ARRAYS.values() if importlib.util.find_spec(module.partition(".")[0])}
    lines = [f"import {module}" for module in sorted({*modules, "stub_module"})]
    lines += [f"stub_module.matrix({array})" for array in (*ARRAYS, *REFUSED) if needed(array) is None]
    lines += [f"reveal_type(stub_module.{call})" for call in ("matrix(b'')", "alike(b'')", "as_nd()", "as_tensor()")]
    (folder / "client.py").write_text("\n".join(lines) + "\n")
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    said = run("mypy", "--config-file", folder / "mypy.ini", "--cache-dir", cache, "client.py",
               "stub_module.pyi", folder=folder, status=(0, 1))  # fmt: skip
    found = re.findall(r"^client\.py:(\d+): (.*)", said, re.MULTILINE)
    return (
        {lines[int(number) - 1]: text for number, text in found},
        re.findall(r"^stub_module\.pyi:.*", said, re.MULTILINE),
        said,
    )


def needed(array):
    """The module that is missing for it, or None."""
    module = ARRAYS.get(array, "dlbridge").partition(".")[0]
    return None if importlib.util.find_spec(module) else module


@pytest.mark.parametrize("array", ARRAYS)
def test_a_checker_accepts_arrays_of_every_library(said, array):
    if (missing := needed(array)) is not None:
        pytest.skip(f"{missing} is not installed")
    assert f"stub_module.matrix({array})" not in said[0], said[2]


@pytest.mark.parametrize("value", REFUSED)
def test_a_checker_refuses_what_is_no_array(said, value):
    assert 'Argument 1 to "matrix" has incompatible type' in said[0][f"stub_module.matrix({value})"]


def test_results_have_the_types_of_their_frameworks(said):
    revealed = {call: re.search('"(.*)"', text)[1] for call, text in said[0].items() if "Revealed" in text}
    assert list(revealed.values()) == ["int", "Any", "dlbridge.nd._native.ndarray", "dlbridge._core.Tensor"], said[2]


def test_the_stub_itself_has_no_errors(said):
    assert said[1] == []


@pytest.mark.parametrize("value", [b"abc", bytearray(3), memoryview(b"abc"), dlbridge.asdlpack(b"abc")],
                         ids=lambda value: type(value).__name__)  # fmt: skip
def test_any_array_is_a_class_for_isinstance(value):
    assert isinstance(value, dlbridge.AnyArray)
    assert isinstance(dlbridge.asdlpack(value).__dlpack__(max_version=(1, 0)), dlbridge.AnyArray)


@pytest.mark.parametrize("value", ["abc", [1.0], 3, None, object()], ids=lambda value: type(value).__name__)
def test_any_array_holds_nothing_else(value):
    assert not isinstance(value, dlbridge.AnyArray)
