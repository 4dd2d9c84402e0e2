"""Actors of Ray that give each other CUDA arrays without a GPU: the fake driver gives its memory to other processes.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import dlbridge.ray
import ray
import ray_cluster
from child_process import HANG_S
from dlbridge import asdlpack, convert, nd
from dlbridge.nd import cuda
from fake_cases_share import Pooled, gc, soon
from fake_cuda import *

dlbridge.ray.register_transport()  # before the class that names it


@ray.remote(num_cpus=0, enable_tensor_transport=True)
class Actor:
    """Makes an array in the driver's memory, and reads those of others."""

    def __init__(self):
        self.memory = Pooled()

    @ray.method(tensor_transport="dlbridge")
    def make(self):
        return {"gpu": convert(CaiArray(self.memory), "nd"), "host": nd.from_dlpack(asdlpack(b"host"))}

    def wait(self):
        """A driver without a GPU works when somebody waits, and the process that has the work."""
        cuda.Device(0).synchronize()

    def read(self, tree):
        return type(tree["gpu"]).__name__, values(tree["gpu"], 6), bytes(memoryview(tree["host"]))

    def address(self, tree=None):
        return self.memory.address if tree is None else tree["gpu"].data_ptr

    def kept(self):
        from ray.experimental.rdt.util import transport_managers

        return len(transport_managers["DLBRIDGE"].handles)


def error_of(ref):
    try:
        return ray.get(ref, timeout=HANG_S)
    except Exception as error:
        return str(error)


def test_ray_itself_passes_cuda_arrays_between_actors():
    with ray_cluster.started(num_gpus=2, object_store_memory=128 << 20):
        first, second = (Actor.options(num_gpus=0.5).remote() for _ in range(2))  # they share one
        hidden = Actor.options(num_gpus=1).remote()  # that has the other
        ref = first.make.remote()
        ray.get(first.wait.remote(), timeout=HANG_S)
        assert ray.get(second.read.remote(ref), timeout=HANG_S) == ("CudaArray", list(range(6)), b"host")
        own = ray.get([first.address.remote(ref), first.address.remote()], timeout=HANG_S)
        assert own[0] == own[1]  # its own array
        assert ray.get(first.kept.remote(), timeout=HANG_S) == 1
        text = error_of(hidden.read.remote(ref))
        assert "the array is on GPU-00000000" in text and "num_gpus=" in text, text
        del ref
        soon(lambda: ray.get(first.kept.remote(), timeout=HANG_S) == 0)
        gc.collect()


if __name__ == "__main__":
    main(globals())
