"""Programs of ndarray statements: how they run against NumPy step by step, and how a failing one is made small.

A program is a list of lines in which `xp` is the namespace and v0, v1, … are arrays. After every line all arrays must
be as NumPy's: values, dtype, shape; where NumPy raises, so must we, an error that blames the caller. Arrays that are
alike but for rounding are set to NumPy's values, so that what follows starts from the same numbers.
"""

from __future__ import annotations

import faulthandler
import math
import os
import pickle
import re
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from dlbridge import nd

from oracle.cases import Raised, family_of, one_family
from oracle.compare import Leaf, difference, to_host

ULPS = 64  # sums of a few dozen numbers in another order
BLAMES_CALLER = {"IndexError", "OverflowError", "BufferError", "TypeError", "ValueError"}
NAME = re.compile(r"\bv\d+\b")
SUMS_OF_PRODUCTS = re.compile(r"\b(dot|vdot|vecdot|inner|matmul|matvec|vecmat|tensordot|einsum|convolve|correlate)\b|@")


class Intended(NamedTuple):
    """A difference from NumPy that is meant: of lines that match a pattern, where what differs matches the other.

    What differs is followed by " of " and the dtypes of what the line reads.
    """

    line: str
    message: str
    reason: str
    example: list[str]  # a program that shows it
    device: str = "cpu"  # where it does
    numpy_until: str = ""  # the release of NumPy that does as the ndarray does


class Finding(NamedTuple):
    """The line that shows the difference, what it is, and a word that says whether another is of the same kind."""

    position: int
    message: str
    kind: str


class Undefined(Exception):
    """NumPy itself says that a line's result is anybody's guess."""


def product_overflows(arrays: list[np.ndarray]) -> bool:
    """Whether the largest finite numbers of two arrays have a product beyond those of the narrowest dtype of floats."""
    most = min([float(np.finfo(array.dtype).max) for array in arrays if array.dtype.kind in "fc"], default=0.0)
    sizes = [abs(array.astype("complex128"))[np.isfinite(array)].max(initial=0) for array in arrays]
    return most > 0 and any(float(a) * float(b) > most for a in sizes for b in sizes)


def has_signalling_nan(array: np.ndarray) -> bool:
    """NumPy's vectors that sort float16 leave such in the place of NaN, and its powers of 0 are then NaN, not 1."""
    if array.dtype != np.float16:
        return False
    bits = np.ascontiguousarray(array).view(np.uint16)
    return bool(((bits & 0x7E00 == 0x7C00) & (bits & 0x1FF != 0)).any())


