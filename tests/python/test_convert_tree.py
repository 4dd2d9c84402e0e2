"""convert() of containers: what is taken apart, what stays, what is shared, and how an array that fails is named."""

import array
import collections
import dataclasses
import gc
import sys
import types
from typing import NamedTuple

import pytest
from dlbridge import CopyError, ExchangeError, ProtocolError, Tensor, convert

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def is_made_of(result, source=X):
    return isinstance(result, Tensor) and result.data_ptr == source.ctypes.data


class Point(NamedTuple):
    x: object
    name: str = "p"


@dataclasses.dataclass
class Plain:
    x: object
    name: str = "d"


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: object
    name: str = "d"


@dataclasses.dataclass
class Late:
    """What __init__ cannot be given: an init=False field, one that is not there, an InitVar."""

    x: object = dataclasses.field(init=False)
    missing: object = dataclasses.field(init=False)
    name: dataclasses.InitVar[str] = "d"

    def __post_init__(self, name):
        assert name == "d", "must run once only"
        self.x = X


class Ordered(collections.OrderedDict):
    pass


class Rows(list):
    pass


class Pair(tuple):
    __slots__ = ()


def named(**values):
    return collections.UserDict(values)


CONTAINERS = {
    "dict": ({"a": 1, "x": X}, lambda c: c["x"]),
    "list": ([1, X], lambda c: c[1]),
    "tuple": ((1, X), lambda c: c[1]),
    "namedtuple": (Point(X), lambda c: c.x),
    "dataclass": (Plain(X), lambda c: c.x),
    "frozen dataclass with slots": (Frozen(X), lambda c: c.x),
    "dataclass with init=False": (Late(), lambda c: c.x),
    "OrderedDict": (collections.OrderedDict(z=X, a=1), lambda c: c["z"]),
    "subclass of OrderedDict": (Ordered(z=X, a=1), lambda c: c["z"]),
    "defaultdict": (collections.defaultdict(list, x=X), lambda c: c["x"]),
    "UserDict": (named(x=X), lambda c: c["x"]),
    "subclass of list": (Rows([X, 2]), lambda c: c[0]),
    "subclass of tuple": (Pair([X, 2]), lambda c: c[0]),
    "nested": ({"a": [(Point([X]),)]}, lambda c: c["a"][0][0].x[0]),
    "keys of any kind": ({1: 2, (3, "a"): X, None: 4}, lambda c: c[3, "a"]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_comes_back_as_its_type_with_the_arrays_converted(name):
    source, get = CONTAINERS[name]
    result = convert(source, "dlbridge")
    assert type(result) is type(source) and result is not source
    assert is_made_of(get(result))
    assert get(source) is X
    if isinstance(source, dict):
        assert list(result) == list(source)


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_leak_nothing(name):
    source, _ = CONTAINERS[name]
    convert(source, "dlbridge")
    gc.collect()
    references = sys.getrefcount(X), sys.getrefcount(source)
    for _ in range(20):
        convert(source, "dlbridge")
    gc.collect()
    assert (sys.getrefcount(X), sys.getrefcount(source)) == references


def test_a_defaultdict_keeps_its_factory():
    assert convert(collections.defaultdict(list, x=X), "dlbridge")["new"] == []


def test_a_dataclass_keeps_what_is_no_field():
    source = Plain(X)
    source.extra = "kept"
    assert convert(source, "dlbridge").extra == "kept"


VALUES = {
    "string": "abc",
    "bytes": b"abc",
    "bytearray": bytearray(b"abc"),
    "memoryview": memoryview(b"abc"),
    "array.array": array.array("d", [1.0]),
    "int": 3,
    "float": 2.5,
    "None": None,
    "set": {1, 2},
    "range": range(3),
    "object": object(),
    "a class": Plain,
    "a function": convert,
    "a module": sys,
    "NumPy scalar": np.float32(2),
    "NumPy dtype": np.dtype("f4"),
    "enum-like": types.SimpleNamespace(x=1),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_what_is_no_array_stays_the_same_object(value):
    result = convert({"v": value, "l": [value], "t": (value,)}, "numpy")
    assert result["v"] is value and result["l"][0] is value and result["t"][0] is value


def test_numbers_in_a_list_stay_numbers():
    assert convert([[1, 2], [3.0, 4]], "numpy") == [[1, 2], [3.0, 4]]


@pytest.mark.parametrize("value", [b"abc", bytearray(b"abc"), memoryview(b"abc"), array.array("B", b"abc")])
def test_bytes_alone_are_an_array_all_the_same(value):
    assert convert(value, "numpy").tolist() == [97, 98, 99]


@pytest.mark.parametrize("source", [{}, [], {"a": [1]}, [{}]])
def test_dicts_and_lists_are_new_ones(source):
    result = convert(source, "numpy")
    assert result == source and result is not source


@pytest.mark.parametrize("source", [(), (1, "a"), Point(1), ("a", (2,))])
def test_a_tuple_without_arrays_stays_itself(source):
    assert convert([source], "numpy")[0] is source


def test_an_array_that_is_there_twice_is_converted_once():
    result = convert({"a": X, "b": [X, (X,)]}, "numpy", copy=True)
    assert result["a"] is result["b"][0] is result["b"][1][0]


def test_a_container_that_is_there_twice_is_converted_once():
    shared = [X]
    result = convert([shared, {"again": shared}], "numpy")
    assert result[0] is result[1]["again"]


def test_shared_containers_do_not_multiply():
    tree = [X]
    for _ in range(60):
        tree = [tree, tree]
    convert(tree, "dlbridge")


def test_many_arrays():
    arrays = [np.full(1, i) for i in range(5000)]
    result = convert({"all": arrays + arrays}, "numpy", copy=True)["all"]
    assert [int(a[0]) for a in result] == [*range(5000), *range(5000)]
    assert result[17] is result[5017]


# --- errors ----------------------------------------------------------------------------------------------------------

BAD = np.array([1], ">i4")
PATHS = {
    "list in dict": ({"x": [1, X, BAD]}, 'tree["x"][2]'),
    "namedtuple": (Point(BAD), "tree.x"),
    "dataclass": ([Plain(BAD)], "tree[0].x"),
    "field of a dict": ({"a b": Plain({3: (BAD,)})}, 'tree["a b"].x[3][0]'),
    "OrderedDict": (collections.OrderedDict(z=BAD), 'tree["z"]'),
    "key with a quote": ({'"': BAD}, """tree['"']"""),
    "key that is a tuple": ({(1, 2): BAD}, "tree[(1, 2)]"),
}


@pytest.mark.parametrize("name", PATHS)
def test_an_array_that_fails_is_named_by_its_path(name):
    source, path = PATHS[name]
    with pytest.raises(ExchangeError) as caught:
        convert(source, "numpy")
    assert str(caught.value).startswith(f"convert(): {path}: NumPy dtype '>i4'")


def test_an_array_alone_has_no_path():
    with pytest.raises(ExchangeError, match=r"^convert\(\): NumPy dtype"):
        convert(BAD, "numpy")


def test_a_string_alone_is_refused_as_before():
    with pytest.raises(ProtocolError, match=r"^convert\(\): str has none of"):
        convert("abc", "numpy")


def test_copy_false_says_where_a_copy_would_be():
    torch = pytest.importorskip("torch")
    with pytest.raises(CopyError, match=r'tree\["b"\]: torch needs a copy'):
        convert({"a": X, "b": X[::-1]}, torch, copy=False)


class Raises:
    def __init__(self, error):
        self.error = error

    def __dlpack_device__(self):
        raise self.error

    def __dlpack__(self, **_):
        raise self.error


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before 3.11 exceptions take no notes")
def test_errors_without_a_message_get_a_note():
    with pytest.raises(UnicodeDecodeError) as caught:
        convert([Raises(UnicodeDecodeError("utf8", b"a", 0, 1, "no"))], "numpy")
    assert "tree[0]" in caught.value.__notes__[-1]


@pytest.mark.parametrize("error", [KeyboardInterrupt("now"), MemoryError("none"), SystemExit(3)])
def test_errors_that_are_nobodys_fault_pass_as_they_are(error):
    with pytest.raises(type(error)) as caught:
        convert({"x": [Raises(error)]}, "numpy")
    assert caught.value is error and "tree" not in str(error)


def cycle(kind):
    if kind is dict:
        made = {}
        made["me"] = [made]
    elif kind is list:
        made = []
        made.append(({"me": made},))
    else:
        made = Plain(None)
        made.x = [made]
    return made


@pytest.mark.parametrize("kind", [dict, list, Plain])
def test_a_cycle_is_an_error(kind):
    source = cycle(kind)
    with pytest.raises(ValueError, match=r"convert\(\): tree.*: a container holds itself"):
        convert(source, "numpy")


def test_depth_is_limited():
    def nested(depth):
        tree = X
        for _ in range(depth):
            tree = (tree,)
        return tree

    convert(nested(200), "numpy")
    with pytest.raises(RecursionError, match="nested more than 256 deep"):
        convert(nested(100_000), "numpy")


# --- hostile objects -------------------------------------------------------------------------------------------------


class Acting:
    """An array of which reading runs code."""

    def __init__(self, act):
        self.act = act

    def __dlpack_device__(self):
        self.act()
        return (1, 0)

    def __dlpack__(self, **_):
        return X.copy().__dlpack__()


MUTABLE = {
    "dict": lambda *parts: dict(enumerate(parts)),
    "list": lambda *parts: list(parts),
    "OrderedDict": lambda *parts: collections.OrderedDict(enumerate(parts)),
    "UserDict": lambda *parts: collections.UserDict(enumerate(parts)),
    "subclass of list": lambda *parts: Rows(parts),
}


@pytest.mark.parametrize("kind", MUTABLE)
def test_a_container_may_be_cleared_while_it_is_walked(kind):
    container = MUTABLE[kind](Acting(lambda: container.clear()), np.ones(3), [np.ones(4)])
    result = convert([container], "numpy")[0]
    assert len(result) == 3 and len(container) == 0


@pytest.mark.parametrize("kind", ["dict", "OrderedDict"])
def test_a_dict_may_grow_while_it_is_walked(kind):
    container = MUTABLE[kind](Acting(lambda: container.update({str(i): np.ones(2) for i in range(99)})), 1)
    assert len(convert(container, "numpy")) == 2


def test_arrays_that_die_while_others_are_read_are_not_confused():
    """A new array may get the address of one that was there before."""
    container = []

    def replace():
        container[:] = [np.full(3, float(i)) for i in range(50)]

    container += [Acting(replace), *(np.full(3, -1.0) for _ in range(20))]
    result = convert(container, "numpy")
    assert all((a == -1).all() for a in result[1:])


class BadKey:
    def __init__(self):
        self.bad = False

    def __hash__(self):
        if self.bad:
            raise RuntimeError("no hash")
        return 1

    def __repr__(self):
        raise RuntimeError("no repr")


def test_a_key_without_a_repr_is_dots():
    with pytest.raises(ExchangeError, match=r"tree\[\.\.\.\]: NumPy dtype"):
        convert({BadKey(): BAD}, "numpy")


def test_a_key_whose_hash_fails_passes_its_error_on():
    key = BadKey()
    tree = {key: X}
    key.bad = True
    with pytest.raises(RuntimeError, match="no hash"):
        convert(tree, "numpy")


class NoMake(Point):
    @classmethod
    def _make(cls, items):
        raise RuntimeError("no _make")


class NoCopy(dict):
    def __copy__(self):
        return self


class OtherCopy(list):
    def __copy__(self):
        return list(self)


class NoItems(dict):
    def items(self):
        raise RuntimeError("no items")


class NoSet(dict):
    def __setitem__(self, key, value):
        raise RuntimeError("no __setitem__")


class OddItems(dict):
    def items(self):
        return [(1, 2, 3)]


class NoNew(tuple):
    __slots__ = ()

    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))


@dataclasses.dataclass
class NoGet:
    x: object

    def __getattribute__(self, name):
        if name == "x":
            raise RuntimeError("no x")
        return object.__getattribute__(self, name)


def odd_fields():
    class Odd(tuple):
        __slots__ = ()
        _fields = 3
        _make = classmethod(lambda cls, items: list(items))

    return Odd((X,))


HOSTILE = {
    "_make that fails": (NoMake(X), RuntimeError, "no _make"),
    "copy that is itself": (NoCopy(x=X), TypeError, r"tree\[0\]: copy.copy\(\) of a NoCopy gives NoCopy, itself"),
    "copy of another type": (OtherCopy([X]), TypeError, "gives list, another type"),
    "items() that fails": (NoItems(x=X), RuntimeError, r"tree\[0\]: no items"),
    "items() of triples": (OddItems(x=X), ValueError, "too many values"),
    "__setitem__ that fails": (NoSet(x=X), RuntimeError, "no __setitem__"),
    "tuple with arguments of its own": (NoNew(X, 1), TypeError, "argument"),
    "field that fails": (NoGet(X), RuntimeError, "no x"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_container_that_cannot_be_rebuilt_says_so_with_its_path(name):
    container, error, message = HOSTILE[name]
    with pytest.raises(error, match=message) as caught:
        convert([container], "numpy")
    assert "tree[0]" in str(caught.value)


def test_a_tuple_with_odd_fields_does_no_harm():
    assert convert([odd_fields()], "dlbridge")[0][0].data_ptr == X.ctypes.data


def test_a_class_that_changes_is_looked_at_anew():
    class Thing:
        pass

    thing = Thing()
    assert convert([thing], "numpy")[0] is thing
    Thing.__array_interface__ = property(lambda self: X.__array_interface__)
    assert convert([thing], "numpy")[0].tolist() == X.tolist()
