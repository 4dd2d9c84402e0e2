"""The self-test runner: it finds what is there, and fails on a wrong value, a wrong pointer, a lost mark, a leak."""

import dataclasses
import gc
import io
import json
import subprocess
import sys

import dlbridge
import dlbridge.tests
import pytest
from child_process import HANG_S, run_python
from dlbridge import __main__ as command
from dlbridge.tests import _cases, _loader, _patience, _plan, _results, _runner, frameworks
from dlbridge.tests._results import Status
from runner_plugins import ADAPTER, plant, sound_but


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


@pytest.mark.no_sanitizer
def test_full_matrix_of_everything_installed(tmp_path):
    # In a process of its own: a framework that ends it at import (MPI without its daemon) must not end the tests.
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "dlbridge", "--full", "--json", str(report)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert report.exists(), f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    exchanges = json.loads(report.read_text())["exchanges"]
    wrong = [cell for cell in exchanges if cell["status"] == "WRONG"]
    assert not wrong, "\n".join(str(list(cell.values())) for cell in wrong)
    assert done.returncode == 0, done.stdout[-3000:]
    exchanged = [cell for cell in exchanges if cell["status"] in ("works", "copies") and cell["route"] != "read"]
    assert exchanged and all(cell["protocol"] for cell in exchanged)
    assert all(cell["cost_ns"] > 0 for cell in exchanged if cell["layout"] != "delayed")


def test_every_layout_and_dtype_of_numpy_is_in_the_full_matrix():
    pytest.importorskip("numpy", reason="NumPy is run")
    results, _ = run(("numpy",), full=True)
    layouts = {cell.layout for cell in results.cells}
    assert layouts == {"contiguous", "strided", "negative", "0-d", "zero-size", "offset", "read-only"}
    assert {cell.dtype for cell in results.cells} == set(frameworks.built_in()[1].types[0].dtypes)
    assert {cell.protocol for cell in results.cells} == {"dlpack", "array_interface", "buffer"}


def test_json_is_one_document():
    results, text = run(json=True)
    document = json.loads(text)
    assert document["exit_code"] == 0
    assert document["counts"]["works"] == results.count(Status.WORKS)
    assert document["exchanges"][0]["protocol"] == "buffer"


# --- registry ----------------------------------------------------------------------------------------------------


def test_adapters_are_complete():
    names = [framework.name for framework in frameworks.built_in()]
    assert len(set(names)) == len(names) and len(names) >= 23
    kinds = [kind for framework in frameworks.built_in() for kind in framework.types]
    assert len({kind.name for kind in kinds}) == len(kinds)
    for kind in kinds:
        for dtype in kind.dtypes:
            for layout in kind.views:
                for device in kind.devices:
                    compile(kind.source(_cases.Case(dtype, layout, device)), kind.name, "eval")


def test_adapters_import_no_framework():
    code = (
        "import sys; from dlbridge.tests import frameworks; frameworks.built_in()\n"
        "assert not {'numpy', 'torch', 'jax', 'tensorflow', 'pyarrow'} & set(sys.modules)\n"
    )
    run_python(code)


def test_unknown_framework_is_an_error():
    with pytest.raises(ValueError, match="no framework is named 'nunpy'; known: stdlib, numpy"):
        run(("nunpy",))


def test_framework_of_a_third_party_is_run(tmp_path, monkeypatch):
    plant(tmp_path, "alpha")
    monkeypatch.syspath_prepend(tmp_path)
    results, text = run(("stdlib", "alpha"))
    assert results.exit_code == 0, text
    assert {(c.producer, c.consumer) for c in results.cells} >= {("alpha", "buffer"), ("bytearray", "alpha")}
    assert results.versions["alpha"] == "?"  # the library is no distribution


BROKEN_PLUGINS = {
    "fails at import": ("raise OSError('libmissing.so')", "OSError: libmissing.so"),
    "names nothing": ("x = 1", "AttributeError"),
    "gives no framework": ("FRAMEWORK = [3]", "it gives int"),
    "exits": ("raise SystemExit(3)", "SystemExit"),
    "takes a taken name": (
        "from dlbridge.tests.frameworks import Framework\nFRAMEWORK = Framework('numpy', 'numpy')",
        "the name 'numpy' is taken",
    ),
}


