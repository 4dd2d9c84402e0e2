"""The CUDA side without a GPU: reading arrays that lie on a device, and describing them again.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes
import sys

import dlbridge
from dlbridge import CudaError, CudaTensor, HostTensor, _core, asdlpack

if sys.argv[1:] == ["test_import_and_host_exchanges_leave_the_driver_alone"]:  # before fake_cuda loads the driver
    asdlpack(asdlpack(bytearray(8)).__dlpack__())
    from dlbridge import nd

    x = nd.asarray(bytearray(8), device="cpu")
    nd.array([1.0], device="cpu"), nd.empty(3, device="cpu"), nd.full(3, 1, device="cpu"), nd.arange(3, device="cpu")
    nd.full_like(x + 1, 2), x.to_device("cpu"), nd.ascontiguousarray(x[::2]), nd.concatenate([x, x])
    del x
    with open("/proc/self/maps") as maps:
        assert "libcuda.so.1" not in maps.read()

from dlbridge.tests.conformance._abi import READ_ONLY
from fake_cuda import *
from lifecycle_support import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Consumed

# What the interpreter of a case is started with, beside the fake.
ENVIRONMENT = {
    "test_export_version_switch_2_has_no_stream_key": {"DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION": "2"},
    "test_managed_memory_is_called_cuda_for_dlpack_before_0_6": {"DLBRIDGE_DLPACK_EXPORT_VERSION": "0.5"},
    "test_managed_memory_keeps_its_name_for_dlpack_0_6": {"DLBRIDGE_DLPACK_EXPORT_VERSION": "0.6"},
    "test_a_zero_size_array_needs_no_driver": {"FAKE_CUDA_DEVICES": "0"},
    "test_bad_dictionaries_are_diagnosed_without_the_driver": {"FAKE_CUDA_DEVICES": "0"},
    "test_no_device_is_said_with_its_reason": {"FAKE_CUDA_DEVICES": "0"},
}


# ---- reading the CUDA Array Interface


def test_import_and_host_exchanges_leave_the_driver_alone():
    assert log() == []  # and see the top of this file


def test_the_device_comes_from_the_pointer():
    for device in (0, 1):
        tensor = asdlpack(CaiArray(Memory(device=device)))
        assert (str(tensor.device), tensor.protocol) == (f"cuda:{device}", "cuda_array_interface")
        assert type(tensor) is CudaTensor
    managed = asdlpack(CaiArray(Memory(device=1, kind="managed")))
    assert managed.__dlpack_device__() == (CUDA_MANAGED, 1)
    assert type(managed) is CudaTensor
    pinned = asdlpack(CaiArray(Memory(kind="host")))
    assert pinned.__dlpack_device__() == (CUDA_HOST, 0)
    assert type(pinned) is HostTensor
    assert memoryview(pinned).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_tensor_holds_the_producer():
    before = lib.fake_cuda_live_bytes()
    tensor = asdlpack(CaiArray(Memory()))
    held = Consumed(tensor.__dlpack__(stream=-1, max_version=NEWEST))
    del tensor
    assert lib.fake_cuda_live_bytes() == before + 24
    held.delete()
    assert lib.fake_cuda_live_bytes() == before


def test_strides_are_bytes_and_absent_means_c_order():
    memory = Memory()
    for strides in (None, ..., (12, 4)):
        tensor = asdlpack(CaiArray(memory, strides=strides))
        assert (tensor.shape, tensor.strides) == ((2, 3), (12, 4))
    turned = asdlpack(CaiArray(memory, shape=(3, 2), strides=(4, 12)))
    assert turned.strides == (4, 12)
    assert values(turned, 6) == [0, 3, 1, 4, 2, 5]
    refused(BufferError, "multiple of the itemsize", lambda: asdlpack(CaiArray(memory, strides=(12, 5))))


def test_bad_pointers_are_named():
    host = (ctypes.c_int32 * 6)()
    wrong = CaiArray(None, data=(ctypes.addressof(host), False))
    refused(ValueError, "data pointer", lambda: asdlpack(wrong))
    refused(ValueError, "__cuda_array_interface__", lambda: asdlpack(wrong))
    memory = Memory()
    freed = CaiArray(None, data=(memory.address, False))
    del memory
    refused(ValueError, "freed", lambda: asdlpack(freed))
    refused(ValueError, "null", lambda: asdlpack(CaiArray(None)))


def test_bad_dictionaries_are_diagnosed_without_the_driver():
    good = CaiArray(None, data=(4096, False))
    refused(CudaError, "CUDA is not available", lambda: asdlpack(good))
    cases = {
        "'shape' is missing": {"shape": ...},
        "'typestr' is missing": {"typestr": ...},
        "'version' is missing": {"version": ...},
        "'data' is missing": {"data": ...},
        "'version' is -1": {"version": -1},
        "'mask'": {"mask": good},
        "'stream' is 0": {"stream": 0},
        "(address, read_only)": {"data": 4096},
        "'strides' has 1 entries": {"strides": (4,)},
        "extent": {"shape": (2, -3)},
    }
    for text, fields in cases.items():
        fields = {"data": (4096, False), **fields}
        refused((ValueError, TypeError, BufferError), text, lambda fields=fields: asdlpack(CaiArray(None, **fields)))
    refused(BufferError, ">i4", lambda: asdlpack(CaiArray(None, data=(4096, False), typestr=">i4")))
    refused(OverflowError, "63 bits", lambda: asdlpack(CaiArray(None, (1 << 62, 8), data=(4096, False))))
    assert log() == []


def test_a_zero_size_array_needs_no_driver():
    tensor = asdlpack(CaiArray(None, shape=(0, 3), stream=1))
    assert (tensor.shape, tensor.data_ptr, str(tensor.device)) == ((0, 3), 0, "cuda:0")
    for arguments in ({}, {"stream": 1}, {"stream": 2}, {"stream": -1}, {"copy": True}, {"dl_device": (CPU, 0)}):
        capsule = tensor.__dlpack__(max_version=NEWEST, **arguments)
        assert peek(capsule)["shape"] == (0, 3)
    assert tensor.__cuda_array_interface__["data"] == (0, False)
    assert asdlpack(tensor, device="cpu").shape == (0, 3)
    assert log() == []


def test_no_device_is_said_with_its_reason():
    info = _core.cuda_info()
    assert info["available"] is False
    assert "CUDA_ERROR_NO_DEVICE" in info["reason"]
    refused(CudaError, "CUDA_ERROR_NO_DEVICE", lambda: asdlpack(bytearray(4), device="cuda"))
    assert memoryview(asdlpack(bytearray(b"abc"))).tobytes() == b"abc"


def test_a_device_that_does_not_exist_is_named():
    refused(ValueError, "cuda:7 does not exist", lambda: asdlpack(bytearray(4), device="cuda:7"))
    tensor = asdlpack(CaiArray(Memory()))
    refused(ValueError, "cuda:7", lambda: tensor.__dlpack__(dl_device=(CUDA, 7)))


# ---- exporting the CUDA Array Interface


def test_export_has_every_key_and_the_stream():
    memory = Memory()
    exported = asdlpack(CaiArray(memory, stream=1)).__cuda_array_interface__
    assert exported == {
        "shape": (2, 3),
        "typestr": "<i4",
        "data": (memory.address, False),
        "strides": None,
        "version": 3,
        "stream": 1,
    }
    turned = asdlpack(CaiArray(memory, shape=(3, 2), strides=(4, 12), data=(memory.address, True)))
    assert turned.__cuda_array_interface__["strides"] == (4, 12)
    assert turned.__cuda_array_interface__["data"] == (memory.address, True)


def test_export_of_an_imported_capsule_names_the_relay_stream():
    array = DLPackArray(Memory())
    stream = asdlpack(array).__cuda_array_interface__["stream"]
    assert stream == array.calls[0]["stream"]
    assert stream > 2


def test_export_version_switch_2_has_no_stream_key():
    exported = asdlpack(CaiArray(Memory(), stream=new_stream())).__cuda_array_interface__
    assert exported["version"] == 2
    assert "stream" not in exported
    assert "strides" in exported


# ---- reading DLPack producers


def test_the_producer_gets_an_explicit_stream_and_the_newest_version():
    for device in (0, 1):
        array = DLPackArray(Memory(device=device))
        forget()
        tensor = asdlpack(array)
        (asked,) = array.calls
        assert asked["max_version"] == NEWEST
        assert asked["stream"] > 2
        assert asked["dl_device"] is None
        nothing_blocks()
        again = DLPackArray(Memory(device=device))
        asdlpack(again)
        assert again.calls[0]["stream"] == asked["stream"]
        assert str(tensor.device) == f"cuda:{device}"
        del tensor
        array.assert_all_deleted_once()


def test_the_producers_device_is_current_during_its_call_only():
    lib.fake_cuda_select_device(0)
    depth = lib.fake_cuda_context_depth()
    array = DLPackArray(Memory(device=1))
    forget()
    asdlpack(array)
    assert array.devices == [1]
    assert (current_device(), lib.fake_cuda_context_depth()) == (0, depth)
    assert "ctx_push device=1" in new_calls()
    same = DLPackArray(Memory(device=0))
    asdlpack(same)
    assert same.devices == [0]


def test_a_failing_producer_leaves_the_context_as_it_was():
    class Failing(DLPackArray):
        def __dlpack__(self, **_):
            raise LookupError("no")

    for device in (0, 1):
        refused(LookupError, "no", lambda device=device: asdlpack(Failing(Memory(device=device))))
        assert lib.fake_cuda_context_depth() == 0


def test_work_ordered_before_the_relay_reaches_the_consumer():
    memory = Memory()
    memory.set(OLD)
    consumer = new_stream()

    class Working(DLPackArray):
        def __dlpack__(self, *, stream=None, **arguments):
            memory.fill(NEW, stream)
            return super().__dlpack__(stream=stream, **arguments)

    tensor = asdlpack(Working(memory))
    forget()
    tensor.__dlpack__(stream=consumer)
    nothing_blocks()
    assert read_on(consumer, memory.address, 6) == [NEW] * 6


def test_older_signatures_still_get_the_stream():
    class OnlyStream(DLPackArray):
        def __dlpack__(self, stream=None):
            return super().__dlpack__(stream=stream)

    array = OnlyStream(Memory())
    asdlpack(array)
    assert array.calls[0]["stream"] > 2


def test_the_capsule_counts_not_the_announcement():
    memory = Memory()
    tensor = asdlpack(DLPackArray(memory, announce=(CUDA_MANAGED, 0)))
    assert str(tensor.device) == "cuda:0"
    memory.set(OLD)

    class Working(DLPackArray):
        def __dlpack__(self, *, stream=None, **arguments):
            memory.fill(NEW, stream)
            return super().__dlpack__(stream=stream, **arguments)

    tensor = asdlpack(Working(memory, device_type=CPU, device_id=0))
    assert str(tensor.device) == "cpu"
    assert memoryview(tensor).tolist() == [[NEW] * 3] * 2  # the host asks for no stream, so it has been waited for


def test_managed_memory_in_capsules():
    for device in (0, 1):
        tensor = asdlpack(DLPackArray(Memory(device=device, kind="managed"), managed=True))
        assert type(tensor) is CudaTensor
        assert tensor.__dlpack_device__() == (CUDA_MANAGED, device)
        assert peek(tensor.__dlpack__(max_version=NEWEST, stream=-1))["device"] == (CUDA_MANAGED, device)
        assert peek(tensor.__dlpack__(stream=-1))["device"] == (CUDA_MANAGED, device)


def test_managed_memory_keeps_its_name_for_dlpack_0_6():
    test_managed_memory_in_capsules()


def test_managed_memory_is_called_cuda_for_dlpack_before_0_6():
    tensor = asdlpack(DLPackArray(Memory(device=1, kind="managed"), managed=True))
    assert tensor.__dlpack_device__() == (CUDA, 1)
    assert peek(tensor.__dlpack__(stream=-1))["device"] == (CUDA, 1)
    assert peek(tensor.__dlpack__(stream=-1, max_version=NEWEST))["device"] == (CUDA, 1)
    assert peek(tensor.__dlpack__(stream=-1, dl_device=(CUDA, 1)))["device"] == (CUDA, 1)


def test_read_only_travels_and_a_legacy_capsule_refuses_it():
    memory = Memory()
    for array in (CaiArray(memory, data=(memory.address, True)), DLPackArray(memory, flags=READ_ONLY)):
        tensor = asdlpack(array)
        assert tensor.readonly
        assert peek(tensor.__dlpack__(max_version=NEWEST))["flags"] & READ_ONLY
        refused(BufferError, "read-only", lambda tensor=tensor: tensor.__dlpack__())
        assert peek(tensor.__dlpack__(copy=True))["flags"] is None


# ---- what a device tensor must not look like


def test_a_cuda_tensor_looks_like_nothing_on_the_host():
    tensor = asdlpack(CaiArray(Memory()))
    for name in ("__array_interface__", "__array_struct__", "__buffer__"):
        assert not hasattr(tensor, name), name
    for name in ("__cuda_array_interface__", "__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__"):
        assert hasattr(tensor, name), name
    refused(TypeError, "bytes-like", lambda: memoryview(tensor))
    refused(TypeError, "", lambda: bytes(tensor))
    refused(TypeError, "device='cpu'", lambda: tensor.__array__())
    host = asdlpack(bytearray(4))
    assert not hasattr(host, "__cuda_array_interface__")


def test_numpy_refuses_a_cuda_tensor_with_the_remedy():
    import numpy

    tensor = asdlpack(CaiArray(Memory()))
    refused(TypeError, "asdlpack(x, device='cpu')", lambda: numpy.asarray(tensor))
    refused(TypeError, "asdlpack(x, device='cpu')", lambda: numpy.array(tensor))
    refused((BufferError, RuntimeError), "", lambda: numpy.from_dlpack(tensor))
    assert numpy.from_dlpack(tensor, device="cpu").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert numpy.asarray(asdlpack(tensor, device="cpu")).tolist() == [[0, 1, 2], [3, 4, 5]]
    refused((TypeError, BufferError), "", lambda: dlbridge.convert(tensor, "numpy", copy=False))


def test_a_cuda_tensor_can_be_inspected():
    tensor = asdlpack(CaiArray(Memory()))
    assert "cuda:0" in repr(tensor)
    assert "cuda" in str(dlbridge.inspect(tensor).todict())


if __name__ == "__main__":
    main(globals())
