"""``python -m dlbridge --probe``: what the table of frameworks promises, held against the consumers that are installed.

Each consumer is given one array of every dtype, layout, flag and memory in a process of its own: what the table says
becomes of it, what became of it, and whether both agree.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dlbridge import _core, _dtype
from dlbridge.tests import _loader, frameworks
from dlbridge.tests._cases import flatten, same
from dlbridge.tests._child import SILENCE_S, Answer, Child
from dlbridge.tests._exchange import reason_of

COULD_NOT_RUN = 2
_ALIGNMENT = 64  # the most that a consumer asks for
_UNREAD = "taken"  # by a consumer whose memory cannot be looked at
_SKIPPED = "skipped"  # memory that this machine does not have


@dataclass(frozen=True)
class Outcome:
    """One array at one consumer. `promised` and `happened` are "shared", "copied" or "refused", or what went wrong."""

    what: str  # "dtype", "layout", "flag" or "device"
    name: str
    promised: str
    happened: str
    reason: str = ""

    @property
    def kept(self) -> bool:
        if self.happened == _SKIPPED:
            return True
        return self.promised == self.happened or (self.happened == _UNREAD and self.promised != "refused")


@dataclass(frozen=True)
class Case:
    """An array to be given: NumPy's, or another producer of host or device memory; None where there is none such."""

    what: str
    name: str
    array: Any
    expected: list[Any]


# --- the arrays ------------------------------------------------------------------------------------------------------


def _aligned(values: Any, dtype: Any, offset: int = 0) -> Any:
    """A NumPy array `offset` bytes past a multiple of _ALIGNMENT."""
    import numpy

    made = numpy.asarray(values).astype(dtype)
    room = numpy.zeros(made.nbytes + 2 * _ALIGNMENT, numpy.uint8)
    start = -room.ctypes.data % _ALIGNMENT + offset
    array = room[start : start + made.nbytes].view(made.dtype).reshape(made.shape)
    array[...] = made
    return array


def _numbers(shape: tuple[int, ...], dtype: Any, offset: int = 0) -> Any:
    """1 and 2 in turns, which every dtype has; for bool 1 and 0."""
    import numpy

    count = int(numpy.prod(shape))
    numbers = numpy.arange(count, dtype="float32") % 2 + (0 if dtype == "bool" else 1)
    return _aligned(numbers.reshape(shape), dtype, offset)


def _layouts(dtype: Any) -> Iterator[tuple[str, Any]]:
    import numpy

    def flat() -> Any:
        return _numbers((12,), dtype)

    def square() -> Any:
        return _numbers((4, 6), dtype)

    yield "one axis", flat()
    yield "two axes", square()
    yield "four axes", _numbers((2, 3, 2, 2), dtype)
    yield "no axis", _numbers((), dtype)
    yield "zero-size", _numbers((0, 3), dtype)
    yield "Fortran order", square().T
    yield "every other element", flat()[::2]
    yield "rows with gaps", square()[:, :3]
    yield "negative strides", flat()[::-1]
    yield "zero strides", numpy.lib.stride_tricks.as_strided(flat(), (3, 12), (0, flat().itemsize))
    yield f"not aligned to {_ALIGNMENT} bytes", _numbers((12,), dtype, flat().itemsize)


class _Placed:
    """A copy of a host array in pinned or managed memory; which of them it is, the driver says of the pointer."""

    def __init__(self, memory: Any, address: int, host: Any) -> None:
        ctypes.memmove(address, host.ctypes.data, host.nbytes)
        self.memory = memory
        self.__cuda_array_interface__ = {
            "shape": host.shape,
            "typestr": host.dtype.str,
            "data": (address, False),
            "version": 3,
        }


def _memories(host: Any) -> Iterator[tuple[str, Any]]:
    """The array in every memory that CUDA has; None for each where there is no GPU."""
    if not _core.cuda_info()["available"]:
        yield from ((name, None) for name in ("cuda", "pinned", "managed"))
        return
    from dlbridge import nd

    yield "cuda", _core.asdlpack(host, device="cuda")
    pinned = nd.cuda.empty_pinned(host.shape, host.dtype)
    yield "pinned", _Placed(pinned, pinned.ctypes.data, host)
    managed = nd.cuda.malloc_managed(host.nbytes)
    yield "managed", _Placed(managed, managed.ptr, host)


def _cases(dtypes: list[str]) -> Iterator[Case]:
    import numpy

    def case(what: str, name: str, array: Any) -> Case:
        wide = "complex64" if "complex" in str(array.dtype) else "float32"
        return Case(what, name, array, flatten(array.astype(wide).tolist()))

    plain = "float32" if "float32" in dtypes else dtypes[0]
    for dtype in dtypes:
        try:
            theirs = _dtype.to_numpy(_core.DType(dtype))
        except (ImportError, TypeError):  # neither NumPy nor ml_dtypes has it
            continue
        yield case("dtype", dtype, _numbers((12,), theirs))
    for name, array in _layouts(numpy.dtype(plain)):
        yield case("layout", name, array)
    readonly = _numbers((12,), plain)
    readonly.flags.writeable = False
    yield case("flag", "read-only", readonly)
    host = _numbers((12,), plain)
    for name, array in _memories(host):
        yield Case("device", name, array, flatten(host.tolist()))


# --- in the child ----------------------------------------------------------------------------------------------------


def _look(bench: frameworks.Bench, tensor: _core.Tensor, case: Case, result: Any) -> str:
    look = bench.framework.look
    if look.read:
        got = bench.function(look.read, "x")(result)
        if got is not None and not same(got, case.expected):
            return f"wrong values: {flatten(got)[:4]}, not {case.expected[:4]}"
    pointer = bench.function(look.pointer, "x")(result) if look.pointer and tensor.size else None
    if pointer is None:
        return _UNREAD
    if int(pointer) != tensor.data_ptr:
        return "copied"
    if tensor.readonly and look.readonly and not bench.function(look.readonly, "x")(result):
        return "shared, and writable"
    return "shared"


