"""Sharing between processes: handles, dlbridge.multiprocessing, lifetimes, and what a killed process leaves."""

import concurrent.futures
import errno
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import dlbridge
import pytest
import share_workers
from child_process import HANG_S, run_python
from dlbridge import asdlpack, empty_shared, nd, share
from dlbridge._sharing import messages
from dlbridge.multiprocessing import SMALL, install, uninstall

np = pytest.importorskip("numpy", reason="NumPy makes the arrays")

HERE = Path(__file__).parent
STARTS = ["spawn", "forkserver"]  # not fork: the frameworks of other tests have threads
LARGE = SMALL  # float64 elements: eight times what goes in a message


@pytest.fixture(params=STARTS)
def context(request):
    return multiprocessing.get_context(request.param)


@pytest.fixture
def spawn():
    return multiprocessing.get_context("spawn")


@pytest.fixture
def installed():
    install("numpy")
    yield
    uninstall()


@pytest.fixture(autouse=True)
def every_message_was_read():
    yield
    until = time.monotonic() + HANG_S
    while messages.waiting() and time.monotonic() < until:
        time.sleep(0.01)
    assert messages.waiting() == 0


def ended(process):
    process.join(HANG_S)
    assert process.exitcode == 0
    process.close()


def test_a_process_that_is_no_relative_opens_a_pickle_and_both_see_what_is_written():
    x = empty_shared(10, to="numpy")
    x[0] = 3
    handle = share(x)
    program = [sys.executable, str(HERE / "share_workers.py"), "5"]
    done = subprocess.run(program, input=pickle.dumps(handle), capture_output=True, check=True)
    assert done.stdout.split() == [b"(3.0,", b"'numpy')"]
    assert x[0] == 5


def test_handles_travel_by_arguments_queues_and_pipes(context):
    x = empty_shared(10, to="numpy")
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=share_workers.answer, args=(there, back, share_workers.open_and_write, 7))
    process.start()
    there.put(share(x))  # dropped here at once: the message keeps the memory
    assert back.get(timeout=HANG_S) == (0.0, "numpy")
    assert x[0] == 7
    ended(process)

    here, other = context.Pipe()
    process = context.Process(target=share_workers.hold, args=(share(x), other))
    process.start()
    assert here.recv() == "open"
    here.send("end")
    ended(process)
    here.close()
    other.close()


def test_pools_and_executors_carry_arrays_both_ways_without_a_copy(context, installed):
    x = empty_shared(LARGE, to="numpy")
    with context.Pool(1, initializer=install, initargs=("numpy",)) as pool:
        assert pool.apply(share_workers.write, (x, 2)) == (0.0, "numpy.ndarray")
        assert x[0] == 2
        doubled = pool.apply(share_workers.double, (x,))
        assert doubled[0] == 4
        assert not share(doubled).copied  # it came in shared memory, too
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context, initializer=install) as executor:
        assert executor.submit(share_workers.write, x, 3).result() == (2.0, "numpy.ndarray")
        assert x[0] == 3


ARRAYS = {
    "Tensor": (lambda x: asdlpack(x), "dlbridge.HostTensor"),
    "nd": (lambda x: nd.from_dlpack(x), "dlbridge.HostArray"),
    "numpy": (lambda x: x[:], "numpy.ndarray"),
    "torch": (lambda x: dlbridge.convert(x, "torch"), "torch.Tensor"),
}


@pytest.mark.parametrize("framework", ARRAYS)
@pytest.mark.parametrize("size", [4, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "private"])
def test_an_array_arrives_as_what_it_was_and_is_shared_where_it_was(framework, size, is_shared):
    if framework in ("numpy", "torch"):
        pytest.importorskip(framework)
        install(framework)
    else:
        install()
    try:
        make, name = ARRAYS[framework]
        memory = empty_shared(size, to="numpy") if is_shared else np.zeros(size)
        receiving, sending = multiprocessing.Pipe(duplex=False)
        sending.send([make(memory), make(memory)])
        first, second = receiving.recv()
        assert f"{type(first).__module__.partition('.')[0]}.{type(first).__qualname__}" == name
        dlbridge.convert(first, "numpy")[0] = 5
        assert memory[0] == (5 if is_shared else 0)
        assert (dlbridge.convert(second, "numpy")[0] == 5) == is_shared
        receiving.close()
        sending.close()
    finally:
        uninstall()


def test_arrays_of_jax_arrive_as_such():
    jax = pytest.importorskip("jax", reason="JAX makes the array")
    install("jax")
    try:
        receiving, sending = multiprocessing.Pipe(duplex=False)
        for size in (3, 100_000):
            sending.send(jax.numpy.arange(size))
            found = receiving.recv()
            assert isinstance(found, jax.Array)
            assert found[-1] == size - 1
        receiving.close()
        sending.close()
    finally:
        uninstall()


