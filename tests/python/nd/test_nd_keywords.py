"""Keywords are honoured or refused, never ignored: each of every public function changes something, or raises."""

import functools
import inspect
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from dlbridge import nd
from nd_support import check, rows

# Keywords that other libraries have, and that have nothing to decide here.
WITHOUT_EFFECT = {
    "assume_unique": "it allows to skip a sort, and none depends on it",
    "subok": "there are no subclasses to keep",
    "overwrite_input": "it allows to overwrite, and nothing is",
    "optimize": "the order of the products is chosen anyway",
    "allow_pickle": "the numbers of a .npy file are no pickle; of one: test_nd_files.py",
    "blocking": "it allows to return early, and the copy is always done",
    "max_work": "it bounds the time that the answer may take",
    "kind": "every sort is stable",
    "stable": "every sort is stable",
}
# What a keyword is called with, beside its default.
VALUES = {
    "dtype": ["float32", "complex64", "int32", "bool", "float16"],
    "casting": ["no", "safe", "unsafe"],
    "axis": [0, 1, -1, None, (0, 1)],
    "device": ["cuda:7"],
    "stream": [1],
    "order": ["F", "C"],
    "mode": ["wrap", "clip", "edge", "r", "same", "full"],
    "mmap_mode": ["no"],
    "max_header_size": [8],
    "bitorder": ["little"],
    "trim": ["f", "b", False],
    "w": [[1.0, 2.0, 5.0]],
    "sep": [","],
    "fweights": [[1, 2, 3], [1, 2]],
    "aweights": [[1, 2, 3], [1, 2]],
    "y": [[1.0, 5.0, 2.0], [1.0, 5.0]],
    "size": [(2, 3)],
    "shape": [(5,)],
    "k": [1, -1, 2],
    "rcond": [0.9],
    "UPLO": ["U"],
    "n": [0, 2],
    "axes": [0, 1, (1, 0), (1, 0, 2), [(-2, -1), (-2, -1), (-1, -2)]],
    "axis1": [2],
    "axis2": [2],
    "offset": [1, 8],
    "weights": [[1.0, 2.0, 5.0], [[1.0, 2.0], [3.0, 4.0]]],
    "decimals": [1, -1],
    "norm": ["ortho", "forward"],
    "s": [(5,), (3, 3)],
    "ord": [1, "nuc", 3],
    "method": ["lower", "higher", "cholesky"],
    "range": [(0, 2), ((0, 2), (0, 2))],
    "right": [True, -7.0],
    "side": ["right"],
    "indexing": ["ij"],
    "separator": [";"],
    "prefix": ["x" * 60],
    "suffix": ["x" * 120],
    "base": [2.0, 3],
    "x": [[0, 5, 6]],
    "p": [[0, 0, 1], 1],
    "sorter": [[2, 1, 0], [3, 2, 1, 0]],
    "count": [1],
    "minlength": [9],
    "start": [2],
    "low": [-9],
    "check_valid": ["raise"],
    "requirements": ["F"],
    "ndim": [4],
}
NUMBERS = (0, 1, 2, 3, 5, 9, 1e30)  # the values of other keywords: a bool is its own opposite
REFUSING = {
    "device",
    "stream",
    "casting",
    "dtype",
    "mmap_mode",
    "max_header_size",
    "check_valid",
}  # refused here: without a GPU, or because nothing else is allowed
COMPANIONS = {"casting": {"dtype": "float16"}, "tol": {"check_valid": "raise"}}  # what else is given


@functools.cache
def npy_file():
    path = Path(tempfile.mkdtemp()) / "x.npy"
    np.save(path, np.arange(6.0))
    return path


