#!/usr/bin/env python3
"""Writes the stubs of dlbridge.nd from the package itself: nd/__init__.pyi, and the list of ufuncs in nd/_native.pyi.

python tools/write_stubs.py          # after a change of ndarray/kernels/op_table.h or of nd/__init__.py, and a build
python tools/write_stubs.py --check  # exits 1 where a stub is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

from dlbridge import nd
from dlbridge.nd import _native

FOLDER = Path(__file__).resolve().parent.parent / "python" / "dlbridge" / "nd"
BEGIN, END = "# --- the table of operations: written by tools/write_stubs.py\n", "# --- end of the table\n"


def ufuncs_of(module: object) -> str:
    return "".join(f"{name}: ufunc\n" for name, value in sorted(vars(module).items()) if type(value) is nd.ufunc)


def package_stub() -> str:
    homes = {f"dlbridge.nd.{module}": names.split() for module, names in nd._FUNCTIONS.items()}
    homes["dlbridge.nd"] = sorted(nd._MODULES)
    homes["dlbridge.nd._native"] = ["CudaArray", "HostArray", "empty", "ndarray", "ufunc"]
    lines = [
        f"from {module} import {name} as {name}\n"
        for module, names in sorted(homes.items())
        for name in sorted(names, key=lambda n: (not n[0].isupper(), n.lower(), n))
    ]
    lines += ["\n", ufuncs_of(nd), "\n"]
    lines += [f"{name}: dtype\n" for name in sorted(name for names in nd._DTYPES.values() for name in names)]
    lines.append("\n")
    constants = {name: type(getattr(nd, name)) for name in nd.__all__}
    lines += [f"{name}: float\n" for name, kind in constants.items() if kind is float]
    return f'"""Types of the names of dlbridge.nd: written by tools/write_stubs.py."""\n\n{"".join(lines)}' + (
        "newaxis: None\n__array_api_version__: str\n"
    )


def native_stub(text: str) -> str:
    before, rest = text.split(BEGIN)
    return before + BEGIN + ufuncs_of(_native) + END + rest.split(END)[1]


def main(arguments: list[str]) -> int:
    package, native = FOLDER / "__init__.pyi", FOLDER / "_native.pyi"
    wanted = {package: package_stub(), native: native_stub(native.read_text(encoding="utf-8"))}
    stale = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if "--check" in arguments:
            print(f"{path} is not what tools/write_stubs.py writes. Run it, and commit what it wrote")
        else:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
