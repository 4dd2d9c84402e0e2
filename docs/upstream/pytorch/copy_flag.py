"""__dlpack__(copy=True) does not say that it copied. Exit status 0: as reported; 1: gone."""

import ctypes
import sys

import torch

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

capsule = torch.zeros(3).__dlpack__(max_version=(1, 0), copy=True)
flags = ctypes.c_uint64.from_address(pointer(capsule, b"dltensor_versioned") + 24).value
print("flags:", flags)
if flags & 2:
    sys.exit("gone: DLPACK_FLAG_BITMASK_IS_COPIED is set")
print("as reported: DLPACK_FLAG_BITMASK_IS_COPIED is not set")
