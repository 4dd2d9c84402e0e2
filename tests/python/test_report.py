"""The reports of a run: JSON, JUnit, Markdown, text, the coloured table, and two runs compared."""

import dataclasses
import io
import json
from xml.etree import ElementTree

import dlbridge.tests
import pytest
from dlbridge import __main__ as command
from dlbridge.tests._results import Cell, Import, Results, Status
from dlbridge.tests.report import _compare, _files, _rich, _summary, _text

NASTY = "</script><b>\x00 | \"quoted\" & 'more' é"


def cell(status=Status.WORKS, **fields):
    given = {"producer": "numpy", "consumer": "torch", "route": "convert", "protocol": "dlpack", "dtype": "float32"}
    return Cell(**{**given, "layout": "contiguous", "device": "cpu", "cost_ns": 500, **fields, "status": status})


def results(*cells):
    return Results({"numpy": Import("2.4.6", 0.1)}, {"cupy": "not installed", "odd": NASTY}, list(cells))


EVERY = (
    *(cell(status, reason=NASTY, dtype=f"d{n}") for n, status in enumerate(Status)),
    cell(Status.WRONG, culprit="torch", reproducer=f"print({NASTY!r})", layout="offset", reason="wrong values"),
)


def written(write, what=None):
    out = io.StringIO()
    write(results(*EVERY) if what is None else what, out)
    return out.getvalue()


def test_json_holds_every_cell():
    document = json.loads(written(_files.write_json))
    assert [Cell.fromdict(fields) for fields in document["exchanges"]] == list(EVERY)
    assert document["counts"] == {s.value: 2 if s is Status.WRONG else 1 for s in Status}
    assert document["exit_code"] == 1


def test_json_of_nothing():
    assert json.loads(written(_files.write_json, results()))["exchanges"] == []


def test_junit():
    suite = ElementTree.fromstring(written(_files.write_junit).encode())[0]
    assert suite.attrib["tests"] == "8"
    assert (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["skipped"]) == ("2", "2", "2")
    kinds = [child.tag for case in suite for child in case]
    assert sorted(kinds) == ["error", "error", "failure", "failure", "skipped", "skipped"]
    assert suite[0].attrib["classname"] == "numpy to torch"


def test_markdown():
    text = written(_files.write_markdown)
    assert "| numpy | 1 1c 1r 2W 1X 1H 1- |" in text
    assert "## Refused" in text and "At fault: torch" in text
    rows = [line for line in text.splitlines() if line.startswith("| refused by torch")]
    assert rows and all(line.replace("\\|", "").count("|") == 4 for line in rows)


def test_text_names_the_culprit_and_its_script():
    out = io.StringIO()
    _text.write(results(*EVERY), out, verbose=True)
    assert "at fault: torch. numpy to torch (convert), wrong values:" in out.getvalue()
    assert "absent: cupy (not installed)" in out.getvalue()


BRIEFS = {
    "all": ({Status.WORKS: 3}, "works"),
    "refused": ({Status.REFUSED: 2}, "refused"),
    "mixed": ({Status.WORKS: 3, Status.COPIES: 2, Status.REFUSED: 1}, "3 2c 1r"),
    "wrong": ({Status.WORKS: 3, Status.WRONG: 1}, "3 1W"),
    "crashed": ({Status.CRASHED: 1}, "1X"),
}


@pytest.mark.parametrize(("counts", "text"), BRIEFS.values(), ids=BRIEFS)
def test_brief(counts, text):
    from collections import Counter

    assert _summary.brief(Counter(counts)) == text


def test_coloured_table():
    pytest.importorskip("rich", reason="the coloured table")
    out = io.StringIO()
    _rich.write(results(*EVERY), out, verbose=True)
    assert "1 1c 1r 2W 1X 1H 1-" in out.getvalue() and "at fault: torch" in out.getvalue()


