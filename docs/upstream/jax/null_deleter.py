"""A managed tensor whose deleter is NULL ends the process. Exit status 0: as reported; 1: gone."""

import subprocess
import sys

CRASH = """\
import ctypes

import jax
import numpy as np

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
block = np.zeros(64, np.float32)
x = block[-block.ctypes.data % 64 // 4 :][:16]  # aligned to 64 bytes


class Producer:
    def __dlpack__(self, **options):
        capsule = x.__dlpack__()
        ctypes.c_void_p.from_address(pointer(capsule, b"dltensor") + 56).value = None  # deleter
        return capsule

    def __dlpack_device__(self):
        return (1, 0)


array = jax.dlpack.from_dlpack(Producer())
del array
"""

child = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=False)
if child.returncode >= 0:
    sys.exit(f"gone: exit status {child.returncode}: {child.stderr[-300:]}")
print(f"as reported: ended by signal {-child.returncode}")
