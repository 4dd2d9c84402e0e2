"""Two capsules of one wrapper hold the same managed tensor. Exit status 0: as reported; 1: gone."""

import ctypes
import sys

import dlpack

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

x = dlpack.asdlpack(memoryview(bytearray(24)).cast("q"))
a, b = x.__dlpack__(), x.__dlpack__()
same = pointer(a, b"dltensor") == pointer(b, b"dltensor")
print("the same struct:", same)
if not same:
    sys.exit("gone: a struct a capsule")
print("as reported: whoever consumes the second one has a struct that was deleted")
