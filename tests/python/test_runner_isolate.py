"""The runner with --isolate: what crashes or hangs is a cell, and the rest goes on."""

import dataclasses
import json
import os

import pytest
from dlbridge import __main__ as command
from dlbridge.tests import _isolate, _runner
from dlbridge.tests._results import Status
from runner_plugins import plant, sound_but

pytestmark = pytest.mark.no_sanitizer  # workers are interpreters of their own

TAKE = "return memoryview(source)"
READ = "@property"
IMPORT = "import ctypes"
CLASS = "class Array:"


def run(names, monkeypatch, folder, timeout_s=20.0):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    chosen, broken = _runner.choose(["stdlib", *names])
    return _isolate.run_isolated(chosen, broken, full=False, progress=_runner.NoProgress(), timeout_s=timeout_s)


def found(results, status):
    return {(c.producer, c.consumer, c.route) for c in results.cells if c.status is status}


def rest_works(results):
    return ("bytearray", "buffer", "convert") in found(results, Status.WORKS)


def test_sound_framework(tmp_path, monkeypatch):
    plant(tmp_path, "sound")
    results = run(["sound"], monkeypatch, tmp_path)
    assert results.exit_code == 0
    assert {c.consumer for c in results.cells if c.producer == "sound"} == {"asdlpack", "buffer", "sound"}
    here, broken = _runner.choose(["stdlib", "sound"])
    alone = _runner.run_here(here, broken, full=False, progress=_runner.NoProgress())
    assert [(c.producer, c.consumer, c.status) for c in results.cells] == [
        (c.producer, c.consumer, c.status) for c in alone.cells
    ]


IMPORTS = {
    "aborts": ("import os; os.abort()", Status.CRASHED, "died of SIGABRT"),
    "dies": ("import os; os.kill(os.getpid(), 11)", Status.CRASHED, "died of SIGSEGV"),
    "leaves": ("import os; os._exit(7)", Status.CRASHED, "ended with exit status 7"),
    "hangs": ("import time; time.sleep(60)", Status.HUNG, "no answer in 3 s"),
}


@pytest.mark.parametrize(("code", "status", "reason"), IMPORTS.values(), ids=IMPORTS)
def test_import_that_ends_the_process_is_a_cell(tmp_path, monkeypatch, code, status, reason):
    plant(tmp_path, "bad", code)
    results = run(["bad"], monkeypatch, tmp_path, timeout_s=3)
    assert found(results, status) == {("bad", "bad", "import")}
    assert reason in next(c.reason for c in results.cells if c.status is status)
    assert rest_works(results) and results.exit_code == 1


@pytest.mark.parametrize(("code", "status", "reason"), IMPORTS.values(), ids=IMPORTS)
def test_import_that_ends_the_process_without_isolation(tmp_path, monkeypatch, capsys, code, status, reason):
    """The command line runs in a process that is not its own: it is there to say what happened."""
    plant(tmp_path, "bad", code)
    monkeypatch.syspath_prepend(tmp_path)
    assert command.main(["--only", "stdlib,bad", "--timeout", "3", "--plain"]) == 1
    said = capsys.readouterr()
    assert f"{status.value} at the import of bad" in said.out and reason in said.out
    assert "--isolate goes on without it" in said.out
    assert ("bad_lib.py" in said.err) is ("exit" not in reason)  # the Python stack


