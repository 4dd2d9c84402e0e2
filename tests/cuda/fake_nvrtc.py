"""A host compiler in NVRTC's place: user kernels then really run, on the fake driver of fake_user_kernels.c.

A real NVRTC, which needs no GPU, has to agree on what compiles: see keep().
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from dlbridge.nd import _native
from dlbridge.nd._kernels import nvrtc

FOLDER = Path(tempfile.mkdtemp(prefix="dlbridge_fake_nvrtc_"))

COMPILER = [os.environ.get("CXX", "c++"), "-std=c++17", "-O0", "-w", "-fPIC", "-pthread"]

compiled: list[str] = []  # the names of the sources, in order


def keep(*call) -> None:
    """For real_nvrtc.py, in another process: NVRTC does not bear a driver that is none."""
    if path := os.environ.get("FAKE_NVRTC_CALLS"):
        with open(path, "ab") as file:
            pickle.dump(call, file)


@functools.cache
def device_header() -> Path:
    """fake_device.h, compiled ahead: there are some dozens of kernels."""
    header = FOLDER / "fake_device.h"
    shutil.copy(Path(__file__).parent / "fake_device.h", header)
    command = [*COMPILER, "-x", "c++-header", "-o", str(header) + ".gch", str(header)]
    subprocess.run(command, check=True, capture_output=True)
    return header


def compile_for_host(source, name, options, name_expressions, headers, machine_code):
    """Takes the place of _native.nvrtc_compile()."""
    assert machine_code
    compiled.append(name)
    given = source
    for include, text in headers:
        source = source.replace(f"#include <{include}>", text)
    wrappers = []
    lowered = []
    for number, expression in enumerate(name_expressions):
        wrappers.append(f"static constexpr auto fake_lowered_{number} = {expression};")
        lowered.append(f"fake_lowered_{number}")
    names = re.findall(r'extern\s*"C"\s*(?:static\s*)?__global__\s+void\s+(\w+)\s*\(', source)
    synchronises = str("__syncthreads" in source).lower()
    wrappers += [f"FAKE_KERNEL({kernel}, {synchronises})" for kernel in names]
    wrappers += [f"FAKE_KERNEL_VALUE({alias}, {synchronises})" for alias in lowered]
    wrappers += [
        f"FAKE_GLOBAL({variable})" for variable in re.findall(r'extern\s*"C"\s*__device__\s+\w+\s+(\w+)', source)
    ]
    text = f'#line 1 "{name}"\n{source}\n' + "\n".join(wrappers) + "\n"
    library = FOLDER / (hashlib.sha256(text.encode()).hexdigest()[:24] + ".so")
    file = library.with_suffix(".cpp")
    file.write_text(text)
    command = [*COMPILER, "-shared", "-include", str(device_header()), "-o", str(library), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        log = re.sub(r"^([^\n:]+):(\d+):\d+: error: ", r"\1(\2): error: ", done.stderr, flags=re.MULTILINE)
        keep(given, name, options, name_expressions, headers, False)
        return False, log, b"", []
    keep(given, name, options, name_expressions, headers, True)
    return True, "", b"HOST:" + str(library).encode() + b"\0", lowered


_native.nvrtc_compile = compile_for_host
nvrtc.compiler = lambda: nvrtc.Compiler("a host compiler", (13, 0), (80, 90))
