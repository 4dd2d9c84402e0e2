"""pyarrow.Tensor of booleans leaves as uint8. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np
import pyarrow as pa

array = np.from_dlpack(pa.Tensor.from_numpy(np.array([True, False])))
print(array.dtype)
if array.dtype.name == "bool":
    sys.exit("gone: bool")
print("as reported: not bool")
