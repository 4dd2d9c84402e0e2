"""pyarrow.Tensor floors strides that DLPack cannot express. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np
import pyarrow as pa

packed = np.array([(0, 1), (0, 2), (0, 3)], [("pad", "u1"), ("value", "i4")])["value"]
tensor = pa.Tensor.from_numpy(packed)  # strides of five bytes
array = np.from_dlpack(tensor)
print(tensor.to_numpy(), array)
if array.tolist() == [1, 2, 3]:
    sys.exit("gone: the right values")
print("as reported: wrong values")
