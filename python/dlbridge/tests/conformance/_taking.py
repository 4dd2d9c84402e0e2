"""The consumer under test: is given adversarial producers, and what it makes of them is looked at."""

from __future__ import annotations

import ctypes as ct
import gc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dlbridge.tests._patience import Patience
from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._adversary import Managed, OldProducer, Producer, memory_of
from dlbridge.tests.conformance._check import Failed, Skip, Unsupported, describe, expect, expect_equal
from dlbridge.tests.conformance._making import Described, describe_managed
from dlbridge.tests.conformance._spec import BASE, BOOL, COMPLEX, DTYPES, FLOAT, INT, UINT, Spec, encode, flatten

# --- what is offered --------------------------------------------------------------------------------------------------


def managed_for(spec: Spec, **changes: Any) -> Managed:
    """A sound managed tensor of `spec`, but for `changes`."""
    memory, offset, strides = memory_of(spec)
    row = DTYPES[spec.dtype]
    elements = [stride // row["itemsize"] for stride in strides]
    options: dict[str, Any] = {"dtype": (row["code"], row["bits"], row["lanes"])}
    # Negative strides count from element 0, which `data` names; other offsets may come as byte_offset.
    options["memory"] = ct.addressof(memory) + offset if spec.size else None
    options |= {"shape": spec.shape, "strides": elements}
    return Managed(**(options | changes))


class Offer:
    """A producer of one kind of managed tensor, and all that was taken from it."""

    def __init__(
        self, build: Callable[[], Managed], *, device: Any = (1, 0), name: bytes | None = None, old: bool = False
    ) -> None:
        self._build, self._name = build, name
        self.tensors: list[Managed] = []
        self.producer: Any = OldProducer(self._make) if old else Producer(lambda **_: self._make(), device)

    def _make(self) -> Any:
        tensor = self._build()
        self.tensors.append(tensor)
        return tensor.capsule(self._name)

    @property
    def capsules(self) -> list[Any]:
        return list(self.producer.capsules)

    def unsettled(self) -> tuple[str, str] | None:
        """Each taken struct is deleted once, each other one never; a capsule says which by its name."""
        given_used = (self._name or b"").startswith(b"used_")
        names = [_abi.capsule_name(capsule) or b"" for capsule in self.capsules]
        wanted = [int(name.startswith(b"used_") and not given_used) for name in names]
        got = [tensor.deletions for tensor in self.tensors]
        if all(g == w or not t.struct.deleter for g, w, t in zip(got, wanted, self.tensors, strict=True)):
            return None
        words = ["was renamed" if w else "was not renamed" for w in wanted]
        return (
            f"calls of the deleter {wanted}, as each capsule {' / '.join(words)}",
            f"{got}, after the result was dropped" + (" (-1: the struct was written to)" if -1 in got else ""),
        )

    @property
    def hopeless(self) -> bool:
        """What has been deleted twice or written to gets no better."""
        return any(tensor.deletions not in (0, 1) for tensor in self.tensors)


class CopyOffer(Offer):
    """A producer of one array, at `address`, that copies where it is asked to; `old`: it cannot be asked."""

    def __init__(self, spec: Spec, version: tuple[int, int] | None, *, old: bool = False) -> None:
        self._spec, self._version, self._copy = spec, version, False
        self.address = self._tensor().address or 0
        super().__init__(self._export, old=old)
        if not old:
            self.producer = Producer(self._asked)

    def _tensor(self, flags: int = 0, **changes: Any) -> Managed:
        if self._version is None:
            return managed_for(self._spec, version=None, **changes)
        return managed_for(self._spec, version=self._version, flags=flags, **changes)

    def _asked(self, *, copy: Any, **_: Any) -> Any:
        self._copy = bool(copy)
        return self._make()

    def _export(self) -> Managed:
        if self._copy:
            return self._tensor(_abi.IS_COPIED)
        return self._tensor(_abi.READ_ONLY if self._spec.readonly else 0, memory=self.address)


class Lent(Protocol):
    """What the consumer must give back: `unsettled` says what was expected and found, None where all is back."""

    def unsettled(self) -> tuple[str, str] | None: ...

    @property
    def hopeless(self) -> bool: ...


@dataclass(frozen=True)
class Refusal:
    """What the consumer raised, without the exception: its traceback keeps the consumer's frames and all they hold."""

    kind: type[BaseException]
    words: str


# --- what came of it --------------------------------------------------------------------------------------------------


def _to_list(result: Any) -> Any:
    for name in ("tolist", "to_pylist", "to_list"):
        if hasattr(result, name):
            return getattr(result, name)()
    if hasattr(result, "numpy"):
        return result.numpy().tolist()
    if hasattr(result, "__dlpack__"):
        return _reexport(result).values()
    return memoryview(result).tolist()


def _reexport(result: Any) -> Described:
    try:
        capsule = result.__dlpack__(max_version=(1, 3))
    except TypeError:
        capsule = result.__dlpack__()
    return describe_managed(_abi.managed_of(capsule), [capsule, result])


def reexported(result: Any) -> Described | None:
    try:
        return _reexport(result)
    except Exception:
        return None


_KINDS = {"b": BOOL, "i": INT, "u": UINT, "f": FLOAT, "c": COMPLEX}


class Taking:
    """Calls the consumer, and looks at its results.

    `observe(result)` may return a mapping with any of `shape`, `values` (nested lists), `readonly`, `pointer`.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        observe: Callable[[Any], Mapping[str, Any]] | None = None,
        protocols: Iterable[str] | None = None,
        cuda_memory: Callable[[bytes], int] | None = None,
    ) -> None:
        self.func, self._observe = func, observe
        self.claims = frozenset(protocols or ())
        self.cuda_memory = cuda_memory
        self._versioned: bool | None = None
        self._patience = Patience()

    def call(self, obj: Any, **options: Any) -> Any:
        try:
            return self.func(obj, **options)
        except Unsupported as error:
            raise Skip(f"the consumer does not take it: {error}") from None

    def attempt(self, obj: Any, **options: Any) -> tuple[Any, Refusal | None]:
        """The result, or how it was refused; what a refusal left behind can be counted right after it."""
        try:
            return self.call(obj, **options), None
        except Skip:
            raise
        except Exception as error:
            return None, Refusal(type(error), describe(error))

    def taken(self, obj: Any, **options: Any) -> Any:
        """The result; a refusal is a failure."""
        result, refusal = self.attempt(obj, **options)
        if refusal is not None:
            raise Failed("the array is taken", refusal.words)
        return result

    def taken_or_skip(self, obj: Any) -> Any:
        """The result; a refusal is a skip."""
        result, refusal = self.attempt(obj)
        if refusal is not None:
            raise Skip(f"refused: {refusal.words}")
        return result

    def settle(self, *lent: Lent) -> None:
        """All that was lent is given back; to be called where nothing of the consumer's is in a variable any more."""
        gc.collect()
        for one in lent:
            if not self._patience.wait(lambda one=one: one.unsettled() is None or one.hopeless):  # type: ignore[misc]
                break
        for one in lent:
            left = one.unsettled()
            if left is not None:
                raise Failed(*left)

    @property
    def asks_versioned(self) -> bool:
        """Whether it asks ``__dlpack__`` for a versioned struct."""
        if self._versioned is None:
            offer = Offer(lambda: managed_for(BASE, version=None))
            self.attempt(offer.producer)
            asked = [call["max_version"] for call in offer.producer.calls]
            self._versioned = any(isinstance(v, tuple) and v and v[0] >= 1 for v in asked)
        return self._versioned

    def need_versioned(self) -> None:
        if not self.asks_versioned:
            raise Skip("the consumer asks for no versioned struct (it passes no max_version)")

    def _observed(self, result: Any, field: str) -> Any:
        return self._observe(result).get(field) if self._observe is not None else None

    def values(self, result: Any) -> list[Any]:
        """The elements in C order; a Skip where they cannot be looked at."""
        observed = self._observed(result, "values")
        if observed is not None:
            return flatten(observed)
        try:
            return flatten(_to_list(result))
        except Exception as error:
            described = reexported(result)
            if described is not None:
                return described.values()
            raise Skip(f"the values cannot be looked at: {describe(error)}") from None

    def shape(self, result: Any) -> tuple[int, ...] | None:
        shape = self._observed(result, "shape")
        if shape is None:
            shape = getattr(result, "shape", None)
        try:
            return None if shape is None else tuple(map(int, shape() if callable(shape) else shape))
        except TypeError:
            return None

    def readonly(self, result: Any) -> bool | None:
        """None where the result cannot say."""
        observed = self._observed(result, "readonly")
        if observed is not None:
            return bool(observed)
        flags: Any = getattr(result, "flags", None)
        if hasattr(flags, "writeable"):
            return not flags.writeable
        if isinstance(getattr(result, "readonly", None), bool):
            return bool(result.readonly)
        described = reexported(result)
        # Without an attribute of its own it may have no notion of it, and then ignores the flag, as it is asked to.
        return True if described is not None and described.readonly else None

    def says_readonly(self, result: Any) -> bool:
        """A Skip where the result cannot say."""
        readonly = self.readonly(result)
        if readonly is None:
            raise Skip("the result cannot say whether it is read-only")
        return readonly

    def skip_a_copy(self, result: Any, address: int) -> None:
        if not self.shares(result, address):
            raise Skip("the result is a copy")

    def shares(self, result: Any, address: int, dtype: str = "float32") -> bool:
        """Whether the result uses the producer's memory, whose element 0 is at `address`.

        It says so itself when it is exported, or shows what is written there.
        """
        described = reexported(result)
        if described is not None and described.pointer == address:
            return True
        size = DTYPES[dtype]["itemsize"]
        old = ct.string_at(address, size)
        try:
            before = self.values(result)
            ct.memmove(address, encode(99, dtype), size)
            return self.values(result) != before
        finally:
            ct.memmove(address, old, size)

    def expect_right(self, result: Any, spec: Spec) -> None:
        shape = self.shape(result)
        expect(shape is None or shape == spec.shape, f"shape {spec.shape}", shape)
        values, wanted = self.values(result), spec.values
        expect_equal(values, wanted, "the elements")
        kinds = {type(value).__name__ for value in values} - {type(value).__name__ for value in wanted}
        expect(not kinds, f"elements of {spec.dtype}", f"elements of type {', '.join(kinds)}")


# --- three ways to end ------------------------------------------------------------------------------------------------


def take_right(taking: Taking, offer: Offer, spec: Spec) -> None:
    """The consumer must take it, and must see the right elements."""
    result = taking.taken(offer.producer)
    taking.expect_right(result, spec)
    del result
    taking.settle(offer)


def take_right_or_refuse(taking: Taking, offer: Offer, spec: Spec) -> None:
    """A refusal is a skip, with the library's own words; and leaves nothing behind, either."""
    result, refusal = taking.attempt(offer.producer)
    if refusal is None:
        taking.expect_right(result, spec)
    del result
    taking.settle(offer)
    if refusal is not None:
        raise Skip(f"refused: {refusal.words}")


def take_refused(
    taking: Taking, offer: Offer, errors: tuple[type[BaseException], ...] = (Exception,), keep: str | None = None
) -> None:
    """The consumer must refuse it. `keep` "dtype" or "device": or keep that exactly, seen by exporting it again."""
    words = " or ".join(error.__name__ for error in errors)
    result, refusal = taking.attempt(offer.producer)
    if refusal is not None:
        expect(issubclass(refusal.kind, errors), words, refusal.words)
        taking.settle(offer)
        return
    described = reexported(result) if keep else None
    tensor = offer.tensors[-1].struct.dl_tensor
    if described is not None and keep == "dtype":
        same = (described.code, described.bits, described.lanes) == (
            tensor.dtype.code,
            tensor.dtype.bits,
            tensor.dtype.lanes,
        )
    elif described is not None:
        same = described.device == (tensor.device.device_type, tensor.device.device_id)
    else:
        same = False
    if same:
        del result, described
        taking.settle(offer)
        raise Skip(f"taken, and the {keep} is kept exactly")
    raise Failed(f"an error ({words})", f"{type(result).__name__} of shape {taking.shape(result)}")
