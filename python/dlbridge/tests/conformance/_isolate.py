"""Checks in a process of their own: a crash or a hang is a failed check, and the rest goes on in a new process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dlbridge.tests._child import Child
from dlbridge.tests.conformance._check import Check
from dlbridge.tests.conformance._report import FAILED, SKIPPED, Result

if TYPE_CHECKING:
    from dlbridge.tests.conformance._run import Subject

_START_S = 180.0  # importing a framework
_END_S = 5.0
_MAX_STARTS = (
    60  # of processes for one report: a library that dies at everything is reported once, not a thousand times
)


def run_apart(subject: Subject, checks: Sequence[Check], timeout: float) -> Iterator[Result]:
    from dlbridge.tests.conformance._run import Unusable

    waiting = {check.id: check for check in checks}
    for _ in range(_MAX_STARTS):
        if not waiting:
            return
        child = Child("dlbridge.tests.conformance._worker", {"subject": subject.todict(), "ids": list(waiting)})
        running: str | None = None
        try:
            while (answer := child.answer(timeout if running else _START_S)) is not None:
                if "unusable" in answer:
                    raise Unusable(answer["unusable"])
                if "start" in answer:
                    running = answer["start"]
                else:
                    running = None
                    del waiting[answer["id"]]
                    yield Result(**answer)
            ended = ""
        except TimeoutError:
            child.kill()
            ended = f"no answer for {timeout:g} s"
        finally:
            ending = child.close(_END_S)
        ended = ended or f"the process {ending}"
        if running is not None:
            check = waiting.pop(running)
            yield Result.of(check, FAILED, "no crash and no hang", ended)
        elif waiting:
            raise Unusable(f"the process that imports {subject.name} ended before any check: {ended}")
    why = f"not run: {_MAX_STARTS} processes had ended before"
    yield from (Result.of(check, SKIPPED, got=why) for check in waiting.values())
