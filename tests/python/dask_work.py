"""What Dask's workers do in the tests; a module, for they import it."""

import sys

import dlbridge
from dlbridge import nd


def kinds(x):
    """What arrived, and whether dlbridge registered itself with this worker's Dask when it did."""
    return type(x).__name__, str(x.dtype), "dlbridge.dask" in sys.modules


def doubled(x):
    return x * 2


def made(framework, dtype, size):
    """An array of a framework, in the worker's own memory."""
    return dlbridge.convert(nd.arange(size, dtype=dtype, device="cpu"), framework)


def as_nd(x):
    return nd.array(x, device="cpu")


def tensor(x):
    return dlbridge.asdlpack(x)


def total(x):
    """Of any array, as a number."""
    return float(nd.sum(nd.asarray(x, device="cpu"), dtype="float64"))
