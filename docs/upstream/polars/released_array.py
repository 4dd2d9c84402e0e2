"""polars.Series() reads an Arrow array that was released. Exit status 0: as reported; 1: gone."""

import subprocess
import sys

READ = """\
import polars as pl
import pyarrow as pa


class Used:
    def __init__(self, array):
        self.given = array.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema=None):
        return self.given


x = Used(pa.array([1, 2, 3]))
pa.array(x)  # consumes both structs
print(pl.Series(x).to_list())
"""

child = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=False)
print(child.stdout)
if child.returncode > 0:
    sys.exit(f"gone: exit status {child.returncode}: {child.stderr[-300:]}")
print("as reported:", "freed memory" if child.returncode == 0 else f"ended by signal {-child.returncode}")