def arguments():
    """What functions may be called with; those that a function takes are its own."""
    m = nd.asarray([[4.0, 1.0], [1.0, 3.0]], device="cpu")
    v = nd.asarray([1.0, 2.0, 3.0], device="cpu")
    i = nd.asarray([0, 1, 2], device="cpu")
    b = nd.asarray([True, False, True], device="cpu")
    c = nd.asarray([1j], device="cpu")
    s = nd.asarray([nd.nan, nd.nan, nd.inf, -nd.inf], device="cpu")
    r = nd.arange(6, device="cpu").reshape(2, 3)
    d = nd.asarray([1, 1, 2], "int32", device="cpu")
    t = nd.arange(8, device="cpu").reshape(2, 2, 2)
    one = nd.ones((1, 2, 1), device="cpu")
    q = nd.asarray([[1.0, 2.0, 4.0], [3.0, 9.0, 27.0], [5.0, 25.0, 6.0]], device="cpu")
    h = nd.asarray([[0.0, 1.0], [0.0, 0.0]], device="cpu")
    return [
        *((m,), (v,), (i,), (b,), (m, m), (v, v), (i, i), (v, i), ((v, v),), (3,), ((2, 2),), ((2, 2), 1.0), (v, 2)),
        *(
            (m, 1),
            (m, 0, 1),
            (v, v, v),
            (v, q[:, 2], 1),
            (b, v, v),
            (v, 0.5),
            ("ij,jk->ik", m, m),
            (i, (3,)),
            (0.0, 1.0),
            (1, 4),
        ),
        *((b, v), (v, b, v), (v, i, v), ([b], [v]), ("float32",), ("float32", "float64"), ("float32", "real floating")),
        *((lambda x, y: x + y, (2, 2)), ([1, 2], "int32"), (lambda row: row, 0, m), (b"12345678",), (m.T, (0, 1))),
        *((v, i, v, 0), ((i, i), (3, 3)), ("cpu",), (c,), (s,), (s, s), (r,), (r, (3, 2)), ((i, d),), (d, d), (d, i)),
        *((m, m, m), (r.T,), (m, (4,)), ((i, i), (3, 4)), (np.ones((2, 3)),), (r, 0), (r, [5], 1)),
        *((i, [7]), ([7], v), (i, [7], [1]), ([i], [v, v]), (v, [5], 9), ([7, 1, 0], (v, v, v)), (t,), (one,), (1,)),
        *((q,), (q, v), (h,)),
        *((nd.asarray([[3, 1, 2], [0, 2, 1]], device="cpu"),), (q, q[::-1]), (b, q), (3, nd.triu), (["1 2", "3 4"],)),
        *((nd.asarray([[3, 1], [2, 7]], "uint8", device="cpu"),), (nd.asarray([[0, 0, 1], [0, 0, 0]], device="cpu"),)),
        *(
            (nd.asarray([0.0, 4.0, 8.0, 3.0], device="cpu"),),
            (npy_file(),),
            ("1 2 3",),
            ("1,2,3",),
            (nd.zeros((4, 2), device="cpu"), 9),
            (0.5,),
            ([[1.0, 0.0]],),
            (2.0, 0.5),
            (1.0, 2.0, 3.0),
            (5, [0.5, 0.5]),
            ([1.0, 2.0], [[2.0, 1.0], [1.0, 3.0]]),
            ([1.0, 2.0], [[1.0, 3.0], [3.0, 1.0]]),
        ),
    ]


def functions():
    """Name: the function, of the namespaces and of an array."""
    found = {}
    for space, module in (
        ("nd.", nd),
        ("nd.fft.", nd.fft),
        ("nd.linalg.", nd.linalg),
        ("nd.random.", nd.random),
        ("nd.polynomial.polynomial.", nd.polynomial.polynomial),
        ("nd.polynomial.polyutils.", nd.polynomial.polyutils),
    ):
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name)
            if callable(value) and not inspect.isclass(value) and not isinstance(value, nd.dtype) and name[0] != "_":
                found[space + name] = value
    found |= {"ndarray." + n: getattr(nd.ndarray, n) for n in dir(nd.ndarray) if n[0] != "_"}
    return {name: value for name, value in found.items() if callable(value)}


FUNCTIONS = functions()


def snapshot(x):
    if isinstance(x, (nd.ndarray, np.ndarray)):
        return type(x), str(x.dtype), x.shape, x.strides, nd.asnumpy(x).tobytes()
    if isinstance(x, (tuple, list)):
        return type(x), *map(snapshot, x)
    return repr(x)


