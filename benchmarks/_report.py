"""Turns timings into ratios, and ratios into tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from _rows import FASTEST, OURS, PEER, PYDLPACK, Row
from _timing import Timing

PYDLPACK_GOAL = 100.0


def ratio(ours_ns: float, other_ns: float, floor_ns: float = 0.0) -> float | None:
    """ours / other; None where nothing is left of the other one above the floor."""
    below = other_ns - floor_ns
    return max(ours_ns - floor_ns, 0.0) / below if below > 0 else None


def _reference_name(row: Row, timings: dict[str, Timing], roles: dict[str, str]) -> str | None:
    if row.reference != FASTEST:
        return row.reference if row.reference in timings else None
    peers = [name for name in timings if roles[name] == PEER]
    return min(peers, key=lambda name: timings[name].best_ns, default=None)


def summarise(row: Row, timings: dict[str, Timing], roles: dict[str, str], floor: Timing) -> dict[str, Any]:
    """One row of the result; ratios are None where a side is absent."""
    mine = timings.get(OURS)
    name = _reference_name(row, timings, roles)
    result: dict[str, Any] = {
        "key": row.key,
        "call": row.title,
        "goal": row.goal,
        "reference": name,
        "timings": {n: {**asdict(t), "role": roles[n]} for n, t in timings.items()},
    }
    if mine is not None and name is not None:
        other = timings[name]
        result["ratio"] = ratio(mine.best_ns, other.best_ns)
        result["ratio_of_medians"] = ratio(mine.median_ns, other.median_ns)
        result["ratio_above_floor"] = ratio(mine.best_ns, other.best_ns, floor.best_ns)
        if row.goal is not None:
            result["met"] = result["ratio"] <= row.goal
    if mine is not None and PYDLPACK in timings:
        result["times_pydlpack"] = timings[PYDLPACK].best_ns / mine.best_ns
    return result


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _met(result: dict[str, Any]) -> str:
    if result.get("met") is None:
        return "-"
    # The two ways to summarise the rounds disagree only where the machine was too noisy to tell.
    medians_agree = (result["ratio_of_medians"] <= result["goal"]) == result["met"]
    return ("yes" if result["met"] else "NO") + ("" if medians_agree else " (medians disagree)")


def _goal(result: dict[str, Any]) -> str:
    return "-" if result["goal"] is None else f"<= {result['goal']:g} x"


SUMMARY_HEAD = """\
| call | ours, ns | reference, ns | ratio | ratio above floor | ratio of medians | goal | met \
| x pydlpack |
| --- | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: |"""


def _summary_line(result: dict[str, Any]) -> str:
    timings = result["timings"]
    mine = timings.get(OURS)
    name = result["reference"]
    reference = "-" if name is None else f"{name} {timings[name]['best_ns']:,.0f}"
    cells = [
        f"`{result['call']}`",
        "absent" if mine is None else f"{mine['best_ns']:,.0f}",
        reference,
        _number(result.get("ratio")),
        _number(result.get("ratio_above_floor")),
        _number(result.get("ratio_of_medians")),
        _goal(result),
        _met(result),
        _number(result.get("times_pydlpack"), 0),
    ]
    return "| " + " | ".join(cells) + " |"


def _detail(result: dict[str, Any], refused: dict[str, str]) -> list[str]:
    lines = [f"### `{result['call']}`", "", "| who | best, ns | median, ns | rounds x calls | role |"]
    lines.append("| --- | ---: | ---: | ---: | --- |")
    timings = sorted(result["timings"].items(), key=lambda item: item[1]["best_ns"])
    for name, t in timings:
        lines.append(
            f"| {name} | {t['best_ns']:,.1f} | {t['median_ns']:,.1f} "
            f"| {t['rounds']} x {t['calls_per_round']} | {t['role']} |"
        )
    for name, reason in refused.items():
        lines.append(f"| {name} | - | - | - | {reason} |")
    return [*lines, ""]


def markdown(document: dict[str, Any]) -> str:
    machine = document["machine"]
    floor = document["floor"]
    lines = [f"# Latency on {machine['kind']}, Python {machine['python']}", ""]
    lines.append(", ".join(f"{k} {v}" for k, v in machine.items() if v is not None and k != "kind"))
    lines += ["", "Versions: " + ", ".join(f"{k} {v}" for k, v in document["versions"].items())]
    lines += [
        "",
        f"ns per call through a lambda, best round; the empty lambda takes {floor['best_ns']:.0f} "
        f"(median {floor['median_ns']:.0f}) and is included everywhere but under 'above floor'.",
        "",
        SUMMARY_HEAD,
        *map(_summary_line, document["rows"]),
        "",
    ]
    if document["rows_absent"]:
        lines += ["Rows that cannot run here:", ""]
        lines += [f"- `{call}`: {why}" for call, why in document["rows_absent"].items()] + [""]
    if document["absent"]:
        lines += ["Absent:", ""]
        lines += [f"- {name}: {reason}" for name, reason in document["absent"].items()] + [""]
    lines += ["## Everybody's figures", ""]
    for result in document["rows"]:
        lines += _detail(result, document["refused"].get(result["key"], {}))
    return "\n".join(lines).rstrip() + "\n"
