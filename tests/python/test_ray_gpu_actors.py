"""Ray itself, with arrays on a GPU: what its actors give one another and the driver stays where it lies."""

import gpu_frameworks as gpu
import pytest
from child_process import HANG_S

pytestmark = gpu.needs_gpu
ray = pytest.importorskip("ray", reason="Ray carries the arrays")

import ray_cluster  # noqa: E402
import ray_work  # noqa: E402
from dlbridge import nd  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster.started(num_gpus=1) as folder:
        yield folder


@pytest.fixture(scope="module")
def holders(cluster):
    """Two actors that share the GPU."""
    return [ray_work.Holder.options(num_gpus=0.4).remote() for _ in range(2)]


def value(ref):
    return ray.get(ref, timeout=HANG_S)


def test_an_actor_writes_to_anothers_array(holders):
    first, second = holders
    ref = first.numbers.remote(1000, "cuda")
    assert value(second.add.remote(ref, 1)) == 500_500
    assert value(first.total.remote()) == 500_500  # it is the first one's memory
    assert float(value(ref).sum()) == 500_500  # and the driver's


def test_a_reader_waits_for_what_the_maker_has_queued(holders):
    first, second = holders
    size, rounds = 1 << 24, 50
    assert value(second.totals.remote(first.queued.remote(size, rounds))) == {"host": 3 * rounds, "gpu": size * rounds}


def test_a_reader_has_the_array_when_nobody_else_refers_to_it(holders):
    ref = holders[0].queued.remote(1000, 1)
    found = value(ref)["gpu"]
    del ref
    value(holders[0].numbers.remote(1000, "cuda"))  # takes other memory, for that is not free
    assert str(found.device) == "cuda:0" and float(found.sum()) == 1000


def test_torch_tensors_go_by_a_transport_of_their_own(holders):
    torch = gpu.torch()
    first, second = holders
    ref = first.tensor.remote(1000, "cuda")
    assert value(second.add.remote(ref, 1)) == 500_500
    found = value(ref)
    assert isinstance(found, torch.Tensor) and found.is_cuda and float(found[0]) == 1


def test_a_driver_puts_and_an_actor_reads(holders):
    x = nd.full(1000, 2.0, device="cuda")
    ref = ray.put(x, _tensor_transport="dlbridge")
    assert value(holders[0].add.remote(ref, 1)) == 3000
    assert float(x.sum()) == 3000


def test_an_actor_that_does_not_see_the_gpu_is_told_what_to_do(holders):
    ref = holders[0].numbers.remote(3, "cuda")
    blind = ray_work.Holder.options(runtime_env={"env_vars": {"CUDA_VISIBLE_DEVICES": ""}}).remote()
    with pytest.raises(ray.exceptions.RayError, match="num_gpus="):
        value(blind.add.remote(ref, 1))
