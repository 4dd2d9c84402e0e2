"""Reading DLPack: structs that break the rules, versions, flags, dtypes and devices."""

import ctypes as ct

import pytest
from dlbridge import DataError, ExchangeError, asdlpack
from dlbridge.tests.conformance._abi import IS_COPIED, PADDED, READ_ONLY
from provoke import (
    BFLOAT16,
    CPU,
    CUDA,
    CUDA_HOST,
    CUDA_MANAGED,
    METAL,
    VERSIONS,
    Managed,
    Producer,
    assert_refused,
    floats,
)

# --- the version and the flags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [(2, 0), (0, 9), (99, 1)], ids=str)
def test_another_major_version_is_refused_unread(version):
    """The rest of the struct is poison: reading it would crash or change the message."""
    managed = Managed(version=version, ndim=-7, dtype=(255, 255, 65535))
    managed.struct.dl_tensor.shape = ct.cast(ct.c_void_p(1), ct.POINTER(ct.c_int64))
    error = assert_refused(managed, ExchangeError, rf"{version[0]}\.{version[1]}, dlbridge speaks 1\.3")
    assert isinstance(error, BufferError)


@pytest.mark.parametrize("minor", [0, 1, 4, 99])
def test_any_minor_version_is_accepted(minor):
    managed = Managed(version=(1, minor))
    assert floats(asdlpack(managed.capsule())) == [0, 1, 2]
    assert managed.deletions == 1


@pytest.mark.parametrize("flags", [0, READ_ONLY, IS_COPIED, READ_ONLY | IS_COPIED])
def test_the_read_only_flag_is_kept(flags):
    managed = Managed(flags=flags)
    tensor = asdlpack(managed.capsule())
    assert tensor.readonly == bool(flags & READ_ONLY)
    assert memoryview(tensor).readonly == tensor.readonly
    assert tensor.__array_interface__["data"][1] == tensor.readonly


def test_unknown_flags_do_not_travel():
    """A flag of a later minor version means nothing here and is not passed on."""
    managed = Managed(flags=READ_ONLY | 1 << 40)
    tensor = asdlpack(managed.capsule())
    from dlbridge import _core

    assert _core.peek_capsule(tensor.__dlpack__(max_version=(1, 0)))["flags"] == READ_ONLY


def test_the_padded_flag_is_kept_for_sub_byte_types_only():
    """Padded float4 has one element a byte; for whole bytes the flag means nothing."""
    padded = Managed((ct.c_uint8 * 3)(1, 2, 3), dtype=(17, 4, 1), flags=PADDED)
    packed = Managed((ct.c_uint8 * 2)(1, 2), dtype=(17, 4, 1))
    whole = Managed(flags=PADDED)
    assert (asdlpack(padded.capsule()).padded, asdlpack(padded.capsule()).nbytes) == (True, 3)
    assert (asdlpack(packed.capsule()).padded, asdlpack(packed.capsule()).nbytes) == (False, 2)
    assert asdlpack(whole.capsule()).padded is False


# --- the tensor struct ------------------------------------------------------------------------------------------------


@VERSIONS
def test_null_strides_mean_row_major(version):
    """And the producer's struct is not modified."""
    managed = Managed(shape=(2, 3), version=version)
    tensor = asdlpack(managed.capsule())
    assert tensor.strides == (12, 4)
    assert floats(tensor) == [[0, 1, 2], [3, 4, 5]]
    assert not managed.struct.dl_tensor.strides


@VERSIONS
def test_a_scalar_needs_neither_shape_nor_strides(version):
    managed = Managed(shape=None, version=version)
    tensor = asdlpack(managed.capsule())
    assert (tensor.shape, tensor.strides, tensor.ndim, tensor.size) == ((), (), 0, 1)
    assert floats(tensor) == 0.0


def test_a_null_shape_with_dimensions_is_refused():
    assert_refused(Managed(shape=None, ndim=2), DataError, "shape is null with ndim 2")


@pytest.mark.parametrize("ndim", [-1, -(2**31), 65, 10**9])
def test_an_absurd_ndim_is_refused_before_the_shape_is_read(ndim):
    managed = Managed(ndim=ndim)
    managed.struct.dl_tensor.shape = ct.cast(ct.c_void_p(1), ct.POINTER(ct.c_int64))
    assert_refused(managed, DataError, f"ndim is {ndim}; it must be between 0 and 64")


