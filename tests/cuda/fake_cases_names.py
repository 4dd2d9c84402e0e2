"""The CUDA side without a GPU: pinned and managed memory for consumers that take the memory but have no name for it.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import sys
import types

from dlbridge import convert
from fake_cuda import *
from lifecycle_support import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Consumed


class StandIn:
    """A module in the place of a framework, whose from_dlpack() notes what it is given; `capsules`: takes those."""

    def __init__(self, *path, capsules=False):
        self.given, self.capsules = [], capsules
        name, *inner = path
        module = sys.modules[name] = types.ModuleType(name)
        for part in inner:
            child = types.ModuleType(f"{module.__name__}.{part}")
            setattr(module, part, child)
            module = child
        module.from_dlpack = self.take
        sys.modules[name].enable_x64 = None

    def take(self, given):
        self.given.append(given if self.capsules else given.__dlpack_device__())
        capsule = given if self.capsules else given.__dlpack__(max_version=NEWEST, stream=-1)
        self.device = peek(capsule)["device"]
        return Consumed(capsule)


def frameworks():
    return {
        "jax": StandIn("jax", "dlpack"),
        "tensorflow": StandIn("tensorflow", "experimental", "dlpack", capsules=True),
        "paddle": StandIn("paddle", "utils", "dlpack"),
    }


def test_managed_memory_is_given_under_the_name_of_its_gpu():
    for name, taker in frameworks().items():
        memory = Memory(kind="managed", device=1)
        result = convert(CaiArray(memory), name)
        assert taker.device == (CUDA, 1), name
        assert taker.capsules or taker.given == [(CUDA, 1)]
        result.delete()


def test_its_own_name_goes_to_who_knows_it():
    taker = StandIn("cupy")
    result = convert(CaiArray(Memory(kind="managed", device=1)), "cupy")
    assert taker.device == (CUDA_MANAGED, 1)
    result.delete()


def test_pinned_memory_is_given_as_the_hosts():
    taker = frameworks()["paddle"]
    result = convert(CaiArray(Memory(kind="host")), "paddle")
    assert taker.device == (CPU, 0)
    result.delete()


def test_managed_memory_is_waited_for_under_any_name():
    taker, memory, consumer = frameworks()["paddle"], Memory(kind="managed"), new_stream()
    result = convert(slow_array(new_stream(), memory), "paddle", stream=consumer)
    assert taker.device == (CUDA, 0)
    assert read_on(consumer, memory.address, 6) == [NEW] * 6
    result.delete()


def test_managed_memory_on_the_device_is_not_copied_for_its_name():
    taker = frameworks()["paddle"]
    result = convert(CaiArray(Memory(kind="managed")), "paddle", copy=False)
    assert taker.device == (CUDA, 0)
    result.delete()


def test_the_probe_has_numpy_arrays_in_each_memory():
    from dlbridge.tests import _probe

    given = {case.name: case for case in _probe._cases(["float32"]) if case.what == "device"}
    tensors = {name: asdlpack(case.array) for name, case in given.items()}
    devices = {name: tensor.__dlpack_device__() for name, tensor in tensors.items()}
    assert devices == {"cuda": (CUDA, 0), "pinned": (CUDA_HOST, 0), "managed": (CUDA_MANAGED, 0)}
    assert all(asdlpack(t, device="cpu").size == 12 for t in tensors.values())
    assert memoryview(tensors["pinned"]).tolist() == given["pinned"].expected


def test_cvcuda_takes_the_cuda_array_interface_behind_its_own_stream():
    module, stream = types.ModuleType("cvcuda"), new_stream()
    module.Stream = types.SimpleNamespace(current=types.SimpleNamespace(handle=stream))
    module.as_tensor = lambda given: (given, given.__cuda_array_interface__)
    sys.modules["cvcuda"] = module
    memory = Memory()
    array = slow_array(new_stream(), memory)
    forget()
    held, interface = convert(array, "cvcuda", copy=False)
    assert interface["data"] == (memory.address, False)
    nothing_blocks()
    assert read_on(stream, memory.address, 6) == [NEW] * 6
    module.Stream.current.handle = 0
    array = slow_array(new_stream(), memory)
    forget()
    held, interface = convert(array, "cvcuda", copy=False)
    assert any(stream_name(1) in line for line in new_calls("stream_wait"))
    del held


def test_dali_takes_a_capsule_behind_the_legacy_default_stream():
    for path in ("nvidia", "nvidia.dali", "nvidia.dali.tensors"):
        sys.modules[path] = types.ModuleType(path)
    sys.modules["nvidia.dali.tensors"].TensorGPU = lambda capsule: (peek(capsule)["device"], Consumed(capsule))
    array = slow_array(new_stream(), Memory(kind="managed"))
    forget()
    device, taken = convert(array, "dali", copy=False)
    assert device == (CUDA, 0)
    nothing_blocks()
    assert any(stream_name(1) in line for line in new_calls("stream_wait"))
    taken.delete()


def test_onnxruntime_gets_cuda_memory_that_is_ready():
    """A session's stream is nobody's business: the host waits for what is not ready, and for nothing else."""
    taker = StandIn("onnxruntime")
    sys.modules["onnxruntime"].OrtValue, sys.modules["onnxruntime"].__version__ = taker, "1.32.0"
    taker.from_dlpack = taker.take
    for kind, device in (("device", 0), ("managed", 1)):
        memory = Memory(kind=kind, device=device)
        array = slow_array(new_stream(device), memory)
        result = convert(array, "onnxruntime", copy=False)
        assert taker.device == (CUDA, device)
        assert read_now(memory.address, 6) == [NEW] * 6
        result.delete()
    forget()
    convert(CaiArray(None, (0, 3)), "onnxruntime").delete()
    assert new_calls("stream_synchronize", "event_synchronize", "memcpy_dtoh") == []


def test_cudf_takes_the_cuda_array_interface_and_for_a_frame_a_capsule():
    """A frame copies into its columns: what it cannot walk is made dense before, and read-only memory is no matter."""
    module = sys.modules["cudf"] = types.ModuleType("cudf")
    module.Series = lambda given: (given, given.__cuda_array_interface__)
    module.from_dlpack = lambda capsule: (peek(capsule), Consumed(capsule))
    memory = Memory()
    forget()
    held, interface = convert(slow_array(new_stream(), memory, shape=(6,)), "cudf", copy=False)
    assert interface["data"] == (memory.address, False) and interface["stream"] not in (None, 0)
    nothing_blocks()
    for fields, is_copied in (
        ({}, False),
        ({"data": (memory.address, True)}, False),
        ({"strides": (-12, 4), "data": (memory.address + 12, False)}, True),
    ):
        described, taken = convert(CaiArray(memory, **fields), "cudf")
        assert (described["device"], described["shape"]) == ((CUDA, 0), (2, 3))
        assert (described["data"] != memory.address) == is_copied, fields
        assert min(described["strides"] or (1,)) > 0
        taken.delete()
    refused(BufferError, "one buffer a column", lambda: convert(CaiArray(memory), "cudf", copy=False))
    del held


if __name__ == "__main__":
    main(globals())
