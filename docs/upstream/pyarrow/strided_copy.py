"""__dlpack__(copy=True) of a strided pyarrow.Tensor copies a part of it. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np
import pyarrow as pa

x = np.arange(2400, dtype=np.float32).reshape(2, -1)[:, ::2]
copy = np.from_dlpack(pa.Tensor.from_numpy(x), copy=True)
print(copy.shape, copy.strides, np.count_nonzero(copy != x), "of", x.size, "elements differ")
if (copy == x).all():
    sys.exit("gone: the copy has the values of its source")
print("as reported: wrong values, read beyond the copy")
