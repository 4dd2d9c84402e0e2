"""pyarrow.Tensor forgets the byte order of what it was made of. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np
import pyarrow as pa

array = pa.Tensor.from_numpy(np.array([1, 2, 3], ">i4")).to_numpy()
print(array)
if array.tolist() == [1, 2, 3]:
    sys.exit("gone: the right values")
print("as reported: wrong values")
