"""__cuda_array_interface__ as far as no driver is needed: diagnosis comes first, empty arrays never need it.

What a device is needed for is in test_cuda_gpu.py.
"""

import sys

import pytest
import stable_ids
from child_process import run_python
from dlbridge import CudaTensor, DataError, _core, asdlpack
from dlbridge.tests.conformance._abi import READ_ONLY
from provoke import BFLOAT16, CUDA, CUDA_MANAGED, Managed

ADDRESS = 1 << 40


class Dict:
    """An object whose __cuda_array_interface__ is the given dictionary, changed; ... removes a key."""

    def __init__(self, **changes):
        fields = {"shape": (6,), "typestr": "<f4", "data": (ADDRESS, False), "version": 3} | changes
        self.__cuda_array_interface__ = {key: value for key, value in fields.items() if value is not ...}


def empty(**changes):
    return Dict(**{"shape": (0,), "data": (0, False)} | changes)


# --- reading: bad dictionaries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"version": -1}, ValueError, "'version' is -1; version 0 and later"),
        ({"version": ...}, ValueError, "'version' is missing"),
        ({"shape": ...}, ValueError, "'shape' is missing"),
        ({"typestr": ...}, ValueError, "'typestr' is missing"),
        ({"data": ...}, ValueError, "'data' is missing"),
        ({"shape": (-1,)}, ValueError, "extents must not be negative"),
        ({"shape": (2**62, 4)}, OverflowError, "63 bits"),
        ({"shape": 6}, TypeError, "'shape' is int"),
        ({"data": None}, TypeError, "'data' is NoneType"),
        ({"data": (None, False)}, TypeError, "'data.0.' is NoneType"),
        ({"data": b"abc"}, TypeError, "'data' is bytes"),
        ({"data": (0, False)}, ValueError, "data pointer is null"),
        ({"mask": object()}, BufferError, "'mask' is set"),
        ({"stream": 0}, ValueError, "'stream' is 0, which the specification forbids"),
        ({"stream": "1"}, TypeError, "'stream'.*is str"),
        ({"stream": -1}, ValueError, "negative"),
        ({"stream": True}, TypeError, "is bool"),
        ({"strides": (5,)}, BufferError, "not a multiple of the itemsize"),
        ({"strides": (4, 4)}, ValueError, "'strides' has 2 entries"),
        ({"strides": (2**62,)}, OverflowError, "63 bits"),
        ({"typestr": "<V2"}, BufferError, "typestr '<V2' is raw or structured.*DLPack"),
        ({"typestr": ">f4"}, BufferError, "opposite byte order"),
        ({"typestr": "<f16"}, BufferError, "typestr '<f16'"),
    ],
    ids=stable_ids.of_field,
)
def test_a_bad_dictionary_names_the_field(changes, error, match):
    """Required keys, stream 0, a mask, torch's bfloat16.

    None of it is a CudaError, so it comes before the driver is touched."""
    with pytest.raises(error, match=match) as caught:
        asdlpack(Dict(**changes))
    assert not isinstance(caught.value, RuntimeError)


def test_anything_but_a_dict_is_a_type_error():

    class NoDict:
        __cuda_array_interface__ = (1, 2)

    with pytest.raises(TypeError, match="__cuda_array_interface__: it is tuple, not a dict"):
        asdlpack(NoDict())


def test_a_property_that_raises_keeps_its_error():
    class Raises:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("from the property")

    with pytest.raises(RuntimeError, match="from the property"):
        asdlpack(Raises())


def test_a_good_dictionary_needs_the_driver_and_says_so():
    """The device is found from the pointer, so a pointer to nowhere is an error with or without one."""
    with pytest.raises((RuntimeError, ValueError, BufferError)):
        asdlpack(Dict())


# --- reading: size zero -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2**40)], ids=str)
def test_an_empty_array_needs_no_driver(shape, version):
    """No pointer query on NULL."""
    source = empty(shape=shape, version=version)
    tensor = asdlpack(source)
    assert isinstance(tensor, CudaTensor)
    assert (tensor.shape, tensor.size, tensor.data_ptr) == (shape, 0, 0)
    assert tensor.protocol == "cuda_array_interface"
    assert tensor.owner is source
    assert tensor.device.type == "cuda"


