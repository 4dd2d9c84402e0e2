"""asdlpack(): its arguments, the order of the protocols, and its errors."""

import array
import ctypes as ct
import inspect
import sys

import dlbridge
import pytest
import stable_ids
from child_process import run_python
from dlbridge import CopyError, DataError, ExchangeError, ProtocolError, _core, asdlpack
from dlbridge.tests.conformance._abi import READ_ONLY
from provoke import METAL, BufferExporter, Managed, Producer, StructProducer


def floats(tensor):
    return memoryview(tensor).tolist()


class Several:
    """Offers what it is told to; each protocol holds other numbers, so that the one that was taken shows."""

    def __init__(self, **offers):
        self.__dict__.update(offers)

    @staticmethod
    def dlpack(**_):
        return Managed((ct.c_float * 1)(1), shape=(1,)).capsule()

    @staticmethod
    def interface(value, **changes):
        data = bytearray(ct.c_float(value))
        return {"shape": (1,), "typestr": "<f4", "data": data, "version": 3} | changes


# --- the protocol argument --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "value"), [(None, 1), ("dlpack", 1), ("array_interface", 3), ("buffer", 0)], ids=str
)
def test_protocol_forces_one(protocol, value):
    class Everything(array.array):
        __dlpack__ = staticmethod(Several.dlpack)
        __array_interface__ = property(lambda self: Several.interface(3))

    source = Everything("f", [0])
    tensor = asdlpack(source, protocol=protocol)
    assert floats(tensor) == [value]
    assert tensor.protocol == (protocol or "dlpack")
    assert tensor.owner is source


@pytest.mark.parametrize("protocol", ["dlpack", "array_interface", "cuda_array_interface", "buffer"])
def test_protocol_that_the_object_lacks_is_a_protocol_error(protocol):
    with pytest.raises(ProtocolError, match=f"object does not speak protocol='{protocol}'"):
        asdlpack(object(), protocol=protocol)


@pytest.mark.parametrize(
    ("protocol", "error"), [("numpy", DataError), ("", DataError), (1, TypeError), (b"dlpack", TypeError)]
)
def test_protocol_with_another_value(protocol, error):
    with pytest.raises(error, match="asdlpack..: protocol is"):
        asdlpack(b"abc", protocol=protocol)


def test_protocol_on_numpy_and_torch():
    np = pytest.importorskip("numpy", reason="NumPy makes the array")
    source = np.arange(3.0)
    for protocol in ("dlpack", "array_interface", "buffer"):
        tensor = asdlpack(source, protocol=protocol)
        assert (tensor.protocol, tensor.data_ptr, tensor.owner is source) == (protocol, source.ctypes.data, True)
    assert asdlpack(source).protocol == "array_interface"
    torch = pytest.importorskip("torch", reason="torch makes the tensor")
    for protocol in (None, "dlpack"):
        assert asdlpack(torch.ones(3), protocol=protocol).protocol == "dlpack"


# --- the order and the fallback ---------------------------------------------------------------------------------------


def refuse(**_):
    raise BufferError("dlpack said no")


def test_dlpack_comes_first_then_cuda_then_the_struct_then_the_dict_then_the_buffer():
    class Struct(StructProducer):
        __array_interface__ = property(lambda self: Several.interface(3))

    assert floats(asdlpack(Struct())) == [0, 1, 2]  # the struct's
    assert floats(asdlpack(Several(__array_interface__=Several.interface(3), __dlpack__=Several.dlpack))) == [1]
    cuda = {"shape": (0,), "typestr": "<f4", "data": (0, False), "version": 3}
    both = Several(__cuda_array_interface__=cuda, __array_interface__=Several.interface(3))
    assert asdlpack(both).protocol == "cuda_array_interface"


def test_a_refusal_leads_to_the_next_protocol():
    source = Several(__dlpack__=refuse, __array_interface__=Several.interface(3))
    tensor = asdlpack(source)
    assert (floats(tensor), tensor.protocol) == ([3], "array_interface")


def test_when_all_refuse_the_first_error_carries_the_others():
    """As notes (PEP 678)."""
    source = Several(__dlpack__=refuse, __array_interface__=Several.interface(3, typestr=">f4"))
    with pytest.raises(BufferError, match="dlpack said no") as caught:
        asdlpack(source)
    if sys.version_info >= (3, 11):
        assert len(caught.value.__notes__) == 1
        assert caught.value.__notes__[0].startswith("dlbridge also tried __array_interface__: ")


def test_a_forced_protocol_does_not_fall_back():
    source = Several(__dlpack__=refuse, __array_interface__=Several.interface(3))
    with pytest.raises(BufferError, match="dlpack said no"):
        asdlpack(source, protocol="dlpack")


