"""The self-test in one file: made of wheels, it runs with nothing but Python, and says so where it cannot."""

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import dlbridge
import pytest
from child_process import HANG_S

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PLATFORM = sysconfig.get_platform().replace("-", "_").replace(".", "_")


def load(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


writer, launcher = load("write_selftest"), load("selftest_launcher")
PYTHON, ABI = launcher.interpreter_tags()
OTHER = "cp310" if PYTHON != "cp310" else "cp311"
SAYS_WHERE = """
import sys, dlbridge
def main():
    print(dlbridge.__file__, *sys.argv[1:])
    return 7
"""
FILES = {
    "dlbridge/__init__.py": "",
    "dlbridge/__main__.py": SAYS_WHERE,
    "dlbridge/_core.so.so": "",
    "dlbridge/include/dlbridge/tensor.h": "",
    "dlbridge-1.0.dist-info/METADATA": "Name: dlbridge\nVersion: 1.0\n",
    "dlbridge-1.0.dist-info/RECORD": "",
}


def wheel(folder, *, version="1.0", python=PYTHON, abi=ABI, platform=PLATFORM, **files):
    """A wheel in form, whose package says where it was imported from."""
    path = folder / f"dlbridge-{version}-{python}-{abi}-{platform}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**FILES, **files}.items():
            if text is not None:
                archive.writestr(name, text)
    return path


@pytest.fixture
def small(tmp_path):
    """A file of one wheel."""
    path = tmp_path / "small.pyz"
    writer.write([wheel(tmp_path)], path)
    return path


def start(path, home, *arguments, python=sys.executable, **environment):
    """In a process with no environment, no site-packages and no folder of the user's but `home`."""
    home.mkdir(exist_ok=True)
    command = [python, "-I", "-S", str(path), *arguments]
    environment = {"HOME": str(home), "PATH": "", **environment}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, cwd=home, stdout=pipe, stderr=pipe, text=True)


def run(path, home, *arguments, status=7, **options):
    process = start(path, home, *arguments, **options)
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == status, out + err
    return out, err


def unpacked(home):
    """The packages in the cache below `home`."""
    cache = home / ".cache" / "dlbridge-selftest"
    return [path for path in cache.iterdir() if path.is_dir()] if cache.exists() else []


# --- the whole -------------------------------------------------------------------------------------------------------


def repacked(folder):
    """The package that is imported here as a wheel, its native modules without their symbols."""
    package = Path(dlbridge.__file__).parent
    path = folder / f"dlbridge-{dlbridge.__version__}-{PYTHON}-{ABI}-{PLATFORM}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(package.rglob("*")):
            name = f"dlbridge/{file.relative_to(package).as_posix()}"
            if not file.is_file() or "__pycache__" in name:
                continue
            if file.suffix == ".so" and shutil.which("strip"):
                stripped = folder / file.name
                subprocess.run(["strip", "-g", "-o", str(stripped), str(file.resolve())], check=True)
                file = stripped
            archive.write(file, name)
    return path


@pytest.mark.no_sanitizer
def test_self_test_runs_where_there_is_nothing_but_python(tmp_path):
    path, home = tmp_path / "dlbridge-selftest.pyz", tmp_path / "home"
    assert writer.main([str(repacked(tmp_path)), "-o", str(path)]) == 0
    _, err = run(path, home, "--plain", "--markdown", "report.md", "--json", "report.json", status=0)
    assert err == ""
    document = json.loads((home / "report.json").read_text())
    assert document["counts"]["works"] > 100 and document["counts"]["WRONG"] == 0
    assert document["absent"]["numpy"] == "not installed"
    assert "| bytearray |" in (home / "report.md").read_text()
    (folder,) = unpacked(home)
    inode = (folder / "dlbridge" / "__init__.py").stat().st_ino
    out, _ = run(path, home, "doctor", "--json", status=0)
    assert json.loads(out)["extension"].startswith(str(folder)), "the second run uses what the first has unpacked"
    assert (folder / "dlbridge" / "__init__.py").stat().st_ino == inode


def test_arguments_and_exit_status_are_those_of_the_command(tmp_path, small):
    out, err = run(small, tmp_path / "home", "--only", "numpy")
    (folder,) = unpacked(tmp_path / "home")
    assert (out, err) == (f"{folder}/dlbridge/__init__.py --only numpy\n", "")


def test_package_that_is_installed_does_not_get_in_the_way(tmp_path, small):
    command = [sys.executable, str(small)]  # with site-packages, and with this package on PYTHONPATH
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(Path(dlbridge.__file__).parent.parent)}
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(str(unpacked(tmp_path)[0])), done.stderr


# --- what does not fit -----------------------------------------------------------------------------------------------

UNFIT = {
    "another Python": ({"python": OTHER, "abi": OTHER}, f"It holds {OTHER} on {PLATFORM}"),
    "another ABI": ({"abi": ABI.removesuffix("t") + "t" * (not ABI.endswith("t"))}, "It holds"),
    "another machine": ({"platform": "linux_s390x"}, f"It holds {ABI} on linux_s390x"),
    "a newer C library": ({"platform": "manylinux_9_99_" + PLATFORM.partition("_")[2]}, "on manylinux_9_99"),
}


