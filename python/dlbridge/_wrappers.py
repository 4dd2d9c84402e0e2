"""What a torch.Tensor without readable memory is, and what to do: asked when PyTorch has refused to export one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_TRACED = (
    "Convert before or after the traced code, or hide the call from tracing: @torch.compiler.disable, "
    "torch.library.custom_op"
)


def _ask(torch: Any, path: str, tensor: Any) -> bool:
    """The answer of a function of PyTorch's that may not be there; False then."""
    function: Any = torch
    for name in path.split("."):
        function = getattr(function, name, None)
    if not callable(function):
        return False
    try:
        return bool(function(tensor))
    except Exception:
        return False


def _has(name: str, wanted: Any = True) -> Callable[[Any, Any], bool]:
    def asks(torch: Any, tensor: Any) -> bool:
        try:
            return bool(getattr(tensor, name) == wanted)
        except Exception:
            return False

    return asks


def _is(path: str) -> Callable[[Any, Any], bool]:
    return lambda torch, tensor: _ask(torch, path, tensor)


def _is_called(name: str) -> Callable[[Any, Any], bool]:
    return lambda torch, tensor: any(kind.__name__ == name for kind in type(tensor).__mro__)


# (whether it is one, what it is, what to do); the first that fits counts, wrappers before what they may wrap.
_KINDS: tuple[tuple[Callable[[Any, Any], bool], str, str], ...] = (
    (
        _is("_C._functorch.is_batchedtensor"),
        "a wrapper of torch.vmap, which stands for a batch of tensors",
        "Convert outside of the mapped function",
    ),
    (
        _is("_C._functorch.is_gradtrackingtensor"),
        "a wrapper of torch.func (grad, vjp, jvp), which stands for a tensor that is being differentiated",
        "Convert outside of the transformed function, or give it a derivative: torch.autograd.Function",
    ),
    (
        _is_called("FakeTensor"),
        "a FakeTensor, which has a shape and no data: torch.compile, torch.export or FakeTensorMode is tracing",
        _TRACED,
    ),
    (
        _is_called("FunctionalTensor"),
        "a FunctionalTensor, which stands for a tensor while torch.compile or torch.export trace",
        _TRACED,
    ),
    (
        _is_called("DTensor"),
        "a DTensor, whose parts lie on several devices",
        "Take the part of this process, dlbridge.shards(x), or gather all: x.full_tensor()",
    ),
    (
        _is("_is_functional_tensor"),
        "a functional wrapper, which stands for a tensor while torch.func.functionalize or torch.export trace",
        _TRACED,
    ),
    (
        _is("_C._functorch.is_functorch_wrapped_tensor"),
        "a wrapper of torch.func, which stands for a tensor",
        "Convert outside of the transformed function",
    ),
    (_has("is_meta"), "on the meta device, which has shapes and no data", "Load it, or give it memory: x.to_empty()"),
    (
        _has("is_nested"),
        "nested: its rows have lengths of their own",
        "Convert each, x.unbind(), or fill them up, torch.nested.to_padded_tensor(x, 0)",
    ),
    (_has("is_quantized"), "quantised", "Use x.dequantize(), or x.int_repr()"),
    (_has("is_mkldnn"), "in the layout of MKL-DNN", "Use x.to_dense()"),
    (lambda torch, tensor: tensor.layout != torch.strided, "sparse", "Use x.to_dense(), or convert its parts"),
)


def describe(tensor: Any) -> str | None:
    """A sentence for the error, or None where the tensor is none of those that are known."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    for asks, what, remedy in _KINDS:
        try:
            fits = asks(torch, tensor)
        except Exception:  # a wrapper may refuse any question
            continue
        if fits:
            return f"the torch.Tensor is {what}; it has no memory that could be shared. {remedy}"
    return None
