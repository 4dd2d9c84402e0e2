"""Random programs of ndarray statements against NumPy, step by step; a failing one is made small and printed as code.

    python tests/fuzz/nd_programs.py [--seconds 60] [--seed N] [--device cpu] [--statements 25]

The same seed gives the same programs. Every difference in values, dtype, shape or family of exception is a finding,
and so is the end of the process; one program is printed for each kind. Exits with 1 where there are findings.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.intended import INTENDED
from oracle.programs import Finding, Session, Undefined, as_code, check, isolated, kind_of, shrunk
from oracle.statements import Writer

BATCH = 200  # programs that one process runs
MOST_KINDS = 30  # kinds of findings after which a run ends


def write_and_run(seed: str, statements: int, device: str, log: str = "") -> tuple[list[str], Finding | None]:
    """The program of a seed up to its first difference; with a log, every line is written to it before it runs."""
    writer, session, lines = Writer(random.Random(seed)), Session(device), []
    with open(log, "w") if log else contextlib.nullcontext() as file:
        for _ in range(statements):
            line = writer.line(session.arrays())
            lines.append(line)
            if file is not None:
                print(line, file=file, flush=True)
            try:
                message = session.step(line, INTENDED)
            except Undefined:
                break
            if message:
                return lines, Finding(len(lines) - 1, message, kind_of(line, message))
    return lines, None


def run_batch(options: argparse.Namespace, first: int, until: float) -> tuple[int, list[tuple[list[str], Finding]]]:
    """The number of a batch's programs that ran, and those that show a difference."""
    found = []
    for number in range(first, first + BATCH):
        if time.time() > until:
            return number - first, found
        lines, finding = write_and_run(f"{options.seed}/{number}", options.statements, options.device)
        if finding:
            found.append((lines, finding))
    return BATCH, found


def of_crash(options: argparse.Namespace, first: int, until: float) -> tuple[int, list[tuple[list[str], Finding]]]:
    """A batch whose process ended is run again program by program, each in its own process, to find the one it was."""
    log = Path(f"/tmp/nd_programs_{options.seed}_{first}.log")
    found = []
    for number in range(first, first + BATCH):
        if time.time() > until + 60:
            break
        seed = f"{options.seed}/{number}"
        result = isolated(partial(write_and_run, seed, options.statements, options.device, str(log)))
        if isinstance(result, Finding):
            found.append((log.read_text().splitlines(), result))
        elif result[1]:
            found.append(result)
    log.unlink(missing_ok=True)
    return BATCH, found


def fuzz(options: argparse.Namespace) -> int:
    until = time.time() + options.seconds
    kinds: dict[str, int] = {}
    programs = 0
    while time.time() < until and len(kinds) < MOST_KINDS:
        result = isolated(partial(run_batch, options, programs, until))
        count, found = of_crash(options, programs, until) if isinstance(result, Finding) else result
        programs += count
        for lines, finding in found:
            kinds[finding.kind] = kinds.get(finding.kind, 0) + 1
            if kinds[finding.kind] == 1:
                report(lines, finding, options)
    print(f"seed {options.seed}: {programs} programs on {options.device}, {len(kinds)} kinds of findings")
    for kind, count in sorted(kinds.items(), key=lambda item: -item[1]):
        print(f"  {count} x {kind}")
    return 1 if kinds else 0


def report(lines: list[str], finding: Finding, options: argparse.Namespace) -> None:
    small = shrunk(lines, finding, options.device, INTENDED) if options.shrink else lines[: finding.position + 1]
    again = check(small, options.device, INTENDED) or finding
    print(f"--- {again.message}\n{as_code(small, options.device)}", flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="default: %(default)s")
    parser.add_argument("--seed", type=int, help="default: one of the system's entropy, which is printed")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1")
    parser.add_argument("--statements", type=int, default=25, help="of a program (default: %(default)s)")
    parser.add_argument(
        "--no-shrink", dest="shrink", action="store_false", help="print the programs as they were drawn"
    )
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    return options


if __name__ == "__main__":
    sys.exit(fuzz(parse()))
