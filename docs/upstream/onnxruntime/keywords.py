"""OrtValue.__dlpack__() takes none of the keywords of DLPack 1. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np
import onnxruntime

value = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
refused = []
for keyword in ({"max_version": (1, 0)}, {"dl_device": (1, 0)}, {"copy": False}):
    try:
        value.__dlpack__(**keyword)
    except TypeError:
        refused += keyword
print("TypeError:", *refused)
if not refused:
    sys.exit("gone: all three are taken")
print("as reported:", len(refused), "of 3 are refused")
