"""On a GPU: data is waited for by events and never by the host, shown with a negative control; graph capture.

A kernel that spins for about a tenth of a second is queued on the producer's stream, then the one that fills the
array. Whoever reads the array on another stream without waiting sees the zeros from before: each race is run a second
time with the ordering switched off, and must then see them, or the first run has proved nothing.
"""

import os
import subprocess
import sys
import textwrap

import dlbridge
import gpu_frameworks as gpu
import pytest
from dlbridge import asdlpack

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

pytestmark = gpu.needs_gpu

SIZE = 1 << 16
SPIN_CYCLES = 200_000_000  # 0.1 s at 2 GHz
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
        self.tensor.zero_()
        self.out.fill_(-1)
        self.torch.cuda.synchronize()

    def spin(self, cycles):
        if cycles:
            self.torch.cuda._sleep(cycles)

    def is_running(self):
        return not self.producer.query()

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


def _run(r, read, take, cycles):
    """Returns (value seen, the producer ran on when the read and the export had returned)."""
    r.reset()
    with r.on(r.producer):
        r.spin(cycles)
        r.tensor.fill_(FILLED)
        tensor = read(r)
        running_after_read = r.is_running()
    with r.on(r.consumer):
        taken = take(r, tensor)
        running_after_export = r.is_running()
        if isinstance(taken, r.torch.Tensor):
            r.out.copy_(taken)
        else:
            r.out_array[...] = taken
        del taken
    return r.seen(), running_after_read and running_after_export


@pytest.mark.parametrize("consumer", ORDERED)
@pytest.mark.parametrize("source", SOURCES)
def test_a_slow_producer_is_waited_for(race, source, consumer):
    read, take = SOURCES[source], ORDERED[consumer]
    for warm_up in (take, _unordered):  # kernels load at their first launch, and that waits for the GPU
        assert _run(race, read, warm_up, 0)[0] is not None
    seen, did_not_block = _run(race, read, take, SPIN_CYCLES)
    assert seen == FILLED
    assert did_not_block, "the read or the export waited on the host"
    # The control: the same without the wait reads what was there before.
    seen, did_not_block = _run(race, read, _unordered, SPIN_CYCLES)
    assert did_not_block
    assert seen == 0, "without the wait the right values were seen, too: this race proves nothing"


def test_consumers_of_the_cuda_array_interface_wait(race):
    """CuPy waits on the host for the stream that our dictionary names."""

    def take(race, tensor):
        return race.cupy.asarray(tensor)

    for source in ("torch exchange API", "cupy", "CAI with stream"):
        _run(race, SOURCES[source], take, 0)
        assert _run(race, SOURCES[source], take, SPIN_CYCLES)[0] == FILLED, source


@pytest.mark.parametrize("source", ["torch exchange API", "cupy", "CAI with stream"])
def test_the_cuda_array_interface_names_the_stream(race, source):
    with race.on(race.producer):
        tensor = SOURCES[source](race)
    assert tensor.__cuda_array_interface__["stream"] == race.producer.cuda_stream


def test_copy_to_the_host_waits(race):
    for source, read in SOURCES.items():
        race.reset()
        with race.on(race.producer):
            race.spin(SPIN_CYCLES)
            race.tensor.fill_(FILLED)
            tensor = read(race)
            assert race.is_running()
        assert (np.asarray(asdlpack(tensor, device="cpu")) == FILLED).all(), source


@pytest.mark.parametrize("named", [False, True], ids=["no stream named", "stream named"])
def test_copy_on_the_gpu_is_ordered(race, named):
    torch = race.torch
    options = {"stream": race.consumer.cuda_stream} if named else {}
    for cycles in (0, SPIN_CYCLES):  # the first round loads and allocates
        race.reset()
        with race.on(race.producer):
            race.spin(cycles)
            race.tensor.fill_(FILLED)
            copy = asdlpack(race.tensor, copy=True, **options)
            # Memory for a stream of the caller's is not from a pool, and allocating it may wait.
            assert named or cycles == 0 or race.is_running(), "the copy waited on the host"
        with race.on(race.consumer):
            race.out.copy_(torch.from_dlpack(copy))
        assert race.seen() == FILLED


def test_source_may_be_freed_before_the_copy_has_read_it(race):
    """The memory goes back to the pool of the producer's stream, which hands it out again behind the copy."""
    torch = race.torch
    with race.on(race.producer):
        race.spin(SPIN_CYCLES)
        source = torch.full((SIZE,), FILLED, device="cuda")
        copy = asdlpack(source, copy=True)
        del source
        for _ in range(4):
            torch.full((SIZE,), -3.0, device="cuda")
    torch.cuda.synchronize()
    assert (np.asarray(asdlpack(copy, device="cpu")) == FILLED).all()


# --- the environment switch -------------------------------------------------------------------------------------------

_SWITCH_SCRIPT = """
    import test_gpu_streams as t
    race = t.Race()
    read, take = t.SOURCES["CAI with stream"], t.ORDERED["torch from_dlpack"]
    t._run(race, read, take, 0)
    t._run(race, read, t._unordered, 0)
    seen, did_not_block = t._run(race, read, take, t.SPIN_CYCLES)
    print("seen", seen, did_not_block)
"""


@pytest.mark.parametrize(("switch", "seen"), [("1", FILLED), ("0", 0.0)])
def test_switch_of_the_cuda_array_interface_sync(switch, seen):
    gpu.torch(), gpu.cupy()
    environment = {**os.environ, "DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC": switch}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_SWITCH_SCRIPT)],
        cwd=os.path.dirname(__file__),
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split("\n")[0] == f"seen {seen} True", done.stderr


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
