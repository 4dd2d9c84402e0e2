"""A managed tensor whose deleter is NULL ends the process. Exit status 0: as reported; 1: gone."""

import subprocess
import sys

CRASH = """\
import ctypes

import numpy as np
import onnxruntime

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
x = np.zeros(3, np.float32)


class Producer:
    dtype = x.dtype

    def __dlpack__(self, **options):
        capsule = x.__dlpack__()
        ctypes.c_void_p.from_address(pointer(capsule, b"dltensor") + 56).value = None  # deleter
        return capsule

    def __dlpack_device__(self):
        return (1, 0)


value = onnxruntime.OrtValue.from_dlpack(Producer())
del value
"""

child = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=False)
if child.returncode >= 0:
    sys.exit(f"gone: exit status {child.returncode}: {child.stderr[-300:]}")
print(f"as reported: ended by signal {-child.returncode}")
