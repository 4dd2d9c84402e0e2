"""share() on a GPU, between two processes: what is lent, in which order, for how long."""

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import time

import dlbridge
import dlbridge.multiprocessing
import gpu_frameworks as gpu
import pytest
import share_gpu_workers as workers
from child_process import HANG_S, few_connections, run_python
from dlbridge import nd, share
from dlbridge._sharing import loans, returns
from dlbridge.tests._gate import Gate

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

pytestmark = gpu.needs_gpu

SIZE = 1 << 16


class Other:
    """Another process, started anew: CUDA does not work in a fork."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.connection, there = context.Pipe()
        self.process = context.Process(target=workers.serve, args=(there,))
        with few_connections():
            self.process.start()
        there.close()

    def begin(self, work, *arguments):
        self.connection.send((work, *arguments))

    def end(self, waiting=lambda: nd.cuda.Device(0).synchronize()):
        """What it answers; it may wait for work of this process, which a driver without a GPU does when asked."""
        until = time.monotonic() + HANG_S
        while not self.connection.poll(0.05):
            assert time.monotonic() < until, "the other process does not answer"
            waiting()
        return self.connection.recv()

    def do(self, work, *arguments):
        self.begin(work, *arguments)
        return self.end()

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.close(-signal.SIGKILL)

    def close(self, status=0):
        self.connection.close()
        self.process.join(HANG_S)
        assert self.process.exitcode == status
        self.process.close()


@pytest.fixture(scope="module")
def other():
    made = Other()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_is_kept(request):
    dlbridge.multiprocessing.install()
    yield
    dlbridge.multiprocessing.uninstall()
    if "other" in request.fixturenames:
        request.getfixturevalue("other").do(workers.forget)
    soon(lambda: loans._keeper.kept == {})


def soon(condition):
    until = time.monotonic() + 30  # where a test fails, its traceback keeps arrays
    while not condition():
        assert time.monotonic() < until, "it did not come to pass"
        gc.collect()
        time.sleep(0.01)


def _torch(array):
    return gpu.torch().from_numpy(array).cuda()


SOURCES = {
    "nd": lambda a: nd.asarray(a, device="cuda"),
    "torch": _torch,
    "cupy": lambda a: gpu.cupy().asarray(a),
}
PARTS = {
    "whole": lambda x: x,
    "a slice": lambda x: x[100:200],
    "with gaps": lambda x: x[10:1000:7],
    "0-d": lambda x: x[17, ...],
}


def host(x):
    return np.asarray(dlbridge.asdlpack(x, device="cpu"))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("source", SOURCES)
def test_an_array_in_a_cached_block_is_lent_without_a_copy(other, source, part):
    before = SOURCES[source](np.full(300, -1.0, "float32"))  # so that the block does not begin with the array
    x = PARTS[part](SOURCES[source](np.arange(SIZE, dtype="float32")))
    expected = host(x).tolist()
    handle = share(x)
    assert not handle.copied
    found, module = other.do(workers.open_and_keep, pickle.dumps(handle))
    assert (found, module) == (expected, "dlbridge" if source == "nd" else source)
    assert before is not None


@pytest.mark.parametrize("source", SOURCES)
def test_both_processes_see_what_is_written(other, source):
    x = SOURCES[source](np.arange(1000, dtype="float32"))
    nd.cuda.Device(0).synchronize()
    dlbridge.multiprocessing.install(*({source} - {"nd"}))
    module = other.do(workers.add, x, 3)
    assert module == ("dlbridge" if source == "nd" else source)
    assert host(x).tolist() == list(range(3, 1003))


def test_an_array_of_another_process_may_be_sent_on_and_results_come_back(other):
    other.do(workers.install)
    x = nd.arange(1000.0, device="cuda")
    y = other.do(workers.double, x)
    assert (host(y) == 2 * np.arange(1000.0)).all()
    assert other.do(workers.look, y)[-1] == 1998.0  # where it was made
    third = Other()
    assert third.do(workers.look, y)[-1] == 1998.0
    third.close()


@pytest.mark.parametrize("source", SOURCES)
def test_many_arrays_are_one_mapping_for_each_allocation(other, source):
    arrays = [SOURCES[source](np.full(100, number, "float32")) for number in range(50)]
    handle = share(arrays)
    allocations = len(handle._segments)
    already = other.do(workers.mappings)
    results = [other.do(workers.look, share(x).open("dlbridge")) for x in arrays[:3]]
    assert [found[0] for found in results] == [0, 1, 2]
    for number, x in enumerate(handle.open("dlbridge")):
        assert other.do(workers.look, x)[0] == number
    assert other.do(workers.mappings) <= already + allocations
    assert source == "cupy" or allocations <= 2  # of 2 MiB each


def test_a_mapping_that_was_left_serves_the_next_array_of_the_allocation(other):
    usual = returns.LINGER_S
    x = nd.arange(1000, dtype="float32", device="cuda")
    handles = [share(x[number:]) for number in range(5)]
    other.do(workers.linger, HANG_S)
    found = [other.do(workers.look_and_leave, handle) for handle in handles]
    other.do(workers.linger, usual)
    assert [first for first, _ in found] == list(range(5))
    assert [opened for _, opened in found[1:]] == [0] * 4


def test_what_was_left_goes_back_soon_and_its_mapping_is_closed(other):
    handle = share(nd.ones(100, device="cuda"))
    assert other.do(workers.look_and_leave, handle)[0] == 1
    soon(lambda: other.do(workers.mappings) == 0)


def test_small_allocations_of_the_driver_itself_are_told_apart(other):
    driver = ctypes.CDLL("libcuda.so.1")
    pointers = [ctypes.c_uint64() for _ in range(4)]
    with nd.cuda.Device(0):
        assert [driver.cuMemAlloc_v2(ctypes.byref(one), ctypes.c_size_t(1000)) for one in pointers] == [0] * 4
    blocks = [nd.cuda.UnownedMemory(one.value, 1000, None, 0) for one in pointers]
    arrays = [nd.ndarray((250,), "float32", memptr=nd.cuda.MemoryPointer(block, 0)) for block in blocks]
    for number, x in enumerate(arrays):
        x[...] = float(number)
    for number, x in enumerate(arrays):
        handle = share(x[100:])
        assert not handle.copied
        assert other.do(workers.open_and_keep, pickle.dumps(handle))[0] == [number] * 150
    other.do(workers.forget)
    del arrays, x, handle
    soon(lambda: loans._keeper.kept == {})
    assert [driver.cuMemFree_v2(one) for one in pointers] == [0] * 4


def test_memory_of_a_pool_of_the_driver_is_copied_once(other):
    with nd.cuda.Device(0), nd.cuda.using_allocator(nd.cuda.MemoryAsyncPool()):
        x = nd.arange(1000, dtype="float32", device="cuda")
    for part in (x, x[::3], x[::-1]):
        handle = share(part)
        assert handle.copied
        assert other.do(workers.open_and_keep, pickle.dumps(handle))[0] == host(part).tolist()


def test_memory_of_virtual_memory_calls_is_copied_once():
    gpu.torch()
    script = """
