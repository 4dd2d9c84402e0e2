"""What engines.py has two processes of MPI do: mpiexec -n 2 python _mpi_trips.py ROUNDS BYTES...

The first prints the microseconds of each call, as JSON: {"4096 Sendrecv": {way: [of each round]}}.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
from dlbridge import nd
from dlbridge.mpi import buf
from mpi4py import MPI

BATCH_BYTES = 1 << 22  # a round of small messages is as many as make this together
MOST_CALLS = 100


def ways_of(nbytes: int) -> dict[str, Callable[[], tuple[Any, Any]]]:
    """How what is sent and what is received are given to mpi4py; the memory of each way is its own."""
    sent, received = (numpy.ones(nbytes // 4, "float32") for _ in range(2))
    x, y = (nd.ones(nbytes // 4, "float32", device="cpu") for _ in range(2))
    kept = buf(x), buf(y)
    return {
        "by hand": lambda: ([sent, MPI.FLOAT], [received, MPI.FLOAT]),
        "NumPy's array alone": lambda: (sent, received),
        "`buf` of an nd array, made once": lambda: kept,
        "`buf` of an nd array, in each call": lambda: (buf(x), buf(y)),
    }


def main() -> None:
    world = MPI.COMM_WORLD
    other = 1 - world.rank
    calls: dict[str, Callable[[Any, Any], None]] = {
        "Sendrecv": lambda x, y: world.Sendrecv(x, other, recvbuf=y, source=other),
        "Allreduce": lambda x, y: world.Allreduce(x, y),
    }
    found: dict[str, dict[str, list[float]]] = {}
    shuffle = random.Random(1).shuffle  # in the same order in both processes
    rounds, *sizes = map(int, sys.argv[1:])
    for nbytes in sizes:
        ways = ways_of(nbytes)
        count = max(1, min(MOST_CALLS, BATCH_BYTES // nbytes))
        for call, function in calls.items():
            taken: dict[str, list[float]] = {name: [] for name in ways}
            found[f"{nbytes} {call}"] = taken
            order = list(ways)
            for number in range(rounds + 1):
                shuffle(order)
                for name in order:
                    make = ways[name]
                    world.Barrier()
                    begin = time.perf_counter()
                    for _ in range(count):
                        function(*make())
                    if number:
                        taken[name].append((time.perf_counter() - begin) / count)
    if world.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
