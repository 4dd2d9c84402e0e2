"""PyTorch's DTensor in four processes over gloo: test_shards.py runs this file. The first one says "passed"."""

import sys
import tempfile

import pytest
import torch
import torch.distributed
import torch.multiprocessing
from dlbridge import DataError, asdlpack, assemble, convert, nd, shards
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

SOURCE = torch.arange(35.0).reshape(5, 7)  # no number of processes divides it
PLACEMENTS = [
    [Shard(0), Shard(1)],
    [Shard(0), Shard(0)],
    [Shard(1), Replicate()],
    [Replicate(), Shard(0)],
    [Replicate(), Replicate()],
]


def check_parts(mesh, placements):
    x = distribute_tensor(SOURCE, mesh, placements)
    (part,) = shards(x)
    assert part.array.data_ptr == x.to_local().data_ptr() and part.shape == (5, 7)
    assert torch.equal(torch.from_dlpack(part.array), SOURCE[part.index])
    replicas = [None] * 4
    torch.distributed.all_gather_object(replicas, (str(part.index), part.replica))
    assert len(set(replicas)) == 4, "processes with the same part have numbers of their own"

    again = assemble([part], like=x)
    assert isinstance(again, DTensor) and again.placements == x.placements
    assert again.to_local().data_ptr() == x.to_local().data_ptr()
    twice = assemble([(part.index, nd.from_dlpack(part.array) * 2)], like=x)
    assert torch.equal(twice.full_tensor(), SOURCE * 2)


def check_refusals(mesh):
    x = distribute_tensor(SOURCE, mesh, [Shard(0), Replicate()])
    (part,) = shards(x)
    rows = part.index[0]
    for refuses in (asdlpack, nd.asarray, lambda d: convert(d, "numpy")):
        with pytest.raises(BufferError, match=r"a DTensor, whose parts lie on several devices.*dlbridge.shards\(x\)"):
            refuses(x)
    with pytest.raises(ValueError, match=r"there is a hole"):
        assemble([], like=x)
    with pytest.raises(ValueError, match=r"they overlap"):
        assemble([part, part], like=x)
    with pytest.raises(ValueError, match=r"it overlaps \[\d:\d, 0:7\]"):
        assemble([((rows, slice(0, 3)), SOURCE[rows, :3])], like=x)
    with pytest.raises(DataError, match="part 0 is of dtype float64, and `like` of float32"):
        assemble([(part.index, SOURCE[rows].double())], like=x)
    partial = DTensor.from_local(SOURCE, mesh, [Partial(), Replicate()])
    for refused in (lambda: shards(partial), lambda: assemble([part], like=partial)):
        with pytest.raises(ValueError, match="partial results .* Reduce them first"):
            refused()


def main(rank, path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}/group", rank=rank, world_size=4)
    mesh = init_device_mesh("cpu", (2, 2))
    for placements in PLACEMENTS:
        check_parts(mesh, placements)
    check_refusals(mesh)
    with_gradient = distribute_tensor(SOURCE.clone().requires_grad_(), mesh, PLACEMENTS[0])
    assert shards(with_gradient)[0].array.dtype == "float32"
    torch.distributed.barrier()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(main, args=(folder,), nprocs=4)
    print("passed")
    sys.exit()
