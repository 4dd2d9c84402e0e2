#!/usr/bin/env python3
"""Runs the self-test with frameworks of the last three years, and writes docs/versions.md.

python tools/write_selftest.py dist/dlbridge-*.whl              # the self-test in one file, made first
python tools/old_versions.py dlbridge-selftest.pyz --torch-pip "OPTION ..."  # every row: half an hour, 2 GB to download
python tools/old_versions.py dlbridge-selftest.pyz --only jax --python python3.10
python tools/old_versions.py dlbridge-selftest.pyz --write      # the page alone, from the reports that are there

Each row has a virtual environment of its own, which is removed before the next. Reports stay in build/old-versions: a
row whose report is there is not run again. pip says beforehand what it would fetch; a row that is larger than --limit
is skipped, and the page says so. PyPI has PyTorch with CUDA only, some 3 GB with what it needs: its rows want what
pip has to be told to find the builds for the CPU, as PyTorch's installation page has them.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dlbridge.tests import frameworks
from dlbridge.tests._plan import CONVERT, READ
from dlbridge.tests._results import BAD, Cell, Status
from dlbridge.tests.report import _compare
from dlbridge.tests.report._markdown import code, plain

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "versions.md"
REPORTS = ROOT / "build" / "old-versions"
ALWAYS = "stdlib,numpy,ml_dtypes,nd"  # beside the framework of the row, where they are there
RUN_LIMIT_S = 1200


@dataclass(frozen=True)
class Row:
    """One version of a framework; `packages` is what pip is asked for."""

    framework: str  # as --only names it
    title: str
    packages: tuple[str, ...]
    remark: str = ""  # what its numbers come from

    @property
    def label(self) -> str:
        """The framework's name as people write it."""
        return re.sub(r" (today|[\d.]+)$", "", self.title)

    @property
    def name(self) -> str:
        return re.sub(r"[^a-z0-9.]+", "-", self.title.lower())


# Of each framework the oldest first. The last is what the others are compared with: the newest that CI runs, too.
ROWS = (
    Row(
        "numpy",
        "NumPy 1.26",
        ("numpy==1.26.4", "ml_dtypes"),
        "from_dlpack() gives arrays read-only, and takes none that are",
    ),
    Row(
        "numpy",
        "NumPy 2.0",
        ("numpy==2.0.2", "ml_dtypes"),
        "from_dlpack() gives arrays read-only, and takes none that are",
    ),
    Row("numpy", "NumPy today", ("numpy", "ml_dtypes")),
    Row(
        "torch",
        "PyTorch 2.2",
        ("torch==2.2.2+cpu", "numpy==1.26.4"),
        "from_dlpack() never gives back an empty array whose pointer is NULL",
    ),
    Row("torch", "PyTorch 2.6", ("torch==2.6.0+cpu", "numpy"), "no float8 by DLPack"),
    Row("torch", "PyTorch today", ("torch==2.13.0+cpu", "numpy")),
    Row("jax", "JAX 0.4.30", ("jax==0.4.30", "jaxlib==0.4.30", "numpy==1.26.4"), "no float8 by DLPack"),
    Row("jax", "JAX 0.5", ("jax==0.5.3", "jaxlib==0.5.3")),
    Row("jax", "JAX today", ("jax",)),
    Row(
        "tensorflow",
        "TensorFlow 2.16",
        ("tensorflow-cpu==2.16.2",),
        "its arrays speak the buffer protocol, and no DLPack",
    ),
    Row("tensorflow", "TensorFlow today", ("tensorflow-cpu",)),
    Row("pyarrow", "PyArrow 15", ("pyarrow==15.0.2", "numpy==1.26.4"), "has no from_dlpack(); convert needs none"),
    Row("pyarrow", "PyArrow today", ("pyarrow", "numpy")),
    Row(
        "pandas",
        "pandas 2.1",
        ("pandas==2.1.4", "pyarrow==15.0.2", "numpy==1.26.4"),
        "a Series speaks no protocol: convert its to_numpy()",
    ),
    Row("pandas", "pandas today", ("pandas", "pyarrow", "numpy")),
    Row(
        "polars",
        "Polars 1.0",
        ("polars==1.0.0", "numpy==1.26.4"),
        "a Series speaks no protocol: convert its to_numpy()",
    ),
    Row("polars", "Polars today", ("polars", "numpy")),
    Row(
        "onnxruntime",
        "ONNX Runtime 1.17",
        ("onnxruntime==1.17.3", "numpy==1.26.4"),
        "an OrtValue has no DLPack in Python: convert its numpy()",
    ),
    Row("onnxruntime", "ONNX Runtime today", ("onnxruntime", "numpy")),
    Row("cupy", "CuPy 13", ("cupy-cuda12x==13.6.0", "numpy==1.26.4"), "its import alone: its arrays need a GPU"),
)


class Skipped(Exception):
    """Why a row has no result."""


# --- running ---------------------------------------------------------------------------------------------------------


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("[notice]")]
    return lines[-1] if lines else "it said nothing"


