"""The C exchange API of DLPack 1.3, as a producer: the table of dlbridge's own types."""

import ctypes as ct

import dlbridge
import pytest
from dlbridge import _core, asdlpack
from dlbridge.tests.conformance._abi import (
    READ_ONLY,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
    call_deleter,
)
from provoke import (
    ALLOCATE,
    CPU,
    FLOAT32,
    METAL,
    SET_ERROR,
    ExchangeTable,
    Managed,
    table_of,
)

OURS = table_of(dlbridge.HostTensor)
_from_object = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.POINTER(ct.c_void_p))(OURS.from_object)
_to_object = ct.PYFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(ct.py_object))(OURS.to_object)
_borrow = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.POINTER(DLTensor))(OURS.borrow)
_work_stream = ct.PYFUNCTYPE(ct.c_int, ct.c_int32, ct.c_int32, ct.POINTER(ct.c_void_p))(OURS.work_stream)
_allocate = ALLOCATE(OURS.allocate)


def allocate(shape, dtype=FLOAT32, device=CPU, **fields):
    """(managed or None, errors): the allocator reads dtype, ndim, shape and device only, so the rest is poison."""
    extents = (ct.c_int64 * max(len(shape), 1))(*shape)
    poison = ct.cast(ct.c_void_p(1), ct.POINTER(ct.c_int64))
    prototype = DLTensor(1, DLDevice(*device), len(shape), DLDataType(*dtype), extents, poison, 2**63)
    for field, value in fields.items():
        setattr(prototype, field, value)
    errors, out = [], ct.c_void_p()
    note = SET_ERROR(lambda context, kind, message: errors.append((context, kind.decode(), message.decode())))
    rc = _allocate(ct.byref(prototype), ct.byref(out), 42, note)
    assert rc == (-1 if errors else 0)
    return (None if rc else DLManagedTensorVersioned.from_address(out.value)), errors


@pytest.mark.parametrize("name", ["Tensor", "HostTensor", "CudaTensor"])
def test_every_tensor_type_has_the_table_of_its_own(name):
    type_ = getattr(dlbridge, name)
    assert "__dlpack_c_exchange_api__" in type_.__dict__
    table = table_of(type_)
    assert (table.version.major, table.version.minor, table.prev_api) == (1, 3, None)
    assert all(getattr(table, slot) for slot in ("allocate", "from_object", "to_object", "borrow", "work_stream"))
    assert ct.addressof(table) == ct.addressof(table_of(dlbridge.HostTensor))


def test_arrays_of_nd_have_a_table_of_their_own():
    """What a consumer makes of it is an array again, and the rest is as the bridge's."""
    nd = dlbridge.nd
    tables = [table_of(type_) for type_ in (nd.ndarray, type(nd.zeros(1, device="cpu")))]
    assert all("__dlpack_c_exchange_api__" in type_.__dict__ for type_ in (nd.ndarray, type(nd.zeros(1, device="cpu"))))
    for table in tables:
        assert table.to_object != OURS.to_object
        assert (table.from_object, table.borrow, table.allocate) == (OURS.from_object, OURS.borrow, OURS.allocate)
    to_object = ct.PYFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(ct.py_object))(tables[0].to_object)
    managed, out = Managed((ct.c_float * 2)(1, 2), shape=(2,)), ct.py_object()
    assert to_object(ct.addressof(managed.struct), ct.byref(out)) == 0
    assert isinstance(out.value, nd.ndarray)
    assert memoryview(out.value).tolist() == [1, 2]
    assert managed.deletions == 0
    ct.pythonapi.Py_DecRef(out)  # `out` held the reference that was returned
    del out
    assert managed.deletions == 1


def test_what_nd_cannot_hold_is_refused_and_deleted():
    nd = dlbridge.nd
    to_object = ct.PYFUNCTYPE(ct.c_int, ct.c_void_p, ct.POINTER(ct.py_object))(table_of(nd.ndarray).to_object)
    managed, out = Managed((ct.c_uint8 * 3)(), dtype=(16, 6, 1), shape=(3,)), ct.py_object()
    with pytest.raises((TypeError, BufferError)):
        to_object(ct.addressof(managed.struct), ct.byref(out))
    assert managed.deletions == 1


