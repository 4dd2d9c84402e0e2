"""The page about older versions says what their reports say, and no more."""

import importlib.util
import io
import json
import sys
from pathlib import Path

import pytest
from dlbridge.tests._results import Cell, Import, Results, Status
from dlbridge.tests.report import _files

TOOL = Path(__file__).resolve().parents[2] / "tools" / "old_versions.py"
spec = importlib.util.spec_from_file_location("old_versions", TOOL)
tool = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = tool  # where dataclass() looks
spec.loader.exec_module(tool)

OLD = tool.Row("torch", "PyTorch 2.2", ("torch==2.2.2",), "a remark")
NEW = tool.Row("torch", "PyTorch today", ("torch",))


def cell(status=Status.WORKS, **fields):
    given = {"producer": "numpy", "consumer": "torch", "route": "convert", "dtype": "float32", "layout": "contiguous"}
    return Cell(**{**given, **fields, "status": status})


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """Writes the report of a row."""
    monkeypatch.setattr(tool, "REPORTS", tmp_path)
    monkeypatch.setattr(tool, "ROWS", (OLD, NEW))

    def write(row, *cells, version="1.0", absent=None, **more):
        imports = {"numpy": Import("2.4.6"), **({} if absent else {"torch": Import(version)})}
        out = io.StringIO()
        _files.write_json(Results(imports, absent or {}, list(cells)), out)
        (tmp_path / f"{row.name}.json").write_text(json.dumps({**json.loads(out.getvalue()), **more}))

    return write


def line(title):
    return next(line for line in tool.page().splitlines() if line.startswith(f"| {title}"))


def test_row_counts_and_says_what_is_worse_and_by_which_way(reports):
    own = {"route": "dlpack"}
    reports(NEW, cell(), cell(dtype="int8"), cell(**own), version="2.13.0")
    refused = cell(Status.REFUSED, dtype="int8", reason="not yet")
    reports(OLD, cell(), refused, cell(Status.REFUSED, reason="nor this", **own), version="2.2.2", note="a note")
    assert line("PyTorch 2.2.2") == "| PyTorch 2.2.2 | 2.4.6 | 1 | 0 | 2 | 0 | 1 | 1 | a remark; a note |"
    assert line("PyTorch 2.13.0") == "| PyTorch 2.13.0 | 2.4.6 | 3 | 0 | 0 | 0 |  |  |  |"
    page = tool.page()
    assert "| 1 | refused | numpy | torch | convert | `not yet` |" in page
    assert page.index("`not yet`") < page.index("`nor this`"), "what convert does comes first"
    assert "## PyTorch 2.13.0" not in page


def test_what_is_wrong_is_told_of_the_newest_too(reports):
    reports(NEW, cell(Status.WRONG, reason="wrong values"), version="2.13.0")
    assert "| 1 | WRONG | numpy | torch | convert | `wrong values` |" in tool.page().partition("## PyTorch 2.13.0")[2]


NOT_COUNTED = {
    "what stands beside it": (cell(consumer="numpy"), cell(Status.REFUSED, consumer="numpy", reason="no")),
    "chance": (cell(), cell(Status.COPIES, reason="expected data aligned to 64 bytes, got (12,)")),
    "what is new": (cell(dtype="int8"), cell(Status.REFUSED, reason="no")),
    "what is better": (cell(Status.REFUSED, reason="no"), cell()),
}


@pytest.mark.parametrize(("now", "then"), NOT_COUNTED.values(), ids=NOT_COUNTED)
def test_not_counted_as_worse(reports, now, then):
    reports(NEW, now)
    reports(OLD, then, version="2.2.2")
    assert line("PyTorch 2.2.2").endswith("| 0 | 0 | a remark |") and "## PyTorch" not in tool.page()


REASONS = {
    "a tensor": "torch refused <dlbridge.HostTensor shape=({},) dtype=float32 device=cpu>: no such type",
    "an array": "torch refused array([{}, 2], dtype=int8): no such type",
    "numbers": "unknown type code {}",
}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
def test_reasons_that_differ_in_their_array_are_one(reports, reason):
    reports(NEW, *(cell(dtype=f"d{n}") for n in range(3)))
    reports(OLD, *(cell(Status.REFUSED, dtype=f"d{n}", reason=reason.format(n)) for n in range(3)))
    assert "| 3 | refused | numpy | torch | convert | `" in tool.page()


def test_row_without_a_report_says_why(reports, tmp_path):
    reports(NEW, absent={"torch": "ImportError: libcudart.so.12"})
    (tmp_path / f"{OLD.name}.json").write_text(json.dumps({"skipped": "pip would fetch 2,836 MB"}))
    assert line("PyTorch 2.2 ").endswith("| pip would fetch 2,836 MB |")
    assert line("PyTorch today").endswith("| cannot be imported: ImportError: libcudart.so.12 |")
    (tmp_path / f"{OLD.name}.json").unlink()
    assert line("PyTorch 2.2 ").endswith("| not run |")


def test_every_framework_of_the_table_is_one_of_the_runner():
    known = {name for row in tool.ROWS for name in [row.framework] if tool.frameworks.find([name])[0]}
    assert known == {row.framework for row in tool.ROWS}
    assert len({row.name for row in tool.ROWS}) == len(tool.ROWS)
