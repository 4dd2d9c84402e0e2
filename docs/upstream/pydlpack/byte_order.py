"""pydlpack ignores the byte order of what it exports. Exit status 0: as reported; 1: gone."""

import sys

import dlpack
import numpy as np

array = np.from_dlpack(dlpack.asdlpack(memoryview(np.array([1, 2, 3], ">i4"))))
print(array)
if array.tolist() == [1, 2, 3]:
    sys.exit("gone: the right values")
print("as reported: wrong values")