def test_what_cannot_be_shared_goes_as_it_did_before():
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    install("numpy", "torch")
    try:
        receiving, sending = multiprocessing.Pipe(duplex=False)
        records = np.zeros(3, [("a", "i4"), ("b", "f8")])
        objects = np.array([None, "x"], dtype=object)
        gradient = torch.ones(3, requires_grad=True)
        sending.send((records, objects, gradient))
        found = receiving.recv()
        assert found[0].dtype == records.dtype and found[1].tolist() == [None, "x"] and found[2].requires_grad
        receiving.close()
        sending.close()
    finally:
        uninstall()


def test_nothing_of_numpy_is_touched_unless_it_is_named():
    install()
    try:
        assert type(np.ones(2)) not in multiprocessing.reduction.ForkingPickler._extra_reducers
    finally:
        uninstall()
    with pytest.raises(ValueError, match="none of 'numpy'"):
        install("nupmy")


def test_a_child_that_ends_waits_until_its_last_message_is_read(context):
    queue = context.Queue()
    process = context.Process(target=share_workers.put_and_end, args=(queue, 100_000))
    process.start()
    time.sleep(1)
    tensor, handle = queue.get(timeout=HANG_S)
    ended(process)
    assert tensor.nbytes == 100_000
    assert bytes(memoryview(handle.open()))[-1:] == b"x"  # the maker is gone: this process has the memory


def test_a_message_of_a_process_that_was_killed_is_an_error_in_words(spawn):
    queue = spawn.Queue()
    process = spawn.Process(target=share_workers.put_and_be_killed, args=(queue,))
    process.start()
    process.join(HANG_S)
    with pytest.raises(FileNotFoundError, match="ended"):
        queue.get(timeout=HANG_S)
    process.close()


def test_memory_lives_while_a_reader_lives_though_its_maker_was_killed(spawn):
    script = (
        "import sys, pickle, time, dlbridge; h = dlbridge.share(bytearray(b'abc'))\n"
        "sys.stdout.buffer.write(pickle.dumps(h)); sys.stdout.flush(); time.sleep(60)"
    )
    maker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    handle = pickle.load(maker.stdout)
    late = pickle.loads(pickle.dumps(handle))  # not opened: a reference to the maker
    tensor = handle.open()
    del handle
    os.kill(maker.pid, signal.SIGKILL)
    maker.wait()
    maker.stdout.close()
    assert bytes(memoryview(tensor)) == b"abc"
    assert bytes(memoryview(late.open())) == b"abc"  # this process has the memory already
    del tensor
    late.close()
    gc.collect()


def test_opening_after_the_maker_ended_is_an_error_in_words():
    script = "import sys, pickle, dlbridge; h = dlbridge.share(b'abc')\nsys.stdout.buffer.write(pickle.dumps(h))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    with pytest.raises(FileNotFoundError, match="it ended"):
        pickle.loads(done.stdout).open()


def test_a_child_by_fork_opens_what_it_was_born_with_and_keeps_no_message_of_its_parent():
    script = """
import os, gc, dlbridge, dlbridge.multiprocessing
from dlbridge._sharing import messages
from multiprocessing.reduction import ForkingPickler
handle = dlbridge.share(bytearray(b"abc"))
message = ForkingPickler.dumps(handle)
before = len(os.listdir("/proc/self/fd"))
pid = os.fork()
if pid == 0:
    assert messages.waiting() == 0
    memoryview(handle.open())[0] = 120
    own = ForkingPickler.dumps(handle)
    assert messages.waiting() == 1
    ForkingPickler.loads(own)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert messages.waiting() == 1
assert bytes(memoryview(ForkingPickler.loads(message).open())) == b"xbc"
"""
    run_python(script)


def _ticket(pipe, number):
    found = os.fstat(pipe[1])
    return messages.Ticket(os.getpid(), pipe[1], found.st_dev, found.st_ino, number)


