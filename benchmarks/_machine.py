"""What a result says about where it was measured (no host names, no paths), and where it is written."""

from __future__ import annotations

import datetime
import os
import pathlib
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping


def _first_line(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


def cpu_model() -> str:
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    found = re.search(r"^model name\s*:\s*(.+)$", info, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def cpu_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_name() -> str | None:
    return _first_line(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])


def gpu_driver() -> str | None:
    return _first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])


def git_commit() -> str | None:
    """The commit, with a plus sign when the tree differs from it; None outside a git checkout."""
    here = str(pathlib.Path(__file__).parent)
    commit = _first_line(["git", "-C", here, "rev-parse", "--short=12", "HEAD"])
    if commit is None:
        return None
    changed = _first_line(["git", "-C", here, "status", "--porcelain", "--untracked-files=no"])
    return commit + ("+" if changed else "")


def kind() -> str:
    """`h200` or `cpu2`: the GPU's model, a letter and digits, or its last word; or the number of usable cores."""
    gpu = gpu_name()
    if gpu is None:
        return f"cpu{cpu_count()}"
    model = re.search(r"\b[A-Z]{1,2}\d+\w*", gpu)
    return re.sub(r"[^a-z0-9]+", "", (model[0] if model else gpu.split()[-1]).lower()) or "gpu"


def describe() -> dict[str, object]:
    return {
        "kind": kind(),
        "cpu": cpu_model(),
        "cores": cpu_count(),
        "gpu": gpu_name(),
        "gpu_driver": gpu_driver(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "commit": git_commit(),
    }


def publish(text: str, file: pathlib.Path) -> None:
    """Prints a result and writes it to `file`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    print(text)


def publish_page(
    folder: pathlib.Path, stem: str, title: str, versions: Mapping[str, str], lines: Iterable[str]
) -> None:
    """Publishes `stem`-KIND-pyX.Y.md: the title, the machine, the versions, and then `lines`."""
    machine = describe()
    python = ".".join(str(machine["python"]).split(".")[:2])
    facts = (f"{key} {value}" for key, value in machine.items() if value and key not in ("kind", "gpu"))
    head = [
        f"# {title} on {machine['kind']}, Python {machine['python']}\n",
        ", ".join(facts) + "\n",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "\n",
    ]
    publish("\n".join([*head, *lines]) + "\n", folder / f"{stem}-{machine['kind']}-py{python}.md")
