"""A case of the differential: a line of code that NumPy, the host and the device run on the same inputs."""

from __future__ import annotations

import ast
import math
import re
import warnings
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
from dlbridge import nd

from oracle.arrays import Input, make
from oracle.compare import difference, leaves


class Case(NamedTuple):
    """`code` ends with an expression, its result; `xp` is the namespace, `on` the device's keyword, `n` the size.

    `numpy` is what NumPy runs instead, None where it has nothing to compare with; it sees the name `dtype` too.
    `device_ulps` bounds the device against the host, `numpy_ulps` the host against NumPy: in units of the result's last
    place, or of a number of the `size` that this expression gives, where a result is a difference of larger numbers.
    Cases of a lower `tier` come first: 0 is what no run may leave out.
    """

    family: str
    code: str
    inputs: tuple[tuple[str, Input], ...] = ()
    n: int = 0
    numpy: str | None = ""
    device_ulps: float = 0
    numpy_ulps: float = 0
    tier: int = 1
    size: str = ""


# Families that choose among equal elements, or add zeros of both signs: which one it is, NumPy leaves open.
LOOSE = {"sorting", "sets", "reductions", "scans", "products", "histograms"}
LOOSE_CODE = re.compile(r"xp\.(maximum|minimum|fmax|fmin|clip|vander|pow|power)\(|x\.clip")
# Families whose float16 numbers NumPy computes in float32: its own sort loses elements of them, and its sums along an
# axis round after every step.
HALVES_AS_FLOATS = {"sorting", "sets", "reductions", "scans"}


class Raised(NamedTuple):
    """The exception that a case ended with; those of one family compare equal."""

    kind: str
    message: str


# A subclass of NumPy's or of ours counts as the built-in types that a caller would catch.
BUILT_IN = (IndexError, KeyError, OverflowError, ZeroDivisionError, BufferError, TypeError, ValueError, MemoryError)


def family_of(error: BaseException) -> str:
    return " ".join(kind.__name__ for kind in BUILT_IN if isinstance(error, kind)) or type(error).__name__


def one_family(one: Raised, other: Raised) -> bool:
    """Whether one `except` of a built-in type catches both."""
    return not set(one.kind.split()).isdisjoint(other.kind.split())


@cache
def compiled(code: str) -> tuple[CodeType, CodeType]:
    *statements, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        raise ValueError(f"a case's code must end with an expression: {code!r}")
    return compile(ast.Module(statements, []), code, "exec"), compile(ast.Expression(last.value), code, "eval")


_NAMES = re.compile(r"\b(xp(?:\.random|\.linalg|\.fft|\.polynomial\.\w+|\.lib\.\w+)?)\.([a-zA-Z_]\w*)")
_METHODS = re.compile(r"(?:\b[a-z]|[\])])\.([a-zA-Z_]\w*)")
_GENERATOR = re.compile(r"default_rng\([^)]*\)\.(\w+)")


@cache
def names_of(code: str) -> frozenset[str]:
    """The public names that a line of code uses: "sort", "linalg.norm", "ndarray.sort" for a method of an array."""
    found = {name if owner == "xp" else f"{owner[3:]}.{name}" for owner, name in _NAMES.findall(code)}
    found.update(f"random.Generator.{name}" for name in _GENERATOR.findall(code))
    return frozenset(found | {f"ndarray.{name}" for name in _METHODS.findall(code)})


def outcome(case: Case, device: str | None) -> Any:
    """What the code gives with NumPy (no device) or with the ndarray on a device; an exception is an outcome, too."""
    code = case.code if device is not None or not case.numpy else case.numpy
    statements, result = compiled(code)
    halves = device is None and case.family in HALVES_AS_FLOATS
    halves = halves and any(spec.dtype == "float16" for _, spec in case.inputs)
    scope: dict[str, Any] = {"xp": np if device is None else nd, "nd": nd, "np": np, "inf": math.inf, "nan": math.nan}
    scope["on"] = {} if device is None else {"device": device}
    scope["n"] = case.n
    for name, spec in case.inputs:
        scope[name] = make(spec, device)
        if halves and spec.dtype == "float16":
            writeable = scope[name].flags.writeable
            scope[name] = scope[name].astype("float32")
            scope[name].flags.writeable = writeable
    if device is None and case.inputs:
        scope["dtype"] = case.inputs[0][1].dtype.replace("bfloat16", "float32")
    elif case.inputs:
        scope["dtype"] = case.inputs[0][1].dtype
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(statements, scope)
            return leaves(eval(result, scope), halves)
        except Exception as error:
            return Raised(family_of(error), f"{type(error).__name__}: {error}")


