"""NCCL itself, through nccl4py: a communicator of one rank, and of two GPUs. Order is proved by gates."""

import threading

import dlbridge
import gpu_frameworks as gpu
import pytest
from dlbridge import nd
from dlbridge.nccl import buf, source
from dlbridge.tests._gate import Gate

pytestmark = gpu.needs_gpu
np = pytest.importorskip("numpy", reason="the oracle of the tests")
COUNT = 1 << 16
VALUES = np.arange(COUNT) % 100


@pytest.fixture(scope="module")
def nccl():
    return pytest.importorskip("nccl.core", reason="nccl4py makes the communicator", exc_type=ImportError)


def current(device):
    """Makes it CUDA's own current device of the thread, which is the one of a communicator."""
    pytest.importorskip("cuda.core", reason="nccl4py comes with it").Device(device).set_current()


@pytest.fixture(scope="module")
def comm(nccl):
    current(0)
    made = nccl.Communicator.init(1, 0, nccl.get_unique_id())
    yield made
    made.destroy()


@pytest.fixture
def stream():
    return nd.cuda.Stream(non_blocking=True)


def on_gpu(framework, dtype="float32"):
    """The values as an array of the framework, and what receives them: nd's where the framework's are immutable."""
    loaded = getattr(gpu, framework)() if framework != "nd" else nd
    current(0)  # JAX leaves its last GPU current in the thread that starts it
    x = nd.asarray(VALUES, device="cuda").astype(dtype)
    sent = x if framework == "nd" else dlbridge.convert(x, loaded)
    if framework in ("nd", "jax"):
        return sent, nd.zeros(COUNT, dtype, device="cuda")
    return sent, dlbridge.convert(nd.zeros(COUNT, dtype, device="cuda"), loaded)


def host(x):
    return nd.asarray(x).astype("float64").get()


def collective(name, nccl, comm, a, b, stream):
    if name == "send and recv":
        with nccl.group():
            comm.send(a, 0, stream=stream)
            comm.recv(b, 0, stream=stream)
    elif name == "broadcast":
        comm.broadcast(a, b, 0, stream=stream)
    elif name == "allgather":
        comm.allgather(a, b, stream=stream)
    else:
        getattr(comm, name)(a, b, nccl.SUM, stream=stream)


@pytest.mark.parametrize("name", ["allreduce", "broadcast", "allgather", "reduce_scatter", "send and recv"])
@pytest.mark.parametrize("framework", ["torch", "cupy", "jax", "nd"])
def test_collectives_of_one_rank(nccl, comm, stream, framework, name):
    x, y = on_gpu(framework)
    with source(x, stream=stream) as a, buf(y, stream=stream) as b:
        collective(name, nccl, comm, a, b, stream)
    np.testing.assert_array_equal(host(y), VALUES)
    stream.synchronize()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "complex64"])
def test_dtypes(nccl, comm, stream, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="nccl4py names bfloat16 by it")
    x, y = on_gpu("nd", dtype)
    with source(x, stream=stream) as a, buf(y, stream=stream) as b:
        comm.allreduce(a, b, nccl.MAX if dtype == "bool" else nccl.SUM, stream=stream)
    assert bool((x == y).all()) and bool(x.any())


@pytest.mark.parametrize("handle", [None, 0])
def test_the_default_stream_is_nccl4pys_default(nccl, comm, handle):
    x, y = on_gpu("nd")
    with source(x, stream=handle) as a, buf(y, stream=handle) as b:
        comm.allreduce(a, b, nccl.SUM, stream=handle)
    np.testing.assert_array_equal(host(y), VALUES)


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "control"])
def test_the_data_is_waited_for_on_the_device(nccl, comm, stream, ordered):
    producer = nd.cuda.Stream(non_blocking=True)
    for warm_up in (True, False):
        with producer:
            x, y = nd.zeros(COUNT, "int32", device="cuda"), nd.zeros(COUNT, "int32", device="cuda")
        producer.synchronize()
        with Gate(limit_s=20) as gate:
            if warm_up:
                gate.open()
            with producer:
                gate.hold(producer.ptr)
                x += 7
            if ordered:
                with producer, source(x, stream=stream) as a, buf(y, stream=stream) as b:
                    comm.allreduce(a, b, nccl.SUM, stream=stream)
            else:
                comm.allreduce(x, y, nccl.SUM, stream=stream)
                stream.synchronize()
            assert warm_up or gate.is_closed(), "the host waited"
            gate.open()
            with producer:
                assert warm_up or y.tolist() == [7 if ordered else 0] * COUNT
        stream.synchronize()


def test_what_nccl_would_write_to_or_misread_is_refused():
    x = nd.zeros((4, 6), "float32", device="cuda")
    readonly = dlbridge._core.reinterpret(dlbridge.asdlpack(x), readonly=True)
    with pytest.raises(BufferError, match="read-only"), buf(readonly):
        pass
    with pytest.raises(BufferError, match="not dense in C order"), source(x.T):
        pass


@gpu.needs_two_gpus
def test_two_gpus_add_up_and_a_buffer_of_the_other_is_refused(nccl):
    identity, found, failed = nccl.get_unique_id(), {}, []

    def rank(number):
        try:
            current(number)
            with nd.cuda.Device(number):
                x = nd.full(COUNT, number + 1, "float32")
                y = nd.zeros_like(x)
                comm = nccl.Communicator.init(2, number, identity)
                with source(x) as a, buf(y) as b:
                    comm.allreduce(a, b, nccl.SUM)
                found[number] = set(y.tolist())
                other = nd.zeros(COUNT, "float32", device=f"cuda:{1 - number}")
                with pytest.raises(nccl.NcclInvalid, match="device"), buf(other) as b:
                    comm.broadcast(b, b, 0)
                comm.destroy()
        except BaseException as error:  # a thread's own would only be printed
            failed.append(error)

    threads = [threading.Thread(target=rank, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == [] and found == {0: {3.0}, 1: {3.0}}
