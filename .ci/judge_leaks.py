"""Reads LeakSanitizer logs and fails on each leak that was allocated below a frame of dlbridge's extension module."""

from __future__ import annotations

import re
import sys
from pathlib import Path

RECORD = re.compile(r"^(?:Direct|Indirect) leak of .*?(?=^(?:Direct|Indirect) leak of |^SUMMARY|\Z)", re.M | re.S)

# A frame with symbols names a source of ours, one without names the module (NumPy has modules in a folder _core).
OURS = re.compile(
    r"/(?:protocols/\w+|python/src|bridge/include/dlbridge)/\w+\.(?:cpp|h):\d+|/dlbridge/_core\.[\w.-]+\.so"
)


def main(paths: list[str]) -> int:
    texts = [Path(path).read_text(errors="replace") for path in paths if Path(path).exists()]
    records = [record for text in texts for record in RECORD.findall(text)]
    ours = [record for record in records if OURS.search(record)]
    for record in ours:
        print(record.rstrip())
    print(f"leaks: {len(records)} records, {len(ours)} of them below a frame of dlbridge._core")
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
