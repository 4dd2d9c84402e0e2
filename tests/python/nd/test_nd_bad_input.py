"""What must be refused: each row an expression, the exception and a part of its message."""

import re

import numpy as np
import pytest
from dlbridge import nd
from nd_support import inputs, on_device

REFUSED = [
    # axes
    ("xp.sum(a, axis=2)", nd.AxisError, "axis 2"),
    ("a.max(axis=-3)", nd.AxisError, "axis -3"),
    ("xp.sum(a, axis=(0, 0))", ValueError, "twice"),
    ("a.sum(axis='x')", TypeError, ""),
    ("xp.concatenate([a, a], axis=2)", nd.AxisError, "axis 2"),
    ("xp.expand_dims(a, 5)", nd.AxisError, "axis 5"),
    ("xp.moveaxis(t, (0, 1), 0)", ValueError, "counts must match"),
    ("xp.moveaxis(t, (0, 0), (0, 1))", ValueError, "twice"),
    ("a.transpose(0, 0)", ValueError, "permutation"),
    ("xp.transpose(t, (0, 1))", ValueError, ""),
    ("xp.squeeze(a, 0)", ValueError, "extent"),
    ("xp.roll(a, (1, 2, 3), axis=(0, 1))", ValueError, "3 shifts"),
    ("xp.sort(o)", nd.AxisError, "axis"),
    ("xp.cumulative_sum(a)", ValueError, "name the axis"),
    ("o[0]", IndexError, ""),
    ("len(o)", TypeError, ""),
    ("iter(o)", TypeError, ""),
    ("xp.diagonal(v)", ValueError, "needs two"),
    ("xp.tril(v[0])", ValueError, "needs two"),
    ("xp.nonzero(o)", ValueError, "atleast_1d"),
    ("xp.unstack(o)", ValueError, "is 0-d"),
    # shapes
    ("a + v", ValueError, "(3, 4)"),
    ("a.__iadd__(t)", ValueError, ""),
    ("xp.add(b, b, out=a[0, :2])", ValueError, ""),
    ("b.__iadd__(a)", ValueError, ""),
    ("a.reshape(5, 2)", ValueError, "(3, 4)"),
    ("a.reshape(-1, -1)", ValueError, ""),
    ("a.reshape(-1, 5)", ValueError, ""),
    ("z.reshape(-1, 0)", ValueError, ""),
    ("a.T.reshape(-1, copy=False)", ValueError, "copy=False"),
    ("xp.zeros((2, -1))", ValueError, ""),
    ("xp.zeros(2.5)", TypeError, ""),
    ("xp.broadcast_to(a, (4, 3))", ValueError, ""),
    ("xp.broadcast_shapes((2,), (3,))", ValueError, "must be equal or one of them 1"),
    ("xp.concatenate([a, d])", ValueError, "must be equal"),
    ("xp.concatenate([])", ValueError, "at least one"),
    ("xp.concatenate([o, o])", ValueError, "stack"),
    ("xp.stack([a, d])", ValueError, "shapes"),
    ("xp.stack([])", ValueError, "at least one"),
    ("xp.array([[1, 2], [3]])", ValueError, ""),
    ("xp.array([1, [2]])", ValueError, ""),
    ("a @ a", ValueError, ""),
    ("a @ 2", ValueError, "scalar"),
    ("xp.matmul(o, a)", ValueError, ""),
    ("xp.tensordot(a, a, 1)", ValueError, "extent"),
    ("xp.vecdot(v, w)", ValueError, "must be equal"),
    ("xp.linalg.cross(v, v)", ValueError, "need 3"),
    ("xp.linalg.matrix_power(a, 2)", ValueError, "square"),
    ("xp.split(v, 2)", ValueError, "array_split"),
    ("xp.einsum('ij,jk', a, a)", ValueError, "extents"),
    ("xp.einsum('ij', t)", ValueError, "names 2 axes"),
    ("xp.einsum('ij->ix', a)", ValueError, "output"),
    ("xp.pad(a, -1)", ValueError, "negative"),
    ("xp.pad(z, ((1, 0), (0, 0)), 'edge')", ValueError, "no element"),
    ("xp.pad(a, 1, 'middle')", ValueError, "unknown"),
    ("xp.tile(a, -1)", ValueError, "negative"),
    ("xp.repeat(a, [1, 2])", ValueError, "2 repeats"),
    ("xp.repeat(a, -1)", ValueError, "negative"),
    ("a.put([0], 1, mode='x')", ValueError, "unknown"),
    ("a.put([], 1, mode='x')", ValueError, "unknown"),
    ("v.__setitem__(slice(0, 2), w)", ValueError, ""),
    ("xp.histogram(v, weights=v[1:])", ValueError, "histogram(): weights of shape (6,)"),
    ("xp.histogram(a, weights=a.ravel())", ValueError, "values of shape (3, 4)"),
    ("xp.histogram(v, weights=v[:1])", ValueError, "values of shape (7,)"),
    ("xp.histogram(v, weights=1.0)", ValueError, "weights of shape ()"),
    ("xp.histogram2d(v, v, weights=v[1:])", ValueError, "histogramdd(): weights of shape (6,)"),
    ("xp.bincount(xp.asarray([0, -1]), weights=v)", ValueError, "weights of shape (7,)"),
    ("xp.ravel_multi_index((xp.asarray([1]), xp.asarray([1])), (2**62, 4))", ValueError, "than int64 counts"),
    # dtypes
    ("xp.zeros(2, 'float8')", TypeError, "float8"),
    ("xp.zeros(2, 'O')", TypeError, ""),
    ("xp.zeros(2, '>f4')", TypeError, "byte order"),
    ("xp.zeros(2, np.dtype('M8[s]'))", TypeError, ""),
    ("xp.zeros(2, 'U3')", TypeError, ""),
    ("~a", TypeError, "invert"),
    ("a & a", TypeError, ""),
    ("c < 'x'", TypeError, ""),
    ("c // c", TypeError, ""),
    ("m - m", TypeError, ""),
    ("-m", TypeError, ""),
    ("i.__iadd__(a)", TypeError, "float64"),
    ("u.__iadd__(-1)", OverflowError, ""),
    ("u.__itruediv__(2)", TypeError, ""),
    ("xp.arctan2(c, c)", TypeError, ""),
    ("xp.take(a, [0.5])", TypeError, "integers"),
    ("a[[0.5]]", IndexError, ""),
    ("a['x']", IndexError, ""),
    ("a[1.0]", IndexError, ""),
    ("xp.copyto(i, a)", TypeError, "cast"),
    ("xp.concatenate([a, a], dtype='i4')", TypeError, "cast"),
    ("xp.concatenate([a], out=a, dtype='f8')", TypeError, "exclude"),
    ("xp.iinfo('f4')", ValueError, "finfo"),
    ("xp.finfo('i4')", ValueError, "iinfo"),
    ("xp.isdtype('f4', 'float')", ValueError, ""),
    ("xp.bincount(v)", TypeError, "integers"),
    ("xp.bincount(i.ravel())", ValueError, "0 on"),
    ("xp.isposinf(c)", TypeError, "sign"),
    ("xp.arange(5, dtype=bool)", TypeError, "bool"),
    ("u.view('u4')", ValueError, ""),
    ("a.T.view('f4')", ValueError, "dense"),
    # operands
    ("a + [1, 2]", TypeError, ""),
    ("a + None", TypeError, ""),
    ("a + 'x'", TypeError, ""),
    ("xp.add(a)", TypeError, "2 operands"),
    ("xp.add(a, a, where=m)", TypeError, "where"),
    ("xp.add(a, a, out=3)", TypeError, ""),
    ("xp.add(a, np.ones(4))", TypeError, "Unsupported type <class 'numpy.ndarray'>"),
    ("xp.sum(np.ones(4))", TypeError, "Unsupported type <class 'numpy.ndarray'>"),
    ("xp.concatenate([a, np.ones((1, 4))])", TypeError, "Unsupported type"),
    ("a + np.ones(4)", TypeError, "Unsupported type <class 'numpy.ndarray'>"),
    ("np.ones(4) + a", TypeError, "Unsupported type <class 'numpy.ndarray'>"),
    ("np.ones((3, 4)).__iadd__(a)", TypeError, "Unsupported type"),
    ("np.concatenate([np.ones((1, 4)), a])", TypeError, "Unsupported type"),
    ("xp.array('text')", Exception, ""),
    ("xp.array(['text'])", TypeError, ""),
    ("xp.array(object())", TypeError, "none of"),
    ("xp.from_dlpack(3)", TypeError, ""),
    ("xp.sum(a, where=m)", TypeError, ""),
    # indices
    ("a[3]", IndexError, "3"),
    ("a[0, -5]", IndexError, "-5"),
    ("a[0, 0, 0]", IndexError, ""),
    ("a[..., ...]", IndexError, ""),
    ("a[::0]", ValueError, "zero"),
    ("a[m[:2]]", IndexError, ""),
    ("a[[0, 1], [0, 1, 2]]", IndexError, ""),
    ("a.item(12)", IndexError, ""),
    ("a.item()", ValueError, "12"),
    ("a.__delitem__(0)", (TypeError, AttributeError), ""),
    ("xp.delete(v, 7)", IndexError, "7"),
    ("xp.compress([1] * 9, a, axis=0)", IndexError, "9"),
    ("xp.take(a, 0, mode='x')", ValueError, "unknown"),
    ("xp.choose(p, [w])", ValueError, "choice"),
    ("xp.ravel_multi_index((p, p), (2, 2))", ValueError, "out of bounds"),
    # no identity, ambiguous truth, conversions
    ("z.max(axis=0)", ValueError, ""),
    ("xp.min(z)", ValueError, ""),
    ("z.argmax(axis=0)", ValueError, ""),
    ("xp.quantile(z, 0.5)", ValueError, "no element"),
    ("xp.ptp(z)", ValueError, ""),
    ("xp.nanargmax(n, axis=1)", ValueError, "NaN"),
    ("bool(a)", ValueError, "ambiguous"),
    ("bool(z)", ValueError, "ambiguous"),
    ("int(a)", TypeError, ""),
    ("float(v)", TypeError, ""),
    ("range(a)", TypeError, ""),
    ("hash(a)", TypeError, "unhashable"),
    ("format(a, '.2f')", TypeError, ""),
    ("float(c[0, 0])", TypeError, ""),
    # values
    ("xp.quantile(v, 1.5)", ValueError, "fraction"),
    ("xp.percentile(v, [50, -1])", ValueError, "percentage"),
    ("xp.quantile(v, 0.5, method='x')", ValueError, "unknown"),
    ("xp.arange(1, 2, 0)", ValueError, "step"),
    ("xp.arange(0.0, float('inf'))", ValueError, "finite"),
    ("xp.linspace(0, 1, -1)", ValueError, "num"),
    ("xp.geomspace(0, 1)", ValueError, "geometric"),
    ("xp.searchsorted(s, v, side='middle')", ValueError, "side"),
    ("xp.searchsorted(a, v)", ValueError, "vector"),
    ("xp.digitize(v, k)", ValueError, "neither"),
    ("xp.histogram(v, 0)", ValueError, "bins"),
    ("xp.histogram(v.astype('int64') * 0 + 2**62, 8)", ValueError, "no 8 bins of finite size"),
    ("xp.histogram(v, [3, 1])", ValueError, "decreases"),
    ("xp.histogram(v, 4, (1, 0))", ValueError, "range"),
    ("xp.diff(v, -1)", ValueError, "n is"),
    ("xp.var(v, ddof=1, correction=1)", ValueError, "two names"),
    ("xp.meshgrid(v, indexing='x')", ValueError, "indexing"),
    ("xp.where(m, a)", ValueError, "both"),
    ("xp.linalg.norm(t, ord=1)", ValueError, "axes"),
    ("xp.linalg.norm(v, ord='fro')", ValueError, "vectors"),
    ("xp.linalg.norm(a, ord='x')", ValueError, "not a norm"),
    ("xp.no_such_name", AttributeError, "no_such_name"),
    ("xp.linalg.no_such_name", AttributeError, "no_such_name"),
    ("xp.frombuffer(b'abc', 'i2')", ValueError, "multiple"),
    ("xp.frombuffer(b'abcd', 'i2', 3)", ValueError, "need 6"),
    ("xp.fromiter([1], int, 2)", ValueError, "gave 1"),
    ("a.copy(order='X')", ValueError, "order"),
    ("xp.array(a, order='X')", ValueError, "order"),
    ("a.get(order='X')", ValueError, "order"),
    ("a.get(out=np.ones(3))", ValueError, "out"),
    ("a.set(np.ones(3))", ValueError, "shape"),
    ("a.flags['X']", KeyError, ""),
    ("a.__array_namespace__(api_version='1999.1')", ValueError, "1999"),
    ("xp.asarray([1], copy=False)", ValueError, "copy=False"),
    ("xp.asarray(a, dtype='f4', copy=False)", ValueError, "copy=False"),
    ("xp.zeros(2, device='cuda:99')", ValueError, "cuda:99"),
    ("xp.zeros(2, device='tpu')", ValueError, "tpu"),
    ("xp.ndarray((2,), strides=(16,))", ValueError, "memory has 16 bytes"),
    ("xp.ndarray((2,), strides=(-8,))", ValueError, "from byte -8"),
    ("xp.empty(None)", TypeError, "Use ()"),
    ("xp.zeros(-1)", ValueError, "zeros(): the shape (-1,)"),
    ("xp.ones((2, -1))", ValueError, "ones(): the shape (2, -1)"),
    ("xp.full(-1, 2)", ValueError, "full(): the shape (-1,)"),
    ("xp.full(-1, [2])", ValueError, "full(): the shape (-1,)"),
    ("xp.expand_dims(a, tuple(range(200)))", IndexError, "ndarray[key]: "),
    ("xp.zeros_like(a, shape=-1)", ValueError, "zeros_like(): the shape (-1,)"),
    ("xp.ones_like(a, device='cuda:99')", ValueError, "ones_like(): device cuda:99"),
    ("a.reshape(-1, -1)", ValueError, "can only specify one unknown dimension"),
    ("a.reshape(5)", ValueError, "cannot reshape array of size 12"),
    ("a.T.reshape(12, copy=False)", ValueError, "Unable to avoid creating a copy"),
    ("a.reshape(12, copy='never')", ValueError, "strings are not allowed"),
    ("xp.asarray(a, copy='never')", ValueError, "strings are not allowed"),
    ("xp.choose(y - 1, [y], mode='last')", ValueError, "choose(): mode 'last'"),
    ("xp.einsum('...i->', a)", ValueError, "the output has no '...'"),
    ("xp.putmask(y, y > 1, a)", TypeError, "putmask(): float64"),
    ("xp.cov(a, dtype='int64')", TypeError, "cov(): dtype is int64"),
    ("xp.correlate(o, w)", ValueError, "correlate(): a has no axis"),
    ("xp.searchsorted(w, w, sorter=p[:2])", ValueError, "sorter has 2 elements"),
    ("xp.searchsorted(w, w, sorter=w)", TypeError, "integers"),
    ("a.flat[None]", IndexError, "new axis"),
    ("xp.bitwise_count(a)", TypeError, "not defined for float64"),
    ("xp.lib.stride_tricks.as_strided(a, (3,), (400,))", ValueError, "memory has 96 bytes"),
    ("xp.lib.stride_tricks.sliding_window_view(a, 5, 1)", ValueError, "a window of 5 in axis 1 of 4"),
    ("xp.lib.stride_tricks.sliding_window_view(a, -1, 1)", ValueError, "a window of -1"),
    ("xp.lib.stride_tricks.sliding_window_view(a, 2)", ValueError, "1 extents, and the array has 2 axes"),
    ("pow(a, 2, 3)", TypeError, "modulus"),
    ("xp.broadcast_to(b, (3, 4)).__setitem__(0, 1)", ValueError, "read-only"),
    ("xp.broadcast_to(b, (3, 4)).__iadd__(1)", ValueError, "read-only"),
    ("xp.random.default_rng(-1)", ValueError, "seed"),
    ("xp.random.randint(3, 3)", ValueError, "no integer"),
    ("xp.random.randint(0, 300, 2, 'int8')", ValueError, "int8"),
    ("xp.random.normal(0, -1, 3)", ValueError, "scale"),
    ("xp.random.rand(2, dtype='i4')", TypeError, "float"),
    ("xp.random.choice(3, 4, replace=False)", ValueError, "without replacement"),
    ("xp.random.choice(0, 1)", ValueError, "nothing"),
    ("xp.random.choice(2, 1, p=[0.5, 0.4])", ValueError, "distribution"),
    ("xp.random.default_rng(0).random(3, 'float32', out=xp.zeros(3))", TypeError, "out"),
    ("xp.random.set_state({})", ValueError, "state"),
]


