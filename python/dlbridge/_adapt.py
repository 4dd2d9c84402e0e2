"""adapt(): a function that was written for one framework takes the arrays of any."""

from __future__ import annotations

import functools
from types import ModuleType

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    _Key = int | str  # of an argument: its position or its keyword
    _Found = list[tuple[_Key, Any]]


def _takes_self(function: Any) -> bool:
    """Whether the first parameter is the object that a method belongs to, which is never converted."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return code is not None and code.co_argcount > 0 and code.co_varnames[0] in ("self", "cls")


class _Adapter:
    """The slow way of one adapted function: some array is of another framework, or the result is to be of one."""

    def __init__(self, function: Any, to: Any, out: Any, device: Any, like: str | None) -> None:
        self.function, self.to, self.out, self.device, self.like = function, to, out, device, like
        self.name = f"{getattr(function, '__name__', type(function).__name__)}()"
        _core.target_name(to)  # ValueError where there is none
        self.labels: dict[_Key, str] = {}
        if like is not None and like not in self.parameters:
            raise TypeError(
                f"adapt(): like names {like!r}, which is no parameter of {self.name}; it has "
                f"{', '.join(self.parameters) or 'none that Python knows of'}"
            )

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        import inspect

        try:
            return dict(inspect.signature(self.function).parameters)
        except (TypeError, ValueError):  # a function in C without a signature
            return {}

    def label(self, key: _Key) -> str:
        """The name of an argument."""
        if isinstance(key, str):
            return key
        if key not in self.labels:
            self.labels[key] = self.parameter_at(key)
        return self.labels[key]

    def parameter_at(self, key: int) -> str:
        """The name of a positional argument."""
        for index, (name, parameter) in enumerate(self.parameters.items()):
            if parameter.kind == parameter.VAR_POSITIONAL:
                return f"{name}[{key - index}]"
            if index == key:
                return name
        return f"argument {key + 1}"

    def caller(self, arrays: _Found) -> Any:
        """The array whose framework and device the results are to have; None where there is no array."""
        if self.like is not None:
            arrays = [(key, array) for key, array in arrays if self.label(key).partition("[")[0] == self.like]
            if not arrays:
                raise TypeError(f"{self.name}: no array is in {self.like!r}, which the result is to be like")
        by_framework: dict[str, str] = {}
        for key, array in arrays:
            name = _core.framework_name(array)
            if name is None:
                kind = f"{type(array).__module__}.{type(array).__qualname__}"
                raise TypeError(
                    f"{self.name}: {self.label(key)} is {kind}, of no framework that dlbridge knows, and the result "
                    "cannot be like it. Say what it shall be: adapt(..., out='numpy')"
                )
            by_framework.setdefault(name, self.label(key))
        if len(by_framework) > 1:
            who = ", ".join(f"{argument} of {name}" for name, argument in by_framework.items())
            raise TypeError(
                f"{self.name}: the arrays are of several frameworks ({who}), and the result can be like one only. Name "
                "the argument that wins, adapt(..., like='...'), or the framework, adapt(..., out='...')"
            )
        return arrays[0][1] if arrays else None

    def call(self, arrays: _Found, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call with converted arguments; `arrays` are all that are in them."""
        caller = self.caller(arrays) if self.out == "like" else None
        given = list(args)
        for key in dict.fromkeys(key for key, _ in arrays):  # what holds no array is passed on untouched
            label = self.label(key)
            if isinstance(key, str):
                kwargs[key] = _core.convert_part(kwargs[key], self.to, None, self.device, self.name, label)
            else:
                given[key] = _core.convert_part(given[key], self.to, None, self.device, self.name, label)
        result = self.function(*given, **kwargs)
        if self.out is None or (self.out == "like" and caller is None):
            return result
        to = None if self.out == "like" else self.out
        return _core.convert_part(result, to, caller, None, self.name, "the result")


def adapt(
    to: Any = "numpy", out: Any = "like", device: Any = None, *, like: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Lets a function that was written for the framework `to` take the arrays of any, and give back the caller's own.

    ``@adapt("numpy")``, or ``adapt("numpy")(scipy.ndimage.gaussian_filter)``; ``@adapt`` alone is for NumPy. Arrays in
    all arguments, in containers and keywords too, enter as by convert(x, to, device=device). All else is passed on as
    it is, and so is ``self`` or ``cls`` of a method. Where every array is of the framework already and there is nothing
    to do for `device` or `out`, the call goes straight through. Name, docstring, signature and annotations stay.

    out: "like": arrays in the result become those of the caller's framework, on its device; arguments of several
    frameworks are a TypeError that names them. A framework's name: arrays of that. None: the result as it is.
    device: where the function works: "cpu" lets NumPy's functions take arrays on a GPU.
    like: the name of the parameter that the result is like, where the arguments may be of several frameworks.

    Raises what convert() raises, with the function and the argument in the message. Read-only memory stays read-only;
    a framework that cannot say so (PyTorch) gets a copy.
    """
    if not isinstance(to, (str, ModuleType)):
        if not callable(to):
            raise TypeError(f"adapt(): to is {type(to).__qualname__}; give the name of a framework: adapt('numpy')")
        return adapt()(to)  # @adapt, without parentheses
    if not (out is None or isinstance(out, (str, ModuleType))):
        raise TypeError(f"adapt(): out is {type(out).__qualname__}; give 'like', the name of a framework, or None")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(
                f"adapt(): {type(function).__qualname__} is not callable; put @adapt below @classmethod and @property"
            )
        first = int(_takes_self(function))
        adapter = _Adapter(function, to, out, device, like)
        survey = _core.survey
        # With a device or another framework for the result there is work even for matching arrays.
        own = to if device is None and (out is None or out == "like") else None

        @functools.wraps(function)
        def adapted(*args: Any, **kwargs: Any) -> Any:
            arrays = survey(own, args, kwargs, first)
            if arrays is None:
                return function(*args, **kwargs)
            return adapter.call(arrays, args, kwargs)

        return adapted

    return decorate
