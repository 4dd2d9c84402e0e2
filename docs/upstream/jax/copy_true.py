"""jax.dlpack.from_dlpack(copy=True) shares the memory of its source. Exit status 0: as reported; 1: gone."""

import sys

import jax
import numpy as np

block = np.zeros(64, np.float32)
x = block[-block.ctypes.data % 64 // 4 :][:16]  # aligned to 64 bytes
array = jax.dlpack.from_dlpack(x, copy=True)
x[0] = 7
print(float(array[0]))
if float(array[0]) != 7:
    sys.exit("gone: the array is a copy")
print("as reported: the copy changed with its source")
