"""Dask: arrays on the wire, nd arrays as chunks of dask.array, and both on a cluster of two processes."""

import asyncio
import copy
import re
import subprocess
import sys
from pathlib import Path

import dlbridge
import pytest
from child_process import HANG_S
from dlbridge import asdlpack, convert, nd

np = pytest.importorskip("numpy", reason="NumPy is Dask's")
pytest.importorskip("distributed", reason="Dask carries the arrays")
da = pytest.importorskip("dask.array", reason="Dask carries the arrays")

import dask_work  # noqa: E402
import dlbridge.dask  # noqa: E402
from dask.distributed import Client, LocalCluster, wait  # noqa: E402
from distributed.comm import connect, listen  # noqa: E402
from distributed.protocol import deserialize, serialize, to_serialize  # noqa: E402
from dlbridge.dask import _frames  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]


def over_the_wire(x, receive=bytearray):
    """The array of what `receive` made of the bytes that were sent, and the header."""
    header, frames = serialize(x, serializers=("dask",), on_error="raise")
    return deserialize(header, [receive(frame) for frame in frames]), header


# ---- on the wire

HOST_ARRAYS = {
    "Tensor": lambda x: asdlpack(x),
    "nd": lambda x: nd.from_dlpack(x),
}
LAYOUTS = {
    "dense": lambda a: a,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[::-1, ::2],
    "0-d": lambda a: a[0, 0, ...],
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", HOST_ARRAYS)
def test_arrays_arrive_as_they_were(kind, layout, dtype):
    source = LAYOUTS[layout](np.arange(24).reshape(4, 6).astype(dtype))
    x = HOST_ARRAYS[kind](source)
    found, header = over_the_wire(x)
    assert (type(found), found.dtype, header["serializer"]) == (type(x), dtype, "dask")
    np.testing.assert_array_equal(np.asarray(found), source)


@pytest.mark.parametrize("kind", HOST_ARRAYS)
def test_dense_memory_is_lent_and_not_copied(kind):
    x = HOST_ARRAYS[kind](np.arange(1000.0))
    header, frames = serialize(x)
    assert len(frames) == 1 and np.frombuffer(frames[0], "u1").ctypes.data == x.data_ptr
    received = bytearray(frames[0])
    found = deserialize(header, [received])
    assert found.data_ptr == np.frombuffer(received, "u1").ctypes.data


@pytest.mark.parametrize("receive", [bytes, bytearray])
@pytest.mark.parametrize("kind", HOST_ARRAYS)
def test_writable_stays_writable_and_read_only_stays_so(kind, receive):
    for writable in (True, False):
        source = np.arange(3)
        source.flags.writeable = writable
        assert over_the_wire(HOST_ARRAYS[kind](source), receive)[0].readonly is not writable


def test_dtypes_that_numpy_lacks():
    found, _ = over_the_wire(nd.arange(5, dtype="bfloat16", device="cpu"))
    assert (found.dtype, found.tolist()) == ("bfloat16", [0, 1, 2, 3, 4])


def test_fortran_order_is_kept():
    found, _ = over_the_wire(nd.asarray(np.asfortranarray(np.ones((3, 4)))))
    assert found.flags.f_contiguous


@pytest.fixture
def frameworks():
    """Registers, and puts back what was there: other tests look at what Dask does by itself."""
    from distributed.protocol import dask_deserialize, dask_serialize
    from dlbridge.dask import _wire

    before = dict(dask_serialize._lookup), dict(dask_deserialize._lookup), set(_wire._registered)
    yield dlbridge.dask.install
    for current, old in zip((dask_serialize._lookup, dask_deserialize._lookup, _wire._registered), before, strict=True):
        current.clear()
        current.update(old)


def test_jax_arrays_lend_their_memory_where_that_was_asked_for(frameworks):
    jax = pytest.importorskip("jax", reason="JAX makes the array")
    x = jax.numpy.arange(1000.0)
    assert serialize(x)[0]["serializer"] == "pickle"
    frameworks("jax")
    header, frames = serialize(x)
    assert header["serializer"] == "dask" and sum(len(frame) for frame in frames) == x.nbytes
    found = deserialize(header, [bytearray(frame) for frame in frames])
    assert isinstance(found, jax.Array) and (found == x).all()


def test_torch_tensors_of_any_dtype_and_those_with_a_gradient_as_before(frameworks):
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    frameworks("torch")
    for x in (torch.arange(6.0).reshape(2, 3).T, torch.arange(5, dtype=torch.bfloat16), torch.tensor(3)):
        found, header = over_the_wire(x)
        assert header["serializer"] == "dask" and found.dtype == x.dtype and torch.equal(found, x)
        found += 1  # writable, as every tensor
    found, _ = over_the_wire(torch.ones(3, requires_grad=True))
    assert found.requires_grad
    weights, _ = over_the_wire(torch.nn.Parameter(torch.ones(3)))
    assert isinstance(weights, torch.nn.Parameter)


def test_an_unknown_framework_is_named():
    with pytest.raises(ValueError, match="'numpy' is none of 'jax', 'torch'"):
        dlbridge.dask.install("numpy")


def test_sizes_are_those_of_the_data():
    from dask.sizeof import sizeof

    assert sizeof(nd.zeros(1000, "float64", device="cpu")) == sizeof(asdlpack(bytearray(8000))) == 8000


# ---- where large arrays lie when they arrive


async def through_tcp(messages):
    """What the other end of a connection of Dask's reads."""
    found, done = [], asyncio.Event()

    async def read(comm):
        found.extend([await comm.read() for _ in messages])
        done.set()

    async with listen("tcp://127.0.0.1:0", read, deserialize=True) as listener:
        comm = await connect(listener.contact_address)
        for message in messages:
            await comm.write(message)
        await asyncio.wait_for(done.wait(), HANG_S)
        await comm.close()
    return found


LARGE = 1 << 17  # bytes: beyond what is sent as one frame


@pytest.mark.parametrize("shard", ["one", "pieces"])
@pytest.mark.parametrize("kind", [*HOST_ARRAYS, "jax"])
def test_a_large_array_lies_in_what_dask_received_whatever_headers_came_before_it(kind, shard, frameworks, monkeypatch):
    if kind == "jax":
        pytest.importorskip("jax", reason="JAX makes the array")
        frameworks("jax")
    if shard == "pieces":
        monkeypatch.setattr("distributed.protocol.utils.BIG_BYTES_SHARD_SIZE", LARGE // 3)
        monkeypatch.setattr("distributed.comm.tcp.TCP.max_shard_size", LARGE // 3)
    received, frames = _frames.received, []
    monkeypatch.setattr(_frames, "received", lambda *args: frames.append(received(*args)) or frames[-1])
    source = np.arange(LARGE / 4, dtype="float32")
    x = convert(source, "jax") if kind == "jax" else HOST_ARRAYS[kind](source)
    messages = [{"x" * length: to_serialize(x)} for length in range(1, 6)]
    for message in asyncio.run(through_tcp(messages)):
        found = asdlpack(message.popitem()[1])
        assert found.data_ptr == asdlpack(frames.pop(0)).data_ptr
        np.testing.assert_array_equal(np.asarray(found), source)


def in_one_piece(frames, headers):
    """Frames as a connection receives the first ones of a message, behind so many bytes."""
    memory, begin, found = memoryview(bytearray(headers + sum(map(len, frames)))), headers, []
    for frame in frames:
        found.append(memory[begin : begin + len(frame)])
        found[-1][:] = frame
        begin += len(frame)
    return found


def test_an_array_that_is_moved_in_place_can_be_read_again_and_sent_on(frameworks):
    jax = pytest.importorskip("jax", reason="JAX makes the array")
    frameworks("jax")
    x = jax.numpy.arange(LARGE / 4, dtype="float32")
    header, frames = serialize(x)
    first = in_one_piece(frames, 3)
    one, again = deserialize(header, first), deserialize(header, first)
    assert one.unsafe_buffer_pointer() == again.unsafe_buffer_pointer()
    for receive in (lambda frame: in_one_piece([frame], 0)[0], bytes):
        apart = deserialize(copy.deepcopy(header), [receive(frame) for frame in first])
        onward = deserialize(copy.deepcopy(header), in_one_piece(first, 7))
        for found in (one, again, apart, onward):
            assert (found == x).all()


@pytest.mark.gpu
@pytest.mark.parametrize("family", ["cuda", "dask"])
@pytest.mark.parametrize("kind", ["Tensor", "nd"])
def test_arrays_of_a_gpu_stay_there_or_go_by_the_host(kind, family):
    x = nd.arange(24, dtype="float32", device="cuda").reshape(4, 6)
    for view in (x, x.T, x[::2, 1:]):
        sent = asdlpack(view.__dlpack__(max_version=(1, 0))) if kind == "Tensor" else view
        header, frames = serialize(sent, serializers=(family,), on_error="raise")
        assert hasattr(frames[0], "__cuda_array_interface__") == (family == "cuda")
        found = deserialize(header, frames)
        assert (found.device, isinstance(found, nd.ndarray)) == ("cuda:0", kind == "nd")
        assert nd.asarray(found).tolist() == view.tolist()


# ---- as chunks

OPERATIONS = {
    "slice": lambda x: x[1:, ::2],
    "index array": lambda x: x[[0, 3]],
    "mask": lambda x: x[x > 3],
    "vindex": lambda x: x.vindex[[0, 1], [1, 2]],
    "ufunc": lambda x: np.exp(x / 24) + 1,
    "where": lambda x: da.where(x > 3, x, 0),
    "sum": lambda x: x.sum(axis=0),
    "mean": lambda x: x.mean(axis=1, keepdims=True),
    "mean of all": lambda x: x.mean(),
    "std": lambda x: x.std(),
    "moment": lambda x: x.moment(3),
    "argmax": lambda x: x.argmax(axis=0),
    "any": lambda x: (x > 3).any(),
    "cumsum": lambda x: x.cumsum(axis=0),
    "nanmean": lambda x: da.nanmean(x, axis=0),
    "average": lambda x: da.average(x, axis=0, weights=x),
    "cov": lambda x: da.cov(x),
    "percentile": lambda x: da.percentile(x.reshape(24), [10, 50]),
    "median": lambda x: da.median(x, axis=0),
    "histogram": lambda x: da.histogram(x, bins=4, range=(0, 24))[0],
    "bincount": lambda x: da.bincount(x.reshape(24).astype("int64"), minlength=24),
    "topk": lambda x: da.topk(x.reshape(24), 3),
    "unique": lambda x: da.unique(x.reshape(24)),
    "searchsorted": lambda x: da.searchsorted(x.reshape(24), x.reshape(24)),
    "matmul": lambda x: x @ x.T,
    "tensordot": lambda x: da.tensordot(x, x, axes=((1,), (1,))),
    "einsum": lambda x: da.einsum("ij,kj->ik", x, x),
    "norm": lambda x: da.linalg.norm(x),
    "svd": lambda x: da.linalg.svd(x.rechunk((2, 6)))[1],
    "qr": lambda x: da.linalg.qr(x.rechunk((2, 6)))[1],
    "fft": lambda x: da.fft.fft(x.rechunk((4, 6))),
    "concatenate": lambda x: da.concatenate([x, x], axis=1),
    "stack": lambda x: da.stack([x, x]),
    "take": lambda x: da.take(x, [1, 2], axis=1),
    "compress": lambda x: da.compress([True, False, True, False], x, axis=0),
    "reshape": lambda x: x.reshape(24).rechunk(5),
    "pad": lambda x: da.pad(x, 1),
    "roll": lambda x: da.roll(x, 1, axis=1),
    "map_blocks": lambda x: x.map_blocks(lambda block: block * 2),
    "map_overlap": lambda x: x.map_overlap(lambda block: block + 1, depth=1, boundary="reflect"),
    "reduction": lambda x: da.reduction(x, np.sum, np.sum, dtype=float, concatenate=True),
    "apply_gufunc": lambda x: da.apply_gufunc(lambda block: block.sum(-1), "(i)->()", x.rechunk((2, 6))),
    "zeros_like": lambda x: da.zeros_like(x) + 1,
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_dask_array_over_nd_chunks_gives_what_numpys_give(operation):
    source = np.arange(24.0).reshape(4, 6)
    ours, theirs = [
        operation(da.from_array(x, chunks=(2, 3), asarray=False)).compute(scheduler="sync")
        for x in (nd.array(source, device="cpu"), source)
    ]
    assert type(ours) is nd.HostArray
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(nd.asnumpy(ours), theirs, rtol=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["mean", "std", "index array", "matmul", "concatenate", "percentile", "map_blocks"])
def test_chunks_on_a_gpu_stay_there(name):
    source = np.arange(24.0).reshape(4, 6)
    x = da.from_array(nd.array(source, device="cuda"), chunks=(2, 3), asarray=False)
    found = OPERATIONS[name](x).compute(scheduler="sync")
    assert type(found) is nd.CudaArray
    expected = OPERATIONS[name](da.from_array(source, chunks=(2, 3))).compute(scheduler="sync")
    np.testing.assert_allclose(nd.asnumpy(found), expected, rtol=1e-12)


# ---- on a cluster


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None) as cluster,
        Client(cluster, timeout=HANG_S) as client,
    ):
        yield client


def test_a_worker_registers_by_itself_when_an_array_arrives(client):
    for x, expected in ((nd.arange(4, device="cpu"), "HostArray"), (asdlpack(bytearray(4)), "HostTensor")):
        found = client.submit(dask_work.kinds, client.scatter(x), pure=False).result(HANG_S)
        assert found == (expected, str(x.dtype), True)


def test_arrays_go_to_a_worker_from_there_to_another_and_come_back(client):
    first, second = client.scheduler_info()["workers"]
    x = nd.arange(100_000, dtype="float64", device="cpu")
    there = client.submit(dask_work.doubled, client.scatter(x, workers=[first]), workers=[first], pure=False)
    onward = client.submit(dask_work.doubled, there, workers=[second], pure=False)
    found = onward.result(HANG_S)
    assert type(found) is nd.HostArray and not found.readonly
    assert (found == x * 4).all()
    tensor = client.submit(dask_work.tensor, onward, workers=[first], pure=False).result(HANG_S)
    assert isinstance(tensor, dlbridge.HostTensor) and (nd.asarray(tensor) == found).all()


def test_arrays_of_other_frameworks_between_workers(client, frameworks):
    pytest.importorskip("torch", reason="torch makes the tensor")
    pytest.importorskip("jax", reason="JAX makes the array")
    frameworks("jax", "torch", client=client)
    first, second = client.scheduler_info()["workers"]
    for framework, dtype in (("torch", "bfloat16"), ("jax", "float32")):
        x = client.submit(dask_work.made, framework, dtype, 100, workers=[first], pure=False)
        assert client.submit(dask_work.total, x, workers=[second], pure=False).result(HANG_S) == 4950
        found = x.result(HANG_S)
        assert type(found).__module__.partition(".")[0].removesuffix("lib") == framework
        assert convert(found, "dlbridge").dtype == dtype


def test_dask_array_on_the_cluster(client):
    source = np.random.default_rng(0).random((400, 50))
    # Chunks become nd arrays in the workers: the client keeps the arrays of a graph that it sent, NumPy's as ours.
    x = da.from_array(source, chunks=(100, 50)).map_blocks(dask_work.as_nd).persist()
    wait(x, timeout=HANG_S)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    found = client.compute(x.T @ x / len(source)).result(HANG_S)
    assert type(found) is nd.HostArray
    np.testing.assert_allclose(nd.asnumpy(found), np.corrcoef(source.T), atol=1e-12)


def test_the_program_of_the_readme_runs(tmp_path):
    readme = REPOSITORY / "README.md"
    if not readme.exists():
        pytest.skip("README.md is in a checkout only")
    program = re.search(r"^```python [^\n]*\n((?:(?!```).)*LocalCluster.*?)^```", readme.read_text(), re.M | re.S)[1]
    assert len(program.strip().splitlines()) <= 10
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "HostArray" in done.stdout or "CudaArray" in done.stdout
