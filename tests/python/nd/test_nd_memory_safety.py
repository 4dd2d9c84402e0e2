"""What may read or write no memory but its own: layouts over given memory, and arguments whose own code runs."""

import gc
import sys
import weakref

import numpy as np
import pytest
from child_process import run_python
from dlbridge import asdlpack, nd
from dlbridge.nd import _native

BEYOND = [  # (shape, strides in bytes) that no five int64 hold
    ((2,), (2**61,)),
    ((2,), (-(2**61),)),
    ((2,), (2**63 - 8,)),
    ((5, 2), (2**62, 2**62)),
    ((2**31, 2**31), (2**31, 8)),
    ((3, 3), (-(2**62), 2**62)),
    ((6,), (8,)),
    ((2,), (-8,)),
    ((2**61,), (8,)),
]
MISFITS = [((2, 2), (8,)), ((2,), (8, 8)), ((), (8,)), ((2,), ()), ((2,), (4,)), ((2,), (9,)), ((3,), (-3,))]


def layouts(shape, strides):
    x = nd.arange(5, device="cpu")
    yield lambda: nd.ndarray(shape, "int64", memptr=x.data, strides=strides)
    yield lambda: _native.as_strided(x, shape, strides)


@pytest.mark.parametrize(("shape", "strides"), BEYOND)
def test_a_layout_that_leaves_the_memory_is_refused_whatever_its_numbers(shape, strides):
    for make in layouts(shape, strides):
        with pytest.raises((ValueError, OverflowError), match="memory has 40 bytes|63 bits"):
            make()


@pytest.mark.parametrize(("shape", "strides"), MISFITS)
def test_strides_are_one_for_each_axis_in_whole_elements(shape, strides):
    for make in layouts(shape, strides):
        with pytest.raises(ValueError, match="strides"):
            make()


def test_offsets_are_bounded_with_the_layout():
    x = nd.arange(5, device="cpu")
    assert _native.as_strided(x, (3,), (8,), 16).tolist() == [2, 3, 4]
    assert _native.as_strided(x[4:], (3,), (-16,), 0).tolist() == [4, 2, 0]
    for offset in (24, -8, 2**62, -(2**62), 2**63 - 1, -(2**63)):
        with pytest.raises((ValueError, OverflowError), match="memory has 40 bytes|63 bits"):
            _native.as_strided(x, (3,), (8,), offset)
    for pointer in (x.data + 24, x.data - 8, x.data + (2**63 - 1), x.data - 2**62):
        with pytest.raises((ValueError, OverflowError), match="memory has 40 bytes|63 bits"):
            nd.ndarray((3,), "int64", memptr=pointer)


def test_layouts_inside_the_memory_are_taken():
    x = nd.arange(5, device="cpu")
    assert nd.ndarray((2, 2), "int64", memptr=x.data, strides=(8, 16)).tolist() == [[0, 2], [1, 3]]
    assert nd.ndarray((2, 3), "int64", memptr=x.data, strides=(0, 8)).tolist() == [[0, 1, 2]] * 2
    assert nd.ndarray((3,), "int64", memptr=x.data + 32, strides=(-16,)).tolist() == [4, 2, 0]
    assert nd.ndarray((2, 2), "int64", memptr=x.data, order="F").tolist() == [[0, 2], [1, 3]]
    assert nd.ndarray((1, 3), "int64", memptr=x.data, strides=(7, 8)).tolist() == [[0, 1, 2]]  # the 7 is never gone
    assert nd.ndarray((0, 2**40), "int64", memptr=x.data, strides=(2**61, 2**62)).shape == (0, 2**40)


def test_the_memory_of_a_reversed_array_begins_at_its_last_element():
    block = np.arange(8)
    x = nd.asarray(block[2:6][::-1], device="cpu")
    assert (x.data.ptr, x.data.mem.ptr, x.data.mem.size) == (block[5:].ctypes.data, block[2:].ctypes.data, 32)
    assert _native.as_strided(x, (4,), (8,), -24).tolist() == [2, 3, 4, 5]
    for offset in (0, -32):
        with pytest.raises(ValueError, match="memory has 32 bytes"):
            _native.as_strided(x, (4,), (8,), offset)


