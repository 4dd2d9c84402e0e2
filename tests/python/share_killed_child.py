"""Two processes that share arrays, one of them killed at a random moment; again and again, as often as is asked.

python share_killed_child.py COUNT: exits with 0 where whoever was not killed ended well, and nothing was left.
"""

import gc
import os
import random
import signal
import sys
import time
from multiprocessing import Pipe

import dlbridge
import dlbridge.multiprocessing

COUNT = int(sys.argv[1])
NBYTES = 100_000  # above what goes in a message


def write(connection):
    """Sends arrays, shared and copied, as long as somebody reads them."""
    kept = []
    for number in range(1000):
        x = dlbridge.empty_shared(NBYTES, "uint8", to="dlbridge")
        memoryview(x)[:] = bytes([number % 256]) * NBYTES
        connection.send(x)
        connection.send(dlbridge.share([bytes([number % 256]) * NBYTES, x]))
        kept = [*kept[-3:], x]


def read(connection):
    """Looks at each array, while its writer may be gone."""
    kept = []
    while True:
        x = connection.recv()
        copied, shared = connection.recv().open()
        kept = [*kept[-3:], (x, copied, shared)]
        for tensors in kept:
            views = [memoryview(tensor) for tensor in tensors]
            assert len({view[0] for view in views} | {view[-1] for view in views}) == 1


def start(work, connection, other):
    pid = os.fork()
    if pid:
        connection.close()
        return pid
    other.close()
    try:
        work(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError, FileNotFoundError):
        os._exit(0)  # the other one is gone
    except OSError as error:
        os._exit(0 if "end of file" in str(error) else 1)  # it was killed while it wrote
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def run_once():
    receiving, sending = Pipe(duplex=False)
    reader = start(read, receiving, sending)
    writer = start(write, sending, receiving)
    killed, other = random.sample([reader, writer], 2)
    time.sleep(random.expovariate(1 / 0.004))
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    status = os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])
    assert status == 0, f"the {'writer' if other == writer else 'reader'} ended with {status}"


dlbridge.multiprocessing.install()
dlbridge.share(b"x").open()  # what is made once is made
before, named = len(os.listdir("/proc/self/fd")), set(os.listdir("/dev/shm"))
for _ in range(COUNT):
    run_once()
gc.collect()
assert len(os.listdir("/proc/self/fd")) == before
assert not [name for name in set(os.listdir("/dev/shm")) - named if "dlbridge" in name]
print(COUNT, "killed")
