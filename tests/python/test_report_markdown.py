"""The Markdown of a run: what must be in a ticket, in an order that helps, and nothing that a ticket would act on."""

import dataclasses
import io
import re

import pytest
from dlbridge.tests import _machine
from dlbridge.tests._results import Cell, Import, Results, Status
from dlbridge.tests.report import _markdown

NASTY = "</script><b>\x00 | \"quoted\" & 'more' é\n`@someone` #1"


def cell(status=Status.WORKS, **fields):
    given = {"producer": "numpy", "consumer": "torch", "route": "convert", "protocol": "dlpack", "dtype": "float32"}
    return Cell(**{**given, "layout": "contiguous", "device": "cpu", **fields, "status": status})


def wrong(**fields):
    given = {"culprit": "torch", "reason": "wrong values", "reproducer": "print(1)\n"}
    return cell(Status.WRONG, **{**given, **fields})


def results(*cells, **fields):
    return Results({"numpy": Import("2.4.6")}, {"cupy": "not installed", "odd": NASTY}, list(cells), **fields)


def written(*cells, **fields):
    out = io.StringIO()
    _markdown.write_markdown(results(*cells, **fields), out)
    return out.getvalue()


VERDICTS = {
    "well": ((cell(),), {}, "## Array exchanges: all is well"),
    "wrong": ((cell(), wrong()), {}, "## Array exchanges: something is wrong"),
    "missing": ((cell(),), {"required": ("cupy",)}, "## Array exchanges: something is wrong"),
    "nothing": ((), {}, "## Array exchanges: nothing could be run"),
}


@pytest.mark.parametrize(("cells", "fields", "line"), VERDICTS.values(), ids=VERDICTS)
def test_first_line_is_the_verdict(cells, fields, line):
    assert written(*cells, **fields).splitlines()[0] == line


def test_environment_then_failures_then_matrix_then_the_rest():
    text = written(cell(), wrong(), cell(Status.REFUSED, reason="no", dtype="int8"), stopped="the limit was reached")
    order = ["with numpy 2.4.6", "**not finished: the limit was reached**", "### Wrong", "at fault: torch", "print(1)"]
    order += ["### convert(x, consumer)", "| numpy | 1 1r 1W |", "<summary>Refused: 1 reason(s)</summary>", "`no`"]
    places = [text.index(what) for what in order]
    assert places == sorted(places)


def test_machine_is_named_by_its_kind_and_not_by_its_name(monkeypatch):
    machine = {"host": "secret", "platform": "Linux x86_64", "gpus": ["H200"] * 2, "driver": "590.1", "cuda": {}}
    monkeypatch.setattr(_machine, "describe", lambda: machine)
    text = written(cell())
    assert "Linux x86_64" in text and "- 2 x H200, driver 590.1" in text and "secret" not in text


def test_scripts_are_folded_and_stand_once_for_a_pair():
    text = written(wrong(), wrong(dtype="int8"), wrong(consumer="jax"))
    assert text.count("```python\nprint(1)\n") == 2
    assert text.count("<details>") == text.count("</details>") == 2


def test_fence_is_longer_than_any_in_the_script():
    assert "\n````python\na = '```'\n````\n" in written(wrong(reproducer="a = '```'"))


def test_what_libraries_say_is_code():
    text = written(cell(Status.REFUSED, reason=NASTY), wrong(reason=NASTY))
    assert "``</script><b> \\| \"quoted\" & 'more' é `@someone` #1``" in text
    assert "<code>&lt;/script&gt;&lt;b&gt; | \"quoted\" &amp; 'more' é `@someone` #1</code></summary>" in text
    rest = re.sub(r"<code>.*?</code>|``.*?``(?!`)", "", text)
    assert "@" not in rest and "<b>" not in rest and "\0" not in text


def test_rows_have_the_columns_of_their_table():
    text = written(cell(Status.REFUSED, reason=NASTY), cell(producer="a|b", status=Status.REFUSED, reason="|"))
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        assert len({row.replace("\\|", "").count("|") for row in table.splitlines()}) == 1


CODES = {
    "plain": ("no", "`no`"),
    "empty": ("", ""),
    "with a backtick": ("a`b", "``a`b``"),
    "in backticks": ("`a`", "`` `a` ``"),
    "lines": ("a\n\n b", "`a b`"),
    "bar": ("a|b", "`a\\|b`"),
    "long": ("x" * 1000, "`" + "x" * 296 + " ...`"),
}


@pytest.mark.parametrize(("text", "shown"), CODES.values(), ids=CODES)
def test_code_span(text, shown):
    assert _markdown.code(text) == shown


def test_a_ticket_takes_the_worst_of_reports():
    names = [f"framework{n}" for n in range(30)]
    cells = [
        wrong(producer=p, consumer=c, reproducer="x" * 50_000, reason=f"{chr(97 + n % 26) * 200} {p}")
        for n, p in enumerate(names)
        for c in names
    ]
    cells += [dataclasses.replace(one, status=Status.REFUSED, reproducer="") for one in cells]
    text = written(*cells)
    assert len(text) < 65_536
    assert "and 860 more: `--json` has them" in text and "and 895 more scripts: `--json` has them" in text
    assert "framework29" in text.rpartition("### convert")[2]


def test_what_does_not_fit_is_named(monkeypatch):
    monkeypatch.setattr(_markdown, "_LIMIT", 1_000)
    text = written(*(cell(Status.REFUSED, dtype=f"d{n}", reason=chr(97 + n) * 200) for n in range(20)))
    assert "Left out, as too long for a ticket: why exchanges were refused." in text and "<details>" not in text


def test_nothing_that_went_well_is_unfolded():
    text = written(cell(), cell(Status.COPIES, reason="it copies", dtype="int8"))
    assert "### Wrong" not in text
    assert text.index("<details>") < text.index("it copies")
