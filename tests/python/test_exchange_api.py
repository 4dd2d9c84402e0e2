"""The C exchange API of DLPack 1.3: tables of other types as they are and as they should not be, and our own."""

import ctypes as ct

import dlbridge
import pytest
from dlbridge import ExchangeError, _core, asdlpack
from dlbridge.tests.conformance._abi import (
    READ_ONLY,
    DLDataType,
    DLDevice,
    DLManagedTensorVersioned,
    DLTensor,
    call_deleter,
    new_capsule,
)
from provoke import (
    ALLOCATE,
    CPU,
    CUDA,
    FAILS_WITH_THE_ERROR_OF_BOOL,
    FLOAT32,
    FROM_OBJECT,
    METAL,
    SET_ERROR,
    TO_OBJECT,
    WORK_STREAM,
    Managed,
    exchange_table,
    returning,
    table_capsule,
    table_of,
)


def make_type(capsule, bases=(), **attributes):
    """A heap type that advertises a table."""
    return type("Fake", bases, {"__dlpack_c_exchange_api__": capsule, **attributes})


def fake_type(managed=None, version=(1, 3), **slots):
    if managed is not None:
        slots["from_object"] = returning(managed)
    return make_type(table_capsule(exchange_table(version, **slots)))


def floats(tensor):
    return memoryview(tensor).tolist()


# --- consumer: reading ------------------------------------------------------------------------------------------------


def test_x01_the_table_is_used_and_the_object_held():
    managed = Managed(flags=READ_ONLY)
    obj = fake_type(managed)()
    tensor = asdlpack(obj)
    assert (tensor.protocol, tensor.owner is obj, tensor.readonly) == ("dlpack", True, True)
    assert floats(tensor) == [0, 1, 2]
    del tensor
    assert managed.deletions == 1


@pytest.mark.parametrize("versions", [[(2, 0), (1, 3)], [(9, 1), (3, 0), (2, 0), (1, 0)]], ids=str)
def test_x02_f23_an_older_table_is_found_behind_newer_ones(versions):
    """Fault 23: `prev_api` is walked to the major version that is understood."""
    managed = Managed()
    table = None
    for version in reversed(versions):
        slots = {} if table is None else {"prev_api": table}
        table = exchange_table(version, from_object=returning(managed), **slots)
    assert floats(asdlpack(make_type(table_capsule(table))())) == [0, 1, 2]
    assert managed.deletions == 1


@pytest.mark.parametrize("version", [(2, 0), (0, 9)], ids=["too new", "too old"])
def test_x02_f23_without_a_table_of_our_major_version_the_next_protocol_is_taken(version):
    """Fault 23: nothing but the header of another major version is read."""
    managed = Managed()
    slots = {"from_object": 1, "to_object": 1, "borrow": 1, "work_stream": 1}
    table = exchange_table(version)
    for slot, value in slots.items():
        setattr(table, slot, value)
    type_ = make_type(table_capsule(table), __dlpack__=lambda self, **_: managed.capsule())
    assert floats(asdlpack(type_())) == [0, 1, 2]
    with pytest.raises(TypeError, match="has none of"):
        asdlpack(make_type(table_capsule(table))())


def test_x02_an_old_table_ends_the_walk():
    """Only older tables may follow an old one."""
    managed = Managed()
    newer = exchange_table((1, 3), from_object=returning(managed))
    with pytest.raises(TypeError):
        asdlpack(make_type(table_capsule(exchange_table((0, 5), prev_api=newer)))())


def test_x02_a_chain_that_bites_its_tail_is_left():
    table = exchange_table((7, 0))
    table.prev_api = ct.addressof(table)
    with pytest.raises(TypeError):
        asdlpack(make_type(table_capsule(table))())


def test_x03_f23_a_null_from_object_slot_falls_back():
    """Fault 23: the "non-NULL" slots are checked."""
    managed = Managed()
    type_ = make_type(table_capsule(exchange_table()), __dlpack__=lambda self, **_: managed.capsule())
    assert floats(asdlpack(type_())) == [0, 1, 2]


