"""Tensor.__dlpack__ and __dlpack_device__: both capsule kinds, every argument, and who deletes what."""

import ctypes as ct
import gc
import threading

import pytest
import stable_ids
from dlbridge import CopyError, ExchangeError, _core, asdlpack
from dlbridge.tests.conformance._abi import IS_COPIED, PADDED, READ_ONLY, call_deleter, capsule_name, managed_of, rename
from provoke import CPU, CUDA, CUDA_HOST, METAL, Managed

V1 = (1, 0)


def flags_of(capsule):
    return _core.peek_capsule(capsule)["flags"]


# --- which capsule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_version", "name"),
    [
        (..., b"dltensor"),
        (None, b"dltensor"),
        ((0, 8), b"dltensor"),
        ((1, 0), b"dltensor_versioned"),
        ((1, 3), b"dltensor_versioned"),
        ((2, 0), b"dltensor_versioned"),
        ((99, 99), b"dltensor_versioned"),
    ],
    ids=str,
)
def test_max_version_chooses_the_capsule(max_version, name):
    """Never legacy when the consumer takes versioned."""
    tensor = asdlpack(bytearray(b"abc"))
    capsule = tensor.__dlpack__() if max_version is ... else tensor.__dlpack__(max_version=max_version)
    assert capsule_name(capsule) == name
    if name == b"dltensor_versioned":
        assert _core.peek_capsule(capsule)["version"] == (1, 3)


@pytest.mark.parametrize("value", [1, "1.0", (1,), (1, 0, 0), [1, 0], ("1", "0"), (1.0, 0)], ids=repr)
def test_a_malformed_max_version_is_a_type_error(value):
    """As NumPy does."""
    with pytest.raises(TypeError, match="max_version is .*not a pair of integers"):
        asdlpack(bytearray(1)).__dlpack__(max_version=value)


@pytest.mark.parametrize("value", [1, "cpu", (1,), (1, 0, 0), [1, 0], ("cpu", 0), (1.0, 0), (2**40, 0)], ids=repr)
def test_a_malformed_dl_device_is_a_type_error(value):
    """As NumPy does."""
    with pytest.raises(TypeError, match="dl_device is not a pair of integers"):
        asdlpack(bytearray(1)).__dlpack__(dl_device=value)


