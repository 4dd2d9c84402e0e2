"""A process of its own for what may crash or hang: the parent's half, and the child's.

The child reads one job and answers line by line, both in JSON. The answers have a pipe of their own, which nothing that
a library prints can get into.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

Answer = Callable[[dict[str, Any]], None]

_START = """
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[1])
from dlbridge.tests import _child
_child._serve(importlib.import_module(sys.argv[2]).work)
"""
WHERE = signal.SIGUSR1  # asks a child for its stack, which faulthandler can print whatever the child is at
# That is a hang: a large framework takes half a minute to import on a busy machine, and sound checks have taken longer
# on a GPU that twenty processes shared.
SILENCE_S = 120.0
_SAY_WHERE_S = 0.2
_KEPT_BYTES = 20_000
_KEPT_CHARACTERS = 300
# What Python's fault handler and C++ stack traces print is no reason.
_NOISE = ("frame #", "File ", "Thread ", "Current thread", "Extension modules", "<", "Fatal Python error", "Traceback")
_TELLING = ("what():", "Check failed", "Error", "terminate called")


def _serve(work: Callable[[dict[str, Any], Answer], None]) -> None:
    """In the child: does the job that stands on standard input."""
    job = json.loads(sys.stdin.buffer.read())
    out = job.pop("answers")

    def answer(line: dict[str, Any]) -> None:
        os.write(out, json.dumps(line).encode() + b"\n")

    work(job, answer)


@dataclass(frozen=True)
class Ending:
    """How a child ended: `status` as subprocess gives it, None where it had to be killed; `log` is all it printed."""

    status: int | None
    log: str

    @property
    def words(self) -> str:
        """Its last, without stack traces."""
        said = [line.strip() for line in self.log.splitlines()]
        said = [line for line in said if line and not line.startswith(_NOISE)]
        telling = [line for line in said if any(word in line for word in _TELLING)]
        return "; ".join(telling[-1:] or said[:3])[:_KEPT_CHARACTERS]

    def __str__(self) -> str:
        if self.status is None:
            how = "did not end"
        elif self.status >= 0:
            how = f"ended with exit status {self.status}"
        else:
            try:
                how = f"died of {signal.Signals(-self.status).name}"
            except ValueError:
                how = f"died of signal {-self.status}"
        return f"{how}: {self.words}" if self.words else how


class Child:
    """A process that does `work(job, answer)` of `module`, with the search path of this one."""

    def __init__(self, module: str, job: dict[str, Any]) -> None:
        self._read, write = os.pipe()
        self._rest = b""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        path = json.dumps([entry or "." for entry in sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, path, module],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(write,),
        )
        os.close(write)
        assert self._process.stdin is not None
        try:
            with self._process.stdin as stdin:
                stdin.write(json.dumps({**job, "answers": write}).encode())
        except BrokenPipeError:  # it died at once; its status says how
            pass
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._read, selectors.EVENT_READ)

    def answer(self, timeout_s: float) -> dict[str, Any] | None:
        """The next answer; None at the end; TimeoutError where the child is silent for longer."""
        deadline = time.monotonic() + timeout_s
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

    def kill(self) -> None:
        """Ends it; where it listens to the signal, its log says at which line of Python it was."""
        self._process.send_signal(WHERE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SAY_WHERE_S)
        self._process.kill()

    def close(self, wait_s: float) -> Ending:
        """Waits for the end, and makes one where none comes. On a busy GPU contexts take long to go."""
        self._selector.close()
        os.close(self._read)
        status: int | None
        try:
            status = self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            status = None
        with self._log as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _KEPT_BYTES))
            return Ending(status, log.read().decode(errors="replace"))
