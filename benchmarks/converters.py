"""The C++ converters against each framework's own route, and what the headers cost a translation unit.

    cmake --preset release -DDLBRIDGE_TESTS=OFF -DDLBRIDGE_BENCHMARKS=ON -DDLBRIDGE_FRAMEWORKS_PYTHON=$(which python)
    cmake --build --preset release --target bench_converters
    python benchmarks/converters.py build/release [--out FOLDER]

Exits 1 when a header costs more than its goal.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import subprocess
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402

ROOT = HERE.parent
HEADER_GOAL_S = 0.3
CHECKED = "of a checked view"
VIEW_GOAL_NS = 5.0
# What about any C++ file includes before the SDK comes into it.
USUAL = ("cstdint", "memory", "string", "utility", "vector")
HEADERS = ("tensor_view.h", "check.h", "managed.h", "converter.h", "converters/std.h")
REPETITIONS = 9


def run_benchmarks(program: pathlib.Path) -> list[dict[str, Any]]:
    """The cases in order, each with the best time of every route."""
    command = [
        str(program),
        "--benchmark_format=json",
        f"--benchmark_repetitions={REPETITIONS}",
        "--benchmark_min_time=0.02",
        "--benchmark_enable_random_interleaving=true",
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    times: dict[str, dict[str, list[float]]] = {}
    for run in json.loads(output)["benchmarks"]:
        if run["run_type"] == "iteration":
            case, route = run["run_name"].rsplit("/", 1)
            times.setdefault(case, {}).setdefault(route, []).append(run["cpu_time"])
    cases = []
    for case, routes in times.items():
        ordered = {r: {"best_ns": min(t), "median_ns": sorted(t)[len(t) // 2]} for r, t in routes.items()}
        peers = {r: t["best_ns"] for r, t in ordered.items() if r != "ours"}
        fastest = min(peers, key=peers.__getitem__, default=None)
        ratio = ordered["ours"]["best_ns"] / peers[fastest] if fastest and "ours" in ordered else None
        made = {"case": case, "routes": ordered, "reference": fastest, "ratio": ratio}
        if case.endswith(CHECKED) and fastest and "ours" in ordered:
            made["met"] = ordered["ours"]["best_ns"] - peers[fastest] <= VIEW_GOAL_NS
        cases.append(made)
    return sorted(cases, key=lambda c: c["case"].lower())  # the program runs them in a shuffled order


def compile_seconds(compiler: str, includes: list[str], folders: list[pathlib.Path]) -> float:
    """Processor time of the compiler for a file that includes these and nothing else; the best of some runs."""
    source = "".join(f"#include <{name}>\n" for name in includes)
    command = [compiler, "-std=c++20", "-O2", "-c", "-x", "c++", "-", "-o", "/dev/null"]
    command += [f"-I{folder}" for folder in folders]
    times = []
    for _ in range(REPETITIONS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, input=source, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def header_costs(compiler: str, dlpack: pathlib.Path) -> list[dict[str, Any]]:
    folders = [ROOT / "bridge" / "include", dlpack]
    empty = compile_seconds(compiler, [], folders)
    usual = compile_seconds(compiler, list(USUAL), folders)
    rows = [{"header": "the usual: " + " ".join(USUAL), "alone_s": usual - empty, "added_s": None}]
    for header in HEADERS:
        name = f"dlbridge/{header}"
        alone = compile_seconds(compiler, [name], folders) - empty
        added = compile_seconds(compiler, [*USUAL, name], folders) - usual
        rows.append({"header": name, "alone_s": alone, "added_s": added, "met": added <= HEADER_GOAL_S})
    return rows


def _met(row: dict[str, Any]) -> str:
    return "-" if "met" not in row else "yes" if row["met"] else "NO"


def markdown(document: dict[str, Any]) -> str:
    machine = document["machine"]
    lines = [f"# C++ converters on {machine['kind']}", ""]
    lines.append(", ".join(f"{k} {v}" for k, v in machine.items() if v is not None and k not in ("kind", "python")))
    lines += [
        "",
        f"ns of processor time for one conversion and the end of its result, best of {REPETITIONS} repetitions in a "
        "shuffled order. The reference is the framework's own route, the fastest where there are several; 'ours' "
        f"validates, the others mostly do not. {CHECKED.capitalize()} nothing is validated again: at most "
        f"{VIEW_GOAL_NS:g} ns more than the bare constructor is the goal.",
        "",
        "| conversion | ours, ns | reference, ns | ratio | more, ns | met | other routes, ns |",
        "| --- | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    for case in document["cases"]:
        routes = {r: t["best_ns"] for r, t in case["routes"].items()}
        reference = case["reference"]
        others = ", ".join(f"`{r}` {t:,.1f}" for r, t in routes.items() if r not in ("ours", reference))
        cells = [
            case["case"],
            f"{routes['ours']:,.1f}" if "ours" in routes else "-",
            f"`{reference}` {routes[reference]:,.1f}" if reference else "-",
            "-" if case["ratio"] is None else f"{case['ratio']:.2f}",
            f"{routes['ours'] - routes[reference]:.1f}" if reference and "ours" in routes else "-",
            _met(case),
            others or "-",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "## What the headers cost",
        "",
        f"Seconds of processor time of {document['compiler']} with `-O2`, for a file that includes nothing else "
        f"(alone), and added to one that has the usual standard headers (goal <= {HEADER_GOAL_S:g} s).",
        "",
        "| header | alone, s | added, s | met |",
        "| --- | ---: | ---: | --- |",
    ]
    for row in document["headers"]:
        added = "-" if row["added_s"] is None else f"{row['added_s']:.2f}"
        lines.append(f"| `{row['header']}` | {row['alone_s']:.2f} | {added} | {_met(row)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a build folder with bench_converters in it")
    parser.add_argument("--compiler", default="g++", help="for the cost of the headers")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results")
    args = parser.parse_args()
    machine = _machine.describe()
    document = {
        "machine": machine,
        "compiler": subprocess.run(
            [args.compiler, "--version"], capture_output=True, text=True, check=True
        ).stdout.splitlines()[0],
        "cases": run_benchmarks(args.build / "benchmarks" / "cpp" / "bench_converters"),
        "headers": header_costs(args.compiler, args.build / "dlpack_include"),
    }
    _machine.publish(markdown(document), args.out / f"converters-{machine['kind']}.md")
    return 0 if all(row.get("met", True) for row in (*document["headers"], *document["cases"])) else 1


if __name__ == "__main__":
    sys.exit(main())
