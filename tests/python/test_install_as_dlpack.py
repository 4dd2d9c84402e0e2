"""install_as_dlpack(): every example of pydlpack's README runs on this package."""

import importlib
import sys

import dlbridge
import pytest


@pytest.fixture(autouse=True)
def dlpack(monkeypatch):
    """`dlpack` served by dlbridge; what was there before comes back afterwards."""
    saved = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "dlpack"}
    for name in saved:
        del sys.modules[name]
    dlbridge.install_as_dlpack()
    yield sys.modules["dlpack"]
    for name in [name for name in sys.modules if name.partition(".")[0] == "dlpack"]:
        del sys.modules[name]
    sys.modules.update(saved)


def test_basic_usage_in_torch():
    torch = pytest.importorskip("torch", reason="the example's consumer")
    from dlpack import asdlpack

    dl = asdlpack(b"Hello!")
    tensor = torch.from_dlpack(dl)
    assert tensor.tolist() == [72, 101, 108, 108, 111, 33]
    assert tensor.dtype == torch.uint8


def test_methods_of_the_object():
    from dlpack import DLPackObject, asdlpack

    dl = asdlpack(bytearray(b"Hello!"))
    assert isinstance(dl, DLPackObject)
    assert dl.__dlpack_device__() == (1, 0)
    assert "dltensor" in repr(dl.__dlpack__(stream=None))


@pytest.mark.gpu
def test_numba_example():
    numpy = pytest.importorskip("numpy", reason="the example's data")
    cuda = pytest.importorskip("numba.cuda", reason="the example's producer")
    if not cuda.is_available():
        pytest.skip("no CUDA device")
    from dlpack import asdlpack

    arr = cuda.to_device(numpy.array([[1, 2], [3, 4]]))
    dl = asdlpack(arr)
    ran = 0
    for consumer in ("torch", "jax.numpy", "cupy"):
        try:
            module = importlib.import_module(consumer)
        except ImportError:
            continue
        if consumer == "jax.numpy" and importlib.import_module("jax").default_backend() != "gpu":
            continue
        assert module.from_dlpack(dl).tolist() == [[1, 2], [3, 4]]
        ran += 1
    if not ran:
        pytest.skip("no consumer is installed")


def test_every_provider_of_the_readme_on_the_cpu():
    numpy = pytest.importorskip("numpy", reason="the consumer")
    import array
    import mmap

    from dlpack import asdlpack

    providers = {
        "bytes": b"\1\2\3",
        "bytearray": bytearray(b"\1\2\3"),
        "array": array.array("i", [1, 2, 3]),
        "mmap": mmap.mmap(-1, 3),
        "numpy": numpy.array([1, 2, 3]),
    }
    providers["mmap"][:] = b"\1\2\3"
    for name, provider in providers.items():
        assert numpy.from_dlpack(asdlpack(provider)).tolist() == [1, 2, 3], name


@pytest.mark.parametrize("producer", ["torch", "jax", "tensorflow"])
def test_framework_providers_on_the_cpu(producer):
    numpy = pytest.importorskip("numpy", reason="the consumer")
    module = pytest.importorskip(producer, reason=f"{producer} is the producer")
    from dlpack import asdlpack

    make = {
        "torch": lambda: module.tensor([1, 2, 3]),
        "jax": lambda: module.device_put(module.numpy.asarray([1, 2, 3]), module.devices("cpu")[0]),
        "tensorflow": lambda: module.constant([1, 2, 3]),
    }[producer]
    assert numpy.from_dlpack(asdlpack(make())).tolist() == [1, 2, 3]


def test_jax_and_tensorflow_consumers_on_the_cpu():
    numpy = pytest.importorskip("numpy", reason="the producer")
    jax = pytest.importorskip("jax", reason="the consumer")
    from dlpack import asdlpack

    source = numpy.array([[1, 2], [3, 4]], numpy.int32)
    assert jax.numpy.from_dlpack(asdlpack(source)).tolist() == [[1, 2], [3, 4]]
    tf = pytest.importorskip("tensorflow", reason="the consumer")
    capsule = asdlpack(source).__dlpack__()
    assert tf.experimental.dlpack.from_dlpack(capsule).numpy().tolist() == [[1, 2], [3, 4]]


def test_impl_cls_is_accepted_and_checked(dlpack):
    for impl_cls in (None, dlpack.DLManagedTensor, dlpack.DLManagedTensorVersioned):
        assert dlpack.asdlpack(b"abc", impl_cls=impl_cls).shape == (3,)
    with pytest.raises(TypeError, match="impl_cls"):
        dlpack.asdlpack(b"abc", impl_cls=int)


def test_readers_by_protocol(dlpack):
    assert dlpack.asdlpack_buffer(b"abc").protocol == "buffer"
    assert dlpack.asdlpack_dlpack(dlpack.asdlpack(b"abc")).protocol == "dlpack"
    with pytest.raises(TypeError):
        dlpack.asdlpack_cuda_array_interface(b"abc")


def test_todict_has_pydlpacks_labels_and_consumes_nothing(dlpack):
    capsule = dlpack.asdlpack(bytearray(b"abc")).__dlpack__()
    struct = dlpack.todict(capsule)
    assert struct["dl_tensor"]["device"] == {"device_type": "DLCPU", "device_id": 0}
    assert struct["dl_tensor"]["dtype"] == {"code": "DLUInt", "bits": 8, "lanes": 1}
    assert struct["dl_tensor"]["shape"] == (3,)
    assert dlbridge.asdlpack(capsule).shape == (3,)


def test_tests_run_is_ours(capsys):
    import dlpack.tests

    results = dlpack.tests.run(only=["stdlib"])
    assert results.exit_code == 0
    assert "bytearray" in capsys.readouterr().out


def test_a_live_export_keeps_the_mmap_locked():
    import mmap

    from dlpack import asdlpack

    mapping = mmap.mmap(-1, 8)
    dl = asdlpack(mapping)
    with pytest.raises(BufferError):
        mapping.close()
    del dl
    mapping.close()


def test_installing_twice_is_harmless():
    dlbridge.install_as_dlpack()
    from dlpack import asdlpack

    assert asdlpack(b"abc").shape == (3,)
