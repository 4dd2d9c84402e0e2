"""What a free-threaded CPython costs a call, and what it gives to many threads:

    python3.13 benchmarks/free_threading.py --free-threaded python3.13t

Both interpreters need NumPy and dlbridge (built for each), and PyTorch where its rows are wanted. The same calls are
timed in a process of each, in turns, so that a slow phase of the machine falls on both; then threads make them at once.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import _machine
import _timing

RESULTS = pathlib.Path(__file__).parent / "results"
GOAL = 1.2


def calls() -> dict[str, Callable[[], object]]:
    import numpy as np
    from dlbridge import asdlpack, convert, nd

    x = np.arange(12.0).reshape(3, 4)
    tensor = asdlpack(x)
    a = nd.asarray(x)
    b = nd.asarray(x)
    tree = {"a": [x, x], "b": (x, 1)}
    return {
        "`lambda: None`": lambda: None,
        "`asdlpack(numpy)`": lambda: asdlpack(x),
        "`asdlpack(nd)`": lambda: asdlpack(a),
        "`tensor.__dlpack__()`": lambda: tensor.__dlpack__(),
        "`numpy.from_dlpack(tensor)`": lambda: np.from_dlpack(tensor),
        "`numpy.from_dlpack(numpy)`, not ours": lambda: np.from_dlpack(x),
        '`convert(numpy, "nd")`': lambda: convert(x, "nd"),
        '`convert({...}, "nd")`, three arrays': lambda: convert(tree, "nd"),
        "`nd.asarray(numpy)`": lambda: nd.asarray(x),
        "`a + b` of nd": lambda: a + b,
        "`a + b` of NumPy, not ours": lambda: x + x,
        "`a += 1` of nd": lambda: a.__iadd__(1),
        "`a[1]` of nd": lambda: a[1],
        "`a[1:, 2] = 0` of nd": lambda: a.__setitem__((slice(1, None), 2), 0),
        "`a.sum()` of nd": lambda: a.sum(),
        "`a @ a.T` of nd": lambda: a @ a.T,
    }


def shared_work() -> dict[str, Callable[[], Callable[[], object]]]:
    """For each row what makes a thread's call: of arrays of its own, or of those that all threads read."""
    import numpy as np
    from dlbridge import asdlpack, nd

    small, large = np.arange(12.0), np.arange(100_000.0)
    nd_small, nd_large = nd.asarray(small), nd.asarray(large)

    # Not a closure: threads would wait for one another at the cell that names the function.
    def of(function: Callable[[Any], object], x: Any) -> Callable[[], Callable[[], object]]:
        return lambda: functools.partial(function, x)

    def own(function: Callable[[Any], object], x: Any) -> Callable[[], Callable[[], object]]:
        return lambda: functools.partial(function, x.copy())

    rows = {
        "`asdlpack(x)`, an array a thread": own(asdlpack, small),
        "`asdlpack(x)`, one array": of(asdlpack, small),
        "`numpy.from_dlpack(x)`, an array a thread": own(np.from_dlpack, small),
        "`numpy.from_dlpack(x)`, one array": of(np.from_dlpack, small),
        "nd `x + x`, 12 elements, an array a thread": own(lambda x: x + x, nd_small),
        "nd `x + x`, 12 elements, one array": of(lambda x: x + x, nd_small),
        "NumPy `x + x`, 12 elements, an array a thread": own(lambda x: x + x, small),
        "NumPy `x + x`, 12 elements, one array": of(lambda x: x + x, small),
        "nd `x + x`, 100,000 elements, one array": of(lambda x: x + x, nd_large),
        "NumPy `x + x`, 100,000 elements, one array": of(lambda x: x + x, large),
        "nd `x.sum()`, 100,000 elements, one array": of(lambda x: x.sum(), nd_large),
        "NumPy `x.sum()`, 100,000 elements, one array": of(lambda x: x.sum(), large),
    }
    try:
        import torch
    except ImportError:
        return rows
    torch.set_num_threads(1)  # of its own: the threads are those of the row
    torch_small, torch_large = torch.from_numpy(small), torch.from_numpy(large)
    return rows | {
        "`torch.from_dlpack(x)` of NumPy's, one array": of(torch.from_dlpack, small),
        "`asdlpack(x)` of PyTorch's, one tensor": of(asdlpack, torch_small),
        "PyTorch `x + x`, 12 elements, one tensor": of(lambda x: x + x, torch_small),
        "PyTorch `x + x`, 100,000 elements, one tensor": of(lambda x: x + x, torch_large),
        "PyTorch `x.sum()`, 100,000 elements, one tensor": of(lambda x: x.sum(), torch_large),
    }


