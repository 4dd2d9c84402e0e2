"""Whether every public function of the ndarray takes part: by a case, or by a line here that says why not."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from dlbridge import nd

from oracle.cases import Case, names_of

EXCLUDED = {
    "types and modules, no functions": """
        AxisError CudaArray HostArray NpzFile broadcast flatiter ndarray ufunc cuda fft lib linalg polynomial random
        linalg.LinAlgError get_default_memory_pool get_default_pinned_memory_pool
         random.Generator random.RandomState random.Philox4x32 random.Philox4x3210""",
    "made or read by NumPy on the host: test_nd_files.py, test_nd_functions.py": """
        bartlett blackman hamming hanning kaiser fromfile fromstring genfromtxt load loadtxt save savetxt savez
        savez_compressed ndarray.dump ndarray.dumps""",
    "user kernels, compiled for the device that they run on: test_user_kernels*.py": """
        ElementwiseKernel RawKernel RawModule ReductionKernel fuse""",
    "exchange with other libraries: test_nd_protocols.py": """
        asnumpy from_dlpack fromDlpack get_array_module ndarray.toDlpack ndarray.to_device ndarray.get ndarray.set
        ndarray.owner ndarray.padded ndarray.protocol ndarray.readonly ndarray.data ndarray.data_ptr
        ndarray.device""",
    "text, made on the host from copies: test_nd_api.py": """
        array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific""",
    "a function of Python's, called on the host: test_nd_functions.py": "vectorize",
    "properties of dtypes, without an array: test_nd_ufuncs.py": """
        __array_namespace_info__ dtype finfo iinfo issubdtype common_type min_scalar_type
        generic number integer signedinteger unsignedinteger inexact floating complexfloating""",
    "indexing objects, which call arange: test_nd_functions.py": "mgrid ogrid",
    "properties of the object, the same for every device: test_nd_api.py": """
        ndarray.base ndarray.dtype ndarray.flags ndarray.is_contiguous ndarray.strides byte_bounds""",
    "state of the generator, no array: test_nd_random.py": """
        random.default_rng random.get_state random.set_state random.Generator.spawn random.Generator.state
        random.get_random_state random.set_random_state random.Generator.bit_generator""",
    "order between streams, no value: test_gpu_order.py": "ndarray.record_stream",
    "a method whose function has cases": """
        ndarray.compress ndarray.round ndarray.scatter_add ndarray.ptp ndarray.tolist ndarray.nonzero""",
}


def _functions(module: ModuleType) -> dict[str, Any]:
    """The public functions of a module."""
    return {name: value for name in module.__all__ if callable(value := getattr(module, name))}


def public() -> dict[str, Any]:
    """Every public name that can be called or read: functions, methods, properties; no dtypes, no constants."""
    found: dict[str, Any] = {}
    for name in nd.__all__:
        value = getattr(nd, name)
        if not isinstance(value, (nd.dtype, float, type(None))):
            found[name] = value
    for module in (
        nd.fft,
        nd.linalg,
        nd.random,
        nd.polynomial.polynomial,
        nd.polynomial.polyutils,
        nd.lib.stride_tricks,
    ):
        found |= {f"{module.__name__.removeprefix('dlbridge.nd.')}.{name}": f for name, f in _functions(module).items()}
    for kind, prefix in ((nd.ndarray, "ndarray"), (nd.random.Generator, "random.Generator")):
        found |= {f"{prefix}.{name}": getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return found


def missing(cases: Iterable[Case]) -> list[str]:
    """The public names that no case and no exclusion mentions, and the exclusions of names that do not exist."""
    everything = public()
    covered: set[str] = set()
    for code in {case.code for case in cases}:
        covered |= names_of(code)
    excluded = {name for names in EXCLUDED.values() for name in names.split()}
    objects = {id(everything[name]) for name in covered if name in everything}
    absent = sorted(
        f"{name} is public, but no family of the differential calls it"
        for name, value in everything.items()
        if name not in covered | excluded and id(value) not in objects
    )
    return absent + sorted(f"{name} is excluded, but does not exist" for name in excluded - set(everything))
