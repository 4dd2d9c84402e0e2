"""Tensors as Arrow arrays: shared, kept alive and released from any thread, or refused with what to do."""

import ctypes
import gc
import subprocess
import sys
import textwrap
import threading

import dlbridge.nd as nd
import numpy as np
import pytest
from arrow_support import Array, DeviceArray, Schema, capsule, struct_of
from dlbridge import _core, asdlpack, convert

pa = pytest.importorskip("pyarrow")

NAMES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


def lib(name):
    return pytest.importorskip(name)


def release(struct):
    struct.release(ctypes.addressof(struct))


@pytest.mark.parametrize("dtype", NAMES)
def test_one_axis_is_a_primitive_array(dtype):
    source = np.arange(5, dtype=dtype)
    array = pa.array(asdlpack(source))
    assert array.type == pa.from_numpy_dtype(source.dtype)
    assert array.buffers()[1].address == source.ctypes.data
    assert array.to_pylist() == source.tolist()
    array.validate(full=True)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (0, 3), (3, 0), (1, 1, 1, 1)], ids=str)
def test_more_axes_are_tensors_of_fixed_shape(shape):
    source = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    array = pa.array(asdlpack(source))
    assert array.type == pa.fixed_shape_tensor(pa.float32(), shape[1:])
    assert array.storage.flatten().to_pylist() == source.ravel().tolist()
    array.validate(full=True)
    if source.size:
        assert array.storage.values.buffers()[1].address == source.ctypes.data
        back = asdlpack(array, protocol="arrow")
        assert (back.shape, back.data_ptr) == (shape, source.ctypes.data)


TAKERS = {
    "polars": (lambda t: lib("polars").Series(t), lambda x: x.to_list()),
    "pyarrow chunked": (lambda t: pa.chunked_array([pa.array(t)]), lambda x: x.to_pylist()),
    "nanoarrow": (lambda t: lib("nanoarrow").Array(t), lambda x: list(x.iter_py())),
    "pandas": (
        lambda t: lib("pandas").Series(lib("pandas").arrays.ArrowExtensionArray(pa.array(t))),
        lambda x: x.tolist(),
    ),
    "numpy again": (lambda t: np.asarray(asdlpack(t, protocol="arrow")), lambda x: x.tolist()),
}


@pytest.mark.parametrize("make", [asdlpack, lambda a: nd.asarray(a, device="cpu")], ids=["Tensor", "nd.ndarray"])
@pytest.mark.parametrize("taker", TAKERS)
def test_libraries_take_tensors(taker, make):
    take, values = TAKERS[taker]
    source = make(np.arange(4.0))
    taken = take(source)
    del source
    gc.collect()
    assert values(taken) == [0, 1, 2, 3]


def test_a_duckdb_query_over_exported_columns():
    duckdb = lib("duckdb")
    exported = pa.table({"x": pa.array(asdlpack(np.arange(10)))})
    connection = duckdb.connect()
    connection.register("exported", exported)
    assert connection.sql("select sum(x) as s from exported").fetchall() == [(45,)]


REFUSED = {
    "bool": (np.ones(3, bool), "requested_schema of bool, or give the bytes as uint8"),
    "complex": (np.ones(3, np.complex64), "has no Arrow type"),
    "strided": (np.arange(6)[::2], r"asdlpack\(x, copy=True\)"),
    "reversed": (np.arange(6)[::-1], r"asdlpack\(x, copy=True\)"),
    "transposed": (np.ones((2, 3)).T, r"asdlpack\(x, copy=True\)"),
    "0-d": (np.array(1.0), r"Reshape it to \(1,\)"),
    "rows too long": (np.broadcast_to(np.zeros(1, np.int8), (0, 2**31)), "2\\*\\*31 - 1 elements"),
}


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_schema__"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_arrow_cannot_say_is_refused_with_the_remedy(name, method):
    source, says = REFUSED[name]
    with pytest.raises(BufferError, match=says):
        getattr(asdlpack(source), method)()


def test_bools_are_packed_where_the_schema_asks_for_them():
    source = np.array([True, False, True] * 7)
    array = pa.array(asdlpack(source), type=pa.bool_())
    assert array.to_pylist() == source.tolist()
    array.validate(full=True)
    assert _core.live_counts()["copies"] >= 1


def test_another_requested_schema_is_a_wish():
    source = np.arange(3)
    given = asdlpack(source).__arrow_c_array__(pa.float64().__arrow_c_schema__())
    assert struct_of(given[0], Schema).format == b"l"


def test_a_requested_schema_that_is_none():
    t = asdlpack(np.arange(3))
    with pytest.raises(TypeError, match="arrow_schema"):
        t.__arrow_c_array__(1)
    with pytest.raises(TypeError, match="arrow_schema"):
        t.__arrow_c_array__(capsule(Array(), b"other"))
    with pytest.raises(ValueError, match="one column"):
        t.__arrow_c_array__(pa.schema([("a", pa.int8())]).__arrow_c_schema__())
    with pytest.raises(TypeError):
        t.__arrow_c_array__(None, None)


