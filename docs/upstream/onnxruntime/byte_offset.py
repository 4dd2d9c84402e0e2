"""OrtValue.from_dlpack() reads from the wrong place. Exit status 0: as reported; 1: gone."""

import ctypes
import sys

import numpy as np
import onnxruntime

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
x = np.arange(6, dtype=np.float32)


class Producer:
    dtype = x.dtype

    def __dlpack__(self, **options):
        capsule = x.__dlpack__()
        managed = pointer(capsule, b"dltensor")
        ctypes.c_uint64.from_address(managed + 40).value = 8  # byte_offset: two elements
        shape = ctypes.c_void_p.from_address(managed + 24).value
        ctypes.c_int64.from_address(shape).value = 4
        return capsule

    def __dlpack_device__(self):
        return (1, 0)


array = onnxruntime.OrtValue.from_dlpack(Producer()).numpy()
print(array)
if array.tolist() == [2, 3, 4, 5]:
    sys.exit("gone: the right values")
print("as reported: byte_offset is ignored")
