"""Containers through convert(), functions through adapt(): what a leaf and a call cost, beside the peers' own routes.

    python benchmarks/containers.py [--seconds 20] [--out FOLDER]

See benchmarks/README.md for the method. A batch holds 16 arrays of 12 float32 in dicts, lists and tuples, strings and
numbers between them.
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
from _peers import Environment  # noqa: E402
from _timing import Call, Timing, measure  # noqa: E402

LEAVES = 16
FLOOR = "empty lambda"


@dataclass(frozen=True)
class Row:
    """One way to do what its table is about."""

    table: str
    name: str
    call: Call


def batch_of(make: Callable[[], Any]) -> dict[str, Any]:
    """The batch, of what `make` gives."""
    return {
        "images": [make() for _ in range(4)],
        "labels": {f"task {i}": make() for i in range(4)},
        "pair": (make(), make(), "left and right"),
        "meta": [{"id": i, "box": make(), "name": "a"} for i in range(6)],
        "epoch": 3,
    }


def leaves_of(tree: Any) -> list[Any]:
    """Its arrays."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves_of(part)]
    return [tree] if hasattr(tree, "__dlpack__") else []


def where_array(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`function` of arrays, everything else as it is: what a user of a tree_map() writes."""
    return lambda x: function(x) if hasattr(x, "__dlpack__") else x


def tree_rows(e: Environment) -> Iterator[Row]:
    convert, numpy, torch = e.dlbridge.convert, e.numpy, e.torch
    maps: dict[str, Callable[[Any, Any], Any]] = {}
    pytree = importlib.import_module("torch.utils._pytree")
    maps["torch.utils._pytree.tree_map"] = pytree.tree_map
    if (optree := e.get("optree")) is not None:
        maps["optree.tree_map"] = optree.tree_map
    directions = {
        "NumPy to PyTorch": (
            lambda: numpy.arange(12, dtype="float32"),
            "torch",
            {"torch.from_dlpack": torch.from_dlpack, "torch.from_numpy": torch.from_numpy},
        ),
        "PyTorch to NumPy": (
            lambda: torch.arange(12, dtype=torch.float32),
            "numpy",
            {"numpy.from_dlpack": numpy.from_dlpack, "Tensor.numpy": torch.Tensor.numpy},
        ),
    }
    for title, (make, to, routes) in directions.items():
        batch = batch_of(make)
        leaves = leaves_of(batch)
        assert len(leaves) == LEAVES
        yield Row(title, f'convert(batch, "{to}")', lambda b=batch, t=to: convert(b, t))
        yield Row(title, f'[convert(x, "{to}") for x in leaves]', lambda x=leaves, t=to: [convert(a, t) for a in x])
        for walk, tree_map in maps.items():
            for route, function in routes.items():
                f = where_array(function)
                yield Row(title, f"{walk}({route})", lambda m=tree_map, f=f, b=batch: m(f, b))


def adapt_rows(e: Environment) -> Iterator[Row]:
    adapt, torch = e.dlbridge.adapt, e.torch
    x = e.numpy.arange(12, dtype="float32")
    t = torch.from_numpy(x.copy())

    def plain(a: Any, b: Any, *, mode: str = "same") -> Any:
        return a

    adapted = adapt("numpy")(plain)
    title = "A call"
    yield Row(title, "f(numpy, numpy, mode=...)", lambda: plain(x, x, mode="a"))
    yield Row(title, 'adapt("numpy")(f)(numpy, numpy, mode=...)', lambda: adapted(x, x, mode="a"))
    yield Row(title, 'adapt("numpy")(f)(torch, torch, mode=...)', lambda: adapted(t, t, mode="a"))
    yield Row(
        title,
        "torch.from_numpy(f(t.numpy(), t.numpy(), mode=...))",
        lambda: torch.from_numpy(plain(t.numpy(), t.numpy(), mode="a")),
    )


def lines(rows: list[Row], timings: dict[str, Timing]) -> Iterator[str]:
    floor = timings[FLOOR].best_ns
    for table in dict.fromkeys(row.table for row in rows):
        is_tree = table != "A call"
        yield f"\n## {table}\n"
        head = "ns a leaf" if is_tree else "ns above the empty lambda"
        yield f"| | ns, best | ns, median | {head} |"
        yield "| --- | ---: | ---: | ---: |"
        for row in (row for row in rows if row.table == table):
            timing = timings[f"{table}/{row.name}"]
            above = (timing.best_ns - floor) / (LEAVES if is_tree else 1)
            yield f"| `{row.name}` | {timing.best_ns:,.0f} | {timing.median_ns:,.0f} | {above:,.0f} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="time to measure, in all")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    options = parser.parse_args(arguments)
    env = Environment()
    missing = [name for name in ("dlbridge", "numpy", "torch") if env.get(name) is None]
    if missing:
        print(f"containers.py: no {', '.join(missing)}", file=sys.stderr)
        return 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [*tree_rows(env), *adapt_rows(env)]
        calls = {FLOOR: lambda: None} | {f"{row.table}/{row.name}": row.call for row in rows}
        timings = measure(calls, seconds=options.seconds)
    head = [
        f"Best and median round; the empty lambda takes {timings[FLOOR].best_ns:.0f} ns. A batch has {LEAVES} arrays.",
    ]
    title, page = "Containers and adapted functions", [*head, *lines(rows, timings)]
    _machine.publish_page(options.out, "containers", title, env.versions(), page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