@pytest.mark.parametrize(("tags", "held"), UNFIT.values(), ids=UNFIT)
def test_what_does_not_fit_is_said_and_unpacks_nothing(tmp_path, tags, held):
    writer.write([wheel(tmp_path, **tags)], tmp_path / "other.pyz")
    out, err = run(tmp_path / "other.pyz", tmp_path / "home", status=2)
    assert out == "" and not unpacked(tmp_path / "home")
    assert err.startswith(f"other.pyz: nothing in this file fits {sys.implementation.name} ")
    assert f"({ABI}) on {PLATFORM}" in err and held in err and "tools/write_selftest.py" in err


def test_what_it_holds_is_said_briefly(tmp_path):
    tags = [("cp398", "manylinux_2_17_x86_64.manylinux2014_x86_64"), ("cp399", "manylinux_2_17_x86_64")]
    tags.append(("cp399", "linux_s390x"))
    wheels = [wheel(tmp_path, python=python, abi=python, platform=platform) for python, platform in tags]
    writer.write(wheels, tmp_path / "other.pyz")
    _, err = run(tmp_path / "other.pyz", tmp_path / "home", status=2)
    assert "It holds cp398, cp399 on manylinux_2_17_x86_64; cp399 on linux_s390x. Make a file" in err


def test_interpreter_that_would_fit_is_named(tmp_path):
    name = f"python{OTHER[2]}.{OTHER[3:]}"
    (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / name).chmod(0o755)
    writer.write([wheel(tmp_path, python=OTHER, abi=OTHER)], tmp_path / "other.pyz")
    _, err = run(tmp_path / "other.pyz", tmp_path / "home", status=2, PATH=str(tmp_path))
    assert f"Run it with {tmp_path / name}, or make a file" in err


def test_python_that_is_too_old_is_told_so_before_anything_else(small, monkeypatch, capsys):
    source = zipfile.ZipFile(small).read("__main__.py").decode()
    monkeypatch.setattr(sys, "version_info", (2, 7, 18, "final", 0))
    with pytest.raises(SystemExit) as caught:
        exec(compile(source, "__main__.py", "exec"), {})
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert "needs CPython 3.10 or newer" in said and f"{ABI} on {PLATFORM}" in said and "This is Python 2.7" in said


