"""Who frees what: deleters run exactly once on every path, owners live as long as their last export."""

import array
import ctypes
import gc
import mmap
import sys
import textwrap
import weakref

import dlbridge
import pytest
from child_process import run_python
from dlbridge import _core, asdlpack
from lifecycle_support import Consumed, Exporter, nothing_lost

BOTH = pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])


@pytest.fixture(autouse=True)
def _leak_check():
    with nothing_lost():
        yield


# ---- imports: the deleter runs exactly once


@BOTH
def test_deleter_runs_once_when_the_tensor_dies(legacy):
    exporter = Exporter(legacy=legacy)
    tensor = asdlpack(exporter)
    assert exporter.deleted == []
    assert memoryview(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]
    del tensor
    exporter.assert_all_deleted_once()


@BOTH
def test_deleter_runs_once_for_a_bare_capsule(legacy):
    exporter = Exporter(legacy=legacy)
    capsule = exporter.capsule()
    tensor = asdlpack(capsule)
    assert tensor.owner is None
    del capsule  # under its used name: the destructor must leave the struct alone
    assert exporter.deleted == []
    assert memoryview(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]
    del tensor
    exporter.assert_all_deleted_once()


@BOTH
def test_a_capsule_that_nobody_consumes_is_deleted_once(legacy):
    exporter = Exporter(legacy=legacy)
    capsule = exporter.capsule()
    dlbridge.inspect(capsule)
    assert exporter.deleted == []
    del capsule
    exporter.assert_all_deleted_once()


@pytest.mark.parametrize("max_version", [(1, 0), None], ids=["versioned", "legacy"])
def test_an_export_that_nobody_consumes_lets_its_owner_go(max_version):
    data = bytearray(8)
    capsule = asdlpack(data).__dlpack__(max_version=max_version)
    with pytest.raises(BufferError):
        data.append(0)
    del capsule
    data.append(0)


@BOTH
def test_a_capsule_consumed_twice_is_an_error_and_the_first_keeps_the_data(legacy):
    exporter = Exporter(legacy=legacy)
    capsule = exporter.capsule()
    tensor = asdlpack(capsule)
    with pytest.raises(ValueError, match="already consumed"):
        asdlpack(capsule)
    assert exporter.deleted == []
    assert memoryview(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]
    del tensor, capsule
    exporter.assert_all_deleted_once()


@BOTH
def test_a_null_deleter_is_accepted(legacy):
    exporter = Exporter(legacy=legacy, deleter=False)
    assert memoryview(asdlpack(exporter)).tolist() == [[0, 1, 2], [3, 4, 5]]
    capsule = exporter.capsule()
    del capsule
    assert exporter.deleted == []


STAGES = {
    "version": ({"major": 2}, BufferError),
    "dtype": ({"code": 99}, BufferError),
    "device": ({"device_type": 99}, BufferError),
    "ndim": ({"ndim": -1}, ValueError),
    "null shape": ({"struct_shape": None}, ValueError),
    "extent": ({"struct_shape": (2, -3)}, ValueError),
    "size": ({"struct_shape": (1 << 62, 1 << 62)}, OverflowError),
    "reach": ({"strides": (1 << 61, 1)}, OverflowError),
    "null data": ({"data": None}, ValueError),
    "offset": ({"byte_offset": (1 << 64) - 1}, OverflowError),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("form", ["object", "capsule"])
def test_deleter_runs_once_when_the_import_fails(stage, form):
    wrong, error = STAGES[stage]
    for legacy in (False, True):
        if legacy and "major" in wrong:
            continue
        exporter = Exporter(legacy=legacy, **wrong)
        given = exporter if form == "object" else exporter.capsule()
        with pytest.raises(error):
            asdlpack(given)
        del given
        assert exporter.made == 1
        exporter.assert_all_deleted_once()


def test_deleter_runs_once_when_the_tensor_is_unusable_after_the_import():
    exporter = Exporter(byte_offset=1)  # decoded and owned by then: refused for its alignment
    with pytest.raises(BufferError, match="align"):
        asdlpack(exporter)
    exporter.assert_all_deleted_once()
    copy = asdlpack(exporter, copy=True)
    exporter.assert_all_deleted_once()  # the copy does not need the original
    assert copy.shape == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"copy": False, "device": "cuda:0"}, BufferError),
        ({"stream": 1}, BufferError),
        ({"device": "no such device"}, ValueError),
        ({"no_such_argument": 1}, TypeError),
    ],
    ids=["copy=False", "stream on the host", "bad device", "bad keyword"],
)
def test_deleter_runs_once_when_an_option_refuses(arguments, error):
    exporter = Exporter()
    with pytest.raises(error):
        asdlpack(exporter, **arguments)
    exporter.assert_all_deleted_once()


def test_a_capsule_with_another_name_is_not_touched():
    exporter = Exporter()
    capsule = exporter.capsule()
    held = Consumed(capsule)  # renamed: somebody else owns it now
    with pytest.raises(ValueError, match="already consumed"):
        asdlpack(capsule)
    assert exporter.deleted == []
    held.delete()
    exporter.assert_all_deleted_once()


# ---- exports: either side may go first


@pytest.mark.parametrize("max_version", [(1, 0), None], ids=["versioned", "legacy"])
def test_the_exporter_may_die_first(max_version):
    data = array.array("i", [1, 2, 3])
    source = weakref.ref(data)
    tensor = asdlpack(data)
    consumer = asdlpack(tensor.__dlpack__(max_version=max_version))
    del data, tensor
    gc.collect()
    assert source() is not None
    assert memoryview(consumer).tolist() == [1, 2, 3]
    del consumer
    assert source() is None


