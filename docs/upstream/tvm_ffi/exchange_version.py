"""A C exchange table of a version to come is called all the same. Exit status 0: as reported; 1: gone."""

import subprocess
import sys

CRASH = """\
import ctypes

import numpy as np
import tvm_ffi

new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
table = (ctypes.c_uint64 * 7)(2)  # version 2.0, whose functions nobody knows


class Array:
    __dlpack_c_exchange_api__ = new(ctypes.addressof(table), b"dlpack_exchange_api", None)

    def __dlpack__(self, **options):
        return np.zeros(3).__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)


tvm_ffi.from_dlpack(Array())
"""

child = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=False)
if child.returncode >= 0:
    sys.exit(f"gone: exit status {child.returncode}: {child.stderr[-300:]}")
print(f"as reported: ended by signal {-child.returncode}")