def outcome(function, args, keywords):
    """All that can be seen of a call: the result, what it shares, what became of the arguments and of the generator."""
    nd.random.seed(5)
    args = [nd.array(a, copy=True, order="K") if isinstance(a, nd.ndarray) else a for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(*args, **keywords)
    shared = [x for x in (*args, *keywords.values()) if isinstance(x, (nd.ndarray, np.ndarray))]
    places = []
    for x in shared:
        try:
            places.append((result is x, nd.may_share_memory(result, x)))
        except (TypeError, ValueError):  # no array
            places.append(False)
    return snapshot(result), snapshot(args), places, nd.random.random(2).tolist(), result


def succeeds(function, args, **keywords):
    try:
        return outcome(function, args, keywords)
    except Exception:
        return None


def known_arguments(name):
    x = nd.asarray([[4.0, 1.0], [1.0, 3.0]], device="cpu")
    cube = nd.arange(12.0, device="cpu").reshape(2, 3, 2)
    firsts = (x, x.ravel(), nd.asarray([[3, 1], [0, 2]], device="cpu"), nd.ones((1, 2, 1), device="cpu"), cube)
    rests = [(), *arguments()]
    return [(first, *rest) for rest in rests for first in firsts] if name.startswith("ndarray.") else rests


def values(keyword, default, result):
    if keyword == "out":
        if isinstance(result, tuple):
            return [tuple(nd.empty(part.shape, part.dtype, device=part.device) for part in result)]
        if not hasattr(result, "shape"):
            return []
        on = {"device": result.device} if isinstance(result, nd.ndarray) else {}
        return [nd.empty(result.shape, str(result.dtype), **on), np.empty(result.shape, str(result.dtype))]
    if keyword in VALUES:
        return VALUES[keyword]
    return [True, False] if keyword == "copy" or isinstance(default, bool) else NUMBERS


def is_written_to(out, result):
    if isinstance(out, tuple):
        return all(target is part for target, part in zip(out, result, strict=True))
    return result is out


def decides(function, args, parameter, companions):
    """Whether a value of the keyword gives another outcome than the default does."""
    usual = succeeds(function, args, **companions)
    for value in values(parameter.name, parameter.default, usual and usual[-1]):
        other = succeeds(function, args, **companions, **{parameter.name: value})
        if other is None or usual is None:
            if other is not None or (usual is not None and parameter.name in REFUSING):
                return True
        elif is_written_to(value, other[-1]) if parameter.name == "out" else other[:-1] != usual[:-1]:
            return True
    return False


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_keyword_changes_something_or_raises(name):
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters  # every public function has one
    keywords = [p for p in parameters.values() if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY]
    for keyword in keywords:
        if keyword.name in WITHOUT_EFFECT:
            continue
        place = list(parameters).index(keyword.name)
        known = [a for a in known_arguments(name) if keyword.kind is keyword.KEYWORD_ONLY or place >= len(a)]
        more = {k: v for k, v in COMPANIONS.get(keyword.name, {}).items() if k in parameters}
        tries = [({}, args) for args in known] + [(more, args) for args in known if more]
        assert any(decides(function, args, keyword, given) for given, args in tries), f"{keyword.name}= is ignored"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_numbers_have_their_dtype_with_parameters_in_arrays(dtype, device):
    generator = nd.random.default_rng(5)
    parameters = nd.asarray([1.0, 2.0, 3.0], device=device)
    for draw in (
        lambda p: generator.uniform(0, p, dtype=dtype),
        lambda p: generator.normal(p, 1.0, dtype=dtype),
        lambda p: generator.exponential(p, dtype=dtype),
    ):
        for given in (parameters, 2.0):
            assert draw(given).dtype == dtype


REFUSED = """
x.any(dtype='float32')
x.all(dtype='int8')
x.any(axis=0, dtype='int64')
x.argmax(dtype=bool)
x.argmin(dtype='float64')
x.mean(dtype='int32')
x.mean(dtype=bool)
x.var(dtype='uint8')
x.std(dtype=int)
nd.mean(x, dtype=int)
nd.std(x, axis=0, dtype='int16')
nd.logical_or.reduce(x, dtype='float32')
"""


@pytest.mark.parametrize("expression", rows(REFUSED))
def test_a_dtype_that_a_reduction_cannot_return_is_refused(expression, device):
    x = nd.asarray([[1, 2], [3, 5]], device=device)
    with pytest.raises(TypeError, match=r"dtype is \w+\. Convert its result: astype\(\)"):
        eval(expression, {"nd": nd, "x": x})


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_of_any_dtype_of_integers_that_holds_them(name, device):
    theirs = np.array([[3, 1, 2], [0, 5, 5]])
    x = nd.asarray(theirs, device=device)
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        for keywords in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
            expected = getattr(np, name)(theirs, **keywords).astype(dtype)
            for got in (getattr(nd, name)(x, dtype=dtype, **keywords), getattr(x, name)(dtype=dtype, **keywords)):
                np.testing.assert_array_equal(nd.asnumpy(got), expected, strict=True)
    out = nd.zeros(2, "int16", device=device)
    assert getattr(nd, name)(x, axis=1, dtype="int8", out=out) is out
    assert out.tolist() == getattr(np, name)(theirs, axis=1).tolist()
    wide = nd.zeros((3, 129), device=device)
    assert getattr(nd, name)(wide[:, 1:], axis=1, dtype="int8").tolist() == [0, 0, 0]
    for refused, dtype in ((wide[:, :], "int8"), (nd.zeros(257, device=device), "uint8")):
        with pytest.raises(OverflowError, match=r"positions go up to \d+, which u?int8 does not hold"):
            getattr(nd, name)(refused, axis=-1, dtype=dtype)


TAKEN = """
xp.logical_and.reduce(x, dtype=bool)
xp.logical_or.reduce(x, axis=None, dtype='bool')
x.mean(dtype='float32')
x.sum(dtype='float64')
x.sum(dtype='int8')
x.prod(axis=0, dtype='float32')
x.var(dtype='float32')
x.std(axis=1, dtype='float64')
xp.maximum.reduce(x, dtype='float32')
x.mean(dtype='complex64')
"""


@pytest.mark.parametrize("expression", rows(TAKEN))
def test_a_dtype_that_is_asked_for_is_that_of_the_result(expression, device):
    values = np.array([[1, 2], [3, 5]])
    want = eval(expression, {"xp": np, "x": values})
    got = eval(expression, {"xp": nd, "x": nd.asarray(values, device=device)})
    check(got, want)


def test_the_host_is_one_device():
    for call in (
        lambda d: nd.ones(2, device=d),
        lambda d: nd.asarray([1.0], device=d),
        lambda d: nd.arange(3, device=d),
    ):
        assert call((1, 0)).device == "cpu"
        with pytest.raises(ValueError, match=r"device \(1, 5\) does not exist: .*device='cpu'"):
            call((1, 5))


# One parser reads the arguments of every function written in C++, from the signature in its docstring.
BAD_CALLS = {
    "unknown name": (lambda x: x.copy(ordr="C"), r"copy\(\) got an unexpected keyword argument 'ordr'; it takes order"),
    "unknown name, several known": (
        lambda x: nd.empty(3, dtyp="int8"),
        r"empty\(\) got an unexpected keyword argument 'dtyp'; it takes shape, dtype, order and device",
    ),
    "name that is not ASCII": (lambda x: x.copy(ördr="C"), "unexpected keyword argument 'ördr'"),
    "given twice": (lambda x: x.copy("C", order="C"), r"copy\(\) got multiple values for argument 'order'"),
    "missing": (lambda x: x.astype(), r"astype\(\) missing required argument 'dtype'"),
    "too many": (lambda x: x.copy("C", "C"), r"copy\(\) takes at most 1 positional arguments, got 2"),
    "by name only": (
        lambda x: nd.empty(3, "int8", "C", "cpu"),
        "takes at most 3 positional arguments, got 4",
    ),
    "ufunc": (lambda x: nd.add(x, x, axis=0), r"add\(\) got an unexpected keyword argument 'axis'"),
    "ufunc, where=": (lambda x: nd.add(x, x, where=x), r"add\(\) got an unexpected keyword argument 'where'"),
    "ufunc, operands": (lambda x: nd.add(x), r"add\(\) takes 2 operands \(and out\), got 1 arguments"),
}


@pytest.mark.parametrize("call, message", BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_arguments_are_refused_by_name(call, message):
    with pytest.raises(TypeError, match=message):
        call(nd.arange(3, device="cpu"))


def test_a_variadic_parameter_is_taken_by_name_too():
    x = nd.arange(6, device="cpu")
    assert x.reshape(shape=(2, 3)).shape == x.reshape(2, 3).shape == x.reshape((2, 3)).shape == (2, 3)
    assert x.reshape(2, 3).transpose(axes=(1, 0)).shape == x.reshape(2, 3).transpose(None).shape == (3, 2)


def test_a_name_may_be_of_a_subclass_of_str():
    class Name(str):
        __slots__ = ()

    x = nd.arange(6, device="cpu").reshape(2, 3)
    assert x.copy(**{Name("order"): "F"}).strides == x.copy("F").strides
