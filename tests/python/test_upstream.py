"""The reports of docs/upstream: their scripts show what they say, in the versions that they name."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from child_process import HANG_S

pytestmark = pytest.mark.no_sanitizer  # libraries die, in processes of their own

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "upstream"
SCRIPTS = sorted(FOLDER.glob("*/*.py"))
REPORTS = sorted(FOLDER.glob("*/*.md"))
MODULES = {"pytorch": "torch", "pydlpack": "dlpack"}  # where the folder has another name
FIXED = re.compile(r"^\| [^|]+ \| \[[^]]+\]\((?P<script>[\w/]+\.py)\) \| (?P<seen>[^|]+) \| (?P<fixed>[^|]+) \|", re.M)


def name_of(path):
    return path.relative_to(FOLDER).with_suffix("").as_posix()


def module_of(script):
    return MODULES.get(script.parent.name, script.parent.name)


def numbers(version):
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])))


def installed(module):
    return numbers(importlib.metadata.version(importlib.metadata.packages_distributions()[module][0]))


@cache
def fixed():
    """(the versions with it, the first one without it) by script; from the table of what is fixed."""
    rows = FIXED.finditer((FOLDER / "README.md").read_text())
    return {row["script"]: (versions_of(row["seen"]), numbers(row["fixed"])) for row in rows}


def seen_with(report):
    """The versions that a report names."""
    return versions_of(re.search(r"^\| seen with \| (.+) \|$", report.read_text(), re.M)[1])


def versions_of(cell):
    return [numbers(version) for version in cell.split(",")]


def needs(script):
    return sorted(set(re.findall(r"^(?:import|from) (\w+)", script.read_text(), re.M)) - sys.stdlib_module_names)


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_a_report_is_right_about_the_version_that_is_installed(script, tmp_path):
    for module in needs(script):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    version = installed(module_of(script))
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    said = f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    shown = done.returncode == 0
    assert shown == ("as reported" in done.stdout), said
    seen, end = fixed().get(script.relative_to(FOLDER).as_posix()) or (seen_with(script.with_suffix(".md")), None)
    if end is not None and version >= end:
        assert not shown, f"README.md says that it is fixed: {said}"
    elif not shown and version < min(seen):
        pytest.skip(f"not in {version}, which is older than what was reported")
    elif not shown and end is None and version > max(seen):
        pytest.skip(f"gone in {version}: move {name_of(script)} to what is fixed, in README.md")
    else:
        assert shown, said


def test_each_script_has_a_report_or_an_end():
    scripts = {script.relative_to(FOLDER).as_posix() for script in SCRIPTS}
    reports = {report.relative_to(FOLDER).with_suffix(".py").as_posix() for report in REPORTS}
    assert scripts == reports | set(fixed())
    assert not reports & set(fixed())


@pytest.mark.parametrize("path", REPORTS + [FOLDER / script for script in fixed()], ids=name_of)
def test_findings_and_index_lead_to_it(path):
    link = path.relative_to(FOLDER).as_posix()
    assert f"](upstream/{link})" in (DOCS / "conformance.md").read_text()
    assert f"]({link})" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("report", REPORTS, ids=name_of)
def test_a_report_says_what_a_maintainer_asks(report):
    text = report.read_text()
    assert re.match(r"# \S.*: \S", text)
    assert f"| module | `{module_of(report)}` |" in text
    assert f"| reproducer | [{report.stem}.py]({report.stem}.py) |" in text
    assert re.search(r"^\| rule \| .*\]\(https://", text, re.M), "the rule is somewhere to be read"
    parts = re.findall(r"^\*\*(\w+)\.\*\* \S", text, re.M)
    assert parts == ["Expected", "Got", "Impact", "Remedy"]


@pytest.mark.parametrize("report", REPORTS, ids=name_of)
def test_the_example_of_a_report_is_in_its_script(report):
    example = re.search(r"^```python fragment\n(.*?)^```", report.read_text(), re.M | re.S)[1]
    lines = iter(report.with_suffix(".py").read_text().splitlines())
    assert [line for line in example.splitlines() if line not in lines] == []  # in this order: `in` consumes


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_a_script_needs_no_dlbridge(script):
    assert "dlbridge" not in script.read_text()
