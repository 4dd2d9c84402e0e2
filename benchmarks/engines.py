"""Arrays through Ray and Dask, beside PyTorch's tensors by their quickest way, and through MPI, beside calls by hand.

    python benchmarks/engines.py [--rounds 40] [--mib 1 16 64] [--engine ray --engine dask --engine mpi] [--out FOLDER]

See benchmarks/README.md for the method. Needs NumPy, PyTorch, JAX, and one or more of Ray, Dask's distributed and
mpi4py with an mpiexec beside this Python.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import logging
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _machine  # noqa: E402

MIB = 1 << 20
STORE_BYTES = 256 * MIB
SMALL_MESSAGE = 4096  # bytes, of MPI's: what a call costs
SECONDS = 120  # what one trip may take
TORCH = "PyTorch"  # whose row the others are held against
# What goes: the framework, and whether its arrays go by dlbridge's serializers.
ROWS = {"dlbridge.nd": ("nd", True), "JAX": ("jax", True), TORCH: ("torch", False), "NumPy": ("numpy", False)}
Trip = Callable[[], float]  # seconds


def made(framework: str, nbytes: int) -> Any:
    """An array of float32 in a framework's own memory."""
    import dlbridge
    from dlbridge import nd

    return dlbridge.convert(nd.ones(nbytes // 4, "float32", device="cpu"), framework, copy=True)


def element(x: Any) -> float:
    """Reads the last of an array that arrived, by one way for all: JAX takes 0.3 ms for its own."""
    import numpy

    return float(numpy.asarray(x)[-1])


def interleaved(trips: Mapping[str, Trip], rounds: int) -> dict[str, list[float]]:
    """Seconds of all trips, in an order shuffled anew in each round; the first round is not among them."""
    seconds: dict[str, list[float]] = {name: [] for name in trips}
    order = list(trips)
    shuffle = random.Random(1).shuffle
    for number in range(rounds + 1):
        shuffle(order)
        for name in order:
            taken = trips[name]()
            if number:
                seconds[name].append(taken)
    return seconds


def table(seconds: Mapping[str, list[float]], reference: str = TORCH) -> Iterator[str]:
    best, median = min(seconds[reference]), statistics.median(seconds[reference])
    yield f"| | ms, best | ms, median | {reference}: best / best | {reference}: median / median |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, taken in seconds.items():
        own, middle = min(taken), statistics.median(taken)
        yield f"| {name} | {1e3 * own:.4g} | {1e3 * middle:.4g} | {best / own:.2f} | {median / middle:.2f} |"


# ---- Ray


def through_ray(sizes: list[int], rounds: int) -> Iterator[str]:
    """Tables of put, of get, and of an actor's result."""
    os.environ |= {
        "RAY_ENABLE_ZERO_COPY_TORCH_TENSORS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_memory_monitor_refresh_ms": "0",
        "PYTHONWARNINGS": "ignore",
    }
    import dlbridge.ray
    import ray

    dlbridge.ray.register_transport("nd", "dlbridge")

    @ray.remote(num_cpus=0, enable_tensor_transport=True)
    class Maker:
        """Gives an array of its own memory, again and again."""

        def __init__(self) -> None:
            import jax  # noqa: F401
            import torch

            torch.set_num_threads(1)
            dlbridge.ray.install("jax")
            self.x: Any = None

        def make(self, framework: str, nbytes: int) -> None:
            self.x = made(framework, nbytes)

        def share(self, nbytes: int) -> None:
            self.x = dlbridge.empty_shared(nbytes // 4, "float32")

        def result(self) -> Any:
            return self.x

        @ray.method(tensor_transport="dlbridge")
        def shared(self) -> Any:
            return self.x

    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        ray.init(num_cpus=2, num_gpus=0, object_store_memory=STORE_BYTES, include_dashboard=False, log_to_driver=False,
                 logging_level="error", _temp_dir=folder)  # fmt: skip
        dlbridge.ray.install("jax")
        try:
            makers = {name: Maker.remote() for name in [*ROWS, "transport"]}
            for nbytes in sizes:
                yield from _ray_tables(ray, makers, nbytes, rounds)
        finally:
            dlbridge.ray.uninstall()
            ray.shutdown()


def _ray_tables(ray: Any, makers: Mapping[str, Any], nbytes: int, rounds: int) -> Iterator[str]:
    sources = {name: made(framework, nbytes) for name, (framework, _) in ROWS.items()}
    refs = {name: ray.put(x) for name, x in sources.items()}
    for name, (framework, _) in ROWS.items():
        ray.get(makers[name].make.remote(framework, nbytes), timeout=SECONDS)
    ray.get(makers["transport"].share.remote(nbytes), timeout=SECONDS)

    def put(name: str) -> float:
        begin = time.perf_counter()
        ref = ray.put(sources[name])
        taken = time.perf_counter() - begin
        del ref
        return taken

    def got(call: Callable[[], Any]) -> float:
        begin = time.perf_counter()
        element(ray.get(call(), timeout=SECONDS))
        return time.perf_counter() - begin

    def trips(of: Callable[[str], Trip]) -> dict[str, Trip]:
        return {name: of(name) for name in ROWS}

    def read(name: str) -> float:
        return got(lambda: refs[name])

    size = f"{nbytes // MIB} MiB"
    yield f"\n### `ray.put`, {size}\n"
    yield from table(interleaved(trips(lambda name: lambda: put(name)), rounds))
    yield f"\n### `ray.get` of what lies in the store, {size}\n"
    yield from table(interleaved(trips(lambda name: lambda: read(name)), rounds))
    refs.clear()
    yield f"\n### `ray.get` of an actor's result, {size}\n"
    results = trips(lambda name: lambda: got(makers[name].result.remote))
    results["dlbridge.nd by `register_transport()`, memory that is shared"] = lambda: got(
        makers["transport"].shared.remote
    )
    yield from table(interleaved(results, rounds))


# ---- Dask


def through_dask(sizes: list[int], rounds: int) -> Iterator[str]:
    """Tables of an array's way from one worker to another."""
    import dlbridge.dask
    from dask.distributed import Client, LocalCluster, wait

    logging.getLogger("distributed").setLevel(logging.ERROR)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        dlbridge.dask.install("jax", client=client)
        first, second = client.scheduler_info()["workers"]

        def transfer(framework: str, nbytes: int) -> float:
            x = client.submit(made, framework, nbytes, workers=[first], pure=False)
            wait(x, timeout=SECONDS)
            begin = time.perf_counter()
            client.submit(element, x, workers=[second], pure=False).result(SECONDS)
            return time.perf_counter() - begin

        for nbytes in sizes:
            trips = {
                name: lambda framework=framework, nbytes=nbytes: transfer(framework, nbytes)
                for name, (framework, _) in ROWS.items()
            }
            yield f"\n### From one worker to another, {nbytes // MIB} MiB\n"
            yield from table(interleaved(trips, rounds))


# ---- MPI


def through_mpi(sizes: list[int], rounds: int) -> Iterator[str]:
    """Tables of two processes that exchange arrays, and that reduce them."""
    program = [sys.executable, str(HERE / "_mpi_trips.py"), str(rounds), *map(str, [SMALL_MESSAGE, *sizes])]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    launcher = pathlib.Path(sys.prefix) / "bin" / "mpiexec"
    done = subprocess.run([str(launcher), "-n", "2", *program], env=environment, stdout=subprocess.PIPE, check=True)
    for case, seconds in json.loads(done.stdout).items():
        nbytes, call = case.split()
        yield f"\n### `{call}`, {int(nbytes) // 1024} KiB\n"
        yield from table(seconds, "by hand")


ENGINES: dict[str, tuple[str, Callable[[list[int], int], Iterator[str]], str]] = {
    "ray": (
        "Ray",
        through_ray,
        "PyTorch's tensors go by RAY_ENABLE_ZERO_COPY_TORCH_TENSORS, JAX's arrays by install().",
    ),
    "dask": ("Dask", through_dask, "PyTorch's tensors go by Dask's own dask_serialize, JAX's arrays by install()."),
    "mpi": ("MPI", through_mpi, "Two processes. By hand: mpi4py's [array, MPI.FLOAT] with NumPy's array."),
}


def version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--mib", type=int, nargs="+", default=[1, 16, 64], help="sizes")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="may be given again; all by default")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="folder")
    options = parser.parse_args(arguments)
    distributions = {"ray": "ray", "dask": "distributed", "mpi": "mpi4py"}
    engines = [name for name in options.engine or ENGINES if version_of(distributions[name])]
    if not engines:
        print("engines.py: none of Ray, Dask's distributed and mpi4py is installed", file=sys.stderr)
        return 1
    import dlbridge

    lines: list[str] = []
    for name in engines:
        title, run, remark = ENGINES[name]
        lines += [f"\n## {title}\n", f"{remark} All of {options.rounds} rounds, interleaved."]
        lines += run([mib * MIB for mib in options.mib], options.rounds)
    names = ("ray", "distributed", "mpi4py", "torch", "jax", "numpy")
    versions = {"dlbridge": dlbridge.__version__, **{name: version_of(name) for name in names}}
    head = [
        "Others worked on the machine: the ratios count, above 1 the row is quicker than the column says.",
        "Each trip by Ray and Dask reads an element of what arrived; making the array is not in it.",
    ]
    _machine.publish_page(options.out, "engines", "Arrays through engines", versions, [*head, *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
