"""inspect(): what an object offers, what each protocol says of it, and where they disagree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from dlbridge import _core

# Protocol -> the attributes that offer it; the buffer protocol is a C slot and has none before Python 3.12.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "dlpack": ("__dlpack__",),
    "array_interface": ("__array_interface__",),
    "cuda_array_interface": ("__cuda_array_interface__",),
    "buffer": ("__buffer__",),
    "arrow": ("__arrow_c_device_array__", "__arrow_c_device_stream__", "__arrow_c_stream__", "__arrow_c_array__"),
}
EXCHANGE_API = "__dlpack_c_exchange_api__"


@dataclass(frozen=True)
class Descriptor:
    """What one protocol says of an object: extents, strides in bytes, dtype and device by name, address."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    readonly: bool
    data_ptr: int
    nbytes: int

    def __str__(self) -> str:
        mark = " readonly" if self.readonly else ""
        return f"{self.dtype} {self.shape} strides {self.strides} on {self.device} at {self.data_ptr:#x}{mark}"


@dataclass(frozen=True)
class Offer:
    """One protocol of one object: who has its attribute, and the descriptor it gives or why it refuses."""

    protocol: str
    on_type: bool
    on_instance: bool
    descriptor: Descriptor | None = None
    refusal: str = ""

    @property
    def offered(self) -> bool:
        return self.on_instance

    def __str__(self) -> str:
        if not self.on_instance:
            return f"not offered ({self.refusal})" if self.refusal else "not offered"
        return str(self.descriptor) if self.descriptor is not None else f"refused: {self.refusal}"


@dataclass(frozen=True)
class Report:
    """The answer of inspect().

    `kind` is "object" or "capsule"; `best` the protocol that asdlpack() takes, empty where it refuses for the reason
    in `refusal`; `arrow_type` the type that the object has in Arrow, with the unit of times ("timestamp[us, UTC]"),
    empty where it speaks no Arrow; `capsule` the fields of a DLPack capsule, read without consuming it.
    """

    type: str
    kind: str
    offers: dict[str, Offer] = field(default_factory=dict)
    c_exchange_api: bool = False
    best: str = ""
    refusal: str = ""
    arrow_type: str = ""
    disagreements: list[str] = field(default_factory=list)
    capsule: dict[str, Any] | None = None

    def todict(self) -> dict[str, Any]:
        """The report in plain dicts, lists, strings, numbers and None: fit for json.dumps()."""
        return _plain(asdict(self))  # type: ignore[no-any-return]

    def _lines(self) -> Iterator[str]:
        yield f"{self.type} ({self.kind})"
        for name, offer in self.offers.items():
            yield f"  {name + ':':22}{offer}"
        if self.kind == "object":
            yield f"  {'C exchange API:':22}{'on the type' if self.c_exchange_api else 'no'}"
        if self.arrow_type:
            yield f"  {'Arrow type:':22}{self.arrow_type}"
        for name, value in (self.capsule or {}).items():
            yield f"  {name + ':':22}{value}"
        if self.best:
            yield f"  {'asdlpack() takes:':22}{self.best}"
        if self.refusal:
            yield f"  {'asdlpack() refuses:':22}{self.refusal}"
        for line in self.disagreements:
            yield f"  {'disagreement:':22}{line}"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _describe(tensor: _core.Tensor) -> Descriptor:
    return Descriptor(
        shape=tuple(tensor.shape),
        strides=tuple(tensor.strides),
        dtype=str(tensor.dtype),
        device=str(tensor.device),
        readonly=tensor.readonly,
        data_ptr=tensor.data_ptr,
        nbytes=tensor.nbytes,
    )


def _has_buffer(obj: Any) -> tuple[bool, str]:
    """Whether the type has the buffer slot, and why the object refuses where it does."""
    try:
        with memoryview(obj):
            return True, ""
    except TypeError as error:
        # CPython's wording for a type without the slot; a TypeError of an exporter says something else.
        missing = "bytes-like object is required" in str(error)
        return not missing, "" if missing else _reason(error)
    except Exception as error:
        return True, _reason(error)


