"""Every function of the ndarray on the host, on a device and with NumPy: the same inputs must give the same results.

    python tests/gpu/differential.py [--seconds 360] [--jobs 4] [--device cuda] [--every N] [--json FILE]

`--device host` compares the host with NumPy alone; `--device cpu` rehearses the device's path on the host. Cases come
in a fixed order, those first that no run may leave out; where the time does not do for these, the run has failed.
Ends with the cases by family, and each kind of failure as code that runs.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from oracle import census, thresholds  # noqa: E402
from oracle.cases import Case, Raised, outcome, reproducer, run  # noqa: E402
from oracle.families import KNOWN, all_cases, large_cases  # noqa: E402

HANGS_AFTER = 90.0  # seconds without a step to the next case
LOST = 77  # the exit status of a worker whose device no longer works
SHOWN = 40  # failures printed in full


def ordered(device: str, only: str = "", every: int = 1) -> list[Case]:
    """The cases of a run: by tier, and within it in an order that does not change but spreads the families.

    `every` n-th of them is a part for what is slow: a sanitizer has no time for the large ones either.
    """
    cases = [case for case in all_cases() if only in case.family or only in case.code]
    spread = {position: position * 0x9E3779B1 % (1 << 32) for position in range(len(cases))}
    cases = [cases[i] for i in sorted(spread, key=lambda i: (cases[i].tier, spread[i]))]
    if every > 1:
        return cases[::every]
    if device.startswith("cuda"):
        cases[:0] = [case for case in large_cases() if only in case.family]
    return cases


# --- a worker: a process of its own, so that a crash is one failure and not the end ----------------------------------


def device_is_lost(device: str) -> bool:
    probe = Case("probe", "xp.sum(xp.ones(3, **on))", ())
    return device.startswith("cuda") and isinstance(outcome(probe, device), Raised)


def share(cases: list[Case], index: int, jobs: int) -> Iterator[int]:
    """The positions of a worker's cases. The large ones need most of a device's memory: one worker has them all."""
    for position, case in enumerate(cases):
        if (0 if case.family == "large" else position % jobs) == index:
            yield position


def work(cases: list[Case], index: int, start: int, options: argparse.Namespace, say: Callable[[Any], None]) -> int:
    """Runs a worker's share from a position on, and says what it begins, what failed, and how much was done."""
    counts: collections.Counter[str] = collections.Counter()
    for position in share(cases, index, options.jobs):
        if position < start:
            continue
        if time.time() > options.until:
            break
        case = cases[position]
        say({"begins": position})
        found, made = run(case, options.device, KNOWN)
        counts = collections.Counter({f"{case.family}/cases": 1, f"{case.family}/comparisons": made})
        say({"counts": counts | {f"tier {case.tier}": 1}, "failures": found})
        if found and device_is_lost(options.device):
            return LOST
    say({"finished": True})
    return 0


# --- the driver ------------------------------------------------------------------------------------------------------


class Worker:
    """A share of the cases; where its process dies, another goes on behind the case that it died of."""

    def __init__(self, index: int, options: argparse.Namespace, results: Results) -> None:
        self.index, self.options, self.results = index, options, results
        self.position, self.finished, self.hung = -1, False, False
        self.start()

    def start(self) -> None:
        """Forks, which is cheap and takes the cases along: this process has no threads and no CUDA context."""
        first, (reads, writes) = self.position + 1, os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(reads)
            with os.fdopen(writes, "w", buffering=1) as file:
                status = 1
                try:
                    status = work(self.results.cases, self.index, first, self.options,
                                  lambda said: print(json.dumps(said), file=file))  # fmt: skip
                except Exception:
                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(status)  # what CUDA does at exit is none of the driver's subjects
        os.close(writes)
        os.set_blocking(reads, False)
        self.began, self.pipe, self.buffer, self.moved = self.position, reads, b"", time.monotonic()

    def read(self) -> None:
        """Takes what the process has said; where it has ended, starts the next one or comes to an end, too."""
        try:
            piece = os.read(self.pipe, 1 << 16)
        except BlockingIOError:
            return
        if not piece:
            os.close(self.pipe)
            self.ended(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]))
            return
        self.moved = time.monotonic()
        *lines, self.buffer = (self.buffer + piece).split(b"\n")
        for line in lines:
            self.take(json.loads(line))

    def take(self, said: dict[str, Any]) -> None:
        self.position = said.get("begins", self.position)
        self.finished = self.finished or "finished" in said
        self.results.counts.update(said.get("counts", {}))
        for against, message in said.get("failures", ()):
            self.results.add(self.position, against, message)

    def ended(self, status: int) -> None:
        if self.finished:
            return
        reason = f"ended with status {status}" if status >= 0 else f"died of {signal.Signals(-status).name}"
        reason = f"no end after {HANGS_AFTER:g} s" if self.hung else reason
        if self.position == self.began:
            self.results.faults.append(f"worker {self.index} {reason} before its first case")
            self.finished = True
            return
        if status != LOST:
            self.results.add(self.position, "the process", reason)
        self.hung = False
        self.start()

    def kill_if_hung(self) -> None:
        if not self.finished and not self.hung and time.monotonic() - self.moved > HANGS_AFTER:
            self.hung = True
            os.kill(self.pid, signal.SIGKILL)


