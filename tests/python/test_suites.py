"""The runner of other people's suites: what it makes of the outcomes that a run has left."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

RUN = Path(__file__).parents[1] / "suites" / "run.py"

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="tests/suites/run.py reads TOML by Python 3.11's module"
)


@pytest.fixture
def suites(monkeypatch):
    monkeypatch.syspath_prepend(str(RUN.parent))
    import run

    return run


def report(suites, monkeypatch, capsys, tmp_path, rows, name="array-api"):
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(json.dumps(dict(zip(("test", "outcome", "cause"), row, strict=True))) + "\n" for row in rows)
    )
    monkeypatch.setattr(sys, "argv", ["run.py", name, str(tmp_path), "--log", str(log)])
    return suites.main(), capsys.readouterr().out


PASSED = ("a::test", "passed", "")
KNOWN = ("array_api_tests/test_special_cases.py::test_binary[floor_divide(x)]", "failed", "AssertionError: out=nan")


def test_failures_with_a_reason_are_no_failure_of_the_run(suites, monkeypatch, capsys, tmp_path):
    status, text = report(suites, monkeypatch, capsys, tmp_path, [PASSED, KNOWN])
    assert status == 0 and "1 expected: floor_divide" in text
    assert "1 of 2 applicable tests passed (50.0 %), 1 failed" in text


def test_a_failure_that_no_row_names_fails_the_run_and_is_shown_by_its_cause(suites, monkeypatch, capsys, tmp_path):
    rows = [PASSED, KNOWN, ("b::test_1", "failed", "ValueError: 12"), ("b::test_2", "failed", "ValueError: 34")]
    status, text = report(suites, monkeypatch, capsys, tmp_path, rows)
    assert status == 1 and "2 unexpected: ValueError: N" in text and "b::test_1" in text


def test_what_looks_inside_and_what_is_skipped_is_not_counted(suites, monkeypatch, capsys, tmp_path):
    rows = [PASSED, ("c", "not collected", "LooksInside: cupy._core.x"), ("d::test", "skipped", "")]
    status, text = report(suites, monkeypatch, capsys, tmp_path, rows, "cupy")
    assert status == 0 and "1 of 1 applicable tests passed (100.0 %), 0 failed, 1 skipped" in text
    assert "not applicable: 1 look inside, 0 others" in text


def test_what_a_row_calls_not_applicable_is_neither_passed_nor_failed(suites, monkeypatch, capsys, tmp_path):
    rows = [PASSED, ("b", "failed", "RuntimeError: CUDA is not available"), ("c", "failed", "ValueError: 1")]
    status, text = report(suites, monkeypatch, capsys, tmp_path, rows, "cupy")
    assert status == 1 and "1 of 2 applicable tests passed (50.0 %), 1 failed" in text
    assert "not applicable: 0 look inside, 1 others" in text


def test_a_test_that_fails_when_it_is_taken_down_has_failed_once(suites, monkeypatch, capsys, tmp_path):
    rows = [PASSED, ("a::test", "failed", "AssertionError: leak")]
    status, text = report(suites, monkeypatch, capsys, tmp_path, rows)
    assert status == 1 and "0 of 1 applicable tests passed" in text


def test_private_names_of_its_library_look_inside_and_public_ones_do_not(suites, monkeypatch, capsys, tmp_path):
    cause = "AttributeError: 'dlbridge.nd.HostArray' object has no attribute '{}'"
    rows = [PASSED, ("c", "failed", cause.format("_index_32_bits")), ("d", "failed", cause.format("nothing"))]
    status, text = report(suites, monkeypatch, capsys, tmp_path, rows, "cupy")
    assert status == 1 and "1 of 2 applicable tests passed (50.0 %), 1 failed, 0 skipped" in text
    assert "not applicable: 1 look inside" in text


@pytest.mark.parametrize("text, outcome", [("[XPASS(strict)] no inf", "passed"), ("ValueError: 1", "failed")])
def test_what_passes_though_the_suite_marks_it_as_failing_has_passed(text, outcome, suites, monkeypatch, tmp_path):
    monkeypatch.setenv("DLBRIDGE_SUITE_LOG", str(tmp_path / "log"))
    monkeypatch.delitem(sys.modules, "recorder", raising=False)
    import recorder

    recorder.pytest_runtest_logreport(
        SimpleNamespace(failed=True, skipped=False, when="call", nodeid="a", longrepr=text)
    )
    assert json.loads((tmp_path / "log").read_text())["outcome"] == outcome