def _presence(obj: Any, protocol: str) -> tuple[bool, bool, str]:
    """(on the type, on the instance, why not on the instance) of one protocol."""
    if protocol == "buffer":
        present, why = _has_buffer(obj)
        return present, present, why
    on_type, why = False, ""
    for name in ATTRIBUTES[protocol]:
        on_type = hasattr(type(obj), name)
        try:
            getattr(obj, name)
        except AttributeError as error:
            why = str(error) if on_type else ""
        except Exception as error:
            return on_type, True, _reason(error)
        else:
            return on_type, True, ""
    return on_type, False, why


def _offer(obj: Any, protocol: str) -> Offer:
    on_type, on_instance, why = _presence(obj, protocol)
    if not on_instance:
        return Offer(protocol, on_type, False, refusal=why)
    try:
        tensor = _core.asdlpack(obj, protocol=protocol)
    except Exception as error:
        return Offer(protocol, on_type, True, refusal=_reason(error))
    return Offer(protocol, on_type, True, _describe(tensor))


def _arrow_type(obj: Any) -> str:
    try:
        return _core.arrow_type(obj) or ""
    except Exception:
        return ""  # the offer says why


def _comparable(d: Descriptor) -> dict[str, object]:
    # Strides of axes that are never stepped along, and the address of nothing, may differ without meaning.
    strides = tuple(s for s, n in zip(d.strides, d.shape, strict=True) if n > 1) if d.nbytes else ()
    return {
        "shape": d.shape,
        "strides": strides,
        "dtype": d.dtype,
        "device": d.device,
        "readonly": d.readonly,
        "data_ptr": d.data_ptr if d.nbytes else 0,
    }


def _disagreements(offers: dict[str, Offer]) -> list[str]:
    said = {name: _comparable(o.descriptor) for name, o in offers.items() if o.descriptor is not None}
    lines = []
    for key in ("shape", "strides", "dtype", "device", "readonly", "data_ptr"):
        # Arrow says of all its arrays that nobody writes to them.
        values = {name: fields[key] for name, fields in said.items() if (key, name) != ("readonly", "arrow")}
        if len({str(value) for value in values.values()}) > 1:
            lines.append(f"{key}: " + ", ".join(f"{name} says {value}" for name, value in values.items()))
    return lines


def _inspect_capsule(capsule: Any) -> Report:
    fields = _core.peek_capsule(capsule)
    if fields.get("consumed"):
        return Report("PyCapsule", "capsule", refusal="the capsule is already consumed", capsule=fields)
    if "shape" not in fields:
        what = (
            f"its DLPack version is {fields['version']}" if fields.get("version") else f"its name is {fields['name']!r}"
        )
        return Report("PyCapsule", "capsule", refusal=f"no DLPack 1.x capsule: {what}", capsule=fields)
    return Report("PyCapsule", "capsule", best="dlpack", capsule=fields)


def inspect(obj: Any) -> Report:
    """Reports which protocols `obj` offers and what each of them says.

    Every protocol that is offered is read once, as asdlpack() reads it; a DLPack capsule is only looked at, and can
    be consumed afterwards. An Arrow stream that can be read once is read. Raises nothing for a bad producer: its errors
    are in the report.
    """
    kind = type(obj)
    if kind.__name__ == "PyCapsule":
        return _inspect_capsule(obj)
    offers = {protocol: _offer(obj, protocol) for protocol in ATTRIBUTES}
    best, refusal = "", ""
    try:
        best = _core.asdlpack(obj).protocol
    except Exception as error:
        refusal = _reason(error)
    return Report(
        type=f"{kind.__module__}.{kind.__qualname__}",
        kind="object",
        offers=offers,
        c_exchange_api=hasattr(kind, EXCHANGE_API),
        best=best,
        refusal=refusal,
        arrow_type=_arrow_type(obj),
        disagreements=_disagreements(offers),
    )