@pytest.mark.parametrize("ndim", [8, 9, 64])
def test_up_to_64_dimensions_are_read(ndim):
    managed = Managed(shape=(1,) * (ndim - 1) + (3,))
    tensor = asdlpack(managed.capsule())
    assert tensor.shape == (1,) * (ndim - 1) + (3,)
    assert tensor.strides == (12,) * (ndim - 1) + (4,)


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (0, -1), (-(2**63),)], ids=str)
def test_a_negative_extent_is_refused(shape):
    assert_refused(Managed(shape=shape), DataError, "extents must not be negative")


@pytest.mark.parametrize(
    "shape", [(2**62, 4), (2**32, 2**32), (2**61,), (2**62, 4, 0), (3037000500, 3037000500)], ids=str
)
def test_a_shape_beyond_63_bits_is_an_overflow(shape):
    assert_refused(Managed(shape=shape), OverflowError, "does not fit in 63 bits")


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((3,), (2**62,)), ((3,), (-(2**63),)), ((2, 2), (2**60, 2**60)), ((3,), (2**61,)), ((2**40,), (2**40,))],
    ids=str,
)
def test_strides_beyond_63_bits_are_an_overflow(shape, strides):
    assert_refused(Managed(shape=shape, strides=strides), OverflowError, "does not fit in 63 bits")


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2**40)], ids=str)
@pytest.mark.parametrize("data", [None, ...], ids=["null", "set"])
def test_an_empty_tensor_has_a_null_pointer(shape, data):
    """Whatever its producer gave."""
    managed = Managed(data, shape=shape, byte_offset=64)
    tensor = asdlpack(managed.capsule())
    assert (tensor.shape, tensor.size, tensor.nbytes, tensor.data_ptr) == (shape, 0, 0, 0)


@VERSIONS
def test_null_data_with_elements_is_refused(version):
    assert_refused(Managed(None, version=version), DataError, "data pointer is null")


@pytest.mark.parametrize("offset", [0, 4, 8])
def test_byte_offset_is_folded_into_the_pointer(offset):
    managed = Managed(byte_offset=offset)
    tensor = asdlpack(managed.capsule())
    assert tensor.data_ptr == managed.address + offset
    assert floats(tensor) == [offset / 4 + i for i in range(3)]


def test_a_byte_offset_beyond_the_address_space_is_an_overflow():
    """It is unsigned, so no offset points backwards."""
    assert_refused(Managed(byte_offset=2**64 - 8), OverflowError, "leaves the address space")


def test_an_opaque_handle_keeps_its_byte_offset():
    """A Metal pointer is a handle, and arithmetic on it names another buffer."""
    from dlbridge import _core

    managed = Managed(0x1234, device=METAL, byte_offset=8)
    tensor = asdlpack(managed.capsule())
    assert tensor.data_ptr == 0x1234
    again = _core.peek_capsule(tensor.__dlpack__(max_version=(1, 0)))
    assert (again["data"], again["byte_offset"]) == (0x1234, 8)


def test_a_misaligned_offset_is_refused_and_copied_on_request():
    managed = Managed(byte_offset=2)
    with pytest.raises(ExchangeError, match="aligned to 4 bytes as float32 needs.*copy=True"):
        asdlpack(managed.capsule())
    assert managed.deletions == 1
    expected = bytes(managed.data)[2:14]
    copy = asdlpack(managed.capsule(), copy=True)
    assert bytes(memoryview(copy)) == expected
    assert managed.deletions == 2


def test_strides_of_unused_axes_are_ignored():
    """An axis of extent 1 is never stepped along."""
    managed = Managed(shape=(1, 3), strides=(2**62, 1))
    assert floats(asdlpack(managed.capsule())) == [[0, 1, 2]]


def test_a_negative_stride_starts_at_element_zero():
    memory = (ct.c_float * 4)(0, 1, 2, 3)
    managed = Managed(ct.addressof(memory) + 12, shape=(4,), strides=(-1,))
    tensor = asdlpack(managed.capsule())
    assert tensor.strides == (-4,)
    assert floats(tensor) == [3, 2, 1, 0]


