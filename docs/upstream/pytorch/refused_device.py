"""A capsule that PyTorch refuses is deleted, and deleted again. Exit status 0: as reported; 1: gone."""

import ctypes
import sys

import numpy as np
import torch

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

calls = []
deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
capsule = np.zeros(3, np.float32).__dlpack__()
managed = pointer(capsule, b"dltensor")
ctypes.c_int32.from_address(managed + 8).value = 4  # device_type: kDLOpenCL
ctypes.c_void_p.from_address(managed + 56).value = ctypes.cast(deleter, ctypes.c_void_p).value
try:
    torch.utils.dlpack.from_dlpack(capsule)
except (RuntimeError, BufferError) as error:
    print("refused:", str(error).splitlines()[0])
del capsule
print(len(calls), "calls of the deleter")
if len(calls) < 2:
    sys.exit("gone: no call too many")
print("as reported: deleted twice")
