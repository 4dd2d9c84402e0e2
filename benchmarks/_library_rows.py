"""Transforms and decompositions of dlbridge.nd on a GPU, by size, against those of PyTorch and CuPy: small_calls.py -k.

A result is compared with PyTorch's before it is timed. Times are those of a call with all that it queued: each round is
as many calls as fill it, and waits for the device at its end.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _timing import Timing, interleave, no_collections
from gpu import OURS

Call = Callable[[], Any]

SIZES = {"16": 16, "1k": 1 << 10, "1M": 1 << 20, "16M": 1 << 24}
TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "fft2")
MATRICES = ("4", "32", "128", "512", "100x4", "16x512")
FUNCTIONS = ("cholesky", "solve", "inv", "det", "eigh", "svd", "qr")
TOLERANCE = 2e-3  # float32, of the largest element
ROUND_S = 2e-3


def inputs(family: str, size: str) -> list[np.ndarray]:
    """What the function of a row is given, of float32 or complex64: the same for all libraries."""
    rng = np.random.default_rng(7)
    if family in TRANSFORMS:
        n = SIZES[size]
        side = int(n**0.5)
        shape = (side, side) if family == "fft2" else (n // 2 + 1,) if family == "irfft" else (n,)
        x = rng.standard_normal(shape, np.float32)
        if family == "rfft":
            return [x]
        z = x + 1j * rng.standard_normal(shape, np.float32)
        if family == "irfft":
            z[0], z[-1] = z[0].real, z[-1].real
        return [z.astype(np.complex64)]
    batch, _, extent = size.rpartition("x")
    n = int(extent)
    a = rng.standard_normal((int(batch or 1), n, n), np.float32)
    if family in ("cholesky", "eigh"):
        a = a @ a.transpose(0, 2, 1) / n + np.eye(n, dtype=np.float32)
    elif family != "svd":
        a = a / np.float32(n**0.5) + 2 * np.eye(n, dtype=np.float32)
    a = a.astype(np.float32)
    a = a if batch else a[0]
    return [a, rng.standard_normal((*a.shape[:-1], 1), np.float32)] if family == "solve" else [a]


def checked_part(family: str, found: Any) -> Any:
    """What is unique of a result: vectors may be turned around."""
    if family == "eigh":
        return found[0]
    if family == "svd":
        return found[1]
    return abs(found[1]) if family == "qr" else found


def call_of(name: str, module: Any, family: str, operands: list[np.ndarray]) -> Call:
    function = getattr(module.fft if family in TRANSFORMS else module.linalg, family)
    arrays = [module.asarray(x, device="cuda") if name != "cupy" else module.asarray(x) for x in operands]
    return lambda: function(*arrays)


def on_host(name: str, value: Any) -> np.ndarray:
    return value.cpu().numpy() if name == "torch" else value.get() if name == "cupy" else np.asarray(value.get())


def difference(got: np.ndarray, want: np.ndarray) -> str | None:
    if got.shape != want.shape:
        return f"shape {got.shape} for {want.shape}"
    other = got != want  # infinities that are equal have no difference
    largest = float(np.max(np.abs(want[np.isfinite(want)]), initial=1e-30))
    apart = float(np.max(np.abs(got[other] - want[other]), initial=0)) / largest
    return None if apart <= TOLERANCE else f"differs by {apart:.1e} of the largest element"


def timed(calls: dict[str, Call], synchronize: Callable[[], None], seconds: float) -> dict[str, Timing]:
    """A round is `repeats` calls and a wait for the device."""
    repeats = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        synchronize()
        begin = time.perf_counter()
        call()
        synchronize()
        repeats[name] = max(1, min(50, int(ROUND_S / (time.perf_counter() - begin))))

    def round_of(call: Call, count: int) -> Call:
        def run() -> None:
            for _ in itertools.repeat(None, count):
                call()
            synchronize()

        return run

    rounds = {name: round_of(call, repeats[name]) for name, call in calls.items()}
    with no_collections():
        found = interleave(rounds, dict.fromkeys(rounds, 1), seconds=seconds)
    return {
        name: Timing(t.best_ns / repeats[name], t.median_ns / repeats[name], t.rounds, repeats[name])
        for name, t in found.items()
    }


def rows(chosen: str) -> Iterator[tuple[str, str]]:
    for family in (*TRANSFORMS, *FUNCTIONS):
        sizes = SIZES if family in TRANSFORMS else MATRICES
        group = "fft" if family in TRANSFORMS else "linalg"
        if not {group, family, "all"}.isdisjoint(chosen.split(",")):
            yield from ((family, size) for size in sizes)


def table(modules: dict[str, Any], chosen: str, seconds: float) -> list[str]:
    """The lines of the table of the rows that are chosen: "fft", "linalg", "all", or functions by name and comma."""
    names = list(modules)
    wanted = list(rows(chosen))
    lines = [
        "| call | size | " + " | ".join(f"{name} us" for name in names) + " | ratio | check |",
        "| --- | --- |" + " ---: |" * (len(names) + 1) + " --- |",
    ]
    synchronize = modules["torch"].cuda.synchronize
    for family, size in wanted:
        operands = inputs(family, size)
        calls = {name: call_of(name, module, family, operands) for name, module in modules.items()}
        results = {}
        for name in list(calls):
            try:
                results[name] = on_host(name, checked_part(family, calls[name]()))
            except Exception as error:
                if name == OURS:
                    raise
                print(f"{name} has no {family} {size}: {error}")
                del calls[name]
        problems = [difference(results[OURS], want) for name, want in results.items() if name != OURS]
        found = timed(calls, synchronize, seconds / len(wanted))
        us = {name: t.median_ns / 1e3 for name, t in found.items()}
        peers = [value for name, value in us.items() if name != OURS]
        cells = [f"{us[name]:.1f}" if name in us else "-" for name in names]
        ratio = f"{min(peers) / us[OURS]:.2f}" if peers else "-"
        check = "; ".join(problem for problem in problems if problem) or "same"
        lines.append(f"| {family} | {size} | " + " | ".join(cells) + f" | {ratio} | {check} |")
    return lines
