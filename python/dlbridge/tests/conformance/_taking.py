"""The consumer under test: is given adversarial producers, and what it makes of them is looked at."""

from __future__ import annotations

import ctypes as ct
import gc
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dlbridge.tests.conformance import _abi
from dlbridge.tests.conformance._adversary import Managed, OldProducer, Producer, memory_of
from dlbridge.tests.conformance._check import Failed, Skip, Unsupported, describe, expect, expect_equal
from dlbridge.tests.conformance._making import Described, describe_managed
from dlbridge.tests.conformance._spec import BASE, BOOL, COMPLEX, DTYPES, FLOAT, INT, UINT, Spec, flatten

RELEASE_WAIT_S = 1.0  # some consumers delete on a thread of their own


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

    def settle(self) -> None:
        """Each taken struct is deleted once, each other one never; a capsule says which by its name."""
        given_used = (self._name or b"").startswith(b"used_")
        names = [_abi.capsule_name(capsule) or b"" for capsule in self.capsules]
        wanted = [int(name.startswith(b"used_") and not given_used) for name in names]
        deadline = time.monotonic() + RELEASE_WAIT_S
        while True:
            gc.collect()
            got = [tensor.deletions for tensor in self.tensors]
            good = all(g == w or not t.struct.deleter for g, w, t in zip(got, wanted, self.tensors, strict=True))
            if good or time.monotonic() > deadline or any(g not in (0, 1) for g in got):
                break
            time.sleep(0.01)
        if not good:
            words = ["was renamed" if w else "was not renamed" for w in wanted]
            raise Failed(
                f"calls of the deleter {wanted}, as each capsule {' / '.join(words)}",
                f"{got}, after the result was dropped" + (" (-1: the struct was written to)" if -1 in got else ""),
            )


# --- what came of it --------------------------------------------------------------------------------------------------


def _to_list(result: Any) -> Any:
    for name in ("tolist", "to_pylist"):
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

    def call(self, obj: Any, **options: Any) -> Any:
        try:
            return self.func(obj, **options)
        except Unsupported as error:
            raise Skip(f"the consumer does not take it: {error}") from None

    @property
    def asks_versioned(self) -> bool:
        """Whether it asks ``__dlpack__`` for a versioned struct."""
        if self._versioned is None:
            offer = Offer(lambda: managed_for(BASE, version=None))
            try:
                self.call(offer.producer)
            except Skip:
                raise
            except Exception:
                pass
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
    try:
        result = taking.call(offer.producer)
    except Skip:
        raise
    except Exception as error:
        raise Failed("the array is taken", describe(error)) from None
    taking.expect_right(result, spec)
    del result
    offer.settle()


def take_right_or_refuse(taking: Taking, offer: Offer, spec: Spec) -> None:
    """A refusal is a skip, with the library's own words; and leaves nothing behind, either."""
    try:
        result = taking.call(offer.producer)
    except Skip:
        raise
    except Exception as error:
        words = describe(error)
        del error
        offer.settle()
        raise Skip(f"refused: {words}") from None
    taking.expect_right(result, spec)
    del result
    offer.settle()


def take_refused(
    taking: Taking, offer: Offer, errors: tuple[type[BaseException], ...] = (Exception,), keep: str | None = None
) -> None:
    """The consumer must refuse it. `keep` "dtype" or "device": or keep that exactly, seen by exporting it again."""
    words = " or ".join(error.__name__ for error in errors)
    try:
        result = taking.call(offer.producer)
    except Skip:
        raise
    except errors:
        offer.settle()
        return
    except Exception as error:
        raise Failed(words, describe(error)) from None
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
        offer.settle()
        raise Skip(f"taken, and the {keep} is kept exactly")
    raise Failed(f"an error ({words})", f"{type(result).__name__} of shape {taking.shape(result)}")