def test_x03_other_null_slots_do_no_harm():
    """One real table has a NULL allocator; `dltensor_from_py_object` may be NULL by the specification."""
    managed = Managed()
    assert floats(asdlpack(fake_type(managed)())) == [0, 1, 2]


def test_x04_f23_a_failure_with_an_error_keeps_the_error():
    """Fault 23."""

    def raises(self):
        raise ArithmeticError("the producer's own")

    table = exchange_table()
    table.from_object = FAILS_WITH_THE_ERROR_OF_BOOL
    with pytest.raises(ArithmeticError, match="the producer's own"):
        asdlpack(make_type(table_capsule(table), __bool__=raises)())


@pytest.mark.parametrize("rc", [-1, 1, 0])
def test_x04_f23_a_failure_without_an_error_gets_one(rc):
    """Fault 23: 0 with a NULL tensor is a failure, too."""
    type_ = fake_type(from_object=FROM_OBJECT(lambda _object, _out: rc))
    with pytest.raises(ExchangeError, match="failed and set no error"):
        asdlpack(type_())


@pytest.mark.parametrize(
    ("managed", "error"),
    [
        (Managed(version=(2, 0)), BufferError),
        (Managed(ndim=-1), ValueError),
        (Managed(dtype=(2, 24, 1)), BufferError),
        (Managed(shape=(2**62, 4)), OverflowError),
    ],
    ids=["major version", "ndim", "dtype", "overflow"],
)
def test_x05_a_bad_tensor_from_a_table_is_deleted_once(managed, error):
    with pytest.raises(error):
        asdlpack(fake_type(managed)())
    assert managed.deletions == 1


def test_x06_subclasses_do_not_inherit_the_table():
    managed = Managed()
    base = fake_type(managed)
    child = type("Child", (base,), {})
    with pytest.raises(TypeError, match="has none of"):
        asdlpack(child())
    other = Managed((ct.c_float * 3)(7, 8, 9))
    speaks = type("Speaks", (base,), {"__dlpack__": lambda self, **_: other.capsule()})
    assert floats(asdlpack(speaks())) == [7, 8, 9]
    assert managed.deletions == 0


def test_x07_a_replaced_table_is_noticed():
    """The cache is per type, and types change."""
    first, second = Managed(), Managed((ct.c_float * 3)(7, 8, 9))
    type_ = fake_type(first)
    obj = type_()
    assert [floats(asdlpack(obj)) for _ in range(3)] == [[0, 1, 2]] * 3
    type_.__dlpack_c_exchange_api__ = table_capsule(exchange_table(from_object=returning(second)))
    assert floats(asdlpack(obj)) == [7, 8, 9]
    del type_.__dlpack_c_exchange_api__
    with pytest.raises(TypeError):
        asdlpack(obj)


def test_x07_many_types_share_the_cache():
    """More types than the cache has places, twice over."""
    managed = Managed()
    objects = [fake_type(managed)() for _ in range(300)]
    for _ in range(2):
        for obj in objects:
            assert asdlpack(obj).size == 3
    assert managed.deletions == 600


@pytest.mark.parametrize(
    "attribute", [None, 12345, "table", new_capsule(1, b"dlpack_exchange"), new_capsule(1, None)], ids=repr
)
def test_x08_an_attribute_that_is_no_table_is_ignored(attribute):
    """Earlier drafts had an int; nothing of the sort is followed."""
    managed = Managed()
    type_ = make_type(attribute, __dlpack__=lambda self, **_: managed.capsule())
    assert floats(asdlpack(type_())) == [0, 1, 2]
    assert managed.deletions == 1


# --- consumer: streams ------------------------------------------------------------------------------------------------


def test_x09_the_work_stream_is_asked_for_every_time():
    managed = Managed(1 << 40, device=CUDA)
    asked = []

    def stream(device_type, device_id, out):
        asked.append((device_type, device_id))
        out[0] = [0x770, None, 0x880][len(asked) - 1]
        return 0

    obj = fake_type(managed, work_stream=WORK_STREAM(stream))()
    streams = [asdlpack(obj).__cuda_array_interface__["stream"] for _ in range(3)]
    assert streams == [0x770, 1, 0x880]  # NULL is the legacy default stream
    assert asked == [CUDA] * 3
    assert managed.deletions == 3


