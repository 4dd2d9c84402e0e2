"""The fake driver of fake_libcuda.c seen from Python, producers of device arrays over its memory, and what the cases
share. For fake_cases_*.py, which run with fake_libcuda.c as libcuda.so.1."""

from __future__ import annotations

import ctypes
import gc
import sys

from dlbridge import _core, asdlpack
from lifecycle_support import CUDA, CUDA_MANAGED, INT32, Exporter

lib = ctypes.CDLL("libcuda.so.1")
lib.fake_cuda_log.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
lib.fake_cuda_log.restype = ctypes.c_size_t
lib.fake_cuda_alloc.argtypes = [ctypes.c_size_t, ctypes.c_int]
lib.fake_cuda_alloc_managed.argtypes = [ctypes.c_size_t, ctypes.c_int]
lib.fake_cuda_alloc_host.argtypes = [ctypes.c_size_t]
for _name in ("fake_cuda_alloc", "fake_cuda_alloc_managed", "fake_cuda_alloc_host", "fake_cuda_stream_create"):
    getattr(lib, _name).restype = ctypes.c_void_p
lib.fake_cuda_free.argtypes = [ctypes.c_void_p]
lib.fake_cuda_live_bytes.restype = ctypes.c_size_t
lib.fake_cuda_fail_alloc_after.argtypes = [ctypes.c_int64]
lib.fake_cuda_fail_allocs_from.argtypes = [ctypes.c_int64]
lib.fake_cuda_fill.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
lib.fake_cuda_set_capture.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
lib.fake_cuda_stream_forget.argtypes = [ctypes.c_void_p]
lib.cuStreamDestroy_v2.argtypes = [ctypes.c_void_p]
lib.cuMemcpyDtoHAsync_v2.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
lib.cuStreamSynchronize.argtypes = [ctypes.c_void_p]


def log():
    """The driver calls since the last reset, one a line."""
    size = lib.fake_cuda_log(None, 0) + 1
    text = ctypes.create_string_buffer(size)
    lib.fake_cuda_log(text, size)
    return text.value.decode().splitlines()


def calls(*names):
    return [line for line in log() if line.split()[0] in names]


def forget():
    """Empties the log, without running the queues as fake_cuda_reset() does."""
    forget.seen = len(log())


forget.seen = 0


def new_calls(*names):
    return [line for line in log()[forget.seen :] if not names or line.split()[0] in names]


def new_stream(device=0, *, own_context=False):
    return lib.fake_cuda_stream_create(device, 0, int(own_context))


def stream_name(handle):
    """As the log writes it: the second member of the fake's struct stream."""
    return {1: "legacy0", 2: "per_thread0"}.get(handle) or ctypes.string_at(handle + 8).decode()


def current_device():
    """The device whose context is current on this thread; None where there is none."""
    device = ctypes.c_int(-1)
    return device.value if lib.cuCtxGetDevice(ctypes.byref(device)) == 0 else None


def read_on(stream, address, count):
    """int32 values as work on `stream` sees them: without waiting for any other stream."""
    out = (ctypes.c_int32 * count)()
    assert lib.cuMemcpyDtoHAsync_v2(out, address, out._length_ * 4, stream) == 0
    assert lib.cuStreamSynchronize(stream) == 0
    return list(out)


def read_now(address, count):
    """What is in the (host-backed) memory this moment."""
    return list((ctypes.c_int32 * count).from_address(address))


OLD, NEW = 0x01010101, 0x07070707


class Memory:
    """int32 memory of the fake's, counted from 0, freed with the object."""

    def __init__(self, count=6, device=0, kind="device"):
        self.count, self.device, self.bytes = count, device, 4 * count
        if kind == "host":
            self.address = lib.fake_cuda_alloc_host(self.bytes)
        else:
            make = lib.fake_cuda_alloc if kind == "device" else lib.fake_cuda_alloc_managed
            self.address = make(self.bytes, device)
        assert self.address
        ctypes.memmove(self.address, (ctypes.c_int32 * count)(*range(count)), self.bytes)

    def __del__(self):
        lib.fake_cuda_free(self.address)

    def set(self, value):
        ctypes.memset(self.address, value & 0xFF, self.bytes)

    def fill(self, value, stream):
        """A slow kernel on `stream`: the memory has `value` in every byte once the stream got there."""
        assert lib.fake_cuda_fill(self.address, value & 0xFF, self.bytes, self.device, stream) == 0


class CaiArray:
    """An object with __cuda_array_interface__ and nothing else; `fields` replace entries, ... removes one."""

    def __init__(self, memory, shape=(2, 3), **fields):
        self.memory = memory
        entries = {"shape": shape, "typestr": "<i4", "version": 3, "strides": None}
        entries["data"] = (memory.address if memory is not None else 0, False)
        entries |= fields
        self.interface = {key: value for key, value in entries.items() if value is not ...}

    @property
    def __cuda_array_interface__(self):
        return self.interface


class DLPackArray(Exporter):
    """A CUDA producer: notes what it was asked, and which device was current then."""

    def __init__(self, memory, shape=(2, 3), *, managed=False, announce=None, **fields):
        device = (CUDA_MANAGED if managed else CUDA, memory.device)
        super().__init__(shape, dtype=INT32, device=device, data=memory.address, **fields)
        self.cuda_memory, self.announce = memory, announce
        self.devices = []

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.devices.append(current_device())
        arguments = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return super().__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.announce or self.device


# ---- what the cases share

NEWEST = (1, 3)


def refused(error, text, call):
    try:
        call()
    except error as raised:
        assert text in str(raised), f"{text!r} is not in {raised}"
        return raised
    raise AssertionError(f"no {error} was raised")


def values(tensor, count):
    """The elements, in C order, as the host reads them after a copy of dlbridge's own."""
    host = asdlpack(tensor, device="cpu")
    assert host.size == count
    return memoryview(asdlpack(host, copy=True)).cast("B").cast("i").tolist() if count else []


def peek(capsule):
    return _core.peek_capsule(capsule)


def nothing_blocks():
    blocking = new_calls("stream_synchronize", "event_synchronize")
    assert blocking == [], blocking


def slow_array(stream, memory=None, **fields):
    """A CAI array whose data is written by a slow kernel on `stream`."""
    memory = memory or Memory()
    memory.set(OLD)
    memory.fill(NEW, stream)
    return CaiArray(memory, stream=stream, **fields)


def main(cases):
    """Runs the case that the command line names; nothing may be left of it."""
    name = sys.argv[1]
    cases[name]()
    gc.collect()
    selected = "current" in name  # the case has selected a device, as cudaSetDevice does
    assert lib.fake_cuda_context_depth() == selected, "a context was left on the stack"
    counts = _core.live_counts()
    assert counts == {"tensors": 0, "exports": 0, "copies": 0}, counts
    print("passed")
