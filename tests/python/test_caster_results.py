"""dlbridge/pybind11.h: results in the framework of an argument or of a name, and what keeps their memory
(tests/pybind/caster_module.cpp)."""

import array
import gc
import sys
import threading

import dlbridge
import pytest
from caster_support import matrix
from dlbridge import _core, asdlpack, nd
from lifecycle_support import FLOAT32, Exporter, host_array, nothing_lost

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")


def _torch(a):
    return pytest.importorskip("torch", reason="PyTorch is not installed").from_numpy(a)


def _jax(a):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jax.config.update("jax_platforms", "cpu")
    return jax.numpy.asarray(a)


def _tensorflow(a):
    return pytest.importorskip("tensorflow", reason="TensorFlow is not installed").constant(a)


MAKERS = {
    "numpy": lambda a: a,
    "torch": _torch,
    "nd": host_array,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "memoryview": memoryview,
    "Tensor": asdlpack,
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))


# --- in the framework of an argument --------------------------------------------------------------------------------


@makers
def test_a_result_is_of_the_framework_that_was_given(ext, make):
    given = make(matrix())
    with nothing_lost():
        for function in (ext.like, ext.plain_like, ext.like_unlocked):
            result = function(given)
            assert type(result) is type(given)
            assert np.asarray(result).tolist() == [[0, 1]]
            del result
        gc.collect()


def test_a_result_shares_the_memory_and_frees_it(ext):
    begin = ext.released()
    for make in (MAKERS["numpy"], MAKERS["nd"]):
        results = [ext.like(make(matrix()), rows=3) for _ in range(2)]
        assert ext.released() == begin
        assert np.asarray(results[0]).shape == (3, 2)
        del results
        gc.collect()
        begin += 2
        assert ext.released() == begin


def test_a_result_like_an_ndarray_is_one_object_and_its_views_keep_the_memory(ext):
    given = nd.asarray(matrix())
    with nothing_lost():
        before, begin = _core.live_counts(), ext.released()
        result = ext.like(given)
        now = _core.live_counts()
        assert (now["tensors"] - before["tensors"], now["exports"] - before["exports"]) == (1, 0)
        assert result.owner is None and not result.flags.owndata and result.base is None
        view = result[:, 1:]
        assert view.base is result
        del result
        gc.collect()
        assert ext.released() == begin and view.tolist() == [[1]]
        dropped = threading.Thread(target=lambda views: views.clear(), args=([view],))
        del view
        dropped.start()
        dropped.join()
        assert ext.released() == begin + 1


def test_a_result_that_its_framework_does_not_take_is_an_error_and_freed(ext):
    given = nd.asarray(matrix())
    with nothing_lost():
        begin = ext.released()
        with pytest.raises(BufferError, match="nd: .*float8_e5m2"):
            ext.like_float8(given)
        assert ext.released() == begin + 1


def test_subclasses_get_their_frameworks_own_arrays(ext):
    class Picture(np.ndarray):
        pass

    assert type(ext.like(matrix().view(Picture))) is np.ndarray
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    parameter = torch.nn.Parameter(torch.zeros(2, 2), requires_grad=False)
    assert type(ext.like(parameter)) is torch.Tensor


def test_what_is_of_no_framework_gets_a_tensor(ext):
    for given in (array.array("f", [1, 2]), Exporter((2, 2), dtype=FLOAT32)):
        assert isinstance(ext.like(given), dlbridge.Tensor)
    assert isinstance(ext.like_anything(b"1234"), dlbridge.Tensor)


def test_a_capsule_gets_a_tensor(ext):
    producer, another = Exporter((2,), dtype=FLOAT32), Exporter((2,), dtype=FLOAT32)
    assert isinstance(ext.like(producer.capsule()), dlbridge.Tensor)
    same = ext.same(another.capsule())
    assert isinstance(same, dlbridge.Tensor) and same.shape == (2,)
    del same
    for exporter in (producer, another):
        exporter.assert_all_deleted_once()


def test_an_argument_that_was_moved_away_is_like_nothing(ext):
    assert isinstance(ext.moved_from(matrix()), dlbridge.Tensor)


# --- the argument itself --------------------------------------------------------------------------------------------


@makers
def test_the_argument_itself_is_the_same_object(ext, make):
    a, b = make(matrix()), make(matrix())
    before = sys.getrefcount(a)
    for _ in range(3):
        assert ext.same(a) is a
        assert ext.same_unlocked(a) is a
        assert ext.same_of_two(a, b, True) == (a, b) if make is memoryview else ext.same_of_two(a, b, True)[0] is a
        assert ext.same_of_two(a, b, False)[0] is b
    gc.collect()
    assert sys.getrefcount(a) == before


def test_arguments_in_a_list_are_the_same_objects(ext):
    rows = [np.ones(2, "float32"), np.zeros(3, "float32")]
    assert all(x is y for x, y in zip(ext.same_list(rows), rows, strict=True))


def test_a_converted_argument_comes_back_as_what_it_became(ext):
    a = matrix()
    assert ext.same_converted(a) is a
    for make in (MAKERS["numpy"], MAKERS["nd"]):
        given = make(matrix("float64"))
        result = ext.same_converted(given)
        assert result is not given
        assert (type(result), str(np.asarray(result).dtype)) == (type(given), "float32")
        assert np.asarray(result).tolist() == a.tolist()


# --- by name --------------------------------------------------------------------------------------------------------


def test_a_result_of_a_framework_that_is_named_at_run_time(ext):
    begin = ext.released()
    assert type(ext.named("numpy")) is np.ndarray
    assert type(ext.named("nd")) is type(nd.zeros(1, device="cpu"))
    assert type(ext.named("memoryview")) is memoryview
    assert isinstance(ext.named("dlbridge"), dlbridge.Tensor)
    assert isinstance(ext.unnamed(), dlbridge.Tensor)
    with pytest.raises(ValueError, match="no_such_framework"):
        ext.named("no_such_framework")
    gc.collect()
    assert ext.released() == begin + 6


# --- who keeps the memory -------------------------------------------------------------------------------------------


def test_reference_internal_keeps_the_parent_of_memory_without_an_owner(ext):
    results = [
        lambda g: g.values,
        lambda g: g.numpy(),
        lambda g: g.named("nd"),
        lambda g: g.named("numpy"),
        lambda g: g.owned(),
    ]
    for result in results:
        grid = ext.Grid()
        before = sys.getrefcount(grid)
        kept = result(grid)
        assert sys.getrefcount(grid) == before + 1
        assert np.asarray(kept).tolist() == [1, 2, 3]
        np.asarray(kept)[0] = 7
        assert np.asarray(grid.values)[0] == 7
        del grid
        gc.collect()
        assert np.asarray(kept).tolist() == [7, 2, 3]


def test_a_capsule_with_a_destructor_keeps_the_memory(ext):
    begin = ext.released()
    kept = ext.of_capsule()
    gc.collect()
    assert (kept.tolist(), ext.released()) == ([1, 2, 3], begin)
    del kept
    gc.collect()
    assert ext.released() == begin + 1
