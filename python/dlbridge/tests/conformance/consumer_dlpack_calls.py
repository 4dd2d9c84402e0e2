"""What DLPack asks of ``from_dlpack``: how it calls the producer, and what it does with what comes back."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._adversary import Producer
from dlbridge.tests.conformance._check import (
    ARRAY_API,
    FROM_DLPACK,
    MUST,
    PYTHON_SPEC,
    SHOULD,
    Check,
    Failed,
    Skip,
    describe,
    expect,
    expect_equal,
)
from dlbridge.tests.conformance._spec import BASE, COPIED, Spec
from dlbridge.tests.conformance._taking import CopyOffer, Offer, Refusal, Taking, managed_for, take_refused, take_right
from dlbridge.tests.conformance.consumer_dlpack import FORMS


def _gate(taking: Taking, version: tuple[int, int] | None) -> None:
    if version is not None:
        taking.need_versioned()


def _asked(taking: Taking) -> list[dict[str, Any]]:
    offer = Offer(lambda: managed_for(BASE, version=None))
    taking.call(offer.producer)
    calls = offer.producer.calls
    expect(bool(calls), "a call of __dlpack__", "none")
    return list(calls)


def _asks_version(taking: Taking) -> None:
    versions = [call["max_version"] for call in _asked(taking)]
    expect(any(v is not None for v in versions), "max_version is passed", "no max_version")


def _version_form(taking: Taking) -> None:
    for call in _asked(taking):
        version = call["max_version"]
        good = version is None or (
            isinstance(version, tuple) and len(version) == 2 and all(isinstance(n, int) for n in version)
        )
        expect(good, "None or a tuple (major, minor)", repr(version))


def _stream(taking: Taking) -> None:
    for call in _asked(taking):
        expect_equal(call["stream"], None, "stream for memory of the CPU")


def _device_form(taking: Taking) -> None:
    for call in _asked(taking):
        device = call["dl_device"]
        expect(device is None or (isinstance(device, tuple) and len(device) == 2), "None or a tuple", repr(device))
        expect(call["copy"] in (None, True, False), "None or a bool as copy", repr(call["copy"]))


def _old_producer(taking: Taking) -> None:
    take_right(taking, Offer(lambda: managed_for(BASE, version=None), old=True), BASE)


def _legacy_answer(taking: Taking) -> None:
    taking.need_versioned()
    take_right(taking, Offer(lambda: managed_for(BASE, version=None)), BASE)


# --- capsules ---------------------------------------------------------------------------------------------------------


def _wrong_name(version: Any, name: bytes, taking: Taking) -> None:
    _gate(taking, version)
    take_refused(taking, Offer(lambda: managed_for(BASE, version=version), name=name))


def _renames(version: Any, taking: Taking) -> None:
    _gate(taking, version)
    offer = Offer(lambda: managed_for(BASE, version=version))
    result = taking.call(offer.producer)
    capsule = offer.capsules[-1]
    name = _abi.capsule_name(capsule)
    deleted = offer.tensors[-1].deletions
    del result
    wanted = _abi.USED[_abi.LEGACY if version is None else _abi.VERSIONED]
    if name == offer.tensors[-1].name and not deleted:
        del capsule
        taking.settle(offer)  # a copy that leaves the capsule to its destructor is sound
        raise Skip("the consumer copied and left the capsule alone")
    expect_equal(name, wanted, "name of the consumed capsule")


def _second_time(version: Any, taking: Taking) -> None:
    """The same capsule twice: the second time it carries the used name."""
    _gate(taking, version)
    tensor = managed_for(BASE, version=version)
    capsule = tensor.capsule()
    first = taking.call(Producer(lambda **_: capsule))
    if not (_abi.capsule_name(capsule) or b"").startswith(b"used_"):
        raise Skip("the capsule was not consumed")
    _, refusal = taking.attempt(Producer(lambda **_: capsule))
    expect(refusal is not None, "an error", "a second array on the same capsule")
    del first
    gc.collect()
    expect(tensor.deletions in (0, 1), "one call of the deleter", tensor.deletions)


def _no_capsule(value: Any, taking: Taking) -> None:
    _, refusal = taking.attempt(Producer(lambda **_: value))
    expect(refusal is not None, "an error", "an array")


def _one_export(taking: Taking) -> None:
    """What is asked for is consumed: an export that is dropped costs a copy where the producer makes one."""
    offer = Offer(lambda: managed_for(BASE, version=None))
    result = taking.call(offer.producer)
    count = len(offer.capsules)
    del result
    expect_equal(count, 1, "capsules asked for")


def _repeats(taking: Taking) -> None:
    offer = Offer(lambda: managed_for(BASE, version=None))
    results = [taking.call(offer.producer) for _ in range(20)]
    for result in results:
        taking.expect_right(result, BASE)
    del results, result
    taking.settle(offer)


# --- errors of the producer -------------------------------------------------------------------------------------------


class OwnError(Exception):
    """An error that only the producer can have raised."""


def _raising(error: BaseException) -> Callable[..., Any]:
    def make(**_: Any) -> Any:
        raise error

    return make


def _passes_on(error: Exception, taking: Taking) -> None:
    try:
        taking.call(Producer(_raising(error)))
    except Skip:
        raise
    except Exception as got:
        chain: BaseException | None = got
        while chain is not None:
            if type(chain) is type(error) or str(error) in str(chain):
                return
            chain = chain.__cause__ or chain.__context__
        raise Failed(f"{describe(error)}, or an error that has it in its chain", describe(got)) from None
    raise Failed("an error", "an array")


def _expect_error(refusal: Refusal | None, kind: type[BaseException]) -> None:
    expect(refusal is not None, kind.__name__, "an array")
    assert refusal is not None
    expect(issubclass(refusal.kind, kind), kind.__name__, refusal.words)


def _error_class(taking: Taking) -> None:
    _, refusal = taking.attempt(Producer(_raising(BufferError("cannot be exported"))))
    _expect_error(refusal, BufferError)


def _retries(taking: Taking) -> None:
    """A TypeError of the producer's own is not repeated forever."""
    producer = Producer(_raising(TypeError("not this one")))
    _, refusal = taking.attempt(producer)
    expect(refusal is not None, "an error", "an array")
    expect(len(producer.calls) <= 8, "a few attempts, with fewer keywords each", len(producer.calls))


