"""What the CUDA Array Interface asks of who reads the dictionary. Device memory comes from the driver, or is lent."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Iterator
from functools import partial
from typing import Any

from dlbridge.tests.conformance._adversary import Interface
from dlbridge.tests.conformance._check import CUDA_INTERFACE, MUST, SHOULD, Check, Failed, Skip, expect
from dlbridge.tests.conformance._spec import BASE, Spec, encode
from dlbridge.tests.conformance._taking import Taking

_ATTRIBUTE = "__cuda_array_interface__"
_kept: list[int] = []  # device memory that lives as long as the process


def driver_memory(raw: bytes) -> int:
    """Device memory with these bytes, by the CUDA driver alone; a Skip where there is none."""
    try:
        cuda = ct.CDLL("libcuda.so.1")
    except OSError:
        raise Skip("no CUDA driver, and no cuda_memory was given") from None
    context, pointer, device = ct.c_void_p(), ct.c_uint64(), ct.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ct.byref(device), 0):
        raise Skip("no CUDA device, and no cuda_memory was given")
    if cuda.cuDevicePrimaryCtxRetain(ct.byref(context), device) or cuda.cuCtxSetCurrent(context):
        raise Skip("the CUDA device gives no context")
    if cuda.cuMemAlloc_v2(ct.byref(pointer), ct.c_size_t(max(len(raw), 1))):
        raise Skip("the CUDA device gives no memory")
    if raw and cuda.cuMemcpyHtoD_v2(pointer, raw, ct.c_size_t(len(raw))):
        raise Skip("the CUDA device cannot be written to")
    _kept.append(pointer.value)
    return pointer.value


def _interface(taking: Taking, spec: Spec = BASE, **changes: Any) -> Any:
    raw = b"".join(encode(value, spec.dtype) for value in spec.values)
    pointer = (taking.cuda_memory or driver_memory)(raw) if spec.size else 0
    from dlbridge.tests.conformance._spec import DTYPES

    value = {
        "shape": spec.shape,
        "typestr": DTYPES[spec.dtype]["typestr"],
        "strides": None,
        "data": (pointer, spec.readonly),
        "version": 3,
        "stream": None,
    } | changes
    return Interface(_ATTRIBUTE, {key: entry for key, entry in value.items() if entry is not ...})


def _gate(taking: Taking) -> None:
    producer = _interface(taking)
    _, refusal = taking.attempt(producer)
    if refusal is not None:
        raise Skip(f"the consumer takes no {_ATTRIBUTE}: {refusal.words}")


def _taken(spec: Spec, changes: dict[str, Any], taking: Taking) -> None:
    _gate(taking)
    taking.expect_right(taking.taken(_interface(taking, spec, **changes)), spec)


def _refused(changes: dict[str, Any], taking: Taking) -> None:
    _gate(taking)
    result, refusal = taking.attempt(_interface(taking, BASE, **changes))
    if refusal is not None:
        return
    raise Failed("an error", f"{type(result).__name__} of shape {taking.shape(result)}")


def _readonly(taking: Taking) -> None:
    _gate(taking)
    result = taking.call(_interface(taking, Spec(readonly=True)))
    expect(taking.says_readonly(result), "a read-only result", "a writable one")


_STRIDED = Spec((2, 3))

_TAKEN: tuple[tuple[str, Spec, dict[str, Any], str, str], ...] = (
    ("control", BASE, {}, MUST, "a plain dictionary is taken"),
    ("version-2", BASE, {"version": 2, "stream": ...}, MUST, "version 2 has no stream"),
    ("no-stream", BASE, {"stream": ...}, MUST, "an absent stream asks for no synchronisation"),
    ("stream-none", BASE, {"stream": None}, MUST, "None asks for no synchronisation"),
    ("stream-legacy", BASE, {"stream": 1}, MUST, "1 is the legacy default stream"),
    ("stream-per-thread", BASE, {"stream": 2}, MUST, "2 is the per-thread default stream"),
    ("no-strides", BASE, {"strides": ...}, MUST, "absent strides mean C order"),
    ("explicit-strides", _STRIDED, {"strides": (12, 4)}, MUST, "strides are counted in bytes"),
    ("mask-none", BASE, {"mask": None}, MUST, "mask None: all elements are valid"),
    ("empty", Spec((0, 3)), {}, MUST, "an array of size zero has address 0"),
    ("descr", BASE, {"descr": [("", "<f4")]}, MUST, "descr with one unnamed field adds nothing"),
)

_REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("stream-0", {"stream": 0}, MUST),
    ("stream-string", {"stream": "1"}, MUST),
    (
        "mask",
        {"mask": Interface(_ATTRIBUTE, {"shape": (2, 3), "typestr": "|b1", "data": (0, False), "version": 3})},
        MUST,
    ),
    ("version-1", {"version": 1}, SHOULD),
    ("no-version", {"version": ...}, SHOULD),
    ("no-shape", {"shape": ...}, MUST),
    ("no-typestr", {"typestr": ...}, MUST),
    ("no-data", {"data": ...}, MUST),
    ("data-none", {"data": None}, MUST),
    ("null-data", {"data": (0, False)}, MUST),
    ("typestr-other-order", {"typestr": ">f4"}, MUST),
    ("typestr-unknown-kind", {"typestr": "<x4"}, MUST),
    ("strides-too-few", {"strides": (4,)}, MUST),
    ("negative-extent", {"shape": (-2, 3)}, MUST),
    ("overflowing-shape", {"shape": (2**62, 8)}, MUST),
)


def _all() -> Iterator[Check]:
    def row(name: str, clause: str, run: Any, severity: str = MUST) -> Check:
        return Check(f"cuda.{name}", "cuda_array_interface", clause, CUDA_INTERFACE, run, severity, name != "readonly")

    for name, spec, changes, severity, clause in _TAKEN:
        yield row(name, clause, partial(_taken, spec, changes), severity)
    for name, changes, severity in _REFUSED:
        clause = "what the interface forbids, or the library cannot follow, is an error"
        yield row(f"refuses[{name}]", clause, partial(_refused, changes), severity)
    yield row("readonly", "the read-only flag is kept", _readonly)


CHECKS: tuple[Check, ...] = tuple(_all())
