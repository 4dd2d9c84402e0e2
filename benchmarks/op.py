"""Operations of dlbridge.op() in PyTorch's and JAX's programs: what a call costs, beside the libraries' own ways.

    python benchmarks/op.py [--seconds 30] [--out FOLDER]

See benchmarks/README.md for the method. The operation is `x * 2` of float32. By hand: a torch.library.custom_op of
PyTorch's `x * 2`, a jax.pure_callback of NumPy's.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
from _peers import Environment  # noqa: E402
from _timing import Call, Timing, measure  # noqa: E402

SIZES = {"12": 12, "1 M": 1 << 20}


@dataclass(frozen=True)
class Row:
    """One way to compute `x * 2`, in a program of one library."""

    library: str
    name: str
    call: Call


def torch_rows(e: Environment, double: Any, count: int) -> Iterator[Row]:
    torch = e.torch
    x = torch.ones(count)

    def by_hand(x: Any) -> Any:
        return x * 2

    by_hand.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    own = torch.library.custom_op(f"dlbridge_benchmarks::by_hand_{count}", by_hand, mutates_args=())
    yield Row("PyTorch", "op, eager", lambda: double(x))
    yield Row("PyTorch", "by hand, eager", lambda: own(x))
    yield Row("PyTorch", "`x * 2`", lambda: x * 2)


def jax_rows(e: Environment, double: Any, count: int) -> Iterator[Row]:
    jax, numpy = e.get("jax"), e.numpy
    x = jax.numpy.ones(count, "float32")
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def by_hand(x: Any) -> Any:
        return jax.pure_callback(lambda a: numpy.asarray(a) * numpy.float32(2), like, x)

    programs = {"op, jit": double, "by hand, jit": by_hand, "`x * 2`, jit": lambda x: x * 2}
    for name, program in programs.items():
        compiled = jax.jit(program)
        yield Row("JAX", name, lambda f=compiled: f(x).block_until_ready())
    yield Row("JAX", "op, eager", lambda: double(x).block_until_ready())


def lines(tables: dict[str, tuple[list[Row], dict[str, Timing]]]) -> Iterator[str]:
    for size, (rows, timings) in tables.items():
        yield f"\n## {size} elements\n"
        yield "| program | us, best | us, median | of the way by hand |"
        yield "| --- | ---: | ---: | ---: |"
        for row in rows:
            hand = next(r for r in rows if r.library == row.library and r.name.startswith("by hand"))
            mine, other = (timings[f"{r.library} {r.name}"] for r in (row, hand))
            best, median = mine.best_ns / 1e3, mine.median_ns / 1e3
            yield f"| {row.library}: {row.name} | {best:,.1f} | {median:,.1f} | {mine.best_ns / other.best_ns:.2f} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="time to measure, in all")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    options = parser.parse_args(arguments)
    env = Environment()
    missing = [name for name in ("dlbridge", "numpy", "torch", "jax") if env.get(name) is None]
    if missing:
        print(f"op.py: no {', '.join(missing)}", file=sys.stderr)
        return 1
    tables = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        double = env.dlbridge.op("dlbridge_benchmarks::double", lambda x: x * 2, out="like:0")
        for size, count in SIZES.items():
            rows = [*torch_rows(env, double, count), *jax_rows(env, double, count)]
            calls = {f"{row.library} {row.name}": row.call for row in rows}
            tables[size] = rows, measure(calls, seconds=options.seconds / len(SIZES), round_us=1000.0)
    head = [
        "A call of `x * 2` of float32, best and median round. By hand: `torch.library.custom_op` of PyTorch's `x * 2`,",
        "`jax.pure_callback` of NumPy's.",
    ]
    _machine.publish_page(options.out, "op", "Operations of `op`", env.versions(), [*head, *lines(tables)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