def _no_methods(taking: Taking) -> None:
    _, refusal = taking.attempt(object())
    _expect_error(refusal, AttributeError)


def _device_raises(taking: Taking) -> None:
    class Broken(Producer):
        def __dlpack_device__(self) -> Any:
            raise OwnError("no device")

    offer = Offer(lambda: managed_for(BASE, version=None))
    broken = Broken(lambda **_: offer._make())
    result, refusal = taking.attempt(broken)
    if refusal is None:
        taking.expect_right(result, BASE)


def _bad_device(value: Any, taking: Taking) -> None:
    """Whatever __dlpack_device__ returns: an error or a right array, never a crash."""
    offer = Offer(lambda: managed_for(BASE, version=None), device=value)
    result, refusal = taking.attempt(offer.producer)
    if refusal is None:
        taking.expect_right(result, BASE)


# --- copy= ------------------------------------------------------------------------------------------------------------


def _with_copy(taking: Taking, producer: Any, value: bool) -> tuple[Any, Refusal | None]:
    """Calls the consumer with copy=; a Skip where it has no such keyword."""
    try:
        parameters = inspect.signature(taking.func).parameters
    except (TypeError, ValueError):  # a C function without a signature: its TypeError says so
        pass
    else:
        anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        if "copy" not in parameters and not anything:
            raise Skip("the consumer has no copy=")
    result, refusal = taking.attempt(producer, copy=value)
    if refusal is not None and issubclass(refusal.kind, TypeError) and not producer.asked:
        raise Skip(f"the consumer has no copy=: {refusal.words}")
    return result, refusal


def _version(taking: Taking) -> tuple[int, int] | None:
    return (1, 0) if taking.asks_versioned else None


def _copy(value: bool, taking: Taking) -> None:
    offer = Offer(lambda: managed_for(BASE, version=_version(taking)))
    _with_copy(taking, offer.producer, value)  # it may refuse, as this producer ignores copy=
    asked = [call["copy"] for call in offer.producer.calls]
    expect(value in asked, f"copy={value} is passed on to __dlpack__", asked)


def _copy_kept(value: bool, old: bool, spec: Spec, taking: Taking) -> None:
    """The promise of copy= is kept, whoever has to keep it: the producer, or the consumer of one that cannot."""
    if spec.readonly:
        taking.need_versioned()
    offer = CopyOffer(spec, _version(taking), old=old)
    result, refusal = _with_copy(taking, offer.producer, value)
    if refusal is None:
        taking.expect_right(result, spec)
        shares = taking.shares(result, offer.address, spec.dtype)
        wanted, got = ("memory of its own", "the producer's") if value else ("the producer's memory", "a copy")
        expect(shares is not value, wanted, got)
    del result
    taking.settle(offer)
    if refusal is not None:
        raise Skip(f"refused: {refusal.words}")


def _copy_false_refused(taking: Taking) -> None:
    def refuse(**options: Any) -> Any:
        raise BufferError("a copy is needed")

    _, refusal = _with_copy(taking, Producer(refuse), False)
    expect(refusal is not None, "BufferError", "an array")
    assert refusal is not None
    if issubclass(refusal.kind, TypeError):
        raise Skip(refusal.words)
    expect(issubclass(refusal.kind, (BufferError, ValueError)), "BufferError", refusal.words)


