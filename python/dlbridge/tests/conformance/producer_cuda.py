"""What the CUDA Array Interface asks of the dict; no driver is needed, the memory is not touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dlbridge.tests.conformance import _spec
from dlbridge.tests.conformance import producer_array_interface as host
from dlbridge.tests.conformance._check import CUDA_INTERFACE, SHOULD, Check, Skip, expect, expect_equal
from dlbridge.tests.conformance._making import Making, describe_managed
from dlbridge.tests.conformance._spec import DTYPES, Spec

ATTRIBUTE = "__cuda_array_interface__"
_NAMED = tuple(s for s in _spec.EXPRESSIBLE if DTYPES[s.dtype]["typestr"])


def _data(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("data")
    good = isinstance(got, tuple) and len(got) == 2 and type(got[0]) is int and isinstance(got[1], bool)
    expect(good, "(int, bool)", repr(got))
    if spec.size and making.form != "plain":
        assert isinstance(got, tuple)
        expect(got[0] != 0, "an address", got[0])


def _null(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    expect_equal(value["data"][0], 0, "the address of an array of size zero")


def _version(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    expect(value.get("version") in (2, 3), "2 or 3", repr(value.get("version")))


def _stream(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("stream")
    expect(got is None or type(got) is int, "None or an int", repr(got))
    expect(got != 0, "None, 1 (legacy), 2 (per thread) or a handle", got)


def _stream_said(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    expect(value.get("version") != 3 or "stream" in value, "the key stream, which version 3 brought", sorted(value))


def _mask(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    got = value.get("mask")
    expect(got is None or hasattr(got, ATTRIBUTE), "None or an object with the interface", repr(got))


def _readonly(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    expect_equal(value["data"][1], making.is_readonly(spec), "the read-only flag")


def _agrees(value: dict[str, Any], array: Any, spec: Spec, making: Making) -> None:
    if not hasattr(array, "__dlpack__"):
        raise Skip("no __dlpack__ to compare with")
    from dlbridge.tests.conformance import _abi

    try:
        capsule = array.__dlpack__()
    except BufferError as error:
        raise Skip(f"__dlpack__ refuses: {error}") from None
    described = describe_managed(_abi.managed_of(capsule), [capsule, array])
    expect_equal(described.shape, tuple(value["shape"]), "the shape of __dlpack__")
    if spec.size:
        expect_equal(described.pointer, value["data"][0], "the pointer of __dlpack__")
    expect(described.device[0] in (2, 13), "a CUDA device in __dlpack__", described.device)


_Look = Callable[[dict[str, Any], Any, Spec, Making], None]

_ASPECTS: tuple[tuple[str, _Look, Sequence[Spec], str, str], ...] = (
    ("shape", host.shape, _NAMED, "must", "shape is a tuple of integers"),
    ("typestr", host.typestr, _NAMED, "must", "typestr is that of the array interface"),
    ("version", _version, (_spec.BASE,), "must", "version is the one that the dict follows"),
    ("strides", host.strides, _NAMED, "must", "strides is None for C order, or a tuple of byte strides"),
    ("data", _data, _NAMED, "must", "data is (address, read-only)"),
    ("null-data", _null, _spec.EMPTY, "must", "the address is 0 where the size is zero"),
    ("stream", _stream, (_spec.BASE,), "must", "stream is None or not 0, which is ambiguous"),
    ("stream-said", _stream_said, (_spec.BASE,), SHOULD, "version 3 says which stream the data is ready on"),
    ("mask", _mask, (_spec.BASE,), "must", "mask is None or an object with the interface"),
    ("readonly", _readonly, (_spec.BASE, *_spec.READONLY), "must", "the read-only flag is the array's"),
    ("agrees-with-dlpack", _agrees, _NAMED, SHOULD, "all protocols of an array describe the same memory"),
)


def _look(look: _Look, spec: Spec, making: Making) -> None:
    array, value = host.interface(making, spec, ATTRIBUTE)
    look(value, array, spec, making)


def _host_array(making: Making) -> None:
    if making.device != "cpu":
        raise Skip(f"the arrays are on {making.device}")
    array = making.array()
    expect(not hasattr(array, ATTRIBUTE), f"no {ATTRIBUTE} on an array of the host", "one")


def _device_array(making: Making) -> None:
    if not making.device.startswith("cuda"):
        raise Skip(f"the arrays are on {making.device}")
    array = making.array()
    expect(not hasattr(array, "__array_interface__"), "no __array_interface__ on an array of a device", "one")
    try:
        memoryview(array).release()
    except TypeError:
        return
    expect(False, "no buffer of an array of a device", "one")


def _all() -> Iterator[Check]:
    for name, look, specs, severity, clause in _ASPECTS:
        for spec in specs:
            run: Any = partial(_look, look, spec)
            yield Check(f"cuda.{name}[{spec}]", "cuda_array_interface", clause, CUDA_INTERFACE, run, severity)
    for name, whole in (("host-array", _host_array), ("device-array", _device_array)):
        clause = "an array is not offered by the protocol of memory that it is not in"
        yield Check(f"cuda.{name}", "cuda_array_interface", clause, CUDA_INTERFACE, whole)


CHECKS: tuple[Check, ...] = tuple(_all())
