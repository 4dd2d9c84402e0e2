"""The page of --html: self-contained, and alive in a real browser."""

import io
import re
import shutil
import subprocess

import pytest

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
  seen.bars = document.querySelectorAll("#cost .bar").length;
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
        [*command_line, profile, *options, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    ).stdout


@browser
@pytest.mark.no_sanitizer
def test_filter_and_click_in_chromium(tmp_path):
    import html
    import json

    path = tmp_path / "page.html"
    path.write_text(page().replace("</body>", PROBE + "</body>"), encoding="utf-8")
    dom = chromium(path, tmp_path, "--dump-dom")
    assert "data-error" not in dom
    seen = json.loads(html.unescape(re.search(r'data-seen="([^"]*)"', dom).group(1)))
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


@browser
@pytest.mark.no_sanitizer
def test_picture_in_chromium(tmp_path):
    path, picture = tmp_path / "page.html", tmp_path / "page.png"
    path.write_text(page(), encoding="utf-8")
    chromium(path, tmp_path, f"--screenshot={picture}", "--window-size=1200,900")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size > 20_000
