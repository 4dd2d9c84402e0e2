"""RawKernel and RawModule: kernels of the user's own CUDA C++, PTX or machine code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbridge.nd import _native
from dlbridge.nd._kernels import nvrtc
from dlbridge.nd._kernels.signature import read_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

_REFUSED = {
    "jitify": "jitify is not there: NVRTC finds CUDA's headers by itself, others with options=('-I/folder',)",
    "translate_cucomplex": "translate_cucomplex is not there: include <dlbridge/types.cuh> and use complex<float>",
}


def _refuse_unsupported(operation: str, backend: str, **switches: bool) -> None:
    if backend != "nvrtc":
        raise ValueError(f"{operation}: backend is {backend!r}; kernels are compiled by NVRTC only: leave backend out")
    for name, given in switches.items():
        if given:
            raise ValueError(f"{operation}: {_REFUSED[name]}")


class _Code:
    """The code behind kernels: a source that is compiled for a device on first use, or an image for all."""

    def __init__(
        self,
        operation: str,
        *,
        source: str | None = None,
        image: bytes | None = None,
        options: tuple[str, ...] = (),
        name_expressions: tuple[str, ...] = (),
    ) -> None:
        self.operation, self.source, self.options = operation, source, options
        self.name_expressions = name_expressions
        self._image = image
        self._compiled: dict[int, nvrtc.Compiled] = {}  # by compute capability
        self._modules: dict[int, int] = {}  # by device

    def compile(self, capability: int) -> nvrtc.Compiled:
        if self._image is not None:
            return nvrtc.Compiled(self._image, {})
        if capability not in self._compiled:
            assert self.source is not None
            self._compiled[capability] = nvrtc.compile_source(
                self.source, self.operation, capability, options=self.options, name_expressions=self.name_expressions
            )
        return self._compiled[capability]

    def module(self, device: int) -> int:
        if device not in self._modules:
            image = self.compile(_native.launch_limits(device)["compute_capability"]).image
            self._modules[device] = _native.load_module(device, image, self.operation)
        return self._modules[device]

    def symbol(self, name: str, device: int) -> str:
        """The name in the machine code: templates have another than in the source."""
        if name not in self.name_expressions:
            return name
        return self.compile(_native.launch_limits(device)["compute_capability"]).lowered_names[name]


class _HasCode:
    """What a kernel and a module of the user's code have in common."""

    _code: _Code

    def _load(self, device: int) -> None:
        raise NotImplementedError

    def compile(self, log_stream: Any = None) -> None:
        """Compiles and loads the code on the current device now, rather than when it is first used.

        log_stream: where a failing compilation's whole log is written.
        """
        try:
            self._load(_native.launch_device())
        except nvrtc.CompileError as error:
            if log_stream is not None:
                log_stream.write(error.log)
            raise

    @property
    def code(self) -> str | None:
        """str | None: the source; None where the code was read from a file."""
        return self._code.source

    @property
    def options(self) -> tuple[str, ...]:
        """tuple: the options for NVRTC."""
        return self._code.options


def _attribute(name: str, doc: str) -> property:
    return property(lambda self: self.attributes[name], doc=doc)