def test_the_struct_sizes_are_those_of_the_header():
    """docs: 56 bytes of table, 80 of versioned struct, 64 of legacy, 48 of DLTensor (LP64)."""
    sizes = [ct.sizeof(s) for s in (ExchangeTable, DLManagedTensorVersioned, DLManagedTensor, DLTensor)]
    assert sizes == [56, 80, 64, 48]


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 5), (1,) * 20], ids=str)
def test_the_allocator_makes_dense_memory(shape):
    managed, errors = allocate(shape)
    assert not errors
    dl = managed.dl_tensor
    assert (dl.ndim, dl.shape[: len(shape)], dl.byte_offset, managed.flags) == (len(shape), list(shape), 0, 0)
    assert (managed.version.major, managed.version.minor) == (1, 3)
    assert (dl.data is None) == (0 in shape)
    if dl.data:
        ct.memset(dl.data, 0x5A, 4)
    call_deleter(managed)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"shape": (-1,)}, "ValueError"),
        ({"shape": (2**62, 4)}, "OverflowError"),
        ({"shape": (3,), "dtype": (2, 24, 1)}, "BufferError"),
        ({"shape": (3,), "device": METAL}, "BufferError"),
        ({"shape": (3,), "device": (99, 0)}, "BufferError"),
        ({"shape": (3,), "ndim": -1}, "ValueError"),
        ({"shape": (2**50,)}, "MemoryError"),
    ],
    ids=["extent", "overflow", "dtype", "metal", "device type", "ndim", "memory"],
)
def test_set_error_is_called_exactly_once_on_failure(arguments, kind):
    managed, errors = allocate(**arguments)
    assert managed is None
    assert [(context, k) for context, k, _ in errors] == [(42, kind)]
    assert len(errors[0][2]) > 10


def test_from_object_gives_an_owned_reference():
    source = Managed(flags=READ_ONLY)
    out = ct.c_void_p()
    assert _from_object(asdlpack(source.capsule()), ct.byref(out)) == 0
    managed = DLManagedTensorVersioned.from_address(out.value)
    assert (managed.dl_tensor.data, managed.flags) == (source.address, READ_ONLY)
    assert source.deletions == 0
    call_deleter(managed)
    assert source.deletions == 1


@pytest.mark.parametrize("function", [_from_object, _borrow], ids=["from_object", "borrow"])
def test_an_object_of_another_type_is_a_type_error(function):
    out = ct.c_void_p() if function is _from_object else DLTensor()
    with pytest.raises(TypeError, match="not a dlbridge.Tensor"):
        function(b"abc", ct.byref(out))


def test_to_object_steals_the_tensor():
    source = Managed(flags=READ_ONLY)
    out = ct.py_object()
    assert _to_object(ct.addressof(source.struct), ct.byref(out)) == 0
    assert memoryview(out.value).tolist() == [0, 1, 2]
    assert out.value.readonly
    ct.pythonapi.Py_DecRef(out)  # `out` held the reference that was returned
    del out
    assert source.deletions == 1


@pytest.mark.parametrize(
    ("source", "error"),
    [(Managed(version=(2, 0)), BufferError), (Managed(shape=(-1,)), ValueError)],
    ids=["major version", "extent"],
)
def test_to_object_deletes_what_it_refuses(source, error):
    out = ct.py_object()
    with pytest.raises(error):
        _to_object(ct.addressof(source.struct), ct.byref(out))
    assert source.deletions == 1


def test_borrow_points_into_the_tensor():
    source = Managed(shape=(2, 3))
    tensor = asdlpack(source.capsule())
    out = DLTensor()
    assert _borrow(tensor, ct.byref(out)) == 0
    assert (out.data, out.ndim, out.shape[:2], out.strides[:2]) == (source.address, 2, [2, 3], [3, 1])
    assert _core.live_counts()["exports"] == 0


@pytest.mark.parametrize("device", [CPU, METAL], ids=["cpu", "metal"])
def test_hosts_have_no_work_stream(device):
    out = ct.c_void_p(77)
    assert _work_stream(*device, ct.byref(out)) == 0
    assert out.value is None
