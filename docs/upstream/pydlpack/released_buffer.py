"""pydlpack gives the buffer back while the array lives. Exit status 0: as reported; 1: gone."""

import dlpack
import numpy as np

data = bytearray(b"abc")
array = np.from_dlpack(dlpack.asdlpack(data))
data.extend(bytes(4096))  # BufferError while a buffer of it is in use
print(array.ctypes.data, "is not", np.frombuffer(data, "u1").ctypes.data)
print("as reported: the array dangles")
