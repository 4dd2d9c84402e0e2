"""The child of `_isolate`: runs the checks of one job."""

from __future__ import annotations

import os
from typing import Any

from dlbridge.tests._child import Answer
from dlbridge.tests._patience import cheap_collections
from dlbridge.tests.conformance._run import Subject, Unusable, run_check
from dlbridge.tests.conformance._tables import TABLES


def work(job: dict[str, Any], answer: Answer) -> None:
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
    with cheap_collections():
        for id in job["ids"]:
            answer({"start": id})
            answer(run_check(by_id[id], opened).todict())
    os._exit(0)  # what a faulty library left behind may crash at exit, which is no check's fault