def _try(bench: frameworks.Bench, name: str, case: Case) -> Outcome:
    if case.array is None:
        return Outcome(case.what, case.name, "-", _SKIPPED, "no CUDA device")
    tensor = _core.asdlpack(case.array)
    plan = _core.plan(tensor, name)
    try:
        result = _core.convert(tensor, name)
    except Exception as error:
        return Outcome(case.what, case.name, plan.outcome, "refused", plan.reason or reason_of(error))
    try:
        happened = _look(bench, tensor, case, result)
    except Exception as error:
        return Outcome(case.what, case.name, plan.outcome, _UNREAD, f"its own reader failed: {reason_of(error)}")
    return Outcome(case.what, case.name, plan.outcome, happened, plan.reason)


def work(job: dict[str, Any], answer: Answer) -> None:
    """Gives the consumer of the job all cases but the first `skip`."""
    _loader.prepare_environment()
    framework = next(f for f in frameworks.registry()[0].values() if f.name == job["framework"])
    bench, how = _loader.load(framework)
    if bench is None or isinstance(how, str):
        answer({"absent": str(how)})
        return
    answer({"version": how.version})
    for case in list(_cases(_core.consumers()[job["consumer"]]["dtypes"]))[job["skip"] :]:
        answer({"at": [case.what, case.name]})
        answer({"done": vars(_try(bench, job["consumer"], case))})
    answer({"end": True})


# --- in the parent ---------------------------------------------------------------------------------------------------


@dataclass
class Probed:
    """One consumer."""

    name: str
    version: str
    absent: str  # why it was not probed; empty: it was
    outcomes: list[Outcome]


def _run_child(name: str, framework: str, probed: Probed) -> bool:
    """Goes on where the last child ended. Whether all is done."""
    child = Child("dlbridge.tests._probe", {"consumer": name, "framework": framework, "skip": len(probed.outcomes)})
    at, ended, hung = None, False, False
    try:
        while (line := child.answer(SILENCE_S)) is not None:
            probed.version = line.get("version", probed.version)
            probed.absent = line.get("absent", probed.absent)
            at = line.get("at", at)
            ended = ended or "end" in line or "absent" in line
            if "done" in line:
                probed.outcomes.append(Outcome(**line["done"]))
                at = None
    except TimeoutError:
        hung = True
        child.kill()
    ending = child.close(SILENCE_S)
    if ended:
        return True
    if at is None:  # it died on its way to the first case
        probed.absent = probed.absent or f"its process {ending}"
        return True
    probed.outcomes.append(Outcome(at[0], at[1], "an answer", "hung" if hung else "crashed", str(ending)))
    return False


def probe(name: str) -> Probed:
    """What becomes of every case at the consumer `name` of the table."""
    known = {f.convert: f for f in frameworks.registry()[0].values() if f.convert}
    probed = Probed(name, "?", "", [])
    if name not in known:
        probed.absent = "nothing here reads its arrays"
    elif not _loader.installed(known[name]):
        probed.absent = "not installed"
    else:
        while not _run_child(name, known[name].name, probed):
            pass
    return probed


def _lines(probed: Probed) -> Iterator[str]:
    if probed.absent:
        yield f"{probed.name}: {probed.absent}"
        return
    broken = [outcome for outcome in probed.outcomes if not outcome.kept]
    state = "all as promised" if not broken else f"{len(broken)} NOT AS PROMISED"
    given = [outcome for outcome in probed.outcomes if outcome.happened != _SKIPPED]
    yield f"{probed.name} {probed.version}: {len(given)} arrays, {state}"
    rows: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in probed.outcomes:
        rows.setdefault((outcome.what, outcome.promised, outcome.happened), []).append(outcome)
    for (what, promised, happened), outcomes in rows.items():
        mark = " " if outcomes[0].kept else "!"
        names = ", ".join(outcome.name for outcome in outcomes)
        if happened == _SKIPPED:
            names += f": {outcomes[0].reason}"
        yield f" {mark} {what:7} promised {promised:9} happened {happened:9} {names}"
        if mark == "!":
            yield from (f"             {o.name}: {o.reason}" for o in outcomes if o.reason)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m dlbridge --probe",
        description="Gives every installed consumer an array of each dtype, layout, flag and memory, and holds what "
        "becomes of it against what convert()'s table promises. Needs NumPy.",
        epilog="Exit status: 0 all is as promised; 1 something is not; 2 nothing could be probed.",
    )
    made.add_argument("--only", metavar="NAME,...", help="only these consumers: torch,jax")
    return made


def main(arguments: list[str]) -> int:
    """The exit status."""
    options = _parser().parse_args(arguments)
    table = list(_core.consumers())
    chosen = table if options.only is None else [name.strip() for name in options.only.split(",")]
    unknown = [name for name in chosen if name not in table]
    if unknown:
        print(
            f"python -m dlbridge --probe: no consumer is named {unknown[0]!r}; known: {', '.join(table)}",
            file=sys.stderr,
        )
        return COULD_NOT_RUN
    if importlib.util.find_spec("numpy") is None:
        print("python -m dlbridge --probe: the arrays to give are NumPy's, which is not installed", file=sys.stderr)
        return COULD_NOT_RUN
    found = []
    for name in chosen:
        found.append(probe(name))
        print("\n".join(_lines(found[-1])), flush=True)
    if not any(probed.outcomes for probed in found):
        return COULD_NOT_RUN
    return int(any(not outcome.kept for probed in found for outcome in probed.outcomes))
