"""Runs the self-test out of one file: what `python dlbridge-selftest.pyz` starts (write_selftest.py makes it).

A native module cannot be imported from an archive. The package that fits this interpreter is written into a folder of
the user's cache that is named by its digest, and that the next run finds; where there is no such folder to be had,
into a temporary one, which is removed at the end.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib
import json
import os
import shutil
import stat
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator

NAME = "dlbridge-selftest"
COULD_NOT_RUN = 2
KEPT_S = 30 * 24 * 3600  # what no run has used for so long is removed by the next one
_LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}  # PEP 600


class CannotRun(Exception):
    """Why nothing can be run, and what to do."""


def interpreter_tags() -> tuple[str, str]:
    """(Python, ABI) as the names of wheels have them: cp313, cp313t."""
    short = {"cpython": "cp", "pypy": "pp"}.get(sys.implementation.name, sys.implementation.name)
    python = f"{short}{sys.version_info.major}{sys.version_info.minor}"
    return python, python + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")


def _glibc() -> tuple[int, ...]:
    """Its version; (0,) where the C library is another."""
    try:
        return tuple(int(part) for part in (os.confstr("CS_GNU_LIBC_VERSION") or "x 0").split()[1].split(".")[:2])
    except (AttributeError, OSError, ValueError, IndexError):
        return (0,)


def fits_platform(tag: str, here: str, glibc: tuple[int, ...]) -> bool:
    """Whether a wheel of this platform tag may run `here`, which is linux_x86_64 or the like."""
    system, _, machine = here.partition("_")
    if tag == here:
        return True
    head = tag.removesuffix("_" + machine)
    if head == tag or system != "linux":
        return False
    if head.startswith("manylinux_"):
        return glibc >= tuple(int(part) for part in head.split("_")[1:])
    if head.startswith("musllinux_"):
        return glibc == (0,)
    return glibc >= _LEGACY.get(head, (sys.maxsize,))


def choose(wheels: Iterable[dict], python: str, abi: str, here: str, glibc: tuple[int, ...]) -> dict | None:
    """The first wheel that fits."""
    for wheel in wheels:
        platforms = wheel["platform"].split(".")
        if (wheel["python"], wheel["abi"]) == (python, abi) and any(fits_platform(t, here, glibc) for t in platforms):
            return wheel
    return None


def _interpreters(wheels: Iterable[dict]) -> list[str]:
    """Those on this machine's PATH that the wheels may be for."""
    names = dict.fromkeys(f"python{w['python'][2]}.{w['python'][3:]}{'t' * w['abi'].endswith('t')}" for w in wheels)
    return [path for path in map(shutil.which, names) if path]


def _no_wheel(document: dict, python: str, abi: str, here: str) -> CannotRun:
    wheels = document["wheels"]
    found = _interpreters(wheels)
    remedy = f"Run it with {' or '.join(found)}, or make" if found else "Make"
    return CannotRun(
        f"nothing in this file fits {sys.implementation.name} {sys.version.split()[0]} ({abi}) on {here}. It holds "
        f"{document['held']}. {remedy} a file with a wheel for this interpreter: tools/write_selftest.py"
    )


# --- where it is unpacked ----------------------------------------------------------------------------------------


def _private(folder: str) -> bool:
    """Whether the folder is nobody else's to write to, and libraries may be loaded from it."""
    found = os.lstat(folder)
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return mine and not os.statvfs(folder).f_flag & os.ST_NOEXEC


def _cache() -> str | None:
    """The folder that is kept between runs; None where none is to be had."""
    above = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(above, NAME)
    if not os.path.isabs(above):
        return None
    try:
        os.makedirs(above, 0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        return folder if _private(folder) else None
    except OSError:
        return None


def _sound(folder: str, files: dict[str, str]) -> bool:
    """Whether all is there, unchanged: tidiers of temporary folders and full disks leave halves behind."""
    for name, digest in files.items():
        try:
            with open(os.path.join(folder, name), "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() != digest:
                    return False
        except OSError:
            return False
    return True


def _write(archive: zipfile.ZipFile, files: dict[str, str], folder: str) -> None:
    for name, digest in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(path, "xb") as file:
            file.write(archive.read("files/" + digest))


def _forget_old(cache: str, kept: str) -> None:
    """Removes other versions that nobody has used for long."""
    for entry in os.scandir(cache):
        with contextlib.suppress(OSError):
            if entry.name != kept and entry.is_dir() and entry.stat().st_mtime < time.time() - KEPT_S:
                shutil.rmtree(entry.path, ignore_errors=True)


def _in_cache(archive: zipfile.ZipFile, wheel: dict, cache: str) -> str:
    """The unpacked package in the cache. One run at a time looks and writes: none sees a half."""
    import fcntl  # not on Windows, which has no wheel and should be told so

    name = f"{wheel['abi']}-{wheel['digest'][:32]}"
    folder = os.path.join(cache, name)
    with open(os.path.join(cache, "lock"), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # gives way with the file, also where this process is killed
        if not _sound(folder, wheel["files"]):
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder, 0o700)
            _write(archive, wheel["files"], folder)
        os.utime(folder)
        _forget_old(cache, name)
    return folder


def _places(archive: zipfile.ZipFile, wheel: dict) -> Iterator[str]:
    """The unpacked package, where it can be had, best place first."""
    cache = _cache()
    if cache:
        with contextlib.suppress(OSError):
            yield _in_cache(archive, wheel, cache)
    with contextlib.suppress(OSError):
        folder = tempfile.mkdtemp(prefix=NAME + "-")  # 0700
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        if _private(folder):
            _write(archive, wheel["files"], folder)
            yield folder


def unpack(path: str) -> str:
    """Unpacks what fits this interpreter; the folder to import it from."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("wheels.json"))
        python, abi = interpreter_tags()
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        wheel = choose(document["wheels"], python, abi, here, _glibc())
        if wheel is None:
            raise _no_wheel(document, python, abi, here)
        folder = next(_places(archive, wheel), None)
    if folder is None:
        raise CannotRun(
            f"it cannot be unpacked: neither {NAME} in the cache of this user nor {tempfile.gettempdir()} is a folder "
            "of this user alone that has room and is not mounted noexec. Set XDG_CACHE_HOME or TMPDIR to one"
        )
    return folder


def main() -> int:
    """Unpacks and runs; the exit status is that of `python -m dlbridge`, 2 where nothing could be run."""
    path = os.path.dirname(__file__)  # the archive
    try:
        folder = unpack(path)
        if sys.path and sys.path[0] == path:
            sys.path[0] = folder
        else:
            sys.path.insert(0, folder)
        try:
            command = importlib.import_module("dlbridge.__main__")
        except ImportError as error:
            raise CannotRun(f"the native module for {interpreter_tags()[1]} cannot be loaded here: {error}") from error
    except (CannotRun, OSError, zipfile.BadZipFile) as error:
        print(f"{os.path.basename(path)}: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    return command.main()