def test_progress_bar_is_told_of_everything(monkeypatch):
    pytest.importorskip("rich", reason="the progress bar")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    with _rich.progress(True) as bar:
        bar.loading("numpy")
        bar.start(2)
        bar.advance(EVERY[0])
        bar.advance(None)
    assert not isinstance(bar, _rich.NoProgress)


def test_without_rich_all_is_plain(monkeypatch):
    monkeypatch.setattr(_rich, "available", lambda: False)
    with _rich.progress(True) as bar:
        assert isinstance(bar, _rich.NoProgress)


# --- two runs compared -------------------------------------------------------------------------------------------


def compare(tmp_path, old, new):
    paths = []
    for name, cells in (("old", old), ("new", new)):
        path = tmp_path / f"{name}.json"
        path.write_text(written(_files.write_json, results(*cells)))
        paths.append(str(path))
    out = io.StringIO()
    return _compare.compare(*paths, out), out.getvalue()


ALIGNED = "data pointer 0x1 is not aligned to the 64 bytes it works with"
CHANGES = {
    "nothing": (cell(), cell(), 0, "0 broke, 0 mended, 0 slower"),
    "refused": (cell(), cell(Status.REFUSED, reason="no more"), 1, "works -> refused (no more)"),
    "wrong": (cell(Status.REFUSED), cell(Status.WRONG), 1, "refused -> WRONG"),
    "copies": (cell(), cell(Status.COPIES), 1, "works -> copies"),
    "mended": (cell(Status.CRASHED), cell(), 0, "CRASHED -> works"),
    "by chance": (cell(), cell(Status.COPIES, reason=ALIGNED), 0, "0 broke"),
    "slower": (cell(), cell(cost_ns=9_000), 0, "500 -> 9000 ns"),
    "new and wrong": (cell(), cell(Status.WRONG, dtype="int8"), 1, "new and wrong (1)"),
    "gone": (cell(), cell(dtype="int8"), 0, "no longer tried (1)"),
}


@pytest.mark.parametrize(("old", "new", "code", "text"), CHANGES.values(), ids=CHANGES)
def test_compare(tmp_path, old, new, code, text):
    got, out = compare(tmp_path, [old], [new])
    assert (got, text in out) == (code, True), out


def test_compare_names_versions(tmp_path):
    old, new = results(cell()), results(cell())
    new.imports = {"numpy": dataclasses.replace(new.imports["numpy"], version="2.5.0")}
    for name, what in (("old", old), ("new", new)):
        (tmp_path / name).write_text(written(_files.write_json, what))
    out = io.StringIO()
    assert _compare.compare(str(tmp_path / "old"), str(tmp_path / "new"), out) == 0
    assert "numpy: 2.4.6 -> 2.5.0" in out.getvalue()


BAD_REPORTS = {
    "no JSON": "hello",
    "another document": "{}",
    "a list": "[]",
    "odd exchanges": '{"versions": {}, "exchanges": [{"status": "works"}]}',
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("content", BAD_REPORTS.values(), ids=BAD_REPORTS)
def test_bad_report_is_a_clear_error(tmp_path, capsys, content):
    path = tmp_path / "report.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert command.main(["--compare", str(path), str(path)]) == 2
    assert str(path) in capsys.readouterr().err


def test_all_files_of_one_run(tmp_path, capsys):
    names = ["json", "junit", "markdown"]
    options = [text for name in names for text in (f"--{name}", str(tmp_path / name))]
    assert command.main(["--only", "stdlib", *options]) == 0
    assert "bytearray" in capsys.readouterr().out
    assert all((tmp_path / name).stat().st_size > 500 for name in names)
    assert command.main(["--compare", str(tmp_path / "json"), str(tmp_path / "json")]) == 0


def test_run_takes_a_file():
    out = io.StringIO()
    assert dlbridge.tests.run(["stdlib"], file=out).exit_code == 0
    assert "works" in out.getvalue()
