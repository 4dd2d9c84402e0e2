"""What the Array API (2024.12) asks about the library: ``__array_namespace_info__()``."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._dtypes import BY_NAME, isdtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import DeviceLike

_STANDARD = tuple(name for name in BY_NAME if name not in ("float16", "bfloat16"))  # the names that the standard has


class NamespaceInfo:
    """Capabilities, devices and dtypes of dlbridge.nd."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and shapes that depend on data are supported; arrays have at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device on which functions make arrays unless told otherwise: the current GPU, or the CPU without one."""
        return _native.default_device()

    def devices(self) -> tuple[Any, ...]:
        """The CPU and every GPU."""
        from dlbridge.nd import cuda

        found = [_native.empty((0,), device="cpu").device]
        if cuda.is_available():
            found += [_native.empty((0,), device=f"cuda:{number}").device for number in range(cuda.device_count())]
        return tuple(found)

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, Any]:
        """The dtypes of results where nothing names one."""
        return {
            "real floating": BY_NAME["float64"],
            "complex floating": BY_NAME["complex128"],
            "integral": BY_NAME["int64"],
            "indexing": BY_NAME["int64"],
        }

    def dtypes(self, *, device: DeviceLike = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes of a kind (see isdtype()), all by default, by name."""
        return {name: BY_NAME[name] for name in _STANDARD if kind is None or isdtype(BY_NAME[name], kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """Capabilities, devices and dtypes of this namespace. Source: Array API 2024.12."""
    return NamespaceInfo()
