"""Versions that are known to fail alone or together: seen in the matrix, or in the issue that a row names."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownBad:
    """`versions`: the newest version of each framework that was seen to fail (fixed ones are greater)."""

    versions: dict[str, str]
    symptom: str
    remedy: str
    source: str


KNOWN_BAD: tuple[KnownBad, ...] = (
    KnownBad(
        {"torch": "2.13"},
        "torch.from_dlpack() of negative strides ends the process instead of raising",
        "dlbridge.convert(x, 'torch') copies; or copy first: numpy.ascontiguousarray(x)",
        "pytorch#188023; seen with torch 2.13.0",
    ),
    KnownBad(
        {"torch": "2.13"},
        "torch.as_tensor() of __cuda_array_interface__ does not wait for the stream that the dictionary names",
        "dlbridge.convert(x, 'torch'), or torch.from_dlpack(x)",
        "seen with torch 2.11.0",
    ),
    KnownBad(
        {"torch": "2.2"},
        "torch.from_dlpack() never gives back an array without elements whose data pointer is NULL: both ends leak",
        "a newer torch; or torch.empty(shape, dtype=...) in its place",
        "seen with torch 2.2.2, and not with 2.6.0",
    ),
    KnownBad(
        {"tensorflow": "2.21"},
        "from_dlpack() takes memory of any alignment, and the first kernel on it ends the process (IsAligned)",
        "dlbridge.convert(x, 'tensorflow') copies what is not aligned",
        "seen with tensorflow 2.21.0",
    ),
    KnownBad(
        {"tensorflow": "2.21", "paddle": "3.3"},
        "importing both in one process ends it with SIGSEGV",
        "use them in separate processes; the runner needs --isolate",
        "seen with tensorflow 2.21.0 and paddlepaddle 3.3.1",
    ),
    KnownBad(
        {"jax": "0.11"},
        "jax.dlpack.from_dlpack() asks for legacy capsules only, so that read-only arrays are refused",
        "dlbridge.convert(x, 'jax')",
        "jax#40789; seen with jax 0.11.2",
    ),
    KnownBad(
        {"onnxruntime": "1.31"},
        "an OrtValue of bool is exported as uint8",
        "view it as bool on the other side",
        "seen with onnxruntime 1.31.1",
    ),
    KnownBad(
        {"warp": "1.19"},
        "warp.from_dlpack() asks for legacy capsules only, so that read-only arrays are refused",
        "dlbridge.asdlpack(x, copy=True)",
        "seen with warp-lang 1.19.0",
    ),
)


def _numbers(version: str, count: int) -> tuple[int, ...]:
    found = tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))
    return (found + (0,) * count)[:count]


def known_bad(versions: dict[str, str]) -> list[KnownBad]:
    """The rows that fit these versions, by framework; an unknown version ("?") fits none."""

    def fits(name: str, newest: str) -> bool:
        have = versions.get(name)
        count = newest.count(".") + 1
        return have not in (None, "?") and _numbers(str(have), count) <= _numbers(newest, count)

    return [row for row in KNOWN_BAD if all(fits(name, newest) for name, newest in row.versions.items())]
