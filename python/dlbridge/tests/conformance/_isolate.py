"""Checks in a process of their own: a crash or a hang is a failed check, and the rest goes on in a new process."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from dlbridge.tests.conformance._check import Check
from dlbridge.tests.conformance._report import FAILED, SKIPPED, Result

if TYPE_CHECKING:
    from dlbridge.tests.conformance._run import Subject

_START_S = 180.0  # importing a framework
_MAX_STARTS = (
    60  # of processes for one report: a library that dies at everything is reported once, not a thousand times
)
_CODE = """
import sys, json
sys.path[:] = json.loads(sys.argv[1])
from dlbridge.tests.conformance import _worker
_worker.main()
"""


class _Child:
    """A worker process; its answers come line by line through a pipe that the library's own output does not reach."""

    def __init__(self, subject: Subject, ids: Sequence[str]) -> None:
        from dlbridge.tests.conformance._run import search_path

        read, write = os.pipe()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        job = {"subject": subject.todict(), "ids": list(ids), "answers": write}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE, json.dumps(search_path())],
            stdin=subprocess.PIPE,
            stdout=self._errors,
            stderr=self._errors,
            pass_fds=(write,),
        )
        os.close(write)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job).encode())
            self._process.stdin.close()
        except BrokenPipeError:  # it died at once; its status says how
            pass
        self._read = read
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(read, selectors.EVENT_READ)

    def line(self, timeout: float) -> dict[str, Any] | None:
        """The next answer; None at the end; a TimeoutError."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._rest:
            if not self._selector.select(max(deadline - time.monotonic(), 0)):
                raise TimeoutError
            data = os.read(self._read, 1 << 16)
            if not data:
                return None
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> str:
        """Ends the process where it still runs; how it ended, with the last line that it printed."""
        self._selector.close()
        os.close(self._read)
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._errors.seek(0)
        printed = self._errors.read().decode(errors="replace").strip().splitlines()
        self._errors.close()
        return _how(status, printed)

    def kill(self) -> None:
        self._process.kill()


def _how(status: int, printed: Sequence[str]) -> str:
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        text = f"the process died of {name}"
    else:
        text = f"the process ended with status {status}"
    said = [line.strip() for line in printed if line.strip()]
    wanted = [line for line in said if "what():" in line or "terminate called" in line or "Error" in line] or said
    return f"{text}: {wanted[-1][:300]}" if wanted else text


def run_apart(subject: Subject, checks: Sequence[Check], timeout: float) -> Iterator[Result]:
    from dlbridge.tests.conformance._run import Unusable

    waiting = {check.id: check for check in checks}
    for _ in range(_MAX_STARTS):
        if not waiting:
            return
        child = _Child(subject, list(waiting))
        running: str | None = None
        ended = ""
        try:
            while True:
                answer = child.line(timeout if running else _START_S)
                if answer is None:
                    ended = child.close()
                    break
                if "unusable" in answer:
                    child.close()
                    raise Unusable(answer["unusable"])
                if "start" in answer:
                    running = answer["start"]
                else:
                    running = None
                    del waiting[answer["id"]]
                    yield Result(**answer)
        except TimeoutError:
            child.kill()
            child.close()
            ended = f"no answer for {timeout:g} s"
        if running is not None:
            check = waiting.pop(running)
            yield Result.of(check, FAILED, "no crash and no hang", ended)
        elif waiting:
            raise Unusable(f"the process that imports {subject.name} ended before any check: {ended}")
    why = f"not run: {_MAX_STARTS} processes had ended before"
    yield from (Result.of(check, SKIPPED, got=why) for check in waiting.values())
