"""Random programs of ndarray statements against NumPy, step by step; a failing one is made small and printed as code.

    python tests/fuzz/nd_programs.py [--seconds 60] [--seed N] [--device cpu] [--statements 25]

The same seed gives the same programs. Every difference in values, dtype, shape or family of exception is a finding,
and so is the end of the process, or a statement without an end; one program is printed for each kind. Exits with 1
where there are findings.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.intended import INTENDED
from oracle.programs import ENDLESS, Finding, Session, Undefined, as_code, check, isolated, kind_of, shrunk
from oracle.statements import Writer

BATCH = 200  # programs that one process runs
MOST_KINDS = 30  # kinds of findings after which a run ends


def write_and_run(options: argparse.Namespace, number: int, log: Path) -> tuple[list[str], Finding | None]:
    """A program up to its first difference; its number and each of its lines are in the log before they run."""
    writer = Writer(random.Random(f"{options.seed}/{number}"))
    session, lines = Session(options.device), []
    with log.open("w") as file:
        print(number, file=file, flush=True)
        for _ in range(options.statements):
            line = writer.line(session.arrays())
            lines.append(line)
            print(line, file=file, flush=True)
            try:
                message = session.step(line, INTENDED)
            except Undefined:
                break
            if message:
                return lines, Finding(len(lines) - 1, message, kind_of(line, message))
    return lines, None


def run_batch(
    options: argparse.Namespace, numbers: range, until: float, log: Path
) -> tuple[int, list[tuple[list[str], Finding]]]:
    """How many of a batch's programs ran, and those that show a difference."""
    found = []
    for number in numbers:
        if time.time() > until:
            return number - numbers[0], found
        lines, finding = write_and_run(options, number, log)
        if finding:
            found.append((lines, finding))
    return len(numbers), found


def run_isolated(options: argparse.Namespace, first: int, until: float) -> tuple[int, list[tuple[list[str], Finding]]]:
    """A batch in a process of its own; where that ends, or would not, its last program is a finding.

    What those before it have found is lost with the process, and they are run again.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "program"
        result = isolated(partial(run_batch, options, range(first, first + BATCH), until, log))
        if not isinstance(result, Finding):
            return result
        number, *lines = log.read_text().splitlines()
        before = range(first, int(number))
        again = isolated(partial(run_batch, options, before, math.inf, log))
        found = [] if isinstance(again, Finding) else again[1]
        return len(before) + 1, [*found, (lines, result)]


def fuzz(options: argparse.Namespace) -> int:
    print(f"seed {options.seed}", flush=True)
    until = time.time() + options.seconds
    kinds: dict[str, int] = {}
    programs = 0
    while time.time() < until and len(kinds) < MOST_KINDS:
        count, found = run_isolated(options, programs, until)
        programs += count
        for lines, finding in found:
            kinds[finding.kind] = kinds.get(finding.kind, 0) + 1
            if kinds[finding.kind] == 1:
                report(lines, finding, options)
    print(f"{programs} programs on {options.device}, {len(kinds)} kinds of findings")
    for kind, count in sorted(kinds.items(), key=lambda item: -item[1]):
        print(f"  {count} x {kind}")
    return 1 if kinds else 0


def report(lines: list[str], finding: Finding, options: argparse.Namespace) -> None:
    print(f"--- found: {finding.message}, at the last line of\n" + "\n".join(lines), flush=True)
    shrink = options.shrink and finding.kind != ENDLESS  # each of its tries would take a minute
    small = shrunk(lines, finding, options.device, INTENDED) if shrink else lines
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