def drive(results: Results, options: argparse.Namespace) -> None:
    gc.freeze()  # so that the collector of a worker does not copy the memory of the cases
    workers = [Worker(index, options, results) for index in range(options.jobs)]
    while busy := [worker for worker in workers if not worker.finished]:
        ready, _, _ = select.select([worker.pipe for worker in busy], [], [], 1.0)
        for worker in busy:
            if worker.pipe in ready:
                worker.read()
            worker.kill_if_hung()
    for worker in workers:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(worker.pid, 0)


def device_fault(device: str) -> str:
    """Why the device cannot be used, or nothing; asked in a process of its own, so that this one stays without it."""
    reads, writes = os.pipe()
    if not os.fork():
        said = outcome(Case("probe", "xp.ones(3, **on)"), device)
        os.write(writes, said.message.encode()[:4000] if isinstance(said, Raised) else b"")
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as file:
        message = file.read()
    _, status = os.wait()
    return message or (f"status {status}" if status else "")


class Results:
    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures: list[tuple[int, str, str]] = []
        self.faults: list[str] = []

    def add(self, position: int, against: str, message: str) -> None:
        self.failures.append((position, against, message))

    def left_out(self) -> dict[int, int]:
        planned = collections.Counter(case.tier for case in self.cases)
        return {tier: count - self.counts[f"tier {tier}"] for tier, count in sorted(planned.items())}

    def families(self) -> dict[str, dict[str, int]]:
        planned = collections.Counter(case.family for case in self.cases)
        return {
            family: {
                "planned": planned[family],
                "cases": self.counts[f"{family}/cases"],
                "comparisons": self.counts[f"{family}/comparisons"],
                "failures": sum(self.cases[position].family == family for position, _, _ in self.failures),
            }
            for family in sorted(planned)
        }


def print_table(results: Results) -> None:
    print(f"{'family':16} {'planned':>9} {'run':>9} {'compared':>9} {'failed':>7}")
    for family, row in results.families().items():
        print(f"{family:16} {row['planned']:9} {row['cases']:9} {row['comparisons']:9} {row['failures']:7}")


def print_failures(results: Results, device: str) -> None:
    """One failure in full for each line of code and each partner, with the number of those that are alike."""
    kinds: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for position, against, message in sorted(results.failures):
        kinds.setdefault((results.cases[position].code, against), []).append((position, message))
    for number, ((_, against), found) in enumerate(sorted(kinds.items(), key=lambda kind: -len(kind[1]))):
        position, message = min(found, key=lambda one: sum(len(repr(i)) for i in results.cases[one[0]].inputs))
        case = results.cases[position]
        dtypes = sorted({spec.dtype for at, _ in found for _, spec in results.cases[at].inputs[:1]})
        print(f"\n--- {against}, {len(found)} cases, {', '.join(dtypes)}: {case.code!r}\n{message}")
        if number < SHOWN:
            print(reproducer(case, "cpu" if device == "host" else device))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=360, help="the time for all of it (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=4, help="processes (default: %(default)s)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, cpu, or host for NumPy alone")
    parser.add_argument("--only", default="", help="cases whose family or code contains this text")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th case alone, and no large ones")
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse()
    began = time.time()
    options.until = began + options.seconds
    if message := device_fault("cpu" if options.device == "host" else options.device):
        print(f"differential: {options.device} does not work: {message}")
        return 2
    results = Results(ordered(options.device, options.only, options.every))
    results.faults += thresholds.faults() + census.missing(all_cases())
    drive(results, options)
    left = results.left_out()
    if left.get(0):
        results.faults.append(
            f"{left[0]} cases that no run may leave out were not reached; give more --seconds or --jobs"
        )
    print_failures(results, options.device)
    print()
    print_table(results)
    total = sum(row["cases"] for row in results.families().values())
    ok = not results.failures and not results.faults
    for fault in results.faults:
        print(f"FAULT: {fault}")
    print(
        f"differential on {options.device}: {total} of {len(results.cases)} cases in {time.time() - began:.0f} s, "
        f"{len(results.failures)} failures, {'nothing to report' if ok else 'FAILED'}"
    )
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    "device": options.device,
                    "seconds": round(time.time() - began, 1),
                    "passed": ok,
                    "cases": total,
                    "planned": len(results.cases),
                    "failures": len(results.failures),
                    "faults": results.faults,
                    "left_out_by_tier": left,
                    "families": results.families(),
                },
                indent=1,
            )
        )
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