def per_second(prepare: Callable[[], Callable[[], object]], threads: int, seconds: float) -> float:
    """Calls of all threads together, each of which has begun before the clock does."""
    ready, go = threading.Barrier(threads + 1), threading.Event()
    stop = False
    counts = [0] * threads

    def run(number: int) -> None:
        call = prepare()
        count = 0
        ready.wait()
        go.wait()
        while not stop:
            for _ in range(50):
                call()
            count += 50
        counts[number] = count

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    begin = time.perf_counter()
    go.set()
    time.sleep(seconds)
    stop = True
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


def worker(options: argparse.Namespace) -> dict[str, Any]:
    out: dict[str, Any] = {"gil": getattr(sys, "_is_gil_enabled", lambda: True)()}
    if options.worker == "latency":
        chosen = calls()
        with _timing.no_collections():
            counts = {name: _timing.calls_for(call, 150) for name, call in chosen.items()}
            timings = _timing.interleave(chosen, counts, seconds=options.seconds)
        return out | {"rows": {name: timing.best_ns for name, timing in timings.items()}}
    rows = {}
    for name, prepare in shared_work().items():
        rows[name] = {
            threads: max(per_second(prepare, threads, options.seconds / 20) for _ in range(3))
            for threads in options.threads
        }
    return out | {"rows": rows}


def run_worker(python: str, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [python, __file__, "--worker", kind, "--seconds", str(options.seconds), "--threads"]
    done = subprocess.run([*command, *map(str, options.threads)], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def latency_table(ordinary: Mapping[str, float], free: Mapping[str, float]) -> list[str]:
    floor = "`lambda: None`"
    lines = ["| call | with a GIL, ns | free-threaded, ns | ratio |", "| --- | --- | --- | --- |"]
    for name, ns in ordinary.items():
        mark = " **" if free[name] > GOAL * ns and name != floor and "not ours" not in name else ""
        lines.append(f"| {name} | {ns:.0f} | {free[name]:.0f} | {mark}{free[name] / ns:.2f}{mark.strip()} |")
    return lines


def scaling_table(found: Mapping[str, Mapping[str, Mapping[str, float]]], threads: list[int]) -> list[str]:
    head = [f"{label}, {n}" for label in found for n in threads]
    lines = ["| calls, thousands a second | " + " | ".join(head) + " |", "| --- " * (len(head) + 1) + "|"]
    for name in next(iter(found.values())):
        cells = [f"{rows[name][str(n)] / 1000:.4g}" for rows in found.values() for n in threads]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--free-threaded", metavar="PYTHON")
    parser.add_argument("--seconds", type=float, default=6, help="of one turn of the latencies")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2, 4, 16], help="none: latencies only")
    parser.add_argument("--worker", choices=("latency", "scaling"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        json.dump(worker(options), sys.stdout)
        return
    if not options.free_threaded:
        parser.error("--free-threaded names the other interpreter")
    pythons = {"GIL": sys.executable, "free": options.free_threaded}
    best: dict[str, dict[str, float]] = {}
    for _ in range(options.turns):
        for label, python in pythons.items():
            answer = run_worker(python, "latency", options)
            if answer["gil"] != (label == "GIL"):
                parser.error(f"{python}: the GIL is {'on' if answer['gil'] else 'off'}")
            kept = best.setdefault(label, answer["rows"])
            best[label] = {name: min(ns, kept[name]) for name, ns in answer["rows"].items()}
    import dlbridge
    import numpy as np

    shared_work()  # imports what there is
    lines = [
        f"## Latency\n\nThe best round of {options.turns} turns of each interpreter; bold: above the goal, {GOAL}.\n",
        *latency_table(best["GIL"], best["free"]),
    ]
    if options.threads:
        scaling = {label: run_worker(python, "scaling", options)["rows"] for label, python in pythons.items()}
        lines.append("\n## Many threads\n\nAll together, the best of three runs; the number is that of the threads.\n")
        lines += scaling_table(scaling, options.threads)
    versions = {"dlbridge": dlbridge.__version__, "numpy": np.__version__}
    if "torch" in sys.modules:
        versions["torch"] = sys.modules["torch"].__version__
    _machine.publish_page(RESULTS, "free_threading", "Free-threaded CPython beside the ordinary one", versions, lines)


if __name__ == "__main__":
    main()
