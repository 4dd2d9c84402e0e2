"""warp.from_dlpack() of a read-only array is an error. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np
import warp

warp.init()
x = np.arange(3, dtype=np.float32)
print(warp.from_dlpack(x).numpy())
x.flags.writeable = False
try:
    warp.from_dlpack(x)
except BufferError as error:
    print("BufferError:", error)
else:
    sys.exit("gone: imported")
print("as reported: refused")
