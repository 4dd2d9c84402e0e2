"""Writes docs/matrix.md, the table of exchanges, from reports of the self-test runner, a section each.

python -m dlbridge --json cpu.json
python tools/write_matrix.py cpu.json [gpu.json ...] [--page docs/matrix.md]
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "matrix.md"
BEGIN, END = "<!-- matrix: begin -->\n", "<!-- matrix: end -->\n"
LETTERS = {"works": "", "copies": "c", "refused": "r", "WRONG": "W", "CRASHED": "X", "HUNG": "H"}

Exchange = dict[str, Any]


def section(report: dict[str, Any]) -> list[str]:
    made = [one for one in report["exchanges"] if one["route"] == "convert" and one["status"] in LETTERS]
    producers = list(dict.fromkeys(one["producer"] for one in made))
    consumers = list(dict.fromkeys(one["consumer"] for one in made))
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items() if name != "nd")
    gpus = ", ".join(f"{count} x {gpu}" for gpu, count in Counter(map(str, report["gpus"])).items())
    lines = [
        f"## {gpus or 'Without a GPU'}",
        "",
        f"{report['started'][:10]}, dlbridge {report['dlbridge']}, Python {report['python']}, "
        f"{report['platform']}; {versions}.",
        "",
        "| from \\ to | " + " | ".join(consumers) + " |",
        "| --- |" + " --- |" * len(consumers),
    ]
    for producer in producers:
        cells = [cell(one for one in made if (one["producer"], one["consumer"]) == (producer, to)) for to in consumers]
        lines.append(f"| {producer} | " + " | ".join(cells) + " |")
    lines += ["", "| to | copied where it wants | refused where it wants |", "| --- | --- | --- |"]
    for consumer in consumers:
        own = [one for one in made if one["consumer"] == consumer]
        lines.append(f"| {consumer} | {wants(own, 'copies')} | {wants(own, 'refused')} |")
    return [*lines, ""]


def cell(exchanges: Iterable[Exchange]) -> str:
    """What became of them, as the runner writes it: a word where all fared alike, otherwise numbers."""
    counts = Counter(one["status"] for one in exchanges)
    if len(counts) == 1:
        return next(iter(counts))
    return " ".join(f"{counts[status]}{letter}" for status, letter in LETTERS.items() if counts[status]) or "-"


def wants(exchanges: list[Exchange], status: str) -> str:
    """The rules that were broken, the most frequent one first. What a producer refuses is no rule of the consumer's."""
    reasons = (one.get("reason", "") for one in exchanges if one["status"] == status)
    rules = Counter(found[1] for reason in reasons if (found := re.search(r"expected (.*?), got ", reason)))
    texts = [rule for rule, _ in rules.most_common()]
    return "; ".join(re.sub(r" or (?=\w+ or )", ", ", text) for text in texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    before, _, rest = given.page.read_text("utf-8").partition(BEGIN)
    lines = [line for path in given.reports for line in section(json.loads(path.read_text("utf-8")))]
    given.page.write_text(before + BEGIN + "\n".join(lines) + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
