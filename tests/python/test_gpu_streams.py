"""On a GPU: data is waited for by events and never by the host, shown with a negative control; graph capture.

A gate (dlbridge.tests._gate) is put on the producer's stream, then the kernel that fills the array. A call that returns
while the gate is closed has not waited on the host; a consumer that waits finds the right values once it is open. Each
race is run a second time with the ordering switched off: that consumer runs to its end beside the closed gate and finds
the zeros from before, or the first run has proved nothing. No test here depends on time.
"""

import textwrap

import dlbridge
import gpu_frameworks as gpu
import pytest
from child_process import run_python
from dlbridge import asdlpack
from dlbridge.tests._gate import Gate

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

pytestmark = gpu.needs_gpu

SIZE = 1 << 16
CLOSED_FOR_S = 0.1  # where the host waits by design
FILLED = 7.0


class Race:
    """A producer's and a consumer's stream, which both torch and CuPy can work on, and an array between them."""

    def __init__(self):
        self.torch, self.cupy = gpu.torch(), gpu.cupy()
        self.producer, self.consumer = self.torch.cuda.Stream(), self.torch.cuda.Stream()
        self.tensor = self.torch.zeros(SIZE, device="cuda")
        self.array = self.cupy.asarray(self.tensor)
        self.out = self.torch.zeros(SIZE, device="cuda")
        self.out_array = self.cupy.asarray(self.out)

    def on(self, stream):
        """Makes the stream current for both frameworks."""
        return _Both(self, stream)

    def reset(self):
        self.torch.cuda.synchronize()  # what an earlier run left in its streams is no part of the next one
        self.tensor.zero_()
        self.out.fill_(-1)
        self.torch.cuda.synchronize()

    def produce(self, gate, read):
        """Fills the array behind the gate, where there is one, and reads it on the producer's stream."""
        self.reset()
        with self.on(self.producer):
            if gate is not None:
                gate.hold(self.producer.cuda_stream)
            self.tensor.fill_(FILLED)
            tensor = read(self)
        assert gate is None or gate.is_closed(), "the read waited on the host"
        return tensor

    def consume(self, tensor, take):
        """Copies what `take` makes of the tensor to where seen() finds it, on the consumer's stream."""
        with self.on(self.consumer):
            taken = take(self, tensor)
            if isinstance(taken, self.torch.Tensor):
                self.out.copy_(taken)
            else:
                self.out_array[...] = taken

    def seen(self):
        """The one value that the consumer saw, or None where it saw several."""
        self.torch.cuda.synchronize()
        found = self.out.unique().tolist()
        return found[0] if len(found) == 1 else None


class _Both:
    def __init__(self, race, stream):
        self.parts = race.torch.cuda.stream(stream), gpu.cupy_stream(stream)

    def __enter__(self):
        for part in self.parts:
            part.__enter__()

    def __exit__(self, *error):
        for part in reversed(self.parts):
            part.__exit__(*error)


@pytest.fixture(scope="module")
def race():
    return Race()


# How the array is read, on the producer's stream, right after the kernels are queued.
SOURCES = {
    "torch exchange API": lambda r: asdlpack(r.tensor),
    "torch __dlpack__": lambda r: asdlpack(r.tensor, protocol="dlpack"),
    "cupy": lambda r: asdlpack(r.array),
    "cupy __dlpack__": lambda r: asdlpack(r.array, protocol="dlpack"),
    "CAI with stream": lambda r: asdlpack(gpu.Interface(r.array), protocol="cuda_array_interface"),
    "Arrow device array": lambda r: asdlpack(gpu.OnlyArrow(asdlpack(r.tensor))),
}


def _capsule(tensor, **arguments):
    return tensor.__dlpack__(max_version=(1, 0), **arguments)


# How it is taken, on the consumer's stream: with the ordering, and without it.
ORDERED = {
    "torch from_dlpack": lambda r, t: r.torch.from_dlpack(t),
    "torch exchange API": lambda r, t: dlbridge.convert(t, "torch"),
    "cupy from_dlpack": lambda r, t: r.cupy.from_dlpack(t),
    "capsule for the stream": lambda r, t: r.torch.from_dlpack(_capsule(t, stream=r.consumer.cuda_stream)),
    "stream of asdlpack": lambda r, t: r.torch.from_dlpack(
        _capsule(asdlpack(t, stream=r.consumer.cuda_stream), stream=-1)
    ),
    "stream with __cuda_stream__": lambda r, t: r.torch.from_dlpack(
        _capsule(asdlpack(t, stream=gpu.CudaStream(r.consumer.cuda_stream)), stream=-1)
    ),
}


def _unordered(r, t):
    return r.torch.from_dlpack(_capsule(t, stream=-1))


