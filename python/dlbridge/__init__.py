"""Any array in, any protocol out.

``asdlpack(obj)`` turns any object that offers DLPack, ``__array_interface__``, ``__cuda_array_interface__``, the
buffer protocol or Arrow into a `Tensor` that offers all of them, without a copy; ``convert(obj, "torch")`` gives it to
a framework by name, and ``columns(table)`` takes a data frame apart. Importing this package imports no framework
and no NumPy.
"""

from __future__ import annotations

import os
import sys

from dlbridge._core import (
    CopyError,
    CudaError,
    CudaTensor,
    DataError,
    Device,
    DType,
    ExchangeError,
    HostTensor,
    ProtocolError,
    Tensor,
    __version__,
    asdlpack,
    columns,
    convert,
)

TYPE_CHECKING = False  # type checkers take it for true; importing `typing` would cost half of our 20 ms
if TYPE_CHECKING:
    from typing import Any

    from dlbridge import tests
    from dlbridge._adapt import adapt
    from dlbridge._compat import install_as_dlpack
    from dlbridge._frames import planes
    from dlbridge._inspect import Report, inspect
    from dlbridge._load import load
    from dlbridge._op import op
    from dlbridge._packing import pack_float4, pack_int4, unpack_float4, unpack_int4
    from dlbridge._records import fields
    from dlbridge._shards import Shard, assemble, shards
    from dlbridge._sharing.handle import Handle, empty_shared, share
    from dlbridge._typing import AnyArray
    from dlbridge._use import use

__all__ = [
    "AnyArray",
    "CopyError",
    "CudaError",
    "CudaTensor",
    "DType",
    "DataError",
    "Device",
    "ExchangeError",
    "Handle",
    "HostTensor",
    "ProtocolError",
    "Report",
    "Shard",
    "Tensor",
    "__version__",
    "adapt",
    "asdlpack",
    "assemble",
    "columns",
    "convert",
    "empty_shared",
    "fields",
    "get_cmake_dir",
    "get_include",
    "inspect",
    "install_as_dlpack",
    "load",
    "op",
    "pack_float4",
    "pack_int4",
    "planes",
    "shards",
    "share",
    "tests",
    "unpack_float4",
    "unpack_int4",
    "use",
]

# Names that are loaded on first use, so that `import dlbridge` stays under its 20 ms: (module, attribute or None).
_LAZY: dict[str, tuple[str, str | None]] = {
    "AnyArray": ("dlbridge._typing", "AnyArray"),
    "Handle": ("dlbridge._sharing.handle", "Handle"),
    "Report": ("dlbridge._inspect", "Report"),
    "Shard": ("dlbridge._shards", "Shard"),
    "adapt": ("dlbridge._adapt", "adapt"),
    "assemble": ("dlbridge._shards", "assemble"),
    "dask": ("dlbridge.dask", None),
    "empty_shared": ("dlbridge._sharing.handle", "empty_shared"),
    "fields": ("dlbridge._records", "fields"),
    "inspect": ("dlbridge._inspect", "inspect"),
    "install_as_dlpack": ("dlbridge._compat", "install_as_dlpack"),
    "load": ("dlbridge._load", "load"),
    "mpi": ("dlbridge.mpi", None),
    "multiprocessing": ("dlbridge.multiprocessing", None),
    "nd": ("dlbridge.nd", None),
    "op": ("dlbridge._op", "op"),
    "pack_float4": ("dlbridge._packing", "pack_float4"),
    "pack_int4": ("dlbridge._packing", "pack_int4"),
    "planes": ("dlbridge._frames", "planes"),
    "ray": ("dlbridge.ray", None),
    "shards": ("dlbridge._shards", "shards"),
    "share": ("dlbridge._sharing.handle", "share"),
    "tests": ("dlbridge.tests", None),
    "unpack_float4": ("dlbridge._packing", "unpack_float4"),
    "unpack_int4": ("dlbridge._packing", "unpack_int4"),
    "use": ("dlbridge._use", "use"),
}


def __getattr__(name: str) -> Any:
    try:
        module_name, attribute = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'dlbridge' has no attribute {name!r}") from None
    import importlib

    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise AttributeError(f"module 'dlbridge' has no attribute {name!r}: {module_name} is not built in") from error
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _installed_dir(name: str, what: str) -> str:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    if not os.path.isdir(path):
        raise FileNotFoundError(f"dlbridge: {what} are not at {path}. Install the wheel, which holds them")
    return path


def get_include() -> str:
    """The folder of the C++ headers, for ``-I``: ``dlbridge/*.h`` and the ``dlpack/dlpack.h`` of the build.

    Raises FileNotFoundError where the package was not installed from a wheel.
    """
    return _installed_dir("include", "the C++ headers")


def get_cmake_dir() -> str:
    """The folder of ``dlbridgeConfig.cmake``, for ``-Ddlbridge_DIR=...`` or CMAKE_PREFIX_PATH.

    Raises FileNotFoundError where the package was not installed from a wheel.
    """
    return _installed_dir("cmake", "the CMake package files")


if "distributed.worker" in sys.modules:  # a worker of Dask's got the first array: it is to compute with it, and send it
    import dlbridge.dask  # noqa: F401
