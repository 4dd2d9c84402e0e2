"""The self-test runner: it finds what is there, and fails on a wrong value, a wrong pointer and a leak."""

import io
import json
import subprocess
import sys

import dlbridge
import dlbridge.tests
import pytest
from dlbridge import __main__ as command
from dlbridge.tests import _consumers, _exchange, _frameworks, _producers, _report
from dlbridge.tests._report import Status


def run(only=("stdlib",), **options):
    out = io.StringIO()
    results = dlbridge.tests.run(list(only), file=out, **options)
    return results, out.getvalue()


def test_standard_library_alone_works():
    results, text = run()
    assert results.exit_code == 0, text
    assert results.count(Status.WORKS) > 0
    assert "bytearray" in text and "convert(x, consumer)" in text


def test_numpy_works():
    pytest.importorskip("numpy", reason="NumPy is run")
    results, text = run(("stdlib", "numpy"), verbose=True)
    assert results.exit_code == 0, text
    assert results.count(Status.REFUSED) == 0, text


def test_all_that_is_installed_works():
    results = dlbridge.tests.run(file=io.StringIO())
    wrong = [cell for cell in results.cells if cell.status is Status.WRONG]
    assert not wrong, wrong
    assert results.run_s < 10


def test_json_is_one_document():
    results, text = run(json=True)
    document = json.loads(text)
    assert document["exit_code"] == 0
    assert document["counts"]["works"] == results.count(Status.WORKS)
    assert document["exchanges"][0]["protocol"] == "buffer"


def test_absent_framework_is_named_with_its_reason(monkeypatch):
    row = _producers.Producer("nothing", "no_such_module_anywhere", lambda module: None, lambda obj: 0)
    monkeypatch.setattr(_exchange, "PRODUCERS", (*_producers.PRODUCERS, row))
    results, text = run(("stdlib", "no_such_module_anywhere"))
    assert results.absent == {"no_such_module_anywhere": "not installed"}
    assert "absent: no_such_module_anywhere (not installed)" in text


def test_framework_that_fails_to_import_is_absent(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("raise OSError('libmissing.so: cannot open')\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = _frameworks.load(["half_installed"])
    assert found.absent == {"half_installed": "OSError: libmissing.so: cannot open"}


def test_nothing_to_run_is_exit_code_2():
    results, _ = run(("no_such_module_anywhere",))
    assert results.exit_code == 2


def exchange_with(producer=None, **changes):
    """One exchange of a bytearray into a memoryview, with parts of the rows replaced by faulty ones."""
    import dataclasses

    base = next(row for row in _producers.PRODUCERS if row.name == "bytearray")
    consumer = next(row for row in _consumers.CONSUMERS if row.name == "buffer")
    producer = dataclasses.replace(base, **(producer or {}))
    return _exchange.exchange(producer, dataclasses.replace(consumer, **changes), "convert", (sys, sys))


def test_sound_exchange_works():
    assert exchange_with().status is Status.WORKS


def test_wrong_value_is_found():
    cell = exchange_with(read=lambda view: [0, *view.tolist()[1:]])
    assert cell.status is Status.WRONG and "wrong values" in cell.reason


def test_wrong_pointer_is_found():
    cell = exchange_with(pointer=lambda view: 4096)
    assert cell.status is Status.WRONG and "wrong pointer" in cell.reason


def test_lost_write_is_found():
    cell = exchange_with(write=lambda view, value: None)
    assert cell.status is Status.WRONG and "not seen" in cell.reason


def test_leak_is_found(monkeypatch):
    kept = []
    monkeypatch.setattr(_exchange, "_RELEASE_WAIT_S", 0.05)
    cell = exchange_with(read=lambda view: kept.append(view) or view.tolist())
    assert cell.status is Status.WRONG and "leak" in cell.reason


def test_wrong_read_is_found():
    import dataclasses

    base = next(row for row in _producers.PRODUCERS if row.name == "bytearray")
    cell = _exchange.read_once(dataclasses.replace(base, pointer=lambda obj: 4096), sys)
    assert cell.status is Status.WRONG


def test_exit_code_follows_the_worst_cell():
    results = _report.Results(cells=[_report.Cell("a", "b", "convert", Status.WRONG, "leak")])
    assert results.exit_code == 1


def test_command_line(capsys):
    assert command.main(["--only", "stdlib", "-v"]) == 0
    assert "bytearray" in capsys.readouterr().out
    assert command.main(["--only", "stdlib", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] == 0


def test_python_m_dlbridge_imports_no_framework_that_was_not_asked_for():
    code = (
        "import sys, dlbridge.__main__ as m\n"
        "assert m.main(['--only', 'stdlib']) == 0\n"
        "assert not {'numpy', 'torch', 'jax', 'tensorflow'} & set(sys.modules), 'imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