def _run(race, gate, read, take):
    race.consume(race.produce(gate, read), take)
    assert gate is None or gate.is_closed(), "the export waited on the host"


@pytest.mark.parametrize("consumer", ORDERED)
@pytest.mark.parametrize("source", SOURCES)
def test_a_late_producer_is_waited_for(race, source, consumer):
    read, take = SOURCES[source], ORDERED[consumer]
    for warm_up in (take, _unordered):  # kernels load at their first launch, and that waits for the GPU
        _run(race, None, read, warm_up)
        race.seen()
    with Gate() as gate:
        _run(race, gate, read, take)
        gate.open()
        assert race.seen() == FILLED
    with Gate() as gate:  # the control: the same without the wait
        _run(race, gate, read, _unordered)
        race.consumer.synchronize()
        assert gate.is_closed(), "the consumer's stream did not run beside the producer's"
        gate.open()
        assert race.seen() == 0, "without the wait the right values were seen, too: this race proves nothing"


@pytest.mark.parametrize("source", ["torch exchange API", "cupy", "CAI with stream"])
def test_consumers_of_the_cuda_array_interface_wait(race, source):
    """CuPy waits for the stream that our dictionary names, on the host."""

    def take(race, tensor):
        return race.cupy.asarray(tensor)

    _run(race, None, SOURCES[source], take)
    with Gate() as gate:
        tensor = race.produce(gate, SOURCES[source])
        gate.open_within(CLOSED_FOR_S)
        race.consume(tensor, take)
        assert race.seen() == FILLED


@pytest.mark.parametrize("source", SOURCES)
def test_the_cuda_array_interface_names_a_stream_that_waits(race, source):
    torch = race.torch
    assert race.produce(None, SOURCES[source]).__cuda_array_interface__["stream"]  # makes what it needs
    with Gate() as gate:
        tensor = race.produce(gate, SOURCES[source])
        named = torch.cuda.ExternalStream(tensor.__cuda_array_interface__["stream"])
        with torch.cuda.stream(named):
            race.out.copy_(race.tensor)
        assert gate.is_closed() and not named.query()
        gate.open()
        named.synchronize()
        assert race.seen() == FILLED


def test_torch_own_streams_are_named_themselves(race):
    with race.on(race.producer):
        tensor = asdlpack(race.tensor)
    assert tensor.__cuda_array_interface__["stream"] == race.producer.cuda_stream


@pytest.mark.parametrize("source", SOURCES)
def test_copy_to_the_host_waits(race, source):
    asdlpack(race.tensor, device="cpu")  # makes what copies need
    with Gate() as gate:
        tensor = race.produce(gate, SOURCES[source])
        gate.open_within(CLOSED_FOR_S)
        host = np.asarray(asdlpack(tensor, device="cpu"))
        assert not gate.is_closed(), "the copy was there before the data"
    assert (host == FILLED).all()


@pytest.mark.parametrize("named", [False, True], ids=["no stream named", "stream named"])
def test_copy_on_the_gpu_is_ordered(race, named):
    options = {"stream": race.consumer.cuda_stream} if named else {}

    def copy(race):
        return asdlpack(race.tensor, copy=True, **options)

    def take(race, tensor):
        return race.torch.from_dlpack(tensor)

    _run(race, None, copy, take)  # loads and allocates
    with Gate() as gate:
        if named:  # memory for a stream of the caller's is not from a pool, and allocating it may wait
            gate.open_within(CLOSED_FOR_S)
            race.reset()
            with race.on(race.producer):
                gate.hold(race.producer.cuda_stream)
                race.tensor.fill_(FILLED)
                race.consume(copy(race), take)
        else:
            _run(race, gate, copy, take)
        gate.open()
        assert race.seen() == FILLED


def test_source_may_be_freed_before_the_copy_has_read_it(race):
    """The memory goes back to the pool of the producer's stream, which hands it out again behind the copy."""
    torch = race.torch

    def copy_of_what_dies(gate):
        with race.on(race.producer):
            if gate is not None:
                gate.hold(race.producer.cuda_stream)
            source = torch.full((SIZE,), FILLED, device="cuda")
            copy = asdlpack(source, copy=True)
            del source
            for _ in range(4):
                torch.full((SIZE,), -3.0, device="cuda")
        return copy

    copy_of_what_dies(None)
    torch.cuda.synchronize()
    with Gate() as gate:
        copy = copy_of_what_dies(gate)
        assert gate.is_closed(), "the copy waited on the host"
    assert (np.asarray(asdlpack(copy, device="cpu")) == FILLED).all()


# --- the environment switch -------------------------------------------------------------------------------------------

