"""Which exchanges a run makes, in a fixed order: a worker that replaces a crashed one counts on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlbridge.tests._cases import Case
from dlbridge.tests.frameworks import ArrayType, Framework

CONVERT = "convert"
READ = "read"

# The default run: one array of each of these dtypes, and one of each layout.
_DTYPES = ("bool", "uint8", "int64", "float32", "complex64", "bfloat16", "float8_e4m3fn")
_FAVOURITE = ("float32", "uint8", "bfloat16")


@dataclass(frozen=True)
class Spec:
    """One exchange to make; `protocol` is empty where asdlpack() chooses, `consumer` None for reading alone."""

    producer: Framework
    kind: ArrayType
    consumer: Framework | None
    protocol: str
    route: str
    case: Case

    @property
    def consumer_label(self) -> str:
        return "asdlpack" if self.consumer is None else self.consumer.label


def _cases(kind: ArrayType, device: str, full: bool) -> Iterator[Case]:
    dtypes = list(kind.dtypes)
    layouts = kind.layouts(device)
    favourite = next((name for name in _FAVOURITE if name in kind.dtypes), dtypes[0])
    few = [name for name in dtypes if name in _DTYPES] or [favourite]
    for layout in layouts:
        if layout == "delayed":
            chosen = ["float32"]  # what the delayed kernels write
        elif full or layout == layouts[0]:
            chosen = dtypes if full else few
        else:
            chosen = [favourite]
        yield from (Case(dtype, layout, device) for dtype in chosen)


def _routes(consumer: Framework, kind: ArrayType, device: str, full: bool) -> Iterator[tuple[str, str]]:
    """(protocol to read by, route to the consumer)."""
    takes = [route for route in consumer.takes if not consumer.only_devices or device in consumer.only_devices]
    if device == "cpu":
        takes = [route for route in takes if route != "cuda_array_interface"]
    if not full:
        takes = [route for route in ("dlpack", *takes) if route in takes][:1]
    # A kind of one protocol is not sent twice: what asdlpack() chooses is that one.
    protocols = ("", *kind.protocols) if full and len(kind.protocols) > 1 else ("",)
    for protocol in protocols:
        yield from ((protocol, route) for route in (*([CONVERT] if consumer.convert else []), *takes))


def specs(
    producers: Sequence[Framework], consumers: Sequence[Framework], *, full: bool, devices: dict[str, list[str]]
) -> Iterator[Spec]:
    """The exchanges of all producers with all consumers; `devices` says which are there, by the producer's name."""
    for producer in producers:
        for kind in producer.types:
            there = [device for device in kind.devices if device in devices[producer.name]]
            for case in (case for device in there for case in _cases(kind, device, full)):
                for protocol in ("", *kind.protocols) if full else ("",):
                    yield Spec(producer, kind, None, protocol, READ, case)
                for consumer in consumers:
                    for protocol, route in _routes(consumer, kind, case.device, full):
                        yield Spec(producer, kind, consumer, protocol, route, case)
