"""nanoarrow.Array() of string views with a data buffer ends the process. Exit status 0: as reported; 1: gone."""

import subprocess
import sys

CRASH = """\
import nanoarrow

nanoarrow.Array(["longer than twelve bytes"], nanoarrow.string_view())
"""

child = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=False)
if child.returncode >= 0:
    sys.exit(f"gone: exit status {child.returncode}: {child.stderr[-300:]}")
print(f"as reported: ended by signal {-child.returncode}")