def test_an_empty_array_takes_no_shape_whose_strides_overflow():
    assert nd.zeros(0).reshape(0, 2**40).shape == (0, 2**40)
    for make in (lambda: nd.zeros(0).reshape(0, 2**40, 2**40), lambda: nd.empty((0, 2**40, 2**40))):
        with pytest.raises(OverflowError):
            make()


def test_a_chain_of_any_length_is_taken_down():
    code = (
        "import numpy as np; from dlbridge import nd\n"
        "for last in (lambda x: x, lambda x: nd.asarray(x, device='cpu')[1:]):\n"
        "    x = np.arange(3.0)\n"
        "    for _ in range(200_000): x = nd.asarray(np.asarray(x), device='cpu')\n"
        "    x = last(x)\n"
        "    print(x.tolist()); del x"
    )
    assert run_python(code).stdout == "[0.0, 1.0, 2.0]\n[1.0, 2.0]\n"


class Owner:
    def __init__(self):
        self.block = np.arange(3.0)

    @property
    def __array_interface__(self):
        return self.block.__array_interface__


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[1:], lambda x: x.T], ids=["itself", "slice", "transposed"])
def test_a_cycle_through_an_array_and_the_owner_of_its_memory_is_collected(view):
    owner = Owner()
    owner.array = view(nd.asarray(owner))
    alive, want = weakref.ref(owner), owner.array.tolist()
    gc.collect()
    assert alive() is owner and owner.array.tolist() == want
    del owner
    gc.collect()
    assert alive() is None


def test_an_array_in_a_dead_cycle_is_empty_for_those_who_still_look():
    class Looks(Owner):
        def __del__(self):
            seen.append((self.array.size, self.array.data.ptr, self.array[:0].shape, repr(self.array.flags)))

    seen, owner = [], Looks()
    owner.array = nd.asarray(owner)
    del owner
    gc.collect()
    assert len(seen) == 1


def test_memory_that_other_arrays_share_outlives_a_cycle():
    owner = Owner()
    owner.array = nd.asarray(owner)
    kept = owner.array[1:]
    del owner
    gc.collect()
    assert kept.tolist() == [1, 2]


class Emptying:
    """A number whose code empties the list that holds it."""

    def __init__(self, value, holder):
        self.value, self.holder = value, holder

    def __index__(self):
        self.holder.clear()
        gc.collect()
        return self.value

    def item(self):
        return self.__index__()

    shape = ()

    @property
    def dtype(self):
        return np.dtype("int64")


def emptying(*values):
    holder = []
    holder.extend(Emptying(value, holder) for value in values)
    return holder


def test_code_of_the_elements_may_empty_the_list_that_is_read():
    x = nd.arange(6, device="cpu").reshape(1, 2, 3)
    assert nd.empty(emptying(2, 3, 4)).shape == (2, 3, 4)
    assert nd.zeros(6).reshape(emptying(3, 2)).shape == (3, 2)
    assert nd.broadcast_to(nd.zeros(3), emptying(2, 3)).shape == (2, 3)
    assert x.transpose(emptying(2, 0, 1)).shape == (3, 1, 2)
    assert x.sum(axis=emptying(0, 2)).shape == (2,)
    assert x.squeeze(emptying(0)).shape == (2, 3)
    assert nd.array(emptying(5, 6, 7)).tolist() == [5, 6, 7]
    assert nd.array([emptying(5, 6), emptying(7, 8)]).tolist() == [[5, 6], [7, 8]]
    assert x[0, emptying(1, 0), 1].tolist() == [4, 1]
    pointer = nd.arange(5, device="cpu").data
    assert nd.ndarray(emptying(2, 2), "int64", pointer, strides=emptying(8, 16)).tolist() == [[0, 2], [1, 3]]


