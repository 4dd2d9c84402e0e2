"""Ray: arrays over its object store, and between actors by a transport of shared memory, on this machine."""

import contextlib
import gc
import time
from importlib.util import find_spec
from pathlib import Path

import dlbridge
import pytest
from child_process import HANG_S
from dlbridge import asdlpack, convert, empty_shared, nd

np = pytest.importorskip("numpy", reason="NumPy is Ray's")
ray = pytest.importorskip("ray", reason="Ray carries the arrays")

import dlbridge.ray  # noqa: E402
import ray_cluster  # noqa: E402
import ray_work  # noqa: E402
from ray.util.serialization import deregister_serializer  # noqa: E402

FRAMEWORKS = tuple(name for name in ("jax", "torch") if find_spec(name))
STORE_BYTES = 128 << 20


def processes_naming(text):
    """The command lines of Ray's processes with a text in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # one that has ended since
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if text in line]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """A Ray of this machine, which leaves no process."""
    hook = {"worker_process_setup_hook": lambda: dlbridge.ray.install(*FRAMEWORKS)}
    with ray_cluster.started(num_gpus=0, object_store_memory=STORE_BYTES, runtime_env=hook) as folder:
        yield
        gc.collect()
        deregister_serializer(nd.HostArray)  # Ray's own, of what was sent by the transport
    until = time.monotonic() + HANG_S
    while (left := processes_naming(folder)) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []


@pytest.fixture
def installed():
    """`install()`, which is undone."""
    yield dlbridge.ray.install
    dlbridge.ray.uninstall()


def there_and_back(x):
    return ray.get(ray.put(x), timeout=HANG_S)


def address(x):
    return asdlpack(x).data_ptr


# ---- the object store

HOST_ARRAYS = {"Tensor": lambda x: asdlpack(x.copy()), "nd": lambda x: nd.array(x, device="cpu")}
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: nd.from_dlpack(x).T,
    "strided": lambda x: nd.from_dlpack(x)[::-1, ::2],
    "empty": lambda x: nd.from_dlpack(x)[:0],
}


@pytest.mark.parametrize("kind", HOST_ARRAYS)
def test_every_reader_has_the_memory_of_the_store_read_only(kind):
    x = HOST_ARRAYS[kind](np.arange(100_000.0))
    ref = ray.put(x)
    first, second = ray.get(ref, timeout=HANG_S), ray.get(ref, timeout=HANG_S)
    assert first.data_ptr == second.data_ptr != x.data_ptr
    assert (first.readonly, x.readonly) == (True, False)
    np.testing.assert_array_equal(np.asarray(first), np.arange(100_000.0))
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(first)[0] = 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", HOST_ARRAYS)
def test_arrays_arrive_as_they_were(kind, layout):
    source = np.arange(24).reshape(4, 6)
    x = LAYOUTS[layout](HOST_ARRAYS[kind](source))
    found = there_and_back(x)
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    assert nd.asarray(found).tolist() == nd.asarray(x).tolist()


def test_arrays_in_containers_share_the_store_too():
    tree = {"a": nd.ones((50, 500), "bfloat16", device="cpu"), "b": [asdlpack(np.arange(20_000.0))]}
    ref = ray.put(tree)
    first, second = ray.get(ref), ray.get(ref)
    assert first["a"].dtype == "bfloat16"
    assert first["a"].data_ptr == second["a"].data_ptr
    assert first["b"][0].data_ptr == second["b"][0].data_ptr


def test_an_array_keeps_its_memory_in_the_store_and_gives_it_back():
    x = there_and_back(nd.full(6 << 20, 3.0, device="cpu"))  # 48 MiB of 128; the reference is gone at once
    for _ in range(6):  # more than would fit together
        there_and_back(nd.zeros(6 << 20, device="cpu"))
    assert bool((x == 3).all())


def test_jax_arrays_are_read_where_they_lie(installed):
    jax = pytest.importorskip("jax", reason="JAX makes the array")
    x = jax.numpy.arange(100_000)
    ref = ray.put(x)
    assert address(ray.get(ref)) != address(ray.get(ref))  # Ray's own way
    installed("jax")
    ref = ray.put(x)
    first, second = ray.get(ref), ray.get(ref)
    assert isinstance(first, jax.Array) and (first == x).all()
    assert address(first) == address(second) != address(x)


def test_torch_tensors_are_copied_once_for_they_cannot_be_read_only(installed):
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    installed("torch")
    for x in (torch.arange(100_000), torch.arange(6.0).reshape(2, 3).T, torch.ones(5, dtype=torch.bfloat16)):
        ref = ray.put(x)
        first, second = ray.get(ref), ray.get(ref)
        assert first.dtype == x.dtype and torch.equal(first, x)
        first += 1
        assert torch.equal(second, x) and torch.equal(ray.get(ref), x)


def test_what_cannot_lend_its_memory_goes_as_before(installed):
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    installed("torch")
    found = there_and_back(torch.ones(3, requires_grad=True))
    assert type(found) is torch.Tensor and found.requires_grad
    assert isinstance(there_and_back(torch.nn.Parameter(torch.ones(3))), torch.nn.Parameter)


@pytest.mark.parametrize("to", ["dlbridge", "nd", "numpy", "jax"])
def test_any_framework_in_and_any_out(installed, to):
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    if to in ("numpy", "jax"):
        pytest.importorskip(to, reason="it is what comes out")
    installed("torch", to=to)
    ref = ray.put(torch.arange(100_000))
    first, second = ray.get(ref), ray.get(ref)
    assert convert(first, "numpy").sum() == 4999950000
    assert isinstance(first, type(convert(asdlpack(bytes(8)), to)))
    assert address(first) == address(second)  # not copied where it is read


def test_uninstall_puts_back_what_was_there(installed):
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    from ray.cloudpickle import CloudPickler

    before = CloudPickler.dispatch.get(torch.Tensor)
    installed("torch")
    installed("torch", to="nd")
    assert CloudPickler.dispatch.get(torch.Tensor) is not before
    dlbridge.ray.uninstall()
    assert CloudPickler.dispatch.get(torch.Tensor) is before


def test_an_unknown_framework_is_named():
    with pytest.raises(ValueError, match=r"ray.install\(\): 'cupy' is none of 'jax', 'torch'"):
        dlbridge.ray.install("cupy")
    with pytest.raises(ValueError, match=r"register_transport\(\): 'numpy' is none of 'nd', 'cupy', 'jax', 'torch'"):
        dlbridge.ray.register_transport("numpy", "other")


def test_arrays_to_workers_and_back(installed):
    for name in ("jax", "torch"):
        pytest.importorskip(name, reason="it makes the array")
    installed("jax", "torch")
    x = nd.arange(100_000, device="cpu")
    assert ray.get(ray_work.described.remote(x), timeout=HANG_S) == ("HostArray", "int64", True)
    for framework, dtype in (("nd", "float64"), ("jax", "float32"), ("torch", "bfloat16")):
        ref = ray_work.made.remote(framework, dtype, 100_000)
        found = ray.get(ref, timeout=HANG_S)
        assert convert(found, "dlbridge").dtype == dtype
        assert (address(found) == address(ray.get(ref))) == (framework != "torch")
        name, found_dtype, _ = ray.get(ray_work.described.remote(ref), timeout=HANG_S)
        assert (name, found_dtype) == (type(found).__name__, str(found.dtype))


# ---- the transport


@pytest.fixture(scope="module")
def holders(cluster):
    return [ray_work.Holder.remote() for _ in range(2)]


def count_of(holder, expected):
    """How many objects the actor's transport keeps, once Ray has said so."""
    until = time.monotonic() + HANG_S
    while (found := ray.get(holder.waiting.remote(), timeout=HANG_S)) != expected and time.monotonic() < until:
        gc.collect()
        time.sleep(0.05)
    return found


