"""A kernel on a tensor of unaligned memory ends the process. Exit status 0: as reported; 1: gone."""

import subprocess
import sys

CRASH = """\
import numpy as np
import tensorflow as tf

block = np.zeros(128, np.float32)
x = block[-block.ctypes.data % 64 // 4 + 1 :][:64]  # aligned to 4 bytes, as float32 is everywhere
print(tf.experimental.dlpack.from_dlpack(x.__dlpack__()) + 1)
"""

child = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=False)
if child.returncode >= 0:
    sys.exit(f"gone: exit status {child.returncode}: {child.stderr[-300:]}")
print([line for line in child.stderr.splitlines() if "Check failed" in line])
print(f"as reported: ended by signal {-child.returncode}")
