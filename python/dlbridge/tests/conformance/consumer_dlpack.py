"""What DLPack asks of who takes a capsule: every kind of struct, sound and unsound."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi, _spec
from dlbridge.tests.conformance._adversary import Managed, memory_of
from dlbridge.tests.conformance._check import (
    ARRAY_API,
    HEADER,
    MUST,
    PYTHON_SPEC,
    ROBUST,
    SHOULD,
    Check,
    Failed,
    Skip,
    expect,
)
from dlbridge.tests.conformance._spec import BASE, DTYPES, Spec
from dlbridge.tests.conformance._taking import (
    Offer,
    Taking,
    managed_for,
    take_refused,
    take_right,
    take_right_or_refuse,
)

FORMS: tuple[tuple[str, tuple[int, int] | None], ...] = (("legacy", None), ("versioned", (1, 0)))


def _gate(taking: Taking, version: tuple[int, int] | None) -> None:
    if version is not None:
        taking.need_versioned()


def _control(taking: Taking) -> None:
    take_right(taking, Offer(lambda: managed_for(BASE, version=None)), BASE)


def _values(version: tuple[int, int] | None, spec: Spec, taking: Taking) -> None:
    _gate(taking, version)
    take_right_or_refuse(taking, Offer(lambda: managed_for(spec, version=version)), spec)


# --- sound structs that look odd --------------------------------------------------------------------------------------


def _offset(spec: Spec, **changes: Any) -> Managed:
    memory, offset, strides = memory_of(spec, lead=64)
    itemsize = DTYPES[spec.dtype]["itemsize"]
    return managed_for(spec, memory=memory, byte_offset=offset, strides=[s // itemsize for s in strides], **changes)


_WILD = Spec((1, 4, 1))

_SOUND: tuple[tuple[str, Spec, Callable[..., Managed], str, str, str, bool], ...] = (
    (
        "null-strides",
        BASE,
        partial(managed_for, BASE, strides=None),
        MUST,
        "NULL strides mean row-major",
        PYTHON_SPEC,
        True,
    ),
    ("byte-offset", BASE, partial(_offset, BASE), MUST, "byte_offset leads to the first element", HEADER, False),
    (
        "byte-offset-strided",
        Spec((4, 6), "int16", "strided"),
        partial(_offset, Spec((4, 6), "int16", "strided")),
        MUST,
        "byte_offset leads to the first element",
        HEADER,
        False,
    ),
    (
        "0d-null-shape",
        Spec(()),
        partial(managed_for, Spec(()), shape=None, strides=None),
        MUST,
        "shape and strides may be NULL where ndim is 0",
        HEADER,
        True,
    ),
    (
        "empty-null-data",
        Spec((0, 3)),
        partial(managed_for, Spec((0, 3)), memory=None),
        MUST,
        "data is NULL where the size is zero",
        HEADER,
        True,
    ),
    (
        "empty-null-strides",
        Spec((0, 3)),
        partial(managed_for, Spec((0, 3)), strides=None),
        MUST,
        "NULL strides mean row-major",
        PYTHON_SPEC,
        True,
    ),
    (
        "wild-strides-of-one",
        _WILD,
        partial(managed_for, _WILD, strides=[10**12, 1, -(10**12)]),
        MUST,
        "the stride of an axis of extent 1 is never used",
        HEADER,
        True,
    ),
    ("null-deleter", BASE, partial(managed_for, BASE, deleter=False), MUST, "the deleter may be NULL", HEADER, True),
)

_SOUND_VERSIONED: tuple[tuple[str, dict[str, Any], str, str, bool], ...] = (
    ("minor-99", {"version": (1, 99)}, "a newer minor version is read like the own one", HEADER, False),
    ("minor-3", {"version": (1, 3)}, "a newer minor version is read like the own one", HEADER, False),
    ("is-copied", {"flags": _abi.IS_COPIED}, "IS_COPIED hands the memory to the consumer", HEADER, False),
    (
        "padded-flag-of-whole-bytes",
        {"flags": _abi.PADDED},
        "the padded flag says nothing of types of whole bytes",
        HEADER,
        False,
    ),
)


def _sound(version: Any, build: Callable[..., Managed], spec: Spec, taking: Taking) -> None:
    _gate(taking, version)
    take = take_right if spec.layout == "C" else take_right_or_refuse
    take(taking, Offer(partial(build, version=version)), spec)


def _sound_versioned(changes: dict[str, Any], taking: Taking) -> None:
    taking.need_versioned()
    take_right(taking, Offer(lambda: managed_for(BASE, **changes)), BASE)


# --- unsound structs --------------------------------------------------------------------------------------------------


def _unmapped_fields(version: tuple[int, int]) -> Managed:
    """Nothing behind `flags` may be read: all of it leads to addresses that are not there."""
    tensor = managed_for(BASE, version=version, ndim=2)
    pointer = ct.cast(ct.c_void_p(16), ct.POINTER(ct.c_int64))
    tensor.struct.dl_tensor.shape = tensor.struct.dl_tensor.strides = pointer
    tensor.struct.dl_tensor.data = 16
    return tensor


_HUGE = 2**62

_UNSOUND: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("negative-ndim", {"ndim": -1}, "a negative ndim is an error"),
    ("huge-ndim", {"ndim": 10**6}, "an absurd ndim is an error before the shape is read"),
    ("ndim-65", {"shape": [1] * 65, "strides": [1] * 65}, "more dimensions than the library has are an error"),
    ("negative-extent", {"shape": [2, -3]}, "a negative extent is an error"),
    ("overflowing-shape", {"shape": [_HUGE, 8], "strides": [8, 1]}, "a size beyond 64 bits is an error"),
    ("overflowing-strides", {"shape": [2, 3], "strides": [_HUGE, 1]}, "a byte extent beyond 64 bits is an error"),
    ("null-data", {"memory": None}, "NULL data of a non-empty tensor is an error"),
    ("null-shape", {"shape": None, "ndim": 2}, "a NULL shape of a tensor with dimensions is an error"),
)

_ODD_DTYPES = (
    (2, 32, 4),  # four lanes: a vector type
    (2, 32, 0),
    (0, 24, 1),
    (0, 0, 1),
    (0, 4, 1),
    (6, 1, 1),
    (2, 128, 1),
    (4, 32, 1),
    (5, 8, 1),
    (17, 8, 1),  # float4 of other than four bits must stop the import (dlpack.h)
    (3, 64, 1),
    (200, 32, 1),
)

_DEVICES = ((2, 0), (4, 0), (8, 0), (14, 0), (99, 0))


def _unsound(version: Any, changes: dict[str, Any], taking: Taking) -> None:
    _gate(taking, version)
    take_refused(taking, Offer(lambda: managed_for(BASE, **({"version": version} | changes))))


def _odd_dtype(version: Any, dtype: tuple[int, int, int], taking: Taking) -> None:
    _gate(taking, version)
    memory = (ct.c_char * 256)()  # enough for whatever it may be taken for
    offer = Offer(lambda: Managed(memory, (2, 3), (3, 1), dtype=dtype, version=version))
    take_refused(taking, offer, keep="dtype")


def _foreign_device(version: Any, device: tuple[int, int], taking: Taking) -> None:
    _gate(taking, version)
    offer = Offer(lambda: managed_for(BASE, device=device, version=version), device=device)
    take_refused(taking, offer, keep="device")


def _lying_device(version: Any, device: tuple[int, int], taking: Taking) -> None:
    _gate(taking, version)
    take_refused(taking, Offer(lambda: managed_for(BASE, device=device, version=version)), keep="device")


def _major(version: tuple[int, int], taking: Taking) -> None:
    taking.need_versioned()
    take_refused(taking, Offer(lambda: _unmapped_fields(version)))


def _major_error(taking: Taking) -> None:
    taking.need_versioned()
    take_refused(taking, Offer(lambda: managed_for(BASE, version=(2, 0))), (BufferError,))


def _readonly(taking: Taking) -> None:
    taking.need_versioned()
    offer = Offer(lambda: managed_for(BASE, flags=_abi.READ_ONLY))
    result = taking.taken_or_skip(offer.producer)
    readonly = taking.readonly(result)
    shared = _shares(taking, offer, result)
    del result
    taking.settle(offer)
    if readonly is None:
        raise Skip("the result cannot say whether it is read-only")
    if not readonly and not shared:
        raise Skip("the result is a copy")
    expect(readonly, "a read-only result", "a writable one on the same memory")


def _readonly_accepted(taking: Taking) -> None:
    taking.need_versioned()
    take_right(taking, Offer(lambda: managed_for(BASE, flags=_abi.READ_ONLY)), BASE)


def _writable(taking: Taking) -> None:
    """What is not flagged is not made read-only: NumPy did that for years (numpy#28599)."""
    taking.need_versioned()
    offer = Offer(lambda: managed_for(BASE))
    result = taking.call(offer.producer)
    expect(not taking.says_readonly(result), "a writable result", "a read-only one")


def _shares(taking: Taking, offer: Offer, result: Any) -> bool:
    try:
        return taking.shares(result, offer.tensors[-1].address or 0)
    except Skip:  # its values cannot be looked at
        return True


def _alive(version: Any, taking: Taking) -> None:
    _gate(taking, version)
    offer = Offer(lambda: managed_for(BASE, version=version))
    result = taking.call(offer.producer)
    if any(tensor.deletions for tensor in offer.tensors) and _shares(taking, offer, result):
        raise Failed("no call of the deleter while the result uses the memory", "a call")
    del result
    taking.settle(offer)


def _struct_untouched(version: Any, taking: Taking) -> None:
    _gate(taking, version)
    offer = Offer(lambda: managed_for(BASE, version=version, strides=None))
    result = taking.call(offer.producer)
    tensor = offer.tensors[-1].struct.dl_tensor
    if not offer.tensors[-1].deletions:
        expect(not tensor.strides, "the producer's struct as it was", "its strides pointer was written to")
    del result


def _all() -> Iterator[Check]:
    def row(name: str, clause: str, source: str, run: Any, severity: str = MUST, risky: bool = False) -> Check:
        return Check(f"dlpack.{name}", "dlpack", clause, source, run, severity, risky)

    yield row("control", "a plain capsule is taken", PYTHON_SPEC, _control)
    specs = _spec.EXPRESSIBLE
    for form, version in FORMS:
        for spec in specs:
            risky = spec.layout in ("reversed", "broadcast")
            clause = "shape, strides, dtype and byte_offset are followed, or the tensor is refused"
            yield row(f"{form}.values[{spec}]", clause, HEADER, partial(_values, version, spec), MUST, risky)
        for name, spec, build, severity, clause, source, risky in _SOUND:
            run = partial(_sound, version, build, spec)
            yield row(f"{form}.{name}", clause, source, run, severity, risky)
        for name, changes, clause in _UNSOUND:
            run = partial(_unsound, version, changes)
            yield row(f"{form}.malformed[{name}]", clause, ROBUST, run, SHOULD, True)
        for dtype in _ODD_DTYPES:
            clause = "a dtype that the library lacks is refused, never taken for another"
            name = f"{form}.odd-dtype[{'-'.join(map(str, dtype))}]"
            yield row(name, clause, HEADER, partial(_odd_dtype, version, dtype), MUST, True)
        for device in _DEVICES:
            clause = "a device that the library cannot use is refused"
            name = f"{form}.foreign-device[{device[0]}]"
            yield row(name, clause, PYTHON_SPEC, partial(_foreign_device, version, device), MUST, True)
        for device in _DEVICES[:1] + _DEVICES[-1:]:
            clause = "the device of the capsule holds, whatever __dlpack_device__ said"
            name = f"{form}.lying-device[{device[0]}]"
            yield row(name, clause, ROBUST, partial(_lying_device, version, device), SHOULD, True)
        clause = "the memory is the producer's until the deleter is called"
        yield row(f"{form}.alive", clause, HEADER, partial(_alive, version), MUST, True)
        clause = "the producer's struct is only read"
        yield row(f"{form}.struct-untouched", clause, ROBUST, partial(_struct_untouched, version), SHOULD, True)
    for name, changes, clause, source, risky in _SOUND_VERSIONED:
        yield row(f"versioned.{name}", clause, source, partial(_sound_versioned, changes), MUST, risky)
    for major in (0, 2, 99):
        clause = "on another major version nothing behind flags is read, and the deleter is called"
        yield row(f"versioned.major-{major}", clause, HEADER, partial(_major, (major, 0)), MUST, True)
    yield row("versioned.major-error", "another major version is a BufferError", ARRAY_API, _major_error, SHOULD)
    yield row("versioned.readonly", "READ_ONLY memory is not handed on as writable", HEADER, _readonly)
    clause = "a consumer without read-only arrays ignores the flag rather than raise"
    yield row("versioned.readonly-accepted", clause, ARRAY_API, _readonly_accepted, SHOULD)
    yield row("versioned.writable", "memory without READ_ONLY is writable", HEADER, _writable, SHOULD)


CHECKS: tuple[Check, ...] = tuple(_all())