class Session:
    """The arrays of a program in both libraries."""

    def __init__(self, device: str = "cpu") -> None:
        shared: dict[str, Any] = {"np": np, "inf": math.inf, "nan": math.nan}
        self.theirs: dict[str, Any] = {"xp": np, "on": {}, **shared}
        self.ours: dict[str, Any] = {"xp": nd, "on": {"device": device}, **shared}
        self.device = device
        self.scalars: list[str] = []

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: value for name, value in self.theirs.items() if NAME.fullmatch(name)}

    def run_numpy(self, line: str) -> Raised | None:
        with warnings.catch_warnings(record=True) as said, np.errstate(all="warn"):
            warnings.simplefilter("always")
            try:
                exec(line, self.theirs)
            except Exception as error:
                return Raised(family_of(error), f"{type(error).__name__}: {error}")
        if any("invalid value encountered in cast" in str(one.message) for one in said):
            raise Undefined(line)
        self.scalars = []
        for name, value in self.theirs.items():
            if isinstance(value, (np.generic, bool, int, float, complex)) and NAME.fullmatch(name):
                self.theirs[name] = np.asarray(value)  # NumPy's scalars are 0-d arrays of ours
                self.scalars.append(name)
        return None

    def run_ours(self, line: str) -> Raised | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(line, self.ours)
            except Exception as error:
                return Raised(family_of(error), f"{type(error).__name__}: {error}")
        return None

    def step(self, line: str, intended: Iterable[Intended] = ()) -> str | None:
        """Runs a line in both; says how they differ. Raises Undefined where NumPy defines nothing, or we mean it."""
        Watch.begin()
        read = [array for name, array in self.arrays().items() if re.search(rf"\b{name}\b", line)]
        dtypes = [*(str(array.dtype) for array in read), *re.findall(r"np\.(u?int\d+)\(", line)]
        has_nan = any(array.dtype.kind in "fc" and np.isnan(array).any() for array in read)
        signals = any(has_signalling_nan(array) for array in read)
        overflows = SUMS_OF_PRODUCTS.search(line) is not None and product_overflows(read)
        message = self.differs(line)
        said = f"{message} of {' '.join(dtypes)}"
        if message and any(re.search(one.line, line) and re.search(one.message, said) for one in intended):
            raise Undefined(line)
        if message and has_nan and re.search("signbit|copysign", line):  # no rule gives a computed NaN its sign
            raise Undefined(line)
        if message and signals:
            raise Undefined(line)
        if message and overflows and re.search(r"\b(nan|inf)", message):  # BLAS multiplies and adds in one step
            raise Undefined(line)
        if message and self.device != "cpu" and re.search(r"elements differ", message):
            # The last places of exp(y log x), an angle of hundreds; whether a product overflows before it meets a 0.
            if re.search(r"\*\*|power", line) and "np.complex" in message:
                raise Undefined(line)
            if "prod" in line and re.search(r"\b(nan|inf)", message):
                raise Undefined(line)
        if message and "elements differ" in message and (self.reads_what_it_writes(line) or self.writes_twice(line)):
            raise Undefined(line)
        return message

    def reads_what_it_writes(self, line: str) -> bool:
        """Whether NumPy meets elements that it has just written, since it does not copy first.

        So it is where a mask selects elements to be set, and it or what they are set to is a view of the same memory;
        and where a function of several steps, the first of which writes to `out`, reads its operand again.
        """
        arrays = self.arrays()
        if steps := re.search(r"\bptp\(.*\bout=(v\d+)", line):
            names = set(NAME.findall(line)) - {steps[1]}
            return any(np.may_share_memory(arrays[steps[1]], arrays[name]) for name in names & arrays.keys())
        parts = re.match(r"(v\d+)\[(.*)\] = (.*)$", line)
        if parts is None:
            return False
        target, masks, values = arrays[parts[1]], *(NAME.findall(parts[i]) for i in (2, 3))
        masks = [name for name in masks if name in arrays and arrays[name].dtype.kind == "b"]
        shared = [*masks, *values] if masks or re.search(r"\bbool\b", parts[2]) else []
        return any(name in arrays and np.may_share_memory(target, arrays[name]) for name in shared)

    def writes_twice(self, line: str) -> bool:
        """Whether positions that may repeat lie in another order than C: NumPy goes through them as they lie."""
        parts = re.match(r"v\d+\[(.*)\] = ", line)
        arrays = self.arrays()
        places = [arrays[name] for name in NAME.findall(parts[1]) if name in arrays] if parts else []
        return any(array.dtype.kind in "iu" and not array.flags.c_contiguous for array in places)

    def differs(self, line: str) -> str | None:
        wanted = self.run_numpy(line)
        got = self.run_ours(line)
        if wanted or got:
            # A line may have two faults, and which of them is said is open: any error that blames the caller will do.
            if wanted and got and (one_family(got, wanted) or set(got.kind.split()) <= BLAMES_CALLER):
                self.level()
                return None
            shown = [f"raised {x.message}" if x else "gave a result" for x in (got, wanted)]
            return f"{shown[0]}, where NumPy {shown[1]}"
        for name in self.scalars:  # which are no views of anything
            if isinstance(self.ours.get(name), nd.ndarray):
                self.ours[name] = self.ours[name].copy()
        return self.compare(line)

    def compare(self, line: str) -> str | None:
        first = NAME.findall(line.split("=")[0])
        names = sorted(self.arrays(), key=lambda name: (name not in first, name))
        for name in names:
            theirs, ours = self.theirs[name], self.ours.get(name)
            if not isinstance(ours, nd.ndarray):
                if isinstance(ours, (bool, int, float, complex)):
                    ours = self.ours[name] = nd.asarray(np.asarray(ours), device=self.device)
                else:
                    return f"{name} is {ours!r:.100}, where NumPy has an array"
            got, want = to_host(ours), Leaf(theirs, str(theirs.dtype))
            if difference(got, want) is not None:
                found = difference(got, want, ULPS, loose=True)
                if found and not self.rounding(got, want):
                    return f"{name}: {found}"
                self.set(name, theirs)
            if name in first:
                self.lay_out(name)
        return None

    def lay_out(self, name: str) -> None:
        """Copies an array that is no view of another where its strides are not NumPy's.

        How a result lies in memory is open, but decides whether what is made of it, by reshape(), is a view or a copy.
        """
        theirs, ours = self.theirs[name], self.ours[name]
        steps = [(a, b) for extent, a, b in zip(theirs.shape, theirs.strides, ours.strides, strict=True) if extent > 1]
        if not theirs.size or all(a == b for a, b in steps):
            return
        for other in self.arrays():
            if other == name or not isinstance(self.ours.get(other), nd.ndarray):
                continue
            if np.may_share_memory(theirs, self.theirs[other]) or nd.may_share_memory(ours, self.ours[other]):
                return
        self.theirs[name], self.ours[name] = theirs.copy(), ours.copy()

    def level(self) -> None:
        """Sets what NumPy wrote before it raised, which nobody defines."""
        for name, theirs in self.arrays().items():
            ours = self.ours.get(name)
            if isinstance(ours, nd.ndarray) and difference(to_host(ours), Leaf(theirs, str(theirs.dtype))):
                self.set(name, theirs)

    def rounding(self, got: Leaf, want: Leaf) -> bool:
        """Whether only complex numbers that are not finite differ, or sums that have cancelled."""
        if got.dtype != want.dtype or got.values.shape != want.values.shape or want.values.dtype.kind not in "fc":
            return False
        one, other = got.values, want.values
        with np.errstate(all="ignore"):
            special = ~(np.isfinite(one) & np.isfinite(other)) if want.values.dtype.kind == "c" else np.False_
            info = np.finfo(want.values.dtype)
            near = np.abs(one.astype(np.complex128) - other) <= 512 * float(info.eps) * max(1.0, self.largest())
        return bool(np.all(special | near | (one == other) | (np.isnan(one) & np.isnan(other))))

    def largest(self) -> float:
        """The largest number in play: what a sum's rounding errors are measured by."""
        most = 1.0
        for value in self.arrays().values():
            if value.dtype.kind in "iufc" and value.size:
                finite = np.abs(value[np.isfinite(value)].astype(np.complex128))
                most = max(most, float(finite.max(initial=0)))
        return most

    def set(self, name: str, values: np.ndarray) -> None:
        """Gives our array NumPy's values, in place where it can be, for other arrays may be views of it."""
        try:
            self.ours[name][...] = values
        except Exception:
            self.ours[name] = nd.array(values, device=self.device)