@pytest.mark.parametrize(("expression", "exception", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_is_refused(expression, exception, message, device):
    arrays = on_device(inputs(), device)
    with pytest.raises(exception) as caught:
        eval(expression, {"xp": nd, "np": np}, arrays)
    assert message in str(caught.value)
    assert not re.match(r"(\w+)(\(\))?: \1(\(\))?:", str(caught.value)), "it names the operation twice"


def test_nothing_is_written_before_an_error(device):
    x = nd.arange(6, device=device)
    for statement in ("x[[0, 9]] = 1", "x[:] = nd.arange(5)", "x += 1.5", "x[7] = 1", "x.reshape(2, 3)[5] = 0"):
        if "[0, 9]" in statement and device != "cpu":
            continue  # index arrays on a device are clamped: documented
        with pytest.raises((IndexError, ValueError, TypeError)):
            exec(statement, {"nd": nd}, {"x": x})
    assert x.tolist() == list(range(6))


def test_index_arrays_on_a_device_are_clamped_not_wild():
    if not nd.cuda.is_available():
        pytest.skip("no CUDA device: index arrays on the host are checked instead, see test_is_refused")
    x = nd.arange(6)
    assert x[nd.array([0, 99, -99])].tolist() == [0, 5, 0]


@pytest.mark.gpu
def test_arrays_of_two_devices_are_not_mixed():
    with pytest.raises((ValueError, TypeError), match="cpu|cuda"):
        nd.ones(3, device="cpu") + nd.ones(3, device="cuda")
    with pytest.raises(ValueError, match="to_device"):
        nd.concatenate([nd.ones(3, device="cpu"), nd.ones(3, device="cuda")])


def test_zero_size_everywhere(device):
    x = nd.zeros((2, 0, 3), device=device)
    assert (x + 1).shape == (2, 0, 3) and nd.exp(x).size == 0 and x.T.shape == (3, 0, 2)
    assert x.sum(axis=1).tolist() == [[0.0] * 3] * 2 and x.prod().item() == 1.0
    assert nd.sort(x).shape == x.shape and nd.cumsum(x, axis=1).shape == x.shape and nd.unique(x).size == 0
    assert (x[:, :, 0] @ nd.zeros((0, 4), device=device)).tolist() == [[0.0] * 4] * 2
    assert x.reshape(0).shape == (0,) and x[x > 0].shape == (0,) and x.copy().tolist() == [[], []]
    assert nd.asnumpy(x).shape == (2, 0, 3) and repr(x) == repr(np.zeros((2, 0, 3)))
    assert nd.random.rand(0, 2, device=device).shape == (0, 2)
    x += 1
    x[...] = 5
    x.fill(2)