@pytest.mark.parametrize("name", ["python2.7", "python3.6", "python3.9"])
def test_old_interpreters_can_read_the_message(tmp_path, small, name):
    python = shutil.which(name)
    if not python or subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"{name} is not here")
    done = subprocess.run([python, str(small)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "needs CPython 3.10 or newer" in done.stderr


def test_native_module_that_cannot_be_loaded_is_said(tmp_path):
    files = {"dlbridge/__init__.py": "import dlbridge._core", "dlbridge/_core.so.so": None}
    path = wheel(tmp_path, **files, **{f"dlbridge/_core{sysconfig.get_config_var('EXT_SUFFIX')}": "not ELF"})
    writer.write([path], tmp_path / "bad.pyz")
    _, err = run(tmp_path / "bad.pyz", tmp_path / "home", status=2)
    assert err.startswith(f"bad.pyz: the native module for {ABI} cannot be loaded here: ")


GLIBC_2_31 = (2, 31)
FITS = {
    "the same": ("linux_x86_64", GLIBC_2_31, True),
    "older glibc": ("manylinux_2_28_x86_64", GLIBC_2_31, True),
    "newer glibc": ("manylinux_2_34_x86_64", GLIBC_2_31, False),
    "2014": ("manylinux2014_x86_64", GLIBC_2_31, True),
    "musl for glibc": ("musllinux_1_2_x86_64", GLIBC_2_31, False),
    "musl for musl": ("musllinux_1_2_x86_64", (0,), True),
    "glibc for musl": ("manylinux_2_17_x86_64", (0,), False),
    "another machine": ("manylinux_2_17_aarch64", GLIBC_2_31, False),
    "another system": ("macosx_11_0_x86_64", GLIBC_2_31, False),
}


@pytest.mark.parametrize(("tag", "glibc", "fits"), FITS.values(), ids=FITS)
def test_platform_tags(tag, glibc, fits):
    assert launcher.fits_platform(tag, "linux_x86_64", glibc) is fits


# --- where it is unpacked --------------------------------------------------------------------------------------------


def test_folder_is_private(tmp_path, small):
    run(small, tmp_path / "home")
    (folder,) = unpacked(tmp_path / "home")
    for path in (folder.parent, folder, folder / "dlbridge"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert not (folder / "dlbridge" / "include").exists(), "what only C++ needs is left out"


def test_many_at_once_share_one_folder(tmp_path, small):
    processes = [start(small, tmp_path / "home") for _ in range(8)]
    outs = {process.communicate(timeout=HANG_S) for process in processes}
    assert outs == {(f"{unpacked(tmp_path / 'home')[0]}/dlbridge/__init__.py \n".replace(" \n", "\n"), "")}
    assert len(unpacked(tmp_path / "home")) == 1


DAMAGES = {
    "a file is gone": lambda folder: (folder / "dlbridge" / "__main__.py").unlink(),
    "a file is cut": lambda folder: (folder / "dlbridge" / "__main__.py").write_text("import"),
    "a folder is gone": lambda folder: shutil.rmtree(folder / "dlbridge"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_folder_is_written_anew(tmp_path, small, damage):
    first = run(small, tmp_path / "home")
    damage(unpacked(tmp_path / "home")[0])
    assert run(small, tmp_path / "home") == first


def open_to_all(cache):
    cache.mkdir(parents=True)
    cache.chmod(0o777)


def a_link(cache):
    cache.parent.mkdir(parents=True)
    (cache.parent / "target").mkdir(0o700)
    cache.symlink_to("target")


def a_file(cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("")


DOUBTFUL = {"open to all": open_to_all, "a link": a_link, "a file": a_file}


@pytest.mark.parametrize("make", DOUBTFUL.values(), ids=DOUBTFUL)
def test_doubtful_cache_is_not_used_and_the_temporary_folder_is_removed(tmp_path, small, make):
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    temporary.mkdir()
    make(home / ".cache" / "dlbridge-selftest")
    out, _ = run(small, home, TMPDIR=str(temporary))
    assert out.startswith(str(temporary / "dlbridge-selftest-")) and not list(temporary.iterdir())


def test_folder_that_no_library_can_be_loaded_from_is_not_used(tmp_path, small, monkeypatch):
    class Noexec:
        f_flag = os.ST_NOEXEC

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "statvfs", lambda path: Noexec)
    with pytest.raises(launcher.CannotRun, match="mounted noexec. Set XDG_CACHE_HOME or TMPDIR to one"):
        launcher.unpack(str(small))


def test_what_nobody_has_used_for_long_is_removed(tmp_path, small):
    run(small, tmp_path / "home")
    (folder,) = unpacked(tmp_path / "home")
    recent, old = folder.parent / "recent", folder.parent / "old"
    for path in (recent, old):
        path.mkdir()
    long_ago = time.time() - launcher.KEPT_S - 60
    for path in (old, folder):
        os.utime(path, (long_ago, long_ago))
    run(small, tmp_path / "home")
    assert sorted(unpacked(tmp_path / "home")) == sorted([folder, recent])


# --- the making of it ------------------------------------------------------------------------------------------------


def test_one_file_serves_several_interpreters_and_holds_what_is_common_once(tmp_path):
    wheels = [wheel(tmp_path, **{"dlbridge/big": "x" * 1000}), wheel(tmp_path, python=OTHER, abi=OTHER)]
    wheels.append(wheel(tmp_path, platform="linux_s390x", **{"dlbridge/big": "x" * 1000}))
    writer.write(wheels, tmp_path / "all.pyz")
    names = zipfile.ZipFile(tmp_path / "all.pyz").namelist()
    assert len([name for name in names if name.startswith("files/")]) == 4  # "", the command, METADATA, big
    run(tmp_path / "all.pyz", tmp_path / "home")


def test_same_wheels_make_the_same_file(tmp_path):
    wheels = [wheel(tmp_path), wheel(tmp_path, python=OTHER, abi=OTHER)]
    writer.write(wheels, tmp_path / "a.pyz")
    writer.write(wheels[::-1], tmp_path / "b.pyz")
    assert (tmp_path / "a.pyz").read_bytes() == (tmp_path / "b.pyz").read_bytes()
    assert os.access(tmp_path / "a.pyz", os.X_OK)


def not_named_as_a_wheel(folder):
    return [wheel(folder).rename(folder / "package.whl")]


def not_an_archive(folder):
    path = folder / f"dlbridge-1.0-{PYTHON}-{ABI}-{PLATFORM}.whl"
    path.write_text("hello")
    return [path]


BAD = {
    "not named as a wheel": (not_named_as_a_wheel, "is not named as a wheel of dlbridge is"),
    "not an archive": (not_an_archive, "cannot be read as a wheel"),
    "not there": (lambda folder: [folder / f"dlbridge-1.0-{PYTHON}-{ABI}-x.whl"], "cannot be read as a wheel"),
    "no native module": (
        lambda folder: [wheel(folder, **{"dlbridge/_core.so.so": None})],
        "the native module",
    ),
    "files elsewhere": (lambda folder: [wheel(folder, **{"dlbridge/../../x": ""})], "has files outside its own folder"),
    "two versions": (
        lambda folder: [wheel(folder), wheel(folder, version="2.0", python=OTHER, abi=OTHER)],
        "wheels of several versions: 1.0, 2.0",
    ),
    "one twice": (lambda folder: [wheel(folder), wheel(folder)], "there are several wheels for"),
}


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_wheels_that_cannot_be_used_are_refused_by_name(tmp_path, capsys, make, message):
    out = tmp_path / "out.pyz"
    assert writer.main([*map(str, make(tmp_path)), "-o", str(out)]) == 2
    assert message in capsys.readouterr().err and not out.exists()
