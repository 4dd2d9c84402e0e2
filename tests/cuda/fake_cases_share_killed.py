"""Two processes that share CUDA arrays, one of them killed at a random moment: the other ends well, with nothing left.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import gc
import random
import time
from multiprocessing import Pipe

import dlbridge.multiprocessing
from dlbridge import CudaError, share
from dlbridge._sharing import loans
from fake_cases_share import Pooled, os, signal, soon
from fake_cuda import *

ROUNDS = 60
GONE = EOFError, BrokenPipeError, ConnectionResetError, FileNotFoundError


def write(connection):
    """Sends arrays and handles of arrays, and keeps the last few."""
    kept = []
    for number in range(100_000):
        memory = Pooled(1000)
        memory.set(number)
        x = asdlpack(CaiArray(memory, (1000,)))
        connection.send(x)
        connection.send(share([x, CaiArray(memory, (10,))]))
        kept = [*kept[-3:], x]


def read(connection):
    """Looks at each array again and again, while its writer may be gone."""
    kept = []
    while True:
        x = connection.recv()
        kept = [*kept[-3:], (x, *connection.recv().open("dlbridge"))]
        for tensors in kept:
            assert len({read_now(tensor.data_ptr, tensor.size)[-1] for tensor in tensors}) == 1


def work_until_the_other_is_gone(work, connection):
    before = len(os.listdir("/proc/self/fd"))
    try:
        work(connection)
    except GONE:
        pass
    except OSError as error:
        assert "end of file" in str(error), error  # it was killed while it wrote
    except CudaError as error:
        assert "ended" in str(error), error  # between the pipe's opening and the memory's
    gc.collect()
    mapped = [line for line in calls("ipc_open") if not line.endswith("failed")]
    soon(lambda: loans._keeper.kept == {} and len(calls("ipc_close")) == len(mapped))
    if work is read:
        soon(lambda: len(os.listdir("/proc/self/fd")) <= before + 1)  # where receipts for the last sender go


def start(work, connection, other):
    pid = os.fork()
    if pid:
        connection.close()
        return pid
    other.close()
    try:
        work_until_the_other_is_gone(work, connection)
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)


def test_share_survives_that_the_other_is_killed_at_random():
    dlbridge.multiprocessing.install()
    ends = set()
    for number in range(ROUNDS):  # this process leaves the driver alone: the others are its forks
        receiving, sending = Pipe(duplex=False)
        pids = [start(read, receiving, sending), start(write, sending, receiving)]
        killed = number % 2
        time.sleep(random.expovariate(1 / 0.05))
        os.kill(pids[killed], signal.SIGKILL)
        os.waitpid(pids[killed], 0)
        ends.add((killed, os.waitstatus_to_exitcode(os.waitpid(pids[1 - killed], 0)[1])))
    assert ends == {(0, 0), (1, 0)}


if __name__ == "__main__":
    main(globals())
