"""``python -m dlbridge.tests._worker``: one framework's arrays to all consumers, in a process of its own.

It reads a job, one JSON document, from standard input, and writes one JSON message a line: what it is about to do,
before it does it, so that whoever reads knows what a process that died was at. See _isolate.py for the other side.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dlbridge.tests import _loader, _plan, _runner, frameworks

_Send = Callable[[dict[str, Any]], None]


def _private_output() -> _Send:
    """A way to the parent that nothing a framework prints can get into; standard output becomes standard error."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    return send


def _load(names: list[str], send: _Send) -> dict[str, frameworks.Bench]:
    table, _ = frameworks.registry()
    benches: dict[str, frameworks.Bench] = {}
    for name in names:
        send({"loading": name})
        bench, how = _loader.load(table[name])
        if bench is None or isinstance(how, str):
            send({"absent": {name: str(how)}})
            continue
        benches[name] = bench
        send({"import": {name: asdict(how)}})
    return benches


def work(job: dict[str, Any], send: _Send) -> None:
    """Loads what the job names and, where it names a producer, makes the producer's exchanges."""
    _loader.prepare_environment()
    producer = job.get("producer")
    names = list(dict.fromkeys([*([producer] if producer else []), *job["frameworks"]]))
    benches = _load(names, send)
    if producer is None or producer not in benches:
        return
    devices, missing = _runner.devices_of(benches[producer])
    send({"absent": missing})
    consumers = _runner.consumers_of(benches[name].framework for name in job["frameworks"] if name in benches)
    chosen = [benches[producer].framework]
    specs = list(_plan.specs(chosen, consumers, full=job["full"], devices={producer: devices}))
    if not job["read"]:  # another worker does
        specs = [spec for spec in specs if spec.route != _plan.READ]
    send({"total": len(specs)})

    def before(index: int, spec: _plan.Spec) -> None:
        case = spec.case
        at = {"producer": spec.kind.name, "consumer": spec.consumer_label, "route": spec.route}
        send({"at": index, "cell": {**at, "protocol": spec.protocol, **vars(case)}})

    with _runner.cheap_collections():
        for cell in _runner.exchanges(specs, benches, skip=job["skip"], before=before):
            send({"done": None if cell is None else cell.todict()})


def main() -> int:
    """Runs the job on standard input."""
    faulthandler.enable()
    send = _private_output()
    work(json.load(sys.stdin), send)
    send({"end": True})
    return 0


if __name__ == "__main__":
    sys.exit(main())