import multiprocessing, pickle
import torch
import share_gpu_workers as workers
from dlbridge import share
from test_share_gpu import Other

if __name__ == "__main__":
    x = torch.arange(1000.0, device="cuda")
    handle = share(x)
    other = Other()
    assert other.do(workers.open_and_keep, pickle.dumps(handle))[0] == list(range(1000))
    other.close()
    print(handle.copied)
"""
    with few_connections():
        done = run_python(script, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    assert done.stdout.split() == ["True"]


def test_the_reader_waits_behind_the_writer_and_no_host_does(other):
    stream = nd.cuda.Stream(non_blocking=True)
    x = nd.zeros(SIZE, "int32", device="cuda")
    first = share(x)  # the mapping stays
    for warm_up in (True, False):
        x.data.memset(0, x.nbytes)
        nd.cuda.Device(0).synchronize()
        with Gate() as gate:
            if warm_up:
                gate.open()
            gate.hold(stream.ptr)
            x.data.memset_async(7, x.nbytes, stream)  # no kernel, whose loading would wait
            handle = share(x)
            other.begin(workers.open_early, handle)
            early = other.end(waiting=lambda: None)
            assert warm_up or gate.is_closed(), "a host has waited"
            assert warm_up or early == bytes(4), "the gate holds nothing back: this proves nothing"
            other.begin(workers.read_in_order)
            assert warm_up or not other.connection.poll(0.2)
            gate.open()
            assert other.end() == 0x07070707
    assert not first.closed


def test_the_array_is_kept_until_a_reader_that_was_killed_is_gone():
    reader = Other()
    handle = share(nd.full(1000, 4.0, device="cuda"))
    assert reader.do(workers.open_and_keep, pickle.dumps(handle))[0] == [4.0] * 1000
    assert loans._keeper.kept == {}
    handle.close()
    gc.collect()
    assert len(loans._keeper.kept) == 1
    reader.kill()
    soon(lambda: loans._keeper.kept == {})


def test_a_reader_outlives_a_writer_that_was_killed(other):
    writer = Other()
    first, second = writer.do(workers.make, 2)
    assert other.do(workers.open_and_keep, first)[0] == [0.0] * 1000
    writer.kill()
    assert other.do(workers.look, nd.ones(3, device="cuda")) == [1.0] * 3
    kind, text = other.do(workers.open_and_keep, second)
    assert kind == "FileNotFoundError" and "has the memory no more" in text


def test_the_gpu_is_found_by_its_uuid_and_a_hidden_one_is_named(monkeypatch):
    handle = share(nd.arange(10.0, device="cuda"))
    name = loans._name(nd.cuda.Device(0).uuid)
    for visible, sees in ((name, True), ("", False)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        reader = Other()
        kind, text = reader.do(workers.open_and_keep, pickle.dumps(handle), "nd")
        if sees:
            assert (kind, text) == (list(range(10)), "dlbridge")
        else:
            assert kind == "CudaError" and name in text and "CUDA_VISIBLE_DEVICES" in text
        reader.close()


@gpu.needs_two_gpus
def test_a_gpu_that_has_another_number_elsewhere_is_found(monkeypatch):
    handle = share(nd.arange(10.0, device="cuda:1"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    reader = Other()
    assert reader.do(workers.open_and_keep, pickle.dumps(handle), "nd") == (list(range(10)), "dlbridge")
    reader.close()


def test_a_fork_is_told_that_cuda_does_not_work_in_it():
    with few_connections():
        run_python("""
import os, pickle
from dlbridge import nd, share

handle = share(nd.ones(3, device="cuda"))
data = pickle.dumps(handle)
child = os.fork()
if child == 0:
    for call in (handle.open, pickle.loads(data).open):
        try:
            call()
        except RuntimeError as error:
            assert "fork" in str(error), error
        else:
            os._exit(1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""")
