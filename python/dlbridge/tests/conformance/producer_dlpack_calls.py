"""What DLPack asks of the calls: arguments, capsule names, ownership, copies, devices."""

from __future__ import annotations

import ctypes as ct
import gc
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi, _adversary
from dlbridge.tests.conformance._check import (
    ARRAY_API,
    HEADER,
    PYTHON_SPEC,
    SHOULD,
    Check,
    Failed,
    Skip,
    describe,
    expect,
    expect_equal,
)
from dlbridge.tests.conformance._making import (
    HOST_DEVICES,
    Making,
    describe_managed,
    expect_independent,
    take_freed_memory,
)

# Many: other threads of a large process give back and take some hundred blocks meanwhile.
_LEAK_REPEATS = 1000
_LEAK_ROUNDS = 12


def _name(capsule: Any) -> Any:
    expect(_abi.is_capsule(capsule), "a PyCapsule", type(capsule).__name__)
    return _abi.capsule_name(capsule)


def _plain_call(making: Making) -> None:
    array = making.offering("__dlpack__")
    expect_equal(_name(array.__dlpack__()), b"dltensor", "capsule name")


def _max_version(version: Any, wanted: bytes, making: Making) -> None:
    array = making.offering("__dlpack__")
    making.need_keyword("max_version")
    capsule = array.__dlpack__(max_version=version)
    expect_equal(_name(capsule), wanted, f"for max_version={version} the capsule name")
    if wanted == _abi.VERSIONED:
        expect_equal(_abi.managed_of(capsule).version.major, 1, "major version")


def _keyword(name: str, value: Any, making: Making) -> None:
    array = making.offering("__dlpack__")
    if name == "dl_device" and hasattr(array, "__dlpack_device__"):
        value = array.__dlpack_device__()
    try:
        _name(array.__dlpack__(**{name: value}))
    except Failed:
        raise
    except Exception as error:
        raise Failed(f"the keyword {name} is taken", describe(error)) from None


def _raises(expected: tuple[type[BaseException], ...], options: dict[str, Any], making: Making) -> None:
    array = making.offering("__dlpack__")
    for keyword in options:
        if keyword != "no_such_keyword":
            making.need_keyword(keyword)
    words = " or ".join(error.__name__ for error in expected)
    try:
        capsule = array.__dlpack__(**options)
    except expected:
        return
    except Exception as error:
        raise Failed(words, describe(error)) from None
    raise Failed(words, f"a capsule named {_name(capsule)!r}")


def _device_tuple(making: Making) -> None:
    device = making.offering("__dlpack_device__").__dlpack_device__()
    expect(isinstance(device, tuple) and len(device) == 2, "a tuple of two", repr(device))
    kinds = [isinstance(part, int) for part in device]
    expect(all(kinds), "a device type (int or IntEnum) and a device id (int)", repr(device))
    if making.device == "cpu":
        expect_equal(tuple(map(int, device)), (1, 0), "for memory of the CPU")


def _same_device(making: Making) -> None:
    array = making.offering("__dlpack__")
    for keyword in ("max_version", "dl_device"):
        making.need_keyword(keyword)
    try:
        capsule = array.__dlpack__(dl_device=array.__dlpack_device__(), max_version=(1, 3))
    except Exception as error:
        raise Failed("a capsule", describe(error)) from None
    described = describe_managed(_abi.managed_of(capsule), [capsule, array])
    expect_equal(described.device, tuple(map(int, array.__dlpack_device__())), "the device")


def _cpu_stream(stream: int, making: Making) -> None:
    if making.device != "cpu":
        raise Skip(f"the arrays are on {making.device}")
    _raises((Exception,), {"stream": stream}, making)


# --- ownership --------------------------------------------------------------------------------------------------------


def _independent(form: str, making: Making) -> None:
    first, second = making.two()
    expect_independent(making.managed(form, first), lambda: making.managed(form, second))


def _shares(form: str, making: Making) -> None:
    array, first = making.capsule(form)
    second = array.__dlpack__(**({"max_version": (1, 3)} if form == "versioned" else {}))
    pointers = [_abi.managed_of(c).dl_tensor.data or 0 for c in (first, second)]
    expect(pointers[0] == pointers[1], "both exports on the same memory", [hex(p) for p in pointers])
    expect(
        _abi.capsule_pointer(first, _name(first)) != _abi.capsule_pointer(second, _name(second)),
        "a managed tensor for each export",
        "one struct in both capsules",
    )


