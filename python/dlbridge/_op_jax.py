"""An operation of dlbridge.op() for JAX: called directly where there are arrays, by a callback where there are tracers.

A callback works on the host, in whatever XLA compiles, for every device. What it is given are arrays of the host.
"""

from __future__ import annotations

from dlbridge import _core
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


def _call(jax: Any, function: Callable[..., Sequence[_core.Tensor]], shapes: list[Any], arrays: Sequence[Any]) -> Any:
    """A list of results, of JAX's arrays, or of NumPy's where a compiled program calls."""
    if not any(isinstance(array, jax.core.Tracer) for array in arrays):
        return [_core.convert(result, "jax") for result in function(*arrays)]

    def callback(*inside: Any) -> list[Any]:
        return [_core.convert(result, "numpy") for result in function(*inside)]

    return jax.pure_callback(callback, shapes, *arrays, vmap_method="sequential")


def register(jax: Any, op: Op) -> Any:
    """The operation, as a function with a gradient."""

    def forward(*arrays: Any) -> Any:
        shapes = _shapes(jax, op, op.specs([spec_of(array) for array in arrays]))
        found = _call(jax, lambda *inside: op.run(inside), shapes, arrays)
        return found[0] if op.single else tuple(found)

    def save(*arrays: Any) -> tuple[Any, Any]:
        found = forward(*arrays)
        return found, (arrays, (found,) if op.single else found)

    def gradient(saved: Any, grads: Any) -> Any:
        if op.backward is None:
            raise TypeError(f"{op.name} has no gradient. Give op() backward=")
        inputs, outputs = saved
        specs = [spec_of(array) for array in inputs]
        wanted = [spec for spec in specs if is_differentiable(spec.dtype)]
        first, second = len(inputs), len(inputs) + len(outputs)

        def run(*inside: Any) -> list[_core.Tensor]:
            return op.run_backward(inside[:first], inside[first:second], inside[second:])

        # JAX's gradients of complex numbers are the conjugates of PyTorch's, and backward= is written for one of them.
        conjugate = jax.numpy.conj
        pairs = zip((grads,) if op.single else grads, outputs, strict=True)  # float0 for results of integers
        dense = [jax.numpy.zeros_like(y) if g.dtype == jax.dtypes.float0 else conjugate(g) for g, y in pairs]
        everything = (*inputs, *outputs, *dense)
        found = iter(_call(jax, run, _shapes(jax, op, wanted), everything))
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