def test_x09_f23_a_failing_work_stream_is_an_error():
    """Fault 23: the tensor that was already given out is deleted."""
    managed = Managed(1 << 40, device=CUDA)
    type_ = fake_type(managed, work_stream=WORK_STREAM(lambda *_: -1))
    with pytest.raises(ExchangeError, match="current_work_stream"):
        asdlpack(type_())
    assert managed.deletions == 1


def test_x09_no_stream_is_asked_for_on_the_cpu():
    managed = Managed()
    type_ = fake_type(managed, work_stream=WORK_STREAM(lambda *_: -1))
    assert floats(asdlpack(type_())) == [0, 1, 2]


def test_x09_a_null_work_stream_means_ready():
    managed = Managed(1 << 40, device=CUDA)
    assert asdlpack(fake_type(managed)()).__cuda_array_interface__["stream"] is None


# --- consumer: giving -------------------------------------------------------------------------------------------------


def taking(received, rc=0, consume=True, result=...):
    """A to_object slot that keeps what it gets in `received`."""

    def take(address, out):
        managed = DLManagedTensorVersioned.from_address(address)
        received.append(managed)
        if rc != 0 and consume:
            call_deleter(managed)
        if rc == 0 and result is not None:
            value = received if result is ... else result
            ct.pythonapi.Py_IncRef(ct.py_object(value))
            out[0] = id(value)
        return rc

    return TO_OBJECT(take)


def test_x10_the_table_takes_the_tensor_over():
    received = []
    type_ = fake_type(Managed(), to_object=taking(received))
    source = Managed()
    assert _core.to_exchange(asdlpack(source.capsule()), type_) is received
    assert source.deletions == 0
    call_deleter(received[0])
    assert source.deletions == 1


@pytest.mark.parametrize("consume", [True, False], ids=["consumes", "leaves it"])
def test_x10_f25_a_failing_taker_deletes_exactly_once(consume):
    """Fault 25: who owns the tensor after a failure is unspecified, and both kinds exist."""
    type_ = fake_type(Managed(), to_object=taking([], rc=-1, consume=consume))
    source = Managed()
    tensor = asdlpack(source.capsule())
    with pytest.raises(ExchangeError, match="failed and set no error"):
        _core.to_exchange(tensor, type_)
    assert _core.live_counts()["exports"] == 0
    del tensor
    assert source.deletions == 1


def test_x10_success_without_an_object_is_a_failure():
    type_ = fake_type(Managed(), to_object=taking([], rc=0, result=None))
    with pytest.raises(ExchangeError):
        _core.to_exchange(asdlpack(bytearray(3)), type_)


def test_x10_a_null_to_object_slot_is_refused():
    with pytest.raises(ExchangeError, match="no usable __dlpack_c_exchange_api__"):
        _core.to_exchange(asdlpack(bytearray(3)), fake_type(Managed()))


# --- producer: our table ----------------------------------------------------------------------------------------------

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
def test_x11_every_tensor_type_has_the_table_of_its_own(name):
    type_ = getattr(dlbridge, name)
    assert "__dlpack_c_exchange_api__" in type_.__dict__
    table = table_of(type_)
    assert (table.version.major, table.version.minor, table.prev_api) == (1, 3, None)
    assert all(getattr(table, slot) for slot in ("allocate", "from_object", "to_object", "borrow", "work_stream"))
    assert ct.addressof(table) == ct.addressof(table_of(dlbridge.HostTensor))


def test_x11_the_struct_sizes_are_those_of_the_header():
    """docs: 56 bytes of table, 80 of versioned struct, 64 of legacy, 48 of DLTensor (LP64)."""
    from dlbridge.tests.conformance._abi import DLManagedTensor
    from provoke import ExchangeTable

    sizes = [ct.sizeof(s) for s in (ExchangeTable, DLManagedTensorVersioned, DLManagedTensor, DLTensor)]
    assert sizes == [56, 80, 64, 48]


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 5), (1,) * 20], ids=str)
def test_x12_the_allocator_makes_dense_memory(shape):
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
def test_x12_set_error_is_called_exactly_once_on_failure(arguments, kind):
    managed, errors = allocate(**arguments)
    assert managed is None
    assert [(context, k) for context, k, _ in errors] == [(42, kind)]
    assert len(errors[0][2]) > 10


