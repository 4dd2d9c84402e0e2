"""ReductionKernel: a reduction around three expressions: map, reduce, post-map."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbridge.nd import _native
from dlbridge.nd._arguments import normalize_axes
from dlbridge.nd._kernels import nvrtc
from dlbridge.nd._kernels.codegen import sanitize
from dlbridge.nd._kernels.reduction_plan import Plan, merge_dims, pack_scalar, plan_reduction, plan_words, power_of_two
from dlbridge.nd._kernels.reduction_source import MAX_THREADS, SLOT_BYTES, Expressions, Shape, write_reduction
from dlbridge.nd._kernels.types import C_TYPES, DTYPE_NUMBERS, ITEMSIZES, check_names, parse_parameters, resolve_types

if TYPE_CHECKING:
    from collections.abc import Sequence
_MOST_CALLS = 256  # layouts that a kernel remembers


class _Launcher(_native.KernelLauncher):
    """One compiled kernel of a reduction."""

    def __init__(self, owner: ReductionKernel, code: str, symbol: str) -> None:
        self._owner, self._code, self._symbol = owner, code, symbol
        _native.kernel_configure(self, name=owner._label)

    def _load(self, device: int) -> None:
        capability = _native.launch_limits(device)["compute_capability"]
        compiled = nvrtc.compile_source(self._code, self._owner._label, capability, options=self._owner.options)
        module = _native.load_module(device, compiled.image, self._owner._label)
        _native.kernel_install(self, device, module, self._symbol)


class ReductionKernel:
    """A reduction: ``kernel(*inputs, [*outputs], out=None, axis=None, keepdims=False, stream=None)``.

    in_params, out_params: as in ElementwiseKernel; nothing is `raw`.
    map_expr: an expression of the inputs, for each element; `i` is its number in C order.
    reduce_expr: an expression that joins `a` and `b`; it must be associative.
    post_map_expr: statements that set the outputs from the joined value `a`.
    identity: an expression that changes nothing when joined; None or '' where there is none, and then an empty
    reduction is a ValueError.
    reduce_type: the C++ type of what is joined; the first output's unless given (float for 16-bit floats).

    Inputs are broadcast and reduced over `axis` (an int, a tuple, None for all). The order of all joins depends on the
    shape alone, so that equal calls give equal results.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: object,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
    ) -> None:
        self._label = f"ReductionKernel {name!r}"
        self.in_params = parse_parameters(in_params, self._label)
        self.out_params = parse_parameters(out_params, self._label)
        check_names((*self.in_params, *self.out_params), self._label)
        if not self.in_params or not self.out_params:
            raise ValueError(f"{self._label}: a reduction has at least one input and one output")
        if any(p.raw for p in (*self.in_params, *self.out_params)):
            raise ValueError(
                f"{self._label}: parameters of a reduction cannot be raw. Compute them with an ElementwiseKernel first"
            )
        if any(p.name == "a" for p in self.out_params):
            raise ValueError(f"{self._label}: an output cannot be named 'a': post_map_expr reads that. Rename it")
        text = None if identity is None or str(identity) == "" else str(identity)
        self.name, self.reduce_type, self.options = name, reduce_type, nvrtc.check_options(options, self._label)
        self.identity = text
        self.expressions = Expressions(map_expr, reduce_expr, post_map_expr, text, preamble)
        self._launchers: dict[tuple[Any, ...], tuple[_Launcher, _Launcher | None]] = {}
        self._calls: dict[tuple[Any, ...], _Call] = {}

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, stream: Any = None
    ) -> Any:
        layout = _native.layout_key(args) if out is None and len(args) == len(self.in_params) else None
        known = self._calls.get((layout, axis, keepdims)) if layout is not None and type(axis) is not list else None
        if known is not None:
            return known.run(args, None, stream)
        inputs, given = self._split_arguments(args, out)
        outputs = [_as_array(x) for x in given]
        call = self._prepare(inputs, outputs, axis, keepdims)
        if layout is not None and type(axis) is not list:
            if len(self._calls) >= _MOST_CALLS:
                self._calls.clear()
            self._calls[layout, axis, keepdims] = call
        result = call.run(inputs, outputs or None, stream)
        if not given:
            return result
        return given[0] if len(given) == 1 else tuple(given)

    def _prepare(self, inputs: Sequence[Any], outputs: Sequence[Any], axis: Any, keepdims: bool) -> _Call:
        """Checks the arguments of a call, and makes what calls with the same layout have in common."""
        arrays = [x for x in inputs if not _is_scalar(x)]
        if not arrays:
            raise TypeError(f"{self._label}: no argument is an array")
        device = arrays[0].device
        if device.type not in ("cuda", "cuda_managed"):
            raise TypeError(
                f"{self._label}: the arrays are on {device}; user kernels run on CUDA devices. Copy them there first: "
                "nd.asarray(x, device='cuda')"
            )
        shape = _native.common_shape(self._label, *[x.shape for x in arrays])
        axes = sorted(normalize_axes(axis, len(shape), self._label))
        kept_size = math.prod(extent for k, extent in enumerate(shape) if k not in axes)
        if self.identity is None and kept_size > 0 and math.prod(shape[k] for k in axes) == 0:
            raise ValueError(f"{self._label}: the reduction is empty and has no identity. Give an identity, or data")
        key = "".join(map(_letter, (*inputs, *outputs)))
        dtypes = resolve_types((*self.in_params, *self.out_params), key, self._label)
        kept_shape = tuple(1 if k in axes else extent for k, extent in enumerate(shape) if keepdims or k not in axes)
        for x in outputs:
            if tuple(x.shape) != kept_shape:
                raise ValueError(f"{self._label}: the output has shape {x.shape}, and the result {kept_shape}")
        rows = [_byte_strides(x, len(shape)) for x in arrays]
        rows.append([math.prod(shape[k + 1 :]) for k in range(len(shape))])  # C order, for `i`
        out_dtypes = dtypes[len(inputs) :]
        out_rows = [_byte_strides(x, len(kept_shape)) for x in outputs] or [
            [math.prod(kept_shape[k + 1 :]) * ITEMSIZES[dtype] for k in range(len(kept_shape))] for dtype in out_dtypes
        ]
        if keepdims:
            out_rows = [[step for k, step in enumerate(row) if k not in axes] for row in out_rows]
        kept_axes = [k for k in range(len(shape)) if k not in axes]
        kept_rows = [[row[k] for k in kept_axes] for row in rows]
        plan = plan_reduction(
            merge_dims([shape[k] for k in kept_axes], [*kept_rows, *out_rows], 0),
            merge_dims([shape[k] for k in axes], [[row[k] for k in axes] for row in rows], 0),
            "".join("s" if _is_scalar(x) else "a" for x in inputs),
            _native.launch_limits(device.id)["multiprocessors"],
        )
        main, finish = self._kernels(plan.shape, tuple(dtypes))
        words = plan_words(plan, len(self.out_params))
        return _Call(plan, words, tuple(dtypes[: len(inputs)]), tuple(out_dtypes), kept_shape, device, main, finish)

    def _split_arguments(self, args: tuple[Any, ...], out: Any) -> tuple[list[Any], list[Any]]:
        """The inputs, as arrays of ours or scalars, and the outputs as they were given."""
        count = len(self.in_params)
        total = count + len(self.out_params)
        if len(args) not in (count, total) or (len(args) == total and out is not None):
            raise TypeError(
                f"{self._label}: takes {count} arguments, or {total} with the outputs (or out=); got {len(args)}"
            )
        given = list(args[count:]) if out is None else list(out) if isinstance(out, (tuple, list)) else [out]
        return [x if _is_scalar(x) else _as_array(x) for x in args[:count]], given

    def _kernels(self, shape: Shape, dtypes: tuple[str, ...]) -> tuple[_Launcher, _Launcher | None]:
        key = (shape, dtypes)
        if key not in self._launchers:
            out_dtype = dtypes[len(self.in_params)]
            joined = self.reduce_type or ("float" if out_dtype in ("float16", "bfloat16") else C_TYPES[out_dtype])
            source = write_reduction(
                self.name, self.in_params, self.out_params, dtypes, joined, self.expressions, shape
            )
            finish = _Launcher(self, source.code, source.finish) if shape.split else None
            self._launchers[key] = (_Launcher(self, source.code, source.symbol), finish)
        return self._launchers[key]

    @property
    def kernel_name(self) -> str:
        """str: the name in profilers."""
        return sanitize(self.name)

    def __repr__(self) -> str:
        return f"<{self._label}>"