def test_the_signature_is_keyword_only():
    tensor = asdlpack(bytearray(3))
    with pytest.raises(TypeError, match="keyword arguments only"):
        tensor.__dlpack__(None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'device'"):
        tensor.__dlpack__(device=(1, 0))
    tensor.__dlpack__(stream=None, max_version=None, dl_device=None, copy=None)
    tensor.__dlpack__(**{"".join(["max_", "version"]): (1, 0)})  # a keyword that is not interned


# --- read-only --------------------------------------------------------------------------------------------------------


def test_read_only_and_legacy_is_refused():
    tensor = asdlpack(b"abc")
    with pytest.raises(ExchangeError, match="read-only, and a legacy capsule cannot say so. Pass max_version"):
        tensor.__dlpack__()
    assert flags_of(tensor.__dlpack__(max_version=V1)) == READ_ONLY
    assert flags_of(asdlpack(bytearray(3)).__dlpack__(max_version=V1)) == 0


def test_a_copy_of_a_read_only_tensor_may_be_legacy():
    """The copy is writable."""
    capsule = asdlpack(b"abc").__dlpack__(copy=True)
    assert capsule_name(capsule) == b"dltensor"


def test_padded_and_legacy_is_refused():
    """The other flag that a legacy capsule cannot carry."""
    managed = Managed((ct.c_uint8 * 3)(), dtype=(17, 4, 1), flags=PADDED)
    tensor = asdlpack(managed.capsule())
    with pytest.raises(ExchangeError, match="padded"):
        tensor.__dlpack__()
    assert flags_of(tensor.__dlpack__(max_version=V1)) == PADDED


# --- copy and device --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_version", [None, V1], ids=["legacy", "versioned"])
def test_copy_true_always_copies_and_says_so(max_version):
    source = bytearray(b"abc")
    tensor = asdlpack(source)
    capsule = tensor.__dlpack__(copy=True, max_version=max_version)
    peek = _core.peek_capsule(capsule)
    assert peek["data"] != tensor.data_ptr
    assert peek["flags"] == (None if max_version is None else IS_COPIED)
    copy = asdlpack(capsule)
    source[0] = 0
    assert bytes(memoryview(copy)) == b"abc"
    assert not copy.readonly


def test_a_shared_export_does_not_say_copied():
    """The flag promises that nobody else writes there."""
    copy = asdlpack(b"abc", copy=True)
    tensor = asdlpack(copy.__dlpack__(copy=True, max_version=V1))
    assert flags_of(tensor.__dlpack__(max_version=V1)) & IS_COPIED == 0


@pytest.mark.parametrize("dl_device", [None, CPU], ids=["no device", "its own"])
def test_copy_false_shares(dl_device):
    """Nothing needs a copy here."""
    tensor = asdlpack(bytearray(3))
    assert managed_of(tensor.__dlpack__(copy=False, dl_device=dl_device)).dl_tensor.data == tensor.data_ptr


def test_copy_false_is_refused_where_a_copy_is_needed():
    """BufferError by one page of the standard, ValueError by another; CopyError is both."""
    managed = Managed(1 << 40, device=METAL)
    tensor = asdlpack(managed.capsule())
    with pytest.raises(CopyError, match="copy=False forbids") as caught:
        tensor.__dlpack__(dl_device=CPU, copy=False)
    assert isinstance(caught.value, BufferError) and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("dl_device", [(77, 0), (-1, 0)], ids=str)
def test_an_unknown_dl_device_is_refused(dl_device):
    with pytest.raises(BufferError, match="device"):
        asdlpack(bytearray(3)).__dlpack__(dl_device=dl_device)


@pytest.mark.parametrize("dl_device", [METAL, (10, 0)], ids=["metal", "rocm"])
def test_a_device_that_dlbridge_cannot_reach_is_refused(dl_device):
    with pytest.raises(BufferError):
        asdlpack(bytearray(3)).__dlpack__(dl_device=dl_device)


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("dl_device", [(3, 0), (13, 0), (11, 0), (1, 5)], ids=str)
def test_memory_that_dlbridge_does_not_allocate_is_refused(dl_device, copy):
    """Never a capsule that says another device than was asked for."""
    tensor = asdlpack(bytearray(3))
    with pytest.raises(BufferError, match="device"):
        tensor.__dlpack__(dl_device=dl_device, copy=copy)
    with pytest.raises(BufferError, match="device"):
        asdlpack(bytearray(3), device=dl_device, copy=copy)


@pytest.mark.parametrize("device", [(3, 0), (11, 0)], ids=["cuda_host", "rocm_host"])
def test_pinned_memory_is_shared_as_it_is_and_copied_to_plain_memory(device):
    """On memory that is pinned already."""
    memory = (ct.c_float * 3)(1, 2, 3)
    tensor = asdlpack(Managed(memory, device=device).capsule())
    assert _core.peek_capsule(tensor.__dlpack__(dl_device=device, max_version=V1))["data"] == ct.addressof(memory)
    copied = _core.peek_capsule(tensor.__dlpack__(dl_device=CPU, max_version=V1, copy=True))
    assert copied["device"] == CPU
    with pytest.raises(BufferError, match="ordinary"):
        tensor.__dlpack__(dl_device=device, copy=True)
    assert asdlpack(tensor, device="cpu") is tensor


@pytest.mark.parametrize("source", [b"abc", bytearray(b"")], ids=["bytes", "empty"])
def test_the_host_is_no_move_for_host_data(source):
    """The half that needs no GPU: dl_device=(1, 0) with stream None."""
    tensor = asdlpack(source)
    assert _core.peek_capsule(tensor.__dlpack__(dl_device=CPU, max_version=V1))["data"] == tensor.data_ptr


def test_a_stream_with_the_host_as_target_is_refused():
    """Stream must be None. A foreign CUDA pointer needs no driver to be refused."""
    managed = Managed(1 << 40, device=CUDA)
    tensor = asdlpack(managed.capsule())
    with pytest.raises(BufferError, match="dl_device names the host, so stream must be None"):
        tensor.__dlpack__(dl_device=CPU, stream=5)


# --- streams on the host ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [None, -1])
def test_the_cpu_takes_no_stream(stream):
    """-1 as in torch, whose default it is."""
    assert capsule_name(asdlpack(bytearray(3)).__dlpack__(stream=stream)) == b"dltensor"


@pytest.mark.parametrize("stream", [1, 2, 12345])
def test_any_other_stream_on_the_cpu_is_refused(stream):
    with pytest.raises(BufferError, match="only stream=None and -1 are allowed"):
        asdlpack(bytearray(3)).__dlpack__(stream=stream)


def test_stream_zero_is_disallowed():
    """On any device, since it could mean either default stream."""
    with pytest.raises(ValueError, match="stream 0 is not allowed.* on the host leave stream out"):
        asdlpack(bytearray(3)).__dlpack__(stream=0)


@pytest.mark.parametrize("stream", ["1", 1.0, object(), True], ids=stable_ids.of)
def test_a_stream_of_another_type_is_a_type_error(stream):
    with pytest.raises(TypeError, match="stream is"):
        asdlpack(bytearray(3)).__dlpack__(stream=stream)


def test_minus_one_asks_a_cuda_tensor_for_no_synchronisation():
    """So no driver is touched."""
    managed = Managed(1 << 40, device=CUDA)
    capsule = asdlpack(managed.capsule()).__dlpack__(stream=-1, max_version=V1)
    assert _core.peek_capsule(capsule)["device"] == CUDA
    del capsule
    assert managed.deletions == 1


def test_rocm_tensors_are_passed_on_without_streams():
    """dlbridge has no HIP runtime to order with, so every handle, valid there or not, is refused."""
    managed = Managed(1 << 40, device=(10, 0))
    tensor = asdlpack(managed.capsule())
    assert _core.peek_capsule(tensor.__dlpack__(max_version=V1))["device"] == (10, 0)
    for stream in (1, 2, 12345):
        with pytest.raises(BufferError):
            tensor.__dlpack__(stream=stream)


# --- the struct -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_version", [None, V1], ids=["legacy", "versioned"])
def test_strides_are_never_null(max_version):
    """DLPack 1.2 asks for them."""
    managed = managed_of(asdlpack(bytearray(6)).__dlpack__(max_version=max_version))
    assert managed.dl_tensor.ndim == 1
    assert (managed.dl_tensor.shape[0], managed.dl_tensor.strides[0]) == (6, 1)


def test_an_empty_tensor_exports_a_null_pointer():
    managed = managed_of(asdlpack(bytearray()).__dlpack__())
    assert managed.dl_tensor.data is None
    assert managed.dl_tensor.shape[0] == 0


def test_byte_offset_is_zero_on_the_way_out():
    """Consumers exist that ignore it."""
    source = Managed(byte_offset=8)
    tensor = asdlpack(source.capsule())
    dl = managed_of(tensor.__dlpack__()).dl_tensor
    assert (dl.data, dl.byte_offset) == (source.address + 8, 0)


@pytest.mark.parametrize("device", [CPU, CUDA_HOST, METAL], ids=["cpu", "pinned", "metal"])
def test_the_device_pair_matches_the_capsule(device):
    source = Managed(1 << 40, device=device)
    tensor = asdlpack(source.capsule())
    assert tensor.__dlpack_device__() == device
    assert _core.peek_capsule(tensor.__dlpack__(max_version=V1))["device"] == device


# --- who deletes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_version", [None, V1], ids=["legacy", "versioned"])
def test_the_destructor_deletes_under_the_unused_name_only(max_version):
    """A consumer that renamed the capsule runs the deleter itself."""
    source = Managed()
    capsule = asdlpack(source.capsule()).__dlpack__(max_version=max_version)
    managed = managed_of(capsule)
    rename(capsule, b"used_" + capsule_name(capsule))
    del capsule
    assert source.deletions == 0
    call_deleter(managed)
    assert source.deletions == 1


@pytest.mark.parametrize("max_version", [None, V1], ids=["legacy", "versioned"])
def test_an_unconsumed_export_releases_the_source_once(max_version):
    source = Managed()
    capsule = asdlpack(source.capsule()).__dlpack__(max_version=max_version)
    assert source.deletions == 0
    del capsule
    assert source.deletions == 1


def test_the_destructor_keeps_a_pending_exception():
    """The capsule dies while an exception unwinds."""

    def unwinds():
        capsule = asdlpack(bytearray(3)).__dlpack__()
        assert capsule_name(capsule) == b"dltensor"
        raise LookupError("the caller's own")

    with pytest.raises(LookupError, match="the caller's own"):
        unwinds()


def test_an_export_consumed_twice():
    capsule = asdlpack(bytearray(3)).__dlpack__()
    first = asdlpack(capsule)
    with pytest.raises(ValueError, match="already consumed"):
        asdlpack(capsule)
    assert first.size == 3


def test_a_deleter_may_run_on_another_thread():
    """Without the GIL, from a thread that Python knows nothing of."""
    source = Managed()
    capsule = asdlpack(source.capsule()).__dlpack__()
    managed = managed_of(capsule)
    rename(capsule, b"used_dltensor")
    thread = threading.Thread(target=call_deleter, args=(managed,))  # ctypes releases the GIL around the call
    thread.start()
    thread.join()
    assert source.deletions == 1


def test_exports_may_be_taken_many_times():
    source = Managed()
    tensor = asdlpack(source.capsule())
    capsules = [tensor.__dlpack__(max_version=v) for v in (None, V1) for _ in range(300)]
    assert {_core.peek_capsule(c)["data"] for c in capsules} == {tensor.data_ptr}
    assert _core.live_counts()["exports"] >= 600
    del tensor
    gc.collect()
    assert source.deletions == 0
    del capsules
    assert source.deletions == 1


# --- real consumers ---------------------------------------------------------------------------------------------------


def test_numpy_shares_the_memory_and_keeps_read_only():
    np = pytest.importorskip("numpy", reason="NumPy is the consumer")
    source = bytearray(b"abc")
    array = np.from_dlpack(asdlpack(source))
    array[0] = 120
    assert source == b"xbc"
    assert not np.from_dlpack(asdlpack(b"abc")).flags.writeable
    assert np.from_dlpack(asdlpack(source), copy=True).ctypes.data != array.ctypes.data


def test_torch_gets_read_only_memory_only_by_its_own_choice():
    """PyTorch asks for a versioned capsule and ignores the flag, as DLPack allows consumers that
    cannot represent it; `convert` knows and copies or refuses (tests/python/test_convert.py)."""
    torch = pytest.importorskip("torch", reason="torch is the consumer")
    assert bytes(torch.from_dlpack(asdlpack(b"Hello!")).tolist()) == b"Hello!"


def test_torch_refuses_negative_strides():
    """PyTorch's importer says so itself; `convert` says it before."""
    np = pytest.importorskip("numpy", reason="NumPy makes the strides")
    torch = pytest.importorskip("torch", reason="torch is the consumer")
    import dlbridge

    tensor = asdlpack(np.arange(4)[::-1])
    with pytest.raises(CopyError):
        dlbridge.convert(tensor, torch, copy=False)
    assert dlbridge.convert(tensor, torch).tolist() == [3, 2, 1, 0]
