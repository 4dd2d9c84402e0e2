"""Latency of dlbridge's calls against its peers, interleaved in one process.

    python benchmarks/latency.py [--rows numpy,torch] [--seconds 30] [--quick] [--out FOLDER]

See benchmarks/README.md for the method and for how to read the tables.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
import _report  # noqa: E402
from _peers import Environment  # noqa: E402
from _rows import OURS, ROWS, Row  # noqa: E402
from _timing import Call, Timing, measure  # noqa: E402

FLOOR = "empty lambda"


class Plan:
    """The calls to time, by (row, contender), and the reasons for those that cannot be."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {FLOOR: lambda: None}
        self.roles: dict[str, dict[str, str]] = {}
        self.refused: dict[str, dict[str, str]] = {}
        self.rows: list[Row] = []
        self.rows_absent: dict[str, str] = {}

    def add_row(self, row: Row, env: Environment) -> None:
        missing = [name for name in row.needs if env.get(name) is None]
        if missing:
            self.rows_absent[row.title] = f"no {', '.join(missing)}"
            return
        self.rows.append(row)
        self.roles[row.key] = {}
        self.refused[row.key] = {}
        for contender in row.contenders(env):
            absent = [name for name in contender.needs if env.get(name) is None]
            if absent:
                self.refused[row.key][contender.name] = f"absent: {', '.join(absent)}"
                continue
            try:
                call = contender.build()
                call()
            except Exception as error:  # a peer that cannot take the object is part of the result
                first = (str(error).splitlines() or [""])[0]
                self.refused[row.key][contender.name] = f"{type(error).__name__}: {first}"[:120]
                continue
            self.roles[row.key][contender.name] = contender.role
            self.calls[f"{row.key}/{contender.name}"] = call

    def timings_of(self, row: Row, timings: dict[str, Timing]) -> dict[str, Timing]:
        return {name: timings[f"{row.key}/{name}"] for name in self.roles[row.key]}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    keys = [row.key for row in ROWS]
    parser.add_argument("--rows", help=f"comma-separated, of: {', '.join(keys)}")
    parser.add_argument("--seconds", type=float, default=40.0, help="time to measure, in all")
    parser.add_argument("--quick", action="store_true", help="4 seconds: a smoke run, not a result")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is not met")
    options = parser.parse_args(arguments)
    options.keys = options.rows.split(",") if options.rows else keys
    unknown = sorted(set(options.keys) - set(keys))
    if unknown:
        parser.error(f"no such rows: {', '.join(unknown)}; there are {', '.join(keys)}")
    if options.quick:
        options.seconds = 4.0
    return options


def run(keys: list[str], seconds: float) -> dict[str, object]:
    """Measures the rows and returns the document that is written."""
    env = Environment()
    plan = Plan()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in ROWS:
            if row.key in keys:
                plan.add_row(row, env)
        timings = measure(plan.calls, seconds=seconds)
    floor = timings[FLOOR]
    return {
        "benchmark": "latency",
        "machine": _machine.describe(),
        "versions": env.versions(),
        "seconds": seconds,
        "floor": {"best_ns": floor.best_ns, "median_ns": floor.median_ns},
        "rows": [
            _report.summarise(row, plan.timings_of(row, timings), plan.roles[row.key], floor) for row in plan.rows
        ],
        "rows_absent": plan.rows_absent,
        "refused": {key: names for key, names in plan.refused.items() if names},
        "absent": env.absent,
    }


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    document = run(options.keys, options.seconds)
    text = _report.markdown(document)
    machine = document["machine"]
    assert isinstance(machine, dict)
    version = ".".join(str(machine["python"]).split(".")[:2])
    _machine.publish(text, options.out / f"latency-{machine['kind']}-py{version}.md")
    rows = document["rows"]
    assert isinstance(rows, list)
    failed = [r["call"] for r in rows if r.get("met") is False or OURS not in r["timings"]]
    if options.check and failed:
        print("goals not met: " + "; ".join(failed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
