"""The child of _isolate.py: loads frameworks and makes their exchanges.

It says what it is about to do before it does it, so that whoever reads knows what a process that died was at.
"""

from __future__ import annotations

import faulthandler
import os
from dataclasses import asdict
from typing import Any

from dlbridge.tests import _loader, _plan, _runner, frameworks
from dlbridge.tests._child import WHERE, Answer
from dlbridge.tests._patience import cheap_collections


def _load(names: list[str], answer: Answer) -> dict[str, frameworks.Bench]:
    table, _ = frameworks.registry()
    benches: dict[str, frameworks.Bench] = {}
    for name in names:
        answer({"loading": name})
        bench, how = _loader.load(table[name])
        if bench is None or isinstance(how, str):
            answer({"absent": {name: str(how)}})
            continue
        benches[name] = bench
        answer({"import": {name: asdict(how)}})
    return benches


def work(job: dict[str, Any], answer: Answer) -> None:
    """Loads `frameworks` and, where the job names `producers`, sends the arrays of these to all of them."""
    log = os.dup(2)  # what is printed at an import is captured: stacks are not
    faulthandler.enable(log)
    faulthandler.register(WHERE, log)
    _loader.prepare_environment()
    producers = job.get("producers", [])
    names = list(dict.fromkeys([*producers, *job["frameworks"]]))
    benches = _load(names, answer)
    chosen = [benches[name].framework for name in producers if name in benches]
    if not chosen:
        answer({"end": True})
        return
    devices: dict[str, list[str]] = {}
    for framework in chosen:
        devices[framework.name], missing = _runner.devices_of(benches[framework.name])
        answer({"absent": missing})
    consumers = _runner.consumers_of(benches[name].framework for name in job["frameworks"] if name in benches)
    specs = list(_plan.specs(chosen, consumers, full=job["full"], devices=devices))
    if not job["read"]:  # another worker does
        specs = [spec for spec in specs if spec.route != _plan.READ]
    answer({"total": len(specs)})

    def before(index: int, spec: _plan.Spec) -> None:
        at = {"producer": spec.kind.name, "consumer": spec.consumer_label, "route": spec.route}
        answer({"at": index, "cell": {**at, "protocol": spec.protocol, "asked": spec.protocol, **vars(spec.case)}})

    with cheap_collections():
        for cell in _runner.exchanges(specs, benches, skip=job["skip"], before=before):
            answer({"done": None if cell is None else cell.todict()})
    answer({"end": True})