@pytest.mark.parametrize("error", [MemoryError, RecursionError, KeyboardInterrupt, SystemExit])
def test_some_errors_end_the_search(error):
    def fail(**_):
        raise error("stop")

    with pytest.raises(error):
        asdlpack(Several(__dlpack__=fail, __array_interface__=Several.interface(3)))


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 1, 1.5, "text", [1, 2], {}, object(), int, lambda: 0], ids=stable_ids.of)
def test_an_object_with_no_protocol_is_a_type_error(value):
    """With what was looked for, and the remedy."""
    with pytest.raises(ProtocolError, match="none of __dlpack__.*no buffer. Convert it to an array first") as caught:
        asdlpack(value)
    assert isinstance(caught.value, TypeError)


def test_the_error_classes():
    assert issubclass(ProtocolError, TypeError)
    assert issubclass(ExchangeError, BufferError)
    assert issubclass(CopyError, ExchangeError) and issubclass(CopyError, ValueError)
    assert issubclass(DataError, ValueError) and not issubclass(DataError, BufferError)
    assert issubclass(dlbridge.CudaError, RuntimeError)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: asdlpack(BufferExporter(format=b">f").object), ["asdlpack(): ", "'>f'", "native", "Byte-swap first"]),
        (
            lambda: asdlpack(Managed(flags=READ_ONLY).capsule()).__dlpack__(),
            ["Tensor.__dlpack__()", "read-only", "max_version=(1, 0)"],
        ),
        (
            lambda: asdlpack(BufferExporter(strides=(5,)).object),
            ["asdlpack()", "5 bytes", "itemsize 4", "Copy to a dense array"],
        ),
        (lambda: asdlpack(b"a", device="moon"), ["asdlpack()", "'moon'", "'cuda:1'"]),
        (lambda: asdlpack(b"a", stream=5), ["asdlpack()", "on cpu", "array API", "Leave stream out"]),
    ],
    ids=["format", "read-only", "stride", "device", "stream"],
)
def test_every_message_says_operation_value_rule_and_remedy(call, parts):
    with pytest.raises((BufferError, ValueError)) as caught:
        call()
    assert [part for part in parts if part not in str(caught.value)] == []


def test_wrong_arguments():
    with pytest.raises(TypeError, match="one positional argument"):
        asdlpack()
    with pytest.raises(TypeError, match="one positional argument"):
        asdlpack(b"a", "dlpack")
    with pytest.raises(TypeError, match="unexpected keyword argument 'dtype'"):
        asdlpack(b"a", dtype="int8")
    with pytest.raises(ZeroDivisionError):
        asdlpack(b"a", copy=type("Bad", (), {"__bool__": lambda self: 1 / 0})())


def test_the_signature_is_introspectable():
    assert (
        str(inspect.signature(asdlpack))
        == "(obj, /, *, protocol=None, stream=None, device=None, copy=None, nulls='refuse')"
    )


# --- copy -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source", [b"abc", bytearray(b"abc"), array.array("d", [1, 2])], ids=["bytes", "bytearray", "array"]
)
def test_copy_true_gives_a_writable_dense_tensor_of_its_own(source):
    plain = asdlpack(source)
    tensor = asdlpack(source, copy=True)
    assert tensor.data_ptr != plain.data_ptr
    assert tensor.owner is None
    assert not tensor.readonly
    assert bytes(memoryview(tensor)) == bytes(memoryview(plain))
    memoryview(tensor).cast("B")[0] ^= 1
    assert bytes(memoryview(tensor)) != bytes(memoryview(plain))
    assert _core.live_counts()["copies"] == 1


def test_copy_true_makes_strides_dense():
    managed = Managed(shape=(2, 3), strides=(1, 2))
    tensor = asdlpack(managed.capsule(), copy=True)
    assert managed.deletions == 1
    assert (tensor.strides, floats(tensor)) == ((12, 4), [[0, 2, 4], [1, 3, 5]])


def test_copy_false_shares_or_refuses():
    source = bytearray(b"abc")
    tensor = asdlpack(source, copy=False)
    source[0] = 0
    assert bytes(memoryview(tensor)) == b"\0bc"
    managed = Managed(1 << 40, device=METAL)
    with pytest.raises(CopyError, match="copy=False forbids"):
        asdlpack(managed.capsule(), device="cpu", copy=False)
    assert managed.deletions == 1


def test_copy_false_refuses_what_only_a_copy_would_mend():
    """Misaligned data."""
    managed = Managed(byte_offset=2)
    with pytest.raises(ExchangeError, match="not aligned"):
        asdlpack(managed.capsule(), copy=False)


