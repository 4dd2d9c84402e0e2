"""op(): one function as an operation of PyTorch and of JAX, for eager, compiled and differentiated code of both.

Here is what both have in common: names, specifications, and the function's call with their checks. `_op_torch.py` and
`_op_jax.py` make of it what their library knows as an operation. Neither library is imported by either.
"""

from __future__ import annotations

import inspect
import re
import sys

from dlbridge import _core
from dlbridge._reach import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_NAME = re.compile(r"[A-Za-z]\w*::[A-Za-z]\w*", re.ASCII)
_LIKE = re.compile(r"like:(\d+)", re.ASCII)


class ArraySpec:
    """Shape and dtype of an array, as a function given for `out=` sees the arguments."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: _core.DType) -> None:
        self.shape = shape  # of PyTorch's symbols, under torch.compile with dynamic shapes
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"ArraySpec({tuple(self.shape)}, {str(self.dtype)!r})"


def spec_of(array: Any) -> ArraySpec:
    """Of an array of any framework."""
    return ArraySpec(tuple(array.shape), _core.DType(array.dtype))


def _count_inputs(name: str, function: Any, inputs: int | None) -> int:
    if inputs is None:
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            raise TypeError(
                f"op(): {name!r}: Python does not know the function's parameters. Give inputs=, a number"
            ) from None
        if any(p.kind is not p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
            raise TypeError(
                f"op(): {name!r}: the function has *, ** or keyword-only parameters, and an operation takes a fixed "
                "number of arrays. Give inputs=, a number, or bind the others by functools.partial()"
            )
        inputs = len(parameters)
    if type(inputs) is not int or inputs < 1:
        raise ValueError(f"op(): {name!r}: inputs is {inputs!r}; an operation takes at least one array")
    return inputs


def _check_outputs(name: str, out: Any, inputs: int) -> tuple[Any, ...]:
    """The specifications, one a result."""
    specs = tuple(out) if isinstance(out, (list, tuple)) else (out,)
    if not specs:
        raise ValueError(f"op(): {name!r}: out is empty; an operation has at least one result")
    for spec in specs:
        like = _LIKE.fullmatch(spec) if isinstance(spec, str) else None
        if like is not None and int(like[1]) < inputs:
            continue
        if not callable(spec):
            raise ValueError(
                f"op(): {name!r}: out has {spec!r}, which is neither 'like:0' to 'like:{inputs - 1}' nor a function of "
                "the arguments' ArraySpecs that gives (shape, dtype)"
            )
    return specs


class Op:
    """One operation; what `op` gives. Calling it finds the library by the arguments."""

    def __init__(
        self, name: str, function: Any, outputs: tuple[Any, ...], inputs: int, backward: Any, single: bool
    ) -> None:
        self.name, self.function, self.backward = name, function, backward
        self.outputs, self.inputs, self.single = outputs, inputs, single
        self._tensor_type: Any = ()
        self._torch: Any = None
        self._array_type: Any = ()
        self._jax: Any = None
        self.__name__ = self.__qualname__ = name
        self.__doc__ = getattr(function, "__doc__", None)

    def __repr__(self) -> str:
        return f"<dlbridge.op {self.name!r}, {self.inputs} to {len(self.outputs)}>"

    def __call__(self, *arrays: Any) -> Any:
        if len(arrays) != self.inputs:
            raise TypeError(f"{self.name}: got {len(arrays)} arrays and takes {self.inputs}")
        for array in arrays:
            if isinstance(array, self._tensor_type):
                return self._torch(*arrays)
            if isinstance(array, self._array_type):
                return self._jax(*arrays)
        return self._of_any(arrays)

    def _of_any(self, arrays: tuple[Any, ...]) -> Any:
        """Arrays of other libraries; and the first ones of a library that was imported after op()."""
        if self.bind(arrays):
            return self(*arrays)
        results = self.run(arrays)
        mine = tuple(_core.convert(result, like=arrays[0]) for result in results)
        return mine[0] if self.single else mine

    def bind(self, arrays: Sequence[Any] = ()) -> bool:
        """Registers the operation with those of PyTorch and JAX that are imported, once; whether one of `arrays` is of
        a library that is new."""
        is_new = False
        torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
        if self._torch is None and hasattr(getattr(torch, "library", None), "custom_op"):  # not before 2.4
            assert torch is not None
            from dlbridge import _op_torch

            self._torch, self._tensor_type = _op_torch.register(torch, self), torch.Tensor
            is_new |= any(isinstance(array, torch.Tensor) for array in arrays)
        if self._jax is None and hasattr(jax, "custom_vjp"):
            assert jax is not None
            from dlbridge import _op_jax

            self._jax, self._array_type = _op_jax.register(jax, self), jax.Array
            is_new |= any(isinstance(array, jax.Array) for array in arrays)
        return is_new

    def specs(self, arguments: Sequence[ArraySpec]) -> list[ArraySpec]:
        """What the results will be."""
        return [self._spec(spec, arguments) for spec in self.outputs]

    def _spec(self, spec: Any, arguments: Sequence[ArraySpec]) -> ArraySpec:
        if isinstance(spec, str):
            return arguments[int(spec.removeprefix("like:"))]
        found = spec(*arguments)
        if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[0], (tuple, list)):
            raise TypeError(f"{self.name}: out gave {found!r}, which is not (shape, dtype), as ((2, 3), 'float32')")
        return ArraySpec(tuple(found[0]), _core.DType(found[1]))

    def run(self, arrays: Sequence[Any]) -> list[_core.Tensor]:
        """The function on arrays of any framework; its results, held against `out=`."""
        tensors = [_core.asdlpack(array) for array in arrays]
        given = self.function(*map(_lent, tensors))
        results = _results(self.name, given, len(self.outputs), self.single)
        for index, (result, spec) in enumerate(zip(results, self.specs([spec_of(t) for t in tensors]), strict=True)):
            _check_result(f"{self.name}: result {index}", result, spec, tensors)
        return results

    def run_backward(
        self, inputs: Sequence[Any], outputs: Sequence[Any], gradients: Sequence[Any]
    ) -> list[_core.Tensor]:
        """The gradients of those inputs that can have one: of floats and complex numbers."""
        tensors = [[_core.asdlpack(array) for array in arrays] for arrays in (inputs, outputs, gradients)]
        everything = [tensor for part in tensors for tensor in part]
        ins, outs, grads = (tuple(map(_lent, part)) for part in tensors)
        given = self.backward(grads[0] if self.single else grads, outs[0] if self.single else outs, *ins)
        found = (given,) if self.inputs == 1 and not isinstance(given, (tuple, list)) else given
        if not isinstance(found, (tuple, list)) or len(found) != self.inputs:
            raise _core.DataError(
                f"{self.name}: backward gave {_described(given)}, and the operation has {self.inputs} arguments. Give "
                "a tuple with a gradient, or None, for each"
            )
        results = []
        for index, (one, tensor) in enumerate(zip(found, tensors[0], strict=True)):
            if is_differentiable(tensor.dtype):
                gradient = _zeros_like(tensor) if one is None else _core.asdlpack(one)
                what = f"{self.name}: the gradient of argument {index}"
                _check_result(what, gradient, spec_of(tensor), everything)
                results.append(gradient)
        return results


def is_differentiable(dtype: _core.DType) -> bool:
    return dtype.name.startswith(("float", "bfloat", "complex"))


def _lent(tensor: _core.Tensor) -> Any:
    """What the function gets: an nd array that it may not write to."""
    from dlbridge import nd

    return nd.from_dlpack(_core.reinterpret(tensor, readonly=True))


def _zeros_like(tensor: _core.Tensor) -> _core.Tensor:
    from dlbridge import nd

    zeros: _core.Tensor = nd.zeros(tensor.shape, dtype=tensor.dtype.name, device=str(tensor.device))
    return zeros


def _described(given: Any) -> str:
    return f"{len(given)} results" if isinstance(given, (tuple, list)) else f"one {type(given).__qualname__}"


def _results(name: str, given: Any, count: int, single: bool) -> list[_core.Tensor]:
    found = [given] if single else given
    if not isinstance(found, (tuple, list)) or len(found) != count:
        raise _core.DataError(f"{name}: the function gave {_described(given)}, and out says {count} in a tuple")
    return [_core.asdlpack(result) for result in found]


def _check_result(what: str, result: _core.Tensor, spec: ArraySpec, arguments: Sequence[_core.Tensor]) -> None:
    if tuple(result.shape) != tuple(spec.shape) or result.dtype != spec.dtype:
        raise _core.DataError(
            f"{what} has shape {tuple(result.shape)} and dtype {result.dtype}, and must have {tuple(spec.shape)} and "
            f"{spec.dtype}. Mend the function, or out="
        )
    if result.device != arguments[0].device:
        raise _core.DataError(f"{what} is on {result.device} and the arguments on {arguments[0].device}. Copy it there")
    if any(_overlap(result, argument) for argument in arguments):
        raise _core.DataError(f"{what} lies in the memory of an argument. Give a copy: x.copy()")


def _overlap(a: _core.Tensor, b: _core.Tensor) -> bool:
    """Whether the byte ranges meet."""
    if not a.size or not b.size:
        return False
    (a_low, a_high), (b_low, b_high) = _range(a), _range(b)
    return a_low < b_high and b_low < a_high


def _range(t: _core.Tensor) -> tuple[int, int]:
    low, high = reach(t.itemsize, t.shape, t.strides)
    return t.data_ptr + low, t.data_ptr + high


_ops: dict[str, Op] = {}


def op(
    name: str,
    fn: Callable[..., Any],
    *,
    out: Any,
    backward: Callable[..., Any] | None = None,
    inputs: int | None = None,
) -> Op:
    """`fn` as an operation of PyTorch and of JAX: one function for eager, compiled and differentiated code of both.

    name: "namespace::name". PyTorch has it as ``torch.ops.namespace.name``, too.
    fn: takes arrays and gives an array, or a tuple of them, in memory of their own. It gets ``nd.ndarray`` over the
    arguments' memory, read-only, and may be a C++ function, launch a RawKernel, or be plain Python; the results are
    arrays of any framework. It must have no other effects: compilers may call it twice, or not at all.
    out: what the result will be: "like:0" (shape and dtype of argument 0), or a function of the arguments' `ArraySpec`
    (``.shape``, ``.dtype``) that gives (shape, dtype). A list or tuple of those says that `fn` gives a tuple.
    backward: ``backward(grad, out, *arguments)`` gives the gradient of each argument in a tuple (or alone, where there
    is one argument), None for zero; with several results, `grad` and `out` are tuples.
    inputs: how many arrays `fn` takes, where Python cannot tell, as of C++ functions.

    The result is called with arrays of one library. PyTorch's go through ``torch.library``, with a fake kernel, so that
    ``torch.compile(fullgraph=True)`` takes it; JAX's go to `fn` directly, and under jit, vmap and the like through
    ``jax.ffi`` (before JAX 0.5 ``jax.pure_callback``); others get their own kind back. Import the libraries
    before they compile it.

    Raises ValueError for a name that is taken or no name, and a wrong `out`; TypeError where the number of arguments
    cannot be told. A call raises DataError where a result is not what `out` says.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"op(): the name is {name!r}; it must be 'namespace::name', of letters, digits and _")
    if name in _ops:
        raise ValueError(f"op(): {name!r} is there already, as {_ops[name]!r}. Choose another name")
    if not callable(fn) or not (backward is None or callable(backward)):
        raise TypeError(f"op(): {name!r}: the function, or backward, is not callable")
    count = _count_inputs(name, fn, inputs)
    outputs = _check_outputs(name, out, count)
    made = Op(name, fn, outputs, count, backward, not isinstance(out, (list, tuple)))
    made.bind()
    _ops[name] = made
    return made