def test_the_consumer_may_die_first():
    data = array.array("i", [1, 2, 3])
    tensor = asdlpack(data)
    exports = [asdlpack(tensor.__dlpack__(max_version=(1, 0))) for _ in range(5)]
    del exports
    assert memoryview(tensor).tolist() == [1, 2, 3]
    before = sys.getrefcount(tensor)
    for _ in range(100):
        asdlpack(tensor.__dlpack__())
    assert sys.getrefcount(tensor) == before


def test_every_export_holds_the_owner_by_itself():
    data = bytearray(b"abcd")
    tensor = asdlpack(data)
    views = {
        "dlpack": Consumed(tensor.__dlpack__(max_version=(1, 0))),
        "legacy": Consumed(tensor.__dlpack__()),
        "buffer": memoryview(tensor),
        "struct": tensor.__array_struct__,
    }
    del tensor
    while views:
        with pytest.raises(BufferError):
            data.append(0)
        _, view = views.popitem()
        if isinstance(view, Consumed):
            view.delete()
        elif isinstance(view, memoryview):
            view.release()
        del view
    data.append(0)


def test_a_copied_export_is_the_consumers_alone():
    exporter = Exporter()
    tensor = asdlpack(exporter)
    held = Consumed(tensor.__dlpack__(max_version=(1, 0), copy=True))
    del tensor
    exporter.assert_all_deleted_once()
    assert _core.live_counts()["copies"] == 1
    held.delete()
    assert _core.live_counts()["copies"] == 0


def test_a_long_chain_of_exchanges_is_taken_down_without_recursion():
    chain = asdlpack(bytearray(8))
    for _ in range(100_000):
        chain = asdlpack(memoryview(chain))
    del chain


# ---- the producer's memory stays where it is


HOLDS = {
    "tensor": lambda tensor: tensor,
    "dlpack": lambda tensor: asdlpack(tensor.__dlpack__(max_version=(1, 0))),
    "legacy": lambda tensor: tensor.__dlpack__(),
    "buffer": memoryview,
    "array_struct": lambda tensor: tensor.__array_struct__,
}


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("kind", ["bytearray", "array", "mmap"])
def test_a_producer_cannot_be_resized_while_it_is_viewed(kind, hold, tmp_path):
    if kind == "bytearray":
        data = bytearray(16)
        resize = lambda: data.extend(b"more")  # noqa: E731
    elif kind == "array":
        data = array.array("i", range(4))
        resize = lambda: data.append(5)  # noqa: E731
    else:
        data = mmap.mmap(-1, 4096)
        resize = data.close
    held = HOLDS[hold](asdlpack(data))
    with pytest.raises(BufferError):
        resize()
    del held
    resize()


# ---- cycles


class CycleByInterface:
    def __init__(self, data):
        self.memory = bytearray(data)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.__array_interface__ = {"shape": (len(data),), "typestr": "|u1", "version": 3, "data": (address, False)}


class CycleByBuffer(bytearray):
    pass


class CycleByDLPack:
    def __init__(self, _):
        pass

    def __dlpack__(self, **arguments):
        return self.exporter.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("kind", [CycleByInterface, CycleByBuffer, CycleByDLPack])
def test_a_cycle_between_owner_and_tensor_is_collected(kind):
    exporter = Exporter((4,))
    owner = kind(b"data")
    owner.exporter = exporter
    owner.tensor = asdlpack(owner)
    assert owner.tensor.owner is owner
    dead = weakref.ref(owner)
    del owner
    gc.collect()
    assert dead() is None
    exporter.assert_all_deleted_once()
    assert exporter.made == (kind is CycleByDLPack)


def test_a_cycle_with_a_live_export_is_not_collected():
    owner = CycleByBuffer(b"data")
    owner.tensor = asdlpack(owner)
    dead = weakref.ref(owner)
    held = Consumed(owner.tensor.__dlpack__(max_version=(1, 0)))
    del owner
    gc.collect()
    assert dead() is not None
    assert ctypes.string_at(held.struct.dl_tensor.data, 4) == b"data"
    held.delete()
    gc.collect()
    assert dead() is None


def test_a_finaliser_in_a_dead_cycle_sees_a_sane_tensor():
    seen = []

    class Owner(bytearray):
        def __del__(self):
            seen.append((self.tensor.shape, self.tensor.nbytes))

    owner = Owner(b"data")
    owner.tensor = asdlpack(owner)
    del owner
    gc.collect()
    assert seen in ([((4,), 4)], [((0,), 0)])


def test_weak_references_do_not_keep_a_tensor():
    tensor = asdlpack(bytearray(4))
    called = []
    reference = weakref.ref(tensor, called.append)
    assert reference() is tensor
    del tensor
    assert reference() is None
    assert called == [reference]
    assert asdlpack(bytearray(4)).shape == (4,)  # the object is used again, without the old weak references
    assert reference() is None


@pytest.mark.parametrize(
    "make", ["asdlpack(m)", "nd.from_dlpack(asdlpack(m))", "asdlpack(asdlpack(m))", "nd.asarray(m, device='cpu')"]
)
def test_a_dead_cycle_may_hold_a_memoryview_that_still_lends(make):
    code = f"""
        import gc, mmap
        from dlbridge import _core, asdlpack, nd
        gc.disable()
        for order in range(2):
            for _ in range(20):
                m, cycle = memoryview(mmap.mmap(-1, 8192)), {{}}
                parts = {{"view": m, "array": {make}}}
                cycle.update(parts if order else dict(reversed(parts.items())), cycle=cycle)
                del m, parts, cycle
                gc.collect()
        print(_core.live_counts()["tensors"])
    """
    assert run_python(textwrap.dedent(code)).stdout == "0\n"
