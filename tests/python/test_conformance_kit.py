"""The conformance kit itself: its tables, reports, the command line, isolation, the pytest plugin."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dlbridge.tests import check_consumer, check_producer, conformance
from dlbridge.tests.conformance import Spec, Unsupported, _adversary, _tables, libraries
from dlbridge.tests.conformance._run import name_of

HERE = Path(__file__).parent
pytestmark = pytest.mark.no_sanitizer  # its fakes and its children die on purpose


def no_factory(spec):
    raise Unsupported("nothing")


def view_of_a_shape(shape, dtype):
    if dtype != "float32" or 0 in shape:
        raise Unsupported
    return memoryview(bytearray(4 * math.prod(shape))).cast("f", shape)


def one_array():
    return bytearray(b"abc")


def refuses_everything(obj):
    raise TypeError("no")


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_every_check_has_an_id_a_clause_and_a_source(kind):
    checks = _tables.TABLES[kind]
    assert len({check.id for check in checks}) == len(checks) > 300
    for check in checks:
        assert check.clause and check.source
        assert check.protocol in conformance.PROTOCOLS
        assert check.severity in ("must", "should")
    assert {check.protocol for check in checks} == set(conformance.PROTOCOLS)


def test_select():
    assert {c.protocol for c in _tables.select("producer", ["buffer"])} == {"buffer"}
    assert [c.id for c in _tables.select("producer", None, ["call.plain"])] == ["dlpack.call.plain"]
    with pytest.raises(ValueError, match="no protocol telepathy"):
        _tables.select("producer", ["telepathy"])


@pytest.mark.parametrize("spec", [Spec((2, 3), "bool"), Spec((4, 6), "complex64", "broadcast"), Spec(()), Spec((0, 3))])
def test_memory_of_a_spec_holds_its_values(spec):
    from dlbridge.tests.conformance import _spec

    memory, offset, strides = _adversary.memory_of(spec)
    row = _spec.DTYPES[spec.dtype]
    pointer = _adversary.ct.addressof(memory) + offset
    assert _spec.read_memory(pointer, spec.shape, strides, row["code"], row["bits"]) == spec.values


def test_counting_deleter():
    tensor = _adversary.Managed(None, (0,), (1,))
    assert tensor.deletions == 0
    from dlbridge.tests.conformance import _abi

    for count in (1, 2, 3):
        _abi.call_deleter(tensor.struct)
        assert tensor.deletions == count
    tensor.struct.version.major = 77
    assert tensor.deletions == -1


# --- how subjects are called ------------------------------------------------------------------------------------------


def test_factory_of_shape_and_dtype():
    report = check_producer(view_of_a_shape, protocols=["buffer"])
    assert report.exit_code == 0, report.text()
    assert report.having("passed")


def test_factory_without_arguments():
    report = check_producer(one_array, isolate=False)
    assert report.exit_code == 0, report.text()
    assert {result.protocol for result in report.having("passed")} >= {"buffer"}


def test_factory_that_makes_nothing_could_not_run():
    report = check_producer(no_factory, isolate=False)
    assert report.exit_code == 2
    assert "no check applies" in report.could_not_run
    with pytest.raises(AssertionError, match="could not run"):
        report.raise_for_failures()


def no_device(spec):
    raise RuntimeError(f"no CUDA device for {spec}")


def test_library_without_a_usable_device_gives_one_reason():
    report = check_producer(no_device, device="cuda", isolate=False)
    assert report.exit_code == 2
    text = report.text()
    assert text.count("no CUDA device") == 1 and len(text.splitlines()) == 3, text
    assert report.text(verbose=True).count("no CUDA device") > 100


def test_library_is_checked_on_the_device_that_is_asked_for(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(libraries, "check", lambda name, **options: asked.append((name, options["device"])) or [])
    conformance.main(["--library", "torch", "--device", "cuda"])
    assert asked == [("torch", "cuda")]


def test_consumer_that_takes_nothing():
    report = check_consumer(refuses_everything, isolate=False, protocols=["buffer"])
    assert report.exit_code == 1  # it was said to take buffers
    unclaimed = check_consumer(refuses_everything, isolate=False, only=["buffer."])
    assert not unclaimed.having("failed")


def test_what_has_no_name_is_not_run_apart():
    report = check_consumer(lambda obj: obj, only=["null-deleter"])
    assert report.exit_code == 2
    assert "pass 'module:name'" in report.results[0].got
    assert name_of(lambda: 0) is None
    assert name_of(os.path.join) is None or ":" in name_of(os.path.join)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", "not of the form"),
        ("no_such_module_anywhere:f", "cannot be imported"),
        ("os:no_such_function", "has no no_such_function"),
        ("os:sep", "not callable"),
    ],
)
@pytest.mark.parametrize("isolate", [True, False])
def test_unusable_subject(name, why, isolate):
    report = check_producer(name, isolate=isolate, only=["call.plain"])
    assert report.exit_code == 2
    assert why in report.could_not_run


# --- reports ----------------------------------------------------------------------------------------------------------


def test_report_as_text_and_as_plain_types():
    report = check_consumer("conformance_fake_consumer:take_never_renames", only=["versioned.renames"], isolate=False)
    text = report.text(verbose=True)
    assert "FAILED dlpack.versioned.renames" in text and "clause:" in text and "DLPack Python specification" in text
    plain = json.loads(json.dumps(report.todict()))
    assert plain["counts"]["failed"] == 1 and plain["exit_code"] == 1
    assert plain["results"][0]["outcome"] == "failed"
    assert "1 failed" in repr(report)


# --- the command line -------------------------------------------------------------------------------------------------


def test_command_line(capsys):
    assert conformance.main(["--producer", "test_conformance_kit:view_of_a_shape", "--protocol", "buffer"]) == 0
    assert "0 failed" in capsys.readouterr().out
    arguments = ["--consumer", "conformance_fake_consumer:take_drops_readonly", "-k", "dlpack.versioned.readonly"]
    assert conformance.main([*arguments, "--json", "--no-isolate"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["exit_code"] == 1
    assert conformance.main(["--producer", "no_such_module_anywhere:f"]) == 2


def test_command_line_strict():
    arguments = [
        "--consumer",
        "conformance_fake_consumer:take_asks_no_version",
        "-k",
        "calls.max-version",
        "--no-isolate",
    ]
    assert conformance.main(arguments) == 0
    assert conformance.main([*arguments, "--strict"]) == 1


def test_command_line_lists_the_checks(capsys):
    assert conformance.main(["--list", "--protocol", "cuda_array_interface"]) == 0
    assert "producer cuda.stream[" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--library", "nothing"], ["--protocol", "telepathy"], ["--nothing"]])
def test_command_line_wrong(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        conformance.main(arguments)
    assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_library_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(libraries.LIBRARIES, "nothing", libraries.Library("no_such_module_anywhere", ("numpy_array",)))
    (report,) = libraries.check("nothing")
    assert report.exit_code == 2 and "no_such_module_anywhere" in report.could_not_run


def test_dlbridge_breaks_nothing():
    pytest.importorskip("numpy", reason="the adapter makes its arrays with NumPy")
    for report in libraries.check("dlbridge", isolate=True):
        broken = report.having("failed") if report.kind == "producer" else report.failures
        assert not broken and report.having("passed"), report.text()


# --- the pytest plugin ------------------------------------------------------------------------------------------------


def run_pytest(tmp_path, *arguments):
    path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "dlbridge.tests._plugin", "-p", "no:cacheprovider", "-rA", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_plugin_collects_an_item_a_check(tmp_path):
    done = run_pytest(tmp_path, "--dlbridge-producer", "test_conformance_kit:view_of_a_shape", "-k", "buffer")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout and "passed" in done.stdout.splitlines()[-1]


def test_plugin_reports_the_clause(tmp_path):
    name = "conformance_fake_consumer:take_calls_null_deleter"
    chosen = "null-deleter or minor-99 or max-version"
    done = run_pytest(tmp_path, "--dlbridge-consumer", name, "--dlbridge-protocol", "dlpack", "-k", chosen)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the deleter may be NULL [dlpack.h 1.3]" in done.stdout
    assert "SIGSEGV" in done.stdout
    assert "2 failed" in done.stdout.splitlines()[-1]


def test_plugin_recommendations_are_expected_failures(tmp_path):
    arguments = ["--dlbridge-consumer", "conformance_fake_consumer:take_asks_no_version", "-k", "calls.max-version"]
    done = run_pytest(tmp_path, *arguments)
    assert done.returncode == 0 and "1 xfailed" in done.stdout, done.stdout + done.stderr
    done = run_pytest(tmp_path, *arguments, "--dlbridge-strict")
    assert done.returncode == 1, done.stdout + done.stderr


def test_plugin_without_its_options_does_nothing(tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_plugin_with_an_unusable_subject_is_a_usage_error(tmp_path):
    done = run_pytest(tmp_path, "--dlbridge-producer", "no_such_module_anywhere:f")
    assert done.returncode == 4 and "cannot be imported" in done.stderr + done.stdout
