"""__cuda_array_interface__ as far as no driver is needed: diagnosis comes first, empty arrays never need it.

What a device is needed for is in test_cuda_gpu.py.
"""

import os
import subprocess
import sys

import pytest
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
        ({"version": 1}, ValueError, "'version' is 1; version 2 and later"),
        ({"version": 0}, ValueError, "'version' is 0; version 2 and later"),
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
        ({"strides": (5,)}, BufferError, "no multiple of the itemsize"),
        ({"strides": (4, 4)}, ValueError, "'strides' has 2 entries"),
        ({"strides": (2**62,)}, OverflowError, "63 bits"),
        ({"typestr": "<V2"}, BufferError, "typestr '<V2' is raw or structured.*DLPack"),
        ({"typestr": ">f4"}, BufferError, "other byte order"),
        ({"typestr": "<f16"}, BufferError, "typestr '<f16'"),
    ],
    ids=lambda value: next(iter(value)) + "=" + repr(next(iter(value.values()))) if isinstance(value, dict) else "",
)
def test_e28_e30_e32_e33_f22_a_bad_dictionary_names_the_field(changes, error, match):
    """Edge cases 28 (required keys), 30 (stream 0), 32 (mask), 33 (torch's bfloat16); fault 22.

    None of it is a CudaError, so it comes before the driver is touched."""
    with pytest.raises(error, match=match) as caught:
        asdlpack(Dict(**changes))
    assert not isinstance(caught.value, RuntimeError)


def test_e28_anything_but_a_dict_is_a_type_error():
    """Edge case 28."""

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


def test_e28_a_good_dictionary_needs_the_driver_and_says_so():
    """Edge case 28: the device is found from the pointer, so a pointer to nowhere is an error with or without one."""
    with pytest.raises((RuntimeError, ValueError, BufferError)):
        asdlpack(Dict())


# --- reading: size zero -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2**40)], ids=str)
def test_e29_f13_an_empty_array_needs_no_driver(shape, version):
    """Edge case 29, fault 13, user report 19: no pointer query on NULL."""
    source = empty(shape=shape, version=version)
    tensor = asdlpack(source)
    assert isinstance(tensor, CudaTensor)
    assert (tensor.shape, tensor.size, tensor.data_ptr) == (shape, 0, 0)
    assert tensor.protocol == "cuda_array_interface"
    assert tensor.owner is source
    assert tensor.device.type == "cuda"


def test_e29_a_stale_pointer_of_an_empty_array_is_dropped():
    """Edge case 29."""
    assert asdlpack(empty(data=(ADDRESS, True))).data_ptr == 0


@pytest.mark.parametrize("stream", [None, ..., 1, 2], ids=str)
def test_e30_every_valid_stream_is_taken(stream):
    """Edge case 30: None and absent ask for no synchronisation (user report 20); an empty array has nothing to wait
    for, so not even the per-thread stream needs the driver."""
    assert asdlpack(empty(stream=stream)).__cuda_array_interface__["stream"] is None


@pytest.mark.parametrize("strides", [None, ..., (4,)], ids=["None", "absent", "given"])
def test_e31_absent_strides_are_c_order(strides):
    """Edge case 31: and in bytes."""
    assert asdlpack(empty(strides=strides)).strides == (4,)


def test_e32_a_mask_of_none_is_none():
    """Edge case 32."""
    assert asdlpack(empty(mask=None)).size == 0


def test_e32_the_producer_is_held():
    """Edge case 32: the dictionary owns nothing."""
    source = empty()
    before = sys.getrefcount(source)
    tensor = asdlpack(source)
    assert sys.getrefcount(source) == before + 1
    assert tensor.owner is source


@pytest.mark.parametrize("readonly", [False, True])
def test_e28_read_only_is_kept(readonly):
    """Edge case 28: the second part of `data`."""
    assert asdlpack(empty(data=(0, readonly))).readonly == readonly


@pytest.mark.parametrize("row", [r for r in _core.dtypes() if r["typestr"]], ids=lambda row: row["name"])
def test_e28_every_typestr_is_read_and_written(row):
    """Edge case 28."""
    tensor = asdlpack(empty(typestr=row["typestr"]))
    assert tensor.dtype == row["name"]
    assert tensor.__cuda_array_interface__["typestr"] == row["typestr"]


def test_e33_torch_bfloat16_is_refused_with_the_way_out():
    """Edge case 33: `<V2` by CAI is ambiguous, DLPack is not."""
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


def test_e28_e31_the_dictionary_of_a_tensor():
    """Edge cases 28 and 31: strides None for C order, version 3, and stream None where nothing is to be waited for."""
    assert cuda_tensor(flags=READ_ONLY).__cuda_array_interface__ == {
        "shape": (3,),
        "typestr": "<f4",
        "data": (ADDRESS, True),
        "strides": None,
        "version": 3,
        "stream": None,
    }
    assert cuda_tensor(strides=(-2,)).__cuda_array_interface__["strides"] == (-8,)


def test_e29_an_empty_tensor_exports_the_pointer_zero():
    """Edge case 29."""
    assert cuda_tensor(shape=(0,)).__cuda_array_interface__["data"] == (0, False)


def test_managed_memory_is_offered():
    managed = Managed(ADDRESS, device=CUDA_MANAGED)
    assert asdlpack(managed.capsule()).__cuda_array_interface__["data"] == (ADDRESS, False)


def test_e33_a_dtype_without_a_typestr_has_no_interface():
    """Edge case 33: we do not add to the ambiguity."""
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
@pytest.mark.parametrize(("value", "printed"), [(None, "3 None"), ("2", "2 absent"), ("3", "3 None")])
def test_the_version_switch(value, printed):
    """DESIGN section 4: version 2 has no `stream`. The SYNC switch needs a device to show anything."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DLBRIDGE_")}
    environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    if value is not None:
        environment["DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION"] = value
    done = subprocess.run(
        [sys.executable, "-c", SWITCH], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == (printed, "")


def test_e28_the_malformed_argument_class_is_ours():
    """Edge case 28: DataError is the ValueError of dlbridge."""
    with pytest.raises(DataError):
        asdlpack(Dict(version=1))
