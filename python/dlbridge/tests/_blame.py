"""Who is at fault for a wrong result, shown by a script that leaves dlbridge out."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from dlbridge.tests import _exchange
from dlbridge.tests._plan import CONVERT, READ, Spec
from dlbridge.tests._results import Cell, Status
from dlbridge.tests.frameworks import Framework

_SCRIPT_TIMEOUT_S = 60
_SHOWS_FAULT = 3  # exit status of a script whose values are wrong


def _imports(*parts: Framework) -> list[str]:
    names = dict.fromkeys(name for part in parts for name in (part.module, *part.imports) if name)
    return [*(f"import {name}" for name in names), *(part.setup for part in parts if part.setup)]


def _pointers(spec: Spec) -> tuple[list[str], list[str]]:
    """Lines that keep the address of `source` and, later, print it beside that of `x`; none where no text tells."""
    given = spec.kind.look.pointer
    taken = spec.consumer.look.pointer if spec.consumer is not None else ""
    if not (isinstance(given, str) and isinstance(taken, str) and given and taken):
        return [], []
    return ["x = source", f"given = {given}"], [f"print('pointer ', hex({taken}), '\\nexpected', hex(given))"]


def direct_script(spec: Spec) -> str:
    """The exchange between the two libraries alone; empty where they cannot talk directly, or no script says it."""
    consumer = spec.consumer
    if consumer is None or spec.case.layout == "delayed":
        return ""
    route = next((r for r in (spec.route, "dlpack", *consumer.takes) if r in consumer.takes), "")
    take, read = consumer.takes.get(route, ""), consumer.look.read
    if not (isinstance(take, str) and isinstance(read, str) and take and read) or route not in spec.kind.protocols:
        return ""
    made = spec.kind.source(spec.case)
    context = spec.producer.context
    keep, show = _pointers(spec)
    return "\n".join(
        [
            *_imports(spec.producer, consumer),
            *([f"with {context}:", f"    source = {made}"] if context else [f"source = {made}"]),
            *keep,
            f"x = {take}",
            "del source",
            f"got = {read}",
            f"expected = {spec.case.values}",
            "print('values  ', got, '\\nexpected', expected)",
            *show,
            f"raise SystemExit(0 if got == expected else {_SHOWS_FAULT})",
        ]
    )


def bridged_script(spec: Spec) -> str:
    """The same exchange through dlbridge."""
    made = spec.kind.source(spec.case) if spec.case.layout != "delayed" else "..."
    asked = f", protocol={spec.protocol!r}" if spec.protocol else ""
    lines = [*_imports(spec.producer), "import dlbridge", f"source = {made}"]
    if spec.consumer is None:
        return "\n".join([*lines, f"print(dlbridge.asdlpack(source{asked}), dlbridge.inspect(source))"])
    keep, show = _pointers(spec)
    lines += keep
    if spec.route == CONVERT:
        lines.append(f"x = dlbridge.convert(source, {spec.consumer.convert!r})")
    else:
        take = str(spec.consumer.takes[spec.route]).replace("source", f"dlbridge.asdlpack(source{asked})")
        lines = [*_imports(spec.consumer), *lines, f"x = {take}"]
    read = spec.consumer.look.read
    return "\n".join([*lines, f"print('values  ', {read if isinstance(read, str) and read else 'x'})", *show])


def _reproduces(script: str) -> bool:
    """Whether the script shows a fault, or dies of one, in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, timeout=_SCRIPT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode == _SHOWS_FAULT or done.returncode < 0


def _producer_is_right(ends: _exchange.Ends) -> bool:
    """Whether the array holds its values by its own framework's means, and asdlpack() finds them where it says."""
    read = replace(ends.spec, consumer=None, route=READ)
    return _exchange.run(_exchange.Ends(read, ends.producer, None)).status is Status.WORKS


_confirmed: dict[tuple[str, str, str], bool] = {}  # a process each costs seconds: once for a pair and route


def blame(ends: _exchange.Ends, cell: Cell) -> Cell:
    """`cell`, a wrong one, with the library at fault and a script that shows it."""
    spec = ends.spec
    script = direct_script(spec)
    key = (cell.producer, cell.consumer, cell.route)
    if script and "values" in cell.reason:
        if key not in _confirmed:
            _confirmed[key] = _reproduces(script)
        if _confirmed[key]:
            culprit = cell.consumer if _producer_is_right(ends) else cell.producer
            return replace(cell, culprit=culprit, reproducer=script)
    if spec.route == READ or not _producer_is_right(ends):
        return replace(cell, culprit=f"{cell.producer} or dlbridge", reproducer=bridged_script(spec))
    return replace(cell, culprit=f"{cell.consumer} or dlbridge", reproducer=bridged_script(spec))
