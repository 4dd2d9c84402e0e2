"""Timing on the host and on the device together, and the profiler's switch."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dlbridge.nd import _native

from ._device import Device


class Timing:
    """Seconds of each repetition: `cpu_times`, and `gpu_times` with a row for each device."""

    def __init__(self, name: str, cpu_times: list[float], gpu_times: list[list[float]], devices: list[int]) -> None:
        self.name, self.cpu_times, self.gpu_times, self.devices = name, cpu_times, gpu_times, devices

    def to_str(self, show_gpu: bool = True) -> str:
        """One line: mean, deviation, least and most, in microseconds."""
        parts = [f"{self.name:<20s}:    CPU: {_summary(self.cpu_times)}"]
        if show_gpu:
            parts += [
                f"    GPU-{device}: {_summary(times)}"
                for device, times in zip(self.devices, self.gpu_times, strict=True)
            ]
        return " ".join(parts)

    def __str__(self) -> str:
        return self.to_str()

    __repr__ = __str__


def _summary(seconds: Sequence[float]) -> str:
    mean = sum(seconds) / len(seconds)
    deviation = math.sqrt(sum((t - mean) ** 2 for t in seconds) / len(seconds))
    figures = (1e6 * t for t in (mean, deviation, min(seconds), max(seconds)))
    return "{:9.3f} us +/- {:6.3f} (min: {:9.3f} / max: {:9.3f}) us".format(*figures)


def benchmark(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    n_repeat: int = 10000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = math.inf,
    devices: Sequence[int | Device] | None = None,
) -> Timing:
    """Times func(*args, **kwargs), at most `max_duration` seconds long.

    The device's times are those between events before and after the call on its current stream; the host's those of
    the call alone, which returns before the device is done.
    """
    if n_repeat < 1 or n_warmup < 0:
        raise ValueError(f"benchmark(): n_repeat is {n_repeat}, n_warmup {n_warmup}; at least 1 and 0 are needed")
    chosen = [Device(d) for d in devices] if devices is not None else [Device()]
    pairs = [_new_events(device) for device in chosen]
    kwargs = kwargs or {}
    for _ in range(n_warmup):
        func(*args, **kwargs)
    for device in chosen:
        device.synchronize()
    cpu_times: list[float] = []
    gpu_times: list[list[float]] = [[] for _ in chosen]
    began = time.perf_counter()
    for _ in range(n_repeat):
        _record(chosen, [start for start, _ in pairs])
        before = time.perf_counter()
        func(*args, **kwargs)
        cpu_times.append(time.perf_counter() - before)
        _record(chosen, [end for _, end in pairs])
        for times, (start, end) in zip(gpu_times, pairs, strict=True):
            end.synchronize()
            times.append(_native.get_elapsed_time(start, end) * 1e-3)
        if time.perf_counter() - began > max_duration:
            break
    return Timing(name or str(getattr(func, "__name__", "function")), cpu_times, gpu_times, [d.id for d in chosen])


def _new_events(device: Device) -> tuple[Any, Any]:
    with device:
        return _native.Event(), _native.Event()


def _record(devices: Sequence[Device], events: Sequence[Any]) -> None:
    for device, event in zip(devices, events, strict=True):
        with device:
            event.record()


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """A range for a profiler that was started with its collection off, as `nsys profile -c cudaProfilerApi`."""
    _native.profiler_start()
    try:
        yield
    finally:
        _native.profiler_stop()
