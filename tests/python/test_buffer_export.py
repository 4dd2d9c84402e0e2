"""Tensors as buffers: what each request gets, by the rules of PEP 3118."""

import ctypes as ct
import hashlib
import itertools

import dlbridge
import pytest
from dlbridge import DataError, ExchangeError, asdlpack
from dlbridge.tests.conformance._abi import READ_ONLY, get_buffer, release_buffer
from provoke import BFLOAT16, CUDA, FLOAT32, BufferExporter, Managed

# --- exporting: what is asked for -------------------------------------------------------------------------------------

SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0, 0x1, 0x4, 0x8, 0x10 | 0x8
C, F, ANY, INDIRECT = 0x20 | STRIDES, 0x40 | STRIDES, 0x80 | STRIDES, 0x100 | STRIDES
REQUESTS = [
    w | f | layout for w in (0, WRITABLE) for f in (0, FORMAT) for layout in (0, ND, STRIDES, C, F, ANY, INDIRECT)
]

LAYOUTS = {  # name: (shape, element strides, C, F)
    "scalar": ((), (), True, True),
    "one axis": ((4,), (1,), True, True),
    "rows": ((2, 3), (3, 1), True, False),
    "columns": ((2, 3), (1, 2), False, True),
    "gaps": ((2, 2), (4, 2), False, False),
    "reversed": ((3,), (-1,), False, False),
    "broadcast": ((3,), (0,), False, False),
    "ones": ((1, 3, 1), (77, 1, -5), True, True),
    "empty": ((0, 3), (9, 9), True, True),
}


@pytest.mark.parametrize("flags", [0, READ_ONLY], ids=["writable", "read-only"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_request_gets_what_it_asks_for_or_is_refused(layout, flags):
    """All combinations of the PyBUF flags, each against the rules of PEP 3118."""
    shape, strides, is_c, is_f = LAYOUTS[layout]
    managed = Managed(shape=shape, strides=strides, flags=flags)
    managed.struct.dl_tensor.data += 16  # room for the reversed one
    tensor = asdlpack(managed.capsule())
    for request in REQUESTS:
        wants = lambda bits, request=request: request & bits == bits  # noqa: E731
        possible = not (
            (wants(WRITABLE) and flags)
            or (wants(C) and not is_c)
            or (wants(F) and not is_f)
            or (wants(ANY) and not (is_c or is_f))
            or (not wants(STRIDES) and not is_c)
        )
        if not possible:
            with pytest.raises(ExchangeError) as caught:
                get_buffer(tensor, request)
            assert caught.value.view.obj is None  # PEP 3118: NULL on failure
            continue
        view = get_buffer(tensor, request)
        assert view.obj == id(tensor)
        assert (view.itemsize, view.len) == (4, tensor.nbytes)
        assert view.readonly == bool(flags)
        assert view.format == (b"f" if wants(FORMAT) else None)
        assert not view.suboffsets
        if wants(ND):
            assert (view.ndim, tuple(view.shape[: len(shape)])) == (len(shape), shape)
        else:
            assert not view.shape
        if wants(STRIDES) and shape:
            used = [i for i, extent in enumerate(shape) if extent > 1 and 0 not in shape]
            assert [view.strides[i] for i in used] == [4 * strides[i] for i in used]
            if 0 in shape:  # dense, for consumers compare them
                assert view.strides[: len(shape)] == [12, 4]
        if not wants(STRIDES):
            assert not view.strides
        release_buffer(view)


def test_the_requests_are_what_cpython_checks_too():
    """Our own oracle agrees with the `ndarray` of CPython's test module about contiguity."""
    testbuffer = pytest.importorskip("_testbuffer", reason="CPython's own test module is the oracle")
    for shape, strides in itertools.product([(2, 3), (3,), (1, 3), (2, 1)], [(1, 2), (3, 1), (2, 4), (-1, 1)]):
        strides = strides[-len(shape) :]
        managed = Managed(shape=shape, strides=strides)
        managed.struct.dl_tensor.data += 8
        tensor = asdlpack(managed.capsule())
        for flags in REQUESTS:
            try:
                testbuffer.ndarray(tensor, getbuf=flags)
            except BufferError:
                with pytest.raises(BufferError):
                    get_buffer(tensor, flags)
            else:
                release_buffer(get_buffer(tensor, flags))
        view = memoryview(tensor)
        assert view.c_contiguous == testbuffer.is_contiguous(tensor, "C")
        assert view.f_contiguous == testbuffer.is_contiguous(tensor, "F")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)], ids=str)
def test_an_empty_tensor_is_contiguous_to_every_consumer(shape, tmp_path):
    """NumPy's empty arrays have strides 0."""
    numpy = pytest.importorskip("numpy", reason="the empty array is NumPy's")
    sources = [numpy.zeros(shape), numpy.zeros(shape, "u1"), numpy.zeros((10, *shape))[5:5:2, ...].reshape(shape)]
    for tensor in [*map(asdlpack, sources), dlbridge.nd.zeros(shape, device="cpu")]:
        view = memoryview(tensor)
        assert (view.c_contiguous, view.contiguous, view.shape) == (True, True, shape)
        assert hashlib.sha256(tensor).digest() == hashlib.sha256(b"").digest()
        assert (tmp_path / "out").open("wb").write(tensor) == 0
        assert numpy.frombuffer(tensor, "u1").size == 0
    sliced = dlbridge.nd.arange(10, device="cpu")[5:5:2]
    assert memoryview(sliced).c_contiguous


def test_a_refusal_names_the_remedy():
    with pytest.raises(ExchangeError, match=r"Tensor .buffer protocol.: the tensor is read-only.*copy=True"):
        get_buffer(asdlpack(b"abc"), WRITABLE)


def test_a_view_keeps_the_tensor():
    managed = Managed()
    view = memoryview(asdlpack(managed.capsule()))
    assert managed.deletions == 0
    assert view.tolist() == [0, 1, 2]
    view.release()
    assert managed.deletions == 1


def test_device_tensors_are_no_buffers():
    """memoryview() says TypeError, as for any object without the slot."""
    managed = Managed(1 << 40, device=CUDA, dtype=FLOAT32)
    with pytest.raises(TypeError, match="bytes-like object is required, not 'dlbridge.CudaTensor'"):
        memoryview(asdlpack(managed.capsule()))


def test_file_objects_fill_a_tensor():
    import io

    source = bytearray(6)
    assert io.BytesIO(b"Hello!").readinto(asdlpack(source)) == 6
    assert source == b"Hello!"


def test_a_malformed_view_is_a_value_error_of_ours():
    exporter = BufferExporter(shape=(-1,))
    with pytest.raises(DataError):
        asdlpack(exporter.object)


def test_complex32_and_bfloat16_go_through_dlpack_only_where_they_must():
    half = Managed((ct.c_uint8 * 16)(), dtype=(5, 32, 1))
    assert memoryview(asdlpack(half.capsule())).format == "Ze"
    brain = Managed((ct.c_uint8 * 16)(), dtype=BFLOAT16)
    with pytest.raises(BufferError):
        memoryview(asdlpack(brain.capsule()))
