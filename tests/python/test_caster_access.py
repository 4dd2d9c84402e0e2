"""dlbridge/pybind11.h: the elements of a view one by one, as one run, by index (tests/pybind/caster_access.h)."""

import signal

import caster_support
import dlbridge
import pytest
from child_process import run_python

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

CUBE = np.arange(24, dtype="int32").reshape(2, 3, 4)
LAYOUTS = {
    "dense": CUBE,
    "transposed": CUBE.T,
    "reversed": CUBE[::-1, :, ::-1],
    "stepped": CUBE[:, ::2, 1::2],
    "broadcast": np.broadcast_to(CUBE[:1, :, :1], (2, 3, 4)),
    "ones": CUBE[:, :1],
    "empty": CUBE[:, :0],
}
layouts = pytest.mark.parametrize("a", LAYOUTS.values(), ids=list(LAYOUTS))


@layouts
def test_a_loop_visits_every_element_the_last_index_fastest(ext, a):
    expected = a.ravel().tolist()
    assert ext.items_cube(a) == ext.items_any(a) == ext.items_kept(a) == expected
    assert ext.items_dense(np.ascontiguousarray(a)) == expected
    assert ext.algorithms(a) == (sum(expected), expected.count(1), len(expected))


def test_a_loop_over_other_ranks(ext):
    assert ext.items_any(np.array(7, "int32")) == [7]
    nine = np.arange(2**9, dtype="int32").reshape((2,) * 9).T
    assert ext.items_any(nine) == nine.ravel().tolist()


def test_a_loop_writes_where_the_elements_are(ext):
    a = CUBE.copy()
    ext.add_one(a[::-1, :, ::2])
    expected = CUBE.copy()
    expected[:, :, ::2] += 1
    assert (a == expected).all()


@layouts
def test_flat_is_one_run_where_there_is_one(ext, a):
    if a.flags.c_contiguous:
        assert ext.flat_any(a) == a.ravel().tolist()
    else:
        with pytest.raises(dlbridge.ExchangeError, match=r"^flat: expected C-contiguous, got \(.*strides"):
            ext.flat_any(a)
    assert ext.flat_dense(CUBE[0]) == 12


INDICES = [(0, 0), (2, 3), (3, 0), (0, 4), (-1, 0)]


@pytest.mark.parametrize("function", ["element", "element_dense"])
@pytest.mark.parametrize("index", INDICES, ids=map(str, INDICES))
def test_a_debug_build_ends_at_an_index_outside(ext, function, index):
    code = (
        "import sys, os, numpy; sys.path.insert(0, sys.argv[1]); import caster_module as m\n"
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "sys.stdout.write(str(m.{}(numpy.arange(12, dtype='int32').reshape(3, 4), {}, {})))"
    ).format(function, *index)
    folder = caster_support.build().rpartition("/")[0]
    inside = 0 <= index[0] < 3 and 0 <= index[1] < 4
    done = run_python(code, folder, status=0 if inside else -signal.SIGABRT)
    if inside:
        assert done.stdout == str(index[0] * 4 + index[1])
    else:
        assert f"dlbridge: view({index[0]}, {index[1]}) is outside of a view of shape (3, 4)" in done.stderr
