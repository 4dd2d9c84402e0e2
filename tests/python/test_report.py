"""The reports of a run: JSON, JUnit, Markdown, text, the coloured table, and two runs compared."""

import dataclasses
import datetime
import io
import json
from xml.etree import ElementTree

import dlbridge.tests
import pytest
from dlbridge import __main__ as command
from dlbridge import _core
from dlbridge.tests._results import Cell, Import, Results, Status
from dlbridge.tests.report import _compare, _files, _markdown, _rich, _summary, _text

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
    assert suite.attrib["tests"] == "8" and suite.attrib["timestamp"] and suite.attrib["hostname"]
    assert (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["skipped"]) == ("2", "2", "2")
    kinds = [child.tag for case in suite for child in case]
    assert sorted(kinds) == ["error", "error", "failure", "failure", "skipped", "skipped"]
    assert suite[0].attrib["classname"] == "numpy to torch"


def test_junit_names_are_unique():
    results = dlbridge.tests.run(["stdlib", "numpy"], full=True, file=io.StringIO())
    results.cells += [cell(Status.CRASHED, route="exit"), cell(Status.CRASHED, route="exit")]
    suite = ElementTree.fromstring(written(_files.write_junit, results).encode())[0]
    names = [(case.attrib["classname"], case.attrib["name"]) for case in suite]
    assert len(set(names)) == len(names) == len(results.cells)


def test_what_is_wrong_with_the_whole_run_is_in_every_report():
    pytest.importorskip("rich", reason="the coloured table")
    whole = dataclasses.replace(results(cell()), required=("numpy", "cupy"), stopped="the limit of 1 s was reached")
    assert whole.exit_code == 1 and whole.missing == {"cupy": "not installed"}
    suite = ElementTree.fromstring(written(_files.write_junit, whole).encode())[0]
    assert (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["tests"]) == ("1", "1", "4")
    document = json.loads(written(_files.write_json, whole))
    assert document["missing"] == whole.missing and document["stopped"] == whole.stopped
    for write in (_text.write, _rich.write, lambda whole, out, verbose: _markdown.write_markdown(whole, out)):
        out = io.StringIO()
        write(whole, out, verbose=False)
        assert "not finished: the limit of 1 s was reached" in out.getvalue()
        assert "required, and not there: cupy (not installed)" in out.getvalue()