class RawKernel(_HasCode, _native.KernelLauncher):
    """A kernel from CUDA C++ source: ``kernel(grid, block, args, *, shared_mem=0, stream=None)`` launches it.

    code: the source; the kernel must be declared ``extern "C"``.
    name: of the kernel in the source.
    options: for NVRTC, such as ``("--use_fast_math",)``.
    enable_cooperative_groups: launch so that the grid may synchronise.
    require_contiguous: refuse arrays that are not C-contiguous, since a kernel gets their address alone.
    check_types: compare the arguments' dtypes with what the source declares.

    ``grid`` and ``block`` are an int or up to three. ``args`` are arrays of any framework on one CUDA device (passed as
    pointers, without a copy), Python and NumPy scalars, MemoryPointer, None and ctypes structures. A Python scalar
    takes the type that the kernel declares; a NumPy scalar must have it. The launch is queued on the device's current
    stream, or on `stream`, behind all other uses of the arrays. The source is compiled on first use, and kept on disk.

    Raises CompileError for a source that does not compile; TypeError for arguments that do not fit the parameters;
    ValueError for a grid or block past the device's limits, and for views.
    """

    name: str

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool = False,
        require_contiguous: bool = True,
        check_types: bool = True,
    ) -> None:
        _refuse_unsupported("RawKernel", backend, translate_cucomplex=translate_cucomplex, jitify=jitify)
        if not isinstance(code, str) or not isinstance(name, str):
            raise TypeError("RawKernel: code and name are strings: the CUDA C++ source, and the kernel's name in it")
        source = _Code(f"RawKernel {name!r}", source=code, options=nvrtc.check_options(options, "RawKernel"))
        self._set_up(source, name, enable_cooperative_groups, require_contiguous, check_types)

    def _set_up(self, code: _Code, name: str, cooperative: bool, require_contiguous: bool, check_types: bool) -> None:
        self._code, self.name = code, name
        self._cooperative = cooperative
        self._dynamic_shared: int | None = None
        self._loaded: set[int] = set()
        declared = read_signature(code.source, name) if check_types and code.source is not None else None
        _native.kernel_configure(
            self,
            name=f"RawKernel {name!r}",
            declared=declared,
            require_contiguous=require_contiguous,
            cooperative=cooperative,
        )

    def _load(self, device: int) -> None:
        """Called by the launch on a device for the first time."""
        if device in self._loaded:
            return
        _native.kernel_install(self, device, self._code.module(device), self._code.symbol(self.name, device))
        self._loaded.add(device)
        if self._dynamic_shared is not None:
            _native.kernel_set_attribute(self, device, "max_dynamic_shared_size_bytes", self._dynamic_shared)

    @property
    def backend(self) -> str:
        """str: always 'nvrtc'."""
        return "nvrtc"

    @property
    def enable_cooperative_groups(self) -> bool:
        """bool: whether the kernel is launched so that its grid may synchronise."""
        return self._cooperative

    @property
    def attributes(self) -> dict[str, int]:
        """dict: what the driver says of the kernel on the current device; compiles it where it must."""
        device = _native.launch_device()
        self._load(device)
        found: dict[str, int] = _native.kernel_attributes(self, device)
        return found

    num_regs = _attribute("num_regs", "int: registers of a thread.")
    shared_size_bytes = _attribute("shared_size_bytes", "int: static shared memory of a block.")
    const_size_bytes = _attribute("const_size_bytes", "int: constant memory.")
    local_size_bytes = _attribute("local_size_bytes", "int: local memory of a thread: spilled registers, arrays.")
    max_threads_per_block = _attribute("max_threads_per_block", "int: what the kernel's registers leave room for.")
    ptx_version = _attribute("ptx_version", "int: 80 for PTX of compute_80.")
    binary_version = _attribute("binary_version", "int: 90 for machine code of sm_90.")
    cache_mode_ca = _attribute("cache_mode_ca", "int: whether it was compiled with -Xptxas --dlcm=ca.")

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """int: the most that a launch's shared_mem may be. Setting it past 48 KiB opts in to the device's full size."""
        return self.attributes["max_dynamic_shared_size_bytes"]

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, value: int) -> None:
        device = _native.launch_device()
        self._load(device)
        _native.kernel_set_attribute(self, device, "max_dynamic_shared_size_bytes", int(value))
        self._dynamic_shared = int(value)

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """int: per cent of the L1 cache to be shared memory; -1: the driver's choice."""
        return self.attributes["preferred_shared_memory_carveout"]

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, value: int) -> None:
        device = _native.launch_device()
        self._load(device)
        _native.kernel_set_attribute(self, device, "preferred_shared_memory_carveout", int(value))

    def __repr__(self) -> str:
        return f"<RawKernel {self.name!r}>"


class RawModule(_HasCode):
    """Several kernels and globals of one source or image.

    code: CUDA C++ source. path: a file of PTX, a cubin or a fatbin instead.
    options: for NVRTC. name_expressions: the templates to instantiate, as ``("scale<float>",)``; with them a kernel
    need not be ``extern "C"``, and is got by its expression.
    """

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | os.PathLike[str] | None = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: bool = False,
        require_contiguous: bool = True,
        check_types: bool = True,
    ) -> None:
        _refuse_unsupported("RawModule", backend, translate_cucomplex=translate_cucomplex, jitify=jitify)
        if (code is None) == (path is None):
            raise TypeError("RawModule: give either code= (CUDA C++) or path= (a file of PTX or machine code)")
        flags = nvrtc.check_options(options, "RawModule")
        expressions = tuple(name_expressions or ())
        if path is not None and (flags or expressions):
            raise ValueError(
                "RawModule: options and name_expressions are for the compiler; a file given by path= is "
                "compiled already"
            )
        image = None if path is None else Path(path).read_bytes()
        self._code = _Code("RawModule", source=code, image=image, options=flags, name_expressions=expressions)
        self._kernel_options = (enable_cooperative_groups, require_contiguous, check_types)
        self._kernels: dict[str, RawKernel] = {}
        self.file_path = None if path is None else os.fspath(path)

    @property
    def name_expressions(self) -> tuple[str, ...]:
        """tuple: the templates that are instantiated."""
        return self._code.name_expressions

    def _load(self, device: int) -> None:
        self._code.module(device)

    def get_function(self, name: str) -> RawKernel:
        """The kernel of that name, or of that name expression. Compiled and looked up when it is first used."""
        if name not in self._kernels:
            kernel = RawKernel.__new__(RawKernel)
            kernel._set_up(self._code, name, *self._kernel_options)
            self._kernels[name] = kernel
        return self._kernels[name]

    def get_global(self, name: str) -> Any:
        """A MemoryPointer to a ``__device__`` or ``__constant__`` variable on the current device."""
        from dlbridge.nd import cuda

        device = _native.launch_device()
        module = self._code.module(device)
        address, size = _native.module_global(module, device, self._code.symbol(name, device), "RawModule")
        return cuda.MemoryPointer(cuda.UnownedMemory(address, size, self, device), 0)

    def __repr__(self) -> str:
        return f"<RawModule {self.file_path or 'of source'!r}>"