@pytest.mark.parametrize("copy", [None, False, True])
def test_a_tensor_passes_through(copy):
    """With nothing to change it is the same object."""
    tensor = asdlpack(b"abc")
    again = asdlpack(tensor, copy=copy)
    assert (again is tensor) == (copy is not True)
    assert bytes(memoryview(again)) == b"abc"


def test_a_tensor_passes_through_every_spelling_of_its_own_device():
    tensor = asdlpack(b"abc")
    for device in ("cpu", "cpu:0", (1, 0), tensor.device, None):
        assert asdlpack(tensor, device=device) is tensor


def test_a_forced_protocol_reads_a_tensor_anew():
    tensor = asdlpack(b"abc")
    for protocol in ("dlpack", "array_interface", "buffer"):
        again = asdlpack(tensor, protocol=protocol)
        assert again is not tensor
        assert (again.protocol, again.data_ptr, again.readonly) == (protocol, tensor.data_ptr, True)
        assert again.owner is tensor


# --- device and stream ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["moon", "cpu:x", "cuda:-1", "", "cuda:1:2", 7, (1,), ("cpu", 0), (77, 0)], ids=repr)
def test_a_device_that_is_none(device):
    with pytest.raises((ValueError, TypeError), match="device"):
        asdlpack(b"abc", device=device)


def test_a_device_out_of_reach_is_refused():
    with pytest.raises((BufferError, RuntimeError)):
        asdlpack(b"abc", device="metal")


def test_device_objects_of_others_are_understood():
    class Device:
        def __str__(self):
            return "cpu"

    assert asdlpack(b"abc", device=Device()).device == "cpu"
    torch = pytest.importorskip("torch", reason="torch has device objects")
    assert asdlpack(b"abc", device=torch.device("cpu")).device == "cpu"


def test_device_objects_that_fail_to_print_keep_their_error():
    class Device:
        def __str__(self):
            raise RuntimeError("no name")

    with pytest.raises(RuntimeError, match="no name"):
        asdlpack(b"abc", device=Device())


@pytest.mark.parametrize("stream", [None, -1])
def test_the_cpu_takes_no_stream(stream):
    assert asdlpack(b"abc", stream=stream).size == 3


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (0, ValueError),
        (-2, ValueError),
        (1, BufferError),
        (7, BufferError),
        ("1", TypeError),
        (1.5, TypeError),
        (2**64, OverflowError),
    ],
)
def test_other_streams_are_refused(stream, error):
    with pytest.raises(error):
        asdlpack(b"abc", stream=stream)


def test_stream_objects_have_cuda_stream():
    class Stream:
        def __init__(self, answer):
            self.answer = answer

        def __cuda_stream__(self):
            return self.answer

    with pytest.raises(BufferError, match="no streams"):
        asdlpack(b"abc", stream=Stream((0, 5)))
    with pytest.raises(TypeError, match="not a .version, handle. pair"):
        asdlpack(b"abc", stream=Stream(5))
    for version in (1, -1, 2**80, "0", 0.0, None):
        with pytest.raises(TypeError, match="another version of the protocol than 0"):
            asdlpack(b"abc", stream=Stream((version, 5)))


def test_a_failing_stream_or_device_leaves_the_capsule_consumed_once():
    for options in ({"stream": 5}, {"device": "metal"}):
        managed = Managed()
        with pytest.raises(BufferError):
            asdlpack(managed.capsule(), **options)
        assert managed.deletions == 1


def test_bad_arguments_leave_the_capsule_alone():
    managed = Managed()
    capsule = managed.capsule()
    for options in ({"stream": "x"}, {"device": "moon"}, {"protocol": "x"}, {"nothing": 1}):
        with pytest.raises((TypeError, ValueError)):
            asdlpack(capsule, **options)
    assert managed.deletions == 0
    assert floats(asdlpack(capsule)) == [0, 1, 2]


def test_an_unreachable_device_is_asked_to_copy_itself():
    """dl_device=(1, 0) and copy go to the producer where dlbridge cannot read the memory."""
    managed = Managed()
    producer = Producer(lambda **_: managed.capsule(), device=METAL)
    tensor = asdlpack(producer, device="cpu")
    assert producer.calls[0]["dl_device"] == (1, 0)
    assert producer.calls[0]["copy"] is None
    assert floats(tensor) == [0, 1, 2]


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="CPython's flag says nothing of versions any more")
def test_a_type_of_which_no_attribute_was_asked_is_known_at_the_second_call():
    """What is found out about a type is kept under its version, which CPython gives it with the first look-up."""
    done = run_python(
        "from dlbridge import asdlpack, nd\n"
        "a, flags = nd.empty(2), type.__dict__['__flags__'].__get__\n"
        "asdlpack(a)\n"
        "print(bool(flags(type(a)) >> 19 & 1))"
    )
    assert done.stdout == "True\n"