def test_exchange_that_ends_the_process_without_isolation(tmp_path, monkeypatch, capsys):
    plant(tmp_path, "bad", sound_but((TAKE, "import os; os.abort()")))
    monkeypatch.syspath_prepend(tmp_path)
    assert command.main(["--only", "stdlib,bad", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (crash,) = [cell for cell in document["exchanges"] if cell["status"] == "CRASHED"]
    assert (crash["producer"], crash["consumer"], crash["route"]) == ("bytes", "bad", "buffer")
    assert "exchange 4 of" in document["stopped"] and "--isolate goes on behind it" in document["stopped"]
    assert document["counts"]["works"] == 3  # what was done before is not lost


LIMITS = {"together": [], "isolated": ["--isolate"]}


@pytest.mark.parametrize("options", LIMITS.values(), ids=LIMITS)
def test_limit_of_the_whole_run(tmp_path, monkeypatch, capsys, options):
    plant(tmp_path, "slow", "import time; time.sleep(600)")
    monkeypatch.syspath_prepend(tmp_path)
    assert command.main(["--only", "slow", "--limit", "2", "--plain", *options]) == 1
    assert "not finished: the limit of 2 s was reached" in capsys.readouterr().out


def test_framework_that_ended_the_process_is_missing_where_it_is_required(tmp_path, monkeypatch):
    plant(tmp_path, "bad", "import os; os.abort()")
    results = dataclasses.replace(run(["bad"], monkeypatch, tmp_path), required=("bad", "stdlib"))
    assert results.died.keys() == results.missing.keys() == {"bad"}
    assert "SIGABRT" in results.missing["bad"]


def test_import_that_fails_is_absence(tmp_path, monkeypatch):
    plant(tmp_path, "bad", "raise OSError('libmissing.so')")
    results = run(["bad"], monkeypatch, tmp_path)
    assert results.absent["bad"] == "OSError: libmissing.so"
    assert results.exit_code == 0


EXCHANGES = {
    "aborts": (
        sound_but((TAKE, "import os; os.write(2, b'Check failed: aligned\\n'); os.abort()")),
        Status.CRASHED,
        "died of SIGABRT: Check failed: aligned",
    ),
    "hangs": (sound_but((TAKE, "import time; time.sleep(60)")), Status.HUNG, "no answer in 3 s"),
}


@pytest.mark.parametrize(("code", "status", "reason"), EXCHANGES.values(), ids=EXCHANGES)
def test_exchange_that_ends_the_process_is_a_cell(tmp_path, monkeypatch, code, status, reason):
    # One producer's worth of deaths is enough: every exchange with this consumer is one.
    plant(tmp_path, "bad", code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    chosen, _ = _runner.choose(["bad"])
    results = _isolate.run_isolated(chosen, {}, full=False, progress=_runner.NoProgress(), timeout_s=3)
    assert found(results, status) == {("bad", "bad", "buffer")}
    assert reason in next(c.reason for c in results.cells if c.status is status)
    assert ("bad", "asdlpack", "read") in found(results, Status.WORKS)


def test_what_is_printed_cannot_get_into_the_messages(tmp_path, monkeypatch):
    noise = "import ctypes, os, sys\n    os.write(1, b'noise\\n'); print('more'); sys.stdout.flush()"
    plant(tmp_path, "noisy", sound_but((IMPORT, noise), (TAKE, "print('{}'); return memoryview(source)")))
    results = run(["noisy"], monkeypatch, tmp_path)
    assert results.exit_code == 0
    assert set(results.imports["noisy"].printed.splitlines()) == {"noise", "more"}


def test_crash_at_exit_is_a_cell(tmp_path, monkeypatch):
    plant(tmp_path, "bad", sound_but((IMPORT, "import atexit, ctypes, os; atexit.register(os.abort)")))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    chosen, _ = _runner.choose(["bad"])
    results = _isolate.run_isolated(chosen, {}, full=False, progress=_runner.NoProgress())
    assert results.exit_code == 1
    assert any("SIGABRT" in c.reason for c in results.cells if c.status is Status.CRASHED)


# When nothing more is to be heard of it, as where a GPU's driver takes a process down.
HANGS_AT_EXIT = "import atexit, os, time; atexit.register(lambda: (os.closerange(3, 1 << 16), time.sleep(600)))"


def test_hang_at_exit_is_a_cell_after_the_silence_that_was_asked_for(tmp_path, monkeypatch):
    plant(tmp_path, "bad", sound_but((IMPORT, HANGS_AT_EXIT)))
    results = run(["bad"], monkeypatch, tmp_path, timeout_s=15)
    (cell,) = (c for c in results.cells if c.status is Status.HUNG)
    assert "no end in 15 s" in cell.reason and results.exit_code == 1


def test_hang_at_exit_ends_with_the_limit_of_the_whole_run(tmp_path, monkeypatch):
    plant(tmp_path, "bad", sound_but((IMPORT, HANGS_AT_EXIT)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    chosen, _ = _runner.choose(["bad"])
    results = _isolate.run_isolated(chosen, {}, full=False, progress=_runner.NoProgress(), limit_s=3)
    assert "the limit of 3 s was reached" in results.stopped


def test_two_that_do_not_bear_each_other_are_tried_apart(tmp_path, monkeypatch):
    plant(tmp_path, "one")
    clash = "import ctypes, os, sys\n    if 'one_lib' in sys.modules: os.abort()"
    plant(tmp_path, "two", sound_but((IMPORT, clash)))
    results = run(["one", "two"], monkeypatch, tmp_path)
    assert found(results, Status.CRASHED) == {("one", "two", "import")}
    assert ("bytearray", "two", "buffer") in found(results, Status.WORKS)
    assert ("bytearray", "one", "buffer") in found(results, Status.WORKS)
