"""dlbridge/pybind11.h: who keeps the memory of arguments and results, on which thread, and how long."""

import gc
import sys
import threading
from pathlib import Path

import caster_support
import dlbridge
import pytest
from caster_support import matrix
from child_process import fake_driver, run_python
from dlbridge import _core
from lifecycle_support import Exporter, compile_shared, nothing_lost

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["keep", "keep_unlocked", "owned"])
def test_a_kept_tensor_keeps_the_array(ext, keep):
    a = matrix()
    before = sys.getrefcount(a)
    kept = getattr(ext, keep)(a)
    assert (kept.total(), kept.address) == (66, a.__array_interface__["data"][0])
    assert sys.getrefcount(a) == before + 1
    a[0, 0] = 100
    assert kept.total() == 166
    del kept
    assert sys.getrefcount(a) == before
    temporary = getattr(ext, keep)(matrix() + 1)
    gc.collect()
    assert temporary.total() == 78


@pytest.mark.parametrize("function", ["total_unlocked", "plain_total_unlocked", "throw_unlocked"])
@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_the_last_reference_dies_without_the_gil(ext, function, legacy):
    """The deleter is Python code, so it crashes, or ends the process, where the argument forgets to take the GIL."""
    producer = Exporter((2, 3), legacy=legacy)
    for _ in range(3):
        if function == "throw_unlocked":
            with pytest.raises(RuntimeError, match="^thrown$"):
                ext.throw_unlocked(producer)
        else:
            assert getattr(ext, function)(producer) == 15
    assert len(producer.deleted) == producer.made == 3


@pytest.mark.parametrize("function", ["total_on_thread", "tensor_on_thread"])
def test_an_argument_may_die_on_another_thread(ext, function):
    a = matrix()
    before = sys.getrefcount(a)
    with nothing_lost():
        assert getattr(ext, function)(a) == 66
        assert getattr(ext, function)(dlbridge.asdlpack(a)) == 66
    assert sys.getrefcount(a) == before


def test_many_threads(ext):
    a, errors = matrix(), []
    before = sys.getrefcount(a)

    def work():
        try:
            for _ in range(200):
                assert ext.keep_unlocked(a).total() == 66
                assert ext.total_on_thread(a) == 66
                with pytest.raises(TypeError):
                    ext.fortran(a)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sys.getrefcount(a) == before


def test_a_tensor_kept_beyond_the_interpreter(ext):
    done = run_python(
        "import sys, numpy; sys.path.insert(0, sys.argv[1]); import caster_module as m, builtins\n"
        "builtins.kept = m.keep(numpy.zeros((2, 2), 'float32'))\n"
        "m.kept = m.keep_unlocked(numpy.ones((2, 2), 'float32'))\n"
        "print(m.kept.total())",
        caster_support.build().rpartition("/")[0],
    )
    assert (done.stdout, done.stderr) == ("4.0\n", "")


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_result_owns_its_memory(ext):
    begin = ext.released()
    with nothing_lost():
        t = ext.tensor(2, 3)
        assert (type(t), t.shape, t.dtype, t.device) == (dlbridge.HostTensor, (2, 3), "float32", "cpu")
        assert not t.readonly
        a = np.asarray(t)
        del t
        gc.collect()
        assert (a.tolist(), ext.released()) == ([[0, 1, 2], [3, 4, 5]], begin)
        del a
        gc.collect()
        assert ext.released() == begin + 1


def _numpy_of(x):
    return np.asarray(x)


@pytest.mark.parametrize(
    ("framework", "type_name"), [("numpy", "numpy.ndarray"), ("torch", "torch.Tensor"), ("jax", "jax.Array")]
)
def test_a_result_comes_as_an_array_of_the_framework(ext, framework, type_name):
    module = pytest.importorskip(framework, reason=f"{framework} is not installed")
    if framework == "jax":
        module.config.update("jax_platforms", "cpu")
    begin = ext.released()
    x = getattr(ext, framework)(2, 2)
    assert isinstance(x, getattr(module, type_name.split(".")[1]))
    assert _numpy_of(x).tolist() == [[0, 1], [2, 3]]
    if framework != "jax":  # JAX copies what is not aligned to its liking
        assert ext.released() == begin
    del x
    gc.collect()
    assert ext.released() == begin + 1


def test_results_of_other_kinds(ext):
    assert ext.nothing() is None
    t, a = ext.pair()
    assert (t.shape, a.shape, type(a)) == ((1, 2), (2, 1), np.ndarray)
    assert ext.readonly().readonly
    assert not np.asarray(ext.readonly()).flags.writeable
    a = matrix()
    keeper = ext.keep(a)
    lent = ext.lent(keeper)
    assert lent.data_ptr == keeper.address
    del keeper, a
    gc.collect()
    assert np.asarray(lent).sum() == 66
    assert ext.unlocked_result(3).shape == (3, 3)