def _consumed_capsule(form: str, making: Making) -> None:
    """The destructor of a consumed capsule must leave the struct to the consumer."""
    _array, capsule = making.capsule(form)
    managed = _abi.consume(capsule)
    original = managed.deleter
    counter = _adversary.CallCounter()
    managed.deleter = counter.address
    address = ct.addressof(managed)
    before = ct.string_at(address, 4)
    del capsule
    calls = counter.calls(before, ct.string_at(address, 4))
    ct.memmove(address, before, 4)
    managed.deleter = original
    expect_equal(calls, 0, "calls of the deleter by the destructor of a consumed capsule")
    _abi.call_deleter(managed)


def _outlives(form: str, making: Making) -> None:
    """The consumer's struct keeps the memory when the array is gone."""
    array, capsule = making.capsule(form, making.large())
    described = describe_managed(_abi.managed_of(capsule), [])
    if described.device[0] not in HOST_DEVICES:
        raise Skip(f"the host cannot read device {described.device}")
    before = described.values()
    managed = _abi.consume(capsule)
    del array, capsule
    noise = take_freed_memory(len(before) * 8)
    after = described.values()
    _abi.call_deleter(managed)
    expect(bool(noise) and after == before, "the same elements after the array is gone", "other values: it was freed")


def _deleter_elsewhere(form: str, making: Making) -> None:
    array, capsule = making.capsule(form)
    managed = _abi.consume(capsule)
    del capsule
    thread = threading.Thread(target=_abi.call_deleter, args=(managed,))  # ctypes drops the GIL for the call
    thread.start()
    thread.join()
    expect(array is not None, "the array", "none")


def _references(form: str, making: Making) -> None:
    array, capsule = making.capsule(form)
    del capsule
    before = sys.getrefcount(array)
    options = {"max_version": (1, 3)} if form == "versioned" else {}
    for _ in range(20):
        array.__dlpack__(**options)
        _abi.call_deleter(_abi.consume(array.__dlpack__(**options)))
    gc.collect()
    expect_equal(sys.getrefcount(array) - before, 0, "references to the array left behind by 40 exports")


def _agree(blocks: list[float], most_blocks: float, heap: list[float], most_bytes: float) -> bool:
    """Whether all rounds leaked, or none did and none shrank by as much."""
    leaked = [block >= most_blocks or byte >= most_bytes for block, byte in zip(blocks, heap, strict=True)]
    shrank = any(block <= -most_blocks for block in blocks) or any(byte <= -most_bytes for byte in heap)
    return all(leaked) or not (any(leaked) or shrank)


def leak(step: Callable[[], object]) -> None:
    """Fails where each repeat of `step` leaves a block of Python's own allocator, or bytes that malloc gave out."""
    for _ in range(_LEAK_REPEATS // 4):
        step()
    for _ in range(20):  # what finalizers let go of is found by the next collection, and would hide growth
        if gc.collect() == 0:
            break
    blocks: list[float] = []
    heap: list[float] = []
    # Three rounds that agree: other threads take and give back, and what one round lets go of hides what it leaks.
    while len(blocks) < 3 or (len(blocks) < _LEAK_ROUNDS and not _agree(blocks[-3:], 0.5, heap[-3:], 16)):
        gc.collect()
        before = (sys.getallocatedblocks(), _abi.heap_bytes())
        for _ in range(_LEAK_REPEATS):
            step()
        gc.collect()
        blocks.append((sys.getallocatedblocks() - before[0]) / _LEAK_REPEATS)
        heap.append(((_abi.heap_bytes() or 0) - (before[1] or 0)) / _LEAK_REPEATS)
    block, byte = sorted(blocks[-3:])[1], sorted(heap[-3:])[1]
    got = f"{block:.1f} blocks and {byte:.0f} bytes an export, over {len(blocks) * _LEAK_REPEATS} exports"
    expect(block < 0.5 and byte < 16, "no growth of what is allocated", got)


def _leak_unconsumed(form: str, making: Making) -> None:
    array, _ = making.capsule(form)
    options = {"max_version": (1, 3)} if form == "versioned" else {}
    leak(lambda: array.__dlpack__(**options))


def _leak_consumed(form: str, making: Making) -> None:
    array, _ = making.capsule(form)
    options = {"max_version": (1, 3)} if form == "versioned" else {}
    leak(lambda: _abi.call_deleter(_abi.consume(array.__dlpack__(**options))))


def _leak_failed(making: Making) -> None:
    array = making.offering("__dlpack__")

    def refused() -> None:
        try:
            array.__dlpack__(dl_device=(9999, 0))
        except Exception:
            pass

    leak(refused)


def _unconsumed_dies(form: str, making: Making) -> None:
    """A dropped capsule lets go of the array: a second one may take no more references than the first gave back."""
    array, capsule = making.capsule(form)
    del capsule
    before = sys.getrefcount(array)
    array.__dlpack__(**({"max_version": (1, 3)} if form == "versioned" else {}))
    gc.collect()
    expect(sys.getrefcount(array) <= before, "no reference left behind", sys.getrefcount(array) - before)


_LEGACY, _VERSIONED = _abi.LEGACY, _abi.VERSIONED
_BAD = (TypeError, ValueError, BufferError)


def _check(
    name: str, clause: str, source: str, run: Callable[[Making], None], severity: str = "must", risky: bool = False
) -> Check:
    return Check(f"dlpack.{name}", "dlpack", clause, source, run, severity, risky)


_MALFORMED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("max-version-string", {"max_version": "1.0"}),
    ("max-version-number", {"max_version": 1}),
    ("max-version-one", {"max_version": (1,)}),
    ("max-version-strings", {"max_version": ("1", "0")}),
    ("dl-device-number", {"dl_device": 1}),
    ("dl-device-one", {"dl_device": (1,)}),
    ("dl-device-strings", {"dl_device": ("cpu", "0")}),
    ("stream-string", {"stream": "0"}),
    ("unknown-keyword", {"no_such_keyword": None}),
)

