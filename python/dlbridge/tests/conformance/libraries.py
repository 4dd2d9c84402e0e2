"""The libraries that ``--library NAME`` knows: which adapters are run, and what each claims to take."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dlbridge.tests.conformance._report import Report
from dlbridge.tests.conformance._run import check_consumer, check_producer

_ADAPTERS = "dlbridge.tests.conformance.adapters"
_DLPACK, _EXCHANGE, _HOST, _CUDA = (
    ("dlpack",),
    ("dlpack", "dlpack_exchange"),
    ("array_interface", "buffer"),
    ("cuda_array_interface",),
)


@dataclass(frozen=True)
class Library:
    """Names in `adapters`: factories; importers with the protocols that each claims; how to look at its results."""

    module: str
    producers: tuple[str, ...] = ()
    consumers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    immutable: bool = False
    observe: str | None = None


LIBRARIES: dict[str, Library] = {
    "numpy": Library("numpy", ("numpy_array",), (("numpy_from_dlpack", _EXCHANGE), ("numpy_asarray", _HOST))),
    "torch": Library("torch", ("torch_tensor",), (("torch_from_dlpack", _EXCHANGE), ("torch_as_tensor", _CUDA))),
    "jax": Library("jax", ("jax_array",), (("jax_from_dlpack", _DLPACK), ("jax_asarray", _HOST)), immutable=True),
    "tensorflow": Library(
        "tensorflow",
        ("tensorflow_tensor",),
        (("tensorflow_from_dlpack", _DLPACK), ("tensorflow_convert", ("array_interface",))),
        immutable=True,
    ),
    "pyarrow": Library("pyarrow", ("pyarrow_array", "pyarrow_tensor")),
    "onnxruntime": Library("onnxruntime", ("onnxruntime_value",), (("onnxruntime_from_dlpack", _DLPACK),)),
    "tvm_ffi": Library("tvm_ffi", ("tvm_ffi_tensor",), (("tvm_ffi_from_dlpack", _EXCHANGE),)),
    "pydlpack": Library(
        "dlpack",
        ("pydlpack_wrapped",),
        (("pydlpack_from_dlpack", ("dlpack", *_HOST)),),
    ),
    "cupy": Library("cupy", ("cupy_array",), (("cupy_from_dlpack", _DLPACK), ("cupy_asarray", _CUDA))),
    "numba": Library("numba", ("numba_device_array",), (("numba_as_cuda_array", _CUDA),), observe="cuda_observe"),
    "dlbridge": Library(
        "dlbridge", ("dlbridge_tensor",), (("dlbridge_asdlpack", ("dlpack", "dlpack_exchange", *_HOST)),)
    ),
}

# Of libraries whose other arrays are not.
_IMMUTABLE = {"pyarrow_array"}


def names() -> list[str]:
    return list(LIBRARIES)


def check(name: str, *, protocols: Iterable[str] | None = None, device: str = "cpu", **options: Any) -> list[Report]:
    """The reports of one known library; one that could not run where it is not installed."""
    library = LIBRARIES[name]
    try:
        if importlib.util.find_spec(library.module) is None:
            raise ImportError("not installed")
    except Exception as error:
        return [Report("library", name, could_not_run=f"{library.module} cannot be imported: {error}")]
    reports = [
        check_producer(
            f"{_ADAPTERS}:{producer}",
            protocols=protocols,
            device=device,
            immutable=library.immutable or producer in _IMMUTABLE,
            **options,
        )
        for producer in library.producers
    ]
    observe = None if library.observe is None else f"{_ADAPTERS}:{library.observe}"
    for consumer, claims in library.consumers:
        chosen = [p for p in claims if protocols is None or p in protocols]
        if chosen:
            reports.append(check_consumer(f"{_ADAPTERS}:{consumer}", protocols=chosen, observe=observe, **options))
    return reports