def first_difference(lines: list[str], device: str, intended: Iterable[Intended] = ()) -> Finding | None:
    session = Session(device)
    for position, line in enumerate(lines):
        try:
            message = session.step(line, intended)
        except Undefined:
            return None
        if message:
            return Finding(position, message, kind_of(line, message))
    return None


def kind_of(line: str, message: str) -> str:
    """What stays the same while a program shrinks: the statement's function or operator, and the sort of difference."""
    called = re.findall(r"\.([a-z_0-9]+)\(|([-+*/%@&|^<>=!~]{1,3}=?)", line)
    sort = re.sub(r"[\d.]+|\(.*?\)|v\d+|'.*?'", "", message)[:90]
    return f"{[name or operator for name, operator in called][:1]} {sort}"


ENDLESS = "does not end"
STDERR = 2  # the process's own: sys.stderr may be somebody's buffer, which has no number


class Watch:
    """Ends a process whose statement takes longer than it may, and prints where it is, be it in compiled code."""

    on = False
    longest = 60.0  # seconds

    @classmethod
    def begin(cls) -> None:
        if cls.on:
            faulthandler.dump_traceback_later(0.95 * cls.longest, file=STDERR)
            signal.setitimer(signal.ITIMER_REAL, cls.longest)  # whose signal ends the process: it has no handler


def isolated(run: Callable[[], Any]) -> Any:
    """The result of a function that may end the process, or never end: run in a fork; a signal is a finding."""
    reads, writes = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            faulthandler.disable()  # its traceback would be taken for the parent's, which goes on
            os.close(reads)
            Watch.on = True
            Watch.begin()
            with os.fdopen(writes, "wb") as file:
                pickle.dump(run(), file)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writes)
    with os.fdopen(reads, "rb") as file:
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == -signal.SIGALRM:
        return Finding(-1, f"a statement did not end within {Watch.longest:.0f} s", ENDLESS)
    if status or not said:
        return Finding(-1, f"the process ended with status {status}", f"status {status}")
    return pickle.loads(said)


def check(lines: list[str], device: str, intended: Iterable[Intended] = ()) -> Finding | None:
    """As first_difference(), in a process of its own."""
    return isolated(lambda: first_difference(lines, device, intended))


# --- making it small -------------------------------------------------------------------------------------------------