def test_a_result_that_no_framework_takes(ext):
    begin = ext.released()
    with pytest.raises(ValueError, match="no_such_framework"):
        ext.nobody()
    if "cupy" not in sys.modules:
        with pytest.raises((ImportError, BufferError)):
            ext.cupy(1, 1)
        begin += 1
    gc.collect()
    assert ext.released() == begin + 1


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (0, dlbridge.ProtocolError),
        (1, TypeError),
        (2, dlbridge.ExchangeError),
        (3, dlbridge.CopyError),
        (4, dlbridge.DataError),
        (5, OverflowError),
        (6, MemoryError),
        (7, dlbridge.CudaError),
    ],
)
def test_an_error_of_the_sdk_is_the_exception_of_the_package(ext, code, error):
    for function in (ext.throw_error, ext.plain_throw_error):
        with pytest.raises(error, match="^operation: reason$") as info:
            function(code)
        assert type(info.value) is error


def test_other_exceptions(ext):
    with pytest.raises(MemoryError):
        ext.throw_bad_alloc()
    with pytest.raises(KeyError, match="missing"):
        ext.throw_python()


IMPORT = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
def table(major, size):
    fields = (ctypes.c_uint32 * 64)(size, major, 7, 0)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    global keep
    keep = fields, b"dlbridge._core._c_api"
    return new(ctypes.addressof(fields), keep[1], None)
{}
try:
    import caster_module
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("sys.modules['dlbridge'] = None", "Install it: pip install dlbridge"),
        ("import dlbridge; dlbridge._core._c_api = table(2, 256)", "installed dlbridge has 2.7"),
        ("import dlbridge; dlbridge._core._c_api = table(1, 16)", "installed dlbridge has 1.7"),
    ],
    ids=["absent", "another major version", "an older minor version"],
)
def test_connecting_fails_at_import(ext, before, message):
    assert message in run_python(IMPORT.format(before), caster_support.build().rpartition("/")[0]).stdout


# --- streams and devices ----------------------------------------------------------------------------------------------


class FakeStream:
    def __cuda_stream__(self):
        return (0, 2)


def test_stream_arguments(ext):
    assert [ext.stream(), ext.stream(None), ext.stream(1), ext.stream(2), ext.stream(FakeStream())] == [1, 1, 1, 2, 2]
    with pytest.raises(ValueError, match="stream 0 is not allowed"):
        ext.stream(0)
    with pytest.raises(ValueError, match="-1 says that no synchronisation"):
        ext.stream(-1)
    with pytest.raises(TypeError, match="give None"):
        ext.stream("x")
    assert [ext.stream_or_text(None), ext.stream_or_text("x")] == ["stream", "text"]
    assert ext.current_stream(0) == 1


def test_device_arguments_on_a_machine_without_one(ext):
    a = np.zeros((2, 2), "int32")
    assert ext.ints_anywhere(a) == a.__array_interface__["data"][0]
    with pytest.raises(TypeError, match="expected device cuda or cuda_managed, got"):
        ext.ints_on_gpu(a)
    if not _core.cuda_info()["available"]:
        with pytest.raises(dlbridge.CudaError):
            ext.ints_to_gpu(a)


@pytest.mark.parametrize(
    "case",
    [
        "the_named_stream_waits",
        "none_is_the_legacy_stream",
        "the_order_needs_no_gil",
        "a_host_function_refuses_a_device_array",
        "a_device_function_refuses_what_does_not_fit",
        "conversion_moves_between_devices",
        "a_stream_that_is_none_is_refused",
        "results_on_a_device_carry_their_stream",
        "results_like_device_arrays_stay_on_the_device",
        "the_named_stream_of_a_visit_waits",
    ],
)
def test_cuda_with_a_fake_driver(ext, case, tmp_path_factory):
    cuda = Path(__file__).parent.parent / "cuda"
    folder = tmp_path_factory.getbasetemp() / "caster_cuda"
    if not folder.exists():
        folder.mkdir()
        compile_shared(cuda / "fake_libcuda.c", folder, "libcuda.so.1")
    build = caster_support.build()
    done = run_python(cuda / "caster_cases.py", case, build, **fake_driver(folder))
    assert done.stdout == "passed\n"


@pytest.mark.gpu
def test_cuda_arrays_on_a_gpu(ext):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    x = torch.zeros(4, 6, 3, device="cuda")
    stream = torch.cuda.Stream()
    assert ext.on_gpu(x)[0] == x.data_ptr()
    assert ext.on_gpu(x, stream=stream.cuda_stream) == (x.data_ptr(), (4, 6, 3), (18, 3, 1))
    assert ext.ints_to_host(torch.ones(2, 3, dtype=torch.int32, device="cuda")) == 6
    assert ext.ints_to_gpu(np.ones((2, 3), "int32")) == "cuda:0"
    with pytest.raises(TypeError, match=r"expected device cpu.*cuda:0, writable\]. Hint: a.cpu\(\)"):
        ext.matrix(torch.zeros(2, 2, device="cuda"))
