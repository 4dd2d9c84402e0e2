"""What an adapter is: tables of Python expressions.

They are expressions and not functions so that one text serves twice: the runner evaluates it, and a reproducer of a
fault prints it as a script that needs no dlbridge. Where an expression will not do, a function may stand; a fault
there is reported without a script.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dlbridge.tests._cases import Case
from dlbridge.tests._patience import Patience

if TYPE_CHECKING:
    from dlbridge import _core

# Names of dtypes, in groups.
BOOL = frozenset({"bool"})
INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = frozenset({"float16", "float32", "float64"})
COMPLEX = frozenset({"complex64", "complex128"})
BFLOAT16 = frozenset({"bfloat16"})
NUMPY_NATIVE = BOOL | INTEGERS | FLOATS | COMPLEX

Expression = str | Callable[..., Any]

# Makes an array of the layout "delayed" from the module, the device and a function: what is queued on the stream that
# it is called with waits until the runner opens a gate. Queues the values behind that, and returns the array and the
# context in which its framework says that it may be handed over: mostly, its stream as the current one. Nothing in it
# may wait for the device after the function was called.
Delayed = Callable[[Any, str, Callable[[int], None]], tuple[Any, AbstractContextManager[Any]]]

DENSE: dict[str, str] = {"contiguous": "{x}", "0-d": "{x}", "zero-size": "{x}"}
SLICED: dict[str, str] = {**DENSE, "strided": "{x}[:, ::2]", "offset": "{x}[4:]"}
ANY_VIEW: dict[str, str] = {**SLICED, "negative": "{x}[::-1]"}
FLAT: dict[str, str] = {"contiguous": "{x}", "zero-size": "{x}"}

# In the order of reports: the shorter types first.
DTYPE_ORDER: tuple[str, ...] = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bfloat16"),
    *("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"),
)


def spelled(template: str, dtypes: Iterable[str]) -> dict[str, str]:
    """How a framework writes each of `dtypes`: spelled("torch.{}", ...)."""
    wanted = frozenset(dtypes)
    return {name: template.format(name) for name in DTYPE_ORDER if name in wanted}


@dataclass(frozen=True)
class Look:
    """How arrays are looked at by their framework's own means: expressions of `x`, `write` also of `value`.

    `read` gives (nested) lists, `pointer` the address of the first element; `write` sets that element and is empty
    where the arrays are immutable; `readonly` is empty where they have no such mark. An empty `read` or `pointer`
    says that there is no way.
    """

    read: Expression = ""
    pointer: Expression = ""
    write: Expression = ""
    readonly: Expression = ""


@dataclass(frozen=True)
class ArrayType:
    """One array type of a producer.

    `make` builds a dense array from the fields {values} (a flat list), {shape}, {dtype} and {device}; `views` says for
    each layout what becomes of {x}, that array. `protocols` are those it offers, by asdlpack()'s names.
    """

    name: str
    make: str
    dtypes: Mapping[str, str]
    look: Look
    views: Mapping[str, str] = field(default_factory=lambda: DENSE)
    protocols: tuple[str, ...] = ("dlpack",)
    devices: tuple[str, ...] = ("cpu",)
    flat: bool = False  # has one dimension only
    readonly: bool = False  # always
    arrives: Mapping[str, str] = field(default_factory=dict)  # dtypes that its protocols call by another name
    delayed: Delayed | None = None  # makes the layout "delayed"

    def source(self, case: Case) -> str:
        """The expression that builds the array of `case`."""
        shape: tuple[int, ...] = (len(case.base_values),) if self.flat else case.geometry.base
        template = self.views.get(case.layout, "{x}").replace("{x}", self.make)
        return template.format(
            values=case.base_values, shape=shape, dtype=self.dtypes[case.dtype], device=repr(case.device)
        )

    def shape(self, case: Case) -> tuple[int, ...]:
        return (len(case.values),) if self.flat else case.geometry.shape

    def layouts(self, device: str) -> list[str]:
        late = ["delayed"] if self.delayed is not None and device != "cpu" else []
        return [*self.views, *late]


@dataclass(frozen=True)
class Framework:
    """One library: how its arrays are made, how it takes those of others, how the results are looked at.

    `module` is what must be importable (empty: nothing); `convert` its name for dlbridge.convert(), empty where that
    knows it not; `takes` its own importers, expressions of `source` by the protocol they use; `devices` an
    expression that tells whether a device is there, for those besides the CPU.
    """

    name: str
    module: str
    types: tuple[ArrayType, ...] = ()
    convert: str = ""
    takes: Mapping[str, Expression] = field(default_factory=dict)
    look: Look = field(default_factory=Look)  # at what it makes of others' arrays
    imports: tuple[str, ...] = ()  # modules that the expressions need besides `module`
    distribution: str = ""  # which the version is read from, where it is not named as the module
    devices: Mapping[str, str] = field(default_factory=dict)
    setup: str = ""  # an expression that is evaluated once, after the import
    context: str = ""  # an expression of a context manager around the making of arrays
    own_copy: Callable[[_core.Tensor], str] = lambda tensor: ""  # why its own importers copy; empty: they do not
    unordered: Mapping[str, str] = field(default_factory=dict)  # own importers that do not wait for the data, and why
    only_devices: tuple[str, ...] = ()  # of arrays that its own importers take; empty: any

    @property
    def label(self) -> str:
        """Its name as a consumer."""
        return self.convert or self.name


class Bench:
    """The loaded modules of one framework, and its expressions made callable."""

    def __init__(self, framework: Framework, *, load: bool = True) -> None:
        self.framework = framework
        self.names: dict[str, Any] = {}
        self.patience = Patience()
        if load:
            for name in (framework.module, *framework.imports):
                self._bind(name)
        self.function = functools.cache(self._function)  # of this bench: lives as long as the modules it closes over
        if load and framework.setup:
            self.function(framework.setup)()

    def _bind(self, name: str) -> None:
        if name:
            importlib.import_module(name)
            top = name.partition(".")[0]
            self.names[top] = importlib.import_module(top)

    def _function(self, expression: Expression, *parameters: str) -> Callable[..., Any]:
        if callable(expression):
            return expression
        code = f"lambda {', '.join(parameters)}: {expression}"
        made: Callable[..., Any] = eval(code, self.names)
        return made

    def make(self, kind: ArrayType, case: Case) -> Any:
        """A fresh array."""
        context: AbstractContextManager[Any] = contextlib.nullcontext()
        if self.framework.context:
            context = self.function(self.framework.context)()
        with context:
            return self.function(kind.source(case))()

    def make_delayed(
        self, kind: ArrayType, case: Case, hold: Callable[[int], None]
    ) -> tuple[Any, AbstractContextManager[Any]]:
        """A fresh array that is written behind a gate, and the context to hand it over in."""
        assert kind.delayed is not None
        return kind.delayed(self.names[self.framework.module.partition(".")[0]], case.device, hold)

    def has_device(self, device: str) -> str:
        """Why `device` is not there; empty where it is."""
        if device == "cpu":
            return ""
        test = self.framework.devices.get(device)
        try:
            there = test is not None and bool(self.function(test)())
        except Exception as error:
            return f"{type(error).__name__}: {error}".splitlines()[0]
        return "" if there else f"{self.framework.name} sees no {device.upper()} device"
