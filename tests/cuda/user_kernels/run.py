"""User kernels on a machine with no GPU, numbers included: the fake driver runs what a host compiler made of them.

Run by tests/python/nd/test_user_kernels_fake.py with fake_user_kernels.c as libcuda.so.1, which costs a compilation a
kernel: all cases of *_cases.py in one interpreter. Prints a line for each; arguments name those wanted."""

from __future__ import annotations

import gc
import importlib
import sys
import traceback
from pathlib import Path

import fake_nvrtc  # noqa: F401  before any kernel is compiled
from dlbridge import _core
from dlbridge.nd import _compiled
from fake_cuda import lib


def cases():
    for file in sorted(Path(__file__).parent.glob("*_cases.py")):
        members = list(vars(importlib.import_module(file.stem)).items())
        yield from ((name, member) for name, member in members if name.startswith("test_"))


def main(*wanted):
    for name, case in cases():
        if wanted and name not in wanted:
            continue
        try:
            case()
            print(name, "passed", flush=True)
        except Exception:
            print(name, "failed", repr(traceback.format_exc()), flush=True)
    lib.fake_cuda_synchronize()
    _compiled.clear_caches()
    gc.collect()
    print("live", _core.live_counts(), flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