def test_a_zero_stride_repeats_one_element():
    managed = Managed(shape=(2, 3), strides=(0, 1))
    tensor = asdlpack(managed.capsule())
    assert tensor.strides == (0, 4)
    assert floats(tensor) == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ((2, 32, 4), "code=2, bits=32, lanes=4"),
        ((0, 24, 1), "code=0, bits=24, lanes=1"),
        ((0, 4, 1), "code=0, bits=4, lanes=1"),
        ((3, 64, 1), "code=3, bits=64, lanes=1"),
        ((18, 32, 1), "code=18, bits=32, lanes=1"),
        ((255, 255, 65535), "code=255, bits=255, lanes=65535"),
        ((2, 128, 1), "code=2, bits=128, lanes=1"),
        ((2, 32, 0), "code=2, bits=32, lanes=0"),
    ],
    ids=["lanes", "24 bits", "int4", "opaque handle", "kDLBcomplex", "garbage", "float128", "no lanes"],
)
def test_an_unknown_dtype_is_refused_by_name(dtype, name):
    assert_refused(Managed(dtype=dtype), ExchangeError, f"dtype DLDataType.{name}")


@pytest.mark.parametrize("dtype", [(17, 8, 1), (17, 4, 4), (15, 8, 1), (16, 4, 1)], ids=str)
def test_sub_byte_codes_with_other_widths_are_refused(dtype):
    assert_refused(Managed(dtype=dtype), ExchangeError, "DLDataType")


@pytest.mark.parametrize(
    ("dtype", "count", "nbytes"),
    [((17, 4, 1), 3, 2), ((17, 4, 1), 8, 4), ((15, 6, 1), 3, 3), ((16, 6, 1), 5, 4), ((17, 4, 2), 3, 3)],
    ids=["fp4 odd", "fp4 even", "fp6", "fp6 e3m2", "fp4 in two lanes"],
)
def test_packed_bytes_are_rounded_up(dtype, count, nbytes):
    """ceil(n * bits * lanes / 8)."""
    managed = Managed((ct.c_uint8 * 8)(), shape=(count,), dtype=dtype)
    assert asdlpack(managed.capsule()).nbytes == nbytes


def test_bfloat16_arrives_by_dlpack():
    """What no buffer can say, DLPack can."""
    managed = Managed(dtype=BFLOAT16)
    tensor = asdlpack(managed.capsule())
    assert tensor.dtype == "bfloat16"
    with pytest.raises(BufferError, match="no PEP 3118 code.*DLPack"):
        memoryview(tensor)


# --- devices ----------------------------------------------------------------------------------------------------------


def test_an_unknown_device_type_is_refused():
    assert_refused(Managed(device=(77, 0)), ExchangeError, "device type 77 is not one of DLPack 1.3's")
    with pytest.raises(ExchangeError, match="device type 77"):
        asdlpack(Producer(lambda **_: None, device=(77, 0)))


@pytest.mark.parametrize("device", [CPU, CUDA_HOST], ids=["cpu", "pinned"])
def test_host_memory_has_device_id_zero(device):
    managed = Managed(device=(device[0], 5))
    tensor = asdlpack(managed.capsule())
    assert tensor.__dlpack_device__() == device
    assert floats(tensor) == [0, 1, 2]


@pytest.mark.parametrize(
    ("device", "kind", "text"),
    [(CUDA, "CudaTensor", "cuda:0"), (CUDA_MANAGED, "CudaTensor", "cuda_managed:0"), (METAL, "Tensor", "metal:0")],
    ids=["cuda", "managed", "metal"],
)
def test_each_device_gives_the_type_that_it_allows(device, kind, text):
    """No driver is needed to hold a tensor that is elsewhere."""
    managed = Managed(1 << 40, device=device)
    tensor = asdlpack(managed.capsule())
    assert type(tensor).__name__ == kind
    assert tensor.device == text
    del tensor
    assert managed.deletions == 1


def test_the_capsule_decides_where_the_data_is():
    """Pinned torch tensors announce kDLCUDAHost and deliver kDLCPU; they get no stream."""
    managed = Managed()
    producer = Producer(lambda **_: managed.capsule(), device=CUDA_HOST)
    tensor = asdlpack(producer)
    assert tensor.device == "cpu"
    assert "stream" not in producer.calls[0]
