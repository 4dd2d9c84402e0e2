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
from dlbridge.tests.conformance._spec import BASE
from dlbridge.tests.conformance._taking import Offer, Taking, managed_for, take_refused, take_right
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
        offer.settle()  # a copy that leaves the capsule to its destructor is sound
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
    try:
        second = taking.call(Producer(lambda **_: capsule))
    except Exception:
        second = None
    expect(second is None, "an error", "a second array on the same capsule")
    del first
    gc.collect()
    expect(tensor.deletions in (0, 1), "one call of the deleter", tensor.deletions)


def _no_capsule(value: Any, taking: Taking) -> None:
    try:
        taking.call(Producer(lambda **_: value))
    except Skip:
        raise
    except Exception:
        return
    raise Failed("an error", "an array")


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
    offer.settle()


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


def _error_class(taking: Taking) -> None:
    try:
        taking.call(Producer(_raising(BufferError("cannot be exported"))))
    except Skip:
        raise
    except BufferError:
        return
    except Exception as error:
        raise Failed("BufferError", describe(error)) from None
    raise Failed("BufferError", "an array")


def _retries(taking: Taking) -> None:
    """A TypeError of the producer's own is not repeated for ever."""
    producer = Producer(_raising(TypeError("not this one")))
    try:
        taking.call(producer)
    except Skip:
        raise
    except Exception:
        expect(len(producer.calls) <= 8, "a few attempts, with fewer keywords each", len(producer.calls))
        return
    raise Failed("an error", "an array")


def _no_methods(taking: Taking) -> None:
    try:
        taking.call(object())
    except Skip:
        raise
    except AttributeError:
        return
    except Exception as error:
        raise Failed("AttributeError", describe(error)) from None
    raise Failed("AttributeError", "an array")


def _device_raises(taking: Taking) -> None:
    class Broken(Producer):
        def __dlpack_device__(self) -> Any:
            raise OwnError("no device")

    offer = Offer(lambda: managed_for(BASE, version=None))
    broken = Broken(lambda **_: offer._make())
    try:
        result = taking.call(broken)
    except Skip:
        raise
    except Exception:
        return
    taking.expect_right(result, BASE)


def _bad_device(value: Any, taking: Taking) -> None:
    """Whatever __dlpack_device__ returns: an error or a right array, never a crash."""
    offer = Offer(lambda: managed_for(BASE, version=None), device=value)
    try:
        result = taking.call(offer.producer)
    except Skip:
        raise
    except Exception:
        return
    taking.expect_right(result, BASE)


# --- copy= ------------------------------------------------------------------------------------------------------------


def _takes(taking: Taking, keyword: str) -> None:
    try:
        parameters = inspect.signature(taking.func).parameters
    except (TypeError, ValueError):
        return
    if keyword not in parameters:
        raise Skip(f"the consumer has no {keyword}=")


def _copy(value: bool, taking: Taking) -> None:
    _takes(taking, "copy")
    offer = Offer(lambda: managed_for(BASE, version=(1, 0) if taking.asks_versioned else None))
    try:
        taking.call(offer.producer, copy=value)
    except TypeError as error:
        if "copy" in str(error):
            raise Skip("the consumer has no copy=") from None
        raise
    except Exception:
        pass  # it may refuse, as this producer ignores copy=
    asked = [call["copy"] for call in offer.producer.calls]
    expect(value in asked, f"copy={value} is passed on to __dlpack__", asked)


def _copy_false_refused(taking: Taking) -> None:
    _takes(taking, "copy")

    def refuse(**options: Any) -> Any:
        raise BufferError("a copy is needed")

    try:
        taking.call(Producer(refuse), copy=False)
    except Skip:
        raise
    except (BufferError, ValueError):
        return
    except TypeError as error:
        raise Skip(describe(error)) from None
    raise Failed("BufferError", "an array")


def _result_dies(taking: Taking) -> None:
    """The producer is not kept for ever."""
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
            "what is no capsule is refused",
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
    _check("calls.copy-false-refused", "copy=False raises where a copy is needed", FROM_DLPACK, _copy_false_refused),
)
