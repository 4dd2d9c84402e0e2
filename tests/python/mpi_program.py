"""What the processes of test_mpi.py do: `mpiexec -n N python mpi_program.py CASE`. The first one says "passed"."""

import faulthandler
import gc
import sys

import numpy as np
from dlbridge import _core, asdlpack, convert, nd
from dlbridge.mpi import MAX, MIN, PROD, SUM, buf
from mpi4py import MPI

faulthandler.dump_traceback_later(90, exit=True)
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
after, before = (rank + 1) % size, (rank - 1) % size

DTYPES = ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]


def made(values, dtype):
    return nd.array(values, dtype=dtype, device="cpu")


def exchanged(x, y):
    """What the process before this one has in x, in y."""
    world.Sendrecv(buf(x), after, recvbuf=buf(y, writes=True), source=before)
    return y


def case_arrays_of_every_dtype_go_round():
    for dtype in DTYPES:
        x, y = made([rank % 2, 1, 0], dtype), made([0, 0, 0], dtype)
        assert exchanged(x, y).tolist() == [before % 2, 1, 0], dtype
    for dtype, extent in (("float8_e5m2", 6), ("float6_e2m3fn", 8), ("float4_e2m1fn", 12)):  # of six bytes
        sent, received = bytes([rank + 1] * 6), bytearray(7)
        x, y = (_core.reinterpret(asdlpack(m), dtype=dtype, shape=(extent,)) for m in (sent, memoryview(received)[:6]))
        exchanged(x, y)
        assert received == bytes([before + 1] * 6 + [0]), dtype
    x, y = asdlpack(bytes([rank] * 4)), asdlpack(bytearray(4))
    assert bytes(memoryview(exchanged(x, y))) == bytes([before] * 4)
    empty = made([], "float32")
    assert exchanged(empty, made([], "float32")).size == 0


LAYOUTS = {
    "transposed": lambda a: a.T,
    "steps": lambda a: a[::2, 1::3],
    "backwards": lambda a: a[::-1, ::-2],
    "broadcast": lambda a: nd.broadcast_to(a[0], (3, 6)),
    "0-d": lambda a: a[1, 2, ...],
}


def case_views_are_sent_and_received_as_they_lie():
    for name, view in LAYOUTS.items():
        x = view(made(np.arange(24).reshape(4, 6) + 100 * rank, "int32"))
        target = made(np.zeros((4, 6)), "int32")
        y = made(np.zeros(x.shape), "int32") if name == "broadcast" else view(target)
        assert exchanged(x, y).tolist() == (x + 100 * (before - rank)).tolist(), name
        if name == "steps":  # nothing beside the view was written to
            assert int(target.sum()) == int(y.sum())


def case_reductions_of_every_dtype():
    for dtype in DTYPES[1:]:
        x = made([rank + 1, 2], dtype)
        found = {}
        for name, op in {"sum": SUM, "prod": PROD, "min": MIN, "max": MAX}.items():
            if dtype.startswith("complex") and name in ("min", "max"):
                continue
            y = made([0, 0], dtype)
            world.Allreduce(buf(x), buf(y, writes=True), op=op)
            found[name] = y.tolist()
        everyone = range(1, size + 1)
        assert found["sum"] == [sum(everyone), 2 * size], dtype
        assert found["prod"] == [int(np.prod(everyone)), 2**size], dtype
        assert "min" not in found or (found["min"], found["max"]) == ([1, 2], [size, 2]), dtype


def case_mpis_own_reductions_of_its_own_types():
    x, y = made([rank, 1.5], "float32"), made([0, 0], "float32")
    world.Allreduce(buf(x), buf(y), op=MPI.SUM)
    assert y.tolist() == [sum(range(size)), 1.5 * size]


def case_collectives():
    x = made(np.arange(3) + rank, "bfloat16")
    world.Bcast(buf(x), root=0)
    assert x.tolist() == [0, 1, 2]
    mine, everyones = made([rank, -rank], "float64"), made(np.zeros((size, 2)), "float64")
    world.Allgather(buf(mine), buf(everyones))
    assert everyones.tolist() == [[one, -one] for one in range(size)]
    part = made([0, 0], "float64")
    world.Scatter(buf(everyones), buf(part), root=0)
    assert part.tolist() == [rank, -rank]


def case_requests_keep_what_they_need():
    x, y = made(np.arange(1000) * (rank + 1), "int64")[::2], made(np.zeros(500), "int64")
    requests = [world.Irecv(buf(y), before), world.Isend(buf(x), after)]
    gc.collect()  # the datatypes of the temporaries are freed before the transfer is complete
    MPI.Request.Waitall(requests)
    assert y.tolist() == [2 * i * (before + 1) for i in range(500)]


def case_arrays_of_other_frameworks():
    for framework in sys.argv[2:]:
        x = convert(made([rank, 2, 3], "float32"), framework)
        y = made([0, 0, 0], "float32")
        assert exchanged(x, y).tolist() == [before, 2, 3], framework
        if framework == "torch":
            import torch

            x, y = torch.full((3,), rank, dtype=torch.bfloat16), torch.zeros(3, dtype=torch.bfloat16)
            world.Allreduce(buf(x), buf(y), op=SUM)
            assert y.tolist() == [sum(range(size))] * 3


def case_nothing_is_received_into_read_only_memory():
    try:
        world.Irecv(buf(b"abc"), before)
    except (BufferError, ValueError) as error:
        assert "writ" in str(error) or "read-only" in str(error), error
    else:
        raise AssertionError("bytes were taken to be written to")


def case_arrays_of_a_gpu_are_staged():
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for dtype in ("float32", "bfloat16"):
            x, y = nd.full(3, rank, dtype, device="cuda"), nd.zeros((2, 3), dtype, device="cuda")[0]
            assert buf(x).staged
            assert exchanged(x, y).tolist() == [before] * 3
            with buf(y, writes=True) as b:
                world.Allreduce(buf(x), b, op=SUM)
            assert y.tolist() == [sum(range(size))] * 3
            y[:] = 0
            requests = [world.Irecv(buf(y, writes=True), before), world.Isend(buf(x), after)]
            gc.collect()
            MPI.Request.Waitall(requests)
            assert y.tolist() == [before] * 3
        try:
            world.Irecv(buf(x), before)
        except (BufferError, ValueError):
            pass
        else:
            raise AssertionError("received into a copy that goes nowhere")
    assert len([one for one in said if "host" in str(one.message)]) == 1, said


globals()[f"case_{sys.argv[1]}"]()
world.Barrier()
if rank == 0:
    print("passed")