WRITERS = {
    "text": lambda what, out: _text.write(what, out, verbose=True),
    "rich": lambda what, out: _rich.write(what, out, verbose=True),
    "markdown": _markdown.write_markdown,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_failures_come_first(write):
    pytest.importorskip("rich", reason="the coloured table")
    text = written(write)
    assert text.lower().index("at fault: torch") < text.index("convert(x, consumer)")


def test_first_line_is_short(monkeypatch):
    long = "libcuda.so.1 cannot be opened " * 8
    info = {"available": False, "reason": long, "device_count": 0, "driver_version": 0}
    monkeypatch.setattr(_core, "cuda_info", lambda: info)
    out = io.StringIO()
    _text.write(results(cell()), out, verbose=True)
    assert len(out.getvalue().splitlines()[0]) < 80 and long in out.getvalue()


ENDS = {
    "import alone": (
        cell(Status.CRASHED, producer="jax", consumer="jax", route="import"),
        "CRASHED at the import of jax",
        "alone",
    ),
    "import beside another": (
        cell(Status.HUNG, consumer="jax", route="import"),
        "HUNG at the import of jax",
        "beside numpy",
    ),
    "exit": (cell(Status.CRASHED, consumer="torch, jax", route="exit"), "CRASHED at exit", "numpy with torch, jax"),
}


@pytest.mark.parametrize(("end", "heading", "what"), ENDS.values(), ids=ENDS)
def test_ends_of_processes_in_words(end, heading, what):
    end = dataclasses.replace(end, reason="died of SIGSEGV")
    assert list(_summary.reasons([end], [end.status])) == [(heading, what, "died of SIGSEGV")]


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


ALIGNED = "expected data aligned to 64 bytes, got (12,) [uint8, strides (1,), cpu, read-only]"
CHANGES = {
    "nothing": (cell(), cell(), 0, "0 broke, 0 fixed, 0 slower"),
    "refused": (cell(), cell(Status.REFUSED, reason="no more"), 1, "works -> refused (no more)"),
    "wrong": (cell(Status.REFUSED), cell(Status.WRONG), 1, "refused -> WRONG"),
    "copies": (cell(), cell(Status.COPIES), 1, "works -> copies"),
    "fixed": (cell(Status.CRASHED), cell(), 0, "CRASHED -> works"),
    "by chance": (cell(), cell(Status.COPIES, reason=ALIGNED), 0, "0 broke"),
    "new and wrong": (cell(), cell(Status.WRONG, dtype="int8"), 1, "new and wrong (1)"),
    "gone": (cell(), cell(dtype="int8"), 1, "numpy to torch (convert): 1\n"),
    "producer gone": (cell(), cell(producer="jax"), 1, "all that numpy gives: 1\n"),
    "consumer gone": (cell(), cell(consumer="jax"), 1, "all that torch takes: 1\n"),
    "wrong and gone": (cell(Status.WRONG), cell(dtype="int8"), 0, "0 no longer tried"),
    "read by another protocol": (cell(), cell(Status.REFUSED, protocol="", reason="no"), 1, "works -> refused (no)"),
}


@pytest.mark.parametrize(("old", "new", "code", "text"), CHANGES.values(), ids=CHANGES)
def test_compare(tmp_path, old, new, code, text):
    got, out = compare(tmp_path, [old], [new])
    assert (got, text in out) == (code, True), out


def test_chance_is_told_by_the_words_of_convert():
    pytest.importorskip("tensorflow", reason="wants memory of 64 bytes' alignment")
    numpy = pytest.importorskip("numpy")
    whole = numpy.zeros(64, "uint8")
    with pytest.raises(dlbridge.CopyError, match=_compare._CHANCE):
        dlbridge.convert(whole[1 if whole.ctypes.data % 64 == 0 else 0 :], "tensorflow", copy=False)


def test_compare_says_each_thing_once(tmp_path):
    """Reports of schema 1 did not say which protocol was asked for."""
    alike = [cell(), cell()]
    got, out = compare(tmp_path, alike, [dataclasses.replace(one, status=Status.REFUSED, reason="no") for one in alike])
    assert got == 1 and out.count("works -> refused") == 1


def test_compare_names_a_framework_that_is_gone(tmp_path):
    old, new = results(cell()), results(cell())
    old.imports["jax"] = Import("0.10.2")
    new.absent["jax"] = "ImportError: libcudart.so.13"
    assert _compared(tmp_path, old, new) == (1, "jax is gone: ImportError: libcudart.so.13")


def _compared(tmp_path, old, new):
    for name, what in (("old", old), ("new", new)):
        (tmp_path / name).write_text(written(_files.write_json, what))
    out = io.StringIO()
    code = _compare.compare(str(tmp_path / "old"), str(tmp_path / "new"), out)
    return code, next(line.strip() for line in out.getvalue().splitlines() if "gone" in line)


SLOWER = {
    "not asked for": (None, 9_000, 0, "numpy to torch (convert): 500 -> 9,000 ns, 18.0 times, median of 5"),
    "above": (10.0, 9_000, 1, "1 slower"),
    "below": (20.0, 9_000, 0, "0 slower"),
    "too little to matter": (2.0, 1_500, 0, "0 slower"),
}


@pytest.mark.parametrize(("threshold", "cost_ns", "code", "text"), SLOWER.values(), ids=SLOWER)
def test_slower_is_one_line_a_pair_above_a_threshold(tmp_path, threshold, cost_ns, code, text):
    others = [cell(consumer=name, dtype=dtype) for name in ("jax", "numpy", "nd") for dtype in "abc"]
    dtypes = ("a", "b", "c", "d", "e")
    for name, ns in (("old", 500), ("new", cost_ns)):
        cells = [*others, *(cell(dtype=dtype, cost_ns=ns) for dtype in dtypes)]
        (tmp_path / name).write_text(written(_files.write_json, results(*cells)))
    out = io.StringIO()
    got = _compare.compare(str(tmp_path / "old"), str(tmp_path / "new"), out, slower=threshold)
    assert (got, text in out.getvalue()) == (code, True), out.getvalue()
    assert out.getvalue().count("numpy to torch") <= 1


def test_a_slow_machine_makes_no_pair_slower(tmp_path):
    for name, ns in (("old", 5_000), ("new", 50_000)):
        cells = [cell(consumer=consumer, cost_ns=ns) for consumer in ("torch", "jax", "numpy")]
        (tmp_path / name).write_text(written(_files.write_json, results(*cells)))
    out = io.StringIO()
    assert _compare.compare(str(tmp_path / "old"), str(tmp_path / "new"), out, slower=2.0) == 0
    assert "0 slower" in out.getvalue()


def test_report_says_where_and_when_it_was_made():
    document = json.loads(written(_files.write_json))
    assert document["schema"] == 2 and document["host"]
    assert datetime.datetime.fromisoformat(document["started"]).tzinfo is not None
    assert document.keys() >= {"gpus", "driver", "platform"}


def test_keys_of_a_later_version_are_read_over(tmp_path):
    document = json.loads(written(_files.write_json))
    document["weather"] = "fine"
    document["exchanges"][0]["mood"] = "good"
    (tmp_path / "new").write_text(json.dumps(document))
    (tmp_path / "old").write_text(written(_files.write_json))
    assert _compare.compare(str(tmp_path / "old"), str(tmp_path / "new"), io.StringIO()) == 0


def test_report_of_schema_1_is_compared(tmp_path):
    document = json.loads(written(_files.write_json, results(cell())))
    for key in ("schema", "host", "gpus", "driver", "started", "required", "missing", "stopped"):
        del document[key]
    (tmp_path / "old").write_text(json.dumps(document))
    new = results(cell(asked="dlpack"), cell(Status.REFUSED, asked="dlpack", reason="no", dtype="int8"))
    (tmp_path / "new").write_text(written(_files.write_json, new))
    out = io.StringIO()
    assert _compare.compare(str(tmp_path / "old"), str(tmp_path / "new"), out) == 0
    assert "1 new, 1 compared" in out.getvalue()


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
    "a later schema": '{"schema": 99, "versions": {}, "exchanges": []}',
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
