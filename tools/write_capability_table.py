"""Writes the table of capabilities in docs/converters.md from what the converters' test programs print.

    python tools/write_capability_table.py build/dev

The build must have every converter's test: a row whose framework is absent would be lost, so a missing one is an error.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "converters.md"
ORDER = [
    "std",
    "eigen",
    "armadillo",
    "mdspan",
    "std_mdspan",
    "xtensor",
    "opencv",
    "torch",
    "arrow",
    "onnxruntime",
    "kokkos",
    "thrust",
    "rmm",
    "nccl",
    "arrayfire",
    "tensorrt",
]
BEGIN, END = "<!-- capabilities: begin -->\n", "<!-- capabilities: end -->\n"
HEAD = """\
| type | `from()` | `to<>()` | dtypes | devices | rank | strides | alignment | read-only | a refused one |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def rows_of(program: pathlib.Path) -> list[str]:
    environment = dict(os.environ, DLBRIDGE_CAPABILITY_ROWS="1")
    run = subprocess.run(
        [program, "--gtest_filter=*Documented*"], env=environment, capture_output=True, text=True, check=True
    )
    return [line + "\n" for line in run.stdout.splitlines() if line.startswith("| `")]


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) / "tests" / "cpp" / "converters"
    programs = [folder / (name if name == "std_mdspan" else f"converter_{name}") for name in ORDER]
    missing = [str(p) for p in programs if not p.exists()]
    if missing:
        sys.exit("not built: " + " ".join(missing))
    table = HEAD + "".join(row for program in programs for row in rows_of(program))
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + table + END + after)


if __name__ == "__main__":
    main()
