"""JAX's sharded arrays on four devices of the host: test_shards.py runs this file in a process of its own."""

import jax
import numpy as np
import pytest
from dlbridge import DataError, assemble, nd, shards
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
SOURCE = np.arange(24, dtype="float32").reshape(4, 6)
SPECS = {
    "both axes": P("a", "b"),
    "rows, each twice": P("a"),
    "columns, each twice": P(None, "b"),
    "rows over all": P(("a", "b")),
    "everywhere": P(),
}


def sharded(spec, source=SOURCE):
    return jax.device_put(source, NamedSharding(MESH, spec))


def pointers(x):
    return [one.data.unsafe_buffer_pointer() for one in x.addressable_shards]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_each_part_is_where_it_lies_and_says_which_it_is(spec):
    x = sharded(spec)
    found = shards(x)
    assert [one.array.data_ptr for one in found] == pointers(x)
    for one in found:
        np.testing.assert_array_equal(np.asarray(one.array), SOURCE[one.index])
        assert one.shape == SOURCE.shape
    assert [one.replica for one in found] == [one.replica_id for one in x.addressable_shards]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_parts_in_any_order_become_the_array_again_without_a_copy(spec):
    x = sharded(spec)
    again = assemble(reversed(shards(x)), like=x)
    assert again.sharding == x.sharding and set(pointers(again)) == set(pointers(x))
    np.testing.assert_array_equal(np.asarray(again), SOURCE)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_one_part_of_any_framework_does_for_all_devices_that_have_it(spec):
    x = sharded(spec)
    parts = [(one.index, nd.from_dlpack(one.array) * 2) for one in shards(x) if one.replica == 0]
    made = assemble(parts, like=jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding))
    assert made.sharding == x.sharding
    np.testing.assert_array_equal(np.asarray(made), SOURCE * 2)


def test_an_array_that_is_not_sharded_is_its_one_part():
    for x in (SOURCE, jax.numpy.asarray(SOURCE), nd.asarray(SOURCE)):
        (one,) = shards(x)
        assert (one.index, one.replica) == ((slice(0, 4), slice(0, 6)), 0)
    made = assemble(shards(SOURCE), like=jax.numpy.asarray(SOURCE))
    np.testing.assert_array_equal(np.asarray(made), SOURCE)


ERRORS = {
    "a hole": (lambda parts: parts[:3], ValueError, r"no part is \[2:4, 3:6\]: there is a hole"),
    "nothing": (lambda parts: [], ValueError, r"no part is \[0:2, 0:3\]"),
    "one twice": (lambda parts: [*parts, parts[0]], ValueError, r"parts 0, 4 are all \[0:2, 0:3\]"),
    "overlap": (
        lambda parts: [*parts[1:], (np.s_[0:3, 0:3], SOURCE[:3, :3])],
        ValueError,
        r"part 3 is \[0:3, 0:3\], and in the sharding of `like` it overlaps \[0:2, 0:3\]",
    ),
    "outside": (lambda parts: [(np.s_[4:9, :], SOURCE[:0])], ValueError, r"this process has no such part"),
    "shape": (
        lambda parts: [*parts[:3], (parts[3].index, SOURCE[2:, 2:])],
        DataError,
        r"part 3 has shape \(2, 4\), and \[2:4, 3:6\] has \(2, 3\)",
    ),
    "dtype": (
        lambda parts: [*parts[:3], (parts[3].index, SOURCE[2:, 3:].astype("float64"))],
        DataError,
        "part 3 is of dtype float64, and `like` of float32. Cast it first",
    ),
    "another array's": (lambda parts: shards(SOURCE[:2]), ValueError, r"shape \(2, 6\), and `like` has \(4, 6\)"),
    "step": (lambda parts: [(np.s_[::2, :], SOURCE[::2])], ValueError, r"index \[::2, :\] has a step"),
    "rank": (lambda parts: [(np.s_[:2,], SOURCE[:2])], ValueError, r"index \[:2\] has 1 axes, and the array 2"),
    "no index": (lambda parts: [(3, SOURCE[:2])], TypeError, "3 is no index"),
}


@pytest.mark.parametrize(("make", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_parts_that_do_not_fit_are_refused(make, kind, message):
    x = sharded(P("a", "b"))
    with pytest.raises(kind, match=message):
        assemble(make(shards(x)), like=x)


def test_a_part_on_another_device_is_refused_with_the_remedy(monkeypatch):
    class Gpu:
        platform, local_hardware_id = "gpu", 1

    x = jax.numpy.asarray(SOURCE)
    monkeypatch.setattr(
        type(x.sharding), "addressable_devices_indices_map", lambda *_: {Gpu(): (slice(None), slice(None))}
    )
    with pytest.raises(
        DataError, match=r"part 0 is on cpu, .* on cuda:1. Copy it there first: asdlpack\(part, device='cuda:1'\)"
    ):
        assemble(shards(x), like=x)


def test_like_must_be_sharded():
    for like in (SOURCE, "jax", jax.ShapeDtypeStruct((4, 6), "float32")):
        with pytest.raises(TypeError, match=f"like is of type {type(like).__qualname__}, which says no sharding"):
            assemble([], like=like)
