"""Kernels of the host that take a while let other threads run."""

import sys
import threading

import pytest
from dlbridge import nd

N = 1 << 16
CALLS = {
    "x + x": lambda x: x + x,
    "out=": lambda x: nd.add(x, x, out=x),
    "sum": lambda x: x.sum(),
    "rows": lambda x: x.reshape(256, 256).sum(axis=0),
    "astype": lambda x: x.astype("float32"),
    "copy": lambda x: x[::-1].copy(),
    "sort": lambda x: nd.sort(x),
    "cumsum": lambda x: x.cumsum(),
    "take": lambda x: nd.take(x, nd.zeros(N, "int64", device="cpu")),
    "mask": lambda x: x[x == 0],
    "matmul": lambda x: x.reshape(256, 256) @ x.reshape(256, 256),
    "fill": lambda x: x.fill(0),
    "random": lambda x: nd.random.default_rng(1).random(N, device="cpu"),
}


@pytest.fixture
def no_switches():
    """A thread keeps the interpreter's lock until it lets go of it by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_of_many_elements_lets_other_threads_run(name, no_switches):
    x = nd.zeros(N, device="cpu")
    begun, seen, tried = threading.Event(), [], []

    def work():
        CALLS[name](x)  # what is imported lets go of the lock, too
        begun.set()
        for _ in range(2000):
            if seen:
                return
            CALLS[name](x)
        tried.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    seen.append(True)  # only with the lock, which the other thread has
    thread.join()
    assert not tried
