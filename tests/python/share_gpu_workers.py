"""What another process does in the tests of sharing on a GPU; a module, for it imports it."""

import os
import pickle
from unittest import mock

import dlbridge
from dlbridge import asdlpack, nd, share
from dlbridge._sharing import allocations, returns
from dlbridge.tests._gate import prepare_reading, read_unordered

IS_FAKE = "FAKE_CUDA_IPC" in os.environ  # a driver without a GPU, which works when somebody waits
kept = []


def serve(connection):
    """Does what it is told until nobody is there; the result, or the error's name and text."""
    while True:
        while IS_FAKE and not connection.poll(0.01):
            nd.cuda.Device(0).synchronize()
        try:
            work, *arguments = connection.recv()
        except EOFError:
            return
        try:
            result = work(*arguments)
        except Exception as error:
            result = type(error).__name__, str(error)
        connection.send(result)


def values(x):
    return memoryview(asdlpack(asdlpack(x, device="cpu"), copy=True)).tolist()


def open_and_keep(data, to=None):
    """The values of what a pickled handle opens, and its type."""
    x = pickle.loads(data).open(to)
    kept.append(x)
    return values(x), type(x).__module__.partition(".")[0]


def look(x):
    kept.append(x)
    return values(x)


def add(x, number):
    """Works on an array that arrived as one, and has done so when it returns."""
    x += number
    kept.append(x)
    nd.cuda.Device(0).synchronize()
    return type(x).__module__.partition(".")[0]


def double(x):
    return x + x


def forget():
    kept.clear()


def mappings():
    """How many allocations of others are mapped."""
    return sum(isinstance(one, allocations.Imported) for one in allocations._memories.values())


def linger(seconds):
    """How long what is left stays mapped, from now on; what lingers already goes back."""
    returns._returner._calls.put(None)
    returns.LINGER_S, returns._returner = seconds, returns._Returner()


def look_and_leave(handle):
    """The first value, and how many mappings were opened for it."""
    with mock.patch.object(allocations, "_call", wraps=allocations._call) as spy:
        first = values(handle.open("dlbridge"))[0]
    return first, sum(call.args[1] == "cuIpcOpenMemHandle_v2" for call in spy.call_args_list)


def open_early(handle):
    """What is in the memory at this moment, when the handle has been opened."""
    prepare_reading()
    x = handle.open("dlbridge")
    kept[:] = [x]
    return read_unordered(x.data_ptr, 4)


def read_in_order():
    return values(kept[0])[0]


def make(count):
    """Handles, as references to this process."""
    made = [nd.full(1000, float(number), "float32", device="cuda") for number in range(count)]
    kept.extend(made)
    handles = [share(x) for x in made]
    kept.extend(handles)
    return [pickle.dumps(handle) for handle in handles]


def pid():
    return os.getpid()


def install(*frameworks):
    dlbridge.multiprocessing.install(*frameworks)
