"""Device: one CUDA device, selected for a thread by `with` or use()."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from dlbridge.nd import _native

from ._attributes import ATTRIBUTES


class Device:
    """A CUDA device.

    device: its number; None is the thread's current one. `with Device(1):` selects it for a block, use() until another
    is selected. Numbers are the driver's, counted from 0.
    """

    type = "cuda"

    def __init__(self, device: int | Device | None = None) -> None:
        if device is None:
            self.id: int = _native.current_device()
        else:
            self.id = device.id if isinstance(device, Device) else _number_of(device)
            _native.check_device(self.id)

    def __enter__(self) -> Device:
        _native.enter_device(self.id)
        return self

    def __exit__(self, *_: object) -> None:
        _native.leave_device()

    def use(self) -> None:
        """Selects the device for the calling thread."""
        _native.use_device(self.id)

    def synchronize(self) -> None:
        """Waits until the device has done all work. Other threads run on."""
        _native.synchronize_device(self.id)

    @cached_property
    def attributes(self) -> dict[str, int]:
        """The driver's figures by name, as `MultiProcessorCount`."""
        return {name: _native.device_attribute(self.id, number) for name, number in ATTRIBUTES.items()}

    @property
    def compute_capability(self) -> str:
        """As '90': what NVRTC's `sm_90` names."""
        return f"{_native.device_attribute(self.id, 75)}{_native.device_attribute(self.id, 76)}"

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes, as the driver sees them: what the pool keeps is not free."""
        return _native.device_memory_info(self.id)

    @cached_property
    def _properties(self) -> dict[str, Any]:
        return _native.device_properties(self.id)

    @property
    def name(self) -> str:
        return self._properties["name"]

    @property
    def total_memory(self) -> int:
        return self._properties["total_memory"]

    @property
    def pci_bus_id(self) -> str:
        return self._properties["pci_bus_id"]

    @property
    def uuid(self) -> bytes:
        return self._properties["uuid"]

    @property
    def stream_priority_range(self) -> tuple[int, int]:
        """The least and the greatest priority of a Stream; the greatest is the lower number."""
        return _native.stream_priority_range(self.id)

    def can_access_peer(self, peer: int | Device) -> bool:
        """Whether kernels here can read the other device's memory."""
        return can_access_peer(self, peer)

    @property
    def _dlbridge_device(self) -> str:
        """What `device=` arguments take."""
        return str(self)

    def __int__(self) -> int:
        return self.id

    __index__ = __int__

    def __str__(self) -> str:
        return f"cuda:{self.id}"

    def __eq__(self, other: object) -> bool:
        """Equal to the same device under any of its names: "cuda:1", the dlbridge.Device."""
        return other.id == self.id if isinstance(other, Device) else str(self) == other

    def __lt__(self, other: object) -> bool:
        return self.id < other.id if isinstance(other, Device) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.id <= other.id if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))  # as dlbridge.Device, which may be equal

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return Device, (self.id,)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


def _number_of(device: Any) -> int:
    """The number of any device that names one: an int, "cuda:1", a dlbridge.Device, a torch.device."""
    if hasattr(device, "__index__"):
        return device.__index__()
    kind, _, number = str(device).partition(":")
    if kind == "cuda" and (number.isdecimal() or not number):
        return int(number) if number else _native.current_device()
    raise ValueError(f"Device(): {device!r} is not a CUDA device. Give its number, or 'cuda:1'")


def can_access_peer(device: int | Device, peer: int | Device) -> bool:
    """Whether kernels on `device` can read the memory of `peer`."""
    return _native.can_access_peer(_number_of(device), _number_of(peer))


def enable_peer_access(device: int | Device, peer: int | Device) -> None:
    """Opens the memory of `peer` to `device`; ValueError where the hardware has no way."""
    _native.enable_peer_access(_number_of(device), _number_of(peer))
