"""pyarrow.Tensor grants buffer requests that it does not meet. Exit status 0: as reported; 1: gone."""

import io
import struct
import sys

import numpy as np
import pyarrow as pa

strided = np.arange(8, dtype="u1")[::2]
out = io.BytesIO()
out.write(pa.Tensor.from_numpy(strided))  # asks for contiguous memory
print(strided, "written as", out.getvalue())

readonly = np.zeros(4, "u1")
readonly.flags.writeable = False
struct.pack_into("B", pa.Tensor.from_numpy(readonly), 0, 7)  # asks for writable memory
print(readonly)
if out.getvalue() == strided.tobytes() and not readonly.any():
    sys.exit("gone: the right elements, and no write")
print("as reported: other elements, and a write to read-only memory")
