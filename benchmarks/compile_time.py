"""What a file with three functions that take arrays costs the compiler, by each route, beside nanobind and pybind11.

    python benchmarks/compile_time.py [--compiler g++] [--runs 7] [--include FOLDER]... [--out FOLDER]

Seconds of user time of `COMPILER -O2 -c`; each run compiles all files in an order shuffled anew, so that a slow phase
of the machine falls on all alike. The figure is the fastest run.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402

SOURCES = HERE / "compile_sources"
FILES = {
    "three functions, `dlbridge/nanobind.h`": SOURCES / "with_nanobind.cpp",
    "three functions, `dlbridge/pybind11.h`": SOURCES / "with_pybind11.cpp",
    "three functions without their module, `dlbridge/arg.h`": SOURCES / "functions_alone.cpp",
    "three functions in C, `dlbridge.h`": SOURCES / "with_c.c",
    "three functions, nanobind's `nb::ndarray`": SOURCES / "peer_nanobind.cpp",
    "three functions, pybind11's `py::array_t`": SOURCES / "peer_pybind11.cpp",
}
HEADERS = ["Python.h", "nanobind/nanobind.h", "pybind11/pybind11.h", "dlbridge/arg.h", "dlbridge/nanobind.h",
           "dlbridge/pybind11.h"]  # fmt: skip


def flags(folders: list[str]) -> list[str]:
    if not folders:
        import dlbridge

        folders = [dlbridge.get_include()]
    folders = [*folders, sysconfig.get_paths()["include"]]
    for name, inside in (("pybind11", "include"), ("nanobind", "include")):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise SystemExit(f"compile_time.py needs {name}: pip install {name}")
        folders.append(str(pathlib.Path(spec.origin).parent / inside))
    return ["-O2", "-fPIC", "-fvisibility=hidden", *(f"-I{folder}" for folder in folders)]


def seconds(compiler: str, options: list[str], source: pathlib.Path, out: str) -> float:
    standard = ["-x", "c", "-std=c99"] if source.suffix == ".c" else ["-std=c++20"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([compiler, *standard, *options, "-c", str(source), "-o", out], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--include", action="append", default=[], help="in place of the installed package's headers")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results")
    given = parser.parse_args()
    options = flags(given.include)
    with tempfile.TemporaryDirectory() as folder:
        files = dict(FILES)
        for header in HEADERS:
            files[f"`#include <{header}>` alone"] = alone = pathlib.Path(folder) / (header.replace("/", "_") + ".cpp")
            alone.write_text(f"#include <{header}>\n", "utf-8")
        times: dict[str, list[float]] = {name: [] for name in files}
        for _ in range(given.runs):
            for name in random.sample(list(files), len(files)):
                times[name].append(seconds(given.compiler, options, files[name], f"{folder}/out.o"))
    peer = min(times["three functions, nanobind's `nb::ndarray`"])
    lines = [
        "| file | s, fastest run | s, median | by nanobind's |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {min(t):.2f} | {statistics.median(t):.2f} | {min(t) / peer:.1f} |" for name, t in times.items()),
    ]
    version = subprocess.run([given.compiler, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    machine = _machine.describe()
    named = [f"{key} {machine[key]}" for key in ("cpu", "cores", "system", "date", "commit")]
    lines = [
        f"# Compile time on {machine['kind']}",
        ", ".join(named) + f", {version}",
        f"Seconds of user time of `{given.compiler} -O2 -c`, {given.runs} runs in a shuffled order.",
        "\n".join(lines),
    ]
    _machine.publish("\n\n".join(lines) + "\n", given.out / f"compile_time-{machine['kind']}.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