def test_an_actor_gives_another_its_memory(holders):
    first, second = holders
    ref = first.shared.remote(1000)
    found = ray.get(ref, timeout=HANG_S)
    assert (found["name"], found["x"].readonly) == ("shared", False)
    found["x"] += 1
    assert ray.get(first.total.remote(), timeout=HANG_S) == 2000  # the actor's own array
    assert ray.get(second.described.remote(ref), timeout=HANG_S) == ["x HostArray", "name str"]


def test_memory_that_is_private_is_copied_once_for_all_readers(holders):
    first, second = holders
    ref = first.numbers.remote(1000)
    assert ray.get(second.add.remote(ref, 1), timeout=HANG_S) == 500_500
    assert ray.get(ref, timeout=HANG_S).sum() == 500_500  # they see what one of them wrote


def test_an_object_is_kept_until_no_reference_is_left(holders):
    first, _ = holders
    kept = count_of(first, 0)
    ref = first.numbers.remote(1000)
    found = ray.get(ref, timeout=HANG_S)
    assert count_of(first, kept + 1) == kept + 1
    del ref
    assert count_of(first, kept) == kept
    assert found.sum() == 499_500  # a reader has it all the same


def test_a_driver_puts_and_workers_read(holders):
    x = empty_shared(1000)
    x[:] = 2
    ref = ray.put(x, _tensor_transport="dlbridge")
    assert ray.get(holders[0].add.remote(ref, 1), timeout=HANG_S) == 3000
    assert x.sum() == 3000