_SWITCH_SCRIPT = """
    import test_gpu_streams as t
    race = t.Race()
    read, take = t.SOURCES["CAI with stream"], t.ORDERED["torch from_dlpack"]
    t._run(race, None, read, take)
    with t.Gate() as gate:
        t._run(race, gate, read, take)
        if not {waits}:
            race.consumer.synchronize()
            assert gate.is_closed()
        gate.open()
        print("seen", race.seen())
"""


@pytest.mark.parametrize(("switch", "seen"), [("1", FILLED), ("0", 0.0)])
def test_switch_of_the_cuda_array_interface_sync(switch, seen):
    gpu.torch(), gpu.cupy()
    script = textwrap.dedent(_SWITCH_SCRIPT).format(waits=switch == "1")
    done = run_python(script, DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC=switch)
    assert done.stdout.split("\n")[0] == f"seen {seen}", done.stderr


# --- graph capture ----------------------------------------------------------------------------------------------------


@pytest.fixture
def capture(race):
    """Captures `work(stream)` in a graph; returns the graph. Warmed up outside of the capture first."""
    torch = race.torch

    def run(work):
        stream = torch.cuda.Stream()
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream), gpu.cupy_stream(stream):
            work(stream)
        return graph

    return run


def _replayed(race, graph):
    race.reset()
    race.tensor.fill_(FILLED)
    race.torch.cuda.synchronize()
    graph.replay()
    return race.seen()


def test_capture_with_the_capturing_stream_on_both_sides(race, capture):
    graph = capture(lambda stream: race.out.copy_(race.torch.from_dlpack(asdlpack(race.tensor))))
    assert _replayed(race, graph) == FILLED


@pytest.mark.parametrize("source", ["torch exchange API", "cupy"])
def test_capture_without_synchronisation(race, capture, source):
    tensor = SOURCES[source](race)  # ready on the default stream, which is not captured
    graph = capture(lambda stream: race.out.copy_(race.torch.from_dlpack(_capsule(tensor, stream=-1))))
    assert _replayed(race, graph) == FILLED


@pytest.mark.parametrize("source", SOURCES)
def test_capture_that_would_have_to_wait_is_refused_and_survives(race, capture, source):
    with race.on(race.producer):
        tensor = SOURCES[source](race)

    def work(stream):
        with pytest.raises(BufferError, match="graph is being captured"):
            tensor.__dlpack__(stream=stream.cuda_stream)
        race.out.copy_(race.tensor)

    assert _replayed(race, capture(work)) == FILLED


def test_reading_during_a_capture(race, capture):
    def work(stream):
        tensor = asdlpack(race.array)
        assert tensor.__cuda_array_interface__["stream"] == stream.cuda_stream
        race.out.copy_(race.torch.from_dlpack(_capsule(tensor, stream=stream.cuda_stream)))

    assert _replayed(race, capture(work)) == FILLED


def test_reading_by_dlpack_during_a_capture_without_synchronisation(race, capture):
    def work(stream):
        tensor = asdlpack(race.array, protocol="dlpack", stream=-1)
        race.out.copy_(race.torch.from_dlpack(_capsule(tensor, stream=-1)))

    assert _replayed(race, capture(work)) == FILLED


@pytest.mark.parametrize("named", [False, True], ids=["no stream named", "capturing stream named"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_copies_during_a_capture_are_refused_and_it_survives(race, capture, target, named):
    def work(stream):
        options = {"stream": stream.cuda_stream} if named and target == "cuda" else {}
        with pytest.raises(BufferError, match="graph is being captured"):
            asdlpack(race.tensor, device=target, copy=True, **options)
        race.out.copy_(race.tensor)

    assert _replayed(race, capture(work)) == FILLED


def test_copies_beside_a_capture_do_not_disturb_it(race, capture):
    """A global capture forbids allocations on its thread; ours say that they have nothing to do with it."""
    tensor, host = asdlpack(race.tensor), np.ones(SIZE, "float32")
    kept = []

    def work(stream):
        kept.append(asdlpack(tensor, copy=True))
        kept.append(asdlpack(host, device="cuda"))
        kept.clear()  # freed during the capture
        race.out.copy_(race.tensor)

    assert _replayed(race, capture(work)) == FILLED


# --- streams that are none --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [0, -2, 3, 12345])
def test_bad_streams(race, stream):
    with race.on(race.producer):
        tensor = asdlpack(race.tensor)
    with pytest.raises(ValueError, match="stream"):
        tensor.__dlpack__(stream=stream)


def test_default_streams(race):
    with race.on(race.producer):
        tensor = asdlpack(race.tensor)
    for stream in (None, 1, 2):
        assert tensor.__dlpack__(stream=stream) is not None
    race.torch.cuda.synchronize()
