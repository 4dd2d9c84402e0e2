"""The page of --html: self-contained, and alive in a real browser."""

import html
import io
import json
import re
import shutil
import subprocess

import pytest
from child_process import HANG_S

pytest.importorskip("jinja2", reason="the page's template")

from dlbridge import __main__ as command
from dlbridge.tests._results import Status
from dlbridge.tests.report import _html
from test_report import EVERY, NASTY, cell, results

CELLS = (
    *EVERY,
    cell(dtype="int8", route="dlpack"),
    cell(Status.REFUSED, consumer="jax", reason="in its own words", dtype="int8"),
)


def page(cells=CELLS):
    out = io.StringIO()
    _html.write_html(results(*cells), out)
    return out.getvalue()


def test_page_needs_no_other_file():
    text = page()
    assert not re.search(r"""\b(src|href)\s*=|@import|url\(|https?://""", text)


def test_what_frameworks_say_is_escaped():
    assert NASTY not in page()
    assert page().count("</script>") == 2


def test_table_is_there_without_a_script():
    assert "<td>1 1c 1r 2W 1X 1H 1-</td>" in page()


DIED = cell(Status.CRASHED, producer="paddle", consumer="paddle", route="import", reason="died of SIGSEGV")


def test_what_went_wrong_comes_first():
    text = page((*CELLS, DIED))
    assert text.index("What went wrong") < text.index("Who can give arrays")
    wrong = text[text.index('id="failures"') : text.index("Who can give arrays")]
    assert "<b>CRASHED at the import of paddle</b>, alone: died of SIGSEGV" in wrong
    assert "<b>WRONG by torch (convert)</b>, numpy [float32; offset]: wrong values" in wrong
    assert 'id="failures"' not in page((cell(),))


def test_framework_that_crashed_is_in_the_table_of_frameworks():
    text = page((*CELLS, DIED))
    table = text[text.index(">Frameworks<") :]
    assert '<tr class="died"><td>paddle</td><td colspan="4">CRASHED: died of SIGSEGV</td></tr>' in table


def test_letters_and_colours_are_explained():
    text = page()
    for words in ("c, by a declared copy", "r, refused", "W wrong, X crashed, H hung", "-, not made"):
        assert words in text


def test_page_of_nothing():
    assert "<html" in page(())


def test_without_jinja2_it_is_a_clear_error(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    assert command.main(["--only", "stdlib", "--html", str(tmp_path / "x.html")]) == 2
    assert "pip install 'dlbridge[report]'" in capsys.readouterr().err


# --- in a browser ------------------------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed: apt-get install chromium")

# Appended to the page: filters, clicks, and leaves what it saw on the body.
PROBE = """
<script>
addEventListener("error", (event) => { document.body.dataset.error = event.message; });
const timer = setInterval(() => {
  if (document.body.dataset.ready !== "yes") return;
  clearInterval(timer);
  const seen = {};
  const shown = () => document.getElementById("shown").textContent;
  const buttons = () => [...document.querySelectorAll("#map .cell")].map((b) => `${b.dataset.pair}: ${b.textContent}`);
  seen.all = [shown(), ...buttons()];
  const select = document.querySelector("select[name=dtype]");
  select.value = "int8";
  select.dispatchEvent(new Event("change"));
  seen.filtered = [shown(), ...buttons()];
  select.value = "";
  select.dispatchEvent(new Event("change"));
  document.querySelector('[data-pair="numpy to jax"]').click();
  seen.refusal = document.getElementById("detail").textContent;
  document.querySelector('[data-pair="numpy to torch"]').click();
  seen.detail = document.getElementById("detail").textContent;
  document.querySelector("#detail .dot.works").click();
  seen.said = document.getElementById("said").textContent;
  const bars = [...document.querySelectorAll("#cost .bar")];
  seen.bars = bars.length;
  const colour = (one) => getComputedStyle(one).backgroundColor;
  const outcomes = [...document.querySelectorAll(".key .swatch")].map(colour);
  seen.outcomes = new Set(outcomes).size;
  seen.reused = bars.filter((bar) => outcomes.includes(colour(bar))).length;
  const [box] = document.querySelectorAll("#map .cell");
  seen.margin = parseFloat(getComputedStyle(box).paddingLeft);
  seen.sign = getComputedStyle(document.querySelector(".sign")).display;
  seen.cut = document.querySelectorAll(".frame.cut").length;
  seen.wide = document.documentElement.scrollWidth <= innerWidth;
  seen.bold = document.querySelectorAll("#detail b").length;
  document.body.dataset.seen = JSON.stringify(seen);
}, 20);
</script>
"""


def chromium(path, folder, *options):
    command_line = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000"]
    profile = f"--user-data-dir={folder / 'profile'}"
    return subprocess.run(
        [*command_line, profile, *options, path.as_uri()], capture_output=True, text=True, timeout=HANG_S, check=True
    ).stdout


def seen_in(text, folder, *options):
    """What the probe saw on a page."""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    dom = chromium(path, folder, "--dump-dom", *options)
    assert "data-error" not in dom
    return json.loads(html.unescape(re.search(r'data-seen="([^"]*)"', dom).group(1)))


@browser
@pytest.mark.no_sanitizer
def test_filter_and_click_in_chromium(tmp_path):
    seen = seen_in(page(), tmp_path)
    assert seen["all"] == [
        "10 of 10 exchanges: 2 zero-copy, 1 copies, 2 refused, 1 absent, 2 WRONG, 1 CRASHED, 1 HUNG",
        "numpy to torch: 2 1c 1r 1- 2W 1X 1H",
        "numpy to jax: refused",
    ]
    assert seen["filtered"] == [
        "2 of 10 exchanges: 1 zero-copy, 1 refused",
        "numpy to torch: works",
        "numpy to jax: refused",
    ]
    assert "in its own words" in seen["refusal"]
    assert "At fault: torch" in seen["detail"] and NASTY.split("\x00")[0] in seen["detail"]
    assert "works, 500 ns" in seen["said"]
    assert seen["bars"] == 3 and seen["wide"] and seen["bold"] == 0
    assert seen["outcomes"] == 5 and seen["reused"] == 0
    assert seen["margin"] >= 8
    assert (seen["sign"], seen["cut"]) == ("none", 0)


@browser
@pytest.mark.no_sanitizer
def test_narrow_window_says_that_there_is_more(tmp_path):
    consumers = ("torch", "jax", "numpy", "tensorflow", "pyarrow", "onnxruntime", "tvm_ffi", "numba", "cupy", "nd")
    cells = [cell(consumer=name) for name in consumers]
    seen = seen_in(page((*CELLS, *cells)), tmp_path, "--window-size=500,900")
    assert seen["sign"] == "block" and seen["cut"] >= 1 and seen["wide"]


@browser
@pytest.mark.no_sanitizer
def test_picture_in_chromium(tmp_path):
    path, picture = tmp_path / "page.html", tmp_path / "page.png"
    path.write_text(page(), encoding="utf-8")
    chromium(path, tmp_path, f"--screenshot={picture}", "--window-size=1200,900")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size > 20_000