def test_x13_from_object_gives_an_owned_reference():
    source = Managed(flags=READ_ONLY)
    out = ct.c_void_p()
    assert _from_object(asdlpack(source.capsule()), ct.byref(out)) == 0
    managed = DLManagedTensorVersioned.from_address(out.value)
    assert (managed.dl_tensor.data, managed.flags) == (source.address, READ_ONLY)
    assert source.deletions == 0
    call_deleter(managed)
    assert source.deletions == 1


@pytest.mark.parametrize("function", [_from_object, _borrow], ids=["from_object", "borrow"])
def test_x13_an_object_of_another_type_is_a_type_error(function):
    out = ct.c_void_p() if function is _from_object else DLTensor()
    with pytest.raises(TypeError, match="no dlbridge.Tensor"):
        function(b"abc", ct.byref(out))


def test_x14_to_object_steals_the_tensor():
    source = Managed(flags=READ_ONLY)
    out = ct.py_object()
    assert _to_object(ct.addressof(source.struct), ct.byref(out)) == 0
    assert floats(out.value) == [0, 1, 2]
    assert out.value.readonly
    ct.pythonapi.Py_DecRef(out)  # `out` held the reference that was returned
    del out
    assert source.deletions == 1


@pytest.mark.parametrize(
    ("source", "error"),
    [(Managed(version=(2, 0)), BufferError), (Managed(shape=(-1,)), ValueError)],
    ids=["major version", "extent"],
)
def test_x14_to_object_deletes_what_it_refuses(source, error):
    out = ct.py_object()
    with pytest.raises(error):
        _to_object(ct.addressof(source.struct), ct.byref(out))
    assert source.deletions == 1


def test_x15_borrow_points_into_the_tensor():
    source = Managed(shape=(2, 3))
    tensor = asdlpack(source.capsule())
    out = DLTensor()
    assert _borrow(tensor, ct.byref(out)) == 0
    assert (out.data, out.ndim, out.shape[:2], out.strides[:2]) == (source.address, 2, [2, 3], [3, 1])
    assert _core.live_counts()["exports"] == 0


@pytest.mark.parametrize("device", [CPU, METAL], ids=["cpu", "metal"])
def test_x16_hosts_have_no_work_stream(device):
    out = ct.c_void_p(77)
    assert _work_stream(*device, ct.byref(out)) == 0
    assert out.value is None


# --- real partners ----------------------------------------------------------------------------------------------------


def test_x17_torch_both_ways():
    torch = pytest.importorskip("torch", reason="torch has a table")
    source = torch.arange(6.0).reshape(2, 3)
    tensor = asdlpack(source)
    assert (tensor.data_ptr, tensor.shape, tensor.protocol) == (source.data_ptr(), (2, 3), "dlpack")
    back = _core.to_exchange(tensor, torch.Tensor)
    assert isinstance(back, torch.Tensor)
    assert back.data_ptr() == source.data_ptr()
    del tensor, source
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_x17_f25_torch_refuses_a_dtype_and_nothing_is_deleted_twice():
    """Fault 25: PyTorch does not consume on error."""
    torch = pytest.importorskip("torch", reason="torch has a table")
    source = Managed((ct.c_uint8 * 3)(), dtype=(16, 6, 1))
    tensor = asdlpack(source.capsule())
    with pytest.raises(Exception, match=r".+"):
        _core.to_exchange(tensor, torch.Tensor)
    del tensor
    assert source.deletions == 1


def test_x18_tvm_ffi_both_ways():
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="tvm_ffi has a table and consumes tables")
    source = bytearray(b"Hello!")
    tensor = asdlpack(source)
    given = tvm_ffi.from_dlpack(tensor)
    again = asdlpack(given)
    assert (again.data_ptr, again.shape, again.dtype) == (tensor.data_ptr, (6,), "uint8")
    del tensor, given
    assert bytes(memoryview(again)) == b"Hello!"
