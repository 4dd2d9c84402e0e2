"""Kernels of dlbridge.nd against PyTorch and CuPy on one GPU, interleaved in one process, as GB/s and ratios.

    python benchmarks/gpu.py [--rows sum,add] [--seconds 3] [--out FOLDER]

Every contender works on the legacy default stream, and CUDA events there time it: one call between two events, the
contenders in an order shuffled anew in each round, the median of the rounds. Before a row is timed its values are
compared with PyTorch's. The arrays are shared memory: PyTorch makes them, the others take them by DLPack.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import re
import statistics
import sys
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
from _gpu_rows import Call, Row, cliff_rows, main_rows  # noqa: E402

OURS = "dlbridge"
TO_PEER = "device to another device, 256 MiB"


def libraries() -> dict[str, Any]:
    """The modules under test; a peer that is absent is left out."""
    import dlbridge.nd as nd
    import torch

    found: dict[str, Any] = {OURS: nd, "torch": torch}
    try:
        import cupy

        found["cupy"] = cupy
    except ImportError:
        pass
    return found


def make_inputs(row: Row, torch: Any) -> dict[str, Any]:
    """PyTorch's tensors for a row, random."""
    made = {}
    generator = torch.Generator(device="cuda").manual_seed(7)
    for name, (dtype, shape) in row.inputs.items():
        if dtype == "index":
            made[name] = torch.randint(0, row.inputs["a"][1][0], shape, device="cuda", generator=generator)
        elif dtype in ("float32", "float64", "float16", "bfloat16"):
            made[name] = torch.empty(shape, device="cuda", dtype=getattr(torch, dtype)).normal_(generator=generator)
        elif dtype == "complex64":
            made[name] = torch.randn(shape, device="cuda", dtype=torch.complex64, generator=generator)
        elif dtype == "bool":
            made[name] = torch.randint(0, 2, shape, device="cuda", dtype=torch.uint8, generator=generator).bool()
        else:
            made[name] = torch.randint(0, 50, shape, device="cuda", dtype=getattr(torch, dtype), generator=generator)
    return made


