"""The doctor: what is here, what is known to fail, and what an object offers to whom."""

import json

import pytest
from child_process import run_python
from dlbridge import __main__ as command
from dlbridge.tests import _doctor, _known, _machine


def doctor(*arguments, capsys):
    code = command.main(["doctor", *arguments])
    return code, capsys.readouterr()


def test_text_says_where_everything_is(capsys, monkeypatch):
    monkeypatch.setenv("DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC", "0")
    code, output = doctor(capsys=capsys)
    assert code == 0
    for part in ("dlbridge ", "frameworks", "not installed:", "DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC=0", "known to fail"):
        assert part in output.out


def test_json(capsys):
    code, output = doctor("--json", capsys=capsys)
    found = json.loads(output.out)
    assert code == 0
    assert {
        "dlbridge",
        "cuda",
        "kernels",
        "driver",
        "driver_files",
        "gpus",
        "frameworks",
        "switches",
        "known_bad",
    } <= found.keys()


class Driver:
    """The calls of libcuda that name the GPUs."""

    def cuDeviceGet(self, device, index):
        device._obj.value = index
        return 0

    def cuDeviceGetName(self, name, size, device):
        name.value = b"NVIDIA H200"[:size]
        return 0


def test_gpus_are_those_that_the_driver_shows(monkeypatch):
    info = {"available": True, "reason": "", "device_count": 2, "driver_version": 13000}
    monkeypatch.setattr(_machine._core, "cuda_info", lambda: info)
    monkeypatch.setattr(_machine.ctypes, "CDLL", lambda name: Driver())
    assert _machine.gpus() == ["NVIDIA H200", "NVIDIA H200"]


DRIVERS = {
    "open": ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n", "580.65.06"),
    "closed": ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC\n", "535.183.01"),
    "another file": ("hello\n", ""),
}


@pytest.mark.parametrize(("text", "version"), DRIVERS.values(), ids=DRIVERS)
def test_driver(tmp_path, monkeypatch, text, version):
    (tmp_path / "version").write_text(text)
    monkeypatch.setattr(_machine, "_DRIVER", tmp_path / "version")
    assert _machine.driver() == version
    monkeypatch.setattr(_machine, "_DRIVER", tmp_path / "absent")
    assert _machine.driver() == ""


OBJECTS = {
    "bytes": ("builtins:b'abc'", "torch        copied", "expected writable memory"),
    "big-endian": ("struct:memoryview(pack('>i', 1)).cast('B')", "numpy        shared", ""),
    "no array": ("builtins:object()", "refused by everyone: ProtocolError", ""),
    "plural": ("array:array('d', [1, 2])", "buffer       shared", ""),
}


@pytest.mark.parametrize(("expression", "line", "reason"), OBJECTS.values(), ids=OBJECTS)
def test_object(capsys, expression, line, reason):
    code, output = doctor("--object", expression, capsys=capsys)
    assert code == 0
    assert line in output.out and reason in output.out


BAD_OBJECTS = {
    "no colon": ("numpy", "is not of the form module:expression"),
    "no module": ("no_such_module_anywhere:x", "ModuleNotFoundError"),
    "no name": ("math:no_such_name", "NameError"),
    "bad syntax": ("math:(", "SyntaxError"),
    "exit": ("sys:exit()", "SystemExit"),
}


@pytest.mark.parametrize(("expression", "message"), BAD_OBJECTS.values(), ids=BAD_OBJECTS)
def test_object_that_cannot_be_had(capsys, expression, message):
    code, output = doctor("--object", expression, capsys=capsys)
    assert code == 2
    assert message in output.err


def test_object_as_json(capsys):
    _, output = doctor("--json", "--object", "builtins:b'abc'", capsys=capsys)
    consumers = json.loads(output.out)["object"]["consumers"]
    assert consumers["torch"]["outcome"] == "copied" and consumers["buffer"]["outcome"] == "shared"


VERSIONS = {
    "at fault": ({"torch": "2.13.0+cpu"}, True),
    "older": ({"torch": "2.9.1"}, True),
    "newer": ({"torch": "2.14.0"}, False),
    "unknown": ({"torch": "?"}, False),
    "half of a pair": ({"paddle": "3.3.1"}, False),
    "a pair": ({"paddle": "3.3.1", "tensorflow": "2.21.0"}, True),
}


@pytest.mark.parametrize(("versions", "bad"), VERSIONS.values(), ids=VERSIONS)
def test_known_bad_versions(versions, bad):
    rows = [row for row in _known.known_bad(versions) if set(row.versions) == set(versions)]
    assert bool(rows) is bad


@pytest.mark.parametrize(("version", "leaks"), [("2.2.2", True), ("2.6.0", False)])
def test_old_pytorch_leaks_empty_arrays(version, leaks):
    assert any("NULL" in row.symptom for row in _known.known_bad({"torch": version})) is leaks


def test_doctor_imports_no_framework():
    code = (
        "import sys; from dlbridge.tests import _doctor; _doctor.main([])\n"
        "assert not {'numpy', 'torch', 'jax', 'tensorflow'} & set(sys.modules), 'imported'\n"
    )
    run_python(code)


def test_every_switch_of_ours_is_known():
    assert sum(name.startswith("DLBRIDGE_") for name in _doctor._SWITCHES) == 4
