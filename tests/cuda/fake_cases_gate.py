"""The gate that tests of order use, and the runner's layout "delayed" on it, without a GPU.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import contextlib
import ctypes
import struct

from dlbridge import asdlpack
from dlbridge.tests import _exchange
from dlbridge.tests._cases import Case
from dlbridge.tests._gate import Gate, read_unordered
from dlbridge.tests._plan import CONVERT, READ, Spec
from dlbridge.tests._results import Status
from dlbridge.tests.frameworks import ArrayType, Bench, Framework, Look
from fake_cuda import *


def test_what_is_behind_a_closed_gate_has_not_happened():
    producer, consumer = new_stream(), new_stream()
    memory = Memory()
    memory.set(OLD)
    with Gate() as gate:
        gate.hold(producer)
        memory.fill(NEW, producer)
        asdlpack(CaiArray(memory, stream=producer)).__dlpack__(stream=consumer, max_version=NEWEST)
        assert gate.is_closed()
        assert read_unordered(memory.address, 24) == struct.pack("6i", *[OLD] * 6)
        assert gate.is_closed()
        gate.open()
        assert not gate.is_closed()
        assert read_on(consumer, memory.address, 6) == [NEW] * 6


def test_gates_open_alone():
    streams = [new_stream(), new_stream()]
    with Gate() as first, Gate() as second:
        first.hold(streams[0])
        second.hold(streams[1])
        second.open()
        assert lib.cuStreamSynchronize(streams[1]) == 0
        assert first.is_closed()


def test_a_gate_opens_at_its_limit_though_the_host_waits_with_the_gil():
    stream = new_stream()
    with Gate(limit_s=0.05) as gate:
        gate.hold(stream)
        assert gate.is_closed()
        wait = ctypes.PyDLL("libcuda.so.1").cuStreamSynchronize  # keeps the GIL, so no thread of Python's could help
        wait.argtypes = [ctypes.c_void_p]
        assert wait(stream) == 0
        assert not gate.is_closed()


def test_a_limit_can_be_moved():
    stream = new_stream()
    with Gate(limit_s=3600) as gate:
        gate.hold(stream)
        gate.open_within(0.01)
        assert lib.cuStreamSynchronize(stream) == 0


def test_the_end_of_the_block_opens_also_after_an_error():
    stream = new_stream()
    with contextlib.suppress(KeyError), Gate() as gate:
        gate.hold(stream)
        raise KeyError
    assert not gate.is_closed()
    assert lib.cuStreamSynchronize(stream) == 0


# ---- the runner's layout "delayed"

CASE = Case("float32", "delayed", "cuda")


class Array:
    """Twelve float32 in memory of the fake's, written on the stream that it names."""

    def __init__(self, stream):
        self.memory = Memory(12)
        self.stream = stream

    @property
    def __cuda_array_interface__(self):
        data = (self.memory.address, False)
        return {"shape": (3, 4), "typestr": "<f4", "version": 3, "data": data, "stream": self.stream}


def _delayed(module, device, hold):
    stream = new_stream()
    array, values = Array(stream), Memory(12)
    array.memory.set(0)
    ctypes.memmove(values.address, struct.pack("12f", *CASE.values), 48)
    hold(stream)
    copy = lib.cuMemcpyDtoDAsync_v2
    copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    assert copy(array.memory.address, values.address, 48, stream) == 0
    array.values = values  # must live until they are copied
    return array, contextlib.nullcontext()


def _not_delayed(module, device, hold):
    array, context = _delayed(module, device, lambda stream: None)
    assert lib.cuStreamSynchronize(array.stream) == 0
    hold(array.stream)
    return array, context


class Taken:
    """What a consumer made: reads on a stream of its own, which the producer's was ordered before or not."""

    def __init__(self, tensor, wait):
        self.tensor, self.stream = tensor, new_stream()
        tensor.__dlpack__(stream=self.stream if wait else -1, max_version=NEWEST)

    def read(self):
        raw = read_on(self.stream, self.tensor.data_ptr, 12)
        return list(struct.unpack("12f", struct.pack("12i", *raw)))


def _exchange_with(wait, delayed=_delayed):
    look = Look("", "x.memory.address")
    kind = ArrayType("late", "", {"float32": ""}, look, {}, ("cuda_array_interface",), ("cuda",), delayed=delayed)
    producer = Framework("late", "ctypes", (kind,))
    taken = Look(lambda x: x.read(), lambda x: x.tensor.data_ptr)
    consumer = Framework("taker", "", takes={"dlpack": lambda tensor: Taken(tensor, wait)}, look=taken)
    spec = Spec(producer, kind, consumer, "", "dlpack", CASE)
    return _exchange.run(_exchange.Ends(spec, Bench(producer), Bench(consumer)))


def test_delayed_data_arrives_at_a_consumer_that_waits():
    cell = _exchange_with(wait=True)
    assert (cell.status, cell.reason) == (Status.WORKS, ""), cell


def test_delayed_data_shows_a_consumer_that_does_not_wait():
    cell = _exchange_with(wait=False)
    assert cell.status is Status.WRONG and "written late: [0.0, 0.0" in cell.reason, cell


def test_delayed_data_that_is_not_late_is_a_fault_of_the_producer():
    cell = _exchange_with(wait=True, delayed=_not_delayed)
    assert cell.status is Status.WRONG and "not late" in cell.reason, cell


def test_delayed_data_is_read_and_converted():
    kind = ArrayType("late", "", {"float32": ""}, Look(), {}, ("cuda_array_interface",), ("cuda",), delayed=_delayed)
    producer = Framework("late", "ctypes", (kind,))
    own = Framework("nd", "dlbridge.nd", convert="nd", look=Look("x.get().tolist()"))
    for consumer, route in ((None, READ), (own, CONVERT)):
        spec = Spec(producer, kind, consumer, "", route, CASE)
        bench = None if consumer is None else Bench(consumer)
        cell = _exchange.run(_exchange.Ends(spec, Bench(producer), bench))
        assert cell.status in (Status.WORKS, Status.COPIES), cell


if __name__ == "__main__":
    main(globals())
