"""An OrtValue of booleans leaves as uint8. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np
import onnxruntime

value = onnxruntime.OrtValue.ortvalue_from_numpy(np.array([True, False]))
dtype = np.from_dlpack(value).dtype
print(value.data_type(), dtype)
if dtype.name == "bool":
    sys.exit("gone: bool")
print("as reported: not bool")