class _Call(NamedTuple):
    """Calls of one layout: everything but the addresses and the scalars."""

    plan: Plan
    words: list[int]  # with zeros for the scalars
    in_dtypes: tuple[str, ...]
    out_dtypes: tuple[str, ...]
    kept_shape: tuple[int, ...]
    device: Any
    main: _Launcher
    finish: _Launcher | None

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any] | None, stream: Any) -> Any:
        plan = self.plan
        results = outputs or [_native.empty(self.kept_shape, dtype, device=self.device) for dtype in self.out_dtypes]
        if plan.kept_size > 0:
            # The words hold the strides: that an array is broadcast, too.
            kinds = plan.shape.kinds
            arrays = [x for x, kind in zip(inputs, kinds, strict=True) if kind == "a"]
            if outputs:
                arrays = [x.copy() if any(_native.shares_memory(x, out) for out in outputs) else x for x in arrays]
            self._launch(arrays, results, self._block(inputs), stream)
        return results[0] if len(results) == 1 else tuple(results)

    def _block(self, inputs: Sequence[Any]) -> ctypes.Array[ctypes.c_uint64]:
        block = (ctypes.c_uint64 * len(self.words))(*self.words)
        at = 4
        for value, kind, dtype in zip(inputs, self.plan.shape.kinds, self.in_dtypes, strict=True):
            if kind == "s":
                block[at], block[at + 1] = pack_scalar(value, dtype)
                at += 2
        return block

    def _launch(self, arrays: Sequence[Any], results: Sequence[Any], block: Any, stream: Any) -> None:
        plan = self.plan
        if self.finish is None:
            self.main(plan.grid, plan.block, (*arrays, *results, block), stream=stream)
            return
        partial = _native.empty((plan.kept_size * plan.splits * SLOT_BYTES,), "uint8", device=self.device)
        self.main(plan.grid, plan.block, (*arrays, partial, block), stream=stream)
        threads = power_of_two(plan.splits, MAX_THREADS)
        self.finish((plan.kept_size,), (threads,), (partial, *results, block), stream=stream)


_PYTHON_SCALARS = {bool: "0", int: "1", float: "2", complex: "3"}


def _is_scalar(x: Any) -> bool:
    if type(x) in _PYTHON_SCALARS:
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.generic)


def _as_array(x: Any) -> _native.ndarray:
    """An array of ours around any framework's, without a copy."""
    return x if isinstance(x, _native.ndarray) else _native.asarray(x)


def _letter(x: Any) -> str:
    """The argument as types.read_given() reads it."""
    if type(x) in _PYTHON_SCALARS:
        return _PYTHON_SCALARS[type(x)]
    return chr(ord("A" if isinstance(x, _native.ndarray) else "a") + DTYPE_NUMBERS[str(x.dtype)])


def _byte_strides(x: Any, ndim: int) -> list[int]:
    """The strides of `x` broadcast to `ndim` dimensions: 0 where it is repeated."""
    own = [0 if extent == 1 else stride for extent, stride in zip(x.shape, x.strides, strict=True)]
    return [0] * (ndim - len(own)) + own
