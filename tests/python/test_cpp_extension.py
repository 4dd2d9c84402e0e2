"""What an outsider has of the installed wheel: the CMake package, pkg-config, and examples/cpp_extension and
examples/nanobind_extension, each built with one command."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import caster_support
import dlbridge
import pytest
from child_process import HANG_S, run_python

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def installed():
    try:
        return Path(dlbridge.get_cmake_dir())
    except FileNotFoundError:
        pytest.skip("dlbridge is not installed from a wheel here")


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=HANG_S, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PIXELKIT = """
picture = np.arange(60, dtype="float32").reshape(4, 5, 3)
blurred = np.asarray(module.blur(picture))
assert blurred[0, 0].tolist() == picture[:2, :2].mean((0, 1)).tolist(), blurred[0, 0]
assert (np.asarray(module.blur(picture[::-1, ::-1]))[::-1, ::-1] == blurred).all()
assert (module.blur_numpy(asdlpack(picture)) == blurred).all()
module.blur_into(picture, out := np.empty_like(picture), radius=0)
assert (out == picture).all()
module.scale(out, 2)
assert (out == 2 * picture).all()
refused = (lambda: module.scale(picture[:, ::2], 2), lambda: module.blur(bytes(60)))
"""
ROWKIT = """
for dtype in ("float32", "float64"):
    a = np.asarray([[3, 4], [0, 2]], dtype)
    for given in (a, nd.asarray(a), asdlpack(a), np.broadcast_to(a[0], (2, 2))):
        rows, expected = module.normalized(given), np.array(given)
        assert type(rows) is type(given)
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        assert np.allclose(np.asarray(rows), expected), rows
module.scale(b := np.arange(3, dtype="float32"), by=2)
assert b.tolist() == [0, 2, 4]
refused = (lambda: module.normalized(b), lambda: module.scale(bytes(60), 2))
"""
EXAMPLE_CODE = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np, {name} as module
from dlbridge import asdlpack, nd
{use}
for call in refused:
    try: call()
    except TypeError as error: print(str(error).split(",")[0])
"""


@pytest.mark.no_sanitizer  # compiles for ten seconds what test_caster.py and test_nanobind.py have under the sanitizers
@pytest.mark.parametrize(
    ("folder", "library", "name", "use", "refused"),
    [
        ("cpp_extension", "pybind11", "pixelkit", PIXELKIT,
         ["scale(): argument 'picture': expected C-contiguous", "blur(): argument 'picture': expected dtype float32"]),
        ("nanobind_extension", "nanobind", "rowkit", ROWKIT,
         ["normalized(): argument 'a': expected rank 2", "scale(): argument 'a': expected dtype float32"]),
    ],
    ids=["pybind11", "nanobind"],
)  # fmt: skip
def test_the_example_builds_with_one_command_and_takes_every_array(
    installed, tmp_path, folder, library, name, use, refused
):
    for module in ("pip", "scikit_build_core", library, "numpy"):
        pytest.importorskip(module, reason=f"{module} is needed to build and run the example")
    source = tmp_path / folder
    shutil.copytree(EXAMPLES / folder, source)  # a build must not write into the checkout
    run(sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index",
        "--disable-pip-version-check", "--target", tmp_path / "site", source)  # fmt: skip
    assert run_python(EXAMPLE_CODE.format(name=name, use=use), tmp_path / "site").stdout.splitlines() == refused


PROJECT = """
cmake_minimum_required(VERSION 3.26)
project(outside LANGUAGES CXX)
find_package(dlbridge 0.1 REQUIRED {components})
add_library(probe OBJECT probe.cpp)
target_link_libraries(probe PRIVATE dlbridge::dlbridge)
foreach(target dlbridge::dlbridge dlbridge::pybind11 dlbridge::nanobind)
  if(NOT TARGET ${{target}})
    message(FATAL_ERROR "no ${{target}}")
  endif()
endforeach()
get_target_property(links dlbridge::pybind11 INTERFACE_LINK_LIBRARIES)
message(STATUS "links ${{links}}")
if("{components}" MATCHES pybind11 AND NOT TARGET pybind11::headers)
  message(FATAL_ERROR "the component has not found pybind11")
endif()
if("{components}" MATCHES nanobind AND NOT COMMAND nanobind_add_module)
  message(FATAL_ERROR "the component has not found nanobind")
endif()
"""
PROBE = """
#include <dlbridge/tensor_view.h>
#include <dlbridge/version.h>
static_assert(DLPACK_MAJOR_VERSION == 1);
int main() { return dlbridge::Tensor().dl.ndim; }
"""


@pytest.mark.no_sanitizer
@pytest.mark.parametrize(
    "components", ["", "COMPONENTS pybind11", "COMPONENTS nanobind", "COMPONENTS nanobind pybind11"]
)
def test_find_package(installed, tmp_path, components):
    cmake = shutil.which("cmake", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    if cmake is None:
        pytest.skip("no cmake")
    for library in components.split()[1:]:
        pytest.importorskip(library, reason="the component looks for it")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(components=components))
    (tmp_path / "probe.cpp").write_text(PROBE)
    out = run(cmake, "-S", tmp_path, "-B", tmp_path / "build", f"-Ddlbridge_DIR={installed}",
              f"-DPython_EXECUTABLE={sys.executable}")  # fmt: skip
    assert "links dlbridge::dlbridge;pybind11::headers" in out
    if not components:
        run(cmake, "--build", tmp_path / "build")


@pytest.mark.no_sanitizer
def test_pkg_config(installed, tmp_path):
    tool = shutil.which("pkg-config") or shutil.which("pkgconf")
    if tool is None:
        pytest.skip("no pkg-config")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(installed.parent / "pkgconfig")}
    flags = run(tool, "--cflags", "dlbridge", env=environment).split()
    assert [Path(f.removeprefix("-I")).resolve() for f in flags] == [Path(dlbridge.get_include()).resolve()]
    assert run(tool, "--modversion", "dlbridge", env=environment).strip() == dlbridge.__version__
    (tmp_path / "probe.cpp").write_text(PROBE)
    run(shutil.which("c++"), "-std=c++20", "-fsyntax-only", *flags, tmp_path / "probe.cpp")


def test_the_test_extension_is_built_from_the_installed_headers(installed):
    assert caster_support.include_folders() == [dlbridge.get_include()]


@pytest.mark.no_sanitizer
def test_what_an_argument_refuses_does_not_compile():
    """Once as it stands, once with every REFUSED line, each of which must be an error for its own reason."""
    source = caster_support.SOURCE.with_name("arg_must_fail.cpp")
    command = [*caster_support.compiler_command(), "-fsyntax-only", str(source)]
    allowed = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    refused = subprocess.run([*command, "-DDLBRIDGE_MUST_FAIL"], capture_output=True, text=True).stderr
    assert allowed.communicate()[1] == "" and allowed.returncode == 0
    errors = [line for line in refused.splitlines() if "error:" in line]
    lines = source.read_text().splitlines()
    expected = [(number, line) for number, line in enumerate(lines, 2) if "// expect: " in line]
    assert len(expected) == sum("REFUSED(" in line and "#define" not in line for line in lines)
    for number, line in expected:  # `number`: of the REFUSED line, which is named also where a header fails for it
        reason = line.split("// expect: ")[1]
        assert any(re.search(reason, error) for error in errors), f"{reason}\n{refused}"
        assert f"{source.name}:{number}:" in refused, f"line {number}\n{refused}"
