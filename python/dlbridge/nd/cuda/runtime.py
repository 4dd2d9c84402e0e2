"""The calls of the CUDA runtime that programs make beside arrays, under their names."""

from __future__ import annotations

from typing import Any

from dlbridge import CudaError
from dlbridge.nd import _native

from ._device import Device

CUDARuntimeError = CudaError


def is_available() -> bool:
    return _native.cuda_is_available()


def getDeviceCount() -> int:
    """How many devices there are; 0 where CUDA cannot be used, and then unavailable_reason() says why."""
    return _native.device_count()


def unavailable_reason() -> str:
    return _native.unavailable_reason()


def getDevice() -> int:
    return _native.current_device()


def setDevice(device: int) -> None:
    Device(device).use()


def deviceSynchronize() -> None:
    Device().synchronize()


def deviceGetAttribute(attribute: int, device: int) -> int:
    return _native.device_attribute(device, attribute)


def deviceCanAccessPeer(device: int, peer: int) -> bool:
    return _native.can_access_peer(device, peer)


def deviceEnablePeerAccess(peer: int) -> None:
    _native.enable_peer_access(_native.current_device(), peer)


def deviceGetLimit(limit: int) -> int:
    return _native.context_limit(_native.current_device(), limit)


def deviceSetLimit(limit: int, value: int) -> None:
    _native.context_limit(_native.current_device(), limit, value)


def driverGetVersion() -> int:
    """1000 * major + 10 * minor of the CUDA version that the driver supports."""
    return _native.driver_version()


def getDeviceProperties(device: int) -> dict[str, Any]:
    chosen = Device(device)
    attributes = chosen.attributes
    return {
        "name": chosen.name.encode(),
        "totalGlobalMem": chosen.total_memory,
        "uuid": chosen.uuid,
        "major": attributes["ComputeCapabilityMajor"],
        "minor": attributes["ComputeCapabilityMinor"],
        "multiProcessorCount": attributes["MultiProcessorCount"],
        "warpSize": attributes["WarpSize"],
        "maxThreadsPerBlock": attributes["MaxThreadsPerBlock"],
        "maxThreadsPerMultiProcessor": attributes["MaxThreadsPerMultiProcessor"],
        "sharedMemPerBlock": attributes["MaxSharedMemoryPerBlock"],
        "sharedMemPerBlockOptin": attributes["MaxSharedMemoryPerBlockOptin"],
        "regsPerBlock": attributes["MaxRegistersPerBlock"],
        "l2CacheSize": attributes["L2CacheSize"],
        "memoryBusWidth": attributes["GlobalMemoryBusWidth"],
        "clockRate": attributes["ClockRate"],
        "memoryClockRate": attributes["MemoryClockRate"],
    }


def memGetInfo() -> tuple[int, int]:
    return _native.device_memory_info(_native.current_device())


def streamSynchronize(stream: int) -> None:
    _native.ExternalStream(stream).synchronize()


def profilerStart() -> None:
    _native.profiler_start()


def profilerStop() -> None:
    _native.profiler_stop()