CHECKS: tuple[Check, ...] = (
    _check("call.plain", "without arguments a legacy capsule named dltensor comes", PYTHON_SPEC, _plain_call),
    *(
        _check(
            f"call.max-version[{version}]",
            "a consumer that names no version, or one below 1.0, gets the unversioned struct",
            ARRAY_API,
            partial(_max_version, version, _LEGACY),
        )
        for version in (None, (0, 8))
    ),
    *(
        _check(
            f"call.max-version[{version}]",
            "a consumer of major version 1 or newer gets the versioned struct of major version 1 (recommended)",
            ARRAY_API,
            partial(_max_version, version, _VERSIONED),
            SHOULD,
        )
        for version in ((1, 0), (1, 1), (1, 3), (1, 99), (2, 0), (99, 0), (2**31, 2**31))
    ),
    *(
        _check(f"call.keyword-{name}", f"__dlpack__ takes {name}", ARRAY_API, partial(_keyword, name, None), severity)
        for name, severity in (("stream", "must"), ("max_version", "must"), ("dl_device", "must"), ("copy", "must"))
    ),
    *(
        _check(
            f"call.malformed[{name}]",
            "wrong arguments raise an error",
            ARRAY_API,
            partial(_raises, _BAD, options),
            SHOULD,
        )
        for name, options in _MALFORMED
    ),
    *(
        _check(
            f"call.cpu-stream[{stream}]",
            "on devices without streams only None is accepted",
            ARRAY_API,
            partial(_cpu_stream, stream),
            SHOULD,
        )
        for stream in (0, 1, 2, 12345)
    ),
    *(
        _check(
            f"call.unknown-device[{device}]",
            "a device that the producer cannot serve raises BufferError",
            ARRAY_API,
            partial(_raises, (BufferError,), {"dl_device": device}),
        )
        for device in ((8, 0), (9999, 0), (-1, 0))
    ),
    _check("device.tuple", "__dlpack_device__ returns (device type, device id)", ARRAY_API, _device_tuple),
    _check("device.same", "dl_device of the array itself is served in place", ARRAY_API, _same_device),
    *(
        _check(f"{form}.{name}", clause, source, partial(run, form), "must", risky)
        for form in ("legacy", "versioned")
        for name, clause, source, run, risky in (
            ("shares", "exports share the array's memory, each with a struct of its own", PYTHON_SPEC, _shares, False),
            ("independent", "an export of one array leaves those of others alone", PYTHON_SPEC, _independent, False),
            (
                "consumed-capsule",
                "the destructor runs the deleter only under the unconsumed name",
                PYTHON_SPEC,
                _consumed_capsule,
                True,
            ),
            ("outlives", "the struct keeps the memory until its deleter is called", HEADER, _outlives, True),
            (
                "deleter-without-gil",
                "the deleter may be called from any thread without the GIL",
                PYTHON_SPEC,
                _deleter_elsewhere,
                True,
            ),
            ("references", "the deleter gives back the reference to the array", PYTHON_SPEC, _references, True),
            ("unconsumed-dies", "a dropped capsule releases the array", PYTHON_SPEC, _unconsumed_dies, False),
            (
                "leak-unconsumed",
                "the destructor of an unconsumed capsule runs the deleter",
                PYTHON_SPEC,
                _leak_unconsumed,
                False,
            ),
            ("leak-consumed", "the deleter frees the managed tensor itself", HEADER, _leak_consumed, True),
        )
    ),
    _check("leak-refused", "a refused export leaves nothing behind", PYTHON_SPEC, _leak_failed),
)