class Interrupting:
    """Every number and attribute that is asked of it is an interrupt."""

    def __index__(self):
        raise KeyboardInterrupt

    def __getattr__(self, name):
        if name in ("ptr", "device_id", "__array_ufunc__"):
            raise KeyboardInterrupt
        raise AttributeError(name)


MEMORY = nd.arange(5, device="cpu").data
ASK = {
    "empty": lambda: nd.empty([2, Interrupting()]),
    "sum axis": lambda: nd.zeros((2, 2)).sum(axis=(0, Interrupting())),
    "pointer +": lambda: MEMORY + Interrupting(),
    "pointer -": lambda: MEMORY - Interrupting(),
    "MemoryPointer offset": lambda: nd.cuda.MemoryPointer(MEMORY.mem, Interrupting()),
    "MemoryPointer of another's": lambda: nd.cuda.MemoryPointer(Interrupting(), 0),
    "copy_to_host size": lambda: MEMORY.copy_to_host(0, Interrupting()),
    "memset value": lambda: MEMORY.memset(Interrupting(), 1),
    "memset size": lambda: MEMORY.memset(0, Interrupting()),
    "alloc": lambda: nd.cuda.alloc(Interrupting()),
    "alloc_pinned_memory": lambda: nd.cuda.alloc_pinned_memory(Interrupting()),
    "malloc_async": lambda: nd.cuda.malloc_async(Interrupting()),
    "malloc_managed": lambda: nd.cuda.malloc_managed(Interrupting()),
    "Memory": lambda: nd.cuda.Memory(Interrupting()),
    "ManagedMemory": lambda: nd.cuda.ManagedMemory(Interrupting()),
    "UnownedMemory size": lambda: nd.cuda.UnownedMemory(0, Interrupting(), None),
    "UnownedMemory device": lambda: nd.cuda.UnownedMemory(0, 0, None, Interrupting()),
    "MemoryPool.malloc": lambda: nd.cuda.MemoryPool().malloc(Interrupting()),
    "Stream priority": lambda: nd.cuda.Stream(priority=Interrupting()),
    "ExternalStream": lambda: nd.cuda.ExternalStream(Interrupting()),
    "ExternalStream device": lambda: nd.cuda.ExternalStream(0, Interrupting()),
    "get_current_stream": lambda: nd.cuda.get_current_stream(Interrupting()),
    "memptr": lambda: nd.ndarray((2,), "f8", memptr=Interrupting()),
    "__array_ufunc__": lambda: nd.add(Interrupting(), nd.zeros(2)),
}


@pytest.mark.parametrize("call", ASK.values(), ids=ASK)
def test_what_the_code_of_an_argument_raises_passes_through(call):
    with pytest.raises(KeyboardInterrupt):
        call()


def test_lists_that_hold_themselves_or_go_deeper_than_arrays_are_refused():
    circle = []
    circle.append(circle)
    deep = 1
    for _ in range(10 * sys.getrecursionlimit()):
        deep = [deep]
    for nested in (circle, deep):
        for function in (nd.array, nd.asarray):
            with pytest.raises(ValueError, match="nested"):
                function(nested)


@pytest.mark.parametrize("number", [-1, -5, 64, 100, 2**31 - 1, -(2**31)])
def test_device_numbers_are_bounded_on_both_sides(number):
    x = nd.zeros(3, device="cpu")
    with pytest.raises(ValueError if number < 0 else (ValueError, RuntimeError)):
        asdlpack(np.zeros(3), device=(2, number))
    for kind in (2, 13):
        for call in (
            lambda device: nd.empty(3, device=device),
            lambda device: nd.zeros(3, device=device),
            lambda device: nd.asarray([1], device=device),
            lambda device: nd.ndarray(3, device=device),
            lambda device: nd.from_dlpack(np.zeros(3), device=device),
            x.to_device,
        ):
            with pytest.raises(ValueError, match="counted from 0" if number < 0 else "cannot be used"):
                call((kind, number))


def test_host_memory_is_called_page_locked_only_where_it_is():
    assert nd.empty(3, device=(3, 0)).__dlpack_device__() == (1, 0)