def literal(values: np.ndarray) -> str:
    """An array as code that makes it in both libraries."""

    def number(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(number(one) for one in value) + "]"
        if isinstance(value, complex):
            return f"complex({value.real!r}, {value.imag!r})"
        return repr(value)

    made = f"xp.array({number(values.tolist())}, {str(values.dtype)!r}, **on)"
    return made if values.size else f"xp.zeros({values.shape}, {str(values.dtype)!r}, **on)"


MOST_TRIES = 400  # programs that are run to make one small
MOST_SECONDS = 120  # that it takes: on a GPU each of them is a process that has to begin with it


def shrink(lines: list[str], still_fails: Callable[[list[str]], bool], device: str) -> list[str]:
    """The shortest program found that fails in the same way: without lines, with literals for what made an operand."""
    tries, until = 0, time.monotonic() + MOST_SECONDS

    def may_try() -> bool:
        return tries < MOST_TRIES and time.monotonic() < until

    for simpler in (without, with_literals, without, with_less, without):
        changed = True
        while changed and may_try():
            changed = False
            for smaller in simpler(lines, device):
                tries += 1
                if smaller != lines and still_fails(smaller):
                    lines, changed = smaller, True
                    break
                if not may_try():
                    break
    return lines


def without(lines: list[str], device: str) -> Iterable[list[str]]:
    """Leaves out halves, quarters, … and at last single lines, never the last."""
    del device
    size = max(len(lines) // 2, 1)
    while True:
        for begin in range(0, len(lines) - 1, size):
            yield lines[:begin] + lines[min(begin + size, len(lines) - 1) :]
        if size == 1:
            return
        size = max(size // 2, 1)


def with_literals(lines: list[str], device: str) -> Iterable[list[str]]:
    """Puts the values that a variable has before the last line in the place of the line that makes it."""
    session = Session(device)
    for line in lines[:-1]:
        try:
            session.run_numpy(line)
        except Undefined:
            return
    for position, line in enumerate(lines[:-1]):
        made = re.match(r"(v\d+) = (?!xp\.array\(|xp\.zeros\()", line)
        if made and isinstance(value := session.theirs.get(made[1]), np.ndarray):
            yield [*lines[:position], f"{made[1]} = {literal(value)}", *lines[position + 1 :]]


def with_less(lines: list[str], device: str) -> Iterable[list[str]]:
    """Makes literal arrays and numbers simpler: zeros and ones, fewer elements, no keyword."""
    del device
    for position, line in enumerate(lines):
        made = re.match(r"(v\d+) = xp\.array\((.*), ('\w+'), \*\*on\)$", line)
        if made:
            values = np.array(eval(made[2], {"nan": math.nan, "inf": math.inf}), made[3].strip("'"))
            for simpler in (np.zeros_like(values), np.ones_like(values), *halves(values)):
                yield [*lines[:position], f"{made[1]} = {literal(simpler)}", *lines[position + 1 :]]
        for keyword in re.findall(r", \w+=(?:\([^()]*\)|[^(),]+)", line):
            yield [*lines[:position], line.replace(keyword, "", 1), *lines[position + 1 :]]


def halves(values: np.ndarray) -> Iterable[np.ndarray]:
    for axis, extent in enumerate(values.shape):
        if extent > 1:
            yield np.take(values, range(extent // 2), axis)
            yield np.take(values, range(extent // 2, extent), axis)


def shrunk(lines: list[str], finding: Finding, device: str, intended: Iterable[Intended] = ()) -> list[str]:
    """A failing program made small; the difference stays of its kind."""
    if finding.position >= 0:
        lines = lines[: finding.position + 1]

    # A process of its own only where it may end, or where this one must not touch the device, since it forks again.
    run = check if finding.position < 0 or device != "cpu" else first_difference

    def same(candidate: list[str]) -> bool:
        found = run(candidate, device, intended)
        return found is not None and found.kind == finding.kind and found.position in (-1, len(candidate) - 1)

    return shrink(lines, same, device)


def as_code(lines: list[str], device: str) -> str:
    """A program as code that runs with both libraries."""
    body = "".join(f"    {line}\n" for line in lines)
    shown = next((name for name in NAME.findall(lines[-1])), "None")
    return (
        "import numpy as np\nfrom math import inf, nan\nfrom dlbridge import nd\n\n\n"
        f"def program(xp, on):\n{body}    return {shown}\n\n\n"
        f"for xp, on in (np, {{}}), (nd, {{'device': {device!r}}}):\n"
        "    try:\n        print(repr(program(xp, on)))\n    except Exception as error:\n        print(repr(error))\n"
    )
