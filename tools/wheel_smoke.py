#!/usr/bin/env python3
"""What a user without a compiler gets of the installed wheel: run it with the interpreter of an environment that holds
dlbridge and NumPy. Only the README beside this file's folder is read; the package comes from site-packages.

--kernels fails where the wheel dlbridge-cuda13 does not serve it, for which no GPU is needed.
--no-compiler fails where a compiler or a CUDA toolkit is on PATH: then the environment is not such a user's.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
COMPILERS = ("cc", "gcc", "c++", "g++", "clang", "clang++", "ld", "as", "cmake", "ninja", "nvcc", "ptxas", "cuobjdump")
TOOLKIT_VARIABLES = ("CC", "CXX", "CUDACXX", "CUDA_HOME", "CUDA_PATH")


def check_environment(no_compiler: bool) -> None:
    import dlbridge

    site = sysconfig.get_path("platlib")
    assert dlbridge.__file__.startswith(site + os.sep), f"dlbridge is not the installed one: {dlbridge.__file__}"
    if no_compiler:
        found = [path for path in map(shutil.which, COMPILERS) if path]
        found += [name for name in TOOLKIT_VARIABLES if name in os.environ]
        assert not found, f"an environment without compiler and toolkit has none of {found}"


def run_readme() -> None:
    """Its Python, with NumPy in PyTorch's place: that is all that this environment has."""
    source = "\n".join(
        re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
    source = source.replace("torch.ones(2, 3)", "torch.ones((2, 3))").replace("torch", "numpy")
    names: dict[str, object] = {"__name__": "__readme__"}
    exec(compile(source, str(README), "exec"), names)


def run_commands() -> None:
    for arguments in (["--plain", "--require", "numpy"], ["doctor"]):
        done = subprocess.run(
            [sys.executable, "-m", "dlbridge", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"python -m dlbridge {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"


def run_ndarray() -> None:
    import dlbridge.nd as nd
    import numpy as np

    a = np.linspace(-3, 3, 1000).reshape(20, 50)
    x = nd.asarray(a, device="cpu")
    for name, ours, expected in (
        ("broadcasting", x * 2 + x[:1] - x[:, :1], a * 2 + a[:1] - a[:, :1]),
        ("functions", nd.exp(x) + nd.hypot(x, 2) ** nd.sin(x), np.exp(a) + np.hypot(a, 2) ** np.sin(a)),
        ("reductions", x.sum(axis=0) / x.std(), a.sum(axis=0) / a.std()),
        ("product", x.T @ x, a.T @ a),
        ("indexing", x[x > 1], a[a > 1]),
        ("sorting", nd.sort(-x, axis=None), np.sort(-a, axis=None)),
        ("integers", nd.arange(100) // 7 % 3, np.arange(100) // 7 % 3),
    ):
        np.testing.assert_allclose(nd.asnumpy(ours), expected, rtol=1e-12, err_msg=name)


def check_sdk() -> None:
    import dlbridge

    for folder, names in (
        (dlbridge.get_include(), ("dlbridge.h", "dlbridge.rs", "dlbridge/pybind11.h", "dlpack/dlpack.h")),
        (dlbridge.get_cmake_dir(), ("dlbridgeConfig.cmake", "dlbridgeConfigVersion.cmake", "dlbridgeTargets.cmake")),
    ):
        missing = [name for name in names if not Path(folder, name).is_file()]
        assert not missing, f"{folder} lacks {missing}"


def check_kernels() -> None:
    from dlbridge.nd import _native

    path, problem = _native.kernel_library()
    assert not problem and path == f"{sysconfig.get_path('platlib')}/dlbridge_cuda13/libdlbridge_kernels.so", (
        path,
        problem,
    )


def check_kernel_sources() -> None:
    """What NVRTC compiles of a fused function is in the wheel."""
    from dlbridge.nd._kernels import codegen

    assert "OpFn<Op::kPower" in codegen.device_header("functors.cuh")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-compiler", action="store_true", help="fail where a compiler or a CUDA toolkit is found")
    parser.add_argument("--kernels", action="store_true", help="fail where dlbridge-cuda13 does not serve")
    arguments = parser.parse_args()
    check_environment(arguments.no_compiler)
    run_readme()
    run_commands()
    run_ndarray()
    check_sdk()
    check_kernel_sources()
    if arguments.kernels:
        check_kernels()
    print(f"the wheel's smoke tests passed: CPython {sys.version.split()[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
