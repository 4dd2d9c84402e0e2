"""The probe: what convert() promises, held against the installed consumers."""

from typing import ClassVar

import pytest
from dlbridge import __main__ as command
from dlbridge import _core
from dlbridge.tests import _loader, _probe, frameworks

np = pytest.importorskip("numpy")

INSTALLED = [f.convert for f in frameworks.built_in() if f.convert in _core.consumers() and _loader.installed(f)]


@pytest.mark.parametrize("name", INSTALLED)
def test_every_installed_consumer_keeps_its_promises(name):
    probed = _probe.probe(name)
    if probed.absent:
        pytest.skip(f"{name}: {probed.absent}")
    assert len(probed.outcomes) > 10
    assert [outcome for outcome in probed.outcomes if not outcome.kept] == []


def test_the_command_prints_each_row(capsys):
    assert command.main(["--probe", "--only", "numpy,buffer"]) == 0
    out = capsys.readouterr().out
    assert "numpy " in out and "all as promised" in out
    assert "promised shared    happened shared    bool, int8" in out and "read-only" in out


def test_memory_that_is_not_here_is_skipped_by_name(capsys):
    if _core.cuda_info()["available"]:
        pytest.skip("there is a CUDA device")
    assert _probe.main(["--only", "numpy"]) == 0
    assert (
        "device  promised -         happened skipped   cuda, pinned, managed: no CUDA device" in capsys.readouterr().out
    )


@pytest.mark.parametrize("arguments", [["--only", "no_such"]])
def test_an_unknown_consumer_is_named(arguments, capsys):
    assert command.main(["--probe", *arguments]) == 2
    assert "no consumer is named 'no_such'; known: numpy" in capsys.readouterr().err


def test_where_nothing_can_be_probed_the_status_says_so(capsys, monkeypatch):
    monkeypatch.setattr(_loader, "installed", lambda framework: False)
    assert command.main(["--probe", "--only", "torch"]) == 2
    assert "torch: not installed" in capsys.readouterr().out


def bench(**look):
    return frameworks.Bench(frameworks.Framework("fake", "", convert="numpy", look=frameworks.Look(**look)), load=False)


@pytest.mark.parametrize(
    ("look", "happened"),
    [
        ({"read": "x.tolist()", "pointer": "x.ctypes.data"}, "shared"),
        ({"read": "x.tolist()"}, "taken"),
        (
            {"read": "[v + 1 for v in x.tolist()]", "pointer": "x.ctypes.data"},
            "wrong values: [2.0, 3.0], not [1.0, 2.0]",
        ),
        ({"pointer": "x.ctypes.data + 1"}, "copied"),
        ({"read": "x.nothing()"}, "taken"),
    ],
)
def test_what_happened_is_told_by_values_and_pointers(look, happened):
    array = np.array([1, 2], np.float32)
    outcome = _probe._try(bench(**look), "numpy", _probe.Case("dtype", "float32", array, [1.0, 2.0]))
    assert (outcome.promised, outcome.happened) == ("shared", happened)
    assert outcome.kept == (happened in ("shared", "taken"))


def test_a_mark_that_is_lost_is_no_promise_kept():
    array = np.array([1, 2], np.float32)
    array.flags.writeable = False
    case = _probe.Case("flag", "read-only", array, [1.0, 2.0])
    outcome = _probe._try(bench(pointer="x.ctypes.data", readonly="False"), "numpy", case)
    assert outcome.happened == "shared, and writable" and not outcome.kept


class DyingChild:
    """Stands for processes of which the first crash and the last gets to its end."""

    starts: ClassVar[list] = []

    def __init__(self, module, job):
        self.starts.append(job["skip"])
        done = {"what": "dtype", "name": "int8", "promised": "shared", "happened": "shared", "reason": ""}
        if len(self.starts) == 1:
            self.lines = [{"version": "1"}, {"at": ["dtype", "int8"]}, {"done": done}, {"at": ["dtype", "int16"]}]
        else:
            self.lines = [{"version": "1"}, {"at": ["dtype", "int32"]}, {"done": done}, {"end": True}]

    def answer(self, timeout_s):
        return self.lines.pop(0) if self.lines else None

    def close(self, wait_s):
        return "died of SIGABRT"


def test_a_consumer_that_crashes_is_one_outcome_and_the_probe_goes_on(monkeypatch, capsys):
    DyingChild.starts = []
    monkeypatch.setattr(_probe, "Child", DyingChild)
    assert _probe.main(["--only", "numpy"]) == 1
    assert DyingChild.starts == [0, 2]
    out = capsys.readouterr().out
    assert "numpy 1: 3 arrays, 1 NOT AS PROMISED" in out
    assert "promised an answer happened crashed" in out and "int16: died of SIGABRT" in out
