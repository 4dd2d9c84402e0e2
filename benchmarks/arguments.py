"""What an array costs as the argument and as the result of a C++ function, by dlbridge's headers for pybind11 and
nanobind, beside nb::ndarray, py::array_t and what the frameworks make by themselves.

    python benchmarks/arguments.py [--seconds 30] [--quick] [--check] [--out FOLDER]

Two extension modules with these functions are compiled at the start; see benchmarks/README.md for the method.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
import _report  # noqa: E402
import argument_peers  # noqa: E402
from _peers import Environment  # noqa: E402
from _rows import CONTEXT, OURS, PEER, Contender, Row, bind, ours  # noqa: E402
from _timing import measure  # noqa: E402
from latency import FLOOR, Plan  # noqa: E402

NANOBIND = "nanobind nb::ndarray"
ARRAY_T = "py::array_t"
PYBIND11 = "dlbridge/pybind11.h"
NANOBIND_H = "dlbridge/nanobind.h"
OVER_MEMORY = "py::array_t over C++ memory"
OWN = "the framework's empty()"
GOAL = 0.5
RESULT_GOAL = 1.2


class Arguments:
    """The two modules, and the rows over them."""

    def __init__(self) -> None:
        modules = argument_peers.load()
        self.ours: types.ModuleType = modules["pybind11_args"]
        self.nanobind: types.ModuleType = modules["nanobind_args"]

    def rows(self) -> list[Row]:
        """One row for each kind of array and way to define the function."""
        made: list[Row] = []
        makers = {"numpy": _numpy, "torch": _torch, "jax": _jax}
        for key, make in makers.items():
            title = f"{NANOBIND_H}: matrix argument, {key} array"
            made.append(Row(f"{key} nanobind.h", title, (key,), self._by_nanobind(make), GOAL, NANOBIND))
        for key, make in makers.items():
            for way, function, goal in (
                ("dlbridge::def", "rows", GOAL),
                ("module.def", "rows_module_def", None),
                ("module.def, const&", "rows_reference", None),
            ):
                title = f"{way}: matrix argument, {key} array"
                made.append(Row(f"{key} {way}", title, (key,), self._matrix(make, function), goal, NANOBIND))
        made.append(
            Row("array_t", "dlbridge::def: matrix argument, numpy array, py::array_t", ("numpy",),
                self._matrix(_numpy, "rows"), 1.0, ARRAY_T)
        )  # fmt: skip
        made.append(
            Row("array_t module.def", "module.def, const&: matrix argument, numpy array, py::array_t", ("numpy",),
                self._matrix(_numpy, "rows_reference"), 1.0, ARRAY_T)
        )  # fmt: skip
        made.append(Row("any", "dlbridge::def: any array, numpy array", ("numpy",), self._any, GOAL, NANOBIND))
        for key, (make, empty) in _EMPTY.items():
            needs = ("numpy", "dlbridge" if key == "nd" else key)
            title = f"dlbridge::like: new array, {key} array given"
            reference = OVER_MEMORY if key == "numpy" else OWN
            made.append(Row(f"{key} result", title, needs, self._result(key, make, empty), RESULT_GOAL, reference))
        return made

    def _matrix(self, make: Any, function: str) -> Any:
        def contenders(env: Environment) -> Iterator[Contender]:
            x = make(env)
            yield ours(lambda: bind(getattr(self.ours, function), x))
            yield Contender(NANOBIND, (), lambda: bind(self.nanobind.rows, x))
            if make is _numpy:
                yield Contender(ARRAY_T, (), lambda: bind(self.ours.rows_array_t, x))
            yield Contender("pybind11, no array", (), lambda: bind(self.ours.nothing, x), CONTEXT)
            yield Contender("nanobind, no array", (), lambda: bind(self.nanobind.nothing, x), CONTEXT)

        return contenders

    def _by_nanobind(self, make: Any) -> Any:
        def contenders(env: Environment) -> Iterator[Contender]:
            x = make(env)
            yield ours(lambda: bind(self.nanobind.rows_dlbridge, x))
            yield Contender(NANOBIND, (), lambda: bind(self.nanobind.rows, x))
            yield Contender(PYBIND11, (), lambda: bind(self.ours.rows, x), CONTEXT)
            yield Contender("nanobind, no array", (), lambda: bind(self.nanobind.nothing, x), CONTEXT)

        return contenders

    def _result(self, key: str, make: Any, empty: Any) -> Any:
        """A function that takes a matrix and returns a new one, in memory of C++: so does pybind11's, for NumPy. The
        other frameworks' own empty() takes no array, and memory of their own."""

        def contenders(env: Environment) -> Iterator[Contender]:
            x = make(env)
            yield ours(lambda: bind(self.ours.made, x))
            yield Contender(OWN, (), lambda: empty(env), CONTEXT if make is _numpy else PEER)
            yield Contender(NANOBIND_H, (), lambda: bind(self.nanobind.made_dlbridge, x), CONTEXT)
            if hasattr(self.nanobind, f"made_{key}"):
                yield Contender(NANOBIND, (), lambda: bind(getattr(self.nanobind, f"made_{key}"), x))
            if make is _numpy:
                yield Contender(OVER_MEMORY, (), lambda: bind(self.ours.made_over_memory, x))
                yield Contender(ARRAY_T, (), lambda: bind(self.ours.made_array_t, x))

        return contenders

    def _any(self, env: Environment) -> Iterator[Contender]:
        x = _numpy(env)
        yield ours(lambda: bind(self.ours.any, x))
        yield Contender(NANOBIND, (), lambda: bind(self.nanobind.any, x))


