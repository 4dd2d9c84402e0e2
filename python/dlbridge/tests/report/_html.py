"""One self-contained page: template, style and script from this folder, no network."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from importlib import resources
from typing import Any, TextIO

from dlbridge.tests._cases import LAYOUTS
from dlbridge.tests._results import BAD, Results
from dlbridge.tests.frameworks._base import DTYPE_ORDER
from dlbridge.tests.report import _text
from dlbridge.tests.report._summary import reasons, tables, troubles

_AXES = ("producer", "consumer", "route", "protocol", "dtype", "layout", "device", "reason", "culprit", "reproducer")
# Axes whose order means something; the others come as they are met.
_ORDERS: dict[str, tuple[str, ...]] = {"dtype": DTYPE_ORDER, "layout": tuple(LAYOUTS)}


def missing() -> str:
    """Why the page cannot be made; empty where it can."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        return f"--html needs jinja2 ({error}). Install it: pip install 'dlbridge[report]'"
    return ""


def _columns(results: Results) -> dict[str, Any]:
    """The exchanges by column, each text once: a tenth of the size that rows would have."""
    names: dict[str, dict[str, int]] = {axis: {} for axis in (*_AXES, "status")}
    for axis, order in _ORDERS.items():
        used = {getattr(cell, axis) for cell in results.cells}
        names[axis] = {name: index for index, name in enumerate(name for name in order if name in used)}
    columns: dict[str, list[int]] = {axis: [] for axis in names}
    for cell in results.cells:
        for axis in _AXES:
            known = names[axis]
            columns[axis].append(known.setdefault(getattr(cell, axis), len(known)))
        columns["status"].append(names["status"].setdefault(cell.status.value, len(names["status"])))
    costs = [cell.cost_ns if cell.cost_ns < 1000 else round(cell.cost_ns, -2) for cell in results.cells]
    return {"names": {axis: list(known) for axis, known in names.items()}, "columns": columns, "cost_ns": costs}


def _packed(results: Results) -> str:
    text = json.dumps(_columns(results), separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def write_html(results: Results, out: TextIO) -> None:
    """Renders the page."""
    import jinja2

    head = results.header()
    folder = resources.files(__package__)
    # Values are escaped; style and script are ours, and the data is base64, which needs no escaping.
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    page = template.render(
        style=(folder / "page.css").read_text(encoding="utf-8"),
        script=(folder / "page.js").read_text(encoding="utf-8"),
        data=_packed(results),
        head=head,
        summary=_text.summary(results),
        started=results.started.replace("T", " ")[:16],
        gpus=", ".join(f"{number} x {name}" for name, number in Counter(head["gpus"]).items()),
        troubles=list(troubles(results)),
        failures=list(reasons(results.cells, BAD)),
        died=results.died,
        tables=tables(results),
        absent=results.absent,
        imports=results.imports,
    )
    out.write(page)
