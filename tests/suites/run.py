"""Other people's test suites against dlbridge.nd: their checkouts are given, their code is not kept here.

    run.py array-api CHECKOUT [--api-version 2025.12] [-- PYTEST-OPTION...]
    run.py cupy CHECKOUT [FILE...] [-- PYTEST-OPTION...]

CHECKOUT is a clone of data-apis/array-api-tests with its submodule, or of cupy/cupy: nothing in it is built or changed.
The suites need pytest, hypothesis, (array-api) ndindex and pytest-json-report and (cupy) Cython beside dlbridge and
NumPy: without it CuPy's tests of callbacks pass unrun. Arrays are made where dlbridge.nd makes them by default: on a
GPU, or on the host where there is none or CUDA_VISIBLE_DEVICES is empty.

Prints how many of the applicable tests passed and failed, and the failures by cause, and holds them against
`expected/SUITE.toml`, a table of patterns with the reason for each. What a row marks `applicable = false` counts
neither as passed nor as failed, nor do tests that look into CuPy's insides. The exit status is 1 if a test failed that
no row names. Tests that the suite marks as slow are left out; `-- -m ""` runs them, too. What was printed last is kept
in `results/`, a file for each suite and kind of device; docs/ndarray.md has its counts from there.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tomllib  # Python 3.11 and later

HERE = Path(__file__).resolve().parent
FILES_OF_CUPY = "tests/cupy_tests"
NO_TESTS = 5  # pytest's exit status


def expected(suite: str) -> list[dict[str, Any]]:
    path = HERE / "expected" / f"{suite}.toml"
    return list(tomllib.loads(path.read_text())["row"]) if path.exists() else []


def reason_of(row: dict[str, str], table: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The first row whose patterns, of the test's name and of the cause, both match."""
    for known in table:
        named = any(fnmatch.fnmatchcase(row["test"], pattern) for pattern in known.get("tests", ["*"]))
        if named and re.search(known.get("cause", ""), row["cause"]):
            return known
    return None


def run_pytest(checkout: Path, log: Path, arguments: list[str], environment: dict[str, str]) -> int:
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {"DLBRIDGE_SUITE_LOG": str(log), "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "--tb=short",
        "-p",
        "recorder",
        "-p",
        "no:cacheprovider",
    ]
    command += arguments
    before = log.stat().st_size
    done = subprocess.run(command, cwd=checkout, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
    if log.stat().st_size == before and done.returncode != NO_TESTS:
        print(done.stdout[-2000:], file=sys.stderr)  # why no test came to its end
    return done.returncode


def array_api(options: argparse.Namespace, log: Path) -> None:
    environment = {"ARRAY_API_TESTS_MODULE": "dlbridge.nd", "ARRAY_API_TESTS_VERSION": options.api_version}
    run_pytest(options.checkout, log, ["array_api_tests", *options.pytest], environment)


def cupy(options: argparse.Namespace, log: Path) -> None:
    """A process for each file: one that takes the process along takes no other file with it."""
    root = options.checkout / FILES_OF_CUPY
    files = [options.checkout / file for file in options.files] or sorted(root.rglob("test_*.py"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        own = [Path(folder) / f"{number}.jsonl" for number in range(len(files))]
        for found in pool.map(functools.partial(one_of_cupy, options), files, own):
            with log.open("a") as out:
                out.write(found)


def one_of_cupy(options: argparse.Namespace, file: Path, log: Path) -> str:
    """Runs a file; what it has put into its log."""
    log.touch()
    name = str(file.relative_to(options.checkout))
    environment = {"CUPY_CHECKOUT": str(options.checkout), "CUPY_TEST_RANDOM_SUBSAMPLE": str(options.subsample)}
    plugin = ["-p", "cupy_as_nd", "-W", "ignore", "-o", "filterwarnings=", "-m", "not slow"]
    begin = time.monotonic()
    status = run_pytest(options.checkout, log, [*plugin, *options.pytest, name], environment)
    print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    if not log.stat().st_size and status != NO_TESTS:  # which says that all of its tests are slow ones
        return json.dumps({"test": name, "outcome": "not collected", "cause": "the process ended"}) + "\n"
    return log.read_text()


INSIDE = re.compile(r"LooksInside|has no attribute '_[a-z]")  # private names of the library whose suite it is
SUITES = {"array-api": array_api, "cupy": cupy}


def report(suite: str, rows: list[dict[str, str]], worst: int) -> int:
    """Prints the tables; the number of failures that no row expects."""
    last = {row["test"]: row for row in rows}  # a test that fails in its teardown, too, is one
    by_outcome = collections.Counter(row["outcome"] for row in last.values())
    inside = [row for row in last.values() if row["outcome"] != "passed" and INSIDE.search(row["cause"])]
    failed = [row for row in last.values() if row["outcome"] in ("failed", "not collected") and row not in inside]
    table = expected(suite)
    known = {row["test"]: reason_of(row, table) for row in failed}
    outside = {test: found for test, found in known.items() if found is not None and not found.get("applicable", True)}
    failed = [row for row in failed if row["test"] not in outside]
    ran = by_outcome["passed"] + len(failed)
    print(f"{suite}: {by_outcome['passed']} of {ran} applicable tests passed "
          f"({100 * by_outcome['passed'] / max(ran, 1):.1f} %), {len(failed)} failed, {by_outcome['skipped']} skipped; "
          f"not applicable: {len(inside)} look inside, {len(outside)} others")  # fmt: skip
    for kind, tests in (
        ("not applicable", outside),
        ("expected", [row["test"] for row in failed if known[row["test"]]]),
    ):
        for reason, count in collections.Counter(known[test]["reason"] for test in tests).most_common():
            print(f"{count:7,} {kind}: {reason}")
    unexpected = [row for row in failed if known[row["test"]] is None]
    causes = collections.Counter(re.sub(r"0x[0-9a-f]+|\d+", "N", row["cause"])[:140] for row in unexpected)
    for cause, count in causes.most_common(worst):
        example = next(
            row["test"] for row in unexpected if re.sub(r"0x[0-9a-f]+|\d+", "N", row["cause"])[:140] == cause
        )
        print(f"{count:7,} unexpected: {cause}\n{'':8}{example}")
    return len(unexpected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("files", nargs="*", help="cupy: files of the checkout; all of tests/cupy_tests without")
    parser.add_argument("--api-version", default="2025.12", help="array-api: the version of the standard")
    parser.add_argument("--subsample", type=int, default=0, help="cupy: that many of each test's dtypes, by chance")
    parser.add_argument("--jobs", type=int, default=1, help="cupy: files at a time")
    parser.add_argument("--log", type=Path, help="keep the outcomes in this file; given again, it is read, not run")
    parser.add_argument("--worst", type=int, default=40, help="causes to print")
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:cut])
    options.pytest, options.checkout = arguments[cut + 1 :], options.checkout.resolve()
    with tempfile.TemporaryDirectory() as folder:
        log = (options.log or Path(folder) / "log.jsonl").resolve()
        if not log.exists():
            log.touch()
            SUITES[options.suite](options, log)
        rows = [json.loads(line) for line in log.read_text().splitlines()]
    return 1 if report(options.suite, rows, options.worst) else 0


if __name__ == "__main__":
    sys.exit(main())