def numpy_lacks(case: Case) -> bool:
    """Whether NumPy has nothing of the kind: then host and device are compared with each other only."""
    if case.numpy is None:
        return True
    for name in names_of(case.numpy or case.code):
        owner: Any = np
        parts = name.split(".")
        if parts[0] in ("ndarray", "random"):
            continue
        for part in parts:
            if not hasattr(owner, part):
                return True
            owner = getattr(owner, part)
    return False


def size_of(case: Case) -> Any:
    """The size of the operands, where the error is measured by it."""
    with np.errstate(all="ignore"):
        return eval(case.size, {"np": np, **{name: make(spec) for name, spec in case.inputs}}) if case.size else None


def compare(got: Any, want: Any, ulps: float, loose: bool = False, size: Any = None) -> str | None:
    if isinstance(got, Raised) or isinstance(want, Raised):
        if isinstance(got, Raised) and isinstance(want, Raised) and one_family(got, want):
            return None
        shown = [f"raised {x.message:.300}" if isinstance(x, Raised) else f"gave {x!r:.200}" for x in (got, want)]
        return f"{shown[0]}, where the other {shown[1]}"
    return difference(got, want, ulps, loose, size)


def reproducer(case: Case, device: str) -> str:
    """The case as code that runs from the root of a checkout, for all three."""
    inputs = "".join(f"    {name} = make({spec!r}, device)\n" for name, spec in case.inputs)
    body = "\n".join(f"    {line}" for line in case.code.splitlines()[:-1])
    *_, last = case.code.splitlines()
    first = case.inputs[0][1].dtype if case.inputs else ""
    theirs = f"# NumPy: {case.numpy}\n" if case.numpy else ""
    return (
        "import sys; sys.path.insert(0, 'tests')\n"
        "import numpy as np\nfrom math import inf, nan\nfrom dlbridge import nd\n"
        "from oracle.arrays import Input, make\n"
        f"{theirs}for xp, device in (np, None), (nd, 'cpu'), (nd, {device!r}):\n"
        f"    on, n, dtype = ({{}} if device is None else {{'device': device}}), {case.n}, {first!r}\n"
        f"{inputs}{body}{chr(10) if body else ''}    print({last})\n"
    )


# Differences from NumPy that are meant: code that matches, for the dtypes of the first input, by the reason.
class Known(NamedTuple):
    pattern: str
    dtypes: tuple[str, ...]
    reason: str


def known_difference(case: Case, known: tuple[Known, ...]) -> str | None:
    dtypes = {spec.dtype for _, spec in case.inputs}
    for entry in known:
        if re.search(entry.pattern, case.code) and (not entry.dtypes or dtypes & set(entry.dtypes)):
            return entry.reason
    return None


class Outcome(NamedTuple):
    against: str  # "NumPy" or the device
    message: str


def run(case: Case, device: str, known: tuple[Known, ...] = ()) -> tuple[list[Outcome], int]:
    """The differences that a case shows, and how many comparisons were made."""
    found, made = [], 0
    host = outcome(case, "cpu")
    loose = case.family in LOOSE or LOOSE_CODE.search(case.code) is not None
    size = size_of(case)
    if device != "host":
        made += 1
        if message := compare(outcome(case, device), host, case.device_ulps, loose, size):
            found.append(Outcome(f"{device} against the host", message))
    if not numpy_lacks(case) and known_difference(case, known) is None:
        made += 1
        if message := compare(host, outcome(case, None), case.numpy_ulps, loose, size):
            found.append(Outcome("the host against NumPy", message))
    return found, made