def take(library: str, modules: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """The same memory as arrays of a library."""
    if library == "torch":
        return tensors
    return {n: modules[library].from_dlpack(t) for n, t in tensors.items()}


def build(row: Row, modules: dict[str, Any], tensors: dict[str, Any]) -> tuple[dict[str, Call], dict[str, str]]:
    """The calls that work, and why others do not."""
    calls: dict[str, Call] = {}
    refused: dict[str, str] = {}
    for library, builder in row.build.items():
        if library not in modules:
            refused[library] = "absent"
            continue
        try:
            arrays = take(library, modules, tensors)
            call = builder(modules[library], arrays.get)
            call()
            calls[library] = call
        except Exception as error:  # a peer that cannot do it is part of the result
            message = re.sub(r"\S*/\S*\s?", "", str(error).split("\n")[0])  # without files of that machine
            refused[library] = f"{type(error).__name__}: {message}".strip(": ")[:100]
    return calls, refused


def compare(row: Row, calls: dict[str, Call], torch: Any) -> str:
    """'' where our values are PyTorch's."""
    if not row.check or OURS not in calls or "torch" not in calls:
        return ""
    ours = torch.from_dlpack(calls[OURS]())
    theirs = calls["torch"]()
    if ours.shape != theirs.shape:
        return f"shape {tuple(ours.shape)} instead of {tuple(theirs.shape)}"
    if ours.numel() > (1 << 30):
        ours, theirs = ours.view(-1)[-(1 << 28) :], theirs.view(-1)[-(1 << 28) :]
    if not ours.dtype.is_floating_point and not ours.dtype.is_complex:
        return "" if bool((ours == theirs).all()) else "values differ"
    error = ((ours - theirs).abs() / (theirs.abs().clamp(min=1.0))).max().item()
    return "" if error <= row.tolerance else f"relative error {error:.3g}"


def time_row(
    calls: dict[str, Call], torch: Any, seconds: float, counts: dict[str, int] | None = None, least: int = 10
) -> dict[str, list[float]]:
    """Milliseconds of single calls, or of one of `counts` calls in a row, by contender; `least` rounds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    shuffle = random.Random(1).shuffle
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stop = time.perf_counter() + seconds
    for sweep in range(400):
        if sweep >= least and time.perf_counter() > stop:
            break
        shuffle(order)
        for name in order:
            call, count = calls[name], counts[name] if counts else 1
            begin.record()
            for _ in range(count):
                result = call()
            end.record()
            end.synchronize()
            del result
            if sweep >= 2:
                times[name].append(begin.elapsed_time(end) / count)
    return times


def run_row(row: Row, modules: dict[str, Any], seconds: float) -> dict[str, Any]:
    """One row of the document."""
    torch = modules["torch"]
    tensors = make_inputs(row, torch)
    calls, refused = build(row, modules, tensors)
    wrong = compare(row, calls, torch)
    times = time_row(calls, torch, seconds)
    medians = {name: statistics.median(t) for name, t in times.items()}
    result: dict[str, Any] = {"key": row.key, "call": row.title, "goal": row.goal, "refused": refused, "wrong": wrong}
    result["ms"] = medians
    result["best_ms"] = {name: min(t) for name, t in times.items()}
    if row.moved:
        result["gb_s"] = {name: row.moved / ms / 1e6 for name, ms in medians.items()}
    peers = {n: ms for n, ms in medians.items() if n != OURS}
    if OURS in medians and peers:
        result["speed_ratio"] = min(peers.values()) / medians[OURS]
    if OURS in medians and row.goal is not None:
        result["met"] = result["gb_s"][OURS] >= row.goal if row.moved else medians[OURS] <= row.goal
    return result


def transfers(modules: dict[str, Any]) -> list[dict[str, Any]]:
    """Pageable host memory, both ways, and another GPU's where there are two: 256 MiB; GB/s by the host's clock."""
    import numpy as np

    torch, nd = modules["torch"], modules[OURS]
    host = np.random.default_rng(3).random(1 << 26, dtype=np.float32)
    device = torch.from_numpy(host).cuda()
    ours = nd.from_dlpack(device)
    into = np.empty_like(host)
    into_tensor = torch.from_numpy(into)
    calls: dict[str, dict[str, Call]] = {
        "host to device, pageable, 256 MiB": {
            OURS: lambda: nd.asarray(host, device="cuda"),
            "torch": lambda: torch.from_numpy(host).cuda(),
        },
        "device to host, pageable, 256 MiB": {OURS: lambda: nd.asnumpy(ours), "torch": lambda: device.cpu()},
        "device to host, into an array, 256 MiB": {
            OURS: lambda: nd.asnumpy(ours, out=into),
            "torch": lambda: into_tensor.copy_(device),
        },
    }
    if "cupy" in modules:
        cupy = modules["cupy"]
        theirs = cupy.from_dlpack(device)
        calls["host to device, pageable, 256 MiB"]["cupy"] = lambda: cupy.asarray(host)
        calls["device to host, pageable, 256 MiB"]["cupy"] = lambda: cupy.asnumpy(theirs)
        calls["device to host, into an array, 256 MiB"]["cupy"] = lambda: cupy.asnumpy(theirs, out=into)
    devices = range(torch.cuda.device_count())
    if len(devices) > 1:
        calls[TO_PEER] = {
            OURS: lambda: nd.asarray(ours, device="cuda:1"),
            "torch": lambda: device.to("cuda:1"),
        }

    def settle() -> None:
        for number in devices:
            torch.cuda.synchronize(number)

    rows = []
    for title, contenders in calls.items():
        into.fill(0)
        wrong = "" if np.array_equal(nd.asnumpy(contenders[OURS]()), host) else "values differ"
        times: dict[str, list[float]] = {n: [] for n in contenders}
        for sweep in range(9):
            for name, call in contenders.items():
                settle()
                begin = time.perf_counter()
                result = call()
                settle()
                if sweep:
                    times[name].append((time.perf_counter() - begin) * 1e3)
                del result
        ms = {n: statistics.median(t) for n, t in times.items()}
        goal = 385.0 if title == TO_PEER else 30.0 if title.startswith("host") else 28.0
        speed = {n: (1 << 28) / v / 1e6 for n, v in ms.items()}
        rows.append(
            {
                "key": title,
                "call": title,
                "goal": goal,
                "ms": ms,
                "gb_s": speed,
                "refused": {},
                "wrong": wrong,
                "best_ms": {n: min(t) for n, t in times.items()},
                "speed_ratio": min(v for n, v in ms.items() if n != OURS) / ms[OURS],
                "met": speed[OURS] >= goal,
            }
        )
    return rows


def _cell(row: dict[str, Any], name: str) -> str:
    if name not in row["ms"]:
        return "-"
    return f"{row['gb_s'][name]:,.0f}" if "gb_s" in row else f"{row['ms'][name]:.3f} ms"


def markdown(document: dict[str, Any]) -> str:
    """The tables as they are read."""
    lines = [
        f"# Kernels on {document['machine']['kind']}",
        "",
        ", ".join(f"{k} {v}" for k, v in document["versions"].items()),
        "",
        "GB/s of the bytes that must be read and written (or ms), median of single calls between CUDA events; "
        "all contenders interleaved in one process on shared inputs. 'ratio' is the speed against the fastest peer.",
        "",
    ]
    for title, rows in document["tables"].items():
        lines += [
            f"## {title}",
            "",
            "| call | dlbridge | torch | cupy | goal | met | ratio |",
            "| --- | ---: | ---: | ---: | ---: | --- | ---: |",
        ]
        for row in rows:
            met = {True: "yes", False: "NO"}.get(row.get("met"), "-")  # type: ignore[arg-type]
            ratio = f"{row['speed_ratio']:.2f}" if "speed_ratio" in row else "-"
            note = f" **WRONG: {row['wrong']}**" if row["wrong"] else ""
            note += "".join(f" ({n}: {why})" for n, why in row["refused"].items() if why != "absent")
            goal = "-" if row["goal"] is None else f"{row['goal']:g}"
            lines.append(
                f"| {row['call']}{note} | {_cell(row, OURS)} | {_cell(row, 'torch')} | {_cell(row, 'cupy')} "
                f"| {goal} | {met} | {ratio} |"
            )
        ratios = [r["speed_ratio"] for r in rows if "speed_ratio" in r]
        lines += ["", f"Worst ratio: {min(ratios):.2f}" if ratios else "", ""]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", help="comma-separated keys; all by default")
    parser.add_argument("--seconds", type=float, default=1.0, help="time to measure, a row")
    parser.add_argument("--no-cliffs", action="store_true", help="the main table only")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    options = parser.parse_args(arguments)
    modules = libraries()
    wanted = options.rows.split(",") if options.rows else None
    tables: dict[str, list[dict[str, Any]]] = {}
    plans = {
        "The main table": main_rows(),
        "Axes, layouts and dtypes": [] if options.no_cliffs else list(cliff_rows()),
    }
    for title, rows in plans.items():
        tables[title] = []
        for row in rows:
            if wanted is not None and row.key not in wanted:
                continue
            try:
                tables[title].append(run_row(row, modules, options.seconds))
            except Exception as error:
                print(f"{row.key}: {type(error).__name__}: {error}", file=sys.stderr)
            modules["torch"].cuda.empty_cache()
    if wanted is None:
        tables["Transfers"] = transfers(modules)
    document = {
        "benchmark": "gpu",
        "machine": _machine.describe(),
        "versions": {n: getattr(m, "__version__", "-") for n, m in modules.items() if n != OURS},
        "tables": tables,
    }
    _machine.publish(markdown(document) + "\n", options.out / f"gpu-{document['machine']['kind']}.md")
    return 1 if any(r["wrong"] for rows in tables.values() for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
