"""The C exchange API of DLPack 1.3: as a consumer: tables of other types, as they are and as they should not be."""

import ctypes as ct

import dlbridge
import pytest
import stable_ids
from dlbridge import ExchangeError, _core, asdlpack
from dlbridge.tests.conformance._abi import (
    READ_ONLY,
    DLManagedTensorVersioned,
    call_deleter,
    new_capsule,
)
from provoke import (
    CUDA,
    FAILS_WITH_THE_ERROR_OF_BOOL,
    FROM_OBJECT,
    TO_OBJECT,
    WORK_STREAM,
    Managed,
    exchange_table,
    returning,
    table_capsule,
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


def test_the_table_is_used_and_the_object_held():
    managed = Managed(flags=READ_ONLY)
    obj = fake_type(managed)()
    tensor = asdlpack(obj)
    assert (tensor.protocol, tensor.owner is obj, tensor.readonly) == ("dlpack", True, True)
    assert floats(tensor) == [0, 1, 2]
    del tensor
    assert managed.deletions == 1


@pytest.mark.parametrize("versions", [[(2, 0), (1, 3)], [(9, 1), (3, 0), (2, 0), (1, 0)]], ids=str)
def test_an_older_table_is_found_behind_newer_ones(versions):
    """`prev_api` is walked to the major version that is understood."""
    managed = Managed()
    table = None
    for version in reversed(versions):
        slots = {} if table is None else {"prev_api": table}
        table = exchange_table(version, from_object=returning(managed), **slots)
    assert floats(asdlpack(make_type(table_capsule(table))())) == [0, 1, 2]
    assert managed.deletions == 1


@pytest.mark.parametrize("version", [(2, 0), (0, 9)], ids=["too new", "too old"])
def test_without_a_table_of_our_major_version_the_next_protocol_is_taken(version):
    """Nothing but the header of another major version is read."""
    managed = Managed()
    slots = {"from_object": 1, "to_object": 1, "borrow": 1, "work_stream": 1}
    table = exchange_table(version)
    for slot, value in slots.items():
        setattr(table, slot, value)
    type_ = make_type(table_capsule(table), __dlpack__=lambda self, **_: managed.capsule())
    assert floats(asdlpack(type_())) == [0, 1, 2]
    with pytest.raises(TypeError, match="has none of"):
        asdlpack(make_type(table_capsule(table))())


def test_an_old_table_ends_the_walk():
    """Only older tables may follow an old one."""
    managed = Managed()
    newer = exchange_table((1, 3), from_object=returning(managed))
    with pytest.raises(TypeError):
        asdlpack(make_type(table_capsule(exchange_table((0, 5), prev_api=newer)))())


def test_a_chain_that_bites_its_tail_is_left():
    table = exchange_table((7, 0))
    table.prev_api = ct.addressof(table)
    with pytest.raises(TypeError):
        asdlpack(make_type(table_capsule(table))())


def test_a_null_from_object_slot_falls_back():
    """The "non-NULL" slots are checked."""
    managed = Managed()
    type_ = make_type(table_capsule(exchange_table()), __dlpack__=lambda self, **_: managed.capsule())
    assert floats(asdlpack(type_())) == [0, 1, 2]


def test_other_null_slots_do_no_harm():
    """One real table has a NULL allocator; `dltensor_from_py_object` may be NULL by the specification."""
    managed = Managed()
    assert floats(asdlpack(fake_type(managed)())) == [0, 1, 2]


def test_a_failure_with_an_error_keeps_the_error():

    def raises(self):
        raise ArithmeticError("the producer's own")

    table = exchange_table()
    table.from_object = FAILS_WITH_THE_ERROR_OF_BOOL
    with pytest.raises(ArithmeticError, match="the producer's own"):
        asdlpack(make_type(table_capsule(table), __bool__=raises)())


@pytest.mark.parametrize("rc", [-1, 1, 0])
def test_a_failure_without_an_error_gets_one(rc):
    """0 with a NULL tensor is a failure, too."""
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
def test_a_bad_tensor_from_a_table_is_deleted_once(managed, error):
    with pytest.raises(error):
        asdlpack(fake_type(managed)())
    assert managed.deletions == 1


def test_subclasses_do_not_inherit_the_table():
    managed = Managed()
    base = fake_type(managed)
    child = type("Child", (base,), {})
    with pytest.raises(TypeError, match="has none of"):
        asdlpack(child())
    other = Managed((ct.c_float * 3)(7, 8, 9))
    speaks = type("Speaks", (base,), {"__dlpack__": lambda self, **_: other.capsule()})
    assert floats(asdlpack(speaks())) == [7, 8, 9]
    assert managed.deletions == 0


def test_a_replaced_table_is_noticed():
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


def test_many_types_share_the_cache():
    """More types than the cache has places, twice over."""
    managed = Managed()
    objects = [fake_type(managed)() for _ in range(300)]
    for _ in range(2):
        for obj in objects:
            assert asdlpack(obj).size == 3
    assert managed.deletions == 600


@pytest.mark.parametrize(
    "attribute", [None, 12345, "table", new_capsule(1, b"dlpack_exchange"), new_capsule(1, None)], ids=stable_ids.of
)
def test_an_attribute_that_is_no_table_is_ignored(attribute):
    """Earlier drafts had an int; nothing of the sort is followed."""
    managed = Managed()
    type_ = make_type(attribute, __dlpack__=lambda self, **_: managed.capsule())
    assert floats(asdlpack(type_())) == [0, 1, 2]
    assert managed.deletions == 1


# --- consumer: streams ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(_core.cuda_info()["available"], reason="a driver is asked about streams, and these are none")
def test_the_work_stream_is_asked_for_every_time():
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


def test_a_failing_work_stream_is_an_error():
    """The tensor that was already given out is deleted."""
    managed = Managed(1 << 40, device=CUDA)
    type_ = fake_type(managed, work_stream=WORK_STREAM(lambda *_: -1))
    with pytest.raises(ExchangeError, match="current_work_stream"):
        asdlpack(type_())
    assert managed.deletions == 1


def test_no_stream_is_asked_for_on_the_cpu():
    managed = Managed()
    type_ = fake_type(managed, work_stream=WORK_STREAM(lambda *_: -1))
    assert floats(asdlpack(type_())) == [0, 1, 2]


def test_a_null_work_stream_means_ready():
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


def test_the_table_takes_the_tensor_over():
    received = []
    type_ = fake_type(Managed(), to_object=taking(received))
    source = Managed()
    assert _core.to_exchange(asdlpack(source.capsule()), type_) is received
    assert source.deletions == 0
    call_deleter(received[0])
    assert source.deletions == 1


@pytest.mark.parametrize("consume", [True, False], ids=["consumes", "leaves it"])
def test_a_failing_taker_deletes_exactly_once(consume):
    """Who owns the tensor after a failure is unspecified, and both kinds exist."""
    type_ = fake_type(Managed(), to_object=taking([], rc=-1, consume=consume))
    source = Managed()
    tensor = asdlpack(source.capsule())
    with pytest.raises(ExchangeError, match="failed and set no error"):
        _core.to_exchange(tensor, type_)
    assert _core.live_counts()["exports"] == 0
    del tensor
    assert source.deletions == 1


def test_success_without_an_object_is_a_failure():
    type_ = fake_type(Managed(), to_object=taking([], rc=0, result=None))
    with pytest.raises(ExchangeError):
        _core.to_exchange(asdlpack(bytearray(3)), type_)


def test_a_null_to_object_slot_is_refused():
    with pytest.raises(ExchangeError, match="no usable __dlpack_c_exchange_api__"):
        _core.to_exchange(asdlpack(bytearray(3)), fake_type(Managed()))


# --- real partners ----------------------------------------------------------------------------------------------------


def test_torch_both_ways():
    torch = pytest.importorskip("torch", reason="torch has a table")
    source = torch.arange(6.0).reshape(2, 3)
    tensor = asdlpack(source)
    assert (tensor.data_ptr, tensor.shape, tensor.protocol) == (source.data_ptr(), (2, 3), "dlpack")
    back = _core.to_exchange(tensor, torch.Tensor)
    assert isinstance(back, torch.Tensor)
    assert back.data_ptr() == source.data_ptr()
    del tensor, source
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("swap_second", [False, True], ids=["first", "second"])
def test_torch_does_not_swap_away_what_is_borrowed(swap_second):
    """As with PyTorch's own exports: torch.utils.swap_tensors() would free the memory under the Tensor."""
    torch = pytest.importorskip("torch", reason="torch swaps tensors")
    source, other = torch.arange(3.0), torch.zeros(3)
    pair = (other, source) if swap_second else (source, other)
    tensor = asdlpack(source)
    shared = memoryview(tensor)
    del tensor
    with pytest.raises(RuntimeError, match="Cannot swap"):
        torch.utils.swap_tensors(*pair)
    assert shared.tolist() == [0, 1, 2]
    del shared
    torch.utils.swap_tensors(*pair)  # nothing is left that forbids it
    assert source.tolist() == [0, 0, 0]


def test_torch_refuses_a_dtype_and_nothing_is_deleted_twice():
    """PyTorch does not consume on error."""
    torch = pytest.importorskip("torch", reason="torch has a table")
    source = Managed((ct.c_uint8 * 3)(), dtype=(16, 6, 1))
    tensor = asdlpack(source.capsule())
    with pytest.raises(Exception, match=r".+"):
        _core.to_exchange(tensor, torch.Tensor)
    del tensor
    assert source.deletions == 1


def test_tvm_ffi_both_ways():
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="tvm_ffi has a table and consumes tables")
    source = bytearray(b"Hello!")
    tensor = asdlpack(source)
    given = tvm_ffi.from_dlpack(tensor)
    again = asdlpack(given)
    assert (again.data_ptr, again.shape, again.dtype) == (tensor.data_ptr, (6,), "uint8")
    del tensor, given
    assert bytes(memoryview(again)) == b"Hello!"


def test_tvm_ffi_gives_back_what_it_was_given():
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="tvm_ffi has a table and consumes tables")
    echo = tvm_ffi.get_global_func("testing.echo", allow_missing=True)
    if echo is None:
        pytest.skip("this tvm_ffi was built without its testing functions")
    assert type(echo(asdlpack(bytearray(3)))) is dlbridge.HostTensor
    assert isinstance(echo(dlbridge.nd.arange(3, device="cpu")), dlbridge.nd.ndarray)
