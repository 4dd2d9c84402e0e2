"""nd arrays as chunks of `dask.array`: the functions that Dask chooses by type, where NumPy's would mix nd and NumPy.

All others reach nd by `__array_function__` and `__array_ufunc__`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from dlbridge import _core


def _nbytes(x: _core.Tensor) -> int:
    return x.nbytes


def _take(a: Any, indices: Any, axis: int | None = None, **options: Any) -> Any:
    from dlbridge import nd

    return nd.take(a, nd.asarray(indices, device=a.device), axis=axis, **options)


def _numel(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = "float64", **_: Any) -> Any:
    """How many elements a reduction over `axis` takes, as an array of what it gives."""
    from dlbridge import nd

    axes = range(x.ndim) if axis is None else [int(one) % x.ndim for one in (axis if _is_many(axis) else [axis])]
    kept = [1 if i in axes else extent for i, extent in enumerate(x.shape) if keepdims or i not in axes]
    return nd.full(tuple(kept), math.prod(x.shape[i] for i in axes), dtype=dtype, device=x.device)


def _is_many(axis: Any) -> bool:
    return isinstance(axis, (tuple, list))


def _nannumel(x: Any, **options: Any) -> Any:
    from dlbridge import nd

    return nd.sum(~nd.isnan(x), **options)


def _percentile(a: Any, q: Any, method: str = "linear") -> tuple[Any, int]:
    from dlbridge import nd

    if not len(a):
        return None, 0
    return nd.percentile(a, nd.asarray(q, device=a.device), method=method), len(a)


def _divide(a: Any, b: Any, **options: Any) -> Any:
    """Dask divides sums by counts, either of which may be NumPy's."""
    from dlbridge import nd

    device = next(x.device for x in (a, b) if isinstance(x, nd.ndarray))
    return nd.divide(nd.asarray(a, device=device), nd.asarray(b, device=device), **options)


def _to_numpy(x: Any, **_: Any) -> Any:
    from dlbridge import nd

    return nd.asnumpy(x)


def _register_chunks() -> None:
    from dask.array import dispatch

    from dlbridge import nd

    dispatch.concatenate_lookup.register(nd.ndarray, nd.concatenate)
    dispatch.tensordot_lookup.register(nd.ndarray, nd.tensordot)
    dispatch.einsum_lookup.register(nd.ndarray, nd.einsum)
    dispatch.take_lookup.register(nd.ndarray, _take)
    dispatch.numel_lookup.register(nd.ndarray, _numel)
    dispatch.nannumel_lookup.register(nd.ndarray, _nannumel)
    dispatch.divide_lookup.register(nd.ndarray, _divide)
    dispatch.percentile_lookup.register(nd.ndarray, _percentile)
    dispatch.to_numpy_dispatch.register(nd.ndarray, _to_numpy)
    dispatch.empty_lookup.register(nd.HostArray, functools.partial(nd.empty, device="cpu"))
    dispatch.empty_lookup.register(nd.CudaArray, functools.partial(nd.empty, device="cuda"))


def register() -> None:
    """Chunks, once Dask meets the first one. Nothing where `dask.array` is not there: it wants NumPy."""
    try:
        from dask.array import dispatch
    except ImportError:
        return
    from dask.sizeof import sizeof

    sizeof.register(_core.Tensor, _nbytes)
    for name in dir(dispatch):
        if name.endswith(("_lookup", "to_numpy_dispatch")):
            getattr(dispatch, name).register_lazy("dlbridge", _register_chunks)
