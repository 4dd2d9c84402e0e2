#!/usr/bin/env python3
"""Makes the self-test in one file, which needs nothing but Python, out of wheels of dlbridge.

python tools/write_selftest.py dist/dlbridge-*.whl              # one wheel for each Python that it shall run with
python tools/write_selftest.py dist/*.whl -o ticket-1234.pyz
python dlbridge-selftest.pyz --markdown                         # on the machine in question

What wheels have in common is in the file once. The same wheels make the same file. selftest_launcher.py is what runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import zipfile
from pathlib import Path, PurePosixPath

LAUNCHER = Path(__file__).with_name("selftest_launcher.py")
OLDEST = (3, 10)  # requires-python of pyproject.toml
_WHEEL = re.compile(r"dlbridge-([^-]+)(?:-\d[^-]*)?-(cp\d+)-(cp\d+t?)-([^-]+)\.whl")
_LEFT_OUT = ("dlbridge/include/", "dlbridge/cmake/", "dlbridge/pkgconfig/")  # for C++ only
_EPOCH = (1980, 1, 1, 0, 0, 0)
_COULD_NOT_WRITE = 2

# Any Python that can open the file must understand this: no syntax that 2.7 lacks.
_MAIN = """\
import sys

if sys.version_info < {oldest}:
    sys.stderr.write(
        "dlbridge-selftest {version} needs CPython {oldest_text} or newer, and has what it needs for {held}. This is "
        "Python %d.%d: run it with another interpreter\\n" % sys.version_info[:2]
    )
    sys.exit(2)

import selftest_launcher  # noqa: E402

sys.exit(selftest_launcher.main())
"""


class CannotWrite(Exception):
    """Why no file can be made of what is given."""


def _kept(name: str) -> bool:
    """What the runner needs. The metadata too: without it another version that is installed would give its own."""
    if name.endswith(("/", ".pyi")):
        return False
    if ".dist-info/" in name:
        return name.endswith("/METADATA")
    return name.startswith("dlbridge/") and not name.startswith(_LEFT_OUT)


def _safe(name: str) -> bool:
    return not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts and "\\" not in name


def read_wheel(path: Path) -> tuple[str, dict, dict[str, bytes]]:
    """(version, its entry in wheels.json, its files by digest)."""
    match = _WHEEL.fullmatch(path.name)
    if not match:
        raise CannotWrite(f"{path} is not named as a wheel of dlbridge is: dlbridge-VERSION-cp311-cp311-PLATFORM.whl")
    version, python, abi, platform = match.groups()
    try:
        with zipfile.ZipFile(path) as wheel:
            held = {name: wheel.read(name) for name in sorted(wheel.namelist()) if _kept(name)}
    except (OSError, zipfile.BadZipFile) as error:
        raise CannotWrite(f"{path} cannot be read as a wheel: {error}") from error
    if not all(map(_safe, held)):
        raise CannotWrite(f"{path} has files outside its own folder")
    if not any(re.fullmatch(r"dlbridge/_core\..*\.so", name) for name in held) or "dlbridge/__main__.py" not in held:
        raise CannotWrite(f"{path} lacks dlbridge/__main__.py or the native module dlbridge/_core")
    files = {name: hashlib.sha256(data).hexdigest() for name, data in held.items()}
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    entry = {"python": python, "abi": abi, "platform": platform, "digest": digest, "files": files}
    return version, entry, {files[name]: data for name, data in held.items()}


def _held(entries: list[dict]) -> str:
    """What the wheels are for, in words: "cp311, cp312 on manylinux_2_28_x86_64". Of a platform's names the first."""
    by_platform: dict[str, list[str]] = {}
    for entry in entries:
        by_platform.setdefault(entry["platform"].partition(".")[0], []).append(entry["abi"])
    return "; ".join(f"{', '.join(abis)} on {platform}" for platform, abis in by_platform.items())


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def write(wheels: list[Path], out: Path) -> None:
    """One file that runs wherever one of the wheels would; CannotWrite where they do not go together."""
    read = [read_wheel(path) for path in wheels]
    versions = sorted({version for version, _, _ in read})
    if len(versions) > 1:
        raise CannotWrite(f"these are wheels of several versions: {', '.join(versions)}. Give those of one")
    entries = sorted((entry for _, entry, _ in read), key=lambda e: (len(e["abi"]), e["abi"], e["platform"]))
    tags = [f"{entry['abi']} on {entry['platform']}" for entry in entries]
    twice = sorted({tag for tag in tags if tags.count(tag) > 1})
    if twice:
        raise CannotWrite(f"there are several wheels for {', '.join(twice)}. Give one of each")
    oldest = ".".join(map(str, OLDEST))
    main = _MAIN.format(oldest=OLDEST, oldest_text=oldest, version=versions[0], held=_held(entries))
    files = {digest: data for _, _, held in read for digest, data in held.items()}
    document = {"version": versions[0], "held": _held(entries), "wheels": entries}
    beside = out.with_name(out.name + ".part")
    with open(beside, "wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w") as archive:
            _add(archive, "__main__.py", main.encode())
            _add(archive, LAUNCHER.name, LAUNCHER.read_bytes())
            _add(archive, "wheels.json", json.dumps(document, indent=1).encode())
            for digest in sorted(files):
                _add(archive, "files/" + digest, files[digest])
    beside.chmod(0o755)
    os.replace(beside, out)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Makes dlbridge-selftest.pyz out of wheels of dlbridge.")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL", help="one for each Python version")
    parser.add_argument("-o", "--output", type=Path, default=Path("dlbridge-selftest.pyz"), metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        write(options.wheels, options.output)
    except (CannotWrite, OSError) as error:
        print(f"write_selftest.py: {error}", file=sys.stderr)
        return _COULD_NOT_WRITE
    print(f"{options.output}: {options.output.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
