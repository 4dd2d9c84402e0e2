"""The GPU seal: what has been run on a GPU, and on which sources. CI, which has no GPU, holds the sources against it.

    seal.py note FOLDER STEP STATUS SECONDS   writes FOLDER/STEP.json from FOLDER/STEP.log (run.sh does, for each step)
    seal.py write FOLDER...                   puts the steps in the folders into tests/gpu/seal.json
    seal.py sources                           what a packed build is held against: the digests of what it is of
    seal.py stale                             the steps that have not run on these sources, on a line
    seal.py check                             fails when sources changed after their seal and pending.md is silent

The seal holds each step's last run without a failure: the device, what it counted, and a digest for each folder whose
files can change what runs on a GPU. A folder that has changed since any of the steps that it can change must be named
in tests/gpu/pending.md, with what has not been run and why. `write` refuses steps that failed, or that were run on
other sources than these; those that are not in the folders stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SEAL = ROOT / "tests/gpu/seal.json"
PENDING = ROOT / "tests/gpu/pending.md"

# What the extension, the kernel library and the Python that calls them are made of. The runner is not among them: it
# runs with the tests wherever there is a GPU, and its reports change more often than the exchanges.
SEALED = (
    "bridge/include/**/*",
    "frameworks/*",
    "ndarray/**/*",
    "protocols/**/*",
    "python/dlbridge/*",
    "python/dlbridge/_sharing/*",
    "python/dlbridge/nd/**/*",
    "python/dlbridge/ray/*",
    "python/src/**/*",
)
SEALED_SUFFIXES = {".c", ".cpp", ".cu", ".cuh", ".h", ".py"}

# The steps, with the folders that can change what becomes of them, by how these begin.
ALL = ("",)
PROGRAMS = ("bridge/include", "ndarray/kernels")  # what the kernels' own programs are made of
STEPS = {
    "kernels": PROGRAMS,
    "tests": ALL,
    "two_gpus": ALL,
    "load": ALL,
    "runner_busy": ALL,
    "differential": ALL,
    "memcheck": PROGRAMS,
    "racecheck": PROGRAMS,
    "synccheck": PROGRAMS,
    "memcheck_differential": ALL,
    "fuzz": ALL,
}

# What the steps print of themselves, added up over a log; a pattern without a group is counted.
COUNTED = {
    "passed": r"(\d+) passed",
    "failed": r"(\d+) (?:failed|failures)",
    "skipped": r"(\d+) skipped",
    "checks": r"(\d+) checks",
    "cases": r"(\d+) (?:of \d+ )?cases",
    "programs": r"(\d+) programs",
    "works": r"(\d+) works",
    "wrong": r"(\d+) WRONG",
    "rounds": r"^== round",
    "errors": r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)",
}
MUST_BE_ZERO = ("failed", "wrong", "errors")


def digests(patterns: tuple[str, ...] = SEALED) -> dict[str, str]:
    """Folder to the digest of the files that lie right in it: names and contents."""
    found: dict[str, hashlib._Hash] = {}
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        if path.suffix in SEALED_SUFFIXES and path.is_file():
            digest = found.setdefault(path.parent.relative_to(ROOT).as_posix(), hashlib.sha256())
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return {folder: digest.hexdigest()[:16] for folder, digest in sorted(found.items())}


def _changed(step: str, before: dict[str, str], now: dict[str, str]) -> set[str]:
    """The folders that can change what becomes of a step, and are others than they were."""
    folders = (folder for folder in before.keys() | now.keys() if folder.startswith(STEPS[step]))
    return {folder for folder in folders if before.get(folder) != now.get(folder)}


def _counts(log: str) -> dict[str, int]:
    log = re.sub(r"(?<=\d),(?=\d{3})", "", log)
    found = {name: re.findall(pattern, log, re.M) for name, pattern in COUNTED.items()}
    return {name: sum(int(match) if match.isdigit() else 1 for match in matches)
            for name, matches in found.items() if matches}  # fmt: skip


def _device() -> dict[str, Any]:
    from dlbridge import _core

    info = _core.cuda_info()
    if not info["available"]:
        sys.exit(f"seal.py: no GPU: {info['reason']}")
    import dlbridge.nd as nd

    return {"name": nd.cuda.Device(0).name, "count": info["device_count"], "driver": info["driver_version"]}


def note(folder: Path, step: str, status: int, seconds: int) -> None:
    log = (folder / f"{step}.log").read_text(errors="replace")
    noted = {"status": status, "seconds": seconds, "counts": _counts(log), "device": _device(), "digests": digests()}
    (folder / f"{step}.json").write_text(json.dumps(noted, indent=1))


def _problems(step: str, noted: dict[str, Any], now: dict[str, str]) -> list[str]:
    problems = [f"{noted['counts'][name]} {name}" for name in MUST_BE_ZERO if noted["counts"].get(name)]
    if noted["status"] != 0:
        problems.append(f"exit status {noted['status']}")
    changed = sorted(_changed(step, noted["digests"], now))
    if changed:
        problems.append("run on other sources: " + ", ".join(changed))
    return [f"{step}: {problem}" for problem in problems]


def _sealed() -> list[dict[str, Any]]:
    """The runs whose steps stand, newest first: {"device", "digests", "steps"}. Each step stands in one of them."""
    return list(json.loads(SEAL.read_text())["runs"]) if SEAL.exists() else []


def write(folders: list[Path]) -> None:
    """One row a step; a step that was run in several pieces (on several GPUs at once) is added up."""
    now = digests()
    steps: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    devices: list[dict[str, Any]] = []
    for file in sorted(file for folder in folders for step in STEPS for file in folder.rglob(f"{step}.json")):
        noted = json.loads(file.read_text())
        problems += _problems(file.stem, noted, now)
        row = steps.setdefault(file.stem, {"seconds": 0, "runs": 0, "counts": {}})
        row["seconds"] += noted["seconds"]
        row["runs"] += 1
        for name, count in noted["counts"].items():
            row["counts"][name] = row["counts"].get(name, 0) + count
        devices.append(noted["device"])
    if not steps:
        problems.append("the folders hold no step")
    before = [run | {"steps": {k: v for k, v in run["steps"].items() if k not in steps}} for run in _sealed()]
    problems += [f"{step}: never run" for step in STEPS if not any(step in r["steps"] for r in before)
                 and step not in steps]  # fmt: skip
    if problems:
        sys.exit("seal.py: no seal:\n  " + "\n  ".join(problems))
    device = max(devices, key=lambda found: found["count"])
    runs = [{"device": device, "digests": now, "steps": dict(sorted(steps.items()))}, *before]
    SEAL.write_text(json.dumps({"runs": [run for run in runs if run["steps"]]}, indent=1) + "\n")


def stale() -> None:
    now = digests()
    fresh = {step for run in _sealed() for step in run["steps"] if not _changed(step, run["digests"], now)}
    print(*(step for step in STEPS if step not in fresh))


def check() -> None:
    now = digests()
    runs = _sealed()
    folders: set[str] = set() if runs else set(now)
    for step, changed in ((step, _changed(step, run["digests"], now)) for run in runs for step in run["steps"]):
        folders |= changed
        print(f"the GPU seal of {step}: {len(changed)} of its folders have changed since")
    pending = PENDING.read_text() if PENDING.exists() else ""
    unnamed = sorted(folder for folder in folders if f"`{folder}`" not in pending)
    if unnamed:
        sys.exit(
            "seal.py: changed since the last run on a GPU: " + ", ".join(unnamed) + ".\nRun tests/gpu/run.sh on a GPU, "
            "or name each folder (`folder`) in tests/gpu/pending.md with what has not been run and why"
        )
    named = [folder for folder in re.findall(r"`([\w/]+)`", pending) if folder in now and folder not in folders]
    if named:
        sys.exit("seal.py: tests/gpu/pending.md names what the seal holds: " + ", ".join(named) + ". Remove the rows")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["note", folder, step, status, seconds]:
            note(Path(folder), step, int(status), int(seconds))
        case ["write", _, *_]:
            write([Path(folder) for folder in arguments[1:]])
        case ["sources"]:
            print(json.dumps(digests((*SEALED, "tests/cuda/kernels/*")), indent=1))
        case ["stale"]:
            stale()
        case ["check"]:
            check()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