@pytest.mark.parametrize("make", [asdlpack, lambda a: nd.asarray(a, device="cpu")], ids=["Tensor", "nd.ndarray"])
def test_keywords_of_later_versions_are_taken_where_they_are_none(make):
    t = make(np.arange(3))
    given = t.__arrow_c_device_array__(None, later=None, requested_schema_2=None)
    assert struct_of(given[1], DeviceArray).array.length == 3
    assert struct_of(t.__arrow_c_device_array__(later=None)[0], Schema).format == b"l"
    with pytest.raises(NotImplementedError, match=r"unexpected keyword argument 'later'; it takes requested_schema"):
        t.__arrow_c_device_array__(earlier=None, later=1)
    with pytest.raises(TypeError, match="at most 1 positional"):
        t.__arrow_c_device_array__(None, None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'later'"):
        t.__arrow_c_array__(later=None)


def test_the_schema_alone_says_the_type():
    assert pa.DataType._import_from_c_capsule(asdlpack(np.ones((2, 3))).__arrow_c_schema__()) == pa.fixed_shape_tensor(
        pa.float64(), [3]
    )


def test_a_host_tensor_says_that_it_is_on_the_cpu():
    given = asdlpack(np.arange(3)).__arrow_c_device_array__()
    placed = struct_of(given[1], DeviceArray)
    assert (placed.device_type, placed.device_id, placed.sync_event) == (1, -1, None)


def test_only_cuda_lacks_the_host_interface():
    host, cuda = _core.HostTensor, _core.CudaTensor
    assert hasattr(host, "__arrow_c_array__")
    assert not hasattr(cuda, "__arrow_c_array__")
    assert hasattr(cuda, "__arrow_c_device_array__")
    assert not hasattr(_core.Tensor, "__arrow_c_device_array__")


# --- lifetimes -------------------------------------------------------------------------------------------------------


def test_an_export_keeps_the_tensor_until_it_is_released():
    source = np.arange(3)
    given = asdlpack(source).__arrow_c_array__()
    assert _core.live_counts()["exports"] >= 1
    before = _core.live_counts()["exports"]
    array = struct_of(given[1], Array)
    assert ctypes.string_at(array.buffers[1], 24) == source.tobytes()
    release(array)
    assert _core.live_counts()["exports"] == before - 1
    assert not array.release
    del array, given  # the capsules find a released struct


def test_an_unused_capsule_releases():
    before = _core.live_counts()
    given = asdlpack(np.ones((2, 3))).__arrow_c_array__()
    assert _core.live_counts() != before
    del given
    assert _core.live_counts() == before


def test_a_child_outlives_its_parent():
    """The specification: a child is moved out, and the parent is released right after."""
    source = np.arange(6.0).reshape(2, 3)
    given = asdlpack(source).__arrow_c_array__()
    parent, schema = struct_of(given[1], Array), struct_of(given[0], Schema)
    child, item = Array(), Schema()
    ctypes.memmove(ctypes.byref(child), parent.children[0], ctypes.sizeof(child))
    ctypes.memmove(ctypes.byref(item), schema.children[0], ctypes.sizeof(item))
    parent.children[0].contents.release = type(parent.release)()
    schema.children[0].contents.release = type(schema.release)()
    del parent, schema, given
    assert (item.format, item.name, child.length) == (b"g", b"item", 6)
    assert ctypes.string_at(child.buffers[1], 48) == source.tobytes()
    release(child)
    release(item)


def test_an_export_may_be_released_on_another_thread():
    arrays = [pa.array(asdlpack(np.arange(100) + i)) for i in range(20)]
    worker = threading.Thread(target=arrays.clear)
    worker.start()
    worker.join()
    gc.collect()


def test_an_import_may_be_released_on_another_thread():
    held = [asdlpack(pa.array(range(100)), protocol="arrow") for _ in range(20)]
    worker = threading.Thread(target=held.clear)
    worker.start()
    worker.join()


def test_a_pending_exception_survives_a_release():
    with pytest.raises(KeyError, match="mine"):
        try:
            raise KeyError("mine")
        finally:
            struct = struct_of(asdlpack(np.arange(3)).__arrow_c_array__()[1], Array) and None
            assert struct is None


def test_exports_and_imports_that_live_until_the_end_do_no_harm():
    code = """
        import numpy as np, pyarrow as pa, polars as pl, dlbridge
        exported = pa.array(dlbridge.asdlpack(np.arange(10)))
        frame = pl.Series(dlbridge.asdlpack(np.arange(10)))
        imported = dlbridge.asdlpack(pl.Series([1.0, 2.0]))
        cycle = [imported, exported]; cycle.append(cycle)
        columns = dlbridge.columns(pa.table({"a": [1]}))
        capsule = dlbridge.asdlpack(np.ones((2, 2))).__arrow_c_array__()
    """
    lib("polars")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_array_goes_to_and_fro_many_times():
    tensor = asdlpack(np.arange(3))
    for _ in range(2000):
        tensor = asdlpack(pa.array(tensor), protocol="arrow")
    assert np.asarray(tensor).tolist() == [0, 1, 2]


def test_the_bits_of_a_packed_copy_live_on_their_own():
    array = pa.array(asdlpack(np.ones(9, bool)), type=pa.bool_())
    gc.collect()
    assert convert(asdlpack(array, copy=True), "numpy").all()
