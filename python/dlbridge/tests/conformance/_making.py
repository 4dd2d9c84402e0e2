"""The producer under test: makes its arrays, takes exports of them, and reads what each says, byte by byte."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._check import Failed, Skip, Unsupported, describe, expect
from dlbridge.tests.conformance._spec import BASE, OTHER, Spec, c_strides, read_memory

LARGE = Spec((50, 7), "float64")  # larger than the small blocks that libraries keep for themselves when they are freed
HOST_DEVICES = {1, 3, 11, 13}  # DLDeviceType that the host can read: CPU, CUDA and ROCm pinned, CUDA managed


@dataclass
class Described:
    """What an export says. `strides` are bytes, None where the export gives none; `pointer` is element 0."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    code: int
    bits: int
    lanes: int = 1
    device: tuple[int, int] = (1, 0)
    readonly: bool | None = None
    swapped: bool = False
    data: int = 0
    version: tuple[int, int] | None = None
    flags: int = 0
    keep: list[Any] = field(default_factory=list)  # what must live as long as the memory is read

    @property
    def itemsize(self) -> int:
        return (self.bits * self.lanes + 7) // 8

    @property
    def byte_strides(self) -> tuple[int, ...]:
        return c_strides(self.shape, self.itemsize) if self.strides is None else self.strides

    def values(self) -> list[Any]:
        if self.device[0] not in HOST_DEVICES:
            raise Skip(f"the host cannot read device {self.device}")
        return read_memory(self.pointer, self.shape, self.byte_strides, self.code, self.bits, swapped=self.swapped)


def describe_tensor(tensor: Any, keep: list[Any]) -> Described:
    """A DLTensor; its strides are turned into bytes."""
    ndim, dtype = tensor.ndim, tensor.dtype
    if not 0 <= ndim <= 64:
        raise Failed("ndim between 0 and 64", ndim)
    if ndim and not tensor.shape:
        raise Failed("a shape pointer", "NULL")
    shape = tuple(tensor.shape[:ndim]) if ndim else ()
    itemsize = (dtype.bits * dtype.lanes + 7) // 8
    strides = tuple(s * itemsize for s in tensor.strides[:ndim]) if ndim and tensor.strides else None
    data = tensor.data or 0
    device = (tensor.device.device_type, tensor.device.device_id)
    described = Described(
        data + tensor.byte_offset,
        shape,
        strides if ndim else (),
        dtype.code,
        dtype.bits,
        dtype.lanes,
        device,
        keep=keep,
    )
    described.data = data
    return described


def describe_managed(managed: Any, keep: list[Any]) -> Described:
    described = describe_tensor(managed.dl_tensor, keep)
    if isinstance(managed, _abi.DLManagedTensorVersioned):
        described.version = (managed.version.major, managed.version.minor)
        described.flags = managed.flags
        described.readonly = bool(managed.flags & _abi.READ_ONLY)
    return described


def take_freed_memory(size: int) -> list[bytearray]:
    """Blocks of `size` bytes that overwrite what was freed before; to be kept until it has been looked at."""
    gc.collect()
    return [bytearray(b"\xa5") * size for _ in range(64)]


def expect_independent(first: Described, second: Callable[[], Described]) -> None:
    """What the first export says holds after an export of another array."""
    before = first.values()
    other = second()
    expect(first.values() == before, f"the elements of the first array, {before}", first.values())
    expect(other.pointer != first.pointer, "memory of its own for each array", "the same address for two")


# --- how the user's factory is called ---------------------------------------------------------------------------------


def _caller(factory: Callable[..., Any]) -> tuple[str, Callable[[Spec], Any]]:
    """factory(spec), factory(shape, dtype) of plain dense arrays, or factory() of one array of its own choice."""
    try:
        parameters = [
            p
            for p in inspect.signature(factory).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and (p.default is p.empty or p.name == "spec")
        ]
    except (TypeError, ValueError):  # a C function without a signature
        return "spec", factory
    if not parameters:
        return "plain", lambda spec: factory()
    if len(parameters) >= 2:
        return "shape, dtype", lambda spec: factory(spec.shape, spec.dtype)
    return "spec", factory


class Making:
    """Makes arrays of the library under test, and their exports."""

    def __init__(self, factory: Callable[..., Any], *, device: str = "cpu", immutable: bool = False) -> None:
        self.form, self._make = _caller(factory)
        self.device = device
        self.immutable = immutable  # its arrays are read-only, all of them
        self._keywords: dict[str, bool] = {}

    @property
    def knows_values(self) -> bool:
        return self.form == "spec"

    def array(self, spec: Spec = BASE) -> Any:
        if self.form == "plain" and spec != BASE:
            raise Skip("the factory makes one array of its own choice")
        if self.form == "shape, dtype" and (spec.layout != "C" or spec.readonly):
            raise Skip("the factory takes a shape and a dtype, no layout")
        if self.device != "cpu":
            spec = Spec(spec.shape, spec.dtype, spec.layout, spec.readonly, self.device)
        try:
            made = self._make(spec)
        except (Unsupported, NotImplementedError) as error:
            raise Skip(f"the factory cannot make it: {error}" if str(error) else "the factory cannot make it") from None
        except Exception as error:
            raise Skip(f"the factory raised {describe(error)}") from None
        if made is None:
            raise Skip("the factory made nothing")
        return made

    def large(self) -> Spec:
        """The array in which freed memory is looked for."""
        return LARGE if self.form == "spec" else BASE

    def two(self) -> tuple[Spec, Spec]:
        """Two arrays of other elements; a Skip where the factory knows one."""
        if self.form == "plain":
            raise Skip("the factory makes one array of its own choice")
        return BASE, OTHER

    def is_readonly(self, spec: Spec) -> bool:
        return spec.readonly or self.immutable

    def need_keyword(self, name: str) -> None:
        """A Skip where ``__dlpack__`` does not know the keyword, which a check of its own reports."""
        if name not in self._keywords:
            try:
                self.offering("__dlpack__").__dlpack__(**{name: None})
            except TypeError:
                self._keywords[name] = False
            except Skip:
                raise
            except Exception:
                self._keywords[name] = True
            else:
                self._keywords[name] = True
        if not self._keywords[name]:
            raise Skip(f"__dlpack__ takes no {name}")

    def offering(self, attribute: str, spec: Spec = BASE) -> Any:
        """An array that has `attribute`."""
        made = self.array(spec)
        if not hasattr(made, attribute):
            raise Skip(f"{type(made).__name__} has no {attribute}")
        return made

    def capsule(self, form: str, spec: Spec = BASE, **options: Any) -> tuple[Any, Any]:
        """The array and its "legacy" or "versioned" capsule; a refusal for the dtype or layout is a skip."""
        made = self.offering("__dlpack__", spec)
        if form == "versioned":
            options = {"max_version": (1, 3), **options}
        try:
            capsule = made.__dlpack__(**options)
        except TypeError as error:
            raise Skip(f"__dlpack__ refuses the arguments: {describe(error)}") from None
        except Exception as error:
            raise Skip(f"__dlpack__ refuses: {describe(error)}") from None
        wanted = _abi.VERSIONED if form == "versioned" else _abi.LEGACY
        if not _abi.is_capsule(capsule) or _abi.capsule_name(capsule) != wanted:
            raise Skip(f"__dlpack__ gives no {form} capsule")
        return made, capsule

    def managed(self, form: str, spec: Spec = BASE, **options: Any) -> Described:
        made, capsule = self.capsule(form, spec, **options)
        return describe_managed(_abi.managed_of(capsule), [capsule, made])
