"""What DLPack asks of ``__dlpack__(copy=)``: who copies, what, and how the copy is marked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._check import ARRAY_API, Check, Failed, Skip, describe, expect, expect_equal
from dlbridge.tests.conformance._making import HOST_DEVICES, Described, Making, describe_managed, expect_independent
from dlbridge.tests.conformance._spec import COPIED, Spec


def _exports(spec: Spec, making: Making, **options: Any) -> tuple[Described, Described]:
    """An export as the array is, and one with `options`."""
    array, capsule = making.capsule("versioned", spec)
    for keyword in options:
        making.need_keyword(keyword)
    try:
        other = array.__dlpack__(max_version=(1, 3), **options)
    except Exception as error:
        raise Failed("a capsule", describe(error)) from None
    shared = describe_managed(_abi.managed_of(capsule), [capsule, array])
    return shared, describe_managed(_abi.managed_of(other), [other, array])


def _copy_true(spec: Spec, making: Making) -> None:
    shared, copied = _exports(spec, making, copy=True)
    expect(copied.pointer != shared.pointer, "memory of its own", "the array's own pointer")
    expect(not copied.readonly, "a writable copy", "the READ_ONLY flag")
    expect_equal(copied.shape, shared.shape, "shape")
    if shared.device[0] in HOST_DEVICES:
        expect_equal(copied.values(), shared.values(), "the elements")


def _copy_true_flag(spec: Spec, making: Making) -> None:
    try:
        shared, copied = _exports(spec, making, copy=True)
    except Failed as failure:
        raise Skip(f"no copy was made, which another check reports: {failure.got}") from None
    if copied.pointer == shared.pointer:
        raise Skip("no copy was made, which another check reports")
    expect(bool(copied.flags & _abi.IS_COPIED), "the IS_COPIED flag", f"flags {copied.flags:#x}")


def _copy_false(value: Any, spec: Spec, making: Making) -> None:
    shared, other = _exports(spec, making, copy=value)
    expect_equal(other.pointer, shared.pointer, "the same memory at")
    expect_equal(other.byte_strides, shared.byte_strides, "strides in bytes")
    expect(not other.flags & _abi.IS_COPIED, "no IS_COPIED flag", f"flags {other.flags:#x}")


def _copies_independent(making: Making) -> None:
    def copy(spec: Spec) -> Described:
        try:
            return _exports(spec, making, copy=True)[1]
        except Failed as failure:
            raise Skip(f"no copy was made, which another check reports: {failure.got}") from None

    first, second = making.two()
    expect_independent(copy(first), lambda: copy(second))


def _copy_false_refused(making: Making) -> None:
    """What needs a copy (strides DLPack cannot say) is refused, not copied."""
    array = making.offering("__dlpack__", Spec((3,), "int32", "packed"))
    try:
        array.__dlpack__(copy=False)
    except (BufferError, ValueError):
        return
    except TypeError as error:
        raise Skip(describe(error)) from None
    raise Failed("BufferError", "a capsule")


def _check(name: str, clause: str, run: Callable[[Making], None]) -> Check:
    return Check(f"dlpack.copy.{name}", "dlpack", clause, ARRAY_API, run)


CHECKS: tuple[Check, ...] = (
    *(
        _check(f"{name}[{spec}]", clause, partial(run, spec))
        for name, clause, run in (
            ("true", "copy=True always copies, into memory that may be written to", _copy_true),
            ("true-flag", "a copy carries IS_COPIED", _copy_true_flag),
            ("false", "copy=False never copies", partial(_copy_false, False)),
            ("none", "copy=None reuses the memory where it can", partial(_copy_false, None)),
        )
        for spec in COPIED
    ),
    _check("true-independent", "each copy has memory of its own", _copies_independent),
    _check("false-refused", "copy=False raises BufferError where a copy is needed", _copy_false_refused),
)
