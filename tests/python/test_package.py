"""The package itself: what `import dlbridge` loads, the lazy names, and where the C++ files are."""

from pathlib import Path

import dlbridge
import pytest
from child_process import run_python

FRAMEWORKS = ["numpy", "torch", "jax", "tensorflow", "cupy", "numba", "pyarrow", "onnxruntime", "ml_dtypes"]
FRAMEWORKS += ["dask", "distributed", "ray", "mpi4py", "nccl"]


def test_import_loads_no_framework_and_none_of_the_cold_parts():
    loaded = run_python("import dlbridge, sys; print(*sys.modules)").stdout.split()
    assert not set(FRAMEWORKS) & set(loaded)
    assert not {name for name in loaded if name.startswith("dlbridge.")} - {"dlbridge._core"}


def test_every_public_name_is_there():
    assert sorted(dlbridge.__all__) == dir(dlbridge)
    for name in dlbridge.__all__:
        assert getattr(dlbridge, name) is not None


@pytest.mark.parametrize(
    "name", ["asdlpack", "convert", "inspect", "install_as_dlpack", "get_include", "get_cmake_dir"]
)
def test_every_function_has_a_docstring(name):
    assert getattr(dlbridge, name).__doc__


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dlbridge.nothing


@pytest.mark.parametrize(
    ("function", "holds"),
    [(dlbridge.get_include, "dlbridge/tensor.h"), (dlbridge.get_cmake_dir, "dlbridgeConfig.cmake")],
    ids=["get_include", "get_cmake_dir"],
)
def test_cxx_files_are_installed_or_the_error_says_where_they_should_be(function, holds):
    try:
        folder = function()
    except FileNotFoundError as error:
        assert "Install the wheel" in str(error)
        pytest.skip("dlbridge is not installed from a wheel here")
    assert (Path(folder) / holds).is_file()
