"""Two GPUs: arrays cross between them in stream order, and what cannot meet says so."""

import itertools

import pytest
from dlbridge import _core, asdlpack, nd
from dlbridge.nd import _native, cuda
from dlbridge.tests._gate import Gate

np = pytest.importorskip("numpy", reason="the oracle of the tests")
COUNT = _core.cuda_info()["device_count"]
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(COUNT < 2, reason=f"needs two GPUs; there are {COUNT}")]

LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "stepped": lambda x: x[::2, 1::3],
    "reversed": lambda x: x[::-1],
    "broadcast": lambda x: nd.broadcast_to(x[0], (5, x.shape[1])),
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_keep_values_and_dtype_both_ways(layout, dtype):
    source = LAYOUTS[layout](nd.arange(40 * 60, device="cuda:0").reshape(40, 60).astype(dtype))
    there = source.to_device("cuda:1")
    assert (str(there.device), there.dtype, there.shape) == ("cuda:1", source.dtype, source.shape)
    np.testing.assert_array_equal(there.get(), source.get())
    np.testing.assert_array_equal(there.to_device("cuda:0").get(), source.get())
    target = nd.zeros(source.shape, "complex128", device="cuda:1")
    nd.copyto(target, source.astype("complex128"))
    np.testing.assert_array_equal(target.get(), source.get().astype("complex128"))


def test_copies_wait_for_the_work_before_and_the_memory_for_the_copy():
    n = 1 << 24
    for near, far in itertools.permutations((0, 1)):
        with cuda.Device(near), cuda.Stream(non_blocking=True) as stream, Gate(limit_s=5) as gate:
            x = nd.zeros(n, "int32")
            gate.hold(stream.ptr)
            for _ in range(50):
                x += 1
            moved = x.to_device(f"cuda:{far}")
            x += 1000  # the copy must not see it
            del x
            reused = nd.full(n, -1, "int32")  # may get its memory
        with cuda.Device(far):
            assert bool((moved == 50).all())
        assert bool((reused == -1).all())


def test_the_current_device_is_that_of_the_block_and_of_the_thread():
    assert str(nd.arange(3).device) == "cuda:0"
    with cuda.Device(1):
        x = nd.arange(3)
        assert str(x.device) == "cuda:1" and str((x * 2).device) == "cuda:1"
        with cuda.Device(0):
            assert (x + 1).tolist() == [1, 2, 3] and str((x + 1).device) == "cuda:1"
    assert str(nd.arange(3).device) == "cuda:0"
    assert repr(cuda.Device(1)) == "<CUDA Device 1>" and cuda.Device(1).mem_info[1] >= 1 << 30


def test_operands_of_two_devices_meet_on_the_firsts_where_it_reaches_the_other():
    here, there = nd.arange(4, device="cuda:0"), nd.full(4, 10, device="cuda:1")
    if cuda.can_access_peer(0, 1):
        for total in (here + there, nd.where(here >= 0, here + 10, there), nd.add(here, there, out=nd.zeros(4, int))):
            assert str(total.device) == "cuda:0" and total.tolist() == [10, 11, 12, 13]
    else:
        with pytest.raises(ValueError, match=r"cuda:[01].*cuda:[01]"):
            here + there
    for call in (lambda: nd.concat([here, there]), lambda: here @ there, lambda: here[there]):
        with pytest.raises((ValueError, IndexError), match=r"cuda:[01].*cuda:[01]"):
            call()


def test_arrays_are_moved_to_the_gpu_of_a_device_block():
    here = nd.arange(1 << 20, device="cuda:0")
    with cuda.Device(1):
        there = nd.asarray(here)
        assert str(there.device) == "cuda:1" and bool((there == nd.arange(1 << 20)).all())
        assert nd.asarray(there) is there and str(nd.from_dlpack(here).device) == "cuda:0"
    assert nd.asarray(there) is there and nd.asarray(here) is here


def test_the_condition_of_where_comes_from_another_gpu():
    condition, out = nd.asarray([0, 2, 0, 1], device="cuda:1"), nd.zeros(4, "int64", device="cuda:0")
    x = nd.arange(4, device="cuda:0")
    if cuda.can_access_peer(0, 1):
        _native.where(condition, x, x + 10, out=out)
        assert out.tolist() == [10, 1, 12, 3]


def test_kernels_run_where_their_arrays_are():
    kernel = nd.ElementwiseKernel("T x", "T y", "y = x * 2 + 1", "two_x_plus_1")
    try:
        for device in ("cuda:0", "cuda:1"):
            x = nd.arange(5, dtype="float32", device=device)
            assert kernel(x).tolist() == [1, 3, 5, 7, 9] and str(kernel(x).device) == device
            assert x.sum().item() == 10 and (x @ x).item() == 30 and nd.sort(-x).tolist() == [-4, -3, -2, -1, 0]
    except RuntimeError as error:
        if "NVRTC" not in str(error):
            raise
        pytest.skip(str(error).splitlines()[0])


def test_each_device_has_a_pool_of_its_own():
    pool = cuda.get_default_memory_pool()
    with cuda.Device(1):
        before = pool.used_bytes()
        x = nd.empty(1 << 20, "uint8")
        assert pool.used_bytes() >= before + (1 << 20)
        with cuda.Device(0):
            used_here = pool.used_bytes()
        del x
        assert pool.used_bytes() == before
    assert pool.used_bytes() == used_here


def test_streams_and_events_across_devices():
    with cuda.Device(0):
        first = cuda.Stream(non_blocking=True)
    with cuda.Device(1):
        second = cuda.Stream(non_blocking=True)
        x = nd.zeros(1 << 22, "int32")
    with Gate(limit_s=5) as gate:
        with cuda.Device(0), first:
            source = nd.zeros(1 << 22, "int32")
            gate.hold(first.ptr)
            for _ in range(20):
                source += 1
            done = first.record()
        second.wait_event(done)
        with cuda.Device(1), second:
            nd.copyto(x, source)
            x += 1
    second.synchronize()
    assert bool((x == 21).all())


def test_other_frameworks_take_arrays_of_the_second_device():
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("PyTorch sees one GPU")
    x = nd.arange(6, dtype="float32", device="cuda:1")
    tensor = torch.from_dlpack(x)
    assert tensor.device.index == 1 and tensor.tolist() == [0, 1, 2, 3, 4, 5]
    back = nd.from_dlpack(tensor + 1)
    assert str(back.device) == "cuda:1" and back.sum().item() == 21
    assert asdlpack(torch.ones(3, device="cuda:1"), device="cuda:0").device == "cuda:0"
    moved = nd.asarray(tensor, device="cuda:0")
    assert str(moved.device) == "cuda:0" and moved.tolist() == tensor.tolist()
