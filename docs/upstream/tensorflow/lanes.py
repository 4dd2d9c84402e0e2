"""A tensor of four-lane elements is imported as a quarter of it. Exit status 0: as reported; 1: gone."""

import ctypes
import sys

import numpy as np
import tensorflow as tf

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

capsule = np.arange(64, dtype=np.float32).__dlpack__()
managed = pointer(capsule, b"dltensor")
ctypes.c_uint16.from_address(managed + 22).value = 4  # lanes
shape = ctypes.c_void_p.from_address(managed + 24).value
ctypes.c_int64.from_address(shape).value = 16  # 16 elements of four floats
tensor = tf.experimental.dlpack.from_dlpack(capsule)
print(tensor.shape, tensor.dtype)
if int(tf.size(tensor)) == 64:
    sys.exit("gone: all elements are there")
print("as reported: 16 of 64 numbers")