def test_a_stale_pointer_of_an_empty_array_is_dropped():
    assert asdlpack(empty(data=(ADDRESS, True))).data_ptr == 0


@pytest.mark.parametrize("stream", [None, ..., 1, 2], ids=str)
def test_every_valid_stream_is_taken(stream):
    """None and absent ask for no synchronisation; an empty array has nothing to wait
    for, so not even the per-thread stream needs the driver."""
    assert asdlpack(empty(stream=stream)).__cuda_array_interface__["stream"] is None


@pytest.mark.parametrize("strides", [None, ..., (4,)], ids=["None", "absent", "given"])
def test_absent_strides_are_c_order(strides):
    """And in bytes."""
    assert asdlpack(empty(strides=strides)).strides == (4,)


def test_a_mask_of_none_is_none():
    assert asdlpack(empty(mask=None)).size == 0


def test_the_producer_is_held():
    """The dictionary owns nothing."""
    source = empty()
    before = sys.getrefcount(source)
    tensor = asdlpack(source)
    assert sys.getrefcount(source) == before + 1
    assert tensor.owner is source


@pytest.mark.parametrize("readonly", [False, True])
def test_read_only_is_kept(readonly):
    """The second part of `data`."""
    assert asdlpack(empty(data=(0, readonly))).readonly == readonly


@pytest.mark.parametrize("row", [r for r in _core.dtypes() if r["typestr"]], ids=lambda row: row["name"])
def test_every_typestr_is_read_and_written(row):
    tensor = asdlpack(empty(typestr=row["typestr"]))
    assert tensor.dtype == row["name"]
    assert tensor.__cuda_array_interface__["typestr"] == row["typestr"]


def test_torch_bfloat16_is_refused_with_the_way_out():
    """`<V2` by CAI is ambiguous, DLPack is not."""
    source = Dict(typestr="<V2")
    with pytest.raises(BufferError, match="DLPack"):
        asdlpack(source)
    managed = Managed(ADDRESS, device=CUDA, dtype=BFLOAT16)
    source.__dlpack__ = lambda **_: managed.capsule()
    assert asdlpack(source).dtype == "bfloat16"


# --- exporting --------------------------------------------------------------------------------------------------------


def cuda_tensor(**options):
    managed = Managed(ADDRESS, device=CUDA, **options)
    return asdlpack(managed.capsule())


def test_the_dictionary_of_a_tensor():
    """Strides None for C order, version 3, and the stream that a bare capsule is ready on."""
    assert cuda_tensor(flags=READ_ONLY).__cuda_array_interface__ == {
        "shape": (3,),
        "typestr": "<f4",
        "data": (ADDRESS, True),
        "strides": None,
        "version": 3,
        "stream": 1,
    }
    assert cuda_tensor(strides=(-2,)).__cuda_array_interface__["strides"] == (-8,)


def test_an_empty_tensor_exports_the_pointer_zero():
    assert cuda_tensor(shape=(0,)).__cuda_array_interface__["data"] == (0, False)


def test_managed_memory_is_offered():
    managed = Managed(ADDRESS, device=CUDA_MANAGED)
    assert asdlpack(managed.capsule()).__cuda_array_interface__["data"] == (ADDRESS, False)


def test_a_dtype_without_a_typestr_has_no_interface():
    """We do not add to the ambiguity."""
    tensor = cuda_tensor(dtype=BFLOAT16)
    assert not hasattr(tensor, "__cuda_array_interface__")
    assert tensor.__dlpack_device__() == CUDA


SWITCH = """
from provoke import CUDA, Managed
import dlbridge
interface = dlbridge.asdlpack(Managed(1 << 40, device=CUDA).capsule()).__cuda_array_interface__
print(interface["version"], interface.get("stream", "absent"))
"""


@pytest.mark.no_sanitizer
@pytest.mark.parametrize(("value", "printed"), [(None, "3 1"), ("2", "2 absent"), ("3", "3 1")])
def test_the_version_switch(value, printed):
    """Version 2 has no `stream`. The SYNC switch needs a device to show anything."""
    done = run_python(SWITCH, DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION=value)
    assert (done.stdout.strip(), done.stderr) == (printed, "")


def test_the_malformed_argument_class_is_ours():
    """DataError is the ValueError of dlbridge."""
    with pytest.raises(DataError):
        asdlpack(Dict(version=-1))
