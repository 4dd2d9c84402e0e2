"""fields(): structured arrays as tensors."""

import dlbridge
import pytest
from dlbridge import ExchangeError, fields

np = pytest.importorskip("numpy")

POINT = np.dtype([("x", "<f4"), ("y", "<f4"), ("id", "<i4"), ("color", "u1", (3,)), ("pad", "u1")])


def points(n=3):
    a = np.zeros(n, POINT)
    a["x"], a["id"], a["color"] = np.arange(n), np.arange(n) * 10, np.arange(3)
    return a


def test_fields_are_strided_tensors_of_the_same_memory():
    a = points()
    made = fields(a)
    assert list(made) == ["x", "y", "id", "color", "pad"]
    assert made["x"].dtype == "float32" and made["x"].strides == (16,) and made["x"].shape == (3,)
    assert made["id"].data_ptr == a.ctypes.data + 8
    assert made["color"].shape == (3, 3) and made["color"].strides == (16, 1)
    np.asarray(made["y"])[1] = 5
    assert a["y"][1] == 5


def test_nested_fields_are_dicts():
    a = np.zeros((2, 2), [("p", [("x", "<f8"), ("q", [("z", "<i8")])]), ("m", "<f8", (2, 2))])
    made = fields(a)
    assert made["p"]["q"]["z"].shape == (2, 2) and made["p"]["q"]["z"].data_ptr == a.ctypes.data + 8
    assert made["m"].shape == (2, 2, 2, 2)


def test_read_only_is_kept():
    a = points()
    a.flags.writeable = False
    assert all(t.readonly for t in fields(a).values())
    assert not any(t.readonly for t in fields(a, copy=True).values())


def test_records_of_other_objects():
    made = fields(np.rec.array([(1, 2.0)], dtype=[("a", "<i8"), ("b", "<f8")]))
    assert np.asarray(made["b"]).tolist() == [2.0]
    assert fields(memoryview(points()))["id"].shape == (3,)


def test_the_array_outlives_its_name():
    made = fields(points())["id"]
    assert np.asarray(made).tolist() == [0, 10, 20]


BAD = {
    "byte order": ([("a", "<i4"), ("b", ">i4")], "b", "opposite byte order"),
    "stride": ([("a", "u1"), ("b", "<i4")], "b", "stride"),
    "nested": ([("o", [("k", "u1"), ("b", "<i4")])], "o.b", "stride"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_field_that_cannot_be_shared_is_named_and_can_be_copied(name):
    dtype, path, why = BAD[name]
    a = np.zeros(3, dtype)
    view = a
    for part in path.split("."):
        view = view[part]
    view[:] = [1, 2, 3]
    with pytest.raises(BufferError, match=rf"^fields\(\): field '{path}': .*{why}.*copy=True"):
        fields(a)
    made = fields(a, copy=True)
    for part in path.split("."):
        made = made[part]
    assert np.asarray(made).tolist() == [1, 2, 3]


def test_strings_are_refused_with_the_way_to_leave_them_out():
    a = np.zeros(2, [("n", "<i4"), ("s", "U3")])
    with pytest.raises(ExchangeError, match=r"field 's': .*fields\(x\[\['name', \.\.\.\]\]\)"):
        fields(a)
    assert list(fields(a[["n"]])) == ["n"]


@pytest.mark.parametrize("x", [np.zeros(3), 3, [1, 2], "abc", np.zeros(2, "V8")])
def test_what_has_no_fields_is_a_type_error(x):
    with pytest.raises(TypeError, match="has no fields"):
        fields(x)


def test_zero_records():
    made = fields(points(0))
    assert made["color"].shape == (0, 3)


def test_nothing_leaks():
    a = points()
    before = dlbridge._core.live_counts()
    for _ in range(10):
        fields(a)
    assert dlbridge._core.live_counts() == before
