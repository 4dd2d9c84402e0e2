"""Host time of small calls of dlbridge.nd on a GPU, against PyTorch and CuPy, interleaved in one process.

    python benchmarks/small_calls.py [--seconds 20] [--out FOLDER]
    python benchmarks/small_calls.py -k fft|linalg|all|NAME ...    transforms and decompositions, by size

The arrays have 1000 elements: the kernels take less than their launches, and what is timed is what the host does until
a call returns. Imports and first calls are timed in processes of their own.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _library_rows  # noqa: E402
import _machine  # noqa: E402
from _timing import Call, measure  # noqa: E402
from gpu import OURS, libraries  # noqa: E402

GOALS_US = {
    "a + b": 3.2,
    "a * 2": 3.2,
    "exp": 3.2,
    "add(out=)": 3.0,
    "sum": 3.5,
    "empty": 0.3,
    "slice": 0.2,
    "reshape": 0.2,
    "RawKernel": 3.0,
}
IMPORTS = {OURS: "import dlbridge.nd", "torch": "import torch", "cupy": "import cupy"}
FIRST = {
    OURS: "import dlbridge.nd as m; a = m.zeros(100, device='cuda'); m.cuda.Device().synchronize()",
    "torch": "import torch as m; a = m.zeros(100, device='cuda'); m.cuda.synchronize()",
    "cupy": "import cupy as m; a = m.zeros(100); m.cuda.Device().synchronize()",
}
SOURCE = 'extern "C" __global__ void scale(float* x, float f, int n) { int i = threadIdx.x; if (i < n) x[i] *= f; }'


def calls_of(name: str, m: Any) -> dict[str, Call]:
    """The calls of one library."""
    if name == "torch":
        a, b = m.rand(1000, device="cuda"), m.rand(1000, device="cuda")
    elif name == OURS:
        a, b = (m.random.random(1000, dtype="float32", device="cuda") for _ in range(2))
    else:
        a, b = (m.random.random(1000, dtype=m.float32) for _ in range(2))
    out = a + b
    empty: Call = (lambda: m.empty(1000, device="cuda")) if name == "torch" else (lambda: m.empty(1000))
    calls: dict[str, Call] = {
        "a + b": lambda: a + b,
        "a * 2": lambda: a * 2,
        "exp": lambda: m.exp(a),
        "add(out=)": lambda: m.add(a, b, out=out),
        "sum": lambda: a.sum(),
        "empty": empty,
        "slice": lambda: a[2:500],
        "reshape": lambda: a.reshape(10, 100),
    }
    if name != "torch":
        import numpy as np

        kernel = m.RawKernel(SOURCE, "scale")
        factor, count = np.float32(1.0), np.int32(1000)
        calls["RawKernel"] = lambda: kernel((1,), (1024,), (a, factor, count))
    return calls


def in_new_process(code: str, timed: str, repeat: int = 3) -> float | None:
    """Best seconds of `timed` after `code`, in a fresh interpreter."""
    script = f"{code}\nimport time; t = time.perf_counter(); {timed}; print(time.perf_counter() - t)"
    best = None
    for _ in range(repeat):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            return None
        seconds = float(done.stdout.split()[-1])
        best = seconds if best is None else min(best, seconds)
    return best


def by_size(modules: dict[str, Any], options: argparse.Namespace) -> int:
    """The table of _library_rows.py. 1 where a result differs."""
    kind = _machine.describe()["kind"]
    lines = _library_rows.table(modules, options.k, options.seconds)
    head = [
        f"# {options.k} on {kind}",
        "",
        "Microseconds a call, the median of rounds that wait for the device at their end, interleaved in one process. "
        "float32 and complex64. ratio: the faster peer's time by ours.",
        "",
    ]
    _machine.publish("\n".join([*head, *lines]) + "\n", options.out / f"{options.k}-{kind}.md")
    return int(any(not line.endswith(("| same |", "| check |", "--- |")) for line in lines))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results")
    parser.add_argument("-k", metavar="ROWS", help="fft, linalg, all, or functions by name and comma, by size instead")
    options = parser.parse_args(arguments)
    modules = libraries()
    if options.k:
        return by_size(modules, options)
    calls = {f"{name}/{call}": f for name, m in modules.items() for call, f in calls_of(name, m).items()}
    calls["floor"] = lambda: None
    timings = measure(calls, seconds=options.seconds)
    rows = []
    for call, goal in GOALS_US.items():
        us = {n: timings[f"{n}/{call}"].median_ns / 1e3 for n in modules if f"{n}/{call}" in timings}
        best = {n: timings[f"{n}/{call}"].best_ns / 1e3 for n in us}
        peers = [v for n, v in us.items() if n != OURS]
        rows.append(
            {
                "call": call,
                "goal_us": goal,
                "median_us": us,
                "best_us": best,
                "met": us[OURS] <= goal,
                "speed_ratio": min(peers) / us[OURS] if peers else None,
            }
        )
    starts = {
        "import": {n: in_new_process("", IMPORTS[n]) for n in modules},
        "first (a[:5] * 2).sum()": {n: in_new_process(FIRST[n], "(a[:5] * 2).sum().item()") for n in modules},
    }
    document = {
        "benchmark": "small_calls",
        "machine": _machine.describe(),
        "rows": rows,
        "seconds": starts,
        "floor_us": statistics.median([timings["floor"].median_ns]) / 1e3,
    }
    text = markdown(document, list(modules)) + "\n"
    _machine.publish(text, options.out / f"small_calls-{document['machine']['kind']}.md")
    return 0


def markdown(document: dict[str, Any], names: list[str]) -> str:
    """The tables as they are read."""
    lines = [
        f"# Small calls on {document['machine']['kind']}",
        "",
        f"Microseconds of host time a call through a lambda (an empty one: {document['floor_us']:.2f}), median of "
        "bursts, interleaved in one process; 1000 float32 elements.",
        "",
        "| call | " + " | ".join(names) + " | goal | met | ratio |",
        "| --- |" + " ---: |" * (len(names) + 3),
    ]
    for row in document["rows"]:
        cells = [f"{row['median_us'][n]:.2f}" if n in row["median_us"] else "-" for n in names]
        ratio = f"{row['speed_ratio']:.2f}" if row["speed_ratio"] else "-"
        lines.append(
            f"| {row['call']} | " + " | ".join(cells) + f" | {row['goal_us']} | "
            f"{'yes' if row['met'] else 'NO'} | {ratio} |"
        )
    lines += [
        "",
        "Seconds, best of three fresh processes:",
        "",
        "| what | " + " | ".join(names) + " |",
        "| --- |" + " ---: |" * len(names),
    ]
    for what, values in document["seconds"].items():
        cells = [f"{values[n]:.3f}" if values.get(n) is not None else "-" for n in names]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
