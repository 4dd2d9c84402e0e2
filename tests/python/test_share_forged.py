"""share(): what a handle says is checked against the memory; damaged, forged and newer ones are refused."""

import os
import pickle
import random

import pytest
from dlbridge import DataError, share
from dlbridge._sharing import handle as handles
from dlbridge._sharing import segments
from dlbridge._sharing.layouts import Place

np = pytest.importorskip("numpy", reason="NumPy makes the arrays")


def test_a_handle_of_another_version_is_refused():
    make, (version, *rest) = share(np.ones(3)).__reduce_ex__(4)
    with pytest.raises(DataError, match=f"version {version + 1}.*the same release"):
        make(version + 1, *rest)


GOOD = Place(0, 0, "float64", (4, 4), None, False, False, "numpy")
FORGED = {
    "larger than the memory": {"shape": (1000, 1000)},
    "behind the end": {"offset": 4096 * 16},
    "a negative offset": {"offset": -8},
    "an offset of 2**62": {"offset": 1 << 62},
    "a product that overflows": {"shape": (1 << 40, 1 << 40)},
    "a negative extent": {"shape": (-4, 4)},
    "an extent that is no number": {"shape": ("4", 4)},
    "65 dimensions": {"shape": (1,) * 65},
    "no shape": {"shape": None},
    "strides before the memory": {"strides": (-4096 * 8, 8)},
    "strides behind the memory": {"strides": (4096 * 8, 8)},
    "strides of another length": {"strides": (8,)},
    "strides that overflow": {"strides": (1 << 61, 1 << 61)},
    "strides between elements": {"strides": (32, 3)},
    "a segment that is not there": {"segment": 1},
    "a negative segment": {"segment": -1},
    "no dtype": {"dtype": "float65"},
    "a dtype that is no name": {"dtype": 5},
    "a mark that is none": {"readonly": 1},
    "a kind that is none": {"kind": 3},
}


def state_of(handle):
    references, places, *rest = handle.__reduce_ex__(4)[1][1]
    return tuple(segments.Reference(*one) for one in references), tuple(Place(*one) for one in places), *rest


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
def test_a_forged_place_is_refused(changes):
    handle = share(np.ones((4, 4)))
    references, (place,), *rest = state_of(handle)
    assert place == GOOD
    with pytest.raises(DataError, match="forged"):
        handles._unpickle(handles.VERSION, (references, (place._replace(**changes),), *rest), None).open()


def test_random_places_reach_the_memory_or_are_refused():
    rng = random.Random(16)
    handle = share(np.zeros(100, "uint8"))
    references, (place,), *rest = state_of(handle)
    base = handle.open("dlbridge").data_ptr
    opened = 0
    for _ in range(3000):
        rank = rng.randrange(4)
        shape = tuple(rng.choice([0, 1, 2, 5, 100, 101]) for _ in range(rank))
        strides = rng.choice([None, tuple(rng.choice([0, 1, -1, 2, 8, -8, 50, 99, 100]) for _ in range(rank))])
        forged = place._replace(shape=shape, strides=strides, offset=rng.choice([0, 1, 8, 50, 99, 100, 101]),
                                dtype=rng.choice(["uint8", "int16", "float64", "bfloat16"]))  # fmt: skip
        try:
            tensor = handles._unpickle(handles.VERSION, (references, (forged,), *rest), None).open("dlbridge")
        except (DataError, BufferError):
            continue
        if tensor.size:
            opened += 1
            steps = [(n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True)]
            low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + tensor.itemsize
            assert base <= tensor.data_ptr + low and tensor.data_ptr + high <= base + 128
    assert opened > 100


def test_writing_is_not_to_be_had_by_forging():
    handle = share(bytes(100))
    references, (place,), *rest = state_of(handle)
    for forged in (references, (references[0]._replace(writable=True),)):
        with pytest.raises((DataError, PermissionError)):
            handles._unpickle(handles.VERSION, (forged, (place._replace(readonly=False),), *rest), None).open()
    assert not handle.closed


def other_state(state, **changes):
    names = ("references", "places", "container", "copied", "nbytes")
    return tuple({**dict(zip(names, state, strict=True)), **changes}.values())


DAMAGED = {
    "nothing": lambda state: None,
    "too little": lambda state: state[:3],
    "no places": lambda state: other_state(state, places=()),
    "places of other parts": lambda state: other_state(state, places=((1, 2),)),
    "no references": lambda state: other_state(state, references=()),
    "references of other parts": lambda state: other_state(state, references=((1, 2),)),
    "a path for a process": lambda state: other_state(state, references=(("../1", *state[0][0][1:]),)),
    "a container that is none": lambda state: other_state(state, container=3),
    "a container with other arrays": lambda state: other_state(state, container=containers_of_seven()),
}


def containers_of_seven():
    share_of_seven = share([np.zeros(1) for _ in range(7)])
    return share_of_seven._container


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_handle_is_refused(damage):
    handle = share(np.ones(3))
    with pytest.raises(DataError, match="forged"):
        handles._unpickle(handles.VERSION, damage(state_of(handle)), None).open()


def test_a_reference_to_a_file_that_is_not_memory_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # opening it would wait
    fd = os.open(tmp_path / "pipe", os.O_RDWR)
    found = os.fstat(fd)
    forged = segments.Reference(os.getpid(), fd, found.st_dev, found.st_ino, True)
    with pytest.raises(FileNotFoundError):
        segments.open_reference(forged, "open()")
    os.close(fd)


def test_a_file_that_was_cut_is_refused(tmp_path):
    x = np.memmap(tmp_path / "file", "uint8", "w+", shape=(10_000,))
    handle = share(x)
    reference = pickle.dumps(handle)
    os.truncate(tmp_path / "file", 100)
    with pytest.raises(DataError, match="10000 bytes, and the memory has 100"):
        pickle.loads(reference).open()