def _result_dies(taking: Taking) -> None:
    """The producer is not kept forever."""
    offer = Offer(lambda: managed_for(BASE, version=None))
    dead = weakref.ref(offer.producer)
    result = taking.call(offer.producer)
    del result, offer
    gc.collect()
    expect(dead() is None, "no reference to the producer after the result died", "one")


def _check(
    name: str, clause: str, source: str, run: Callable[[Taking], None], severity: str = MUST, risky: bool = False
) -> Check:
    return Check(f"dlpack.{name}", "dlpack", clause, source, run, severity, risky)


_OWN = "only a capsule of a name that it knows is consumed"

CHECKS: tuple[Check, ...] = (
    _check(
        "calls.max-version", "the consumer says which version it takes (recommended)", ARRAY_API, _asks_version, SHOULD
    ),
    _check("calls.max-version-form", "max_version is a tuple of two integers", ARRAY_API, _version_form),
    _check("calls.stream", "for the CPU stream is None", ARRAY_API, _stream),
    _check("calls.device-form", "dl_device is None or a tuple, copy None or a bool", ARRAY_API, _device_form),
    _check("calls.old-producer", "a producer without max_version is asked again without it", ARRAY_API, _old_producer),
    _check(
        "calls.legacy-answer",
        "an unversioned capsule is taken although max_version was passed",
        ARRAY_API,
        _legacy_answer,
    ),
    _check("calls.one-export", "a capsule is asked for once and consumed", PYTHON_SPEC, _one_export, SHOULD),
    _check("calls.repeats", "one array may be exported many times", PYTHON_SPEC, _repeats),
    _check("calls.result-dies", "nothing is held when the result is gone", PYTHON_SPEC, _result_dies, MUST),
    *(
        _check(
            f"{form}.capsule-name[{name.decode()}]", _OWN, PYTHON_SPEC, partial(_wrong_name, version, name), MUST, True
        )
        for form, version in FORMS
        for name in (b"used_dltensor", b"used_dltensor_versioned", b"dltensor2", b"tensor", b"")
    ),
    *(
        _check(f"{form}.{name}", clause, PYTHON_SPEC, partial(run, version), MUST, True)
        for form, version in FORMS
        for name, clause, run in (
            ("renames", "a consumed capsule is renamed", _renames),
            ("second-time", "a consumed capsule is refused", _second_time),
        )
    ),
    *(
        _check(
            f"calls.no-capsule[{value!r}]",
            "anything that is not a capsule is refused",
            PYTHON_SPEC,
            partial(_no_capsule, value),
            MUST,
            True,
        )
        for value in (None, 0, b"dltensor", "dltensor")
    ),
    *(
        _check(
            f"calls.passes-on[{type(error).__name__}]",
            "an error of the producer reaches the caller",
            FROM_DLPACK,
            partial(_passes_on, error),
            MUST if isinstance(error, (BufferError, OwnError)) else SHOULD,
        )
        for error in (
            OwnError("the producer's own"),
            BufferError("no export"),
            TypeError("the producer's own type error"),
        )
    ),
    _check("calls.buffer-error", "an export that is refused is a BufferError", FROM_DLPACK, _error_class, SHOULD),
    _check(
        "calls.retries",
        "a TypeError is followed by attempts with fewer keywords, and reaches the caller",
        ARRAY_API,
        _retries,
        SHOULD,
    ),
    _check("calls.no-methods", "an object without the methods is an AttributeError", FROM_DLPACK, _no_methods, SHOULD),
    _check(
        "calls.device-raises", "an error of __dlpack_device__ does no harm", FROM_DLPACK, _device_raises, MUST, True
    ),
    *(
        _check(
            f"calls.bad-device[{value!r}]",
            "a malformed device tuple does no harm",
            FROM_DLPACK,
            partial(_bad_device, value),
            MUST,
            True,
        )
        for value in (None, 1, (), (1,), ("cpu", 0), (1, 0, 0), (2**40, 0), (1, 2**40))
    ),
    _check("calls.copy-true", "copy=True is asked of the producer", FROM_DLPACK, partial(_copy, True), SHOULD),
    _check("calls.copy-false", "copy=False is asked of the producer", FROM_DLPACK, partial(_copy, False), SHOULD),
    *(
        _check(
            f"calls.{name}[{spec}]",
            clause,
            FROM_DLPACK,
            partial(_copy_kept, value, old, spec),
            risky=spec.layout == "reversed",
        )
        for name, value, old, clause in (
            ("copy-false-shares", False, False, "copy=False never copies"),
            ("copy-true-copies", True, False, "copy=True always copies"),
            ("copy-false-of-old", False, True, "copy=False never copies, also where the producer cannot be asked"),
            ("copy-true-of-old", True, True, "copy=True always copies, also where the producer cannot be asked"),
        )
        for spec in COPIED
        if not (spec.readonly and old)
    ),
    _check("calls.copy-false-refused", "copy=False raises where a copy is needed", FROM_DLPACK, _copy_false_refused),
)
