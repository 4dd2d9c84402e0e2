"""ElementwiseKernel: a kernel around an expression over the elements of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlbridge.nd import _native
from dlbridge.nd._kernels import codegen, nvrtc
from dlbridge.nd._kernels.types import DTYPE_NUMBERS, check_names, parse_parameters, resolve_types

if TYPE_CHECKING:
    from collections.abc import Sequence


class ElementwiseKernel(_native.ElementwiseLauncher):
    """A kernel over elements: ``kernel(*inputs, [*outputs], size=None, stream=None, block_size=None)``.

    in_params, out_params: ``"T x, float32 y, raw S table"``. A type is a dtype, or a letter that stands for the dtype
    of the arrays given for it. The arguments are broadcast; a `raw` one is not: the operation indexes it, ``table[i]``.
    operation: C++ statements that read the inputs and set the outputs, for one element. `i` is the element's number in
    C order, `n` how many there are, `_ind.get()[k]` its index along axis k.
    name: of the kernel, in profilers and messages.
    no_return: a call gives None. return_tuple: it gives a tuple also of one output.
    options: for NVRTC. preamble: C++ before the kernel. loop_prep, after_loop: statements of each thread before its
    first and after its last element.

    Arguments are arrays of any framework on one CUDA device, and scalars. Outputs that are not given are made, with the
    layout of the inputs. `size` says how often to run where every array is raw. A kernel for the dtypes and layouts of
    a call is compiled when they first come, and kept on disk.

    Raises TypeError for dtypes that do not fit the declarations, ValueError for shapes that do not broadcast,
    CompileError for an operation that does not compile.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        options: Sequence[str] = (),
        loop_prep: str = "",
        after_loop: str = "",
    ) -> None:
        label = f"ElementwiseKernel {name!r}"
        self.in_params = parse_parameters(in_params, label)
        self.out_params = parse_parameters(out_params, label)
        self.params = self.in_params + self.out_params
        check_names(self.params, label)
        if not self.params:
            raise ValueError(f"{label}: there is no parameter; an operation needs at least one array")
        self.operation, self.name, self.preamble = operation, name, preamble
        self.loop_prep, self.after_loop = loop_prep, after_loop
        self.options = nvrtc.check_options(options, label)
        self.reduce_dims = reduce_dims  # dimensions are merged where that changes nothing, whatever is asked for
        self.no_return, self.return_tuple = no_return, return_tuple
        self._label = label
        body = "\n".join((operation, loop_prep, after_loop))
        indexed = codegen.uses_name(body, "i") or any(p.raw for p in self.params)
        _native.elementwise_configure(
            self,
            name=label,
            inputs=len(self.in_params),
            raw=[p.raw for p in self.params],
            uses_index=indexed,
            uses_multi_index=codegen.uses_name(body, "_ind"),
            persistent=bool(loop_prep.strip() or after_loop.strip()),
            no_return=no_return,
            return_tuple=return_tuple,
        )

    def _resolve(self, key: str) -> list[int]:
        """The dtype numbers of a call: called by the launcher for arguments of new types."""
        return [DTYPE_NUMBERS[name] for name in resolve_types(self.params, key, self._label)]

    def source(self, loop: codegen.Loop) -> codegen.Source:
        """The CUDA C++ of one variant."""
        return codegen.write_elementwise(
            self.name,
            self.in_params,
            self.out_params,
            self.operation,
            loop,
            preamble=self.preamble,
            loop_prep=self.loop_prep,
            after_loop=self.after_loop,
        )

    def _build(self, device: int, **variant: Any) -> tuple[int, str, int]:
        """Compiles and loads a variant: called by the launcher when it first needs it, with the fields of a Loop.

        The module, the kernel's name in it, and how many vectors a thread takes in one tile.
        """
        source = self.source(codegen.Loop(**variant))
        capability = _native.launch_limits(device)["compute_capability"]
        compiled = nvrtc.compile_source(source.code, self._label, capability, options=self.options)
        return _native.load_module(device, compiled.image, self._label), source.symbol, source.unroll

    @property
    def kernel_name(self) -> str:
        """str: the name in profilers."""
        return codegen.sanitize(self.name)

    def __repr__(self) -> str:
        return f"<{self._label}>"
