"""Properties over random shapes, layouts and dtypes, NumPy as the oracle."""

import warnings

import hypothesis.extra.numpy as hnp
import numpy as np
from dlbridge import nd
from hypothesis import given
from hypothesis import strategies as st
from nd_support import check, examples, put

DTYPES = ["bool", "int8", "int64", "uint16", "float16", "float32", "float64", "complex64"]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
# Small whole numbers: sums and products are exact in every dtype, so that the order of operations does not matter.
SMALL = st.integers(-4, 4)


def filled(shape, dtype, draw):
    size = int(np.prod(shape))
    numbers = draw(st.lists(SMALL, min_size=size, max_size=size))
    return (
        np.abs(numbers).astype(dtype).reshape(shape) if dtype == "uint16" else np.array(numbers, dtype).reshape(shape)
    )


@st.composite
def views(draw, shapes=SHAPES, dtypes=DTYPES):
    """A base array, and a function that takes the same view of it everywhere: transposed, stepped, reversed."""
    base = filled(draw(shapes), draw(st.sampled_from(dtypes)), draw)
    axes = draw(st.permutations(range(base.ndim)))
    slices = []
    for n in (base.shape[axis] for axis in axes):
        step = draw(st.sampled_from([1, 1, 2, -1, -2]))
        start = draw(st.integers(0, max(n - 1, 0))) if draw(st.booleans()) else None
        slices.append(slice(start, None, step))
    return base, lambda x: x.transpose(axes)[(*slices, ...)]  # the ellipsis: no NumPy scalar for no dimension


@examples
@given(st.data())
def test_elementwise_with_broadcasting(device, data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0))
    name = data.draw(
        st.sampled_from(["add", "multiply", "maximum", "less", "where", "floor_divide", "copysign", "equal"])
    )
    operands = []
    for shape in shapes.input_shapes:
        base, view = data.draw(views(st.just(shape)))
        keeps = view(base).shape == shape
        operands.append((base, view if keeps else lambda x: x))
    theirs = [view(base) for base, view in operands]
    ours = [view(put(base, device)) for base, view in operands]
    if name == "where":
        want, got = np.where(theirs[0] != 0, theirs[0], theirs[1]), nd.where(ours[0] != 0, ours[0], ours[1])
    else:
        if name in ("floor_divide", "copysign") and any(x.dtype.kind in "cb" for x in theirs):
            return
        with np.errstate(all="ignore"):
            want = getattr(np, name)(*theirs)
        got = getattr(nd, name)(*ours)
    check(got, want)


@examples
@given(views(), st.data())
def test_reductions(device, drawn, data):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    axis = data.draw(st.none() | st.sets(st.integers(0, max(theirs.ndim - 1, 0)), max_size=theirs.ndim).map(tuple))
    if theirs.ndim == 0:
        axis = None
    keepdims = data.draw(st.booleans())
    name = data.draw(
        st.sampled_from(["sum", "prod", "max", "min", "any", "all", "mean", "var", "count_nonzero", "ptp"])
    )
    axes = range(theirs.ndim) if axis is None else axis
    if name in ("max", "min", "ptp") and 0 in [theirs.shape[a] for a in axes]:
        return
    if name == "ptp" and theirs.dtype == bool:
        return
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of means of nothing
        want = getattr(np, name)(theirs, axis=axis, keepdims=keepdims)
    check(getattr(nd, name)(ours, axis=axis, keepdims=keepdims), want, rtol=2e-2 if theirs.dtype == "float16" else None)


@examples
@given(views(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6)), st.data())
def test_along_one_axis(device, drawn, data):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    axis = data.draw(st.integers(-theirs.ndim, theirs.ndim - 1))
    check(nd.cumsum(ours, axis=axis), np.cumsum(theirs, axis=axis))
    check(nd.cumprod(ours, axis=axis), np.cumprod(theirs, axis=axis))
    check(nd.sort(ours, axis=axis), np.sort(theirs, axis=axis))
    check(nd.argsort(ours, axis=axis), np.argsort(theirs, axis=axis, kind="stable"))
    if theirs.shape[axis]:
        check(nd.argmax(ours, axis=axis), np.argmax(theirs, axis=axis))
        check(nd.argmin(ours, axis=axis), np.argmin(theirs, axis=axis))
    check(nd.flip(ours, axis=axis), np.flip(theirs, axis=axis))
    check(nd.roll(ours, 2, axis=axis), np.roll(theirs, 2, axis=axis))


@examples
@given(views(), st.data())
def test_basic_indexing(device, drawn, data):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    key = data.draw(hnp.basic_indices(theirs.shape, allow_newaxis=True, allow_ellipsis=True))
    want = theirs[key]
    check(ours[key], np.asarray(want))
    if isinstance(want, np.ndarray) and want.size:
        assert nd.shares_memory(ours[key], ours)
    theirs[key] = 3
    ours[key] = 3
    check(ours, theirs)


