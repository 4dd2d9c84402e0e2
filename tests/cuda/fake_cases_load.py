"""The CUDA side without a GPU: load() to a device.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import contextlib
import gc
import json
import os
import struct
import tempfile

from dlbridge import DataError, load
from fake_cases_release import Reader
from fake_cuda import *
from lifecycle_support import nothing_lost

MIB = 1 << 20


@contextlib.contextmanager
def file_of(sizes, *, cut=0):
    """A file of int32 tensors "0", "1", ... of so many bytes, in which they count from their number on."""
    header, data = {}, b""
    for i, size in enumerate(sizes):
        header[str(i)] = {"dtype": "I32", "shape": [size // 4], "data_offsets": [len(data), len(data) + size]}
        data += struct.pack(f"<{min(size // 4, 8)}i", *range(i, i + min(size // 4, 8))).ljust(size, b"\0")
    text = json.dumps(dict(reversed(header.items()))).encode()  # the order of the header is not that of the data
    text += b" " * (-(8 + len(text)) % 64)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.safetensors")
        with open(path, "wb") as file:
            file.write((struct.pack("<Q", len(text)) + text + data)[: -cut or None])
        yield path


def load_from(sizes):
    with file_of(sizes) as path:
        return load(path, device="cuda:0")


def blocks():
    return [int(line.split("bytes=")[1].split()[0]) for line in new_calls("alloc_async", "alloc")]


def first_values(tensor, i):
    count = min(tensor.size, 8)
    return read_now(tensor.data_ptr, count) == list(range(i, i + count))


def check_values(tensors):
    lib.fake_cuda_synchronize()
    assert all(first_values(tensor, int(name)) for name, tensor in tensors.items())


def test_load_takes_neighbours_to_the_device_in_one_copy():
    forget()
    tensors = load_from([64, 128, 4096, 0, 100])
    assert len(new_calls("memcpy_htod")) == 1 and blocks() == [4388]
    assert list(tensors) == ["4", "3", "2", "1", "0"]
    assert [tensors[i].data_ptr - tensors["0"].data_ptr for i in "0124"] == [0, 64, 192, 4288]
    assert tensors["3"].shape == (0,)
    assert not any(tensor.readonly for tensor in tensors.values())
    check_values(tensors)


def test_load_keeps_every_tensor_aligned_on_the_device():
    forget()
    tensors = load_from([64, 4, 64, 64, 12, 4])
    assert blocks() == [68, 140, 4]
    assert all(tensor.data_ptr % 64 == 0 for tensor in tensors.values())
    check_values(tensors)


def test_load_gives_large_tensors_memory_of_their_own():
    forget()
    tensors = load_from([64, 64, 4 * MIB, 64, 6 * MIB, 4 * MIB - 64])
    assert blocks() == [128, 4 * MIB, 64, 6 * MIB, 4 * MIB - 64]
    check_values(tensors)
    held = lib.fake_cuda_live_bytes()
    tensors["4"] = None
    lib.fake_cuda_synchronize()
    assert held - lib.fake_cuda_live_bytes() == 6 * MIB
    del tensors["0"]
    lib.fake_cuda_synchronize()
    assert held - lib.fake_cuda_live_bytes() == 6 * MIB  # its neighbour holds it
    del tensors["1"]
    lib.fake_cuda_synchronize()
    assert held - lib.fake_cuda_live_bytes() == 6 * MIB + 128


def test_load_bounds_what_one_small_tensor_keeps():
    forget()
    check_values(load_from([3 * MIB] * 11))
    assert blocks() == [15 * MIB, 15 * MIB, 3 * MIB]


def test_load_is_ready_for_a_consumer_on_another_stream():
    tensors, stream = load_from([64, 4 * MIB]), new_stream()
    for name, tensor in tensors.items():
        assert tensor.__dlpack__(stream=stream, max_version=NEWEST)
        assert read_on(stream, tensor.data_ptr, 8) == list(range(int(name), int(name) + 8))
    gc.collect()


def test_load_frees_shared_memory_behind_the_recorded_streams_of_each_tensor():
    reader, tensors = Reader(), load_from([64, 64])
    for tensor in tensors.values():
        tensor.__dlpack__(stream=reader.stream, max_version=NEWEST)
    reader.queue(tensors["1"].data_ptr)
    tensors["1"].record_stream(reader.stream)
    del tensor
    del tensors["1"]
    del tensors["0"]
    lib.fake_cuda_synchronize()
    assert reader.values() == list(range(1, 7))


def test_load_leaves_nothing_behind_when_device_memory_runs_out():
    with file_of([64, 4 * MIB, 64]) as path:
        load(path, device="cuda:0")
        lib.fake_cuda_synchronize()
        before, reports = lib.fake_cuda_live_bytes(), []
        with nothing_lost():
            for n in range(4):
                lib.fake_cuda_fail_alloc_after(n)
                try:
                    load(path, device="cuda:0")
                except MemoryError as error:
                    reports.append(str(error))
                lib.fake_cuda_fail_alloc_after(-1)
                lib.fake_cuda_synchronize()
                assert lib.fake_cuda_live_bytes() == before and lib.fake_cuda_context_depth() == 0
        assert [text.split("): ", 1)[1].split(" on ")[0] for text in reports] == [
            f"{size} bytes are not available" for size in (64, 4 * MIB, 64)
        ]


def test_load_refuses_a_file_that_was_cut_before_it_asks_for_a_device():
    with file_of([64, 64], cut=1) as path:
        refused(DataError, "cut off", lambda: load(path, device="cuda:0"))
    assert calls("alloc", "alloc_async", "ctx_retain") == []


def test_load_to_a_device_that_is_not_there():
    with file_of([64]) as path:
        refused(ValueError, "cuda:63 does not exist", lambda: load(path, device="cuda:63"))


if __name__ == "__main__":
    main(globals())