@pytest.mark.parametrize(("code", "reason"), BROKEN_PLUGINS.values(), ids=BROKEN_PLUGINS)
def test_broken_plugin_is_reported_and_the_rest_runs(tmp_path, monkeypatch, code, reason):
    monkeypatch.delitem(sys.modules, "beta_adapter", raising=False)
    plant(tmp_path, "beta", adapter_code=code)
    monkeypatch.syspath_prepend(tmp_path)
    results, text = run(("stdlib", "beta"))
    assert results.exit_code == 0
    assert "broken plugin 'beta_adapter:FRAMEWORK'" in text and reason in text


# --- loading -----------------------------------------------------------------------------------------------------

IMPORTS = {
    "an error": ("raise OSError('libmissing.so: cannot open')", "OSError: libmissing.so: cannot open"),
    "an exit": ("raise SystemExit('no licence')", "SystemExit: no licence"),
    "a missing part": ("import no_such_module_anywhere", "ModuleNotFoundError: No module named"),
}


@pytest.mark.parametrize(("code", "reason"), IMPORTS.values(), ids=IMPORTS)
def test_framework_that_cannot_be_imported_is_absent(tmp_path, monkeypatch, code, reason):
    (tmp_path / "half_installed.py").write_text(code + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    _, _, absent = _loader.load_all([frameworks.Framework("half", "half_installed")])
    assert absent["half"].startswith(reason)
    sys.modules.pop("half_installed", None)


def test_what_is_not_installed_is_named():
    _, _, absent = _loader.load_all([frameworks.Framework("nothing", "no_such_module_anywhere")])
    assert absent == {"nothing": "not installed"}


def test_import_that_prints_and_starts_threads(tmp_path):
    (tmp_path / "noisy.py").write_text(
        "import os, threading, time\nprint('hello')\nos.write(2, b'from C\\n')\n"
        "threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from dlbridge.tests import _loader, frameworks\n"
        "_, imports, _ = _loader.load_all([frameworks.Framework('noisy', 'noisy')])\n"
        "how = imports['noisy']\n"
        "print(sorted(how.printed.splitlines()), how.threads)\n"
    )
    done = run_python(code)
    assert (done.stdout, done.stderr) == ("['from C', 'hello'] 1\n", "")


# --- faults ------------------------------------------------------------------------------------------------------


def exchange_with(kind=None, route=_plan.CONVERT, **look):
    """One exchange of a bytearray into a memoryview, with parts of the adapter replaced by faulty ones."""
    base = frameworks.built_in()[0]
    array = dataclasses.replace(next(row for row in base.types if row.name == "bytearray"), **(kind or {}))
    consumer = dataclasses.replace(base, look=dataclasses.replace(base.look, **look))
    bench = frameworks.Bench(consumer)
    case = _cases.Case("uint8", "contiguous")
    spec = _plan.Spec(base, array, None if route == _plan.READ else consumer, "", route, case)
    return next(_runner.exchanges([spec], {"stdlib": bench}))


@pytest.mark.parametrize("route", ["convert", "buffer"])
def test_sound_exchange_works(route):
    cell = exchange_with(route=route)
    assert cell.status is Status.WORKS and cell.cost_ns > 0 and cell.protocol == "buffer"


FAULTS = {
    "values": ({"read": "[0, *x.tolist()[1:]]"}, "wrong values at once"),
    "pointer": ({"pointer": "4096"}, "wrong pointer"),
    "write": ({"write": "None"}, "not seen by the producer"),
}


@pytest.mark.parametrize(("look", "reason"), FAULTS.values(), ids=FAULTS)
def test_fault_is_found(look, reason):
    cell = exchange_with(**look)
    assert cell.status is Status.WRONG and reason in cell.reason
    assert cell.culprit and "bytearray(" in cell.reproducer


def test_lost_readonly_mark_is_found():
    kind = next(row for row in frameworks.built_in()[0].types if row.name == "bytes")
    changes = {field.name: getattr(kind, field.name) for field in dataclasses.fields(kind)}
    cell = exchange_with(kind=changes, readonly="False")
    assert cell.status is Status.WRONG and "read-only mark was lost" in cell.reason


def test_leak_is_found(monkeypatch):
    kept = []
    monkeypatch.setattr(_patience, "LIMIT_S", 0.05)
    cell = exchange_with(read=lambda view: kept.append(view) or view.tolist())
    assert cell.status is Status.WRONG and "leak" in cell.reason


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_heap_that_the_caller_has_frozen_stays_so():
    assert gc.get_freeze_count() > 0  # conftest.py has
    with _patience.cheap_collections():
        pass
    assert gc.get_freeze_count() > 0


def test_who_never_gives_back_is_not_waited_for_in_full_every_time(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_patience, "time", clock)
    patience = _patience.Patience()
    assert not any(patience.wait(lambda: False) for _ in range(110))
    assert clock.now < 10 * _patience.LIMIT_S


def test_who_gives_back_late_is_waited_for_also_after_waits_in_vain(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_patience, "time", clock)
    patience = _patience.Patience()

    def after(seconds):
        return lambda until=clock.now + seconds: clock.now >= until

    assert patience.wait(after(0.3))
    assert not any(patience.wait(lambda: False) for _ in range(10))
    assert patience.wait(after(0.9))


READS = {
    "pointer": ({"look": frameworks.Look("list(x)", "4096")}, "wrong pointer"),
    "shape": ({"flat": False}, "wrong shape"),
    "mark": ({"readonly": True}, "the read-only mark was lost"),
    "dtype": ({"arrives": {"uint8": "int8"}}, "wrong dtype"),
}


@pytest.mark.parametrize(("change", "reason"), READS.values(), ids=READS)
def test_wrong_reading_is_found(change, reason):
    cell = exchange_with(kind=change, route=_plan.READ)
    assert cell.status is Status.WRONG and reason in cell.reason


def test_reproducer_names_the_library_and_needs_no_dlbridge(tmp_path, monkeypatch):
    plant(tmp_path, "gamma", sound_but(("memoryview(source)", "memoryview(bytes(reversed(bytes(source))))")))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    results, text = run(("stdlib", "gamma"))
    assert results.exit_code == 1
    wrong = next(c for c in results.cells if c.status is Status.WRONG and c.producer == "bytearray")
    assert wrong.culprit == "gamma"
    assert "dlbridge" not in wrong.reproducer and len(wrong.reproducer.splitlines()) <= 12
    run_python(wrong.reproducer, status=3)
    assert "at fault: gamma" in text


def test_reproducer_prints_pointers():
    cell = exchange_with(pointer="4096")
    done = run_python(cell.reproducer)
    assert "pointer  0x1000 \nexpected 0x" in done.stdout, done.stdout


COPIER = sound_but(("return memoryview(source)", "return memoryview(bytearray(source))"))
DECLARED = ('takes={{"buffer"', 'own_copy=lambda tensor: "it keeps arrays of its own",\n        takes={{"buffer"')


def test_importer_that_copies_declares_it(tmp_path, monkeypatch):
    adapter = ADAPTER.replace('look=Look("x.tolist()", ""', 'look=Look("x.tolist()", "id(x.obj)"')
    plant(tmp_path, "delta", COPIER, adapter.format(name="delta", library="delta_lib"))
    plant(tmp_path, "epsilon", COPIER, adapter.replace(*DECLARED).format(name="epsilon", library="epsilon_lib"))
    monkeypatch.syspath_prepend(tmp_path)
    results, _ = run(("delta", "epsilon"))
    silent = [cell for cell in results.cells if (cell.producer, cell.consumer) == ("delta", "delta")]
    silent = [cell for cell in silent if cell.route == "buffer"]
    assert silent and all(c.status is Status.WRONG and "own_copy in its adapter" in c.reason for c in silent)
    declared = [cell for cell in results.cells if (cell.producer, cell.consumer) == ("delta", "epsilon")]
    assert declared and {(c.status, c.reason) for c in declared} == {(Status.COPIES, "it keeps arrays of its own")}


def test_array_that_cannot_be_made_is_absent():
    cell = exchange_with(kind={"make": "bytearray('x')"})
    assert cell.status is Status.ABSENT and "makes no such array" in cell.reason


CODES = {
    "wrong": ("convert", Status.WRONG, 1),
    "crashed": ("import", Status.CRASHED, 1),
    "hung": ("dlpack", Status.HUNG, 1),
    "refused": ("convert", Status.REFUSED, 0),
    "only read": ("read", Status.WORKS, 2),
}


@pytest.mark.parametrize(("route", "status", "code"), CODES.values(), ids=CODES)
def test_exit_code_follows_the_worst_cell(route, status, code):
    assert _results.Results(cells=[_results.Cell("a", "b", route, status)]).exit_code == code


# --- command line ------------------------------------------------------------------------------------------------


def test_command_line(capsys):
    assert command.main(["--only", "stdlib", "-v"]) == 0
    assert "bytearray" in capsys.readouterr().out
    assert command.main(["--only", "stdlib", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] == 0


REQUIRED = {
    "there": ("stdlib", 0, {}),
    "by its module": ("numpy", 0, {}),
    "not installed": ("nowhere", 1, {"nowhere": "not installed"}),
    "without its device": ("nd:cuda", 1, {"nd:cuda": "nd sees no CUDA device"}),
}


@pytest.fixture
def nowhere(monkeypatch):
    """A framework that is not installed."""
    absent = frameworks.Framework("nowhere", "no_such_module_anywhere")
    known = frameworks.built_in()
    monkeypatch.setattr(frameworks, "built_in", lambda: (*known, absent))


@pytest.mark.parametrize(("name", "code", "missing"), REQUIRED.values(), ids=REQUIRED)
def test_what_is_required_must_be_there(nowhere, monkeypatch, name, code, missing):
    module = name.partition(":")[0]
    if module not in ("nowhere", "stdlib"):
        pytest.importorskip("dlbridge.nd" if module == "nd" else module, reason="is required in this test")
    monkeypatch.setattr(
        frameworks.Bench,
        "has_device",
        lambda bench, d: "" if d == "cpu" else f"{bench.framework.name} sees no {d.upper()} device",
    )
    results, text = run(("stdlib", module), require=[name])
    assert (results.exit_code, results.missing) == (code, missing)
    assert all(f"required, and not there: {lost} ({why})" in text for lost, why in missing.items())


NEVER = {
    "unknown": (["nunpy"], "no framework is named 'nunpy'"),
    "left out": (["torch"], "torch is not among the frameworks of this run: stdlib"),
    "no such device": (["stdlib:cuda"], "stdlib makes no arrays on 'cuda'; its devices: cpu"),
}


@pytest.mark.parametrize(("names", "message"), NEVER.values(), ids=NEVER)
def test_what_no_run_can_have_cannot_be_required(names, message):
    with pytest.raises(ValueError, match=message):
        run(("stdlib",), require=names)


BAD_COMMANDS = {
    "unknown framework": (["--only", "nunpy"], "no framework is named 'nunpy'"),
    "unwritable file": (["--only", "stdlib", "--json", "/no/such/folder/x.json"], "cannot be written: No such file"),
    "folder as file": (["--only", "stdlib", "--markdown", "/"], "cannot be written: Is a directory"),
    "two reports to the output": (["--only", "stdlib", "--json", "--junit"], "only one report"),
    "no time": (["--only", "stdlib", "--isolate", "--timeout", "0"], "--timeout and --limit must be above 0"),
    "no time at all": (["--only", "stdlib", "--limit", "0"], "--timeout and --limit must be above 0"),
    "unknown requirement": (["--only", "stdlib", "--require", "torch"], "--require: torch is not among"),
    "no report to compare": (["--compare", "/no/such.json", "/no/such.json"], "cannot be read"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_COMMANDS.values(), ids=BAD_COMMANDS)
def test_bad_command_is_a_clear_error(capsys, arguments, message):
    assert command.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_unknown_option_is_an_error(capsys):
    with pytest.raises(SystemExit) as left:
        command.main(["--no-such-option"])
    assert left.value.code == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_run_imports_no_framework_that_was_not_asked_for():
    code = (
        "import sys, dlbridge.tests\n"
        "assert dlbridge.tests.run(['stdlib']).exit_code == 0\n"
        "assert not {'numpy', 'torch', 'jax', 'tensorflow'} & set(sys.modules), 'imported'\n"
    )
    run_python(code)
