"""Four-bit numbers: packed and unpacked."""

import dlbridge
import pytest
from dlbridge import asdlpack, convert, pack_float4, pack_int4, unpack_float4, unpack_int4

np = pytest.importorskip("numpy")

SHAPES = [(2,), (0,), (3, 4), (2, 0), (2, 3, 16)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "low"), [("int8", -8), ("uint8", 0)])
def test_int4_there_and_back(shape, dtype, low):
    x = np.random.default_rng(0).integers(low, low + 16, shape).astype(dtype)
    packed = pack_int4(x)
    assert packed.dtype == "uint8" and packed.shape == (*shape[:-1], shape[-1] // 2)
    back = unpack_int4(packed, signed=dtype == "int8")
    assert back.dtype == dtype
    np.testing.assert_array_equal(np.asarray(back), x)


def test_the_even_element_is_in_the_low_bits():
    assert np.asarray(pack_int4(np.array([1, -2], np.int8))).tolist() == [0xE1]
    assert np.asarray(unpack_int4(b"\xe1")).tolist() == [1, -2]


def test_every_byte():
    every = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(pack_int4(unpack_int4(every))), every)
    np.testing.assert_array_equal(np.asarray(pack_int4(unpack_int4(every, signed=False))), every)


def test_any_layout_and_any_framework():
    torch = pytest.importorskip("torch")
    x = torch.arange(-8, 8, dtype=torch.int8).reshape(4, 4).T
    packed = convert(pack_int4(x), "torch")
    assert torch.equal(convert(unpack_int4(packed), "torch"), x)


@pytest.mark.parametrize("x", [np.array([8, 0], np.int8), np.array([-9, 0], np.int8), np.array([16, 0], np.uint8)])
def test_numbers_that_do_not_fit_are_refused(x):
    with pytest.raises(ValueError, match=r"pack_int4\(\): four bits hold"):
        pack_int4(x)


@pytest.mark.parametrize("pack", [pack_int4, pack_float4])
def test_an_odd_axis_is_refused(pack):
    with pytest.raises(ValueError, match="the last axis has 3 elements, and a byte takes two"):
        pack(np.zeros((2, 3), np.uint8))


@pytest.mark.parametrize("f", [pack_int4, unpack_int4, pack_float4, unpack_float4])
def test_other_dtypes_and_no_axis_are_refused(f):
    with pytest.raises(TypeError, match="has dtype float32; give one of"):
        f(np.zeros(2, np.float32))
    if f is not unpack_float4:
        with pytest.raises(ValueError, match="no axis"):
            f(np.zeros((), np.uint8))


VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def test_float4_there_and_back():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([*VALUES, *(-v for v in VALUES)], np.float32).reshape(2, 8)
    x = values.astype(ml_dtypes.float4_e2m1fn)
    packed = pack_float4(x)
    assert packed.dtype == "float4_e2m1fn" and packed.shape == (2, 8) and packed.nbytes == 8 and not packed.padded
    assert pack_float4(packed).data_ptr == packed.data_ptr
    back = unpack_float4(packed)
    assert back.padded and unpack_float4(back).data_ptr == back.data_ptr
    np.testing.assert_array_equal(convert(back, "numpy").astype(np.float32), values)


def test_float4_of_bits():
    packed = pack_float4(np.arange(16, dtype=np.uint8))
    assert dlbridge._core.reinterpret(packed, dtype="uint8", shape=(8,)).dtype == "uint8"
    assert unpack_float4(packed).shape == (16,)
    with pytest.raises(ValueError, match="above 15"):
        pack_float4(np.array([1, 16], np.uint8))


def test_float4_of_pytorch():
    torch = pytest.importorskip("torch")
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this PyTorch has no float4")
    x = torch.arange(8, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    bits = dlbridge._core.reinterpret(unpack_float4(x), dtype="uint8")
    assert np.asarray(bits).tolist() == [v for byte in range(8) for v in (byte & 15, byte >> 4)]


def test_float4_rows_that_begin_in_mid_byte_are_refused():
    packed = dlbridge._core.reinterpret(asdlpack(np.zeros(3, np.uint8)), dtype="float4_e2m1fn", shape=(2, 3))
    with pytest.raises(ValueError, match="mid-byte"):
        unpack_float4(packed)


def test_big_endian_arrays_enter_nd_under_copy_true():
    big = np.arange(3, dtype=">i4")
    assert dlbridge.nd.asarray(big, copy=True, device="cpu").tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="copy=True"):
        dlbridge.nd.asarray(big, device="cpu")
