"""Exporting a string tensor ends the process. Exit status 0: as reported; 1: gone."""

import subprocess
import sys

CRASH = """\
import tensorflow as tf

tf.constant(b"text").__dlpack__()
"""

child = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=False)
if child.returncode >= 0:
    sys.exit(f"gone: exit status {child.returncode}: {child.stderr[-300:]}")
print(f"as reported: ended by signal {-child.returncode}")
