"""Options of tvm_ffi.Tensor.__dlpack__() that fail or are ignored. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np
import tvm_ffi

tensor = tvm_ffi.from_dlpack(np.zeros(3))
seen = []
try:
    tensor.__dlpack__(max_version=(0, 8))
except AttributeError as error:
    seen.append(f"max_version=(0, 8): AttributeError: {error}")
except BufferError:
    pass
try:
    capsule = tensor.__dlpack__(dl_device=(9999, 0))
    seen.append(f"dl_device=(9999, 0): {capsule}")
except BufferError:
    pass

print(*seen, sep="\n")
if not seen:
    sys.exit("gone: the legacy capsule or BufferError")
print("as reported:", len(seen), "of 2")