def _numpy(env: Environment) -> Any:
    return env.numpy.arange(12, dtype="float32").reshape(3, 4)


def _torch(env: Environment) -> Any:
    return env.torch.ones(3, 4)


def _jax(env: Environment) -> Any:
    return env.jax.numpy.ones((3, 4), "float32")


def _nd(env: Environment) -> Any:
    return env.dlbridge.nd.ones((3, 4), "float32", device="cpu")


# An array of each framework, and the framework's own way to make one that nobody has written to.
_EMPTY = {
    "numpy": (_numpy, lambda env: bind(env.numpy.empty, (3, 4), env.numpy.dtype("float32"))),
    "torch": (_torch, lambda env: bind(env.torch.empty, 3, 4)),
    "nd": (_nd, lambda env: bind(env.dlbridge.nd.empty, (3, 4), "float32")),
    "jax": (_jax, lambda env: bind(env.jax.numpy.empty, (3, 4), "float32")),
}


def run(seconds: float) -> dict[str, Any]:
    """Measures everything and returns the document that is written."""
    env, plan, arguments = Environment(), Plan(), Arguments()
    env.get("dlbridge"), env.get("nanobind_peer")  # for their versions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in arguments.rows():
            plan.add_row(row, env)
        timings = measure(plan.calls, seconds=seconds)
    floor = timings[FLOOR]
    import pybind11

    return {
        "benchmark": "arguments",
        "machine": _machine.describe(),
        "versions": {**env.versions(), "pybind11": pybind11.__version__},
        "seconds": seconds,
        "floor": {"best_ns": floor.best_ns, "median_ns": floor.median_ns},
        "rows": [_report.summarise(r, plan.timings_of(r, timings), plan.roles[r.key], floor) for r in plan.rows],
        "rows_absent": plan.rows_absent,
        "refused": {key: names for key, names in plan.refused.items() if names},
        "absent": env.absent,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="time to measure, in all")
    parser.add_argument("--quick", action="store_true", help="3 seconds: a smoke run, not a result")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is not met")
    options = parser.parse_args(arguments)
    document = run(3.0 if options.quick else options.seconds)
    text = _report.markdown(document).replace("# Latency on", "# Array arguments on", 1)
    machine = document["machine"]
    version = ".".join(str(machine["python"]).split(".")[:2])
    _machine.publish(text, options.out / f"arguments-{machine['kind']}-py{version}.md")
    failed = [r["call"] for r in document["rows"] if r.get("met") is False or OURS not in r["timings"]]
    if options.check and failed:
        print("goals not met: " + "; ".join(failed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
