"""The machine that a run was made on, as its reports name it."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import platform
import re
from pathlib import Path
from typing import Any

from dlbridge import _core

_NAME_BYTES = 256
_DRIVER = Path("/proc/driver/nvidia/version")


def _gpus_of_the_driver(count: int) -> list[str]:
    """By the CUDA driver, which knows those that it shows; needs no context."""
    name, device = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_int()
    found = []
    with contextlib.suppress(OSError, AttributeError):
        cuda = ctypes.CDLL("libcuda.so.1")
        for index in range(count):
            if cuda.cuDeviceGet(ctypes.byref(device), index) or cuda.cuDeviceGetName(name, _NAME_BYTES, device):
                break
            found.append(name.value.decode(errors="replace"))
    return found


def _gpus_of_the_kernel() -> list[str]:
    found = []
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        with contextlib.suppress(OSError):
            lines = Path(path).read_text(encoding="utf-8").splitlines()
            found += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return found


def gpus() -> list[str]:
    """The models of the GPUs that CUDA shows; where CUDA cannot be had, of those that the kernel knows."""
    cuda = _core.cuda_info()
    return (_gpus_of_the_driver(cuda["device_count"]) if cuda["available"] else []) or _gpus_of_the_kernel()


def driver() -> str:
    """The version of the NVIDIA driver, empty where there is none."""
    with contextlib.suppress(OSError):
        found = re.search(r"\s(\d{3,}\.[\d.]+)\s", _DRIVER.read_text(encoding="utf-8"))
        return found[1] if found else ""
    return ""


def describe() -> dict[str, Any]:
    """In plain types."""
    return {
        "host": platform.node(),
        "platform": f"{platform.system()} {platform.machine()}",
        "gpus": gpus(),
        "driver": driver(),
        "cuda": dict(_core.cuda_info()),
    }
