"""A small, fast ndarray on GPUs and on the host: NumPy's and CuPy's names, the Array API (2024.12), every protocol.

``nd.ndarray`` is a subtype of ``dlbridge.Tensor``: any framework takes it without a copy, and ``nd.asarray(x)`` takes
any framework's array. Functions make arrays on the current CUDA device, on the CPU where there is none, or on
``device=``. Nothing is compiled on first use and no framework is imported; user kernels (``RawKernel``, …) find NVRTC
when called.
"""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._native import CudaArray as CudaArray
from dlbridge.nd._native import HostArray as HostArray
from dlbridge.nd._native import empty as empty
from dlbridge.nd._native import ndarray as ndarray
from dlbridge.nd._native import ufunc as ufunc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# --- names that are loaded when they are first used, so that the import stays cheap ----------------------------------

_FUNCTIONS: dict[str, str] = {
    "_abstract": "complexfloating floating generic inexact integer number signedinteger unsignedinteger",
    "_arguments": "AxisError broadcast_shapes",
    "_bits": "packbits unpackbits",
    "_concatenators": "c_ r_",
    "_correlation": "corrcoef cov",
    "_array_api": "__array_namespace_info__",
    "_blocks": "block",
    "_creation": (
        "array asanyarray asarray ascontiguousarray asfortranarray asnumpy copy empty_like from_dlpack "
        "frombuffer fromDlpack fromfunction fromiter full full_like get_array_module ones ones_like zeros "
        "zeros_like"
    ),
    "_dtypes": "can_cast common_type dtype finfo iinfo isdtype issubdtype min_scalar_type promote_types result_type",
    "_einsum": "einsum",
    "_elementwise": (
        "angle around astype clip divmod fix float_power frexp i0 imag isneginf isposinf "
        "ldexp modf nan_to_num real real_if_close round spacing"
    ),
    "_files": "NpzFile fromfile fromstring genfromtxt load loadtxt save savetxt savez savez_compressed",
    "_functional": "asarray_chkfinite byte_bounds require vectorize",
    "_grids": (
        "diag diag_indices diag_indices_from diagflat diagonal eye fill_diagonal identity indices "
        "mask_indices meshgrid mgrid ogrid "
        "trace tri tril tril_indices tril_indices_from triu triu_indices triu_indices_from vander"
    ),
    "_histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "_indexing": (
        "apply_along_axis apply_over_axes choose compress copyto ix_ piecewise place put put_along_axis putmask "
        "ravel_multi_index select take take_along_axis unravel_index"
    ),
    "_interpolation": "interp trapezoid",
    "_joining": (
        "append column_stack concat concatenate delete dstack hstack insert repeat resize row_stack stack "
        "tile trim_zeros vstack"
    ),
    "_kernels.elementwise": "ElementwiseKernel",
    "_kernels.fusion": "fuse",
    "_kernels.raw": "RawKernel RawModule",
    "_kernels.reduction": "ReductionKernel",
    "_logic": (
        "allclose array_equal array_equiv isclose iscomplex iscomplexobj isfortran isreal isrealobj isscalar "
        "may_share_memory shares_memory"
    ),
    "_manipulation": (
        "array_split atleast_1d atleast_2d atleast_3d broadcast broadcast_arrays broadcast_to dsplit expand_dims flip "
        "fliplr flipud hsplit matrix_transpose moveaxis ndim permute_dims ravel reshape roll rollaxis rot90 "
        "shape size split squeeze swapaxes transpose unstack vsplit"
    ),
    "_nan": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "_nan_quantiles": "nanmedian nanpercentile nanquantile",
    "_flat": "flatiter",
    "_padding": "pad",
    "_polynomials": "poly poly1d polyadd polyfit polymul polysub polyval roots",
    "_printing": (
        "array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific"
    ),
    "_products": "dot inner kron matmul outer tensordot vdot vecdot",
    "_quantiles": "median percentile quantile",
    "_ranges": "arange geomspace linspace logspace",
    "_searching": (
        "argmax argmin argpartition argsort argwhere digitize extract flatnonzero lexsort nonzero partition "
        "searchsorted sort sort_complex where"
    ),
    "_sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values"
    ),
    "_signals": "bartlett blackman convolve correlate gradient hamming hanning kaiser unwrap",
    "_statistics": (
        "all amax amin any average count_nonzero cumprod cumsum cumulative_prod cumulative_sum diff ediff1d "
        "max mean min prod ptp std sum var"
    ),
    "_vectors": "cross matvec vecmat",
    "cuda": "get_default_memory_pool get_default_pinned_memory_pool",
}
_HOME: dict[str, tuple[str, str]] = {
    name: (module, name) for module, names in _FUNCTIONS.items() for name in names.split()
}
_MODULES = frozenset({"cuda", "fft", "lib", "linalg", "polynomial", "random"})

# --- ufuncs, under all of their names --------------------------------------------------------------------------------

_UFUNCS: dict[str, ufunc] = {
    name: value for name, value in vars(_native).items() if type(value) is ufunc and name not in ("where", "clip")
}
globals().update(_UFUNCS)

# --- dtypes and constants --------------------------------------------------------------------------------------------

_DTYPES: dict[str, tuple[str, ...]] = {
    "bool": ("bool", "bool_"),
    "int8": ("int8", "byte"),
    "int16": ("int16", "short"),
    "int32": ("int32", "intc"),
    "int64": ("int64", "int_", "intp", "long", "longlong"),
    "uint8": ("uint8", "ubyte"),
    "uint16": ("uint16", "ushort"),
    "uint32": ("uint32", "uintc"),
    "uint64": ("uint64", "uint", "uintp", "ulong", "ulonglong"),
    "float16": ("float16", "half"),
    "bfloat16": ("bfloat16",),
    "float32": ("float32", "single"),
    "float64": ("float64", "double"),
    "complex64": ("complex64", "csingle"),
    "complex128": ("complex128", "cdouble"),
}
globals().update({name: _native.result_type(row) for row, names in _DTYPES.items() for name in names})

e = 2.718281828459045
pi = 3.141592653589793
euler_gamma = 0.5772156649015329
inf = float("inf")
nan = float("nan")
newaxis = None
__array_api_version__ = "2024.12"

__all__ = sorted(
    {"CudaArray", "HostArray", "empty", "ndarray", "ufunc", "e", "pi", "euler_gamma", "inf", "nan", "newaxis"}
    | set(_UFUNCS)
    | {name for names in _DTYPES.values() for name in names}
    | set(_HOME)
    | _MODULES
)  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"dlbridge.nd.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'dlbridge.nd' has no attribute {name!r}")
    module = import_module(f"dlbridge.nd.{home[0]}")
    value = getattr(module, home[1])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)


def _attach() -> None:
    """Gives the extension's types the methods that are written in Python. Nothing else adds to them.

    HostArray and CudaArray have C's methods of ndarray once more, which would hide these.
    """
    from dlbridge.nd import _array_methods, _ufunc_methods

    for kind, members in (
        (ndarray, _array_methods.MEMBERS),
        (HostArray, _array_methods.HOST_MEMBERS),
        (CudaArray, _array_methods.MEMBERS),
        (ufunc, _ufunc_methods.MEMBERS),
    ):
        for name, member in members.items():
            setattr(kind, name, member)


_attach()
