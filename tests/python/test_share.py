"""share(): the handle, what it shares and what it copies, and what it refuses, within one process."""

import gc
import mmap
import os
import pickle
import resource
from collections import namedtuple
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory

import dlbridge
import provoke
import pytest
from dlbridge import asdlpack, empty_shared, nd, share
from dlbridge._sharing import mappings

np = pytest.importorskip("numpy", reason="NumPy makes the arrays")


@pytest.fixture(autouse=True)
def no_descriptor_stays():
    resource_tracker.ensure_running()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    yield
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


LAYOUTS = {
    "C": lambda a: a,
    "F": lambda a: a.T,
    "backwards": lambda a: a[::-1],
    "with gaps": lambda a: a[::2, 1::3],
    "gaps, backwards": lambda a: a[::-1, ::-2],
    "a part": lambda a: a[1:3, 2:4],
    "broadcast": lambda a: np.broadcast_to(a[0], (5, 6)),
    "0-d": lambda a: a[1, 1, ...],
    "one element": lambda a: a[1:2, 1:2],
    "empty": lambda a: a[:0],
    "empty behind": lambda a: a[:, :0],
}
DTYPES = ["bool", "int8", "uint16", "int32", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_comes_back_as_it_was_whether_copied_or_shared(layout, dtype):
    source = np.arange(36).reshape(6, 6).astype(dtype)
    private = LAYOUTS[layout](source)
    in_memory = empty_shared((6, 6), dtype, to="numpy")
    in_memory[...] = source
    shared = LAYOUTS[layout](in_memory)
    for x in (private, shared):
        handle = share(x)
        found = handle.open()
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, x)
        assert found.dtype == x.dtype
        assert found.flags.writeable == x.flags.writeable
        assert handle.copied == (x is private and x.size > 0)
        assert handle.nbytes == x.nbytes
    if shared.size > 1:
        assert found.strides == shared.strides


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
@pytest.mark.parametrize("layout", ["C", "F", "with gaps", "0-d", "empty"])
def test_dtypes_that_numpy_has_not(layout, dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes makes the arrays")
    source = LAYOUTS[layout](np.arange(36).reshape(6, 6).astype(getattr(ml_dtypes, dtype)))
    np.testing.assert_array_equal(share(source).open("numpy").astype("f4"), source.astype("f4"))


def test_two_elements_to_a_byte_stay_packed():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes makes the array")
    packed = dlbridge.pack_float4(np.arange(8).reshape(2, 4).astype(ml_dtypes.float4_e2m1fn))
    found = share(packed).open()
    assert (found.shape, found.nbytes, found.padded) == ((2, 4), 4, False)
    assert bytes(memoryview(dlbridge._core.reinterpret(found, dtype="uint8", shape=(4,)))) == bytes(
        memoryview(dlbridge._core.reinterpret(packed, dtype="uint8", shape=(4,)))
    )


def of_memfd():
    fd = os.memfd_create("test")
    os.ftruncate(fd, 8192)
    mapped = mmap.mmap(fd, 8192)
    os.close(fd)  # the mapping has one of its own
    return mapped


def of_file(path):
    return np.memmap(path, "uint8", "w+", shape=(8192,))


def of_torch():
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    return torch.zeros(8192, dtype=torch.uint8).share_memory_()


SHARED = {
    "memfd": lambda path: of_memfd(),
    "a mapped file": of_file,
    "torch's share_memory_()": lambda path: of_torch(),
    "empty_shared()": lambda path: empty_shared(8192, "uint8"),
    "what a handle opened": lambda path: share(bytearray(8192)).open(),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("kernel", ["this", "older"])
def test_memory_that_is_shared_already_is_not_copied(name, kernel, tmp_path, monkeypatch):
    if kernel == "older":
        monkeypatch.setattr(mappings, "_asked", refuse)
    source = SHARED[name](tmp_path / "file")
    handle = share(asdlpack(source))
    assert not handle.copied
    seen, written = handle.open("numpy"), dlbridge.convert(source, "numpy")
    written[8191] = 7
    assert seen[8191] == 7
    seen[0] = 5
    assert written[0] == 5


def refuse(*_):
    raise OSError("no such request")


def test_shared_memory_of_multiprocessing_is_not_copied_from_any_offset():
    memory = SharedMemory(create=True, size=20_000)
    try:
        x = np.frombuffer(memory.buf, "uint8")[5001:9001:2]
        handle = share(x)
        assert not handle.copied
        handle.open()[3] = 9
        assert memory.buf[5007] == 9
        del x
    finally:
        memory.close()
        memory.unlink()


@pytest.mark.parametrize("kernel", ["this", "older"])
@pytest.mark.parametrize("make", [lambda path: mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS),
                                  lambda path: np.memmap(path, "uint8", "c", shape=(4096,)),
                                  lambda path: mmap.mmap(-1, 4096)],
                         ids=["private pages", "copy on write of a file", "shared with children alone"])  # fmt: skip
def test_other_mappings_are_copied(make, kernel, tmp_path, monkeypatch):
    if kernel == "older":
        monkeypatch.setattr(mappings, "_asked", refuse)
    (tmp_path / "file").write_bytes(bytes(4096))
    x = make(tmp_path / "file")
    handle = share(x)
    assert handle.copied
    memoryview(handle.open("numpy"))[0] = 1
    assert x[0] == 0


def test_a_copy_is_of_the_moment():
    x = np.zeros(3)
    handle = share(x)
    x[0] = 1
    first, second = handle.open(), handle.open()
    assert first[0] == 0
    first[1] = 2
    assert second[1] == 2  # one mapping, however often it is opened


def test_the_framework_is_that_of_the_array_unless_another_is_named():
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    handle = share(torch.arange(3))
    assert isinstance(handle.open(), torch.Tensor)
    assert isinstance(handle.open("nd"), nd.ndarray)
    assert isinstance(share(bytearray(b"abc")).open(), dlbridge.HostTensor)
    assert type(share(asdlpack(np.ones(2))).open()) is dlbridge.HostTensor
    assert isinstance(share(nd.ones(2, device="cpu")).open(), nd.ndarray)


@dataclass
class Batch:
    x: object
    label: str


Pair = namedtuple("Pair", "left right")


def test_containers_come_back_whole_with_one_descriptor_for_all_that_was_copied():
    x = np.arange(4.0)
    tree = {"a": x, "b": [Batch(np.ones((2, 3), "i2"), "cat"), Pair(nd.zeros(2, device="cpu"), None)], "again": x}
    handle = share(tree)
    assert len(handle._segments) == 1
    found = pickle.loads(pickle.dumps(handle)).open()
    assert found["again"] is found["a"]
    assert found["b"][0].label == "cat" and found["b"][1].right is None
    assert isinstance(found["b"][1].left, nd.ndarray)
    np.testing.assert_array_equal(found["b"][0].x, 1)
    found["a"][0] = 9
    assert handle.open("dlbridge")["a"].__array__()[0] == 9


def test_a_container_may_hold_shared_copied_read_only_and_empty_arrays():
    shared = empty_shared(10, to="numpy")
    handle = share([shared, np.ones(3), asdlpack(b"abc"), np.ones((0, 2)), shared[::2]])
    assert handle.copied and len(handle._segments) == 3
    found = handle.open("numpy")
    assert [x.flags.writeable for x in found] == [True, True, False, True, True]
    found[4][1] = 3
    assert shared[2] == 3


def test_what_holds_no_array_is_refused():
    with pytest.raises(TypeError, match="no array"):
        share({"a": 1})
    with pytest.raises(TypeError):
        share(object())


def test_packed_elements_whose_strides_no_byte_can_follow_are_refused():
    packed = provoke.Managed(shape=(2, 3), strides=(1, 2), dtype=(17, 4, 1))
    with pytest.raises(dlbridge.ExchangeError, match=r"^share\(\): dtype float4_e2m1fn is packed.* not contiguous"):
        share(asdlpack(packed.capsule()))
    assert packed.deletions == 1


READ_ONLY = {"copied": lambda: b"abcd" * 10, "shared": lambda: dlbridge._core.reinterpret(
    empty_shared(40, "uint8", to="dlbridge"), readonly=True)}  # fmt: skip


@pytest.mark.parametrize("make", READ_ONLY.values(), ids=READ_ONLY)
def test_read_only_stays_so_and_the_kernel_sees_to_it(make):
    handle = share(make())
    tensor = handle.open()
    assert tensor.readonly
    with pytest.raises(OSError):
        mmap.mmap(handle._segments[0].fd, 40)
    torch = pytest.importorskip("torch", reason="torch cannot say read-only")
    handle.open("torch")[0] = torch.tensor(1)
    with pytest.raises(dlbridge.CopyError):
        handle.open("torch", copy=False)
    assert bytes(memoryview(tensor)) == bytes(memoryview(handle.open()))


def test_a_read_only_array_in_memory_that_is_written_elsewhere_shows_it():
    x = empty_shared(4, to="numpy")
    y = x.view()
    y.flags.writeable = False
    seen = share(y).open()
    x[0] = 1
    assert seen[0] == 1 and not seen.flags.writeable


def test_nobody_can_shrink_or_grow_what_was_copied():
    fd = share(np.ones(1000))._segments[0].fd
    for size in (0, 100_000):
        with pytest.raises(OSError):
            os.ftruncate(fd, size)


def test_an_array_outlives_its_handle_and_the_handle_its_array():
    handle = share(np.arange(3.0))
    x = handle.open()
    handle.close()
    assert x.tolist() == [0, 1, 2]
    x[0] = 5
    again = share(x)
    assert not again.copied
    del x, handle
    gc.collect()
    assert again.open().tolist() == [5, 1, 2]


def test_a_closed_handle_opens_nothing_and_does_not_pickle():
    with share(np.ones(3)) as handle:
        handle.open()
    assert handle.closed and "closed" in repr(handle)
    for use in (handle.open, lambda: pickle.dumps(handle)):
        with pytest.raises(ValueError, match="closed"):
            use()
    handle.close()


def test_a_reference_to_memory_that_is_gone_says_so():
    handle = share(np.ones(3))
    reference = pickle.dumps(handle)
    handle.close()
    with pytest.raises(FileNotFoundError, match="Keep the handle"):
        pickle.loads(reference).open()


def test_a_descriptor_that_is_another_files_by_now_is_not_opened():
    handle = share(np.ones(3))
    reference = pickle.dumps(handle)
    number = handle._segments[0].fd
    handle.close()
    others = []
    while number not in others:
        others.append(os.open(os.devnull, os.O_RDONLY))
    try:
        with pytest.raises(FileNotFoundError):
            pickle.loads(reference).open()
    finally:
        for fd in others:
            os.close(fd)


def test_a_full_table_of_descriptors_is_an_error_in_words_and_harms_nothing():
    kept = empty_shared(3, to="numpy")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    source = share(np.ones(3))
    reference = pickle.dumps(source)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        with pytest.raises(OSError, match="no file descriptor is left"):
            share(np.ones(4))
        with pytest.raises(OSError):
            share(kept)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert pickle.loads(reference).open().tolist() == [1, 1, 1]
    assert not share(kept).copied


def test_empty_shared_makes_arrays_of_any_framework_and_shape():
    assert empty_shared(3).dtype == "float64"
    assert empty_shared((2, 0), "int8", to="numpy").shape == (2, 0)
    assert empty_shared((), "bfloat16", to="dlbridge").shape == ()
    assert empty_shared((2, 3), np.float32, to="numpy").tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match="negative extent"):
        empty_shared((2, -1))
    with pytest.raises(TypeError):
        empty_shared(3, "nope")
    with pytest.raises((ValueError, OSError, MemoryError)):
        empty_shared(1 << 61)