@st.composite
def mixed_keys(draw, shape):
    """Integers, slices, index arrays and masks, in any order; at least one array."""
    target = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    key, axis, arrays = [], 0, 0
    while axis < len(shape):
        kind = draw(st.sampled_from(["array", "mask", "slice", "integer", "newaxis", "stop"]))
        n = shape[axis]
        if kind == "newaxis" and len(key) < 6:
            key.append(None)
            continue
        if kind == "stop":
            break
        if kind == "array" and n:
            keeps = [1 if draw(st.booleans()) else extent for extent in target]
            numbers = draw(st.lists(st.integers(-n, n - 1), min_size=int(np.prod(keeps)), max_size=int(np.prod(keeps))))
            key.append(np.array(numbers, "int64").reshape(keeps))
            arrays += 1
        elif kind == "mask" and target in ((), (1,)):
            mask = np.zeros(n, bool)
            mask[: draw(st.integers(0, min(n, 1)))] = True
            key.append(mask)
            arrays += 1
        elif kind == "integer" and n:
            key.append(draw(st.integers(-n, n - 1)))
        else:
            key.append(slice(draw(st.integers(-n, n)), None, draw(st.sampled_from([1, 2, -1]))))
        axis += 1
    if draw(st.booleans()) and axis < len(shape):
        key.append(Ellipsis)
    return tuple(key) if arrays else (*key[:0], np.array([0] if shape and shape[0] else [], "int64"))


@examples
@given(views(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)), st.data())
def test_advanced_indexing(device, drawn, data):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    key = data.draw(mixed_keys(theirs.shape))
    our_key = tuple(put(k, device) if isinstance(k, np.ndarray) else k for k in key)
    try:
        want = theirs[key]
    except IndexError:  # arrays that do not broadcast
        return
    check(ours[our_key], want)
    ours[our_key], theirs[key] = 2, 2
    check(ours, theirs)


@examples
@given(views(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)))
def test_boolean_masks(device, drawn):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    check(ours[ours > 0], theirs[theirs > 0])
    check(nd.nonzero(ours), np.nonzero(theirs))
    rows = theirs[(slice(None), *([0] * (theirs.ndim - 1)))] > 0 if theirs.size else np.zeros(len(theirs), bool)
    check(ours[put(rows, device)], theirs[rows])
    ours[ours < 2] = 1
    theirs[theirs < 2] = 1
    check(ours, theirs)


@examples
@given(st.integers(1, 6), st.sampled_from(["float32", "int16"]), st.data())
def test_overlapping_assignment(device, n, dtype, data):
    """x[one view] op= x[another view], all orders of reading and writing."""
    base = np.arange(n * n, dtype=dtype).reshape(n, n)
    variants = [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x.T[::-1],
        lambda x: x[::-1, ::-1],
    ]
    to, source = data.draw(st.sampled_from(variants)), data.draw(st.sampled_from(variants))
    theirs, ours = base.copy(), put(base, device)
    target, mine = to(theirs), to(ours)
    if data.draw(st.booleans()):
        target += source(theirs)
        mine += source(ours)
    else:
        target[...] = source(theirs)
        mine[...] = source(ours)
    check(ours, theirs)
    shift = data.draw(st.integers(1, n))
    ours.ravel()[shift:] += ours.ravel()[:-shift]
    theirs.ravel()[shift:] += theirs.ravel()[:-shift]
    check(ours, theirs)


@examples
@given(views(), st.data())
def test_reshape_is_a_view_where_numpys_is(device, drawn, data):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    shape = data.draw(
        st.sampled_from([(-1,), (theirs.size, 1), (1, theirs.size), (*theirs.shape, 1), theirs.shape[::-1]])
    )
    if theirs.size == 0 and -1 in shape:
        shape = (0,)
    order = data.draw(st.sampled_from("CF"))
    want, got = theirs.reshape(shape, order=order), ours.reshape(shape, order=order)
    check(got, want)
    if theirs.size and ours.strides == theirs.strides:  # a device copy of a view may lie otherwise than the original
        assert nd.shares_memory(got, ours) == np.shares_memory(want, theirs)
    check(ours.ravel(order), theirs.ravel(order))
    check(ours.copy(order), theirs.copy(order))
    assert ours.copy(order).flags == ours.astype(ours.dtype, order=order).flags


@examples
@given(views(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)), st.data())
def test_matmul(device, drawn, data):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    if theirs.shape[-1] == 0 or theirs.size == 0:
        return
    other = filled(
        (theirs.shape[-1], 3), data.draw(st.sampled_from(["float32", "float64", "int64", "complex64"])), data.draw
    )
    check(ours @ put(other, device), theirs @ other)
    check(nd.matmul(ours, put(np.asfortranarray(other), device)[:, 0]), theirs @ other[:, 0])


@examples
@given(views(), st.integers(1, 3), st.integers(2, 8))
def test_repr_as_numpys(device, drawn, edgeitems, threshold):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    with np.printoptions(edgeitems=edgeitems, threshold=threshold):
        assert repr(ours) == repr(theirs)
        assert str(ours) == str(theirs)


@examples
@given(views(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)), st.data())
def test_joins(device, drawn, data):
    base, view = drawn
    theirs, ours = view(base), view(put(base, device))
    axis = data.draw(st.integers(-theirs.ndim, theirs.ndim - 1))
    check(
        nd.concatenate([ours, ours.copy(), ours[:0]] if axis in (0, -theirs.ndim) else [ours, ours], axis=axis),
        np.concatenate(
            [theirs, theirs.copy(), theirs[:0]] if axis in (0, -theirs.ndim) else [theirs, theirs], axis=axis
        ),
    )
    check(nd.stack([ours, ours], axis=axis), np.stack([theirs, theirs], axis=axis))
    check(nd.repeat(ours, 2, axis=axis), np.repeat(theirs, 2, axis=axis))
    check(nd.tile(ours, (2, 1, 2)), np.tile(theirs, (2, 1, 2)))
    check(
        nd.unique(ours, return_inverse=True, return_counts=True),
        np.unique(theirs, return_inverse=True, return_counts=True),
    )