def test_the_pipes_of_the_last_senders_stay_open_for_receipts_and_no_more(monkeypatch):
    monkeypatch.setattr(messages, "_senders", messages._Senders())
    pipes = [os.pipe() for _ in range(20)]
    before = len(os.listdir("/proc/self/fd"))
    opened, real = [], messages.opened
    monkeypatch.setattr(messages, "opened", lambda *arguments: opened.append(arguments) or real(*arguments))
    for number, pipe in enumerate(pipes):
        for part in range(3):
            messages.acknowledge(_ticket(pipe, 3 * number + part))
        receipts = os.read(pipe[0], 100)
        assert [found for (found,) in messages._NUMBER.iter_unpack(receipts)] == [
            3 * number + part for part in range(3)
        ]
    assert len(opened) == len(pipes)
    assert len(os.listdir("/proc/self/fd")) == before + messages._MOST_SENDERS
    for pipe in pipes[-3:]:
        ticket = _ticket(pipe, 0)
        os.close(pipe[0])  # the sender is gone
        messages.acknowledge(ticket)
        os.close(pipe[1])
    assert len(os.listdir("/proc/self/fd")) == before + messages._MOST_SENDERS - 9
    messages._senders.close()
    for end in sum(pipes[:-3], ()):
        os.close(end)


def test_no_process_leaks_or_crashes_when_the_other_is_killed():
    assert run_python(HERE / "share_killed_child.py", 100).stdout.strip() == "100 killed"


def test_where_no_memory_is_to_be_had_it_is_an_error_in_words_and_nothing_is_left():
    """By the limit of a file's size, which is the memory's here: to fill the machine's would end other processes."""
    script = """
import os, resource, signal
import dlbridge

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
small = dlbridge.share(bytes(1000))
dlbridge.empty_shared(10, "uint8", to="dlbridge")
before = sorted(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
strided = dlbridge.nd.zeros((1 << 10, 1 << 10), "uint8", device="cpu")[:, ::2]
for make in (bytes(1 << 20), [dlbridge.asdlpack(bytes(1 << 20))], strided, 1 << 20):
    try:
        dlbridge.empty_shared(make, "uint8") if isinstance(make, int) else dlbridge.share(make)
    except OSError as error:
        assert "no memory left" in str(error), error
    else:
        raise AssertionError("it was made")
    assert sorted(os.listdir("/proc/self/fd")) == before
assert bytes(memoryview(small.open("dlbridge"))) == bytes(1000)
assert dlbridge.share(bytes(1000)).copied
"""
    run_python(script)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.ENOMEM])
def test_memory_that_ends_while_it_is_copied_is_given_back(error, monkeypatch):
    def write(fd, octets, offset):
        if offset:
            raise OSError(error, os.strerror(error))
        return len(octets) // 2

    before = sorted(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "pwrite", write)
    with pytest.raises(OSError, match="no memory left") as caught:
        share(np.ones(LARGE))
    assert caught.value.errno == error
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_full_dev_shm_is_in_nobodys_way(tmp_path):
    script = tmp_path / "full.py"
    script.write_text(
        """
import os, pickle, subprocess, sys
import dlbridge

with open("/dev/shm/all", "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError:
        pass
copied, shared = dlbridge.asdlpack(bytes(range(256)) * 4096), dlbridge.empty_shared(1 << 20, "uint8", to="dlbridge")
handle = dlbridge.share([copied, shared])
reader = "import pickle, sys; x, y = pickle.load(sys.stdin.buffer).open(); print(sum(memoryview(x)), y.nbytes)"
done = subprocess.run([sys.executable, "-c", reader], input=pickle.dumps(handle), capture_output=True, check=True)
print(done.stdout.decode())
"""
    )
    mounted = "mount -t tmpfs -o size=64k none /dev/shm && exec "
    try:
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted + f'"{sys.executable}" "{script}"'],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("no unshare(1)")
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip("the kernel lets this user mount nothing")
    assert done.stdout.split() == [str(sum(range(256)) * 4096), str(1 << 20)], done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_another_user_is_refused_by_the_kernel():
    script = """
import os, pickle, subprocess, sys
import dlbridge

handle = dlbridge.share(bytes(8))
data = pickle.dumps(handle)
child = os.fork()
if child == 0:
    from dlbridge._sharing import segments

    segments._segments.clear()  # what the parent has open, the child would find
    os.setgid(65534)
    os.setuid(65534)
    try:
        pickle.loads(data).open("dlbridge")
    except PermissionError as error:
        os._exit("must be of one user" not in str(error))
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    run_python(script)


def test_a_reader_without_a_descriptor_left_is_told_and_can_open_later():
    handle = share(np.arange(4.0))
    reader = """
import os, pickle, resource, sys
handle = pickle.load(sys.stdin.buffer)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, hard))
try:
    handle.open("dlbridge")
except OSError as error:
    assert "no file descriptor is left" in str(error), error
else:
    raise AssertionError("it was opened")
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(handle.open("dlbridge").nbytes, handle.open("dlbridge").data_ptr == handle.open("dlbridge").data_ptr)
"""
    done = subprocess.run([sys.executable, "-c", reader], input=pickle.dumps(handle), capture_output=True, check=False)
    assert done.stdout.split() == [b"32", b"True"], done.stderr.decode()