def _bytes(url: str) -> int:
    if url.startswith("file://"):
        return Path(urllib.request.url2pathname(url.removeprefix("file://"))).stat().st_size
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as answer:
        return int(answer.headers.get("Content-Length", 0))


def _fetched_mb(pip: list[str], packages: tuple[str, ...]) -> float:
    """What pip would fetch. It resolves to the same wheels below, and says here which."""
    command = [*pip, "install", "-q", "--dry-run", "--ignore-installed", "--report", "-", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Skipped(f"pip cannot find it: {_last_line(done.stderr)}")
    report = json.loads(done.stdout[done.stdout.index("{") :])
    return sum(_bytes(item["download_info"]["url"]) for item in report["install"]) / 1e6


def run(row: Row, pyz: Path, python: str, limit_mb: float, torch_pip: tuple[str, ...] = ()) -> dict:
    """The report of the row, or {"skipped": why}."""
    venv = REPORTS / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    report = REPORTS / f"{row.name}.part"
    try:
        subprocess.run([python, "-m", "venv", str(venv)], check=True)
        interpreter = str(venv / "bin" / "python")
        pip = [interpreter, "-m", "pip", "--disable-pip-version-check"]
        # --dry-run and --report came with pip 23; only wheels, so that nothing is compiled here.
        subprocess.run([*pip, "install", "-q", "pip>=23.1"], check=True, capture_output=True)
        pip += ["--no-cache-dir"]
        packages = ("--only-binary=:all:", *row.packages, *(torch_pip if row.framework == "torch" else ()))
        size_mb = _fetched_mb(pip, packages)
        if size_mb > limit_mb:
            raise Skipped(f"pip would fetch {size_mb:,.0f} MB, above the limit of {limit_mb:,.0f}")
        done = subprocess.run([*pip, "install", "-q", *packages], capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"pip cannot install it: {_last_line(done.stderr)}")
        names = ",".join(dict.fromkeys([*ALWAYS.split(","), row.framework]))
        command = [interpreter, str(pyz), "--plain", "--full", "--only", names, "--limit", str(RUN_LIMIT_S)]
        done = subprocess.run([*command, "--json", str(report)], capture_output=True, text=True)
        print(next((line for line in done.stdout.splitlines() if " works, " in line), "no summary"), flush=True)
        if done.returncode not in (0, 1):
            raise Skipped(f"the self-test could not run: {_last_line(done.stderr)}")
        return {**json.loads(report.read_text(encoding="utf-8")), "fetched_mb": round(size_mb)}
    except (Skipped, subprocess.CalledProcessError, OSError) as error:
        return {"skipped": str(error)}
    finally:
        report.unlink(missing_ok=True)
        shutil.rmtree(venv, ignore_errors=True)


# --- the page --------------------------------------------------------------------------------------------------------

HEAD = """\
# Frameworks of the last three years

What the full self-test found with older versions, each in an environment of its own beside NumPy;
`tools/old_versions.py` makes them and writes this page. An exchange is one array, by one protocol, to one consumer;
[runner.md](runner.md) says what is proved of it. `works` means without a copy.

`worse` counts the exchanges of the framework itself that the newest version in the table makes better: first those of
`asdlpack(x)` and `convert(x, ...)`, then those by a protocol that was prescribed, or by the consumer's own importer.
They stand below with their reasons, in the words of the library that refused. `absent` is an array that the version
cannot make. What only the alignment of the memory decided is not counted. The NumPy of an older version's time stands
beside it, and exchanges with that count, too.

Run with {environment}. No GPU: what needs one was not tried.
"""
_COLUMNS = ("version", "NumPy", "works", "copies", "refused", "wrong", "worse: convert", "worse: others", "remarks")
_RANK = {status: rank for rank, status in enumerate((Status.WORKS, Status.COPIES, Status.REFUSED, Status.ABSENT, *BAD))}
_NAMED = 6
_REASONS = 25


def _load(row: Row) -> tuple[_compare.Report | None, str]:
    """(the report of a row, why it has none)."""
    path = REPORTS / f"{row.name}.json"
    if not path.exists():
        return None, "not run"
    skipped = json.loads(path.read_text(encoding="utf-8")).get("skipped")
    if skipped:
        return None, skipped
    report = _compare.load(str(path))
    absent = report.head["absent"].get(row.framework)
    return (None, f"cannot be imported: {absent}") if absent else (report, "")


def _newest(row: Row) -> Row:
    return [other for other in ROWS if other.framework == row.framework][-1]


def _own(row: Row) -> Callable[[Cell], bool]:
    """Whether an exchange is of the row's framework, at one end at least: what stands beside it has rows of its own."""
    (framework,), _ = frameworks.find([row.framework])
    producers, consumer = {kind.name for kind in framework.types}, framework.label
    return lambda cell: cell.producer in producers or cell.consumer == consumer


def _worse(row: Row, old: _compare.Report, new: _compare.Report | None) -> list[Cell]:
    """The exchanges that the old one makes worse than the new one, and all that are wrong."""
    now = new.table(new.schema) if new else {}
    is_own, found = _own(row), []
    for key, cell in old.table(old.schema).items():
        if not is_own(cell):
            continue
        today = now.get(key)
        fell = today and _RANK[cell.status] > _RANK[today.status] and not _compare.by_chance(cell, today)
        if cell.status in BAD or fell:
            found.append(cell)
    return found


def _is_convert(cell: Cell) -> bool:
    """Whether it is what a user of asdlpack() and convert() sees."""
    return cell.route in (CONVERT, READ) and not cell.asked


def _named(names: Iterable[str]) -> str:
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - _NAMED} more" if len(different) > _NAMED else ""
    return ", ".join(different[:_NAMED]) + more


