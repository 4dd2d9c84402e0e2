"""The libraries that ``--library NAME`` knows: which adapters are run, and what each claims to take."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dlbridge.tests.conformance._report import Report
from dlbridge.tests.conformance._run import check_consumer, check_producer

_ADAPTERS = "dlbridge.tests.conformance.adapters"
_ARROW_ADAPTERS = "dlbridge.tests.conformance.arrow_adapters"
_DLPACK, _EXCHANGE, _HOST, _CUDA, _ARROW = (
    ("dlpack",),
    ("dlpack", "dlpack_exchange"),
    ("array_interface", "buffer"),
    ("cuda_array_interface",),
    ("arrow",),
)


def _of_arrow(name: str) -> str:
    return f"{_ARROW_ADAPTERS}:{name}"


@dataclass(frozen=True)
class Library:
    """Factories; importers with the protocols that each claims; how to look at its results.

    They are names in `adapters`, or "module:name".
    """

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
    "pyarrow": Library(
        "pyarrow",
        (_of_arrow("pyarrow_array"), _of_arrow("pyarrow_table"), "pyarrow_tensor"),
        ((_of_arrow("pyarrow_from_arrow"), _ARROW),),
    ),
    "polars": Library(
        "polars",
        (_of_arrow("polars_series"), _of_arrow("polars_frame")),
        ((_of_arrow("polars_from_arrow"), _ARROW),),
    ),
    "pandas": Library(
        "pandas",
        (_of_arrow("pandas_series"), _of_arrow("pandas_frame")),
        ((_of_arrow("pandas_from_arrow"), _ARROW),),
    ),
    "duckdb": Library(
        "duckdb",
        (_of_arrow("duckdb_relation"), _of_arrow("duckdb_query")),
        ((_of_arrow("duckdb_from_arrow"), _ARROW),),
    ),
    "nanoarrow": Library(
        "nanoarrow",
        (_of_arrow("nanoarrow_array"), _of_arrow("nanoarrow_table")),
        ((_of_arrow("nanoarrow_from_arrow"), _ARROW),),
    ),
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
        "dlbridge",
        ("dlbridge_tensor", _of_arrow("dlbridge_ndarray")),
        (
            ("dlbridge_asdlpack", ("dlpack", "dlpack_exchange", *_HOST, *_ARROW)),
            (_of_arrow("dlbridge_columns"), _ARROW),
        ),
    ),
}

# Of libraries whose other arrays are not.
_IMMUTABLE = {_of_arrow("pyarrow_array")}


def _qualified(name: str) -> str:
    return name if ":" in name else f"{_ADAPTERS}:{name}"


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
            _qualified(producer),
            protocols=protocols,
            device=device,
            immutable=library.immutable or producer in _IMMUTABLE,
            **options,
        )
        for producer in library.producers
    ]
    observe = None if library.observe is None else _qualified(library.observe)
    for consumer, claims in library.consumers:
        chosen = [p for p in claims if protocols is None or p in protocols]
        if chosen:
            reports.append(check_consumer(_qualified(consumer), protocols=chosen, observe=observe, **options))
    return reports