def test_read_only_arrays_stay_so(holders):
    x = nd.from_dlpack(asdlpack(bytes(8)))
    ref = ray.put(x, _tensor_transport="dlbridge")
    with pytest.raises(ray.exceptions.RayTaskError, match="read-only"):
        ray.get(holders[0].add.remote(ref, 1), timeout=HANG_S)


def test_torch_tensors_by_a_transport_of_their_own(holders):
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    first, second = holders
    ref = first.tensor.remote(1000)
    assert ray.get(second.add.remote(ref, 1), timeout=HANG_S) == 500_500
    found = ray.get(ref, timeout=HANG_S)
    assert isinstance(found, torch.Tensor) and found[0] == 1


def test_readers_have_the_framework_that_a_transport_gives(holders):
    first, second = holders
    ref = first.for_numpy.remote(1000)
    assert ray.get(second.described.remote(ref), timeout=HANG_S) == ["x ndarray"]
    found, again = (ray.get(ref, timeout=HANG_S)["x"] for _ in range(2))
    assert type(found) is np.ndarray and address(found) == address(again)


def test_a_large_array_takes_none_of_the_object_store(holders):
    found = ray.get(holders[0].numbers.remote(STORE_BYTES // 8 + 1), timeout=HANG_S)
    assert found.nbytes > STORE_BYTES
    assert found[-1] == STORE_BYTES // 8


@pytest.fixture
def transport(cluster):
    from dlbridge.ray._transport import SharedMemoryTransport

    return SharedMemoryTransport()


def test_the_memory_of_another_node_is_refused(transport):
    meta = transport.extract_tensor_transport_metadata("1", [nd.ones(3, device="cpu")])
    meta.node = "of another machine"
    with pytest.raises(ValueError, match="one node: use the object store"):
        transport.recv_multiple_tensors("1", meta, None)


def test_buffers_of_the_readers_are_refused(transport):
    x = nd.ones(3, device="cpu")
    meta = transport.extract_tensor_transport_metadata("1", [x])
    with pytest.raises(NotImplementedError, match="fills no buffers"):
        transport.recv_multiple_tensors("1", meta, None, [x])


def test_an_object_without_arrays_has_no_memory(transport):
    meta = transport.extract_tensor_transport_metadata("1", [])
    assert (meta.tensor_meta, transport.recv_multiple_tensors("1", meta, None)) == ([], [])


def test_a_task_that_is_tried_again_gives_the_same_memory(transport):
    x = nd.ones(3, device="cpu")
    first, second = (transport.extract_tensor_transport_metadata("1", [x]) for _ in range(2))
    assert first.handle is second.handle
    transport.garbage_collect("1", first, [x])
    assert transport.handles == {}