def _way(cell: Cell) -> str:
    return f"{cell.route} by {cell.asked}" if cell.asked else cell.route


def _essence(reason: str) -> str:
    """A reason without the array that it names, and without numbers."""
    return re.sub(r"\d+", "#", re.sub(r"refused (<.*?>|array\(.*?\)|array\(.*$)(?=:|$)", "refused", reason))


def _details(title: str, cells: list[Cell]) -> Iterator[str]:
    """The reasons, each once, those of convert first."""
    groups: dict[tuple[bool, Status, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((_is_convert(cell), cell.status, _essence(cell.reason)), []).append(cell)
    ordered = sorted(groups.values(), key=lambda group: (not _is_convert(group[0]), -len(group)))
    if not ordered:
        return
    yield from (
        f"## {plain(title)}",
        "",
        "| | result | of | to | by | reason |",
        "| ---: | --- | --- | --- | --- | --- |",
    )
    for group in ordered[:_REASONS]:
        ends = [_named(c.producer for c in group), _named(c.consumer for c in group), _named(map(_way, group))]
        texts = [str(len(group)), group[0].status.value, *ends]
        yield f"| {' | '.join(map(plain, texts))} | {code(group[0].reason)} |"
    if len(ordered) > _REASONS:
        yield f"| {sum(map(len, ordered[_REASONS:]))} | | | | | {len(ordered) - _REASONS} reasons more |"
    yield ""


def _line(row: Row) -> tuple[str, list[str]]:
    """(the row of the table, its details)."""
    report, why = _load(row)
    if report is None:
        return f"| {row.title} | | | | | | | | {plain(why)} |", []
    newest = _newest(row)
    cells = _worse(row, report, None if newest is row else _load(newest)[0])
    counts = Counter(cell.status for cell in report.cells)
    versions = report.head["versions"]
    numbers = [counts[status] for status in (Status.WORKS, Status.COPIES, Status.REFUSED)]
    numbers.append(sum(counts[status] for status in BAD))
    if newest is not row:
        fell = [cell for cell in cells if cell.status not in BAD]
        numbers += [sum(map(_is_convert, fell)), len(fell) - sum(map(_is_convert, fell))]
    texts = [f"{number:,}" for number in numbers] + [""] * (6 - len(numbers))
    title = f"{row.label} {versions[row.framework]}"
    texts = [title, "" if row.framework == "numpy" else versions.get("numpy", "none"), *texts]
    texts.append("; ".join(filter(None, [row.remark, report.head.get("note")])))
    return f"| {' | '.join(map(plain, texts))} |", list(_details(title, cells))


def page() -> str:
    """The table and its details, of the reports that are there."""
    lines, details, environment = [], [], "nothing yet"
    for row in ROWS:
        line, more = _line(row)
        lines.append(line)
        details += more
        report, _ = _load(row)
        if report:
            head = report.head
            machine = f"{head['platform']}, in {head['started'][:7]}"
            environment = f"dlbridge {head['dlbridge']}, Python {head['python']}, {machine}"
    header = [f"| {' | '.join(_COLUMNS)} |", "| --- | --- |" + " ---: |" * 6 + " --- |"]
    return "\n".join([HEAD.format(environment=environment), *header, *lines, "", *details]).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="The self-test with frameworks of the last three years.")
    parser.add_argument("pyz", type=Path, help="made by tools/write_selftest.py")
    parser.add_argument(
        "--python", default=sys.executable, help="the interpreter; the old wheels are for 3.10 and 3.11"
    )
    parser.add_argument("--only", metavar="NAME,...", help="only the rows of these frameworks")
    parser.add_argument(
        "--torch-pip", metavar="OPTIONS", default="", help="of pip, to find PyTorch's builds for the CPU"
    )
    parser.add_argument("--limit", type=float, default=1000, metavar="MB", help="skip a row for which pip fetches more")
    parser.add_argument("--write", action="store_true", help="write the page of what is there; run nothing")
    options = parser.parse_args(arguments)
    REPORTS.mkdir(parents=True, exist_ok=True)
    for row in ROWS:
        out = REPORTS / f"{row.name}.json"
        if options.write or out.exists() or (options.only and row.framework not in options.only.split(",")):
            continue
        print(f"{row.title}: ", end="", flush=True)
        found = run(row, options.pyz.resolve(), options.python, options.limit, tuple(shlex.split(options.torch_pip)))
        if "skipped" in found:
            print(found["skipped"], flush=True)
        out.write_text(json.dumps(found), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
