"""On a GPU: producers that name no stream, or one that is destroyed; memory that a consumer's stream still works on.

All is ordered by gates, as in test_gpu_streams.py, and each order has its negative control.
"""

import gc

import dlbridge
import gpu_frameworks as gpu
import pytest
from dlbridge import asdlpack, nd
from dlbridge.tests._gate import Gate
from test_gpu_streams import CLOSED_FOR_S, FILLED, SIZE, Race

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

pytestmark = gpu.needs_gpu

REUSED = -3.0


@pytest.fixture(scope="module")
def race():
    return Race()


def _take(race, tensor):
    return race.torch.from_dlpack(tensor)


# --- producers that name no stream: the legacy default one -----------------------------------------------------------


def _numba(race):
    cuda = gpu.numba_cuda()
    array, values = (cuda.to_device(np.full(SIZE, value, "float32")) for value in (0, FILLED))
    return array, lambda: array.copy_to_device(values)


def _torch(race):
    return race.tensor, lambda: race.tensor.fill_(FILLED)


class NoDevice:
    """__dlpack__ alone."""

    def __init__(self, base):
        self.base = base

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream is None
        return self.base.__dlpack__(stream=1, max_version=max_version)


UNNAMED = {
    "numba": (_numba, asdlpack),
    "no device": (_torch, lambda tensor: asdlpack(NoDevice(tensor))),
    "raw capsule": (_torch, lambda tensor: asdlpack(tensor.__dlpack__(stream=1, max_version=(1, 0)))),
}


@pytest.mark.parametrize("consumer", ["torch", "jax"])
@pytest.mark.parametrize("source", UNNAMED)
def test_a_producer_without_a_stream_is_waited_for(race, source, consumer):
    """Its work is on the legacy default stream, which the streams of PyTorch and JAX do not wait for by themselves."""
    make, read = UNNAMED[source]
    if consumer == "jax":
        gpu.jax()
    for warm_up in (True, False):
        race.reset()
        array, fill = make(race)
        race.torch.cuda.synchronize()
        with Gate(limit_s=20) as gate:
            if warm_up:
                gate.open()
            gate.hold(1)
            fill()
            tensor = read(array)
            if consumer == "jax":
                gate.open_within(CLOSED_FOR_S)  # JAX may wait on the host
                seen = np.asarray(dlbridge.convert(tensor, "jax"))
                assert (seen == FILLED).all()
            else:
                race.consume(tensor, _take)
                gate.open()
                assert race.seen() == FILLED


# --- a stream that is destroyed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [None, "dlpack", "cuda_array_interface"])
def test_a_stream_that_dies_after_the_read_is_waited_for_and_not_used(race, protocol):
    cupy = race.cupy
    for warm_up in (True, False):
        race.reset()
        with Gate(limit_s=20) as gate:
            if warm_up:
                gate.open()
            stream = cupy.cuda.Stream(non_blocking=True)
            with stream:
                gate.hold(stream.ptr)
                race.array.fill(FILLED)
                tensor = asdlpack(race.array, protocol=protocol)
            del stream
            gc.collect()
            race.consume(tensor, _take)
            named = tensor.__cuda_array_interface__["stream"]
            assert warm_up or gate.is_closed()
            gate.open()
            assert race.seen() == FILLED
            race.torch.cuda.ExternalStream(named).synchronize()


# --- memory under a consumer ------------------------------------------------------------------------------------------


def _unowned(race, pointer):
    cupy = race.cupy
    memory = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(pointer, SIZE * 4, None), 0)
    return cupy.ndarray(SIZE, "float32", memory)


def _queue_read(race, gate, pointer):
    """A consumer that holds nothing, and comes to the memory when the gate is open."""
    with race.on(race.consumer):
        gate.hold(race.consumer.cuda_stream)
        race.out_array[...] = _unowned(race, pointer)


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "control"])
def test_the_pool_of_nd_gives_memory_back_behind_recorded_streams(race, recorded):
    for warm_up in (True, False):
        race.reset()
        x = nd.full(SIZE, FILLED, dtype="float32", device="cuda")
        pointer = x.data_ptr
        race.torch.cuda.synchronize()
        with Gate(limit_s=20) as gate:
            if warm_up:
                gate.open()
            _queue_read(race, gate, pointer)
            if recorded:
                x.record_stream(race.consumer.cuda_stream)
            del x
            y = nd.full(SIZE, REUSED, dtype="float32", device="cuda")
            assert y.data_ptr == pointer
            assert warm_up or gate.is_closed(), "the pool waited on the host"
            if not recorded:
                race.torch.cuda.default_stream().synchronize()
                assert warm_up or gate.is_closed()
            gate.open()
            assert warm_up or race.seen() == (FILLED if recorded else REUSED)
            del y


@pytest.mark.parametrize("used", [True, False], ids=["in use", "control"])
@pytest.mark.parametrize("source", ["torch", "cupy", "CAI with stream"])
def test_use_makes_the_producer_wait_for_the_consumer(race, source, used):
    def lend():
        return race.tensor if source == "torch" else race.array if source == "cupy" else gpu.Interface(race.array)

    for warm_up in (True, False):
        race.reset()
        with Gate(limit_s=20) as gate:
            if warm_up:
                gate.open()
            with race.on(race.producer):
                race.tensor.fill_(FILLED)
                if used:
                    with dlbridge.use(lend(), stream=race.consumer.cuda_stream) as tensor:
                        _queue_read(race, gate, tensor.data_ptr)
                    del tensor
                else:
                    race.consumer.wait_stream(race.producer)
                    _queue_read(race, gate, race.tensor.data_ptr())
                race.tensor.fill_(REUSED)
            assert warm_up or gate.is_closed(), "use() waited on the host"
            if not used:
                race.producer.synchronize()
                assert warm_up or gate.is_closed()
            gate.open()
            assert warm_up or race.seen() == (FILLED if used else REUSED)
