"""Small matrices on a GPU: nd.linalg by its own kernel, by NVIDIA's libraries, and PyTorch, a round of each in turn.

    python benchmarks/small_matrices.py [--out FOLDER]

See benchmarks/README.md for the method. Needs PyTorch and cuSOLVER.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from dlbridge import nd
from dlbridge.nd import _device_linalg

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
from _peers import Environment  # noqa: E402

SIZES = (4, 8, 16, 24, 32, 48, 64, 80, 100, 119)
DTYPES, BATCHES = ("float32", "float64", "complex128"), (1, 100, 5000)
MOST_ELEMENTS, ROUNDS, CALLS = 2 * 10**7, 4, 5
ALWAYS, NEVER = (10**6, 10**6), (0, 0)


def microseconds(call: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / CALLS * 1e6


def operations(dtype: str, batch: int, n: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """nd's and PyTorch's calls by name, of Hermitian positive definite matrices and two right sides."""
    a = np.random.default_rng(1).normal(size=(batch, n, n))
    a = (a @ a.swapaxes(1, 2) + n * np.eye(n)).astype(dtype)
    x, t = nd.asarray(a, device="cuda:0"), torch.from_numpy(a).cuda()
    b, tb = nd.ones((batch, n, 2), dtype, device="cuda:0"), torch.ones((batch, n, 2), dtype=t.dtype, device="cuda")
    return {
        "cholesky": (lambda: nd.linalg.cholesky(x), lambda: torch.linalg.cholesky(t)),
        "det": (lambda: nd.linalg.det(x), lambda: torch.linalg.det(t)),
        "inv": (lambda: nd.linalg.inv(x), lambda: torch.linalg.inv(t)),
        "solve": (lambda: nd.linalg.solve(x, b), lambda: torch.linalg.solve(t, tb)),
    }


def by(limits: tuple[int, int], name: str, call: Callable[[], Any]) -> float:
    kept = _device_linalg.PAYS[name]
    _device_linalg.PAYS[name] = limits
    try:
        return microseconds(call)
    finally:
        _device_linalg.PAYS[name] = kept


def measure() -> Iterator[tuple[str, int, int, str, float, float, float]]:
    for dtype in DTYPES:
        for batch in BATCHES:
            for n in SIZES:
                if batch * n * n > MOST_ELEMENTS:
                    continue
                for name, (ours, theirs) in operations(dtype, batch, n).items():
                    rounds = [
                        (by(ALWAYS, name, ours), by(NEVER, name, ours), microseconds(theirs)) for _ in range(ROUNDS)
                    ]
                    kernel, libraries, peer = (statistics.median(column) for column in zip(*rounds[1:], strict=True))
                    yield dtype, batch, n, name, kernel, libraries, peer


def table(rows: list[tuple[str, int, int, str, float, float, float]]) -> list[str]:
    lines = [
        "| operation | dtype | matrices | " + " | ".join(f"{n} rows" for n in SIZES) + " |",
        "| --- | --- | ---: |" + " ---: |" * len(SIZES),
    ]
    for name in sorted({row[3] for row in rows}):
        for dtype in DTYPES:
            for batch in BATCHES:
                found = {n: times for d, m, n, o, *times in rows if (d, m, o) == (dtype, batch, name)}
                cells = [" / ".join(f"{t:.0f}" for t in found[n]) if n in found else "" for n in SIZES]
                lines.append(f"| {name} | {dtype} | {batch:,} | " + " | ".join(cells) + " |")
    return lines


EXPLAINED = (
    "Microseconds of a call: by the kernel / by NVIDIA's libraries, from the same function / by PyTorch. Medians of",
    "three interleaved rounds of five calls each, dense operands in C order; solve() has two right sides.",
    "",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder of the results")
    options = parser.parse_args()
    rows = []
    for row in measure():
        rows.append(row)
        print(*row[:4], *(f"{t:.0f}" for t in row[4:]), flush=True)
    env = Environment()
    _machine.publish_page(options.out, "small_matrices", "Small matrices", env.versions(), [*EXPLAINED, *table(rows)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
