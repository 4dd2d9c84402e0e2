"""What another process does in the tests of Ray's transport on a GPU; a module, for it imports it."""

import pickle

import ray_stand_in  # noqa: F401  # before the transport
from dlbridge.ray._transport import SharedMemoryTransport
from share_gpu_workers import forget, kept, values

transport = SharedMemoryTransport()


def opened(meta):
    (x,) = transport.recv_multiple_tensors("1", pickle.loads(meta), None)
    kept.append(x)
    return x


def read(meta):
    """The values of an array, and whose it is."""
    x = opened(meta)
    return values(x), type(x).__module__.partition(".")[0].removesuffix("lib")


def read_ends(meta):
    opened(meta)
    return ends()


def ends():
    """The first and the last element of what was read."""
    return [values(kept[-1][at])[0] for at in (slice(0, 1), slice(-1, None))]


__all__ = ["ends", "forget", "read", "read_ends"]
