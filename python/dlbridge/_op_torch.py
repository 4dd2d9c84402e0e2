"""An operation of dlbridge.op() for PyTorch: torch.library's custom op, its fake kernel and its gradient.

The gradient is an operation of its own, opaque to compilers as the first one is.
"""

from __future__ import annotations

from dlbridge import _core
from dlbridge._op import ArraySpec, spec_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge._op import Op


def _readable(tensor: Any) -> Any:
    """What DLPack can express: the operation is called below autograd."""
    return tensor.detach().resolve_conj().resolve_neg()


def _given(result: _core.Tensor) -> Any:
    """Dense, as the fake kernel says."""
    return _core.convert(result, "torch").contiguous()


def _empty(torch: Any, spec: ArraySpec, device: Any) -> Any:
    return torch.empty(tuple(spec.shape), dtype=getattr(torch, spec.dtype.name), device=device)


def _is_taken(torch: Any, name: str) -> bool:
    namespace, _, short = name.partition("::")
    return hasattr(getattr(torch.ops, namespace), short)


def register(torch: Any, op: Op) -> Any:
    """The operation, as torch.ops has it."""
    names = [op.name] if op.backward is None else [op.name, op.name + "_backward"]
    for name in names:
        if _is_taken(torch, name):
            raise ValueError(f"op(): torch.ops has {name!r} already. Choose another name")
    arguments = ", ".join(f"Tensor x{index}" for index in range(op.inputs))
    results = "Tensor" if op.single else f"({', '.join(['Tensor'] * len(op.outputs))})"

    def kernel(*tensors: Any) -> Any:
        given = tuple(map(_given, op.run([_readable(tensor) for tensor in tensors])))
        return given[0] if op.single else given

    def fake(*tensors: Any) -> Any:
        specs = op.specs([spec_of(tensor) for tensor in tensors])
        empties = tuple(_empty(torch, spec, tensors[0].device) for spec in specs)
        return empties[0] if op.single else empties

    made = torch.library.custom_op(op.name, kernel, mutates_args=(), schema=f"({arguments}) -> {results}")
    made.register_fake(fake)
    if op.backward is not None:
        _register_backward(torch, op, made)
    namespace, _, short = op.name.partition("::")
    return getattr(getattr(torch.ops, namespace), short)


def _is_differentiable(tensor: Any) -> bool:  # said in words that torch.compile can follow
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def _register_backward(torch: Any, op: Op, made: Any) -> None:
    def kernel(grads: list[Any], outputs: list[Any], inputs: list[Any]) -> list[Any]:
        parts = [[_readable(tensor) for tensor in part] for part in (inputs, outputs, grads)]
        return [_given(gradient) for gradient in op.run_backward(*parts)]

    def fake(grads: list[Any], outputs: list[Any], inputs: list[Any]) -> list[Any]:
        return [torch.empty_like(t, memory_format=torch.contiguous_format) for t in inputs if _is_differentiable(t)]

    backward = torch.library.custom_op(
        op.name + "_backward",
        kernel,
        mutates_args=(),
        schema="(Tensor[] grads, Tensor[] outputs, Tensor[] inputs) -> Tensor[]",
    )
    backward.register_fake(fake)

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, *((output,) if op.single else output))

    def gradient(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        inputs, outputs = list(saved[: op.inputs]), list(saved[op.inputs :])
        pairs = zip(grads, outputs, strict=True)  # None for results of integers
        dense = [torch.zeros_like(output) if grad is None else grad.contiguous() for grad, output in pairs]
        found = iter(backward(dense, outputs, inputs))
        all_of_them = tuple(next(found) if _is_differentiable(t) else None for t in inputs)
        return all_of_them[0] if op.inputs == 1 else all_of_them

    made.register_autograd(gradient, setup_context=save)
