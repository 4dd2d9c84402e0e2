"""What other processes do in the tests of sharing; a module, for they import it."""

import os
import pickle
import sys

import dlbridge
import dlbridge.multiprocessing


def open_and_write(handle, value, to="numpy"):
    """Writes into the first element of what a handle opens; what was there, and of which kind it is."""
    x = handle.open(to)
    before = float(x[0])
    x[0] = value
    return before, type(x).__module__.partition(".")[0]


def write(x, value):
    """The same with an array that arrived as one."""
    before = float(x[0])
    x[0] = value
    return before, f"{type(x).__module__.partition('.')[0]}.{type(x).__qualname__}"


def double(x):
    """A result of the framework of its argument."""
    return x + x


def answer(queue, results, work, *arguments):
    """Takes something from a queue, and puts what `work` makes of it into another."""
    results.put(work(queue.get(), *arguments))


def put_and_end(queue, count):
    """Ends as soon as what it has put is on its way."""
    dlbridge.multiprocessing.install()
    queue.put([dlbridge.empty_shared(count, "uint8", to="dlbridge"), dlbridge.share(b"x" * count)])


def put_and_be_killed(queue):
    dlbridge.multiprocessing.install()
    queue.put(dlbridge.empty_shared(100_000, to="dlbridge"))
    queue.close()
    queue.join_thread()
    os._exit(9)


def hold(handle, connection):
    """Opens a handle, and keeps what it opened until it is told to end."""
    tensor = handle.open("dlbridge")
    connection.send("open")
    connection.recv()
    return tensor


if __name__ == "__main__":  # a program that is nobody's child: the handle comes on stdin
    print(open_and_write(pickle.load(sys.stdin.buffer), float(sys.argv[1])))
