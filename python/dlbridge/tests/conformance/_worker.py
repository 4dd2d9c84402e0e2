"""The child of `_isolate`: reads one job from stdin, runs its checks, answers line by line."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from dlbridge.tests.conformance._run import Subject, Unusable, run_check
from dlbridge.tests.conformance._tables import TABLES


def main() -> None:
    job = json.loads(sys.stdin.buffer.read())
    answers = job["answers"]

    def answer(line: dict[str, Any]) -> None:
        os.write(answers, json.dumps(line).encode() + b"\n")

    options = job["subject"]
    subject = Subject(
        options["kind"],
        None,
        options["name"],
        device=options["device"],
        immutable=options["immutable"],
        protocols=tuple(options["protocols"]),
        observe=options["observe"],
    )
    try:
        opened = subject.open()
    except Unusable as error:
        answer({"unusable": str(error)})
        return
    by_id = {check.id: check for check in TABLES[subject.kind]}
    for id in job["ids"]:
        answer({"start": id})
        answer(run_check(by_id[id], opened).todict())
    os._exit(0)  # what a faulty library left behind may crash at exit, which is no check's fault
