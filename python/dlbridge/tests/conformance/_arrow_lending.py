"""Arrow producers for a consumer under test: sound columns, what comes of them, and a count of every release."""

from __future__ import annotations

import ctypes as ct
import gc
import math
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._arrow_abi import NAMES, capsule, release
from dlbridge.tests.conformance._arrow_adversary import Maker
from dlbridge.tests.conformance._arrow_export import METHODS
from dlbridge.tests.conformance._arrow_format import FORMAT_OF
from dlbridge.tests.conformance._check import Failed, Skip, expect_equal
from dlbridge.tests.conformance._spec import ARROW_BASE, Spec, encode, flatten
from dlbridge.tests.conformance._taking import Taking

Built = tuple[Any, list[Any]]  # the schema, and the arrays: several are chunks of a stream
Build = Callable[[Maker], Built]

COLUMN, TABLE = "column", "table"


# --- sound columns ----------------------------------------------------------------------------------------------------


def packed_bits(flags: list[bool]) -> bytes:
    number = sum(flag << i for i, flag in enumerate(flags))
    return number.to_bytes((len(flags) + 7) // 8, "little")


def primitive(maker: Maker, dtype: str, values: list[Any], lead: int = 0) -> Any:
    """An array of numbers or bools, behind `lead` elements that its offset leaves out."""
    nulls = [value is None for value in values]
    filled = [0] * lead + [0 if value is None else value for value in values]
    raw = packed_bits([bool(v) for v in filled]) if dtype == "bool" else b"".join(encode(v, dtype) for v in filled)
    bitmap = packed_bits([False] * lead + [not null for null in nulls]) if any(nulls) else None
    return maker.array(len(values), (bitmap, raw + b"\0"), null_count=sum(nulls), offset=lead)


def column(spec: Spec) -> Build:
    """The column that a spec describes; axes behind the first are lists of fixed size."""

    def build(maker: Maker) -> Built:
        lead = 3 if spec.layout == "offset" else 0
        values = spec.values
        parts = [values[:2], values[2:]] if spec.layout == "chunks" else [values]
        arrays = [primitive(maker, spec.dtype, part, lead) for part in parts]
        schema = maker.schema(FORMAT_OF[spec.dtype].encode(), b"x" if len(spec.shape) == 1 else b"item", flags=2)
        for axis in reversed(range(len(spec.shape) - 1)):
            rows = math.prod(spec.shape[: axis + 1])
            arrays = [maker.array(rows, (None,), children=arrays)]
            name = b"item" if axis else b"x"
            schema = maker.schema(b"+w:%d" % spec.shape[axis + 1], name, children=[schema], flags=2)
        return schema, arrays

    return build


def edited(edit: Callable[[Any, Any], object], spec: Spec = ARROW_BASE) -> Build:
    """The sound column after ``edit(schema, array)``."""

    def build(maker: Maker) -> Built:
        schema, arrays = column(spec)(maker)
        edit(schema, arrays[0])
        return schema, arrays

    return build


def as_table(build: Build) -> Build:
    """A table of one column."""

    def wrapped(maker: Maker) -> Built:
        schema, arrays = build(maker)
        tables = [maker.array(max(array.length, 0), (None,), children=[array]) for array in arrays]
        return maker.schema(b"+s", b"", children=[schema]), tables

    return wrapped


# --- who offers them --------------------------------------------------------------------------------------------------


_pointer = ct.PYFUNCTYPE(ct.c_void_p, ct.c_void_p, ct.c_char_p)(("PyCapsule_GetPointer", ct.pythonapi))


def _destructor(kind: Any) -> Any:
    def destroy(address: int) -> None:
        release(kind.from_address(_pointer(address, NAMES[kind])))

    return _abi.DESTRUCTOR(destroy)


_DESTROY = {kind: _destructor(kind) for kind in NAMES}


def _mortal_capsule(source: Any) -> Any:
    """With the destructor that a producer has to give it."""
    return _abi.new_capsule(ct.addressof(source), NAMES[type(source)], _DESTROY[type(source)])


class Lending:
    """An object with the one method of `route`, which makes new structs at every call, and counts.

    `finish(given)` may give other capsules than the sound ones; `device` is the type that device arrays name. Capsules
    have no destructor unless `mortal`: it would lose the consumer's error where it runs while one is raised.
    """

    def __init__(
        self,
        route: str,
        form: str,
        build: Build,
        *,
        device: int = 1,
        stream: dict[str, Any] | None = None,
        finish: Callable[[Any], Any] | None = None,
        mortal: bool = False,
    ) -> None:
        self.maker = Maker()
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.sources: list[Any] = []
        self._route, self._device, self._stream, self._finish = route, device, stream or {}, finish
        self._mortal = mortal
        self._build = as_table(build) if form == TABLE else build
        self.object = type("Producer", (), {METHODS[route]: lambda _self, *a, **k: self._give(*a, **k)})()

    def _give(self, *arguments: Any, **keywords: Any) -> Any:
        self.calls.append((arguments, keywords))
        schema, arrays = self._build(self.maker)
        sources: tuple[Any, ...] = (schema, arrays[0]) if arrays else ()
        if self._route == "stream":
            sources = (self.maker.stream(schema, arrays, **self._stream),)
        elif self._route == "device":
            sources = (schema, self.maker.on_device(arrays[0], self._device, -1 if self._device == 1 else 0))
        self.sources += sources
        given: Any = tuple(map(_mortal_capsule if self._mortal else capsule, sources))
        given = given if len(given) == 2 else given[0]
        return given if self._finish is None else self._finish(given)

    @property
    def data(self) -> int:
        """The address of the numbers of the last array that was made."""
        arrays = [made.struct for made in self.maker.structs if getattr(made.struct, "n_buffers", 0) == 2]
        return int(arrays[-1].buffers[1])

    def unsettled(self) -> tuple[str, str] | None:
        return self.maker.unsettled()

    @property
    def hopeless(self) -> bool:
        return self.maker.hopeless


# --- what came of it --------------------------------------------------------------------------------------------------

_forms: WeakKeyDictionary[Taking, dict[str, tuple[str | None, str]]] = WeakKeyDictionary()


def form_of(taking: Taking, route: str) -> tuple[str | None, str]:
    """Whether it takes columns or tables by this method, and why not where it takes neither."""
    known = _forms.setdefault(taking, {})
    if route not in known:
        words = ""
        for form in (COLUMN, TABLE):
            lending = Lending(route, form, column(ARROW_BASE))
            result, refusal = taking.attempt(lending.object)
            if refusal is None and _looks_right(taking, result, ARROW_BASE):
                known[route] = (form, "")
                break
            words = words or ("it made something else of the object" if refusal is None else refusal.words)
            del result
        else:
            known[route] = (None, words)
        gc.collect()
    return known[route]


def gate(taking: Taking, route: str) -> str:
    form, words = form_of(taking, route)
    if form is None:
        raise Skip(f"the consumer takes no {METHODS[route]}: {words}")
    return form


def _plain(value: Any) -> Any:
    """Lists where a row is an array, also of arrays."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else value


def values_of(taking: Taking, result: Any) -> list[Any]:
    """With None for every null: some say NaN."""
    return [None if v is None or v != v else v for v in flatten(_plain(taking.values(result)))]


def _looks_right(taking: Taking, result: Any, spec: Spec) -> bool:
    """So many numbers: whether they are the right ones is for other checks to say."""
    try:
        values = values_of(taking, result)
    except Skip:
        return False
    return len(values) == spec.size and all(isinstance(value, (int, float)) for value in values)


def expect_right(taking: Taking, result: Any, spec: Spec) -> None:
    got = values_of(taking, result)
    expect_equal(got, spec.values, "the elements")
    if spec.dtype == "bool":
        kinds = {type(value).__name__ for value in got if value is not None}
        expect_equal(kinds - {"bool", "bool_"}, set(), "other elements than bools:")


def take_right(taking: Taking, lending: Lending, spec: Spec, *, may_refuse: bool = True) -> None:
    """The right elements and nothing left behind; a refusal in words leaves nothing behind, either."""
    result, refusal = taking.attempt(lending.object)
    if refusal is None:
        expect_right(taking, result, spec)
    elif not may_refuse:
        raise Failed("the array is taken", refusal.words)
    del result
    taking.settle(lending)
    if refusal is not None:
        raise Skip(f"refused: {refusal.words}")


def take_refused(taking: Taking, lending: Lending, what: str = "an error") -> str:
    """The words of the refusal, which may come when the elements are looked at."""
    result, refusal = taking.attempt(lending.object)
    if refusal is not None:
        words = refusal.words
    else:
        try:
            got = taking.values(result)
        except Skip as late:
            words = str(late)
        else:
            raise Failed(what, f"{type(result).__name__} of elements {got[:8]}")
    del result
    taking.settle(lending)
    return words


def is_schema_capsule(value: Any) -> bool:
    return _abi.is_capsule(value) and _abi.capsule_name(value) == b"arrow_schema"
