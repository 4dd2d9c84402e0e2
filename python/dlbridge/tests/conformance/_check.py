"""A check: one row of a table, with the clause that it comes from; and how it passes, fails or is skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MUST, SHOULD = "must", "should"

PROTOCOLS = ("dlpack", "dlpack_exchange", "array_interface", "cuda_array_interface", "buffer", "arrow")

# Where clauses are read: the names stand in every result.
HEADER = "dlpack.h 1.3"
PYTHON_SPEC = "DLPack Python specification"
ARRAY_API = "array API 2024.12, __dlpack__"
FROM_DLPACK = "array API 2024.12, from_dlpack"
INTERFACE = "NumPy array interface, version 3"
CUDA_INTERFACE = "CUDA Array Interface, version 3"
BUFFER = "CPython C API, buffer protocol"
STRUCT = "CPython struct module (PEP 3118 formats)"
ARROW_DATA = "Arrow C data interface, https://arrow.apache.org/docs/format/CDataInterface.html"
ARROW_STREAM = "Arrow C stream interface, https://arrow.apache.org/docs/format/CStreamInterface.html"
ARROW_DEVICE = "Arrow C device data interface, https://arrow.apache.org/docs/format/CDeviceDataInterface.html"
PYCAPSULE = "Arrow PyCapsule interface, https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html"
ROBUST = "robustness: no specification allows to crash on it"


def _short(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


class Unsupported(Exception):
    """Raised by a factory or a consumer under test for what it has no notion of: the check is skipped."""


class Skip(Exception):
    """The check does not apply; the message says why."""


class Failed(Exception):
    """The library breaks the clause."""

    def __init__(self, expected: object, got: object) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected = _short(str(expected))
        self.got = _short(str(got))


@dataclass(frozen=True)
class Check:
    """`run` takes the subject (see `_subject`); it returns for a pass, and raises Failed or Skip.

    `risky`: seen to end the process of some library; run in a process of its own unless isolation is off.
    """

    id: str
    protocol: str
    clause: str
    source: str
    run: Callable[[Any], None]
    severity: str = MUST
    risky: bool = False


def expect(condition: bool, expected: object, got: object) -> None:
    if not condition:
        raise Failed(expected, got)


def expect_equal(got: object, expected: object, what: str) -> None:
    if got != expected:
        raise Failed(f"{what} {expected}", f"{got!r}")


def describe(error: BaseException) -> str:
    """One line of an exception, without what differs from run to run at its end."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
