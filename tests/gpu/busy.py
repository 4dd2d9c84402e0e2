"""Keeps a GPU busy until it is ended: `busy.py [SECONDS]`. Products, passes over memory and copies, in short queues.

Beside it other processes get the GPU in turns of their own: kernels start late and end late, which is what tests of
order must not depend on.
"""

from __future__ import annotations

import itertools
import sys
import time

import dlbridge.nd as nd


def main(seconds: float) -> None:
    end = time.monotonic() + seconds
    matrix = nd.ones((2048, 2048), "float32")
    long = nd.ones(1 << 26, "float32")
    host = nd.asnumpy(long[: 1 << 20])
    stream = nd.cuda.get_current_stream()
    for turn in itertools.count():
        if time.monotonic() > end:
            return
        for _ in range(1 + turn % 7):  # queues of different lengths
            matrix = nd.tanh(matrix @ matrix)
            long += 1
        nd.asarray(host, device=long.device)
        stream.synchronize()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else float("inf"))
