"""convert(): the capability table against the frameworks that are installed."""

import ctypes
import sys

import dlbridge
import pytest
from child_process import run_python
from dlbridge import CopyError, ExchangeError, asdlpack, convert
from dlbridge._core import consumers, plan
from lifecycle_support import CUDA_HOST, Exporter

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

ALIGNMENT = 64


def aligned(values, dtype="float32", offset=0):
    """A NumPy array whose data pointer is `offset` bytes past a multiple of ALIGNMENT."""
    dtype = np.dtype(dtype)
    values = np.asarray(values)
    room = np.zeros(values.size * dtype.itemsize + 2 * ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT + offset
    array = room[start : start + values.size * dtype.itemsize].view(dtype).reshape(values.shape)
    array[...] = values
    return array


def framework(name):
    reason = f"{name} is not installed"
    return pytest.importorskip({"buffer": "builtins"}.get(name, name), reason=reason)


READ = {
    "numpy": lambda a: a,
    "torch": lambda t: t.numpy(),
    "jax": lambda a: np.asarray(a),
    "tensorflow": lambda t: t.numpy(),
    "pyarrow": lambda a: a.to_numpy(zero_copy_only=False) if hasattr(a, "to_pylist") else a.to_numpy(),
    "onnxruntime": lambda v: v.numpy(),
    "tvm_ffi": lambda t: np.from_dlpack(t),
    "numba": lambda a: a,
    "polars": lambda s: s.to_numpy(),
    "warp": lambda a: a.numpy(),
    "buffer": lambda m: np.asarray(m),
}
POINTER = {
    "numpy": lambda a: a.ctypes.data,
    "torch": lambda t: t.data_ptr(),
    "jax": lambda a: a.unsafe_buffer_pointer(),
    "pyarrow": lambda a: a.buffers()[1].address if hasattr(a, "buffers") else a.to_numpy().ctypes.data,
    "onnxruntime": lambda v: v.data_ptr(),
    "tvm_ffi": lambda t: t.data_ptr(),
    "numba": lambda a: a.ctypes.data,
    "polars": lambda s: s.to_numpy(allow_copy=False).ctypes.data,
    "warp": lambda a: a.ptr,
    "buffer": lambda m: np.asarray(m).ctypes.data,
    "tensorflow": lambda t: asdlpack(__import__("tensorflow").experimental.dlpack.to_dlpack(t)).data_ptr,
}
INSTALLABLE = list(READ)


def test_known_names():
    wanted = "numpy torch cupy jax tensorflow numba cudf paddle tvm_ffi pyarrow onnxruntime dpnp mlx openvino nd"
    assert set(wanted.split()) <= set(consumers())


@pytest.mark.parametrize("name", ["numpy", "np", "torch", "torch.nn", "jax.numpy", "memoryview", "dlbridge.nd"])
def test_a_framework_has_several_names(name):
    assert plan(asdlpack(aligned(np.arange(4))), name).outcome == "shared"


@pytest.mark.parametrize("row", consumers().values(), ids=consumers())
def test_every_row_says_what_is_taken(row):
    assert row["module"] and row["dtypes"]
    assert not (row["writes"] and row["immutable"])


@pytest.mark.parametrize("name", INSTALLABLE)
def test_aligned_float32_crosses_without_a_copy(name):
    framework(name)
    source = aligned(np.arange(6).reshape(2, 3))
    result = convert(source, name, copy=False)
    assert POINTER[name](result) == source.ctypes.data
    np.testing.assert_array_equal(READ[name](result), source)


@pytest.mark.parametrize("name", INSTALLABLE)
def test_copy_true_gives_memory_of_its_own(name):
    framework(name)
    source = aligned(np.arange(6).reshape(2, 3))
    result = convert(source, name, copy=True)
    assert POINTER[name](result) != source.ctypes.data
    np.testing.assert_array_equal(READ[name](result), source)


@pytest.mark.parametrize("name", INSTALLABLE)
def test_result_outlives_the_producer(name):
    framework(name)
    result = convert(aligned(np.arange(1000)), name)
    junk = [np.full(1000, 7, np.float32) for _ in range(20)]
    np.testing.assert_array_equal(READ[name](result), np.arange(1000))
    del junk


LAYOUTS = {
    "transposed": lambda: aligned(np.arange(6).reshape(2, 3)).T,
    "strided": lambda: aligned(np.arange(12).reshape(2, 6))[:, ::2],
    "negative": lambda: aligned(np.arange(6).reshape(2, 3))[::-1],
    "unaligned to 64": lambda: aligned(np.arange(6).reshape(2, 3), offset=4),
    "0-d": lambda: aligned(np.array(3.0)),
    "empty": lambda: np.zeros((0, 3), np.float32),
    "12 dimensions": lambda: aligned(np.arange(4096).reshape((2,) * 12)),
    "unit axis with odd stride": lambda: np.lib.stride_tricks.as_strided(aligned(np.arange(3)), (1, 3), (7, 4)),
}


@pytest.mark.parametrize("name", INSTALLABLE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_share_or_copy_as_the_table_says(name, layout):
    framework(name)
    source = LAYOUTS[layout]()
    planned = plan(asdlpack(source), name)
    if planned.outcome == "refused":
        with pytest.raises(ExchangeError, match=name):
            convert(source, name)
        return
    result = convert(source, name)
    np.testing.assert_array_equal(np.reshape(READ[name](result), source.shape), source)
    if planned.outcome == "copied":
        assert source.size == 0 or POINTER[name](result) != source.ctypes.data
        with pytest.raises(CopyError, match=f"{name}.*copy"):
            convert(source, name, copy=False)
    elif source.size:
        assert POINTER[name](result) == source.ctypes.data


@pytest.mark.parametrize("name", INSTALLABLE)
def test_read_only_is_kept_shared_with_a_reader_or_copied(name):
    framework(name)
    source = aligned(np.arange(6).reshape(2, 3))
    source.flags.writeable = False
    row, planned = consumers()[name], plan(asdlpack(source), name)
    result = convert(source, name)
    np.testing.assert_array_equal(READ[name](result), source)
    shared = POINTER[name](result) == source.ctypes.data
    assert shared == (name not in ("torch", "tvm_ffi", "warp"))  # those that write, and have no mark
    assert planned.outcome == ("shared" if shared else "copied")
    if shared and not row["immutable"]:
        assert getattr(result, "readonly", None) or not READ[name](result).flags.writeable


def test_torch_copy_of_read_only_memory_does_not_write_through():
    framework("torch")
    source = b"Hello!"
    tensor = convert(source, "torch")
    tensor[0] = 0
    assert source == b"Hello!"
    with pytest.raises(CopyError, match="read-only"):
        convert(source, "torch", copy=False)


def test_negative_strides_never_reach_torchs_importer():
    """It aborts the process (pytorch#188023), so this runs in a child."""
    framework("torch")
    code = (
        "import numpy as np, dlbridge\n"
        "t = dlbridge.convert(np.arange(4.)[::-1], 'torch')\n"
        "assert t.tolist() == [3.0, 2.0, 1.0, 0.0]\n"
    )
    run_python(code)


def test_tensorflow_computes_on_what_was_not_aligned():
    """Its kernels end the process on a pointer that is not aligned to 64 bytes, so this runs in a child."""
    framework("tensorflow")
    code = (
        "import array, tensorflow as tf, dlbridge\n"
        "a = memoryview(array.array('f', range(64)))[1:9]\n"
        "assert float(tf.reduce_sum(dlbridge.convert(a, 'tensorflow') + 1)) == 44.0\n"
    )
    run_python(code)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_jax_keeps_64_bit_types_with_x64_off(dtype):
    framework("jax")
    source = aligned([2**31 + 1, 2], dtype)
    result = convert(source, "jax", copy=False)
    assert str(result.dtype) == dtype
    assert result.unsafe_buffer_pointer() == source.ctypes.data
    np.testing.assert_array_equal(np.asarray(result), source)


ML_NAMES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


@pytest.mark.parametrize("dtype", ML_NAMES)
@pytest.mark.parametrize("name", ["numpy", "torch", "jax", "tvm_ffi", "tensorflow", "onnxruntime", "pyarrow"])
def test_ml_dtypes_cross_or_are_refused_by_name(name, dtype):
    framework(name)
    ml_dtypes = framework("ml_dtypes")
    source = aligned(np.ones(4), np.uint16 if dtype == "bfloat16" else np.uint8).view(getattr(ml_dtypes, dtype))
    if dtype not in consumers()[name]["dtypes"]:
        with pytest.raises(ExchangeError, match=dtype):
            convert(source, name)
        return
    result = convert(source, name, copy=False)
    assert POINTER[name](result) == source.ctypes.data
    if name != "onnxruntime":  # has no dtype object
        assert str(getattr(result, "dtype", "")).removeprefix("torch.").find(dtype) >= 0


def test_numpy_result_of_bfloat16_has_its_values():
    ml_dtypes = framework("ml_dtypes")
    source = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    result = convert(asdlpack(source[:, ::-1]), "numpy")
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result, source[:, ::-1])


@pytest.mark.parametrize("name", INSTALLABLE)
def test_bool_crosses(name):
    framework(name)
    source = aligned([True, False, True, True], "bool")
    result = convert(source, name)
    np.testing.assert_array_equal(np.asarray(READ[name](result), bool), source)


def test_onnxruntime_bool_is_a_bool_tensor():
    framework("onnxruntime")
    assert convert(np.array([True, False]), "onnxruntime").data_type() == "tensor(bool)"


def test_pyarrow_gives_an_array_for_one_dimension_and_a_tensor_for_others():
    pa = framework("pyarrow")
    assert isinstance(convert(np.arange(3), "pyarrow"), pa.Array)
    assert isinstance(convert(np.arange(4).reshape(2, 2), "pyarrow"), pa.Tensor)
    with pytest.raises(ExchangeError, match="complex64"):
        convert(np.zeros(3, np.complex64), "pyarrow")


@pytest.mark.parametrize("name", INSTALLABLE)
def test_pinned_memory_is_shared_under_a_name_that_the_consumer_knows(name):
    framework(name)
    source = aligned(np.arange(6).reshape(2, 3))
    pinned = asdlpack(Exporter((2, 3), dtype=(2, 32, 1), device=(CUDA_HOST, 0), data=source.ctypes.data))
    assert str(pinned.device) == "cuda_host"
    assert plan(pinned, name).outcome == "shared"
    result = convert(pinned, name, copy=False)
    assert POINTER[name](result) == source.ctypes.data
    np.testing.assert_array_equal(READ[name](result), source)


def test_polars_gives_a_plain_column_for_one_dimension_and_an_array_column_for_others():
    pl = framework("polars")
    assert convert(np.arange(3), "polars").dtype == pl.Int64
    assert convert(np.ones((2, 3, 4), np.float32), "polars").dtype == pl.Array(pl.Float32, (3, 4))
    with pytest.raises(ExchangeError, match="complex64"):
        convert(np.zeros(3, np.complex64), "polars")
    with pytest.raises(ExchangeError, match="polars"):
        convert(np.array(1.0), "polars")


def test_nanoarrow_gives_an_array_for_any_rank():
    na = framework("nanoarrow")
    assert isinstance(convert(np.arange(3), "nanoarrow"), na.Array)
    with pytest.warns(UserWarning, match="fixed_shape_tensor"):
        assert convert(np.ones((2, 3)), "nanoarrow").to_pylist() == [[1, 1, 1]] * 2
    for refused in (np.zeros(3, np.complex64), np.zeros(3, bool), np.array(1.0)):
        with pytest.raises(ExchangeError, match="nanoarrow"):
            convert(refused, "nanoarrow")


@pytest.mark.parametrize("shape", [(4,), (2, 3)], ids=str)
def test_duckdb_gives_a_relation_over_the_memory(shape):
    framework("duckdb")
    source = np.arange(float(np.prod(shape))).reshape(shape)
    relation = convert(source, "duckdb", copy=False)
    source += 1  # no copy was made: a query reads the memory when it runs
    rows = [row[0] for row in relation.fetchall()]
    np.testing.assert_array_equal(np.array(rows), source)
    del source, rows
    assert relation.columns == ["value"] and len(relation.fetchall()) == shape[0]


@pytest.mark.parametrize("refused", [np.array(1.0), np.zeros(3, bool), np.zeros(3, np.float16), np.zeros((1, 1, 1))])
def test_duckdb_has_no_column_for_it(refused):
    framework("duckdb")
    with pytest.raises(ExchangeError, match="duckdb"):
        convert(refused, "duckdb")


def test_containers_for_duckdb_are_relations_by_name():
    framework("duckdb")
    made = convert({"x": np.arange(3), "y": np.arange(2.0)}, "duckdb")
    assert {name: r.columns for name, r in made.items()} == {"x": ["value"], "y": ["value"]}


def test_warp_arrays_have_one_to_four_dimensions_and_are_written_to():
    wp = framework("warp")
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert convert(source, "warp").ptr == source.ctypes.data
    source.flags.writeable = False
    assert convert(source, "warp").ptr != source.ctypes.data
    assert isinstance(convert(source, "warp"), wp.array)
    for refused in (np.zeros(3, np.complex64), np.array(1.0), np.zeros((1,) * 5)):
        with pytest.raises(ExchangeError, match="warp"):
            convert(refused, "warp")


def test_a_module_object_names_its_consumer():
    assert isinstance(convert(b"abc", np), np.ndarray)


def test_a_module_with_from_dlpack_needs_no_row(monkeypatch):
    module = type(sys)("a_new_array_library")
    module.from_dlpack = lambda tensor: ("got", tensor.shape)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert convert(b"abc", module.__name__) == ("got", (3,))
    assert convert(b"abc", module) == ("got", (3,))


@pytest.mark.parametrize("name", ["no_such_library", "json", "", ".", ".numpy", "no.such..library", "os/path", "a b"])
def test_unknown_consumer_is_a_value_error_that_lists_the_known(name):
    with pytest.raises(ValueError, match="Known: numpy, torch"):
        convert(b"abc", name)


@pytest.mark.parametrize(("call", "operation"), [(convert, "convert"), (lambda x, to: asdlpack(x), "asdlpack")])
@pytest.mark.parametrize("to", ["numpy", "jax", "buffer"])
@pytest.mark.parametrize(
    "source",
    [object(), np.array([1], ">i4"), np.ma.array([1, 2], mask=[True, False]), memoryview(b"abcd").cast("c")[::-1]],
    ids=["nothing", "byte order", "masked", "good"],
)
def test_refusals_name_the_function_that_was_called(source, to, call, operation):
    if to == "jax":
        framework("jax")
    try:
        call(source, to)
    except (TypeError, BufferError) as error:
        assert str(error).startswith(f"{operation}(): ")
    else:
        assert isinstance(source, memoryview)


@pytest.mark.parametrize(
    ("call", "operation"),
    [
        (lambda nd, x: nd.asarray(x, device="cpu"), "nd.asarray"),
        (lambda nd, x: np.asarray(asdlpack(x).__array__(dtype=object())), None),
    ],
    ids=["nd.asarray", "control"],
)
def test_refusals_of_a_reader_name_its_caller(call, operation):
    with pytest.raises((BufferError, TypeError)) as caught:
        call(dlbridge.nd, np.array([1], ">i4"))
    assert str(caught.value).startswith(f"{operation or 'asdlpack'}(): ")


def test_missing_framework_is_an_import_error():
    missing = next((n for n in ("mlx", "openvino", "paddle", "dpnp", "cudf") if not _installed(n)), None)
    if missing is None:
        pytest.skip("every framework is installed")
    source = np.arange(3.0, dtype=np.float32)
    error = ExchangeError if missing == "cudf" else ImportError
    with pytest.raises(error, match=missing):
        convert(source, missing)


def _installed(name):
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_a_framework_that_fails_gives_an_exchange_error_with_its_cause(monkeypatch):
    module = type(sys)("a_failing_library")

    def fail(tensor):
        raise RuntimeError("no such luck")

    module.from_dlpack = fail
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(ExchangeError, match=r"a_failing_library refused .*no such luck") as caught:
        convert(b"abc", module.__name__)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_host_memory_is_refused_by_a_consumer_of_devices():
    with pytest.raises(
        ExchangeError, match=r"cupy: expected device cuda or cuda_managed, got \(3,\) \[uint8, .*device='cuda'"
    ):
        convert(b"abc", "cupy")


@pytest.mark.parametrize("name", INSTALLABLE)
def test_nothing_leaks(name):
    framework(name)
    import gc
    import time

    source = aligned(np.arange(6).reshape(2, 3))
    convert(source, name)
    gc.collect()
    before, references = dlbridge._core.live_counts(), sys.getrefcount(source)
    for copy in (None, True) * 20:
        convert(source, name, copy=copy)
    limit = time.monotonic() + 2
    while dlbridge._core.live_counts() != before and time.monotonic() < limit:
        gc.collect()
        time.sleep(0.01)
    assert dlbridge._core.live_counts() == before
    assert sys.getrefcount(source) == references


def test_buffer_result_is_a_memoryview_of_the_memory():
    source = (ctypes.c_int16 * 3)(1, 2, 3)
    view = convert(source, "buffer")
    assert view.tolist() == [1, 2, 3]
    view[0] = 9
    assert source[0] == 9
