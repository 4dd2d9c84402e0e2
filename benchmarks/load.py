"""dlbridge.load() beside safetensors' own loaders: the call alone, and with one byte of every page read.

    python benchmarks/load.py [--seconds 60] [--out FOLDER] [--files FOLDER]

See benchmarks/README.md for the method. The files are in the page cache, written just before: what is measured is the
loader, not the disk. With a GPU, the same files go to it.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.metadata
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402
from _peers import Environment  # noqa: E402
from _timing import Call, Timing, measure  # noqa: E402

PAGE = 4096
# name: (tensors, float32 elements of each)
FILES = {"2,000 tensors of 4 KiB": (2_000, 1 << 10), "64 tensors of 4 MiB": (64, 1 << 20)}
FRAMEWORKS = ("numpy", "torch", "jax")
DEVICE = "cuda:0"
Loader = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """One loader on one file."""

    table: str
    name: str
    load: Loader
    is_ours: bool


def write(env: Environment, folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """The files, whose data begins at a multiple of 64, so that JAX can share it."""
    save = importlib.import_module("safetensors.numpy").save_file
    files = {}
    for title, (count, size) in FILES.items():
        arrays = {f"model.layers.{i}.weight": env.numpy.full(size, i, "float32") for i in range(count)}
        path = folder / f"{count}.safetensors"
        for pad in range(8):  # the library fills up to a multiple of 8 only
            save(arrays, path, {"pad": "." * (8 * pad)})
            with path.open("rb") as file:
                if (8 + int.from_bytes(file.read(8), "little")) % 64 == 0:
                    break
        files[title] = path
    return files


def rows(env: Environment, files: dict[str, pathlib.Path]) -> Iterator[Row]:
    load = env.dlbridge.load
    names = {"numpy": "numpy", "torch": "torch", "jax": "flax"}  # safetensors' loaders of JAX arrays are called flax
    for title, path in files.items():
        for to in FRAMEWORKS:
            if env.get(to) is None:
                continue
            yield Row(title, f'load(path, "{to}")', functools.partial(load, path, to), True)
            theirs = importlib.import_module(f"safetensors.{names[to]}").load_file
            yield Row(title, f"safetensors.{names[to]}.load_file(path)", functools.partial(theirs, path), False)
        if env.get("torch_cuda") is not None:
            torch = env.torch_cuda
            theirs = importlib.import_module("safetensors.torch").load_file
            routes = [(f'load(path, "torch", device="{DEVICE}")', functools.partial(load, path, "torch"), True)]
            routes += [
                (f'safetensors.torch.load_file(path, device="{DEVICE}")', functools.partial(theirs, path), False)
            ]
            for name, route, is_ours in routes:
                yield Row(f"{title}, to the GPU", name, on_device(torch, route), is_ours)


def on_device(torch: Any, route: Callable[..., dict[str, Any]]) -> Loader:
    def run() -> dict[str, Any]:
        arrays = route(device=DEVICE)
        torch.cuda.synchronize()
        return arrays

    return run


def reading(env: Environment, load: Loader) -> Call:
    """The call, after which a byte of every page is read."""
    numpy = env.numpy

    def run() -> None:
        for x in load().values():
            numpy.asarray(x).view("uint8")[::PAGE].max()

    return run


def lines(all_rows: list[Row], timings: dict[str, Timing]) -> Iterator[str]:
    for table in dict.fromkeys(row.table for row in all_rows):
        yield f"\n## {table}\n"
        yield "| | ms, best | ms, median | with every page read, ms, best | median |"
        yield "| --- | ---: | ---: | ---: | ---: |"
        for row in (row for row in all_rows if row.table == table):
            call, read = (timings.get(f"{table}/{row.name}{kind}") for kind in ("", "/read"))
            cells = [f"{t.best_ns / 1e6:,.2f} | {t.median_ns / 1e6:,.2f}" if t else "- | -" for t in (call, read)]
            yield f"| `{row.name}` | {cells[0]} | {cells[1]} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="time to measure, in all")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder of the table")
    parser.add_argument("--files", type=pathlib.Path, help="folder for the files, 264 MiB")
    options = parser.parse_args(arguments)
    env = Environment()
    if env.get("dlbridge") is None or env.get("numpy") is None:
        print(f"load.py: {env.absent}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir=options.files) as folder:
        all_rows = list(rows(env, write(env, pathlib.Path(folder))))
        calls: dict[str, Call] = {f"{row.table}/{row.name}": row.load for row in all_rows}
        calls |= {f"{row.table}/{row.name}/read": reading(env, row.load) for row in all_rows if "GPU" not in row.table}
        timings = measure(calls, seconds=options.seconds)
    head = [
        "Files in the page cache; the arrays are dropped before the next call. Rounds of all are interleaved; others",
        "worked on the machine: compare within a table.",
    ]
    versions = {**env.versions(), "safetensors": importlib.metadata.version("safetensors")}
    _machine.publish_page(options.out, "load", "Weights", versions, [*head, *lines(all_rows, timings)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
