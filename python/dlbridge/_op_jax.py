"""An operation of dlbridge.op() for JAX: called directly where there are arrays, from compiled programs where there are
tracers: by XLA's foreign functions, over its own buffers; where there are none, by a callback with copies on the host.
"""

from __future__ import annotations

from dlbridge import _core, _op_xla
from dlbridge._op import ArraySpec, is_differentiable, spec_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from dlbridge._op import Op


def _shapes(jax: Any, op: Op, specs: Sequence[ArraySpec]) -> list[Any]:
    """As JAX describes them. It would make of 64 bits 32 without a word, and then refuse the result."""
    from dlbridge._dtype import to_numpy

    found = []
    for spec in specs:
        dtype = to_numpy(spec.dtype)
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise ValueError(
                f"{op.name}: out says {spec.dtype}, which JAX has with 64-bit types only. Give another dtype, or "
                'jax.config.update("jax_enable_x64", True)'
            )
        found.append(jax.ShapeDtypeStruct(tuple(spec.shape), dtype))
    return found


class _Function:
    """What JAX's arrays are given to: `run` takes arrays and gives tensors. target: XLA's name of it."""

    def __init__(self, jax: Any, op: Op, target: str, run: Callable[..., Sequence[_core.Tensor]]) -> None:
        self.jax, self.run, self.target = jax, run, target
        self.has_target = hasattr(jax, "ffi")  # from 0.5 on
        if self.has_target:
            _op_xla.register(jax, target, op.name, run)

    def __call__(self, shapes: list[Any], arrays: Sequence[Any]) -> Any:
        """A list of results, of JAX's arrays."""
        jax = self.jax
        if not any(isinstance(array, jax.core.Tracer) for array in arrays):
            return [_core.convert(result, "jax") for result in self.run(*arrays)]
        if self.has_target and _op_xla.takes([_core.DType(array.dtype) for array in (*arrays, *shapes)]):
            called = jax.ffi.ffi_call(self.target, shapes, vmap_method="sequential")
            return jax.lax.platform_dependent(*arrays, cpu=called, cuda=called, default=self._by_callback(shapes))
        return self._by_callback(shapes)(*arrays)

    def _by_callback(self, shapes: list[Any]) -> Callable[..., Any]:
        def callback(*inside: Any) -> list[Any]:
            return [_core.convert(result, "numpy") for result in self.run(*inside)]

        return lambda *arrays: self.jax.pure_callback(callback, shapes, *arrays, vmap_method="sequential")


def register(jax: Any, op: Op) -> Any:
    """The operation, as a function with a gradient."""
    inputs, outputs = op.inputs, len(op.outputs)

    def run_backward(*arrays: Any) -> list[_core.Tensor]:
        return op.run_backward(arrays[:inputs], arrays[inputs : inputs + outputs], arrays[inputs + outputs :])

    run = _Function(jax, op, f"dlbridge::{op.name}", lambda *arrays: op.run(arrays))
    back = _Function(jax, op, f"dlbridge::{op.name}::backward", run_backward)

    def forward(*arrays: Any) -> Any:
        found = run(_shapes(jax, op, op.specs([spec_of(array) for array in arrays])), arrays)
        return found[0] if op.single else tuple(found)

    def save(*arrays: Any) -> tuple[Any, Any]:
        found = forward(*arrays)
        return found, (arrays, (found,) if op.single else found)

    def gradient(saved: Any, grads: Any) -> Any:
        if op.backward is None:
            raise TypeError(f"{op.name} has no gradient. Give op() backward=")
        arrays, results = saved
        specs = [spec_of(array) for array in arrays]
        wanted = [spec for spec in specs if is_differentiable(spec.dtype)]
        # JAX's gradients of complex numbers are the conjugates of PyTorch's, and backward= is written for one of them.
        conjugate = jax.numpy.conj
        pairs = zip((grads,) if op.single else grads, results, strict=True)  # float0 for results of integers
        dense = [jax.numpy.zeros_like(y) if g.dtype == jax.dtypes.float0 else conjugate(g) for g, y in pairs]
        found = iter(back(_shapes(jax, op, wanted), (*arrays, *results, *dense)))
        return tuple(conjugate(next(found)) if is_differentiable(spec.dtype) else None for spec in specs)

    function = jax.custom_vjp(forward)
    function.defvjp(save, gradient)

    def call(*arrays: Any) -> Any:
        for array in arrays:
            if not isinstance(array, jax.Array) and type(array).__module__ != "numpy":
                raise TypeError(
                    f"{op.name}: got arrays of JAX and {type(array).__qualname__}. Convert them to one library first"
                )
        given = [jax.numpy.asarray(array) for array in arrays]
        # custom_vjp costs 100 us, and means nothing where nothing is traced.
        return function(*given) if any(isinstance(array, jax.core.Tracer) for array in given) else forward(*given)

    return call
