"""convert() to libraries that are not installed here: modules in their place take what the documentation says."""

import sys
import types

import pytest
from dlbridge import ExchangeError, _core, asdlpack, convert
from dlbridge._core import plan
from lifecycle_support import Consumed

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")


def stand_in(monkeypatch, name, **names):
    """The module `name`, and its parents where nobody has imported them."""
    module = None
    parts = name.split(".")
    for i in range(len(parts)):
        path = ".".join(parts[: i + 1])
        made = types.ModuleType(path)
        if module is not None:
            setattr(module, parts[i], made)
        monkeypatch.setitem(sys.modules, path, made)
        module = made
    vars(module).update(names)
    return module


# --- OpenCV ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def opencv(monkeypatch):
    return stand_in(monkeypatch, "cv2")


def test_opencv_gets_numpy_arrays_over_the_memory(opencv):
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    for to in ("opencv", "cv2", opencv):
        made = convert(asdlpack(image), to, copy=False)
        assert (type(made), made.ctypes.data, made.flags.writeable) == (np.ndarray, image.ctypes.data, True)
    image.flags.writeable = False
    assert not convert(asdlpack(image), "opencv", copy=False).flags.writeable


@pytest.mark.parametrize(
    ("view", "outcome"),
    [
        (lambda a: a[:, :3], "shared"),  # a picture with padded rows
        (lambda a: a[:, ::2], "copied"),
        (lambda a: a.T, "copied"),
        (lambda a: a[::-1], "copied"),
    ],
    ids=["padded rows", "every other column", "transposed", "upside down"],
)
def test_opencv_gets_what_a_matrix_can_say(opencv, view, outcome):
    source = view(np.arange(24, dtype=np.float32).reshape(4, 6))
    assert plan(asdlpack(source), "opencv").outcome == outcome
    made = convert(source, "opencv")
    np.testing.assert_array_equal(made, source)
    assert (made.ctypes.data == source.ctypes.data) == (outcome == "shared")


@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32", "bool", "complex64"])
def test_opencv_narrows_nothing_in_silence(opencv, dtype):
    with pytest.raises(ExchangeError, match=r"opencv.*cast it"):
        convert(np.zeros((2, 2), dtype), "opencv")


# --- DALI ------------------------------------------------------------------------------------------------------------


class DaliTensor:
    def __init__(self, capsule):
        assert _core.peek_capsule(capsule)["name"] == "dltensor"
        self.described = _core.peek_capsule(capsule)
        self.taken = Consumed(capsule)


@pytest.mark.parametrize("module", ["nvidia.dali.tensors", "nvidia.dali.backend"])
def test_dali_gets_a_capsule_of_the_memory(monkeypatch, module):
    stand_in(monkeypatch, module, TensorCPU=DaliTensor)
    source = np.arange(6, dtype=np.int16).reshape(2, 3)
    made = convert(source, "dali", copy=False)
    assert (made.described["data"], made.described["shape"]) == (source.ctypes.data, (2, 3))
    made.taken.delete()
    source.flags.writeable = False
    made = convert(source, "nvidia.dali")
    assert made.described["data"] != source.ctypes.data  # there is no mark for what nobody may write to
    made.taken.delete()


def test_dali_is_given_dense_arrays_of_numbers(monkeypatch):
    stand_in(monkeypatch, "nvidia.dali.tensors", TensorCPU=DaliTensor)
    source = np.arange(6, dtype=np.float32)[::2]
    made = convert(source, "dali")
    assert made.described["data"] != source.ctypes.data
    made.taken.delete()
    with pytest.raises(ExchangeError, match="dali"):
        convert(np.zeros(3, bool), "dali")


def test_other_packages_of_nvidia_are_not_dali(monkeypatch):
    class Image:
        __module__ = "nvidia.nvimgcodec"
        __array_interface__ = np.zeros(3).__array_interface__

    with pytest.raises(TypeError, match="Image"):
        convert(np.zeros(3), like=Image())


# --- CV-CUDA ---------------------------------------------------------------------------------------------------------


def test_cvcuda_takes_cuda_memory_only(monkeypatch):
    stand_in(monkeypatch, "cvcuda")
    with pytest.raises(ExchangeError, match=r"cvcuda: expected device cuda.*device='cuda'"):
        convert(np.zeros(3, np.float32), "cvcuda")
